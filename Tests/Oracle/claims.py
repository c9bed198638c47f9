"""A matrix of claims: kinds of damage × {current, outdated, newer, wrong model} × {inspect, open, open again, salvage again,
back up, prune, restore}. Verdicts, exit codes, words and numbers must agree with each other and with the truth.

Stores are generated and damaged in known ways; what is true of each is known from its pages, and from SQLite's own checks.
A claim that does not hold is one line: the cell, the command, what was said, what is so, and the name of the claim. To try it by
hand, make the stores of the cell with --make, and run the command. TMPDIR=/dev/shm spares the disk. Arguments:

  --filter WORDS   only cells whose name has all of these words; may be given several times
  --seed N         the seed of stores and damage (1)
  --all            the whole matrix: all kinds for all relations, more seeds and page sizes, a full disk, and stores of the
                   bench and real ones where they are
  --json           the results as JSON on standard output
  --list           only print the names of the cells
  --keep DIR       leave the folders of the cells in DIR
  --make DIR       only make the stores of the cells, before any command, in DIR
"""

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from claims_damage import KINDS, NotHere
import claims_environment  # Adds its cells to those elsewhere.
from claims_elsewhere import ELSEWHERE
from claims_sequence import Sequence
from claims_stores import Factory, Models, bench_store, write
from tool import todays

# What a sound store of a relation is, and what opening it does.
SOUND = {
    ("core-data", "current"): ({"compatible"}, {"open"}), ("core-data", "outdated"): ({"outdated"}, {"migrate"}),
    ("core-data", "newer"): ({"unavailable"}, {"stay"}),
    ("core-data", "wrong model"): ({"incompatible", "none"}, {"refuse", "replace"}),
    ("plain", "current"): ({"compatible"}, {"open"}), ("plain", "wrong model"): ({"incompatible", "none"}, {"refuse", "replace"}),
    ("plain", "lacking"): ({"compatible", "outdated", "repairable"}, {"open"})}
VERSIONS = {"current": "V2", "outdated": "V1", "newer": "V3", "wrong model": "V2"}
# Nothing but an index, or the list of free pages, is wrong: to mend it is as good as to salvage it.
MENDABLE = ("index page zeroed", "free pages garbled", "free page count and trunk wrong")

FEW = {
    "outdated": [
        "none", "log kept", "one leaf zeroed", "every twelfth page zeroed", "first page zeroed", "header zeroed",
        "index page zeroed", "column dropped"],
    "newer": ["none", "log kept", "one leaf zeroed", "header zeroed"],
    "wrong model": ["none", "log kept", "one leaf zeroed"],
    "plain current": [
        "none", "log kept", "hot journal", "one leaf zeroed", "every twelfth page zeroed", "tail cut off", "first page zeroed",
        "header zeroed", "header's encoding UTF-16", "index page zeroed", "overflow chain cut", "table missing",
        "log of another store"],
    "plain lacking": ["none"], "plain wrong model": ["none"],
    "known": ["one leaf zeroed", "tail cut off", "first page zeroed", "header zeroed"]}


# Kinds that are much like others, and are left out of the bounded part.
ALIKE = (
    "leaf of random bytes", "bit flipped in a leaf's cell count", "header overwritten by text", "main file blank, journal left",
    "header's page size quartered")
# In the bounded part, kinds of the current version that are backed up, pruned and restored as well.
BACKED_UP = ("none", "log kept", "hot journal", "one leaf zeroed", "first page zeroed", "header zeroed", "index page zeroed")


class Cell:
    """One place of the matrix: a name, a folder of its own, and the claims that were checked there."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.checked, self.failures, self.skipped = 0, [], None
        self.is_wrong_model = "wrong model" in name

    def claim(self, rule, holds, told, said, so):
        """Counts a claim; one that does not hold is kept with the command, what it said, and what is so."""
        self.checked += 1
        if not holds:
            failure = {"rule": rule, "command": getattr(told, "shown", told), "said": flat(said), "so": flat(so)}
            if failure not in self.failures:
                self.failures.append(failure)
        return bool(holds)

    def skip(self, why):
        self.skipped = why


def flat(text):
    return " ".join(str(text).split())[:300]


class Matrix:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.models = Models(folder / "models")
        self.factories = {}

    def factory(self, seed, page_size=4096, articles=300):
        key = (seed, page_size, articles)
        if key not in self.factories:
            place = self.folder / f"stores {seed} {page_size} {articles}"
            self.factories[key] = Factory(place, self.models, seed, articles, page_size)
        return self.factories[key]

    def cells(self):
        """The names of the cells, each with what plays it."""
        everything, seed = self.options.all, self.options.seed
        for relation in VERSIONS:
            for name, kind in KINDS.items():
                wanted = name not in ALIKE if relation == "current" else name in FEW[relation]
                if "core-data" in kind.of and (everything or wanted):
                    yield f"core-data {relation} · {name}", self.sequence("core-data", relation, kind, seed)
        for relation in ("current", "lacking", "wrong model"):
            for name, kind in KINDS.items():
                wanted = (relation == "current" and everything) or name in FEW[f"plain {relation}"]
                if "plain" in kind.of and wanted:
                    yield f"plain {relation} · {name}", self.sequence("plain", relation, kind, seed)
        for name, kind in KINDS.items():
            if kind.state == "rest" and "core-data" in kind.of and (everything or name in FEW["known"]) and name != "none":
                yield f"core-data current, known before · {name}", self.sequence("core-data", "current", kind, seed, True)
        for name, function in ELSEWHERE.items():
            if everything or not getattr(function, "is_long", False):
                yield name, function
        if everything:
            for more in (seed + 1, seed + 2):
                for family in ("core-data", "plain"):
                    for name, kind in KINDS.items():
                        if family in kind.of:
                            yield f"{family} current, seed {more} · {name}", self.sequence(family, "current", kind, more)
            for page_size in (1024, 16384):
                for name, kind in KINDS.items():
                    if "core-data" in kind.of and kind.state == "rest":
                        play = self.sequence("core-data", "current", kind, seed, page_size=page_size)
                        yield f"core-data current, pages of {page_size} · {name}", play
            yield from self.bench_cells(seed)

    def bench_cells(self, seed):
        """Stores that another generator made, with hashes and a model cache of its own."""
        made = bench_store(self.folder / "bench", seed)
        if not made:
            yield "bench", lambda cell, matrix: cell.skip("there is no bench")
            return
        sound, model, history = made
        for relation, expected_model in (("current", model), ("outdated", history)):
            for name, kind in KINDS.items():
                if kind.state == "rest" and "core-data" in kind.of:
                    play = self.sequence("core-data", relation, kind, seed, made=(sound, expected_model))
                    yield f"bench {relation} · {name}", play

    def sequence(self, family, relation, kind, seed, knows_before=False, page_size=4096, made=None):
        """What plays the sequence at a store with a kind of damage; `made` is a sound store and its model."""
        def play(cell, matrix):
            version = "plain" if family == "plain" else VERSIONS[relation]
            model, other = self.models_of(family, relation)
            sound, model = made or (self.factory(seed, page_size).make(version, kind.state), model)
            damaged = kind.damage(sound, random.Random(f"{seed} {kind.name}"))
            if self.options.make:
                write(cell.folder / "Stores/App.sqlite", damaged.files)
                print(f"{cell.name}: {cell.folder}/Stores/App.sqlite --model {model}: {damaged.why}")
                return
            verdicts, should = expected(family, relation, kind.name, damaged)
            backs_up = self.options.all or knows_before or relation != "current" or kind.name in BACKED_UP
            Sequence(cell, damaged, model, other, verdicts, should, knows_before, backs_up).play()
        return play

    def models_of(self, family, relation):
        """The model of a relation, and one that fits no entity."""
        models = self.models
        if family == "plain":
            return {"current": models.schema, "lacking": models.later, "wrong model": models.app}[relation], models.other
        return models.other if relation == "wrong model" else models.app, models.other


def expected(family, relation, name, damaged):
    """The verdicts that are right, and what opening should do."""
    verdicts, should = SOUND[family, relation]
    if damaged.is_drifted:
        if family == "plain":
            return SOUND["plain", "lacking"] if relation != "wrong model" else (verdicts, should)
        more = {"repairable", "damaged"}
        return (more if relation == "current" else verdicts | more), should | {"open", "replace", "migrate"}
    if damaged.is_damaged is None:
        return verdicts | {"damaged"}, should | {"replace"}
    if not damaged.is_damaged:
        return verdicts, should
    verdicts, should = {"damaged"}, {"replace"}
    if relation.startswith("newer"):
        verdicts, should = verdicts | {"unavailable"}, should | {"stay"}
    if name in MENDABLE:
        verdicts, should = verdicts | {"repairable"}, should | {"open"}
    return verdicts, should


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="play every Nth cell alone")
    for flag in ("--all", "--json", "--list"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--make", type=Path)
    options = parser.parse_args()
    kept = options.keep or options.make
    folder = Path(kept.absolute() if kept else tempfile.mkdtemp(prefix="lazaret-claims-"))
    folder.mkdir(parents=True, exist_ok=True)
    if kept and any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    # Some cells run the tool as another user.
    folder.chmod(0o755)
    try:
        sys.exit(play(options, folder, bool(kept)))
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def play(options, folder, is_kept):
    started, matrix, done = time.monotonic(), Matrix(folder, options), []
    chosen = [cell for cell in matrix.cells() if all(words in cell[0] for words in options.filter)]
    for name, function in todays(chosen[:: options.every]):
        if options.list:
            print(name)
            continue
        if options.make and name in ELSEWHERE:
            print(f"{name}: play it with --keep")
            continue
        cell = Cell(name, folder / re.sub(r"[^a-z0-9]+", "-", name.lower()))
        cell.folder.mkdir()
        try:
            function(cell, matrix)
        except NotHere as reason:
            cell.skip(str(reason))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            cell.claim(
                "oracle-stopped", False, "the oracle itself", f"{type(error).__name__}: {error} ({Path(place.filename).name} "
                f"{place.lineno})", "it goes on to the end of the cell")
        done.append(cell)
        if not options.json:
            show(cell)
        if not is_kept:
            shutil.rmtree(cell.folder, ignore_errors=True)
    if options.list or options.make:
        return 0
    return finish(options, done, time.monotonic() - started)


def show(cell):
    if cell.skipped:
        print(f"skipped {cell.name}: {cell.skipped}")
    for one in cell.failures:
        print(f"FAILED {cell.name} | {one['command']} | said: {one['said']} | so: {one['so']} [{one['rule']}]")
    sys.stdout.flush()


def finish(options, cells, seconds):
    failed = [cell for cell in cells if cell.failures]
    counts = {
        "cells": len(cells), "passed": sum(not cell.failures and not cell.skipped for cell in cells), "failed": len(failed),
        "skipped": sum(bool(cell.skipped) for cell in cells), "claims": sum(cell.checked for cell in cells),
        "failedClaims": sum(len(cell.failures) for cell in cells), "seconds": round(seconds, 1), "seed": options.seed}
    if options.json:
        print(json.dumps({
            **counts, "results": [
                {"cell": cell.name, "claims": cell.checked, "failures": cell.failures, "skipped": cell.skipped}
                for cell in cells]}, indent=1, ensure_ascii=False))
    else:
        print(
            f"{counts['passed']} cells passed, {counts['failed']} failed, {counts['skipped']} skipped; "
            f"{counts['failedClaims']} of {counts['claims']} claims do not hold ({counts['seconds']} s, seed {options.seed})")
    return 1 if failed or not counts["claims"] else 0


if __name__ == "__main__":
    main()
