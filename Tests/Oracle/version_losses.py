"""What a migration may not do silently: let records go because of renaming identifiers, or with an entity that is removed.

Models and stores are generated; the values are read back with SQLite. Arguments: words of the names of the scenarios to run.
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from models import Version, attribute, entity, relationship
from scene import Scene
from tool import Tally, lazaret, scenarios

ACCEPT = ("--on-migration-loss", "migrate")
REFUSE = ("--on-migration-loss", "refuse")


def records(name, count):
    return [{"name": f"{name} {number}"} for number in range(count)]


def stays_whatever_the_app_does_with_failures(scene):
    """A refusal that prevents a loss is neither damage nor a failure that lets the store be replaced."""
    for option in ("--on-damage", "--on-migration-failure"):
        for remedy in ("salvage", "later", "replace"):
            scene.stays(option, remedy, verbs=("open",))


# One name, two renaming identifiers


def an_attribute_whose_identifiers_disagree(folder, check):
    versions = [
        Version("V1", entity("Person", attribute("name", renamed="moniker"), attribute("age", "Integer 16"))),
        Version("V2", entity("Person", attribute("name", renamed="label"), attribute("age", "Integer 16"), "town"))]
    rows = {"Person": [{"name": "first", "age": 30}, {"name": "second", "age": 40}]}
    scene = Scene(folder, check, versions, "V2", "V1", rows)
    scene.verdict("outdated", version="V1")
    scene.stays(names=["Person", "name", "moniker", "label"])
    scene.stays(*REFUSE, names=["moniker", "label"])
    stays_whatever_the_app_does_with_failures(scene)
    scene.migrates(*ACCEPT, steps=["V1 → V2"], code=2, holds={("Person", "name", "age"): [(None, 30), (None, 40)]})

    mapping = folder / "Names.json"
    mapping.write_text(json.dumps({
        "format": 1, "source": "V1", "destination": "V2",
        "entities": [{"source": "Person", "destination": "Person", "attributes": {"name": {"copy": "name"}}}]}))
    kept = {("Person", "name", "age"): [("first", 30), ("second", 40)]}
    scene.migrates("--mapping", mapping, steps=["V1 → V2"], holds=kept)


def an_entity_of_equal_hashes_is_copied(folder, check):
    """Renaming identifiers are no part of an entity's version hash; an entity whose hash stays is copied as it is."""
    versions = [
        Version("V1", entity("Person", attribute("name", renamed="moniker"))),
        Version("V2", entity("Person", attribute("name", renamed="label")), entity("Place", "town"))]
    scene = Scene(folder, check, versions, "V2", "V1", {"Person": records("person", 2)})
    scene.migrates(steps=["V1 → V2"], holds={("Person", "name"): ["person 0", "person 1"]})


def an_entity_whose_identifiers_disagree(folder, check):
    versions = [
        Version("V1", entity("Person", "name", renamed="Human"), entity("Place", "town")),
        Version("V2", entity("Person", "name", renamed="Client"), entity("Place", "town", "country"))]
    scene = Scene(folder, check, versions, "V2", "V1", {"Person": records("person", 5), "Place": [{"town": "here"}]})
    scene.verdict("outdated", version="V1")
    scene.stays(names=["Person", "Human", "Client"])
    stays_whatever_the_app_does_with_failures(scene)
    left = {("Person", "name"): [], ("Place", "town", "country"): [("here", None)]}
    scene.migrates(*ACCEPT, steps=["V1 → V2"], code=2, holds=left)


# Entities that go


def an_entity_that_goes_although_its_name_stays(folder, check):
    """The new Author is the old Book, so that the old authors have nowhere to go."""
    versions = [
        Version("V1", entity("Author", "name"), entity("Book", "name")),
        Version("V2", entity("Author", "name", renamed="Book"))]
    rows = {"Author": records("author", 23), "Book": records("book", 2)}
    scene = Scene(folder / "with authors", check, versions, "V2", "V1", rows)
    scene.verdict("outdated", version="V1")
    visits = scene.stays(names=["Author"])
    for verb, visit in visits.items():
        check("23" in visit.outcome.words, f"{verb} should count the records", visit.outcome)
    scene.stays(*REFUSE, names=["Author"])
    stays_whatever_the_app_does_with_failures(scene)
    books = {("Author", "name"): ["book 0", "book 1"]}
    scene.migrates(*ACCEPT, steps=["V1 → V2"], code=2, holds=books)

    scene = Scene(folder / "without", check, versions, "V2", "V1", {"Book": records("book", 2)})
    scene.migrates(steps=["V1 → V2"], holds=books)


def removed_entity(folder, check, count):
    versions = [
        Version("V1", entity("Label", "name"), entity("Note", "name")), Version("V2", entity("Note", "name"))]
    return Scene(folder, check, versions, "V2", "V1", {"Label": records("label", count), "Note": records("note", 2)})


NOTES = {("Note", "name"): ["note 0", "note 1"]}


def an_entity_that_is_absent_from_the_target(folder, check):
    scene = removed_entity(folder / "with records", check, 37)
    visits = scene.migrates(steps=["V1 → V2"], code=2, holds=NOTES)
    for verb, visit in visits.items():
        told = json.dumps(visit.outcome.data)
        check("Label" in told and "37" in told, f"{verb} should count the records of Label", visit.outcome)
    notice = json.dumps(visits["open"].outcome.data.get("notice", ""))
    check("no place for some of your entries" in notice, "the notice of open should tell of the entries", visits["open"].outcome)
    for verb in ("migrate", "open"):
        original_stays_until_it_is_released(check, verb, visits[verb])
    removed_entity(folder / "without records", check, 0).migrates(steps=["V1 → V2"], holds=NOTES)


def original_stays_until_it_is_released(check, verb, visit):
    """Pruning never drops the only copy of removed records, though newer and verified backups are there."""
    if not visit.backup:
        return
    original, home = Path(visit.backup), visit.home
    bytes_before = original.read_bytes()
    # Not in the same second as the original, so that these are the newer ones.
    time.sleep(1.1)
    for _ in range(2):
        made = lazaret("backup", "create", visit.store, "--home", home, "--json")
        check(made.code == 0, "a backup could not be made", made)
    verified = lazaret("backup", "verify", "--home", home, "--json")
    check(verified.code == 0, "the backups could not be verified", verified)

    prune = ("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", home, "--json")
    for round in range(2):
        pruned = lazaret(*prune)
        there = original.is_file() and original.read_bytes() == bytes_before
        if not check(there, f"pruning dropped the original that {verb} kept", pruned):
            return
    released = lazaret("backup", "release", original.stem, "--home", home, "--json")
    check(released.code == 0, "backup release should exit with 0", released)
    check(original.is_file(), "backup release removed the original itself", released)
    pruned = lazaret(*prune)
    check(not original.is_file(), "pruning should drop an original that was released", pruned)


def a_removed_entity_takes_no_other_record_along(folder, check):
    """Notes that lead to labels, one to one and many to many, stay where the labels go."""
    def note(*more):
        return entity("Note", "name", *more)

    label = entity(
        "Label", "name", relationship("notes", "Note", "label", to_many=True),
        relationship("marked", "Note", "marks", to_many=True))
    to_labels = [relationship("label", "Label", "notes"), relationship("marks", "Label", "marked", to_many=True)]
    versions = [Version("V1", note(*to_labels), label), Version("V2", note())]
    rows = {"Label": records("label", 3), "Note": [{"name": "note 0", "label": 1}, {"name": "note 1", "label": 3}]}
    scene = Scene(folder, check, versions, "V2", "V1", rows)
    visits = scene.migrates(steps=["V1 → V2"], code=2, holds=NOTES)
    left = [table for table in scene.tables(visits["migrate"]) if "LABEL" in table or "MARK" in table]
    check(not left, f"tables of the removed entity are left: {left}", visits["migrate"].outcome)


# Mirrored stores


def a_mirrored_store_is_not_renumbered(folder, check):
    def mirror(store):
        store.execute("CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY, ZENTITYID INTEGER, ZENTITYPK INTEGER)")
        store.execute("INSERT INTO ANSCKRECORDMETADATA VALUES (1, (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'Note'), 1)")

    first = Version("V1", entity("Note", "name"))
    renumbering = [first, Version("V2", entity("Album", "name"), entity("Note", "name"))]
    scene = Scene(folder / "renumbered", check, renumbering, "V2", "V1", {"Note": records("note", 2)}, prepare=mirror)
    visits = scene.stays(names=["mirror"])
    told = visits["migrate"].outcome.failure.get("detail", "")
    plan = visits["plan"].outcome
    words = [one for refusal in plan.data.get("refusals", []) for one in (refusal.get("detail"), refusal.get("reason")) if one]
    check(any(one in told or told in one for one in words if told), "plan and migrate should say the same", plan)
    opened = visits["open"].outcome
    check(opened.failure.get("detail", "") == told, "open and migrate should say the same", opened)

    adding = [first, Version("V2", entity("Note", "name", "place"), entity("Tag", "name"))]
    scene = Scene(folder / "as it was", check, adding, "V2", "V1", {"Note": records("note", 2)}, prepare=mirror)
    visits = scene.migrates(steps=["V1 → V2"], holds=NOTES)
    check("ANSCKRECORDMETADATA" in scene.tables(visits["open"]), "the table of the mirroring is gone", visits["open"].outcome)


if __name__ == "__main__":
    Tally().run_all(scenarios(globals()), sys.argv[1:])
