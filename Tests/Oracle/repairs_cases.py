"""One drifted copy of a store: what is said of it, what is made of it, and how that is held against the store as it was."""

import re
import shutil
from pathlib import Path

from repairs_drifts import Facts, connect, is_bookkeeping
from tool import contents, lazaret

# MARK: Comparing


def lost_values(before, after):
    """What of the rows before is not there after, in words."""
    for table, rows in before.rows.items():
        if is_bookkeeping(table):
            continue
        now = after.rows.get(table)
        if now is None:
            yield f"table {table} is gone"
            continue
        if len(now) != len(rows):
            yield f"table {table} has {len(now)} rows instead of {len(rows)}"
        for key, row in rows.items():
            other = now.get(key, {})
            wrong = [one for one, value in row.items() if other.get(one) != value]
            if wrong:
                yield f"row {key} of {table} is not as it was in {', '.join(wrong[:4])}"
                break


def missing_objects(wanted, after, fresh):
    """What the store had before and a new one has, and the repaired one has not."""
    for table, columns in wanted.columns.items():
        for column, kind in columns.items():
            if column in fresh.columns.get(table, {}) and column not in after.columns.get(table, {}):
                yield f"column {table}.{column} is missing"
            elif column in fresh.columns.get(table, {}) and fresh.columns[table][column] != after.columns[table][column] != kind:
                yield f"column {table}.{column} is a {after.columns[table][column]}"
    for table, covered, unique in wanted.shapes & fresh.shapes:
        if (table, covered, unique) not in after.shapes and (unique or (table, covered, True) not in after.shapes):
            yield f"{'unique ' if unique else ''}index of {table} over {covered} is missing"
    for name in (wanted.triggers & fresh.triggers) - after.triggers:
        yield f"trigger {name} is missing"
    for name in wanted.virtual:
        if name in fresh.virtual and after.virtual.get(name) != wanted.virtual[name]:
            yield f"R-tree {name} is not as it was"


def wrong_keys(sound, after):
    """What is wrong with the rows of Z_PRIMARYKEY."""
    rows = {name: (number, parent, highest) for number, name, parent, highest in after.keys}
    numbers = [number for number, _, _, _ in after.keys]
    if len(set(numbers)) != len(numbers):
        yield "two rows of Z_PRIMARYKEY have one number"
    own = {number: name for number, name, _, _ in after.keys}
    for name, (number, parent) in sound.entities.items():
        if name not in rows and number in own:
            # The name that an entity had before it was renamed stays in its row.
            rows[name] = next((n, p, m) for n, _, p, m in after.keys if n == number)
        if name not in rows:
            yield f"Z_PRIMARYKEY has no row of {name}"
            continue
        if rows[name][:2] != (number, parent):
            yield f"the row of {name} is {rows[name]}"
        highest = max(after.rows.get(sound.root_table(name), {}), default=0)
        if not parent and (rows[name][2] or 0) < highest:
            yield f"Z_MAX of {name} is {rows[name][2]}, and there is a key {highest}"


class Case:
    """One drifted copy and what is said of it."""

    def __init__(self, sound, name, folder):
        self.sound, self.name, self.folder = sound, name, Path(folder)
        self.store = self.folder / "Stores/App.sqlite"
        self.home = self.folder / "Home"
        self.store.parent.mkdir()
        self.home.mkdir()
        self.faults = []
        self.refused = False

    def check(self, condition, words, outcome=None):
        if not condition:
            self.faults.append(words + (f"\n      {outcome}" if outcome else ""))
        return condition

    def run(self, *arguments):
        verb, rest = arguments[0], arguments[1:]
        home = [] if verb == "inspect" else ["--home", self.home]
        return lazaret(verb, self.store, "--model", self.sound.model, "--json", *home, *rest)

    def prepare(self, change):
        shutil.copyfile(self.sound.path, self.store)
        database = connect(self.store)
        found = change(database, self.sound)
        database.close()
        for suffix in ("-wal", "-shm"):
            Path(f"{self.store}{suffix}").unlink(missing_ok=True)
        return found

    def play(self):
        """Inspect, dry run, repair, inspect, repair, open."""
        before, files = Facts(self.store), contents(self.store.parent)
        seen = self.run("inspect")
        self.check(seen.code == 2 and seen.data.get("verdict") == "repairable", f"inspect says {seen.data.get('verdict')}", seen)
        self.check(bool(seen.data.get("drift", {}).get("differences")), "inspect lists nothing", seen)
        planned = self.run("repair", "--dry-run")
        self.check(contents(self.store.parent) == files and not list(self.home.iterdir()), "looking changed something")
        done = self.run("repair")
        self.check(planned.code == done.code, f"dry run ends with {planned.code}, the repair with {done.code}", done)
        if done.failure.get("code") == "repair-refused":
            self.refused = True
            self.check(contents(self.store.parent) == files, "a refused repair changed something")
            self.check(planned.failure.get("code") == "repair-refused", "the dry run is not refused", planned)
            return
        # Mandatory attributes without a default stay without a value in a column that is made anew, and references to the
        # records of a table that was missing lead to none.
        left = done.data.get("repair", done.data).get("leftOut", [])
        kinds = {one["kind"] for one in left}
        known = {"missing-value", "dangling-reference", "dangling-pair", "lost-records"}
        if not self.check(done.code == (2 if kinds else 0) and kinds <= known, f"the repair leaves {kinds}", done):
            return
        # A table that was missing, and to whose records keys had been given, has lost them.
        given = {row[1]: row[3] or 0 for row in Facts(self.store).keys if row[1] in self.sound.entities and not row[2]}
        gone = {table for table in self.sound.tables if table not in before.columns}
        lost = {table for table in gone if any(given.get(name, 0) > 0 and self.sound.root_table(name) == table for name in given)}
        # Nothing tells how many pairs a join table had that is missing, where there ever were records.
        if any(given.values()):
            lost |= {table for table in self.sound.facts.columns if re.fullmatch(r"Z_\d+\w+", table) and table not in before.columns}
        told = {one["table"] for one in left if one["kind"] == "lost-records"}
        self.check(told == lost, f"lost are the records of {lost}, told is {told}", done)
        accounts = [one.data.get("repair", one.data) for one in (planned, done)]
        for key in ("changes", "leftOut", "rows"):
            self.check(accounts[0].get(key) == accounts[1].get(key), f"dry run and outcome differ in {key}", planned)
        self.compare(before, Facts(self.store))
        self.keeps(before)
        again = self.run("inspect")
        self.check(again.code == 0 and again.data.get("verdict") == "compatible", f"then inspect says {again.data.get('verdict')}", again)
        mended = contents(self.store.parent)
        twice = self.run("repair")
        stays = kinds & {"dangling-reference", "dangling-pair"}
        self.check(twice.code == (2 if stays else 0) and contents(self.store.parent) == mended, "a second repair changes something", twice)
        opened = self.run("open")
        self.check(opened.code == 0 and opened.data.get("verdict") == "compatible", f"open says {opened.data.get('verdict')}", opened)
        self.check(not any(one["kind"] == "repair" for one in opened.data.get("events", [])), "open repairs again", opened)

    def compare(self, before, after):
        sound = self.sound.facts
        self.check(after.integrity == [("ok",)], f"integrity_check: {after.integrity[:2]}")
        if "number" in self.name and self.name != "an entity number column":
            # The records must be as they were in the sound store.
            before = sound
        for words in lost_values(before, after):
            self.check(False, words)
        for words in missing_objects(sound, after, self.sound.fresh):
            self.check(False, words)
        for words in wrong_keys(self.sound, after):
            self.check(False, words)
        self.check(after.metadata == before.metadata, "the metadata is not as it was")
        for entry, sql in before.schema.items():
            if entry[0] != "table":
                self.check(after.schema.get(entry, 0) == sql, f"{' '.join(entry)} is not as it was")
        for table in sound.columns:
            if table[0] == "A" and table in before.rows:
                self.check(after.rows.get(table) == before.rows[table], f"{table} of the history is not as it was")
        if self.name == "an entity number column":
            for words in lost_values(sound, after):
                self.check(False, words)

    def keeps(self, before):
        """The store as it was lies whole in Backups/."""
        kept = [one for one in self.home.rglob("*.sqlite") if one.is_file() and "set-aside" not in one.name]
        if not self.check(len(kept) == 1, f"{len(kept)} originals are kept"):
            return
        found = Facts(kept[0])
        self.check((found.rows, found.schema, found.keys) == (before.rows, before.schema, before.keys), "the kept original is not the store")
