"""Stores whose main file is damaged or missing, with a log or a rollback journal: what is left is salvaged, and what is another's is not.

SQLite makes each store and every row carries a word of its own, so that a row tells which store it is of and of which time. Where
LAZARET_RECOVER names a sqlite3 that has `.recover`, as many rows come back as with it. Arguments: words of the names of the cases to try.
"""

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret

RECOVER = os.environ.get("LAZARET_RECOVER")
PAGE = 4096
HEAD = [
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSIZE INTEGER, ZTITLE VARCHAR, ZTEXT VARCHAR)",
    "CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZNOTE INTEGER, ZNAME VARCHAR)",
    "CREATE INDEX ZTAG_ZNOTE ON ZTAG (ZNOTE)"]
TABLES = ("ZNOTE", "ZTAG")


class Made:
    """A store in a folder: the rows that it has, those that its file has by itself and all that it ever had, by table."""

    def __init__(self, folder, name):
        self.path = folder / f"{name}.sqlite"
        self.now, self.filed, self.ever = {}, {}, {table: set() for table in TABLES}

    def note(self, db):
        for table in TABLES:
            rows = set(db.execute(f"SELECT * FROM {table}"))
            self.now[table] = rows
            self.ever[table] |= rows


def words(random, name):
    return f"{name} " + "".join(random.choices("abcdefghijkl mno", k=random.randrange(10, 120)))


def add(db, random, name, notes, tags):
    db.executemany(
        "INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZSIZE, ZTITLE, ZTEXT) VALUES (1, ?, ?, ?, ?)",
        [(random.randrange(1, 9), random.randrange(1 << 40), words(random, name), words(random, name)) for _ in range(notes)])
    db.executemany(
        "INSERT INTO ZTAG (Z_ENT, ZNOTE, ZNAME) VALUES (2, ?, ?)",
        [(random.randrange(1, notes), words(random, name)) for _ in range(tags)])


def change(db, random, name, share):
    last = db.execute("SELECT max(Z_PK) FROM ZNOTE").fetchone()[0]
    for key in random.sample(range(1, last + 1), int(last * share)):
        db.execute("UPDATE ZNOTE SET Z_OPT = Z_OPT + 1, ZTEXT = ? WHERE Z_PK = ?", (words(random, name), key))
    db.execute("DELETE FROM ZTAG WHERE Z_PK % 11 = 3")


def begin(path, name, mode):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size = {PAGE}")
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    for statement in HEAD:
        db.execute(statement)
    db.execute("INSERT INTO Z_METADATA VALUES (1, ?, NULL)", (f"{Counter(name)[name[0]]:08d}-0000-4000-8000-{sum(map(ord, name)):012d}",))
    return db


def first_rows(folder, name, seed, mode, notes, tags):
    """A store with its first rows: what is known of it, the source of its values, its file and a connection."""
    made, chosen = Made(folder, name), random.Random(f"{name} {seed}")
    work = folder / f"{name}-work.sqlite"
    db = begin(work, name, mode)
    db.execute("BEGIN")
    add(db, chosen, f"{name} first", notes, tags)
    db.execute("COMMIT")
    made.note(db)
    return made, chosen, work, db


def store_with_log(folder, name, seed, early):
    """A store of which one part of the rows is in the file and one in the log.

    With `early`, its log of before the last checkpoint too, as `NAME.sqlite-early`.
    """
    made, chosen, work, db = first_rows(folder, name, seed, "WAL", 600, 700)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for step, (share, notes) in enumerate([(0.05, 300), (0.05, 100), (0.1, 400)]):
        db.execute("BEGIN")
        change(db, chosen, f"{name} change {step}", share)
        add(db, chosen, f"{name} step {step}", notes, notes)
        db.execute("COMMIT")
        made.note(db)
        if step == 0 and early:
            shutil.copy(f"{work}-wal", f"{made.path}-early")
        if step < 2:
            made.filed = dict(made.now)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(work, made.path)
    shutil.copy(f"{work}-wal", f"{made.path}-wal")
    db.close()
    return made


def store_with_journal(folder, name, seed):
    """A store in the middle of a transaction of which much is in the file already; what is true is what was before."""
    made, chosen, work, db = first_rows(folder, name, seed, "DELETE", 900, 1200)
    made.filed = dict(made.now)
    shutil.copy(work, f"{made.path}-rest")
    db.execute("PRAGMA cache_size = 10")
    db.execute("PRAGMA cache_spill = 10")
    db.execute("BEGIN")
    change(db, chosen, f"{name} unfinished", 0.4)
    add(db, chosen, f"{name} unfinished", 300, 300)
    shutil.copy(work, made.path)
    shutil.copy(f"{work}-journal", f"{made.path}-journal")
    db.execute("ROLLBACK")
    db.close()
    return made


DAMAGES = {}


def damage(function):
    DAMAGES[function.__name__.replace("_", " ")] = function
    return function


@damage
def none(content, random):
    return content


@damage
def blank(content, random):
    return bytes(len(content))


@damage
def random_bytes(content, random):
    return random.randbytes(len(content))


@damage
def cut_to_a_tenth(content, random):
    return content[:len(content) // 10]


@damage
def most_pages_zeros(content, random):
    whole = bytearray(content)
    for page in range(len(content) // PAGE):
        if random.random() < 0.75:
            whole[page * PAGE:(page + 1) * PAGE] = bytes(PAGE)
    return bytes(whole)


@damage
def first_page_zeros(content, random):
    return bytes(PAGE) + content[PAGE:]


@damage
def empty(content, random):
    return b""


@damage
def missing(content, random):
    return None


def read(path):
    """The rows of the tables with the certainty of each, and all rows that were set aside, as multisets of their values."""
    db = sqlite3.connect(path)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    doubted = set()
    if "lazaret_evidence" in tables:
        doubted = {
            (table, key) for table, key in
            db.execute('SELECT "table", "row" FROM lazaret_provenance WHERE certainty <> \'certain\'')}
        pages = db.execute('SELECT "table", first_key, last_key FROM lazaret_pages WHERE certainty <> \'certain\'').fetchall()
        for table, first, last in pages:
            if table in TABLES:
                doubted |= {(table, key) for (key,) in db.execute(f'SELECT Z_PK FROM "{table}" WHERE Z_PK BETWEEN ? AND ?', (first, last))}
    found = {table: set(db.execute(f'SELECT * FROM "{table}"')) if table in tables else set() for table in TABLES}
    others = set()
    for table in tables:
        if "lost_and_found" in table:
            for row in db.execute(f'SELECT * FROM "{table}"'):
                others |= {value for value in row if isinstance(value, str)}
    db.close()
    certain = {table: {row for row in rows if (table, row[0]) not in doubted} for table, rows in found.items()}
    return found, certain, others


def recovered(folder):
    """What `.recover` gets out of the same files; nothing where it fails."""
    # Opening changes the files, and so a copy is read; its name tells the tool nothing else.
    with tempfile.TemporaryDirectory() as other:
        for file in folder.iterdir():
            shutil.copy(file, other)
        told = subprocess.run([RECOVER, Path(other) / "Store.sqlite", ".recover"], capture_output=True)
        out = Path(other) / "Recovered.sqlite"
        subprocess.run([RECOVER, out], input=told.stdout, capture_output=True)
        return read(out) if out.exists() else ({table: set() for table in TABLES}, None, set())


def count(truth, found, others):
    """How many rows of the truth are there, in their table or set aside."""
    return sum(len(truth[table] & found[table]) + sum(row[-1] in others for row in truth[table] - found[table]) for table in TABLES)


GONE = ("blank", "random bytes", "empty", "missing")


def check(kind, made, other, part, log, content, folder):
    """What is false about one case: `made` is whose file it is, `other` whose log or journal."""
    store, out = folder / "Store.sqlite", folder.parent / "Out.sqlite"
    if content is not None:
        store.write_bytes(content)
    shutil.copy(log, f"{store}-{part}")
    told = lazaret("salvage", store, "--raw", "-o", out, "--json")
    nothing = {table: set() for table in TABLES}
    is_own, is_early = made is other, log.name.endswith("-early")
    # Where nothing of the main file is left, a log is the store that it is of.
    owner = other if kind in GONE else made
    expected = owner.filed if is_early or not is_own and owner is made else owner.now
    found, certain, others = read(out) if out.exists() else (nothing, nothing, set())
    if not out.exists():
        yield f"nothing comes out: exit {told.code} {told.failure.get('code')}"
    for table in TABLES:
        foreign = certain[table] - owner.ever[table]
        stale = certain[table] & (owner.ever[table] - expected[table])
        if foreign:
            yield f"{table}: {len(foreign)} rows that the store never had are certain"
        # Of what time a log is shows only beside a file of another time.
        if stale and not (is_early and kind in GONE):
            yield f"{table}: {len(stale)} rows of before are certain"
    missing = sum(len(expected[table] - found[table]) for table in TABLES)
    if out.exists() and missing and told.code != 2:
        yield f"exit {told.code} where {missing} rows are missing"
    said = " ".join([*told.data.get("remarks", []), *(cause["words"] for cause in told.data.get("causes", []))])
    if out.exists() and (owner is not other or kind in GONE) and ("log" if part == "wal" else "journal") not in said:
        yield f"nothing is said of the {part}"
    if kind == "none" and missing:
        yield f"{missing} rows of a whole file are missing"
    if RECOVER and is_own:
        here = count(expected, found, others)
        theirs, _, others = recovered(folder)
        there = count(expected, theirs, others)
        if here < there:
            yield f"{here} rows, and {there} with .recover"


def cases(folder):
    """Every case: its name, whose file, whose log, the kind of log, the path of the file and that of the log."""
    own, sibling = (store_with_log(folder, name, 1, True) for name in ("Own", "Sibling"))
    yield "own log", own, own, "wal", own.path, Path(f"{own.path}-wal")
    yield "older log", own, own, "wal", own.path, Path(f"{own.path}-early")
    yield "sibling's log", own, sibling, "wal", own.path, Path(f"{sibling.path}-wal")
    held, other = (store_with_journal(folder, name, 2) for name in ("Held", "Other"))
    yield "own journal", held, held, "journal", held.path, Path(f"{held.path}-journal")
    yield "sibling's journal", held, other, "journal", Path(f"{held.path}-rest"), Path(f"{other.path}-journal")


def main(words):
    failed, tried = 0, 0
    with tempfile.TemporaryDirectory() as made_in:
        for name, made, other, part, main_file, log in cases(Path(made_in)):
            for kind, function in DAMAGES.items():
                if not all(word in f"{name}, {kind}" for word in words):
                    continue
                content, false = function(main_file.read_bytes(), random.Random(kind)), []
                with tempfile.TemporaryDirectory() as folder:
                    case = Path(folder) / "case"
                    case.mkdir()
                    false += check(kind, made, other, part, log, content, case)
                tried += 1
                failed += bool(false)
                for one in false:
                    print(f"FALSE {name}, {kind}: {one}")
    if not RECOVER:
        print("skipped: no sqlite3 with .recover is given by LAZARET_RECOVER, so nothing is compared with it")
    print(f"{failed} of {tried} stores with logs and journals are not salvaged as they should be")
    sys.exit(bool(failed) or tried == 0)


main(sys.argv[1:])
