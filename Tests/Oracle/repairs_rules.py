"""Copies of stores whose records break the rules of their model, and what a repair of records makes of them."""

import shutil
import sqlite3
from pathlib import Path

from repairs_cases import Case, missing_objects, wrong_keys
from repairs_drifts import Facts, connect, copied, is_bookkeeping, quoted
from tool import contents, lazaret

# MARK: Records that break the model's rules

RULES = {}


def rule(function):
    """Registers what makes records break a rule: it gets an open connection and the sound store, and yields what `inspect` must find."""
    RULES[function.__name__.replace("_", " ")] = function
    return function


class Model:
    """The entities of a sound store's model, with what is in their tables."""

    def __init__(self, sound):
        shown = lazaret("model", "show", sound.model, "--json").data["versions"]
        self.entities = {one["name"]: one for one in next(one for one in shown if one["current"])["entities"]}
        self.sound = sound

    def numbers(self, name):
        """The numbers of an entity and those below it, as SQL."""
        found, names = [], [name]
        while names:
            one = names.pop()
            found.append(self.sound.entities[one][0])
            names += [below for below, entity in self.entities.items() if entity.get("parent") == one]
        return "(" + ", ".join(map(str, sorted(found))) + ")"

    def ancestors(self, name):
        while name:
            yield name
            name = self.entities[name].get("parent")

    def is_inherited(self, entity, name):
        return any(name in {one["name"] for kind in ("attributes", "relationships") for one in self.entities[above][kind]}
                   for above in list(self.ancestors(entity))[1:])

    def properties(self, kind):
        """Entity, property, table and column of those whose column has the plain name."""
        for entity in sorted(self.entities):
            for one in self.entities[entity][kind]:
                table, column = self.sound.root_table(entity), "Z" + one["name"].upper()
                of_name = [other for other in self.entities for kind in ("attributes", "relationships")
                           for each in self.entities[other][kind] if each["name"].upper() == one["name"].upper()
                           and self.sound.root_table(other) == table and not self.is_inherited(other, each["name"])]
                # Where two entities of a table have the name their columns have numbers.
                if column in self.sound.fresh.columns.get(table, {}) and table in self.sound.tables and len(of_name) == 1 \
                        and column in self.sound.facts.columns[table] and not self.is_inherited(entity, one["name"]):
                    yield entity, one, table, column


def rows_of(database, model, entity, table, condition="1"):
    found = database.execute(f"SELECT Z_PK FROM {quoted(table)} WHERE Z_ENT IN {model.numbers(entity)} AND {condition} ORDER BY Z_PK")
    return [key for (key,) in found]


@rule
def references_to_nowhere(database, sound, model):
    for entity, one, table, column in model.properties("relationships"):
        keys = rows_of(database, model, entity, table)[:2]
        if one["toMany"] or not keys:
            continue
        database.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = 987654 WHERE Z_PK IN ({', '.join(map(str, keys))})")
        yield "dangling-reference", table, column


@rule
def one_sided_relationships(database, sound, model):
    done = set()
    for entity, one, table, column in model.properties("relationships"):
        inverse = next((each for each in model.properties("relationships") if each[0] == one["destination"]
                        and each[1]["name"] == one.get("inverse")), None)
        if one["toMany"] or inverse is None or inverse[1]["toMany"] or (table, column) in done:
            continue
        done |= {(table, column), (inverse[2], inverse[3])}
        keys = [key for key in rows_of(database, model, entity, table, f"{quoted(column)} IS NOT NULL")]
        if not keys:
            # None has the relationship: two records get it, one of them by both sides and wrongly.
            own, others = rows_of(database, model, entity, table), rows_of(database, model, inverse[0], inverse[2])
            if not own or not others:
                continue
            for key in own[:2]:
                database.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = ? WHERE Z_PK = ?", (others[0], key))
        else:
            database.execute(
                f"UPDATE {quoted(inverse[2])} SET {quoted(inverse[3])} = NULL WHERE Z_PK = (SELECT {quoted(column)} FROM {quoted(table)} "
                "WHERE Z_PK = ?)", (keys[0],))
        yield "one-sided-relationship", table, column


@rule
def pairs_to_nowhere(database, sound, model):
    for table in sound.joins:
        columns = [one for one in sound.fresh.columns[table] if "FOK" not in one]
        if len(columns) != 2 or not set(columns) <= set(sound.facts.columns[table]):
            continue
        pair = ", ".join(map(quoted, columns))
        database.execute(f"INSERT INTO {quoted(table)} ({pair}) VALUES (987654, 987655)")
        yield "dangling-join-row", table, None


@rule
def mandatory_attributes_without_a_value(database, sound, model):
    for entity, one, table, column in model.properties("attributes"):
        keys = rows_of(database, model, entity, table, f"{quoted(column)} IS NOT NULL")[:2]
        if one["optional"] or one.get("transient") or one.get("derivation") or not keys:
            continue
        try:
            database.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = NULL WHERE Z_PK IN ({', '.join(map(str, keys))})")
        except sqlite3.OperationalError:
            continue
        yield "missing-value", table, column


@rule
def duplicates(database, sound, model):
    for entity in sorted(model.entities):
        for constraint in model.entities[entity]["uniquenessConstraints"]:
            table, columns = sound.root_table(entity), ["Z" + one.upper() for one in constraint]
            if table not in sound.tables or not set(columns) <= set(sound.facts.columns[table]):
                continue
            filled = " AND ".join(f"{quoted(one)} IS NOT NULL" for one in columns)
            keys = rows_of(database, model, entity, table, filled)
            if len(keys) < 2:
                continue
            for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? "
                                          "AND sql LIKE 'CREATE UNIQUE%'", (table,)).fetchall():
                database.execute(f"DROP INDEX {quoted(name)}")
            for key in keys[1:3]:
                values = ", ".join(f"{quoted(one)} = (SELECT {quoted(one)} FROM {quoted(table)} WHERE Z_PK = {keys[0]})" for one in columns)
                database.execute(f"UPDATE {quoted(table)} SET {values} WHERE Z_PK = {key}")
            yield "duplicate", table, columns[0]


class DataCase(Case):
    """One copy whose records break rules, and what is made of it."""

    def prepare(self, names):
        shutil.copyfile(self.sound.path, self.store)
        database, model = connect(self.store), Model(self.sound)
        for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            # They call functions of the framework's.
            database.execute(f"DROP TRIGGER {quoted(name)}")
        self.broken = [one for name in names for one in RULES[name](database, self.sound, model)]
        for name in self.sound.facts.triggers:
            database.execute(self.sound.facts.schema[("trigger", name)])
        database.close()
        for suffix in ("-wal", "-shm"):
            Path(f"{self.store}{suffix}").unlink(missing_ok=True)
        return bool(self.broken)

    def found(self, outcome):
        # The files of large values are not copied with a store.
        findings = [one for one in outcome.data.get("data", {}).get("findings", []) if one["code"] != "missing-file"]
        return {(one["code"], one["table"], column) for one in findings for column in one["columns"]}

    def play(self):
        before, files = Facts(self.store), contents(self.store.parent)
        seen = self.run("inspect", "--check", "data")
        told = self.found(seen)
        self.check(seen.code == 2, "inspect finds nothing", seen)
        for kind, table, column in self.broken:
            # A reference that leads nowhere is told as that alone.
            hidden = kind == "one-sided-relationship" and self.name == "every rule at once"
            if not hidden and not any(kind == one[0] and table == one[1] and column in (None, one[2]) for one in told):
                self.check(False, f"{kind} in {table}.{column} is not found")
        planned = self.run("repair", "--data", "--dry-run")
        self.check(contents(self.store.parent) == files and not list(self.home.iterdir()), "looking changed something")
        done = self.run("repair", "--data")
        self.check(planned.code == done.code, f"dry run ends with {planned.code}, the repair with {done.code}", done)
        if not self.check(done.code in (0, 2), "the repair fails", done):
            return
        for key in ("changes", "leftOut", "rows", "setAsideRows", "changedValues"):
            self.check(planned.data.get(key) == done.data.get(key), f"dry run and outcome differ in {key}", planned)
        if not done.data.get("changes"):
            self.check({one[0] for one in self.broken} == {"missing-value"}, "nothing is done", done)
            return
        after = Facts(self.store)
        self.check(after.integrity == [("ok",)], f"integrity_check: {after.integrity[:2]}")
        self.keeps(before)
        self.accounts_for(before, after, done)
        for words in missing_objects(self.sound.facts, after, self.sound.fresh):
            self.check(False, words)
        for words in wrong_keys(self.sound, after):
            self.check(False, words)
        again = self.run("inspect", "--check", "data")
        rest = {one for one in self.found(again) if one[0] != "missing-value"}
        self.check(not rest, f"still found: {sorted(rest)[:3]}", again)
        left = {(one["table"], one["name"]) for one in done.data["leftOut"]}
        for kind, table, column in self.found(again):
            self.check((table, column) in left, f"{kind} in {table}.{column} is left and not told")
        mended = contents(self.store.parent)
        self.run("repair", "--data")
        self.check(contents(self.store.parent) == mended, "a second repair changes something")
        self.undo_by_file(before, done)
        self.undo(before)

    def undo_by_file(self, before, done):
        """What was set aside, put back by SQL alone, makes the records what they were."""
        if not done.data.get("setAside"):
            return
        copy = copied(self.store, self.folder / "Undone.sqlite")
        database = connect(copy)
        for name, in database.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger')").fetchall():
            database.execute(f"DROP TRIGGER {quoted(name)}")
        for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall():
            # What broke a constraint is to be there again.
            database.execute(f"DROP INDEX {quoted(name)}")
        database.execute("ATTACH DATABASE ? AS aside", (done.data["setAside"],))
        for table, column, row, old in database.execute(
                'SELECT "table", "column", "row", "before" FROM aside.lazaret_values_changed ORDER BY rowid DESC').fetchall():
            key = "Z_PK" if "Z_PK" in before.columns[table] else "rowid"
            database.execute(f"UPDATE main.{quoted(table)} SET {quoted(column)} = ? WHERE {key} = ?", (old, row))
        found = "SELECT name FROM aside.sqlite_master WHERE name LIKE 'lazaret@_set@_aside@_%' ESCAPE '@'"
        for (name,) in database.execute(found).fetchall():
            table = name.removeprefix("lazaret_set_aside_")
            columns = ", ".join(map(quoted, before.columns[table]))
            key = "" if "Z_PK" in before.columns[table] else "rowid, "
            chosen = columns if not key else "lazaret_key, " + columns
            database.execute(f"INSERT INTO main.{quoted(table)} ({key}{columns}) SELECT {chosen} FROM aside.{quoted(name)}")
        database.close()
        now = Facts(copy)
        for table, rows in before.rows.items():
            if not is_bookkeeping(table):
                again = {key: {one: row.get(one) for one in rows.get(key, row)} for key, row in now.rows[table].items()}
                self.check(again == rows, f"what was set aside does not bring back {table}")

    def accounts_for(self, before, after, done):
        """Every row and value that is not there any more is in the file beside the original, and all that is in it was there."""
        aside = done.data.get("setAside")
        taken, changed = {}, {}
        if aside:
            database = connect(aside)
            database.execute("PRAGMA query_only = ON")
            for table, column, row, old, new in database.execute(
                    'SELECT "table", "column", "row", quote("before"), quote("after") FROM lazaret_values_changed ORDER BY rowid'):
                first = changed.get((table, column, row), (old,))[0]
                changed[table, column, row] = (first, new)
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'lazaret@_set@_aside@_%' ESCAPE '@'").fetchall():
                table = name.removeprefix("lazaret_set_aside_")
                columns = list(before.columns[table])
                chosen = ", ".join(f"quote({quoted(one)})" for one in columns)
                for row in database.execute(f"SELECT lazaret_key, {chosen} FROM {quoted(name)}"):
                    taken[table, row[0]] = dict(zip(columns, row[1:]))
            database.close()
        for table, rows in before.rows.items():
            if is_bookkeeping(table):
                continue
            for key, row in rows.items():
                now = after.rows.get(table, {}).get(key, taken.get((table, key)))
                if now is None:
                    self.check(False, f"row {key} of {table} is nowhere")
                    return
                for column, value in row.items():
                    old, new = changed.get((table, column, key), (value, value))
                    if (old, new) != (value, now[column]):
                        self.check(False, f"{table}.{column} of row {key} was {value[:20]} and is {now[column][:20]}; noted: {old[:20]} {new[:20]}")
                        return
            more = set(after.rows.get(table, {})) - set(rows)
            self.check(not more, f"{table} has rows that were not there: {sorted(more)[:3]}")
            both = [key for key in rows if (table, key) in taken and key in after.rows[table]]
            self.check(not both, f"rows of {table} are set aside and there: {both[:3]}")
            if table[0] == "A":
                self.check(after.rows[table] == rows, f"{table} of the history is not as it was")

    def undo(self, before):
        """Restoring the original brings everything back."""
        kept = next(one for one in self.home.rglob("*.sqlite") if "set-aside" not in one.name)
        undone = lazaret("backup", "restore", kept.stem, "--of", self.store, "--home", self.home)
        if self.check(undone.has_restored(self.store), "the original cannot be restored", undone):
            now = Facts(self.store)
            self.check((now.rows, now.schema, now.keys) == (before.rows, before.schema, before.keys), "the restored store is not the original")
