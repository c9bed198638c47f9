"""Repairs of stores that others wrote: what plain SQL takes from a sound store comes back, and nothing else changes.

Each real store that carries its model is copied, something of its model is taken from the copy by SQL alone, and the copy is inspected,
repaired, inspected, repaired again and opened. What the store was before is what it is held against: every row and value with its storage
class, every table, column, index by what it covers, trigger, row of Z_PRIMARYKEY, the metadata and the history. Records that break
the model's rules are repaired on request: every row and value that is not there any more must be in the file beside the original.
Some drifts of each store are played, in turn; all of them with --all. Other arguments: words of the names of the cases to play.
"""

import collections
import shutil
import sqlite3
import sys
import tempfile
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import contents, lazaret, leave_skipped, real_material

# Larger stores are played with --all only.
USUAL_SIZE = 3_000_000
# How many drifts of each store are played without --all.
USUAL_SHARE = 1
# No drift is begun later than this many seconds after the start, without --all; it is no part of a quiet machine's run.
BOUND = 55


def connect(path):
    database = sqlite3.connect(path, isolation_level=None)
    database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return database


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def is_bookkeeping(table):
    return table.upper() in ("Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE") or table.startswith("sqlite_")


class Facts:
    """All that a store holds, read by SQLite through a copy."""

    def __init__(self, path):
        with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
            copy = copied(path, Path(folder, "look.sqlite"))
            database = connect(copy)
            self.integrity = database.execute("PRAGMA integrity_check").fetchall()
            entries = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
            self.schema = {(kind, name): sql for kind, name, _, sql in entries}
            self.triggers = {name for kind, name, _, _ in entries if kind == "trigger"}
            self.columns, self.rows, self.shapes = {}, {}, set()
            virtual = {name for kind, name, _, sql in entries if kind == "table" and (sql or "").upper().startswith("CREATE VIRTUAL")}
            for kind, name, _, _ in entries:
                if kind != "table" or name in virtual:
                    continue
                self.columns[name] = {one[1]: one[2] for one in database.execute(f"PRAGMA table_info({quoted(name)})")}
                if any(name.startswith(one + "_") for one in virtual):
                    continue
                for index in database.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
                    covered = tuple(one[2] for one in database.execute(f"PRAGMA index_info({quoted(index[1])})"))
                    self.shapes.add((name, covered, bool(index[2])))
                self.rows[name] = self.read(database, name)
            self.virtual = {}
            for name in virtual:
                try:
                    self.virtual[name] = sorted(map(repr, database.execute(f"SELECT * FROM {quoted(name)}")))
                except sqlite3.DatabaseError:
                    continue
            keys = "Z_PRIMARYKEY" in self.columns
            self.keys = sorted(database.execute("SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY"), key=repr) if keys else []
            self.metadata = database.execute("SELECT * FROM Z_METADATA").fetchall()
            database.close()

    def read(self, database, table):
        """The values of each row with their storage class, by rowid and column."""
        names = list(self.columns[table])
        chosen = ", ".join(f"quote({quoted(one)})" for one in names)
        key = next((one for one in ("rowid", "_rowid_", "oid") if one not in names), None)
        try:
            found = database.execute(f"SELECT {key}, {chosen} FROM {quoted(table)}")
            return {row[0]: dict(zip(names, row[1:])) for row in found}
        except sqlite3.OperationalError:
            found = database.execute(f"SELECT {chosen} FROM {quoted(table)}")
            return {row: dict(zip(names, row)) for row in found}


def copied(path, target):
    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copyfile(f"{path}{suffix}", f"{target}{suffix}")
    return target


class Sound:
    """A real store, its own model, and what an empty store of that model has."""

    def __init__(self, path, real, folder):
        self.name = str(path.relative_to(real))
        self.folder = Path(folder)
        self.path = copied(path, self.folder / "Sound.sqlite")
        database = connect(self.path)
        content = database.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()[0]
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        for suffix in ("-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self.model = self.folder / "Own.mom"
        self.model.write_bytes(zlib.decompress(content, -15))
        self.facts = Facts(self.path)
        fresh = self.folder / "fresh/Fresh.sqlite"
        fresh.parent.mkdir()
        made = lazaret("open", fresh, "--model", self.model)
        if made.code != 0:
            raise ValueError(f"no empty store can be made: {made}")
        self.fresh = Facts(fresh)
        self.entities = {name: (number, parent) for number, name, parent, _ in self.fresh.keys}
        # The tables of entities are those with an entity number in an empty store; all others are join tables.
        self.tables = [one for one in self.fresh.columns if one in self.facts.columns and "Z_ENT" in self.fresh.columns[one]
                       and not is_bookkeeping(one)]
        self.joins = [one for one in self.fresh.columns if one in self.facts.columns and one not in self.tables
                      and one.startswith("Z_") and not is_bookkeeping(one)]
        self.has_history = any(one == "ACHANGE" or one.startswith("ANSCK") for one in self.facts.columns)

    def root_table(self, name):
        while self.entities[name][1]:
            name = next(one for one, (number, _) in self.entities.items() if number == self.entities[name][1])
        return "Z" + name.upper()

    def choice(self, names):
        """One of the names, the same in every run."""
        names = sorted(names)
        return names[zlib.crc32(self.name.encode()) % len(names)] if names else None


# MARK: What is taken

DRIFTS = {}


def drift(function):
    """Registers what takes something from a copy: it gets an open connection and the sound store, and returns whether there was something."""
    DRIFTS[function.__name__.replace("_", " ")] = function
    return function


def drop_columns(database, sound, table, columns):
    """Drops columns, with the indexes and triggers that name them."""
    entries = database.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL").fetchall()
    for kind, name, sql in entries:
        covered = [one[2] for one in database.execute(f"PRAGMA index_info({quoted(name)})")] if kind == "index" else []
        if kind == "trigger" or set(covered) & set(columns):
            database.execute(f"DROP {kind} {quoted(name)}")
    unique = {one[2] for index in database.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
              for one in database.execute(f"PRAGMA index_info({quoted(index[1])})")}
    for column in columns:
        # A column that the table itself declares unique cannot be dropped.
        if column not in unique:
            database.execute(f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(column)}")


def removable(sound, table):
    return [one for one in sound.fresh.columns[table] if one in sound.facts.columns[table] and one not in ("Z_PK", "Z_ENT")]


@drift
def a_column(database, sound):
    table = sound.choice(sound.tables)
    column = sound.choice([one for one in removable(sound, table or "") if one != "Z_OPT"]) if table else None
    if column:
        drop_columns(database, sound, table, [column])
    return column is not None


@drift
def half_the_columns_of_every_table(database, sound):
    for table in sound.tables:
        drop_columns(database, sound, table, sorted(removable(sound, table))[::2])
    return True


@drift
def the_save_counts(database, sound):
    for table in sound.tables:
        drop_columns(database, sound, table, ["Z_OPT"])
    return True


@drift
def an_entity_number_column(database, sound):
    roots = collections.Counter(sound.root_table(name) for name in sound.entities)
    table = sound.choice(one for one in sound.tables if roots[one] == 1)
    if table:
        drop_columns(database, sound, table, ["Z_ENT"])
    return table is not None


@drift
def a_table(database, sound):
    table = sound.choice(sound.tables)
    database.execute(f"DROP TABLE {quoted(table)}")
    return True


@drift
def the_join_tables(database, sound):
    for table in sound.joins:
        database.execute(f"DROP TABLE {quoted(table)}")
    return bool(sound.joins)


@drift
def an_order_of_a_join_table(database, sound):
    found = [(one, column) for one in sound.joins for column in sound.facts.columns[one] if "FOK" in column]
    for table, column in found:
        drop_columns(database, sound, table, [column])
    return bool(found)


def drop_indexes(database, sound, unique):
    found = False
    for name, table in database.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall():
        is_unique = "UNIQUE" in sound.facts.schema[("index", name)].upper().split("INDEX")[0]
        covered = tuple(one[2] for one in database.execute(f"PRAGMA index_info({quoted(name)})"))
        if is_unique == unique and (table, covered, unique) in sound.fresh.shapes:
            database.execute(f"DROP INDEX {quoted(name)}")
            left = database.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
            shapes = [(tuple(one[2] for one in database.execute(f"PRAGMA index_info({quoted(other[1])})")), other[2]) for other in left]
            # One that covers the same does for it.
            found = found or not any(one == covered and (is_unique or not unique) for one, is_unique in shapes)
    return found


@drift
def the_indexes(database, sound):
    return drop_indexes(database, sound, False)


@drift
def the_unique_indexes(database, sound):
    return drop_indexes(database, sound, True)


@drift
def the_triggers(database, sound):
    found = [one for one in sound.facts.triggers if one in sound.fresh.triggers]
    for name in found:
        database.execute(f"DROP TRIGGER {quoted(name)}")
    return bool(found)


@drift
def a_key_row(database, sound):
    names = {row[1] for row in sound.facts.keys}
    return database.execute("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = ?", (sound.choice(names & set(sound.entities)),)).rowcount > 0


@drift
def all_key_rows(database, sound):
    database.execute("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")
    return True


@drift
def the_table_of_keys(database, sound):
    if sound.has_history:
        return False
    database.execute("DROP TABLE Z_PRIMARYKEY")
    return True


@drift
def the_highest_keys(database, sound):
    database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_ENT < 16000")
    return any(len(sound.facts.rows[one]) for one in sound.tables)


@drift
def the_highest_keys_made_null(database, sound):
    database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = NULL WHERE Z_ENT < 16000")
    return any(len(sound.facts.rows[one]) for one in sound.tables)


@drift
def the_parents_in_key_rows(database, sound):
    database.execute("UPDATE Z_PRIMARYKEY SET Z_SUPER = 0 WHERE Z_ENT < 16000")
    return any(parent for _, parent in sound.entities.values())


@drift
def numbers_in_key_rows_alone(database, sound):
    database.execute("UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 500 WHERE Z_ENT < 15000")
    return True


@drift
def numbers_everywhere(database, sound):
    database.execute("UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 500 WHERE Z_ENT < 15000")
    database.execute("UPDATE Z_PRIMARYKEY SET Z_SUPER = Z_SUPER + 500 WHERE Z_SUPER > 0 AND Z_ENT < 16000")
    for table in sound.tables:
        database.execute(f"UPDATE {quoted(table)} SET Z_ENT = Z_ENT + 500")
        for column in sound.facts.columns[table]:
            # The entity beside a reference to a hierarchy.
            if is_entity_column(sound, table, column):
                database.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = {quoted(column)} + 500")
    return True


def is_entity_column(sound, table, column):
    """Whether a column holds the entity of a reference: `Z9_OWNER` stands beside `ZOWNER`."""
    head, _, tail = column.partition("_")
    return (column in sound.fresh.columns[table] and head[:1] == "Z" and head[1:].isdigit() and "Z" + tail in sound.facts.columns[table])


@drift
def the_model_of_another_store(database, sound):
    other = zlib.compressobj(wbits=-15)
    content = other.compress(OTHER_MODEL[sound.model.read_bytes() == OTHER_MODEL[0]]) + other.flush()
    database.execute("UPDATE Z_MODELCACHE SET Z_CONTENT = ?", (content,))
    return True


OTHER_MODEL = []


@drift
def something_of_everything(database, sound):
    table = sorted(sound.tables)[0]
    drop_columns(database, sound, table, sorted(removable(sound, table))[:2])
    drop_indexes(database, sound, True)
    drop_indexes(database, sound, False)
    if len(sound.tables) > 1:
        database.execute(f"DROP TABLE {quoted(sorted(sound.tables)[-1])}")
    database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_ENT < 16000")
    names = {row[1] for row in sound.facts.keys}
    return database.execute("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = ?", (sound.choice(names & set(sound.entities)),)).rowcount > 0


@drift
def a_column_with_objects_of_the_apps(database, sound):
    table = sound.choice(sound.tables)
    database.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN mine TEXT DEFAULT 'kept'")
    database.execute("CREATE TABLE own_notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    database.execute("INSERT INTO own_notes VALUES (7, 'a note')")
    drop_columns(database, sound, table, sorted(removable(sound, table))[:1])
    database.execute(f"CREATE INDEX own_index ON {quoted(table)} (mine)")
    database.execute(f"CREATE VIEW own_view AS SELECT Z_PK FROM {quoted(table)}")
    database.execute(f"CREATE TRIGGER own_trigger AFTER UPDATE ON {quoted(table)} BEGIN DELETE FROM own_notes; END")
    return True


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
        # Mandatory attributes without a default stay without a value in a column that is made anew.
        kinds = {one["kind"] for one in done.data.get("repair", done.data).get("leftOut", [])}
        if not self.check(done.code == (2 if kinds else 0) and kinds <= {"missing-value"}, f"the repair leaves {kinds}", done):
            return
        accounts = [one.data.get("repair", one.data) for one in (planned, done)]
        for key in ("changes", "leftOut", "rows"):
            self.check(accounts[0].get(key) == accounts[1].get(key), f"dry run and outcome differ in {key}", planned)
        self.compare(before, Facts(self.store))
        self.keeps(before)
        again = self.run("inspect")
        self.check(again.code == 0 and again.data.get("verdict") == "compatible", f"then inspect says {again.data.get('verdict')}", again)
        mended = contents(self.store.parent)
        twice = self.run("repair")
        self.check(twice.code == 0 and contents(self.store.parent) == mended, "a second repair changes something", twice)
        opened = self.run("open")
        self.check(opened.code == 0 and opened.data.get("verdict") == "compatible", f"open says {opened.data.get('verdict')}", opened)
        self.check(not any(one["kind"] == "repair" for one in opened.data.get("events", [])), "open repairs again", opened)

    def compare(self, before, after):
        sound = self.sound.facts
        self.check(after.integrity == [("ok",)], f"integrity_check: {after.integrity[:2]}")
        if self.name in ("numbers everywhere", "numbers in key rows alone"):
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
        return {(one["code"], one["table"], column) for one in outcome.data.get("data", {}).get("findings", []) for column in one["columns"]}

    def play(self):
        before, files = Facts(self.store), contents(self.store.parent)
        seen = self.run("inspect", "--check", "data")
        told = self.found(seen)
        self.check(seen.code == 2, "inspect finds nothing", seen)
        for kind, table, column in self.broken:
            # A reference that leads nowhere is told as that alone.
            hidden = kind == "one-sided-relationship" and self.name == EVERY_RULE
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
        self.undo(before)

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
        if self.check(undone.code == 0, "the original cannot be restored", undone):
            now = Facts(self.store)
            self.check((now.rows, now.schema, now.keys) == (before.rows, before.schema, before.keys), "the restored store is not the original")


EVERY_RULE = "every rule at once"
CASES = [*DRIFTS, *RULES, EVERY_RULE]


def played(sound, name):
    """Plays one case; None where the store has nothing for it."""
    with tempfile.TemporaryDirectory(dir=sound.folder) as folder:
        kind = Case if name in DRIFTS else DataCase
        case = kind(sound, name, folder)
        try:
            change = DRIFTS.get(name) or (list(RULES) if name == EVERY_RULE else [name])
            if not case.prepare(change):
                return None
            case.play()
        except Exception as error:
            case.faults.append(f"the case itself stopped: {type(error).__name__}: {error}")
        return case


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


def main(arguments):
    real = real_material()
    if real is None:
        leave_skipped("there are no real stores")
    every = "--all" in arguments
    words = [one for one in arguments if not one.startswith("-")]
    begin, passed, refused, tried = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="lazaret-repairs-") as folder:
        paths = list(stores(real, every))
        for path in paths[:1] + paths[-1:]:
            database = connect(copied(path, Path(folder, "model.sqlite")))
            OTHER_MODEL.append(zlib.decompress(database.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()[0], -15))
            database.close()
            for suffix in ("", "-wal", "-shm"):
                Path(folder, f"model.sqlite{suffix}").unlink(missing_ok=True)
        turn = 0
        for number, path in enumerate(paths):
            place = Path(folder, str(number))
            place.mkdir()
            try:
                sound = Sound(path, real, place)
            except Exception as error:
                print(f"FAILED {path}: {error}")
                tried += 1
                continue
            names = [one for one in CASES if not words or any(word in one or word in sound.name for word in words)]
            if not every and not words:
                names = names[turn % len(names):] + names[: turn % len(names)]
            share = 0
            for name in names:
                if not every and not words and (share == USUAL_SHARE or time.monotonic() - begin > BOUND):
                    break
                case = played(sound, name)
                turn += 1
                if case is None:
                    continue
                share += 1
                tried += 1
                refused += case.refused
                passed += not case.faults
                if case.refused and "-v" in sys.argv or case.faults:
                    print(f"{'FAILED' if case.faults else 'refused'} {sound.name}: {name}")
                    for fault in case.faults[:5]:
                        print("  - " + fault.replace(str(case.folder) + "/", "")[:1200])
            shutil.rmtree(place)
    print(f"{passed} of {tried} drifted stores are repaired or refused with nothing changed ({refused} refused), of {len(paths)} real stores")
    return 1 if passed < tried or not tried else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
