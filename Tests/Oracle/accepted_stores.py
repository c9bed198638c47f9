"""What Core Data accepts and writes, and a migration has to as well: defaults, empty relationships, keys of join tables.

Models and stores are generated; the values are read back with SQLite. Arguments: words of the names of the scenarios to run.
"""

import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from models import Version, attribute, entity, relationship
from scene import Scene
from tool import Tally, scenarios

NUMBERS = ("Integer 16", "Integer 32", "Integer 64", "Double", "Float", "Boolean")
SPELLINGS = {"YES": 1, "NO": 0, "true": 1, "false": 0}


def defaults_spelled_as_truth(mandatory):
    """An attribute of each type for each spelling, with the value it must get."""
    attributes, expected = [], {}
    for kind in NUMBERS:
        for text, value in SPELLINGS.items():
            name = (kind + text).replace(" ", "").lower()
            attributes.append(attribute(name, kind, mandatory=mandatory, default=text))
            expected[name] = value
    return attributes, expected


def defaults_of(mandatory, folder, check):
    attributes, expected = defaults_spelled_as_truth(mandatory)
    versions = [Version("V1", entity("Note", "title")), Version("V2", entity("Note", "title", *attributes))]
    scene = Scene(folder, check, versions, "V2", "V1", {"Note": [{"title": "first"}]})
    scene.migrates(steps=["V1 → V2"], holds={("Note", name): [value] for name, value in expected.items()})


def yes_and_no_are_defaults_of_new_mandatory_numbers(folder, check):
    defaults_of(True, folder, check)


def yes_and_no_are_defaults_of_new_optional_numbers(folder, check):
    defaults_of(False, folder, check)


def yes_and_no_fill_numbers_that_become_mandatory(folder, check):
    versions = [
        Version("V1", entity("Note", "title", attribute("flag", "Integer 16"))),
        Version("V2", entity("Note", "title", attribute("flag", "Integer 16", mandatory=True, default="YES")))]
    rows = {"Note": [{"title": "first", "flag": None}, {"title": "second", "flag": 7}]}
    scene = Scene(folder, check, versions, "V2", "V1", rows)
    scene.migrates(steps=["V1 → V2"], holds={("Note", "title", "flag"): [("first", 1), ("second", 7)]})


# Mandatory relationships to many


def albums(version, *properties, **photos):
    """Albums with photos; what the relationship to them is like is given."""
    return Version(
        version, entity("Album", "name", relationship("photos", "Photo", "album", to_many=True, **photos), *properties),
        entity("Photo", "name", relationship("album", "Album", "photos")))


ALBUMS = {"Album": [{"name": "full"}, {"name": "empty"}], "Photo": [{"name": "one", "album": 1}, {"name": "two", "album": None}]}
HELD = {("Album", "name"): ["empty", "full"], ("Photo", "name", "album"): [("one", 1), ("two", None)]}


def a_new_mandatory_relationship_to_many_may_be_empty(folder, check):
    before = Version("V1", entity("Album", "name"), entity("Photo", "name"))
    rows = {"Album": ALBUMS["Album"], "Photo": [{"name": "one"}]}
    scene = Scene(folder, check, [before, albums("V2", mandatory=True)], "V2", "V1", rows)
    scene.migrates(steps=["V1 → V2"], holds={("Album", "name"): ["empty", "full"], ("Photo", "name", "album"): [("one", None)]})


def a_new_entity_behind_a_mandatory_relationship_to_many(folder, check):
    before = Version("V1", entity("Album", "name"))
    scene = Scene(folder, check, [before, albums("V2", mandatory=True)], "V2", "V1", {"Album": ALBUMS["Album"]})
    scene.migrates(steps=["V1 → V2"], holds={("Album", "name"): ["empty", "full"], ("Photo", "name"): []})


def a_relationship_to_many_that_becomes_mandatory_may_be_empty(folder, check):
    scene = Scene(folder, check, [albums("V1"), albums("V2", mandatory=True)], "V2", "V1", ALBUMS)
    scene.migrates(steps=["V1 → V2"], holds=HELD)


def an_empty_mandatory_relationship_to_many_is_kept(folder, check):
    versions = [albums("V1", mandatory=True), albums("V2", "place", mandatory=True)]
    scene = Scene(folder, check, versions, "V2", "V1", ALBUMS)
    scene.migrates(steps=["V1 → V2"], holds=HELD)


def a_minimum_count_is_still_asked_for(folder, check):
    scene = Scene(folder, check, [albums("V1"), albums("V2", mandatory=True, minimum="1")], "V2", "V1", ALBUMS)
    scene.stays(names=["Album", "photos"])
    # Every album has a photo.
    rows = {"Album": [{"name": "full"}], "Photo": [{"name": "one", "album": 1}]}
    scene = Scene(folder / "full", check, [albums("V1"), albums("V2", mandatory=True, minimum="1")], "V2", "V1", rows)
    scene.migrates(steps=["V1 → V2"], holds={("Photo", "name", "album"): [("one", 1)]})


# Join tables


def tagged(version, *properties, more=()):
    return Version(
        version, entity("Note", "name", relationship("tags", "Tag", "notes", to_many=True), *properties),
        entity("Tag", "name", relationship("notes", "Note", "tags", to_many=True)), *more)


PAIRS = [(1, 1), (1, 2), (2, 2), (3, 1)]


def join_table(store):
    """The table of the many-to-many relationship and its columns, those of notes and of tags."""
    names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    (table,) = [name for name in names if name.startswith("Z_") and name[2:3].isdigit()]
    columns = [row[1] for row in store.execute(f'PRAGMA table_info("{table}")')]
    (notes,) = [column for column in columns if "NOTES" in column]
    (tags,) = [column for column in columns if "TAGS" in column]
    return table, notes, tags


def turn_primary_key(store):
    """Fills the join table, whose key's columns are then in the other order than a new table's."""
    table, notes, tags = join_table(store)
    key = [row[1] for row in sorted(store.execute(f'PRAGMA table_info("{table}")'), key=lambda row: row[5]) if row[5]]
    query = "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND type = 'index' AND sql IS NOT NULL"
    indexes = [text for (text,) in store.execute(query, (table,))]
    store.execute(f'DROP TABLE "{table}"')
    store.execute(f'CREATE TABLE "{table}" ( {key[0]} INTEGER, {key[1]} INTEGER, PRIMARY KEY ({key[1]}, {key[0]}) )')
    for text in indexes:
        store.execute(text)
    store.executemany(f'INSERT INTO "{table}" ({notes}, {tags}) VALUES (?, ?)', PAIRS)


def keeps_pairs(folder, check, after, way):
    rows = {"Note": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "Tag": [{"name": "x"}, {"name": "y"}]}
    scene = Scene(folder, check, [tagged("V1"), after], "V2", "V1", rows, prepare=turn_primary_key)
    visits = scene.migrates(steps=["V1 → V2"], holds={("Note", "name"): ["a", "b", "c"], ("Tag", "name"): ["x", "y"]})
    ways = [step.get("way") for step in visits["plan"].outcome.data.get("steps", [])]
    check(ways == [way], f"the step should be done {way}, is {ways}", visits["plan"].outcome)
    for verb in ("migrate", "output", "open"):
        path = visits[verb].output if verb == "output" else visits[verb].store
        if not path.exists():
            continue
        store = sqlite3.connect(path)
        table, notes, tags = join_table(store)
        found = sorted(store.execute(f'SELECT "{table}"."{notes}", "{table}"."{tags}" FROM "{table}"'))
        check(found == PAIRS, f"{verb} should keep the pairs {PAIRS}, keeps {found}", visits[verb].outcome)
        sound = store.execute("PRAGMA integrity_check").fetchone()[0]
        check(sound == "ok", f"the store is not sound after {verb}: {sound}", visits[verb].outcome)
        store.close()


def join_tables_with_a_turned_key_in_place(folder, check):
    keeps_pairs(folder, check, tagged("V2", "place"), "in-place")


def join_tables_with_a_turned_key_rebuilt(folder, check):
    keeps_pairs(folder, check, tagged("V2", more=[entity("Album", "name")]), "rebuild")


if __name__ == "__main__":
    Tally().run_all(scenarios(globals()), sys.argv[1:])
