"""Damaged stores of every version that a model knows or does not know: damage makes no outcome worse than the records allow.

Each store is opened as it is and damaged, and the outcomes are compared: a store that stays for a newer app, or for want of a way,
leaves no empty store in its place when it is damaged; one that is migrated has the same records after its salvage. What is in
the stores is read with SQLite alone. Arguments: words of the names of the scenarios to run.
"""

import shutil
import sqlite3
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from models import Version, attribute, close, entity, values, write_model
from scene import Scene
from store import Store
from tool import Tally, contents, lazaret, real_material, scenarios

NOTES = [{"title": f"note {number}", "body": f"text {number}"} for number in range(300)]
RANKED = [{**note, "rank": number} for number, note in enumerate(NOTES)]


def notes(version, *properties, more=()):
    return Version(version, entity("Note", *properties), *more)


def number(name, **rest):
    return attribute(name, "Integer 16", **rest)


# Damage that takes no record along


def page_size(data):
    size = struct.unpack(">H", data[16:18])[0]
    return 65536 if size == 1 else size


def header(data):
    """Without its header a file does not say what it is."""
    data[:100] = bytes(100)


def foreign_leaf(data):
    """A page of a table that is none of the model's: pages are damaged, and the metadata says of which version the store is."""
    place = data.find(b"a row of no entity") // page_size(data) * page_size(data)
    assert place > 0
    data[place : place + page_size(data)] = bytes(page_size(data))


def identity(data):
    """Without metadata and model a store does not say of which version it is; its list of tables does."""
    with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
        copy = Path(folder) / "copy.sqlite"
        copy.write_bytes(data)
        store = sqlite3.connect(copy)
        roots = [row[0] for row in store.execute(
            "SELECT rootpage FROM sqlite_master WHERE name IN ('Z_METADATA', 'Z_MODELCACHE')")]
        store.close()
    for root in roots:
        place, size = (root - 1) * page_size(data), page_size(data)
        data[place : place + size] = bytes(size)


def first_page(data):
    """Without its first page a store does not say which tables it has."""
    data[: page_size(data)] = bytes(page_size(data))


DAMAGE = (header, foreign_leaf, first_page)


def add_foreign_table(store):
    store.execute("CREATE TABLE other (text)")
    store.executemany("INSERT INTO other VALUES (?)", [(f"a row of no entity {number} {'x' * 200}",) for number in range(100)])


def damaged(scene, kind):
    """A place with a damaged copy of the store."""
    place = scene.folder / f"damaged {kind.__name__}"
    for name in ("Stores", "Home"):
        (place / name).mkdir(parents=True)
    data = bytearray(scene.original.read_bytes())
    kind(data)
    (place / "Stores/App.sqlite").write_bytes(data)
    return place


def make(folder, check, versions, current, stored, rows, carried=None):
    """A scene whose store is of a version that may be none of the model's."""
    scene = Scene(folder, check, versions + ([carried] if carried else []), current, stored, rows, add_foreign_table)
    if carried:
        shutil.rmtree(scene.model)
        write_model(scene.model, versions, current)
    return scene


def salvaged(place):
    """The stores that were salvaged in quarantine."""
    return sorted((place / "Stores/Incompatible").glob("*.salvaged*.sqlite"))


def salvaged_values(place, name, *properties):
    """The values of the one store that was salvaged, by a copy of it."""
    copy = place / "copy.sqlite"
    shutil.copy(salvaged(place)[0], copy)
    return values(copy, name, *properties)


def stays_or_waits(scene, kind, code, holds, options=()):
    """Opening exits with a code, puts no store in the place, and keeps every record in what it salvaged, if it moved anything."""
    check, place = scene.check, damaged(scene, kind)
    before = (place / "Stores/App.sqlite").read_bytes()
    for turn in ("open", "open again"):
        visit = scene.run("open", *options, place=place)
        outcome, name = visit.outcome, f"{turn} ({kind.__name__})"
        check(outcome.code == code, f"{name} should exit with {code}, exits with {outcome.code}", outcome)
        store = place / "Stores/App.sqlite"
        if store.exists():
            check(store.read_bytes() == before, f"{name} put another store in the place", outcome)
            continue
        found = salvaged(place)
        if not check(len(found) == 1, f"{name} should leave one salvaged store, left {len(found)}", outcome):
            return place
        for (entity_name, *properties), expected in holds.items():
            got = salvaged_values(place, entity_name, *properties)
            check(got == sorted(expected, key=repr), f"after {name} the salvaged store lacks records of {entity_name}", outcome)
        check("quarantine" in outcome.words, f"{name} should say where the store is", outcome)
        listed = lazaret("quarantine", "list", "--home", place / "Home", "--json")
        states = [one.get("receipt", {}).get("salvage", {}) for one in listed.data.get("stores", [])]
        check(
            [(one.get("state"), one.get("wanted")) for one in states] == [("salvaged", True)],
            f"after {name} the store should wait for its salvage, the list says {states}", listed)
        listed = lazaret("quarantine", "list", "--home", place / "Home")
        check("waits" in listed.out and "failed" not in listed.out, f"after {name} the list should say that it waits", listed)
        installed = lazaret(
            "quarantine", "salvage", states and listed.out.splitlines()[1].split()[0], "--home", place / "Home", "--model", scene.model,
            "--install")
        check(
            installed.code == 1 and not store.exists() and "app's current model" not in installed.error,
            f"after {name} nothing should be installed that the app cannot open", installed)
    return place


def has_records(scene, kind, place, visit, holds, code=(0, 2)):
    check, outcome = scene.check, visit.outcome
    check(outcome.code in code, f"open ({kind.__name__}) should exit with one of {code}, exits with {outcome.code}", outcome)
    if not check((place / "Stores/App.sqlite").is_file(), f"there is no store after open ({kind.__name__})", outcome):
        return
    for (name, *properties), expected in holds.items():
        found = values(place / "Stores/App.sqlite", name, *properties)
        check(
            found == sorted(expected, key=repr),
            f"after open ({kind.__name__}) {name}.{'/'.join(properties)} has {len(found)} records, {found[:2]} …, should have "
            f"{len(expected)}", outcome)


def title_and_body(first="title", second="body"):
    return {("Note", first, second): [(note["title"], note["body"]) for note in NOTES]}


# Versions that the model has


def no_step_can_be_inferred(folder, check):
    versions = [notes("V1", "title", "body"), notes("V2", "title", attribute("body", "Binary"))]
    scene = make(folder, check, versions, "V2", "V1", {"Note": NOTES})
    scene.stays(codes={"plan": 1, "open": 1}, verbs=("open",))
    for kind in DAMAGE:
        place = stays_or_waits(scene, kind, 1, title_and_body())
        # An app that knows what to do with the version has every record.
        scene.model = write_model(folder / f"older {kind.__name__}/App.xcdatamodeld", versions[:1], "V1")
        has_records(scene, kind, place, scene.run("open", place=place), title_and_body())
        scene.model = folder / "App.xcdatamodeld"


def the_policy_may_have_an_empty_store(folder, check):
    versions = [notes("V1", "title", "body"), notes("V2", "title", attribute("body", "Binary"))]
    scene = make(folder, check, versions, "V2", "V1", {"Note": NOTES})
    for kind in DAMAGE:
        place = damaged(scene, kind)
        visit = scene.run("open", "--on-migration-failure", "replace", place=place)
        has_records(scene, kind, place, visit, {("Note", "title"): []}, code=(2,))
        words = [event["words"] for event in visit.outcome.data.get("events", []) if event["kind"] == "salvage"]
        check(
            len(words) == 1 and "migrated" in words[0], f"the event should say why no record is in the place, says {words}",
            visit.outcome)
        kept = salvaged_values(place, "Note", "title") if len(salvaged(place)) == 1 else []
        check(kept == sorted(note["title"] for note in NOTES), "what was salvaged should be in quarantine", visit.outcome)


def records_that_do_not_fit(folder, check):
    versions = [notes("V1", "title", "body"), notes("V2", "title", attribute("body", mandatory=True))]
    rows = [{"title": note["title"]} for note in NOTES]
    scene = make(folder, check, versions, "V2", "V1", {"Note": rows})
    scene.stays(verbs=("open",))
    for kind in DAMAGE:
        stays_or_waits(scene, kind, 1, {("Note", "title"): [note["title"] for note in NOTES]})


def a_later_name_without_anything_of_its_own(folder, check):
    versions = [notes("V1", "title"), notes("V2", "title", "body", number("stars")), notes("V3", "title", "body")]
    scene = make(folder, check, versions, "V2", "V3", {"Note": NOTES})
    scene.migrates(steps=["V3 → V2"], holds=title_and_body(), verbs=("open",))
    for kind in DAMAGE:
        place = damaged(scene, kind)
        has_records(scene, kind, place, scene.run("open", place=place), title_and_body())


def a_version_that_the_order_leaves_out(folder, check):
    draft = notes("Draft", "title", attribute("text", renamed="body"))
    versions = [notes("V1", "title"), draft, notes("V2", "title", "body", number("stars"))]
    rows = [{"title": note["title"], "text": note["body"]} for note in NOTES]
    scene = make(folder, check, versions, "V2", "Draft", {"Note": rows})
    options = ("--versions", "V1,V2")
    scene.migrates(*options, steps=["Draft → V2"], holds=title_and_body(), verbs=("open",))
    for kind in DAMAGE:
        place = damaged(scene, kind)
        has_records(scene, kind, place, scene.run("open", *options, place=place), title_and_body())


def without_metadata_the_tables_tell(folder, check):
    """Of a version that the order leaves out, with neither metadata nor model left, the list of tables tells."""
    draft = notes("Draft", "title", attribute("text", renamed="body"))
    versions = [notes("V1", "title"), draft, notes("V2", "title", "body", number("stars"))]
    rows = [{"title": note["title"], "text": note["body"]} for note in NOTES]
    scene = make(folder, check, versions, "V2", "Draft", {"Note": rows})
    for options in (("--versions", "V1,V2"), ()):
        place = damaged(scene, identity)
        has_records(scene, identity, place, scene.run("open", *options, place=place), title_and_body())
        shutil.rmtree(place)


# Versions that the model does not have


def an_older_version_that_carries_its_model(folder, check):
    versions = [notes("V1", "name"), notes("V3", attribute("label", renamed="title"), "body", number("stars"))]
    scene = make(
        folder, check, versions, "V3", "V2", {"Note": NOTES}, notes("V2", "title", "body"))
    sound = scene.run("open")
    check(sound.outcome.data.get("verdict") == "outdated", "the sound store should be outdated", sound.outcome)
    scene.check_values("open", sound, title_and_body("label"))
    for kind in DAMAGE:
        place = damaged(scene, kind)
        has_records(scene, kind, place, scene.run("open", place=place), title_and_body("label"))


def an_older_version_without_a_way(folder, check):
    """The model that it carries leads nowhere; the columns that have a place are kept, with their values as they are."""
    versions = [notes("V1", "name"), notes("V3", "title", attribute("body", "Binary"), number("stars"))]
    scene = make(folder, check, versions, "V3", "V2", {"Note": NOTES}, notes("V2", "title", "body"))
    for kind in DAMAGE:
        place = damaged(scene, kind)
        visit = scene.run("open", place=place)
        has_records(scene, kind, place, visit, title_and_body())


def a_newer_version_that_carries_its_model(folder, check):
    versions = [notes("V1", "title"), notes("V2", "title", "body")]
    scene = make(
        folder, check, versions, "V2", "V3", {"Note": RANKED}, notes("V3", "title", "body", number("rank")))
    scene.is_newer()
    for kind in DAMAGE:
        stays_or_waits(scene, kind, 3, {("Note", "title", "rank"): [(note["title"], note["rank"]) for note in RANKED]})


# Real stores


def records(path):
    """Every record of a store by its table and key, with the values of the columns that hold any."""
    found = {}
    with Store(path) as store:
        for table in sorted(store.tables - {"Z_PRIMARYKEY"}):
            columns = [name for name in store.columns(table) if name != "Z_OPT"]
            found[table] = sorted(store.rows(table, columns), key=repr)
    return {table: rows for table, rows in found.items() if rows}


def opened(folder, original, model, kind, check):
    """Opens a copy of a store; what the command did, and the records of the store in the place, or None where it was not opened."""
    place = folder / "real"
    store = place / "Stores/App.sqlite"
    store.parent.mkdir(parents=True)
    data = bytearray(original.read_bytes())
    if kind:
        kind(data)
    store.write_bytes(data)
    outcome = lazaret("open", store, "--model", model, "--home", place / "Home", "--json")
    is_open = outcome.code in (0, 2)
    if not is_open:
        is_there = store.exists()
        check(not is_there or store.read_bytes() == data, f"{original.stem}: another store is in the place", outcome)
    found = records(store) if is_open else None
    shutil.rmtree(place)
    return outcome, found


def real_stores_of_a_model_without_order(folder, check):
    """Each of 22 stores, sound and damaged, comes to the same records, or stays for the same reason."""
    material = real_material()
    if not material:
        return
    model = material / "models/wire-zmessaging/zmessaging.xcdatamodeld"
    outcomes = {}
    for original in sorted((material / "stores/wire-zmessaging").glob("*.wiredatabase")):
        sound, expected = opened(folder, original, model, None, check)
        outcomes[original.stem] = sound.code
        for kind in (header, identity) if "-10" in original.stem else (header,):
            outcome, found = opened(folder, original, model, kind, check)
            name = f"{original.stem} ({kind.__name__})"
            if check(
                (expected is None) == (found is None),
                f"{name}: sound it exits with {sound.code}, damaged with {outcome.code}", outcome) and found is not None:
                lacking = {table for table in expected if found.get(table) != expected[table]}
                check(not lacking, f"{name}: other records after the salvage in {sorted(lacking)}", outcome)
    check(len(outcomes) == 22, f"there should be 22 stores, there are {len(outcomes)}: {outcomes}")


if __name__ == "__main__":
    Tally().run_all(scenarios(globals()), sys.argv[1:])
