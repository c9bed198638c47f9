"""Migrates the stores of an app from version to version, and compares each with what Core Data made of it, value by value.

Each store was migrated by Core Data from the one before. Not compared: `Z_OPT`, which counts saves; an empty column where
Core Data wrote the default of a new attribute for a record of a sibling entity, which has no such attribute; and values that no
migration gives, because the app wrote them later, which are noted. After that each store is migrated to the current version of the
model. Arguments: versions; only pairs and stores of those are tried.
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from source import read_versions
from store import Store
from tool import contents, lazaret, leave_skipped, natural, real_material, todays

# Fixtures of other data than the store before; Core Data did not migrate one to the other.
OTHER_DATA = {("2.53.0", "2.54.0"), ("2.54.0", "2.57.0")}
# The losses that a model plans: what its versions drop.
REMOVALS = ("removed-attribute", "removed-relationship")


class Fleet:
    """The stores of the app in the order of their versions, and the versions of its model."""

    def __init__(self, material):
        self.bundle = material / "models/wire-zmessaging/zmessaging.xcdatamodeld"
        folder = material / "stores/wire-zmessaging"
        if not self.bundle.is_dir() or not folder.is_dir():
            leave_skipped(f"there is no wire-zmessaging in {material}")
        self.versions, self.current = read_versions(self.bundle)
        paths = [path for path in folder.glob("store2-*.wiredatabase") if "hotfix" not in path.name]
        self.stores = [(path, self.version(path)) for path in sorted(paths, key=lambda path: natural(path.name))]

    def version(self, path):
        """The name of the version whose identifier a store notes, or None where the model has none of that name."""
        with Store(path) as store:
            identifiers = store.metadata["NSStoreModelVersionIdentifiers"]
        name = "zmessaging" + (identifiers or [""])[0]
        return name if name in self.versions else None

    def pairs(self):
        stores = [(path, name) for path, name in self.stores if natural(path.name) >= natural("store2-8")]
        return list(zip(stores, stores[1:]))


def short(name):
    return (name or "unknown").removeprefix("zmessaging")


def copied(path, folder):
    copy = folder / "a.sqlite"
    copy.write_bytes(path.read_bytes())
    return copy


def lost_records(before, after):
    """What entities that both stores have lack of their records afterwards."""
    old, new = before.keys(), after.keys()
    return [
        f"{name} lost {len(old[name] - new[name])} of {len(old[name])} records" for name in sorted(old.keys() & new.keys())
        if old[name] - new[name]]


class Comparison:
    """One table of records: ours, Core Data's, and the one that both were made from."""

    def __init__(self, table, ours, apples, before, older, newer):
        self.table, self.ours, self.apples, self.before, self.older, self.newer = table, ours, apples, before, older, newer
        self.names = {number: name for name, (number, _) in apples.entities().items()}
        self.old_columns = before.columns(table) if table in before.tables else []
        self.notes = []

    def property(self, model, number, column):
        """What a column holds for records of an entity, or None where the entity has nothing there."""
        name = self.names[number]
        if name not in model.entities:
            return None
        base = re.sub(r"^Z(_FOK_|\d+_?)?", "", column)
        found = {one.upper(): place for one, place in model.properties(name).items()}
        return found.get(base) or found.get(re.sub(r"\d+$", "", base))

    def is_siblings(self, number, value, column):
        """Whether Core Data gave a record the default of an attribute that only a sibling entity has."""
        return value is None and self.property(self.newer, number, column) is None

    def is_the_apps(self, key, number, value, expected, column):
        """Whether no migration gives the value that Core Data's store has: it is neither the one before nor the default.

        Then the app wrote it after the migration. Asked only of attributes that no renaming identifier leads to.
        """
        after = self.property(self.newer, number, column)
        if not after or not after.is_attribute:
            return False
        if column in self.old_columns:
            old = self.property(self.older, number, column)
            source = self.before.column(self.table, column).get(key)
            given = (source, after.default)
            return old is not None and old.type == after.type and value in given and expected not in given
        return after.identifier == after.name and value == after.default and expected != after.default

    def faults(self):
        mine, theirs = self.ours.column(self.table, "Z_ENT"), self.apples.column(self.table, "Z_ENT")
        if mine.keys() != theirs.keys():
            missing, extra = len(theirs.keys() - mine.keys()), len(mine.keys() - theirs.keys())
            return [f"{self.table}: {missing} records are missing, {extra} too many"]
        result = []
        for column in sorted(set(self.apples.columns(self.table)) - {"Z_PK", "Z_OPT"}):
            own, expected = self.ours.column(self.table, column), self.apples.column(self.table, column)
            different = [
                key for key, value in own.items()
                if value != expected[key] and not self.is_siblings(theirs[key], value, column)]
            apps = {key for key in different if self.is_the_apps(key, theirs[key], own[key], expected[key], column)}
            if apps:
                self.notes.append(f"{self.table}.{column}: {len(apps)} values that the app wrote later")
            different = [key for key in different if key not in apps]
            if different:
                empty, there = (sum(values[key] is None for key in different) for values in (own, expected))
                result.append(
                    f"{self.table}.{column}: {len(different)} of {len(own)} values differ "
                    f"({empty} empty here, {there} empty there)")
        return result


def compare(name, ours, apples, before, older, newer):
    """Where two stores differ, in words without values."""
    faults = []
    if ours.tables != apples.tables:
        faults.append(f"tables: {', '.join(sorted(ours.tables ^ apples.tables))}")
    for key in ("NSStoreModelVersionHashes", "NSStoreModelVersionIdentifiers"):
        if ours.metadata[key] != apples.metadata[key]:
            faults.append(f"metadata: {key}")
    for table in sorted(ours.tables & apples.tables):
        columns = sorted(apples.columns(table))
        if sorted(ours.columns(table)) != columns:
            faults.append(f"{table}: columns {', '.join(sorted(set(ours.columns(table)) ^ set(columns)))}")
        elif "Z_PK" in columns:
            comparison = Comparison(table, ours, apples, before, older, newer)
            faults += comparison.faults()
            for note in comparison.notes:
                print(f"note {name}: {note}")
        else:
            mine, theirs = set(ours.rows(table, columns)), set(apples.rows(table, columns))
            if mine != theirs or len(ours.rows(table, columns)) != len(apples.rows(table, columns)):
                faults.append(f"{table}: {len(theirs - mine)} rows are missing, {len(mine - theirs)} too many")
    return faults


def migrated(fleet, path, folder, *options):
    """Migrates a copy of a store into another file; returns what the tool did, and the file."""
    output = folder / "o.sqlite"
    made = lazaret(
        "migrate", copied(path, folder), "--model", fleet.bundle, "--output", output, "--home", folder / "home", "--json", *options)
    return made, output


def refusal(made):
    return f"exit code {made.code}: {made.failure.get('code')}: {made.failure.get('detail', made.error.strip())[:300]}"


def try_pair(fleet, older, newer):
    """The faults of one migration, or None where there is nothing to compare."""
    (path, name), (apple_path, apple_name) = older, newer
    if not name or not apple_name or (short(name), short(apple_name)) in OTHER_DATA:
        return None
    with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
        made, output = migrated(fleet, path, Path(folder), "--to", apple_name)
        if made.code not in (0, 2) or not output.exists():
            return [refusal(made)]
        with Store(output) as ours, Store(apple_path) as apples, Store(path) as before:
            older, newer = fleet.versions[name], fleet.versions[apple_name]
            label = f"{short(name)} → {short(apple_name)}"
            return compare(label, ours, apples, before, older, newer) + lost_records(before, ours)


def try_current(fleet, path, name):
    """Migrates a store to the current version in one inferred step."""
    with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
        folder = Path(folder)
        plan = lazaret("plan", copied(path, folder), "--model", fleet.bundle, "--json")
        steps = plan.data.get("steps", [])
        kinds = [step.get("mapping", {}).get("kind") for step in steps]
        made, output = migrated(fleet, path, folder)
        if made.code not in (0, 2) or not output.exists():
            return [refusal(made)]
        faults = []
        if name != fleet.current and kinds != ["inferred"]:
            faults.append(f"the plan should be one inferred step, is {len(steps)}")
        done = made.data.get("steps", [])
        if name != fleet.current and len(done) != 1:
            faults.append(f"it should be migrated in one step, goes by {len(done)}")
        losses = [loss for step in done for loss in step.get("losses", [])]
        # Properties that the model's versions drop are no surprise: their removal is told, and ends with 0.
        are_removals = all(loss["kind"] in REMOVALS for loss in losses)
        if made.code == 2 and not losses or made.code == 0 and not are_removals:
            faults.append(f"the exit code is {made.code}, with {len(losses)} losses")
        with Store(path) as before, Store(output) as after:
            return faults + lost_records(before, after)


def try_later(fleet, path):
    """A store of a version whose name comes later and that has what the current one lacks is migrated, and its loss is told."""
    faults = []
    with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
        folder = Path(folder)
        place = folder / "stores"
        place.mkdir()
        copy = copied(path, place)
        before = contents(place)
        for verb, code in (("inspect", 0), ("plan", 2)):
            done = lazaret(verb, copy, "--model", fleet.bundle, "--json")
            if done.code != code:
                faults.append(f"{verb} should exit with {code}, exits with {done.code}")
            if contents(place) != before:
                faults.append(f"{verb} changed the store's folder")
                return faults
        made, output = migrated(fleet, path, folder)
        if made.code != 2 or not output.exists():
            faults.append(f"it should be migrated with a loss; {refusal(made)}")
        else:
            with Store(path) as old, Store(output) as new:
                faults += lost_records(old, new)
    return faults


def main():
    wanted = set(sys.argv[1:])
    material = real_material()
    if not material:
        leave_skipped("the real stores are missing")
    fleet = Fleet(material)
    failed, passed, skipped = 0, 0, 0

    def count(name, faults):
        nonlocal failed, passed, skipped
        if faults is None:
            skipped += 1
            print(f"skipped {name}")
        elif faults:
            failed += 1
            print(f"FAILED {name}\n" + "\n".join(f"  - {fault}" for fault in faults[:12]))
        else:
            passed += 1

    for older, newer in todays(fleet.pairs()):
        if not wanted or {short(older[1]), short(newer[1])} & wanted:
            count(f"{short(older[1])} → {short(newer[1])} as Core Data", try_pair(fleet, older, newer))
    current = fleet.versions[fleet.current]
    for path, name in todays(fleet.stores):
        if wanted and short(name) not in wanted:
            continue
        lacking = current.lacks(fleet.versions[name]) if name else []
        is_after = name and natural(name) > natural(fleet.current)
        if name is None:
            count(f"{path.name} → {short(fleet.current)}", None)
        elif is_after and lacking:
            count(f"{short(name)}, later than {short(fleet.current)} by {', '.join(lacking[:3])}", try_later(fleet, path))
        else:
            count(f"{short(name)} → {short(fleet.current)}", try_current(fleet, path, name))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
