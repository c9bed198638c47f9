"""Migrates generated stores of every version of every model at hand to the current version, directly and version by version.

What source and target share (the same entity, property and type) must come through the direct way as it was, and what walking
through all versions keeps under another name must be kept directly too: a rename carried on. Every exception is listed.

  composed_direct.py [--limit PAIRS | --all] [--seed NUMBER] [WORD OF A MODEL'S PATH …]
"""

import argparse
import itertools
import json
import plistlib
import random
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from filling import Holding, Shape, demanding, fill, is_attribute
from models import empty_store
from tool import lazaret, leave_skipped, natural, real_material, todays


class Bundle:
    """A model with several versions, oldest first by their names."""

    def __init__(self, path, shown):
        self.path, self.kind = path, "xcdatamodel" if path.suffix == ".xcdatamodeld" else "mom"
        versions = sorted(shown["versions"], key=lambda one: natural(one["name"]))
        self.shapes = {version["name"]: Shape(version) for version in versions}
        self.names = list(self.shapes)
        self.current = next(one["name"] for one in versions if one["current"])
        self.hashes = {one["name"]: {each["name"]: each["hash"] for each in one["entities"]} for one in versions}
        self.identity = json.dumps(shown, sort_keys=True)

    def older(self):
        return [name for name in self.names if self.hashes[name] != self.hashes[self.current]]

    def walk(self, name):
        """The versions from one to the current one, by their names in either direction."""
        first, last = self.names.index(name), self.names.index(self.current)
        return self.names[first : last + 1] if first < last else self.names[last : first + 1][::-1]

    def part(self, folder, first, last):
        """A model of two versions, the last of which is current."""
        target = folder / f"Part.{self.path.suffix[1:]}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for name in (first, last):
            source = self.path / f"{name}.{self.kind}"
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target / source.name)
        if self.kind == "xcdatamodel":
            (target / ".xccurrentversion").write_bytes(plistlib.dumps({"_XCCurrentVersionName": f"{last}.xcdatamodel"}))
        else:
            info = plistlib.loads((self.path / "VersionInfo.plist").read_bytes())
            hashes = {name: info["NSManagedObjectModel_VersionHashes"][name] for name in (first, last)}
            (target / "VersionInfo.plist").write_bytes(plistlib.dumps({
                "NSManagedObjectModel_CurrentVersionName": last, "NSManagedObjectModel_VersionHashes": hashes}))
        return target


def bundles(material, words):
    found, seen = [], set()
    for path in sorted(itertools.chain(material.glob("models/**/*.xcdatamodeld"), material.glob("models/**/*.momd"))):
        shown = lazaret("model", "show", path, "--all", "--json").data
        if len(shown.get("versions", [])) < 2 or words and not any(word in str(path) for word in words):
            continue
        bundle = Bundle(path, shown)
        if bundle.identity not in seen and bundle.older():
            seen.add(bundle.identity)
            found.append(bundle)
    return found


def migrate(store, model, to, output, folder, *options):
    """Migrates a store into another file; returns the error's code and words, or None where it went well."""
    done = lazaret(
        "migrate", store, "--model", model, "--to", to, "--output", output, "--home", folder / "home", "--json", *options)
    if done.code in (0, 2):
        if not output.exists():
            shutil.copy(store, output)
        return None
    return f"{done.failure.get('code')}: {done.failure.get('detail', done.error.strip())[:200]}"


def walk(bundle, start, store, folder):
    """Migrates a store one version at a time; returns the last file, or the reason why there is none.

    A step that is refused because it would lose something is taken all the same.
    """
    steps = bundle.walk(start)
    for number, (first, last) in enumerate(zip(steps, steps[1:])):
        output, part = folder / f"walked {number}.sqlite", bundle.part(folder, first, last)
        refused = migrate(store, part, last, output, folder)
        if refused and migrate(store, part, last, output, folder, "--on-migration-loss", "migrate"):
            return None, f"{first} → {last}: {refused}"
        store = output
    return store, None


class Pair:
    """A store of one version, migrated to the current one on both ways."""

    def __init__(self, bundle, start):
        self.bundle, self.start = bundle, start
        self.faults, self.notes = [], []
        self.source_shape, self.target_shape = bundle.shapes[start], bundle.shapes[bundle.current]

    def run(self, seed, folder):
        bundle, start = self.bundle, self.start
        alone = bundle.part(folder, start, start) if bundle.kind == "mom" else bundle.path / f"{start}.xcdatamodel"
        path = folder / "store/A.sqlite"
        empty_store(alone, path)
        chance = random.Random(f"{seed} {bundle.path.name} {start}")
        left_out = demanding(self.source_shape, self.target_shape)
        fill(path, self.source_shape, chance, without=left_out)
        if left_out:
            self.notes.append(f"without records, since they could not be migrated: {', '.join(sorted(left_out))}")
        direct = folder / "direct.sqlite"
        refused = migrate(path, bundle.path, bundle.current, direct, folder)
        last, stopped = walk(bundle, start, path, folder)
        self.source = Holding(path, self.source_shape)
        self.direct = None if refused else Holding(direct, self.target_shape)
        self.walked = Holding(last, self.target_shape) if last else None
        self.compare(refused, stopped)

    def compare(self, refused, stopped):
        if stopped:
            self.notes.append(f"walking stops at {stopped}")
        if not self.direct:
            kept = self.walked and not any(self.changed(self.walked))
            # A version between may have filled in a value, which the direct way does not.
            is_fault = kept and "migration-data-violation" not in refused
            words = f"not migrated: {refused}" + (" (walking keeps everything)" if kept else "")
            (self.faults if is_fault else self.notes).append(words)
            return
        self.faults += self.changed(self.direct)
        if self.walked:
            walked = list(self.changed(self.walked))
            if walked:
                self.notes.append(f"walking loses {len(walked)} properties: {'; '.join(walked[:3])}")
            self.compare_renames()

    def identifier(self, shape, name, item=None):
        told = shape.all(name)[item][1] if item else shape.entities[name]
        return told.get("renamingIdentifier") or item or name

    def is_other(self, name, item=None):
        """Whether renaming identifiers say that what has one name on both sides is not the same."""
        return self.identifier(self.source_shape, name, item) != self.identifier(self.target_shape, name, item)

    def only_one_may_lead(self, name, item):
        """Whether the target's inverse of a to-one relationship is one to one as well."""
        told = self.target_shape.all(name)[item][1]
        return not is_attribute(told) and told.get("inverse") in self.target_shape.all(told["destination"])

    def shared(self):
        """The entities and properties that source and target have under the same name, of the same type."""
        for name, item in self.source.values:
            if name not in self.target_shape.entities or self.target_shape.entities[name]["abstract"]:
                continue
            before, after = self.source_shape.all(name)[item][1], self.target_shape.all(name).get(item, (None, None))[1]
            if after and is_attribute(before) == is_attribute(after):
                kind = "type" if is_attribute(before) else "destination"
                if before[kind] == after[kind]:
                    yield name, item

    def changed(self, holding):
        """What source and target share, and a migrated store does not hold as the source does."""
        for name, item in self.shared():
            before, after = self.source.values[name, item], holding.values.get((name, item), {})
            different = sum(after.get(key) != value for key, value in before.items())
            if self.only_one_may_lead(name, item):
                # Of several records that lead to one, one is kept.
                kept = {after.get(key) for key in before} - {None}
                different = sum(value not in (after.get(key), None) and value not in kept for key, value in before.items())
            if not different:
                continue
            text = f"{name}.{item} ({different} of {len(before)} values)"
            if holding is self.direct and (self.is_other(name) or self.is_other(name, item)):
                self.notes.append(f"another renaming identifier: {text}")
            else:
                yield text
        for ends, pairs in self.source.pairs.items():
            if ends in holding.pairs and holding.pairs[ends] != pairs:
                missing = len(set(pairs) - set(holding.pairs[ends]))
                yield f"{ends[0][0]} and {ends[1][0]} ({missing} of {len(pairs)} pairs are missing)"

    def compare_renames(self):
        """What walking carries on under another name."""
        shared = set(self.shared())
        for place, walked in self.walked.values.items():
            told = self.target_shape.all(place[0])[place[1]][1]
            if place in shared or not is_attribute(told) or told["type"] == "Boolean" or not any(walked.values()):
                continue
            origin = next((one for one, values in self.source.values.items() if values == walked), None)
            if not origin:
                continue
            words = f"{'.'.join(origin)} → {'.'.join(place)}"
            type_before = self.source_shape.all(origin[0])[origin[1]][1]["type"]
            is_taken = origin in shared or place in self.source.values
            if self.direct.values.get(place) == walked:
                if self.identifier(self.source_shape, *origin) != self.identifier(self.target_shape, *place):
                    self.notes.append(f"a rename carried on: {words}")
            elif type_before != told["type"] or is_taken:
                self.notes.append(f"a rename that only walking carries on: {words} ({type_before} → {told['type']})")
            else:
                self.faults.append(f"a rename is not carried on: {words}")


def chosen(found, limit, seed):
    """Pairs of a model and a version: some of each model in turn, in an order that the seed gives."""
    chance = random.Random(seed)
    turns = [[(bundle, name) for name in chance.sample(bundle.older(), len(bundle.older()))] for bundle in found]
    mixed = [pair for turn in itertools.zip_longest(*turns) for pair in turn if pair]
    return mixed[:limit] if limit else mixed


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--limit", type=int, default=45)
    options.add_argument("--all", action="store_true")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("words", nargs="*")
    options = options.parse_args()
    material = real_material()
    if not material:
        leave_skipped("the real models are missing")
    found = bundles(material, options.words)
    passed, failed, exceptions = 0, 0, 0
    for bundle, start in todays(chosen(found, None if options.all else options.limit, options.seed)):
        with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
            pair = Pair(bundle, start)
            try:
                pair.run(options.seed, Path(folder))
            except Exception:
                pair.faults.append("the comparison itself stopped:\n" + traceback.format_exc())
        name = f"{bundle.path.relative_to(material)}: {start} → {bundle.current}"
        exceptions += len(pair.notes)
        if pair.faults:
            failed += 1
            print(f"FAILED {name}\n" + "\n".join(f"  - {fault}" for fault in pair.faults[:8]))
        else:
            passed += 1
        if pair.notes:
            print(f"exceptions of {name}\n" + "\n".join(f"  {note}" for note in pair.notes[:8]))
    print(f"{passed} passed, {failed} failed, {exceptions} exceptions; {len(found)} models, seed {options.seed}")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
