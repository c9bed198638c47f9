"""The rows of a store after a command, against the truth. A part of claims.py."""

import hashlib
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from claims_stores import Truth, plain_name, read, write

# Columns that a rebuilt store may number anew: the entity, and how often the record was saved.
RENUMBERED = ("Z_ENT", "Z_OPT")
REFERENCE = "ZAUTHOR"


class Found:
    """The rows of the store at a place and of the file of what was set aside, against the truth."""

    def __init__(self, damaged, path, aside=None):
        self.damaged, self.problem, self.tables = damaged, None, {}
        try:
            self.tables = readable(read(path)).tables
        except (sqlite3.DatabaseError, FileNotFoundError) as error:
            self.problem = str(error)
        self.aside = set_aside(aside)

    def count(self, table):
        return len(self.tables.get(table, {}))

    def is_aside(self, table, row):
        return any(same(row, one, table, None) for one in self.aside.get(table, []))

    def missing(self, table):
        """Keys of rows of which every byte was left, and that are neither in the store nor set aside."""
        found = self.tables.get(table, {})
        truth = self.damaged.truth.tables[table]
        return sorted(key for key in self.damaged.certain[table] if key not in found and not self.is_aside(table, truth[key]))

    def wrong(self, table):
        """Keys of rows that the store never held, or that have other values than they had."""
        return [key for key, row in self.tables.get(table, {}).items() if not self.is_right(table, key, row)]

    def is_right(self, table, key, row):
        versions = [self.damaged.truth] + ([self.damaged.also] if self.damaged.also else [])
        originals = [one.tables[table].get(key) for one in versions if table in one.tables]
        return any(one is not None and same(one, row, table, self.tables) for one in originals)

    def cut(self):
        """How many references of records that are there were cut."""
        truth = self.damaged.truth.tables.get("ZARTICLE", {})
        rows = self.tables.get("ZARTICLE", {})
        return sum(
            1 for key, row in rows.items()
            if key in truth and truth[key].get(REFERENCE) is not None and row.get(REFERENCE) is None)

    def is_whole(self, records):
        return not self.problem and all(
            self.count(table) == self.damaged.truth.count(table) and not self.wrong(table) for table in records.values())


def same(original, row, table, tables):
    """Whether a row has the values of the original; a reference to a record that is not there may be cut."""
    for column, value in original.items():
        if column in RENUMBERED or column not in row or row[column] == value:
            continue
        is_cut = table == "ZARTICLE" and column == REFERENCE and row[column] is None
        if not (is_cut and tables is not None and value not in tables.get("ZAUTHOR", {})):
            return False
    return True


def readable(files):
    """What SQLite reads of a copy of a store, once it has found nothing wrong with it."""
    if not files:
        raise FileNotFoundError("there is no store")
    with tempfile.TemporaryDirectory(prefix="lazaret-claims-") as folder:
        path = Path(folder) / "copy.sqlite"
        write(path, files)
        store = sqlite3.connect(path)
        try:
            found = [row[0] for row in store.execute("PRAGMA integrity_check(2)")]
        finally:
            store.close()
        if found != ["ok"]:
            raise sqlite3.DatabaseError(" ".join(" ".join(found).split())[:120])
        return Truth(path)


def set_aside(path):
    """The rows in a file of what is not part of a salvaged store, by table."""
    rows = {}
    if path and Path(path).is_file():
        store = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
        store.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            found = store.execute(f'SELECT * FROM "{name}"')
            columns = [one[0] for one in found.description]
            if name.startswith("lazaret_set_aside_"):
                columns = [plain_name(column) for column in columns]
                rows[plain_name(name.removeprefix("lazaret_set_aside_"))] = [dict(zip(columns, row)) for row in found]
        store.close()
    return rows


def digest(files):
    return {suffix: hashlib.sha256(data).hexdigest() for suffix, data in files.items() if data is not None}


def as_sqlite_leaves_it(files):
    """The main file after SQLite has opened and closed the store, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="lazaret-claims-") as folder:
        path = Path(folder) / "copy.sqlite"
        write(path, files)
        store = sqlite3.connect(path)
        store.execute("SELECT count(*) FROM sqlite_master").fetchone()
        store.close()
        return path.read_bytes()
