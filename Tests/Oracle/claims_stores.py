"""Small sound stores with the truth about them: every row with its values, and the pages that it lies on. A part of claims.py.

A Core Data store is an empty one that the tool made, filled with SQLite; a plain one is SQLite's alone.
"""

import os
import plistlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from claims_pages import PageMap
from models import Version, attribute, empty_store, entity, relationship, write_model

WORDS = (
    "anchor barrel cabin deck easel ferry galley harbour island jetty keel lantern mast needle oar pilot quay rudder sail "
    "tide urchin vessel wharf yard zephyr").split()
SUFFIXES = ("", "-wal", "-shm", "-journal")
# Core Data's own tables, and those of relationships, hold no records.
RECORDS = {"Album": "ZALBUM", "Article": "ZARTICLE", "Author": "ZAUTHOR", "Draft": "ZDRAFT", "Mood": "ZMOOD", "Tag": "ZTAG"}

PLAIN = """
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, payload BLOB, note TEXT);
CREATE TABLE events (at INTEGER, kind TEXT, data TEXT);
CREATE TABLE pairs (a TEXT, b INTEGER, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE drafts (id INTEGER PRIMARY KEY, text TEXT);
CREATE INDEX items_by_name ON items (name);
"""
PLAIN_LATER = PLAIN.replace("note TEXT)", "note TEXT, colour TEXT)") + """
CREATE TABLE labels (id INTEGER PRIMARY KEY, name TEXT);
"""


def text(chance, words):
    return " ".join(chance.choices(WORDS, k=words))


def articles(*more):
    return entity(
        "Article", "title", "body", attribute("rating", "Integer 32"), attribute("created", "Date"),
        attribute("image", "Binary"), relationship("author", "Author", "articles"),
        relationship("tags", "Tag", "articles", to_many=True), *more)


def versions():
    others = (
        entity("Author", "name", relationship("articles", "Article", "author", to_many=True)), entity("Draft", "text"),
        entity("Tag", "name", relationship("articles", "Article", "tags", to_many=True)))
    subtitle, mood, album = attribute("subtitle"), attribute("mood"), entity("Album", "name")
    # The first of the entities is new, so that all others get other numbers and every record is written anew.
    return [
        Version("V1", articles(), *others), Version("V2", album, articles(subtitle), *others),
        Version("V3", album, articles(subtitle, mood), *others, entity("Mood", "name"))]


class Models:
    """The models of all cells, and an empty store of each version."""

    def __init__(self, folder):
        all_versions = versions()
        self.app = write_model(folder / "App.xcdatamodeld", all_versions[:2], "V2")
        self.other = write_model(
            folder / "Other.xcdatamodeld", [Version("O1", entity("Planet", "name"), entity("Moon", "name"))], "O1")
        self.empty = {}
        for version in all_versions:
            alone = write_model(folder / version.name / "App.xcdatamodeld", [version], version.name)
            self.empty[version.name] = folder / version.name / "empty.sqlite"
            empty_store(alone, self.empty[version.name])
        self.schema, self.later = folder / "App.sql", folder / "Later.sql"
        self.schema.write_text(PLAIN)
        self.later.write_text(PLAIN_LATER)


def plain_name(name):
    """The name of a relationship's table or column without the number of its entity, which differs from version to version."""
    return re.sub(r"^Z_\d+(?=[A-Z])", "Z_", name)


class Truth:
    """Every row of every table of a database: its values by column, under its primary key.

    Tables and columns of relationships go without the numbers of their entities; names: what they are called in the store.
    alike: the tables that have two columns of one type, which only the definition of the table tells apart.
    """

    def __init__(self, path):
        store = sqlite3.connect(path)
        store.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        self.tables, self.names, self.schema, self.alike = {}, {}, [], set()
        try:
            for name, root, kind, script in store.execute("SELECT name, rootpage, type, sql FROM sqlite_master ORDER BY name"):
                without = kind == "table" and "WITHOUT ROWID" in (script or "").upper()
                if root:
                    self.schema.append((name, root, kind == "index" or without))
                if kind == "table" and root:
                    self.names[plain_name(name)] = name
                    self.tables[plain_name(name)] = rows_of(store, name, without)
                    columns = "SELECT upper(type) FROM pragma_table_info(?) WHERE NOT pk AND name NOT IN ('Z_ENT', 'Z_OPT')"
                    types = store.execute(columns, (name,)).fetchall()
                    if len(set(types)) < len(types):
                        self.alike.add(plain_name(name))
        finally:
            store.close()

    def count(self, table):
        return len(self.tables.get(table, {}))


def rows_of(store, name, without_rowid):
    """The rows of a table by their keys: its primary key, or all values (and how many equal ones came before) without one."""
    info = store.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
    columns = [column for column, _, _ in info]
    keys = [one for one in sorted(info, key=lambda one: one[2]) if one[2]]
    is_rowid = not without_rowid and len(keys) == 1 and keys[0][1].upper() == "INTEGER"
    chosen = ",".join(f'"{column}"' for column in columns)
    if without_rowid:
        order = "ORDER BY " + ",".join(f'"{column}"' for column, _, _ in keys)
    else:
        order = "NOT INDEXED"
    places = [columns.index(column) for column, _, _ in keys] or range(len(columns))
    rows, seen = {}, Counter()
    for row in store.execute(f'SELECT {chosen} FROM "{name}" {order}'):
        key = row[places[0]] if is_rowid else tuple(row[place] for place in places)
        if not keys:
            seen[key] += 1
            key += (seen[key],)
        rows[key] = dict(zip(map(plain_name, columns), row))
    return rows


class Sound:
    """A store that nothing is wrong with.

    files: its bytes by suffix; truth: what SQLite reads; base: what the main file alone holds at rest; pages: where that is.
    records: the tables that hold records by the name of what they are records of.
    """

    def __init__(self, kind, files, truth, base, pages):
        self.kind, self.files, self.truth, self.base, self.pages = kind, files, truth, base, pages
        if kind == "plain":
            self.records = {name: name for name in base.tables}
        else:
            self.records = {name: table for name, table in RECORDS.items() if table in base.tables}

    @property
    def main_table(self):
        return "items" if self.kind == "plain" else "ZARTICLE"

    def locations(self, table):
        """The rows of a table with where they are, by their keys."""
        tree = self.pages.trees[self.base.names[table]]
        return dict(zip(self.base.tables[table], tree.rows))


def read(path):
    return {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in SUFFIXES if os.path.isfile(f"{path}{suffix}")}


def write(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, data in files.items():
        if data is not None:
            Path(f"{path}{suffix}").write_bytes(data)


class Factory:
    """Makes sound stores of a version and a state, and keeps them."""

    def __init__(self, folder, models, seed, articles=300, page_size=4096):
        self.folder, self.models, self.seed = folder, models, seed
        self.articles, self.page_size, self.made = articles, page_size, {}

    def make(self, version, state):
        """version: that of the model, or `plain`; state: `rest`, `aged`, `log`, `all in the log` or `journal`."""
        if (version, state) not in self.made:
            self.made[version, state] = self._make(version, state)
        return self.made[version, state]

    def _make(self, version, state):
        place = self.folder / f"{version} {state}"
        place.mkdir(parents=True)
        work = place / "work.sqlite"
        chance = random.Random(f"{self.seed} {version}")
        is_plain = version == "plain"
        if is_plain:
            store = sqlite3.connect(work, isolation_level=None)
            store.execute(f"PRAGMA page_size = {self.page_size}")
            store.executescript(PLAIN)
            fill = fill_plain
        else:
            shutil.copyfile(self.models.empty[version], work)
            store = sqlite3.connect(work, isolation_level=None)
            fill = fill_core_data
        store.execute("BEGIN")
        fill(store, chance, self.articles, version)
        store.execute("COMMIT")
        store.execute("PRAGMA journal_mode = DELETE")
        store.execute(f"PRAGMA page_size = {self.page_size}")
        # Keys have gaps, and nothing is free; only an aged store has rows that the app deleted in its free pages.
        store.execute("VACUUM")
        if state == "aged":
            table, key = ("items", "id") if is_plain else ("ZARTICLE", "Z_PK")
            least, = store.execute(f"SELECT max({key}) * 2 / 3 FROM {table}").fetchone()
            store.execute(f"DELETE FROM {table} WHERE {key} BETWEEN ? AND ?", (least, least + self.articles // 5))
            if not is_plain:
                join, columns = pairs_of(store)
                store.execute(f"DELETE FROM {join} WHERE {columns[0]} NOT IN (SELECT Z_PK FROM ZARTICLE)")
        if not is_plain and state != "journal":
            store.execute("PRAGMA journal_mode = WAL")
        store.close()
        base = Truth(work)
        data = work.read_bytes()
        pages = PageMap(data, base.schema)
        files, truth = {"": data}, base
        if state in ("log", "all in the log"):
            files = self._logged(work, state, chance, is_plain)
            truth = self._truth(place, files)
        elif state == "journal":
            files = self._interrupted(work, is_plain)
            truth = self._truth(place, files)
        return Sound("plain" if is_plain else "core-data", files, truth, base, pages)

    def _truth(self, place, files):
        """What SQLite reads of a copy of the files."""
        write(place / "read.sqlite", files)
        return Truth(place / "read.sqlite")

    def _logged(self, work, state, chance, is_plain):
        store = sqlite3.connect(work, isolation_level=None)
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("PRAGMA wal_autocheckpoint = 0")
        if state == "all in the log":
            store.execute("VACUUM")
        for round in range(6):
            store.execute("BEGIN")
            if is_plain:
                store.executemany("INSERT INTO items (name, note) VALUES (?, ?)", [
                    (f"late {round} {number}", text(chance, 12)) for number in range(8)])
                store.execute("UPDATE items SET note = 'changed late' WHERE id % 50 = ?", (round,))
            else:
                number, last = store.execute("SELECT Z_ENT, Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Article'").fetchone()
                store.executemany("INSERT INTO ZARTICLE (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZBODY) VALUES (?, ?, 1, ?, ?)", [
                    (last + 1 + each, number, f"late {round} {each}", text(chance, 12)) for each in range(8)])
                store.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 8 WHERE Z_NAME = 'Article'")
                store.execute("UPDATE ZARTICLE SET ZTITLE = 'changed late', Z_OPT = Z_OPT + 1 WHERE Z_PK % 50 = ?", (round,))
            store.execute("COMMIT")
        files = read(work)
        files.pop("-shm", None)
        store.close()
        return files

    def _interrupted(self, work, is_plain):
        """A store whose transaction ended half-way: some of its pages are in the file, and the journal undoes them."""
        store = sqlite3.connect(work, isolation_level=None)
        store.execute("PRAGMA cache_size = 5")
        store.execute("PRAGMA synchronous = FULL")
        store.execute("BEGIN")
        store.execute(
            "UPDATE items SET note = note || ' never committed'" if is_plain
            else "UPDATE ZARTICLE SET ZTITLE = ZTITLE || ' never committed'")
        files = read(work)
        store.execute("ROLLBACK")
        store.close()
        return files


def pairs_of(store):
    """The table of the relationship from articles to tags, and its columns in this order."""
    join, = next(store.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*'"))
    columns = [name for (name,) in store.execute("SELECT name FROM pragma_table_info(?)", (join,))]
    return join, sorted(columns, key=lambda name: "ARTICLES" not in name)


def body(chance, number):
    if number % 50 == 7:
        return text(chance, 2000)
    return None if chance.random() < 0.1 else text(chance, chance.randint(15, 60))


def fill_core_data(store, chance, count, version):
    columns = {name for (name,) in store.execute("SELECT name FROM pragma_table_info('ZARTICLE')")}
    numbers = dict(store.execute("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY"))
    authors, tags = 24, 15
    store.executemany("INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, ?, 1, ?)", [
        (key, numbers["Author"], f"author {key} {text(chance, 8)}") for key in range(1, authors + 1)])
    store.executemany("INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, ?, 1, ?)", [
        (key, numbers["Tag"], f"tag {key}") for key in range(1, tags + 1)])
    keys = [key for key in range(1, count * 21 // 20) if key % 20 != 3]
    for key in keys:
        record = {
            "Z_PK": key, "Z_ENT": numbers["Article"], "Z_OPT": chance.randint(1, 9), "ZTITLE": f"title {key} {text(chance, 4)}",
            "ZBODY": body(chance, key), "ZRATING": chance.randint(1, 1000), "ZCREATED": 6e8 + key + 0.25,
            "ZIMAGE": chance.randbytes(7000) if key % 97 == 5 else None, "ZAUTHOR": chance.randint(1, authors)}
        if "ZSUBTITLE" in columns:
            record["ZSUBTITLE"] = text(chance, 3)
        if "ZMOOD" in columns:
            record["ZMOOD"] = "calm"
        marks = ",".join("?" * len(record))
        store.execute(f"INSERT INTO ZARTICLE ({','.join(record)}) VALUES ({marks})", tuple(record.values()))
    if "Mood" in numbers:
        store.executemany("INSERT INTO ZMOOD (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, ?, 1, ?)", [
            (key, numbers["Mood"], f"mood {key}") for key in range(1, 8)])
    join, columns = pairs_of(store)
    store.executemany(f"INSERT OR IGNORE INTO {join} ({','.join(columns)}) VALUES (?, ?)", [
        (chance.choice(keys), chance.randint(1, tags)) for _ in range(count)])
    for name in numbers:
        store.execute(
            f"UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT coalesce(max(Z_PK), 0) FROM Z{name.upper()}) WHERE Z_NAME = ?", (name,))


def fill_plain(store, chance, count, version):
    store.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", [
        (key, f"item {key} {text(chance, 3)}", key + 0.5, chance.randbytes(7000 if key % 97 == 5 else 20), body(chance, key))
        for key in range(1, count * 21 // 20) if key % 20 != 3])
    store.executemany("INSERT INTO events VALUES (?, ?, ?)", [
        (1_700_000_000 + number, chance.choice(WORDS), text(chance, 10)) for number in range(count // 2)])
    store.executemany("INSERT INTO pairs VALUES (?, ?, ?)", [
        (f"{chance.choice(WORDS)} {number}", number, text(chance, 5)) for number in range(count // 2)])


def bench_store(folder, seed):
    """A sound store of the bench's own generator, with its model and the history of that; None where there is no bench."""
    bench = Path(os.environ.get("LAZARET_BENCH") or Path(__file__).resolve().parents[2].parent / "shared" / "bench")
    if not (bench / "gen.py").is_file():
        return None
    subprocess.run(
        [sys.executable, bench / "gen.py", "--kind", "coredata", "--rows", "900", "--seed", str(seed), "--out", folder],
        check=True, stdout=subprocess.DEVNULL)
    base, data = Truth(folder / "store.sqlite"), (folder / "store.sqlite").read_bytes()
    sound = Sound("core-data", {"": data}, base, base, PageMap(data, base.schema))
    # The last version lacks an attribute, so that values are lost on the way to it; the one before only adds and renames.
    history = folder / "BenchHistory.xcdatamodeld"
    shutil.rmtree(history / "Bench 3.xcdatamodel")
    (history / ".xccurrentversion").write_bytes(plistlib.dumps({"_XCCurrentVersionName": "Bench 2.xcdatamodel"}))
    return sound, folder / "Bench.xcdatamodel", history
