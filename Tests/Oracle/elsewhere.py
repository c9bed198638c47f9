"""Stores with pages of before, pages of a sibling and a sibling's journal: no row is certain that something in the store contradicts.

SQLite makes each store, and every row carries words of its own, so that a row tells which store and which time it is of. A row that is
false and certain counts where the store has evidence against it: SQLite reads the same damaged pages and says which rows an index that it
can read whole does not list, or lists otherwise, and which keys are above their counter. What nothing contradicts is told apart and is
no defect: a page of before whose keys and indexed values are as the indexes have them cannot be told from the present one.
Arguments: --seed N, paths of stores to try instead of those that are made, and words of the names of the cases to try.
"""

import random
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret

SHARE = 0.1
SECONDS = 30


def words(chosen, name):
    return f"{name} " + "".join(chosen.choices("abcdefghijkl mno", k=chosen.randrange(10, 90)))


class CoreData:
    """Notes and persons with indexes on a reference, a key and a title, tags with none but their counter."""

    head = [
        "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
        "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
        "CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZOWNER INTEGER, ZTITLE VARCHAR, ZTEXT VARCHAR)",
        "CREATE TABLE ZPERSON (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR)",
        "CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZLABEL VARCHAR)",
        "CREATE INDEX ZNOTE_ZOWNER_INDEX ON ZNOTE (ZOWNER)",
        "CREATE INDEX ZNOTE_TITLE_INDEX ON ZNOTE (ZTITLE, Z_ENT)",
        "CREATE INDEX ZPERSON_NAME_INDEX ON ZPERSON (ZNAME)"]
    entities = {"ZPERSON": 1, "ZNOTE": 2, "ZTAG": 3}
    tables = tuple(entities)

    def begin(self, db, name):
        for statement in self.head:
            db.execute(statement)
        db.execute("INSERT INTO Z_METADATA VALUES (1, ?, NULL)", (f"{sum(map(ord, name)):08d}-0000-4000-8000-000000000000",))
        db.executemany("INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, 0)", [(number, table[1:].capitalize()) for table, number in self.entities.items()])

    def add(self, db, chosen, name, count):
        people = db.execute("SELECT coalesce(max(Z_PK), 0) FROM ZPERSON").fetchone()[0] + count // 4
        db.executemany("INSERT INTO ZPERSON (Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, ?)", [(words(chosen, name),) for _ in range(count // 4)])
        db.executemany(
            "INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZOWNER, ZTITLE, ZTEXT) VALUES (2, 1, ?, ?, ?)",
            [(chosen.randrange(1, people + 1), words(chosen, name), words(chosen, name)) for _ in range(count)])
        db.executemany("INSERT INTO ZTAG (Z_ENT, Z_OPT, ZLABEL) VALUES (3, 1, ?)", [(words(chosen, name),) for _ in range(count // 2)])
        for table, number in self.entities.items():
            db.execute(f"UPDATE Z_PRIMARYKEY SET Z_MAX = max(Z_MAX, (SELECT max(Z_PK) FROM {table})) WHERE Z_ENT = ?", (number,))

    def change(self, db, chosen, name, share):
        keys = [key for (key,) in db.execute("SELECT Z_PK FROM ZNOTE")]
        for key in chosen.sample(keys, int(len(keys) * share)):
            db.execute("UPDATE ZNOTE SET Z_OPT = Z_OPT + 1, ZTITLE = ?, ZTEXT = ? WHERE Z_PK = ?", (words(chosen, name), words(chosen, name), key))
        for key in chosen.sample(keys, int(len(keys) * share / 2)):
            db.execute("DELETE FROM ZNOTE WHERE Z_PK = ?", (key,))
        db.execute("UPDATE ZPERSON SET ZNAME = ZNAME || ' ' || ? WHERE Z_PK % 9 = 1", (name,))
        db.execute("DELETE FROM ZTAG WHERE Z_PK % 13 = 5")


class Plain:
    """Tables of an app without Core Data: AUTOINCREMENT, a unique index, an index of two columns, and a table without any."""

    head = [
        "CREATE TABLE person (id INTEGER PRIMARY KEY AUTOINCREMENT, mail TEXT UNIQUE, name TEXT)",
        "CREATE TABLE letter (id INTEGER PRIMARY KEY AUTOINCREMENT, person INTEGER REFERENCES person (id), sent REAL, body TEXT)",
        "CREATE TABLE remark (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)",
        "CREATE INDEX letters ON letter (person, sent)"]
    tables = ("person", "letter", "remark")

    def begin(self, db, name):
        for statement in self.head:
            db.execute(statement)

    def add(self, db, chosen, name, count):
        people = db.execute("SELECT coalesce(max(id), 0) FROM person").fetchone()[0] + count // 4
        db.executemany(
            "INSERT INTO person (mail, name) VALUES (?, ?)", [(f"{name}-{chosen.random()}", words(chosen, name)) for _ in range(count // 4)])
        db.executemany(
            "INSERT INTO letter (person, sent, body) VALUES (?, ?, ?)",
            [(chosen.randrange(1, people + 1), chosen.randrange(10**6) / 4, words(chosen, name)) for _ in range(count)])
        db.executemany("INSERT INTO remark (body) VALUES (?)", [(words(chosen, name),) for _ in range(count // 2)])

    def change(self, db, chosen, name, share):
        keys = [key for (key,) in db.execute("SELECT id FROM letter")]
        for key in chosen.sample(keys, int(len(keys) * share)):
            db.execute("UPDATE letter SET sent = sent + 1, body = ? WHERE id = ?", (words(chosen, name), key))
        for key in chosen.sample(keys, int(len(keys) * share / 2)):
            db.execute("DELETE FROM letter WHERE id = ?", (key,))
        db.execute("UPDATE person SET mail = mail || '+', name = name || ? WHERE id % 9 = 1", (name,))
        db.execute("DELETE FROM remark WHERE id % 13 = 5")


class Adopted:
    """A store that others made; of its tables those whose rows have a key of their own."""

    def __init__(self, path):
        self.path = path
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        self.tables = []
        for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
            columns = db.execute(f'PRAGMA table_info("{name}")').fetchall()
            if sum(column[5] for column in columns) == 1 and any(column[5] and column[2].upper() == "INTEGER" for column in columns) \
                    and "VIRTUAL" not in sql.upper() and not name.startswith(("Z_", "A")):
                self.tables.append(name)
        db.close()

    def change(self, db, chosen, name, share):
        for trigger, in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{trigger}"')
        for table in self.tables:
            columns = [column[1] for column in db.execute(f'PRAGMA table_info("{table}")') if not column[5] and column[2].upper() in ("VARCHAR", "TEXT")]
            for number, column in enumerate(columns):
                db.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = "{column}" || ? WHERE rowid % 10 = ?', (name, number % 10))
            db.execute(f'DELETE FROM "{table}" WHERE rowid % 17 = 4')


class Version:
    """A store at one time: its file, and its rows by table and key."""

    def __init__(self, path, tables):
        self.path = path
        db = sqlite3.connect(path)
        self.rows = {table: {row[0]: row for row in db.execute(f'SELECT rowid, * FROM "{table}"')} for table in tables}
        self.page = db.execute("PRAGMA page_size").fetchone()[0]
        db.close()

    def pages(self):
        content = self.path.read_bytes()
        return [content[start:start + self.page] for start in range(0, len(content), self.page)]


def made(kind, folder, name, seed):
    """A store before and after a change, and its rollback journal in the middle of another one."""
    chosen = random.Random(f"{name} {seed}")
    work = folder / f"{name}.sqlite"
    if isinstance(kind, Adopted):
        shutil.copy(kind.path, work)
    db = sqlite3.connect(work, isolation_level=None)
    db.execute("PRAGMA journal_mode = DELETE")
    if not isinstance(kind, Adopted):
        db.execute("PRAGMA page_size = 4096")
        db.execute("BEGIN")
        kind.begin(db, name)
        kind.add(db, chosen, f"{name} first", 900 + chosen.randrange(300))
        db.execute("COMMIT")
    versions = []
    for step in range(2):
        copy = folder / f"{name}-{step}.sqlite"
        db.execute("BEGIN")
        kind.change(db, chosen, f"{name} change {step}", 0.1)
        if not isinstance(kind, Adopted):
            kind.add(db, chosen, f"{name} step {step}", 100)
        db.execute("COMMIT")
        shutil.copy(work, copy)
        versions.append(Version(copy, kind.tables))
    journal = folder / f"{name}-journal"
    db.execute("PRAGMA cache_size = 5")
    db.execute("PRAGMA cache_spill = 5")
    db.execute("BEGIN")
    kind.change(db, chosen, f"{name} unfinished", 0.4)
    shutil.copy(f"{work}-journal", journal)
    db.execute("ROLLBACK")
    db.close()
    return (*versions, journal)


def is_leaf(page):
    return page[:1] == b"\x0d"


def replaced(now, other, chosen, is_wanted=lambda page: True, share=SHARE):
    """The pages of a store, a share of them replaced by those of another at the same places; never the first."""
    pages, others = now.pages(), other.pages()
    places = [place for place in range(1, min(len(pages), len(others))) if pages[place] != others[place] and is_wanted(pages[place])]
    for place in chosen.sample(places, min(len(places), max(1, int(share * len(pages))))):
        pages[place] = others[place]
    return b"".join(pages)


def shifted(now, other, chosen):
    """The pages of a store, a share of them replaced by pages of another of other places."""
    pages, others = now.pages(), other.pages()
    for place in chosen.sample(range(1, len(pages)), max(1, int(SHARE * len(pages)))):
        pages[place] = chosen.choice(others[1:])
    return b"".join(pages)


DAMAGES = {
    "nothing": lambda before, now, sibling, chosen: now.path.read_bytes(),
    "pages of before": lambda before, now, sibling, chosen: replaced(now, before, chosen),
    "leaves of before": lambda before, now, sibling, chosen: replaced(now, before, chosen, is_leaf),
    "one leaf of before": lambda before, now, sibling, chosen: replaced(now, before, chosen, is_leaf, 0),
    "pages of a sibling": lambda before, now, sibling, chosen: replaced(now, sibling, chosen),
    "leaves of a sibling": lambda before, now, sibling, chosen: replaced(now, sibling, chosen, is_leaf),
    "a sibling's pages at other places": lambda before, now, sibling, chosen: shifted(now, sibling, chosen),
    "a sibling's journal": lambda before, now, sibling, chosen: now.path.read_bytes()}


def read(path, tables):
    """The rows of tables, and the keys of those that are not certain."""
    db = sqlite3.connect(path)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    rows = {table: {row[0]: row for row in db.execute(f'SELECT rowid, * FROM "{table}"')} if table in there else {} for table in tables}
    doubted = {table: set() for table in tables}
    for table, key in db.execute('SELECT "table", "row" FROM lazaret_provenance WHERE certainty <> \'certain\''):
        doubted.get(table, set()).add(key)
    for table, first, last in db.execute('SELECT "table", first_key, last_key FROM lazaret_pages WHERE certainty <> \'certain\''):
        if table in doubted:
            doubted[table] |= {key for key in rows[table] if first <= key <= last}
    db.close()
    return rows, doubted


def is_sound(path):
    """Whether SQLite finds nothing wrong with a store."""
    db = sqlite3.connect(path)
    try:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except sqlite3.DatabaseError:
        return False
    finally:
        db.close()


def contradicted(path, tables, rows):
    """The keys of rows that something in the damaged store contradicts, as SQLite reads it."""
    db = sqlite3.connect(path)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    found = {table: set() for table in tables}

    def answer(sql):
        try:
            return db.execute(sql).fetchall()
        except sqlite3.DatabaseError:
            return None

    for table in tables:
        for _, index, _, origin, partial in answer(f'PRAGMA index_list("{table}")') or []:
            columns = [column[2] for column in answer(f'PRAGMA index_info("{index}")') or []]
            if partial or origin == "pk" or None in columns or not columns:
                continue
            listed = ", ".join(f'"{column}"' for column in columns)
            entries = answer(f'SELECT rowid, {listed} FROM "{table}" INDEXED BY "{index}"')
            everything = [column[1] for column in answer(f'PRAGMA table_info("{table}")') or []]
            if entries is None or not everything:
                continue
            entries = set(entries)
            places = [1 + everything.index(column) for column in columns]
            found[table] |= {key for key, row in rows[table].items() if (key, *(row[place] for place in places)) not in entries}
        for sql in (f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
                    f"SELECT Z_MAX FROM Z_PRIMARYKEY WHERE 'Z' || upper(Z_NAME) = '{table}' AND Z_MAX > 0"):
            for (limit,) in answer(sql) or []:
                found[table] |= {key for key in rows[table] if isinstance(limit, int) and key > limit}
    db.close()
    return found


def check(kind, before, now, sibling, damage, chosen, folder, verbose):
    """What is false about one case, and how many rows are false though nothing contradicts them."""
    store, out = folder / "Store.sqlite", folder / "Out.sqlite"
    store.write_bytes(DAMAGES[damage](before, now, sibling[1], chosen))
    if damage == "a sibling's journal":
        shutil.copy(sibling[2], f"{store}-journal")
    told = lazaret("salvage", store, "--raw", "-o", out, "--json")
    if not out.exists():
        return [f"nothing comes out: exit {told.code} {told.failure.get('code')}"], 0, 0, 0
    rows, doubted = read(out, kind.tables)
    alone = folder / "Alone.sqlite"
    shutil.copy(store, alone)
    against = contradicted(alone, kind.tables, rows)
    seems_sound = is_sound(alone)
    faults, hidden, marked, total = [], 0, 0, 0
    for table in kind.tables:
        false = {key for key, row in rows[table].items() if now.rows[table].get(key) != row}
        certain = false - doubted[table]
        seen = certain & against[table]
        hidden += len(certain - seen)
        marked += len(doubted[table] & set(rows[table]))
        total += len(rows[table])
        if seen:
            faults.append(f"{table}: {len(seen)} of {len(false)} false rows are certain against the evidence, such as {sorted(seen)[:4]}")
        missing = len(now.rows[table].keys() - rows[table].keys())
        if damage == "nothing" and (missing or false or doubted[table]):
            faults.append(f"{table}: of a sound store {missing} rows are missing, {len(false)} are false, {len(doubted[table])} not certain")
        if (missing or false) and told.code == 0 and not seems_sound:
            faults.append(f"{table}: exit 0 where {missing} rows are missing and {len(false)} are false")
    entries = [entity for entity in told.data.get("entities", []) if entity["recovered"] < entity["doubtful"]]
    if entries:
        faults.append("more rows are doubtful than were recovered")
    if damage == "nothing" and told.code != 0:
        faults.append(f"exit {told.code} for a sound store")
    if damage == "a sibling's journal" and not any("journal" in text for text in [
            *told.data.get("remarks", []), *(cause["words"] for cause in told.data.get("causes", []))]):
        faults.append("nothing is said of the journal")
    return faults, hidden, marked, total


def main(arguments):
    seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else 1
    if "--seed" in arguments:
        del arguments[arguments.index("--seed"):arguments.index("--seed") + 2]
    verbose = "--verbose" in arguments
    wanted = [one for one in arguments if not one.startswith("--") and "/" not in one]
    kinds = {Path(one).parent.name: Adopted(Path(one)) for one in arguments if "/" in one} or {"Core Data": CoreData(), "plain": Plain()}
    failed, tried, hidden, started = 0, 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lazaret-oracle-") as folder:
        for name, kind in kinds.items():
            place = Path(folder) / f"{len(list(Path(folder).iterdir()))}"
            place.mkdir()
            before, now, _ = made(kind, place, "Own", seed)
            sibling = made(kind, place, "Sibling", seed)
            for damage in DAMAGES:
                if not all(word in f"{name}, {damage}" for word in wanted) or time.monotonic() - started > SECONDS and len(kinds) < 3:
                    continue
                work = place / damage
                work.mkdir()
                faults, unseen, marked, total = check(kind, before, now, sibling, damage, random.Random(f"{damage} {seed}"), work, verbose)
                tried += 1
                failed += bool(faults)
                hidden += unseen
                if verbose:
                    print(f"{name}, {damage}: {total} rows, {marked} not certain, {unseen} false that nothing contradicts")
                for one in faults:
                    print(f"FALSE {name}, {damage} (seed {seed}): {one}")
    print(f"{hidden} rows are of elsewhere or of before and nothing in the store contradicts them")
    print(f"{failed} of {tried} stores with pages of elsewhere and of before have rows that are certain and should not be")
    sys.exit(bool(failed) or tried == 0)


main(sys.argv[1:])
