"""A model with several versions and a store of one of them, which each command gets as a fresh copy."""

import hashlib
import itertools
import shutil
import sqlite3
from pathlib import Path

from models import close, empty_store, insert, tables, values, write_model
from tool import contents, lazaret


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Visit:
    """One command at one copy of the store."""

    def __init__(self, outcome, place, before):
        self.outcome, self.store, self.home = outcome, place / "Stores/App.sqlite", place / "Home"
        self.output = place / "Output/App.sqlite"
        self.untouched = contents(place / "Stores") == before

    @property
    def steps(self):
        """The names of the steps, as `V1 → V2`, that were planned or done."""
        data = self.outcome.data
        for event in data.get("events", []):
            if "migration" in event:
                data = event["migration"]
        return [one.get("step") or f"{one.get('source')} → {one.get('destination')}" for one in data.get("steps", [])]

    @property
    def backup(self):
        """Where the store as it was is kept."""
        data = self.outcome.data
        kept = [event["path"] for event in data.get("events", []) if event["kind"] == "backup"]
        return data.get("backup") or (kept[0] if kept else None)

    @property
    def quarantined(self):
        """Whether there is a folder for quarantined stores beside the store."""
        return (self.store.parent / "Incompatible").exists()


class Scene:
    def __init__(self, folder, check, versions, current, stored, rows, prepare=None):
        """
        versions: those of the model; current: the name of the current one.
        stored: the name of the version that the store is of; rows: its records by entity.
        prepare: what else is done to the store, given an open connection.
        """
        self.folder, self.check, self.numbers = folder, check, itertools.count()
        self.model = write_model(folder / "App.xcdatamodeld", versions, current)
        alone = write_model(
            folder / "alone/App.xcdatamodeld", [version for version in versions if version.name == stored], stored)
        self.original = folder / "original/App.sqlite"
        empty_store(alone, self.original)
        self.keys = insert(self.original, rows)
        if prepare:
            store = sqlite3.connect(self.original)
            prepare(store)
            close(store)
        self.bytes = digest(self.original)

    def run(self, verb, *options, place=None):
        """Runs `inspect`, `plan`, `migrate`, `output` (migrate into another file) or `open`."""
        if place is None:
            place = self.folder / f"run {next(self.numbers)}"
            for name in ("Stores", "Home", "Output"):
                (place / name).mkdir(parents=True)
            shutil.copy(self.original, place / "Stores/App.sqlite")
        before = contents(place / "Stores")
        command = [verb if verb != "output" else "migrate", place / "Stores/App.sqlite", "--model", self.model, "--json"]
        if verb not in ("inspect", "plan"):
            command += ["--home", place / "Home"]
        if verb == "output":
            command += ["--output", place / "Output/App.sqlite"]
        return Visit(lazaret(*command, *options), place, before)

    def verdict(self, expected, version=None, code=0, options=()):
        """What `inspect` says of the store."""
        visit = self.run("inspect", *options)
        told = (visit.outcome.code, visit.outcome.data.get("verdict"))
        self.check(told == (code, expected), f"inspect should say {expected} and exit with {code}, says {told}", visit.outcome)
        if version:
            found = visit.outcome.data.get("modelVersion")
            self.check(found == version, f"inspect should call the version {version}, calls it {found}", visit.outcome)
        self.check(visit.untouched, "inspect changed the store's folder", visit.outcome)

    def migrates(self, *options, holds, steps=1, code=0, verbs=("plan", "migrate", "output", "open")):
        """All verbs agree: the store gets there in these steps, and then holds these values of (entity, property …)."""
        visits = {verb: self.run(verb, *options) for verb in verbs}
        for verb, visit in visits.items():
            check, outcome = self.check, visit.outcome
            check(outcome.code == code, f"{verb} should exit with {code}, exits with {outcome.code}", outcome)
            told = visit.steps if isinstance(steps, list) else len(visit.steps)
            check(told == steps, f"{verb} should go by {steps} step(s), goes by {visit.steps}", outcome)
            check(not visit.quarantined, f"{verb} quarantined the store", outcome)
            if verb in ("plan", "output"):
                check(visit.untouched, f"{verb} changed the store's folder", outcome)
            else:
                self.check_backup(verb, visit)
            if verb == "open":
                verdict = outcome.data.get("verdict")
                check(verdict == "outdated", f"open should find the store outdated, finds it {verdict}", outcome)
            if verb != "plan":
                self.check_values(verb, visit, holds)
        return visits

    def check_backup(self, verb, visit):
        kept = visit.backup
        self.check(kept and Path(kept).is_file(), f"{verb} kept no backup of the store as it was", visit.outcome)
        if kept and Path(kept).is_file():
            self.check(digest(Path(kept)) == self.bytes, f"the backup of {verb} is not the store as it was", visit.outcome)

    def check_values(self, verb, visit, holds):
        path = visit.output if verb == "output" else visit.store
        if not self.check(path.is_file(), f"there is no store after {verb}", visit.outcome):
            return
        for (name, *properties), expected in holds.items():
            try:
                found = values(path, name, *properties)
            except Exception as error:
                found = str(error)
            expected = sorted(expected, key=repr)
            place = f"{name}.{'/'.join(properties)}"
            self.check(found == expected, f"after {verb} {place} should hold {expected}, holds {found}", visit.outcome)

    def stays(self, *options, names=(), codes=None, verbs=("plan", "migrate", "output", "open")):
        """All verbs refuse, say why, and leave the store in its place as it is; returns what each did."""
        codes = codes or {"plan": 2, "migrate": 1, "output": 1, "open": 1}
        visits = {verb: self.run(verb, *options) for verb in verbs}
        for verb, visit in visits.items():
            check, outcome = self.check, visit.outcome
            check(outcome.code == codes[verb], f"{verb} should exit with {codes[verb]}, exits with {outcome.code}", outcome)
            check(visit.untouched, f"{verb} changed the store's folder", outcome)
            check(not visit.quarantined, f"{verb} quarantined the store", outcome)
            check(not visit.output.exists(), f"{verb} wrote a store", outcome)
            for name in names:
                check(name in outcome.words, f"{verb} should name {name!r}", outcome)
        return visits

    def is_newer(self, *options):
        """The store is taken for one of a newer version: all verbs leave it as it is and exit with 3."""
        self.verdict("unavailable", code=3, options=options)
        return self.stays(*options, codes=dict.fromkeys(("plan", "migrate", "output", "open"), 3))

    def tables(self, visit):
        """The names of all tables of the store after a command."""
        return tables(visit.store)
