"""Which version a store is of, and the way that leads from it to the current one: drafts, branches, renames, mappings, options.

Models and stores are generated; the values are read back with SQLite. Arguments: words of the names of the scenarios to run.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from models import Version, attribute, entity, relationship
from scene import Scene
from tool import Tally, lazaret, scenarios

NOTES = [{"title": "first", "body": "one"}, {"title": "second", "body": "two"}]
RANKED = [{"title": "first", "body": "one", "rank": 5}, {"title": "second", "body": "two", "rank": 7}]
BODIES = {("Note", "title", "body"): [("first", "one"), ("second", "two")]}
TITLES = {("Note", "title"): ["first", "second"]}


def notes(version, *properties, identifier="", more=()):
    return Version(version, entity("Note", *properties), *more, identifier=identifier)


def number(name, **rest):
    return attribute(name, "Integer 16", **rest)


# Drafts, branches and versions after the current one


def a_draft_after_the_current_version(folder, check):
    versions = [
        notes("V1", "title", "body"), notes("V2", "title", "body", number("stars")), notes("V3", "title", number("stars"))]
    scene = Scene(folder, check, versions, "V2", "V1", {"Note": NOTES})
    scene.verdict("outdated", version="V1")
    scene.migrates(steps=["V1 → V2"], holds=BODIES)


def a_later_version_without_anything_of_its_own(folder, check):
    versions = [notes("V1", "title"), notes("V2", "title", "body", number("stars")), notes("V3", "title", "body")]
    scene = Scene(folder, check, versions, "V2", "V3", {"Note": NOTES})
    scene.verdict("outdated", version="V3")
    scene.migrates(steps=["V3 → V2"], holds=BODIES)


def a_later_version_that_only_renames(folder, check):
    versions = [notes("V2", "title", "body", number("stars")), notes("V3", "title", attribute("text", renamed="body"))]
    rows = {"Note": [{"title": "first", "text": "one"}, {"title": "second", "text": "two"}]}
    scene = Scene(folder, check, versions, "V2", "V3", rows)
    scene.migrates(steps=["V3 → V2"], holds=BODIES)


def a_version_that_only_its_name_makes_later_is_migrated_and_its_attribute_told(folder, check):
    versions = [notes("V1", "title"), notes("V2", "title", "body"), notes("V3", "title", "body", number("rank"))]
    scene = Scene(folder, check, versions, "V2", "V3", {"Note": RANKED})
    scene.verdict("outdated", version="V3")
    visits = scene.migrates(steps=["V3 → V2"], code=2, holds=BODIES)
    for visit in (visits["plan"], visits["migrate"], visits["output"]):
        losses = [loss for step in visit.outcome.data.get("steps", []) for loss in step.get("losses", [])]
        told = [(loss.get("entity"), loss.get("property"), loss.get("rows")) for loss in losses]
        check(told == [("Note", "rank", 2)], f"the loss should be that of Note.rank in 2 records, is {told}", visit.outcome)


def a_version_that_only_its_name_makes_later_is_migrated_and_its_entity_told(folder, check):
    versions = [
        notes("V1", "title"), notes("V2", "title", "body"), notes("V3", "title", "body", more=[entity("Label", "name")])]
    scene = Scene(folder, check, versions, "V2", "V3", {"Note": NOTES, "Label": [{"name": "red"}]})
    scene.verdict("outdated", version="V3")
    visits = scene.migrates(steps=["V3 → V2"], code=2, holds=BODIES)
    for verb, visit in visits.items():
        check("Label" in visit.outcome.words, f"{verb} should tell that Label is lost", visit.outcome)


def a_version_named_old_that_sorts_last(folder, check):
    versions = [
        notes("Model", "title", "body", number("stars")), notes("Model 2", "title", "body"), notes("Model Old", "title")]
    scene = Scene(folder / "of 2", check, versions, "Model", "Model 2", {"Note": NOTES})
    scene.verdict("outdated", version="Model 2")
    scene.migrates(steps=["Model 2 → Model"], holds=BODIES)
    scene = Scene(folder / "of Old", check, versions, "Model", "Model Old", {"Note": [{"title": "first"}, {"title": "second"}]})
    scene.verdict("outdated", version="Model Old")
    scene.migrates(steps=["Model Old → Model"], holds=TITLES)


def thirty_versions_are_one_step(folder, check):
    versions = [notes(f"V{last}", "title", "body", *(number(f"n{place}") for place in range(1, last))) for last in range(1, 31)]
    scene = Scene(folder, check, versions, "V30", "V1", {"Note": NOTES})
    scene.migrates(steps=["V1 → V30"], holds=BODIES)


def what_only_a_version_between_lacks_is_kept(folder, check):
    versions = [
        notes("V1", "title", "body", more=[entity("Label", "name")]), notes("V2", "title"),
        notes("V3", "title", "body", number("stars"), more=[entity("Label", "name")])]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": NOTES, "Label": [{"name": "red"}]})
    scene.migrates(steps=["V1 → V3"], holds=BODIES | {("Label", "name"): ["red"]})


def defaults_of_a_version_between_are_not_applied(folder, check):
    versions = [
        notes("V1", "title"), notes("V2", "title", attribute("tag", default="two"), attribute("mark", default="two")),
        notes("V3", "title", "tag", attribute("mark", default="three"))]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"title": "first"}]})
    scene.migrates(steps=["V1 → V3"], holds={("Note", "title", "tag", "mark"): [("first", None, "three")]})


# Equal version hashes

TWINS = {
    "V1": lambda identifier: notes("V1", "title", "body", identifier=identifier),
    # A mistaken renaming identifier, which no version hash tells of.
    "V2": lambda identifier: notes("V2", "title", attribute("body", renamed="draft"), identifier=identifier),
    "V3": lambda identifier: notes("V3", "title", attribute("text", renamed="body"), identifier=identifier),
}
TEXTS = {("Note", "title", "text"): [("first", "one"), ("second", "two")]}


def version_identifiers_decide_between_equal_hashes(folder, check):
    versions = [make(f"{place}.0") for place, make in enumerate(TWINS.values(), 1)]
    scene = Scene(folder / "first", check, versions, "V3", "V1", {"Note": NOTES}, prepare=drop_cached_model)
    scene.verdict("outdated", version="V1")
    scene.migrates(steps=["V1 → V3"], holds=TEXTS)
    scene = Scene(folder / "second", check, versions, "V3", "V2", {"Note": NOTES}, prepare=drop_cached_model)
    scene.verdict("outdated", version="V2")


def the_cached_model_decides_between_equal_identifiers(folder, check):
    versions = [make("1.0") for make in TWINS.values()]
    scene = Scene(folder / "first", check, versions, "V3", "V1", {"Note": NOTES})
    scene.verdict("outdated", version="V1")
    scene.migrates(steps=["V1 → V3"], holds=TEXTS)
    scene = Scene(folder / "second", check, versions, "V3", "V2", {"Note": NOTES})
    scene.verdict("outdated", version="V2")


def drop_cached_model(store):
    store.execute("DROP TABLE Z_MODELCACHE")


# Renames carried on


def a_chain_of_renames_keeps_the_values(folder, check):
    versions = [notes("V1", "a", "title"), notes("V2", attribute("b", renamed="a"), "title"),
                notes("V3", attribute("c", renamed="b"), "title")]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"a": "kept"}, {"a": None}, {"a": "too"}]})
    scene.migrates(steps=["V1 → V3"], holds={("Note", "c"): ["kept", None, "too"]})


def a_chain_of_renames_of_entities_and_relationships(folder, check):
    def version(name, item, mark, item_was=None, mark_was=None):
        return Version(
            name, entity("Note", "title", relationship("items", item, mark, to_many=True)),
            entity(item, "name", relationship(mark, "Note", "items", renamed=mark_was), renamed=item_was))

    versions = [version("V1", "Alpha", "a"), version("V2", "Beta", "b", "Alpha", "a"), version("V3", "Gamma", "c", "Beta", "b")]
    rows = {"Note": [{"title": "first"}, {"title": "second"}], "Alpha": [{"name": "x", "a": 2}, {"name": "y", "a": 1}]}
    scene = Scene(folder, check, versions, "V3", "V1", rows)
    scene.migrates(steps=["V1 → V3"], holds={("Gamma", "name", "c"): [("x", 2), ("y", 1)]})


def a_rename_is_not_carried_on_to_another_type(folder, check):
    versions = [notes("V1", "a", "title"), notes("V2", attribute("b", renamed="a"), "title"),
                notes("V3", attribute("c", "Date", renamed="b"), "title")]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"a": "gone", "title": "first"}]})
    scene.migrates(steps=["V1 → V3"], code=2, holds={("Note", "c", "title"): [(None, "first")]})


def direct_inference_wins_where_the_name_between_was_taken(folder, check):
    versions = [notes("V1", "a", "b"), notes("V2", attribute("b", renamed="a")), notes("V3", attribute("c", renamed="b"))]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"a": "of a", "b": "of b"}]})
    scene.migrates(steps=["V1 → V3"], code=2, holds={("Note", "c"): ["of b"]})


def an_attribute_of_the_last_name_is_not_overwritten(folder, check):
    """V1 has a `c` already, whose identifier is not that of V3's: its values stay in `c`, or the store stays as it is."""
    versions = [notes("V1", "a", "c"), notes("V2", attribute("b", renamed="a")), notes("V3", attribute("c", renamed="b"))]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"a": "of a", "c": "of c"}]})
    if scene.run("migrate").outcome.code == 1:
        scene.stays(names=["c"])
    else:
        scene.migrates(steps=["V1 → V3"], code=2, holds={("Note", "c"): ["of c"]})


# Steps that cannot be inferred


def a_step_that_cannot_be_inferred_leaves_the_store(folder, check):
    versions = [notes("V1", "title", "moment"), notes("V2", "title", attribute("moment", "Date"))]
    scene = Scene(folder, check, versions, "V2", "V1", {"Note": [{"title": "first", "moment": "noon"}]})
    visits = scene.stays(names=["moment"])
    check(visits["open"].outcome.data.get("events", []) == [], "open did something", visits["open"].outcome)


def a_draft_leads_round_a_step_that_cannot_be_inferred(folder, check):
    # Only V2 says that bytes may be taken for what a transformer made; from there on the type stays.
    versions = [
        notes("V1", "title", attribute("image", "Binary")),
        notes("V2", "title", attribute("image", "Transformable", info=["NSMigrationAllowTypeTransformation"])),
        notes("V3", "title", attribute("image", "Transformable"), number("stars"))]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"title": "first", "image": b"bplist"}]})
    visits = scene.migrates(steps=["V1 → V2", "V2 → V3"], holds={("Note", "title", "image"): [("first", b"bplist")]})
    for plan in (visits["plan"].outcome, lazaret("plan", scene.original, "--model", scene.model)):
        is_told = "V1 → V3" in plan.out and "image" in plan.out
        check(is_told, "the plan should say why V1 → V3 is not one step", plan)
    scene.stays("--direct", names=["image"])


def a_draft_that_loses_is_told(folder, check):
    """The direct step cannot be inferred, and V2 has no place for the values: they are told as lost, or the store stays."""
    versions = [notes("V1", "title", "moment"), notes("V2", "title"), notes("V3", "title", attribute("moment", "Date"))]
    scene = Scene(folder, check, versions, "V3", "V1", {"Note": [{"title": "first", "moment": "noon"}]})
    if scene.run("migrate").outcome.code == 1:
        scene.stays(names=["moment"])
        return
    visits = scene.migrates(steps=["V1 → V2", "V2 → V3"], code=2, holds={("Note", "title", "moment"): [("first", None)]})
    for verb, visit in visits.items():
        check("moment" in visit.outcome.words, f"{verb} should tell that moment is lost", visit.outcome)


# Mappings and options


def mapped(folder):
    """Five versions with a draft among them, and a mapping from V1 to V2 that capitalizes titles."""
    numbers = [number(f"n{place}") for place in range(1, 6)]
    versions = [
        notes("V1", "title", "body", *numbers[:1]), notes("V2", "title", "body", *numbers[:2]), notes("V3", "title", *numbers[:3]),
        notes("V4", "title", "body", *numbers[:4]), notes("V5", "title", "body", *numbers)]
    mapping = folder / "Capitals.json"
    mapping.write_text(json.dumps({
        "format": 1, "source": "V1", "destination": "V2",
        "entities": [{"source": "Note", "destination": "Note", "attributes": {"title": "upper(title)"}}]}))
    return versions, mapping


CAPITALS = {("Note", "title", "body"): [("FIRST", "one"), ("SECOND", "two")]}


def a_mapping_on_the_way_is_taken(folder, check):
    versions, mapping = mapped(folder)
    scene = Scene(folder, check, versions, "V5", "V1", {"Note": NOTES})
    scene.migrates("--mapping", mapping, steps=["V1 → V2", "V2 → V5"], holds=CAPITALS)
    scene.migrates("--mapping", mapping, "--direct", steps=["V1 → V5"], holds=BODIES)


def a_version_to_go_by_is_named(folder, check):
    versions, mapping = mapped(folder)
    scene = Scene(folder, check, versions, "V5", "V1", {"Note": NOTES})
    titles = {("Note", "title", "body"): [("first", None), ("second", None)]}
    scene.migrates("--via", "V3", steps=["V1 → V3", "V3 → V5"], code=2, holds=titles)
    scene.migrates("--via", "V2", "--via", "V4", steps=["V1 → V2", "V2 → V4", "V4 → V5"], holds=BODIES)
    capitals = {("Note", "title", "body"): [("FIRST", None), ("SECOND", None)]}
    scene.migrates("--mapping", mapping, "--via", "V3", steps=["V1 → V2", "V2 → V3", "V3 → V5"], code=2, holds=capitals)
    for verb in ("plan", "migrate", "open"):
        visit = scene.run(verb, "--via", "V9")
        is_refused = visit.outcome.code in (1, 64) and "V9" in visit.outcome.words
        check(is_refused, f"{verb} should name the unknown version", visit.outcome)
        check(visit.untouched, f"{verb} changed the store's folder", visit.outcome)


def a_part_of_the_versions_is_named(folder, check):
    """A rename is carried on through the versions that are named, and through no other."""
    versions = [
        notes("V1", "a"), notes("V2", attribute("b", renamed="a")), notes("V3", "d"), notes("V4", attribute("c", renamed="b"))]
    scene = Scene(folder, check, versions, "V4", "V1", {"Note": [{"a": "kept"}]})
    scene.migrates("--versions", "V1,V2,V4", steps=["V1 → V4"], holds={("Note", "c"): ["kept"]})
    scene.migrates("--versions", "V1,V4", steps=["V1 → V4"], code=2, holds={("Note", "c"): [None]})


def a_lock_file_gives_the_order(folder, check):
    versions = [notes("Model", "title", "body"), notes("Model 2", "title", "body", number("rank"))]
    scene = Scene(folder, check, versions, "Model", "Model 2", {"Note": RANKED})
    # Names alone make no version newer.
    scene.verdict("outdated", version="Model 2")
    lock = folder / "model.lock"
    made = lazaret("model", "lint", scene.model, "--lock", lock, "--json")
    text = json.loads(lock.read_text()) if lock.is_file() else {}
    if not check("order" in text, "lint should write a lock file with an order", made):
        return
    # What the current version lacks makes the other one a draft; a user who knows better says so.
    check(text["order"] == ["Model"], f"a newer version should be taken for a draft, the order is {text['order']}", made)
    made = lazaret(
        "model", "lint", scene.model, "--lock", lock, "--write-lock", "--versions", "Model 2,Model", "--json")
    order = json.loads(lock.read_text())["order"]
    check(order == ["Model 2", "Model"], f"--versions should give the order, it is {order}", made)
    scene.verdict("outdated", version="Model 2", options=["--lock", lock])
    # By that order the current version drops the rank, as its makers wanted.
    scene.migrates("--lock", lock, steps=["Model 2 → Model"], holds=BODIES)
    lock.write_text(json.dumps(text | {"order": ["Model", "Model 2"]}))
    scene.is_newer("--lock", lock)


if __name__ == "__main__":
    Tally().run_all(scenarios(globals()), sys.argv[1:])
