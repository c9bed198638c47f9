"""Repairs of stores that others wrote: what plain SQL takes from a sound store comes back, and nothing else changes.

Each real store that carries its model is copied, something of its model is taken from the copy by SQL alone, and the copy is inspected,
repaired, inspected, repaired again and opened. What the store was before is what it is held against: every row and value with its storage
class, every table, column, index by what it covers, trigger, row of Z_PRIMARYKEY, the metadata and the history. Records that break
the model's rules are repaired on request: every row and value that is not there any more must be in the file beside the original, and that
file alone must bring them back. Beside that: a repair undone, a drifted store that is damaged as well, one that is outdated as well, eight processes
at once, and kills.

Without arguments some of it is played, the same in every run: of each store up to three megabytes one drift, in turn, and each scenario on four
stores. --all plays everything; --seed N draws other choices; other arguments are words of the names of cases and stores to play.
"""

import argparse
import collections
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
import repairs_drifts
from repairs_cases import Case
from repairs_drifts import DRIFTS, OTHER_MODEL, Sound, connect, copied
from repairs_rules import RULES, DataCase
from repairs_scenarios import SCENARIOS, Outdated, drifted_and_outdated
from tool import leave_skipped, real_material

# Larger stores are played with --all only.
USUAL_SIZE = 3_000_000
# On how many stores a scenario is played without --all.
USUAL_STORES = 4

EVERY_RULE = "every rule at once"
CASES = [*DRIFTS, *RULES, EVERY_RULE]


class Tallies:
    """How many cases of each kind passed, were refused with nothing changed, and failed."""

    def __init__(self, is_wordy):
        self.counts, self.is_wordy = collections.defaultdict(collections.Counter), is_wordy

    def note(self, kind, name, faults, is_refused=False, folder=""):
        self.counts[kind]["failed" if faults else "refused" if is_refused else "passed"] += 1
        if faults or is_refused and self.is_wordy:
            print(f"{'FAILED' if faults else 'refused'} {name}", flush=True)
        for fault in faults[:5]:
            print("  - " + fault.replace(f"{folder}/", "")[:1200], flush=True)

    def finish(self, stores):
        for kind, counts in sorted(self.counts.items()):
            refused = f", {counts['refused']} refused with nothing changed" if counts["refused"] else ""
            print(f"{kind}: {counts['passed']} passed{refused}, {counts['failed']} failed")
        failed = sum(one["failed"] for one in self.counts.values())
        print(f"{sum(one.total() for one in self.counts.values())} cases on {stores} real stores, {failed} failed")
        return 1 if failed or not self.counts else 0


def played(sound, name):
    """Plays one case; None where the store has nothing for it."""
    with tempfile.TemporaryDirectory(dir=sound.folder) as folder:
        case = (Case if name in DRIFTS else DataCase)(sound, name, folder)
        try:
            change = DRIFTS.get(name) or (list(RULES) if name == EVERY_RULE else [name])
            if not case.prepare(change):
                return None
            case.play()
        except Exception as error:
            case.faults.append(f"the case itself stopped: {type(error).__name__}: {error}")
        return case


def staged(name, sound, tallies, play):
    """Plays a scenario in a folder of its own; false where the store has nothing for it."""
    faults = []

    def check(condition, words, outcome=None):
        if not condition:
            faults.append(words + (f"\n      {outcome}" if outcome else ""))
        return condition

    with tempfile.TemporaryDirectory(dir=sound.folder) as folder:
        try:
            if not play(folder, check):
                return False
        except Exception as error:
            faults.append(f"the scenario itself stopped: {type(error).__name__}: {error}")
        tallies.note(name, f"{sound.name}: {name}", faults, folder=folder)
    return True


def stores(real, every):
    """The sound stores that carry their models."""
    for path in sorted(one for one in real.rglob("*") if one.is_file() and not one.name.endswith(("-wal", "-shm"))):
        if "damaged" in path.relative_to(real).parts or not every and path.stat().st_size > USUAL_SIZE:
            continue
        with path.open("rb") as file:
            if file.read(15) != b"SQLite format 3":
                continue
        with tempfile.TemporaryDirectory() as folder:
            database = connect(copied(path, Path(folder, "look.sqlite")))
            try:
                row = database.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()
            except sqlite3.DatabaseError:
                row = None
            finally:
                database.close()
        if row and row[0]:
            yield path


def note_other_models(paths, folder):
    """The models of the first and the last store stand for one of another store."""
    for path in paths[:1] + paths[-1:]:
        database = connect(copied(path, Path(folder, "model.sqlite")))
        OTHER_MODEL.append(zlib.decompress(database.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()[0], -15))
        database.close()
        for suffix in ("", "-wal", "-shm"):
            Path(folder, f"model.sqlite{suffix}").unlink(missing_ok=True)


def play_store(sound, names, scenes, share, turn, tallies):
    """Plays the cases and scenarios of a store; returns how many cases were tried and the scenarios that had something."""
    tried = 0
    for name in names[turn:] + names[:turn]:
        if tried == share:
            break
        case = played(sound, name)
        if case is not None:
            tried += 1
            kind = "drift" if name in DRIFTS else "rules broken by records (--data)"
            tallies.note(kind, f"{sound.name}: {name}", case.faults, case.refused, case.folder)
    return [one for one in scenes if staged(one, sound, tallies, lambda folder, check: SCENARIOS[one](sound, folder, check))]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every case on every store, many minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-v", action="store_true", help="tell what was refused")
    parser.add_argument("words", nargs="*", help="words of the names of cases, scenarios and stores")
    options = parser.parse_args(arguments)
    real = real_material()
    if real is None:
        leave_skipped("there are no real stores")
    repairs_drifts.SEED = options.seed
    tallies, begin = Tallies(options.v), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lazaret-repairs-") as folder:
        paths = list(stores(real, options.all))
        note_other_models(paths, folder)
        # Which stores a scenario is played on without --all: the first that have something for it, from a place of its own.
        left = {name: USUAL_STORES for name in SCENARIOS}
        starts = {name: len(paths) * place // max(1, len(SCENARIOS)) for place, name in enumerate(SCENARIOS)}
        for number, path in enumerate(paths):
            place = Path(folder, str(number))
            place.mkdir()
            try:
                sound = Sound(path, real, place)
            except Exception as error:
                tallies.note("drift", str(path), [str(error)])
                continue

            def is_wanted(name):
                return not options.words or any(word in name or word in sound.name for word in options.words)

            names = [one for one in CASES if is_wanted(one)]
            scenes = [one for one in SCENARIOS if is_wanted(one)
                      and (options.all or options.words or left[one] and number >= starts[one])]
            share = len(names) if options.all or options.words else 1
            had = play_store(sound, names, scenes, share, (number + options.seed - 1) % max(1, len(names)), tallies)
            for name in had:
                left[name] -= 1
            shutil.rmtree(place)
        play_outdated(folder, options, tallies)
    print(f"{time.monotonic() - begin:.0f} s, {sum(os.times()[:4]):.0f} s of the processor", file=sys.stderr)
    return tallies.finish(len(paths))


def play_outdated(folder, options, tallies):
    """Every drift on a store of the first of two versions."""
    name = "drifted and outdated"
    drifts = [one for one in DRIFTS if not options.words or any(word in one or word in name for word in options.words)]
    if not drifts:
        return
    place = Path(folder, "outdated")
    place.mkdir()
    outdated = Outdated(place)
    for drift in drifts if options.all or options.words else drifts[::2]:
        staged(name, outdated.sound, tallies, lambda folder, check: drifted_and_outdated(outdated, drift, folder, check))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
