"""Runs the built tool, looks at files around it, and counts the scenarios that passed."""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

LAZARET = os.environ.get("LAZARET") or sys.exit("Set LAZARET to the built tool, or run Scripts/oracle-test.")
SKIPPED = 77


def real_material():
    """The folder of real stores and models, or None where it is missing."""
    root = Path(__file__).resolve().parents[3]
    folder = Path(os.environ.get("LAZARET_REAL") or root.parent / "shared" / "real")
    return folder if folder.is_dir() else None


def leave_skipped(words):
    print(f"skipped: {words}")
    sys.exit(SKIPPED)


def todays(items):
    """All items; with LAZARET_EVERY=N, the short form, each Nth of them, beginning at another one every day."""
    items = list(items)
    every = min(int(os.environ.get("LAZARET_EVERY") or 1), len(items) or 1)
    return items[datetime.date.today().toordinal() % every :: every]


class Outcome:
    """What one command of the tool did."""

    def __init__(self, arguments, code, out, error):
        self.arguments, self.code, self.out, self.error = arguments, code, out, error

    @property
    def data(self):
        """The JSON on standard output; an empty object where there is none."""
        try:
            return json.loads(self.out)
        except ValueError:
            return {}

    @property
    def failure(self):
        """The JSON error on standard error; an empty object where there is none."""
        try:
            return json.loads(self.error.strip().splitlines()[-1])["error"]
        except (ValueError, IndexError, KeyError, TypeError):
            return {}

    @property
    def words(self):
        """Everything it printed."""
        return self.out + self.error

    def has_restored(self, store):
        """Whether a restore put everything back. A store without a folder of large values had lost what it refers to before,
        which is told again."""
        lacked = not (store.parent / f".{store.stem}_SUPPORT").exists()
        return self.code == 0 or self.code == 2 and lacked and "large value" in self.out

    def __str__(self):
        first = self.error.strip().splitlines()[:3]
        return "\n    ".join([f"lazaret {' '.join(self.arguments)}", f"exit code {self.code}", *first])


def lazaret(*arguments):
    arguments = [str(one) for one in arguments]
    done = subprocess.run([LAZARET, *arguments], capture_output=True, text=True, errors="replace", timeout=600)
    return Outcome(arguments, done.returncode, done.stdout, done.stderr)


def contents(folder):
    """Every file below a folder with its inode and the SHA-256 of its bytes."""
    result = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink() or path.is_dir():
            result[name] = "folder" if path.is_dir() else os.readlink(path)
        else:
            result[name] = (path.stat().st_ino, hashlib.sha256(path.read_bytes()).hexdigest())
    return result


def natural(text):
    """A key that sorts numbers in a name by their value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(text))]


def scenarios(names):
    """The functions of a file that take a folder and a check, in their order; `names` are its globals."""
    functions = [one for one in names.values() if hasattr(one, "__code__")]
    return [one for one in functions if one.__code__.co_varnames[: one.__code__.co_argcount] == ("folder", "check")]


class Tally:
    """Runs scenarios, each in an empty folder of its own, and counts those that passed."""

    def __init__(self):
        self.passed, self.failed = 0, 0

    def run(self, name, scenario):
        """A scenario takes the folder and a function `check(condition, words, outcome)`; every check that fails is printed."""
        faults = []

        def check(condition, words, outcome=None):
            if not condition:
                faults.append(words + (f"\n    {outcome}" if outcome else ""))
            return condition

        with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
            try:
                scenario(Path(folder), check)
            except Exception:
                faults.append("the scenario itself stopped:\n    " + traceback.format_exc().replace("\n", "\n    "))
        if not faults:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED {name}")
        for fault in faults[:6]:
            print("  - " + "\n".join(line[:500] for line in fault.replace(f"{folder}/", "").splitlines()))
        if len(faults) > 6:
            print(f"  - and {len(faults) - 6} more")

    def run_all(self, scenarios, wanted):
        for scenario in todays(scenarios):
            name = scenario.__name__.replace("_", " ")
            if not wanted or any(word in name for word in wanted):
                self.run(name, scenario)
        self.finish()

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)
