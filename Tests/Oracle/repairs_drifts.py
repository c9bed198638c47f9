"""Real stores, what plain SQL takes from copies of them, and what a store holds, read by SQLite alone."""

import collections
import shutil
import sqlite3
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret


# What choices are drawn from.
SEED = 1


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
            found = self.columns.get("Z_PRIMARYKEY", {})
            wanted = [one if one in found else "NULL" for one in ("Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX")]
            self.keys = sorted(database.execute(f"SELECT {', '.join(wanted)} FROM Z_PRIMARYKEY"), key=repr) if found else []
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
        """One of the names, the same in every run of a seed."""
        names = sorted(names)
        return names[zlib.crc32(f"{SEED} {self.name}".encode()) % len(names)] if names else None

    @property
    def lone_tables(self):
        """The tables that hold the records of one entity alone."""
        number = collections.Counter(self.root_table(name) for name in self.entities)
        return [one for one in self.tables if number[one] == 1]


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


def declare_keys(database, declaration, columns):
    """Declares Z_PRIMARYKEY otherwise, with these columns of its rows."""
    rows = database.execute(f"SELECT {', '.join(columns)} FROM Z_PRIMARYKEY").fetchall()
    database.execute("DROP TABLE Z_PRIMARYKEY")
    database.execute(f"CREATE TABLE Z_PRIMARYKEY {declaration}")
    database.executemany(f"INSERT INTO Z_PRIMARYKEY ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows)


KEY_COLUMNS = ("Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX")


@drift
def the_column_of_parents(database, sound):
    database.execute("ALTER TABLE Z_PRIMARYKEY DROP COLUMN Z_SUPER")
    return True


@drift
def the_column_of_highest_keys(database, sound):
    database.execute("ALTER TABLE Z_PRIMARYKEY DROP COLUMN Z_MAX")
    return True


@drift
def the_column_of_names(database, sound):
    database.execute("ALTER TABLE Z_PRIMARYKEY DROP COLUMN Z_NAME")
    return True


@drift
def the_column_of_numbers(database, sound):
    if {row[1] for row in sound.facts.keys if row[0] < 16000} != set(sound.entities):
        # A row with the name that an entity had before cannot be told without its number.
        return False
    declare_keys(database, "(Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)", KEY_COLUMNS[1:])
    return True


@drift
def the_primary_key_of_key_rows(database, sound):
    declare_keys(database, "(Z_ENT INTEGER, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)", KEY_COLUMNS)
    return True


@drift
def the_rowids_of_key_rows(database, sound):
    declare_keys(database, "(Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER) WITHOUT ROWID", KEY_COLUMNS)
    return True


@drift
def the_column_of_the_model(database, sound):
    database.execute("DROP TABLE Z_MODELCACHE")
    database.execute("CREATE TABLE Z_MODELCACHE (own TEXT)")
    database.execute("INSERT INTO Z_MODELCACHE VALUES ('kept')")
    return True


@drift
def a_number_in_a_lone_table(database, sound):
    table = sound.choice(one for one in sound.lone_tables if len(sound.facts.rows[one]) > 2)
    if table:
        keys = sorted(sound.facts.rows[table])
        database.execute(f"UPDATE {quoted(table)} SET Z_ENT = 15999 WHERE Z_PK = ?", (keys[len(keys) // 2],))
    return table is not None


@drift
def the_numbers_of_a_lone_table(database, sound):
    table = sound.choice(one for one in sound.lone_tables if sound.facts.rows[one])
    if table:
        database.execute(f"UPDATE {quoted(table)} SET Z_ENT = NULL")
    return table is not None


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
