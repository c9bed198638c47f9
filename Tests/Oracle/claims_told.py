"""Runs the tool, and reads what it says in its JSON and its texts. A part of claims.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import LAZARET, Outcome

TIMEOUT = 120
EXITS = {
    "compatible": {0}, "outdated": {0}, "incompatible": {0, 2}, "missing": {0}, "repairable": {0, 2}, "damaged": {2},
    "unavailable": {3}}
SCORE = re.compile(r"\bscore\b|\b\d+ of 100\b", re.IGNORECASE)
HEADLINE = re.compile(r"([\d,]+) of (about |at least )?([\d,]+) (?:record|row)s? \((?:share unknown|(?:at most )?(\d+)(?:\.\d)? %)\)")
# Of records that all came out while something else of the store has not, no share is told.
HEADLINE_WITHOUT_SHARE = re.compile(r"Recovered ([\d,]+) records?[.,]")
ALL_RECOVERED = re.compile(r"(?i)\b(all (of your data|records|rows) (was|were) recovered|everything was recovered)")
UNDO = re.compile(r"lazaret quarantine release [^\n]+")


class Told(Outcome):
    """What one command did; `shown` is the command line without the folders that differ from run to run."""

    def __init__(self, arguments, code, out, error, folder):
        super().__init__(arguments, code, out, error)
        words = " ".join(["lazaret", *arguments]).replace(f"{folder}/", "").replace(f"{Path(folder).parent}/", "")
        self.shown = re.sub(r"n{200,}", "nnn…", words)

    @property
    def verdict(self):
        return self.data.get("verdict") or (self.failure.get("code") if self.failure else None)

    @property
    def first_words(self):
        lines = [line.strip() for line in (self.error or self.out).strip().splitlines()[:2]]
        return " ".join(lines)[:160]

    @property
    def events(self):
        return self.data.get("events", [])

    def event(self, *kinds):
        """The last event of one of these kinds; an empty object where there is none."""
        return ([one for one in self.events if one.get("kind") in kinds] or [{}])[-1]


def run(folder, *arguments, cwd=None, timeout=TIMEOUT, environment=None, **more):
    """Runs the tool in a folder where nothing lies that it might find; `more` is subprocess's own."""
    arguments = [str(one) for one in arguments]
    place = cwd or Path(folder) / "nowhere"
    Path(place).mkdir(exist_ok=True)
    settings = {name: value for name, value in os.environ.items() if name != "LAZARET_HOME"} | (environment or {})
    # A program that crashes shall end as one, whatever else could be done about it.
    settings["SWIFT_BACKTRACE"] = "enable=no"
    try:
        done = subprocess.run(
            [LAZARET, *arguments], capture_output=True, text=True, errors="replace", timeout=timeout, cwd=place, env=settings,
            stdin=subprocess.DEVNULL, **more)
        code, out, error = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, error = -1, "", f"it did not end within {timeout} s"
    return Told(arguments, code, out, error, folder)


class Account:
    """What a salvage is said to have given: recovered, doubtful and lost records by name, and whether the losses are counted."""

    def __init__(self, entities, records):
        self.recovered, self.doubtful, self.lost, self.exact, self.unknown = {}, {}, {}, {}, set()
        self.aside = {}
        by_table = {table: name for name, table in records.items()}
        for one in entities:
            # Without a model an entity goes by the name of its table.
            name = one.get("name") if one.get("name") in records else by_table.get(one.get("table"))
            if name:
                self.recovered[name], self.doubtful[name] = one.get("recovered", 0), one.get("doubtful", 0)
                self.aside[name] = one.get("setAside", 0)
                self.lost[name], self.exact[name] = one.get("lost", 0), one.get("lostIsExact", True)
                if one.get("lostBasis") == "unknown":
                    self.unknown.add(name)

    @property
    def sums(self):
        return tuple(sum(each.values()) for each in (self.recovered, self.doubtful, self.lost))

    @property
    def total(self):
        """Recovered, set aside and lost; the doubtful ones are recovered."""
        return sum(sum(each.values()) for each in (self.recovered, self.aside, self.lost))

    @property
    def is_exact(self):
        return all(self.exact.values())

    @property
    def is_whole(self):
        return self.sums[1:] == (0, 0) and not self.unknown

    def __str__(self):
        recovered, doubtful, lost = self.sums
        return f"{recovered} recovered, {doubtful} doubtful, {'' if self.is_exact else 'about '}{lost} lost"

    def __eq__(self, other):
        mine = (self.recovered, self.doubtful, self.lost, self.exact)
        return mine == (other.recovered, other.doubtful, other.lost, other.exact)


def numbers(text):
    """All whole numbers in a text; a version, a time or a name with a number in it is none."""
    return {int(one.replace(",", "")) for one in re.findall(r"(?<![\w.:-])\d[\d,]*(?![\w.:-])", text.replace(",\n", " "))}


def result_of(receipt):
    """What a receipt notes of the result of a salvage."""
    return (receipt.get("salvage") or {}).get("result") or {}
