"""Sound stores with everything that SQLite lets stand in a table: each comes back whole from `salvage --raw`.

SQLite makes each store and says that it is sound; every value is compared with its storage class; what SQLite
converts or refuses in a rebuilt store is beside it as it stood. So are the definitions of tables,
indexes, views and triggers where the store is rebuilt; `--raw` keeps the rows and not the constraints, but virtual tables work there too.
Arguments: words of the names of the stores to try.
"""

import collections
import random
import re
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret
from values import opened, quoted_rows

STORES = {}


def store(name, page_size=4096, encoding="UTF-8", auto_vacuum=0, reserved=0):
    """Registers what makes a store."""
    def register(make):
        STORES[name] = (make, page_size, encoding, auto_vacuum, reserved)
        return make
    return register


def rows(random, count, *kinds):
    """Rows of values of kinds."""
    def value(kind):
        return {
            "n": lambda: None, "i": lambda: random.randrange(-2**40, 2**40), "s": lambda: random.randrange(200),
            "r": lambda: random.random() * 1e6, "t": lambda: "".join(random.choices("abcdefgh äöü", k=random.randrange(1, 40))),
            "b": lambda: random.randbytes(random.randrange(1, 40)), "l": lambda: random.randbytes(random.randrange(5_000, 20_000)),
            "e": lambda: ""}[kind]()
    return [tuple(value(random.choice(kind)) for kind in kinds) for _ in range(count)]


def redeclare(db, table, old, new):
    """Changes the declaration of a table that has rows already, as an app does that writes to the schema."""
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?", (old, new, table))
    (version,) = db.execute("PRAGMA schema_version").fetchone()
    db.execute(f"PRAGMA schema_version = {version + 1}")
    db.execute("PRAGMA writable_schema = OFF")


def redeclared(db, columns, values, declared):
    """A table whose columns are declared differently once it has rows of these values."""
    names = [column.split()[0] for column in columns.split(", ")]
    db.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})")
    db.executemany(f"INSERT INTO t ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)})", values)
    redeclare(db, "t", columns, declared)


@store("any class in any column")
def any_class(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC, x)")
    db.executemany("INSERT INTO t (i, r, t, b, n, x) VALUES (?, ?, ?, ?, ?, ?)", rows(random, 400, "nistrb", "irtb", "tbn", "tirbn", "tb", "nirtbe"))


@store("classes that the declaration forbids, everywhere")
def forbidden(db, random):
    redeclared(db, "a BLOB, c BLOB, d BLOB", rows(random, 500, "i", "r", "in"), "a TEXT, c TEXT NOT NULL, d TEXT")


@store("classes that the declaration forbids, in most rows")
def mostly_forbidden(db, random):
    redeclared(db, "a BLOB, b BLOB", rows(random, 500, "iiit", "tttr"), "a TEXT, b TEXT")


@store("texts in a column of Core Data's for data")
def core_data_history(db, random):
    db.execute("CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)")
    db.execute("CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)")
    db.execute("INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 0, 400)")
    db.execute("INSERT INTO Z_METADATA VALUES (1, '00000000-0000-4000-8000-000000000000', NULL)")
    db.execute(
        "CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZORDER INTEGER, ZDATE TIMESTAMP, ZUUID BLOB, ZTITLE VARCHAR)")
    db.executemany("INSERT INTO ZNOTE VALUES (NULL, 1, ?, ?, ?, ?, ?)", rows(random, 400, "s", "t", "ti", "tib", "tb"))


@store("NULL where the declaration forbids it")
def nulls(db, random):
    declared = "a TEXT NOT NULL DEFAULT '', b INTEGER NOT NULL DEFAULT 7"
    redeclared(db, "a TEXT, b INTEGER", rows(random, 300, "nt", "ni"), declared)


@store("STRICT with ANY")
def strict(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a ANY, i INT, r REAL, t TEXT, b BLOB) STRICT")
    db.executemany("INSERT INTO t (a, i, r, t, b) VALUES (?, ?, ?, ?, ?)", rows(random, 400, "nirtb", "in", "rn", "tn", "bn"))
    db.execute("CREATE TABLE w (k TEXT PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID")
    db.executemany("INSERT INTO w VALUES (?, ?)", [(f"k{number}", row[0]) for number, row in enumerate(rows(random, 300, "nirtb"))])


@store("columns that were added later")
def added(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    db.executemany("INSERT INTO t (a) VALUES (?)", rows(random, 150, "t"))
    db.execute("ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 5")
    db.executemany("INSERT INTO t (a, b) VALUES (?, ?)", rows(random, 150, "t", "i"))
    db.execute("ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'later'")
    db.executemany("INSERT INTO t (a, b, c) VALUES (?, ?, ?)", rows(random, 150, "t", "i", "nt"))


@store("columns that were dropped")
def dropped(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b INTEGER, c BLOB)")
    db.executemany("INSERT INTO t (a, b, c) VALUES (?, ?, ?)", rows(random, 300, "t", "i", "b"))
    db.execute("ALTER TABLE t DROP COLUMN b")
    db.executemany("INSERT INTO t (a, c) VALUES (?, ?)", rows(random, 100, "t", "b"))


@store("three hundred columns")
def wide(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, %s)" % ", ".join(f"c{number} TEXT" for number in range(300)))
    db.executemany("INSERT INTO t VALUES (NULL%s)" % (", ?" * 300), rows(random, 20, *["nt"] * 300))


@store("twelve hundred columns")
def wider(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, %s)" % ", ".join(f"c{number}" for number in range(1_200)))
    db.executemany("INSERT INTO t VALUES (NULL%s)" % (", ?" * 1_200), rows(random, 5, *["nis"] * 1_200))
    db.execute("CREATE TABLE other (a TEXT)")
    db.executemany("INSERT INTO other VALUES (?)", rows(random, 50, "t"))


@store("generated columns")
def generated(db, random):
    db.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, twice INTEGER GENERATED ALWAYS AS (a * 2) VIRTUAL, b TEXT, both TEXT GENERATED ALWAYS AS (b || a) STORED, c REAL)")
    db.executemany("INSERT INTO t (a, b, c) VALUES (?, ?, ?)", rows(random, 300, "i", "t", "r"))
    db.execute("CREATE INDEX byTwice ON t (twice)")


@store("no rowid, keys of many kinds")
def without_rowid(db, random):
    db.execute("CREATE TABLE t (v BLOB, k TEXT, j INTEGER, PRIMARY KEY (k, j DESC)) WITHOUT ROWID")
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(row[0], f"k{number % 50}", number) for number, row in enumerate(rows(random, 500, "birtn"))])
    db.execute("CREATE TABLE u (a, b, c, PRIMARY KEY (c, a)) WITHOUT ROWID")
    db.executemany("INSERT OR IGNORE INTO u VALUES (?, ?, ?)", rows(random, 300, "irtb", "nirtb", "irtb"))


@store("indexes, views and triggers")
def declarations(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT COLLATE NOCASE UNIQUE, b INTEGER CHECK (b > -1e15), c REFERENCES t (id))")
    db.executemany("INSERT OR IGNORE INTO t (a, b) VALUES (?, ?)", rows(random, 300, "t", "i"))
    db.execute("CREATE INDEX p ON t (b) WHERE b > 0")
    db.execute("CREATE INDEX e ON t (lower(a), b DESC)")
    db.execute("CREATE VIEW v AS SELECT a FROM t WHERE b > 0")
    db.execute("CREATE TABLE log (what TEXT)")
    db.execute("CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END")
    db.execute("DELETE FROM t WHERE id > 250")


@store("rowids at the ends of what there is")
def rowids(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    ids = [-2**63, -2**40, -1, 0, 1, 2**40, 2**62, 2**63 - 1] + random.sample(range(-10**9, 10**9), 300)
    db.executemany("INSERT INTO t VALUES (?, ?)", [(number, f"row {number}") for number in ids])


@store("empty values and texts that are none")
def empties(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB)")
    values = ["", "\0", "a\0b", "é" * 200]
    db.executemany("INSERT INTO t (a, b) VALUES (?, ?)", [(values[number % 4], [b"", b"\0", None][number % 3]) for number in range(300)])
    db.executemany("INSERT INTO t (a, b) VALUES (CAST(? AS TEXT), ?)", [(random.randbytes(20), b"x") for _ in range(100)])


@store("long values beside short ones")
def long_values(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB, b TEXT)")
    db.executemany("INSERT INTO t (a, b) VALUES (?, ?)", rows(random, 40, "lb", "t"))
    for key in random.sample(range(1, 41), 15):
        db.execute("UPDATE t SET a = ? WHERE id = ?", (random.randbytes(random.randrange(5_000, 30_000)), key))
    db.execute("DELETE FROM t WHERE id % 7 = 0")
    db.executemany("INSERT INTO t (a, b) VALUES (?, ?)", rows(random, 15, "l", "t"))


for size in (512, 1024, 8192, 65536):
    @store(f"pages of {size} bytes", page_size=size)
    def sized(db, random):
        any_class(db, random)
        db.execute("CREATE INDEX byText ON t (t, i)")
        db.execute("CREATE TABLE long (id INTEGER PRIMARY KEY, a)")
        db.executemany("INSERT INTO long (a) VALUES (?)", rows(random, 20, "lt"))


for encoding in ("UTF-16le", "UTF-16be"):
    @store(f"texts in {encoding}", encoding=encoding)
    def encoded(db, random):
        any_class(db, random)
        declared = "CREATE TABLE n (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"
        db.execute(declared)
        db.executemany("INSERT INTO n (name) VALUES (?)", rows(random, 300, "t"))


@store("auto-vacuum", auto_vacuum=1)
def vacuumed(db, random):
    long_values(db, random)


@store("incremental vacuum, free pages", auto_vacuum=2)
def incremental(db, random):
    long_values(db, random)
    db.execute("DELETE FROM t WHERE id % 2 = 0")


@store("bytes reserved on each page", reserved=32)
def with_reserve(db, random):
    any_class(db, random)
    long_values_table = "CREATE TABLE l (id INTEGER PRIMARY KEY, a)"
    db.execute(long_values_table)
    db.executemany("INSERT INTO l (a) VALUES (?)", rows(random, 20, "lt"))


@store("tables of one shape")
def alike(db, random):
    for name in ("one", "two", "three"):
        db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)")
        db.executemany(f"INSERT INTO {name} (a, b) VALUES (?, ?)", rows(random, 200, "t", "i"))


@store("FTS5 and R-tree")
def virtual(db, random):
    db.execute("CREATE VIRTUAL TABLE f USING fts5(title, body)")
    db.executemany("INSERT INTO f VALUES (?, ?)", rows(random, 100, "t", "t"))
    db.execute("CREATE VIRTUAL TABLE r USING rtree(id, minX, maxX)")
    db.executemany("INSERT INTO r VALUES (?, ?, ?)", [(number, number, number + 1) for number in range(200)])


@store("FTS4 and FTS5 over a table of the app's")
def external(db, random):
    db.execute("CREATE VIRTUAL TABLE old USING fts4(title, body)")
    db.executemany("INSERT INTO old VALUES (?, ?)", rows(random, 60, "t", "t"))
    db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
    db.executemany("INSERT INTO notes (body) VALUES (?)", rows(random, 80, "t"))
    db.execute("CREATE VIRTUAL TABLE found USING fts5(body, content='notes', content_rowid='id')")
    db.execute("INSERT INTO found (found) VALUES ('rebuild')")
    db.execute("CREATE TRIGGER keep AFTER INSERT ON notes BEGIN INSERT INTO found (rowid, body) VALUES (new.id, new.body); END")


@store("types that are no words")
def odd_types(db, random):
    db.execute("""CREATE TABLE t (id INTEGER PRIMARY KEY, 'name' TEXT"abc,", [a b] "x) y", c DECIMAL(10,5), d "(" , e UNSIGNED BIG INT)""")
    db.executemany("INSERT INTO t VALUES (NULL, ?, ?, ?, ?, ?)", rows(random, 200, "nt", "tb", "nr", "i", "i"))


@store("names that a salvage uses itself")
def own_names(db, random):
    for name in ("lazaret_notes", "lazaret_evidence", "lazaret_lost_and_found", "found_1", "lazaret_other_found_1"):
        db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, a TEXT)")
        db.executemany(f"INSERT INTO {name} (a) VALUES (?)", rows(random, 30, "t"))


@store("constraints of every kind")
def constraints(db, random):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT (lower('X')), b INTEGER UNIQUE CHECK (b >= 0), c AS (upper(a)), CHECK (length(a) > 0))")
    db.executemany("INSERT INTO t (a, b) VALUES (?, ?)", [(row[0], number) for number, row in enumerate(rows(random, 300, "t"))])
    db.execute("CREATE UNIQUE INDEX u ON t (b, upper(a)) WHERE b % 2")


def make(name, path, seed):
    function, page_size, encoding, auto_vacuum, reserved = STORES[name]
    db = sqlite3.connect(path, isolation_level=None)
    if reserved:
        # SQLite takes the reserve from the header of a file that has no table yet.
        db.execute(f"PRAGMA page_size = {page_size}")
        db.execute("VACUUM")
        db.close()
        content = bytearray(path.read_bytes())
        content[20] = reserved
        path.write_bytes(content)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("VACUUM")
    db.execute(f"PRAGMA page_size = {page_size}")
    db.execute(f"PRAGMA encoding = '{encoding}'")
    db.execute(f"PRAGMA auto_vacuum = {auto_vacuum}")
    db.execute("BEGIN")
    function(db, random.Random(f"{name} {seed}"))
    if db.in_transaction:
        db.execute("COMMIT")
    found = db.execute("PRAGMA integrity_check").fetchall()
    db.close()
    # SQLite's check names values that a declaration forbids; its pages are sound all the same.
    if any(" value in " not in line and line != "ok" for (line,) in found):
        raise AssertionError(f"SQLite: {found[:3]}")


def read(path, stored=False, own=()):
    """Every row of every ordinary table as SQLite quotes its values, and the definitions of everything.

    stored: whether columns are left out that SQLite computes when they are read; own: tables that are the store's whatever
    their names.
    """
    db = opened(path)
    tables, definitions = {}, {}
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if name.startswith("lazaret_") and name not in own:
            if name == "lazaret_lost_and_found":
                tables[name] = db.execute(f'SELECT * FROM "{name}"').fetchall()
            continue
        definitions[kind, name] = sql
        if kind == "table" and not name.startswith("sqlite_") and not sql.upper().startswith("CREATE VIRTUAL"):
            columns = [row[1] for row in db.execute(f'PRAGMA table_xinfo("{name}")') if not stored or row[6] != 2]
            tables[name] = quoted_rows(db, name, columns)
    db.close()
    return tables, definitions


def with_set_aside(path, tables):
    """The rows of a rebuilt store with the values and rows that were set aside beside it, and whether rows were.

    SQLite converts values that a column's declaration forbids, and refuses NULL where it is forbidden; both are kept as they stood.
    """
    aside = Path(f"{path}-set-aside")
    if not aside.exists():
        return tables, False
    db = sqlite3.connect(path)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    db.execute("ATTACH ? AS aside", (str(aside),))
    kept = {name for (name,) in db.execute("SELECT name FROM aside.sqlite_master WHERE type = 'table'")}
    result, has_rows = dict(tables), False
    for table in tables:
        columns = [row[1] for row in db.execute(f'PRAGMA main.table_xinfo("{table}")')]
        if f"lazaret_converted_{table}" in kept:
            converted = {row[1] for row in db.execute(f'PRAGMA aside.table_xinfo("lazaret_converted_{table}")')}
            chosen = ", ".join(
                f'CASE WHEN c."{column}" IS NULL THEN quote(m."{column}") ELSE quote(c."{column}") END' if column in converted
                else f'quote(m."{column}")' for column in columns)
            result[table] = collections.Counter(db.execute(
                f'SELECT {chosen} FROM main."{table}" AS m LEFT JOIN aside."lazaret_converted_{table}" AS c ON c.lazaret_key = m.rowid'))
        if f"lazaret_set_aside_{table}" in kept:
            chosen = ", ".join(f'quote("{column}")' for column in columns)
            rows = collections.Counter(db.execute(f'SELECT {chosen} FROM aside."lazaret_set_aside_{table}"'))
            has_rows = has_rows or bool(rows)
            result[table] = result[table] + rows
    found = db.execute("PRAGMA main.integrity_check").fetchall()
    db.close()
    if found != [("ok",)]:
        raise AssertionError(f"SQLite: {found[:3]}")
    return result, has_rows


def complaints(path):
    """What the modules of virtual tables say against them."""
    db = sqlite3.connect(path)
    for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'").fetchall():
        try:
            if "rtree" in sql:
                (told,) = db.execute("SELECT rtreecheck('main', ?)", (name,)).fetchone()
                if told != "ok":
                    yield f"{name}: {told}"
            else:
                db.execute(f'INSERT INTO "{name}" ("{name}") VALUES (\'integrity-check\')')
        except sqlite3.Error as error:
            yield f"{name}: {error}"
    db.close()


def plain(sql):
    """A definition without quotes and spaces, which say nothing."""
    return re.sub(r'[\s"]', "", sql or "").lower()


def check(name, folder, seed, *options):
    """What is false about one store."""
    path, out = folder / "Store.sqlite", folder / "Out.sqlite"
    make(name, path, seed)
    whole = path.read_bytes()
    told = lazaret("salvage", path, *options, "-o", out, "--json")
    if not out.exists():
        yield f"nothing comes out: {told}"
        return
    raw = "--raw" in options
    own = [table for (table,) in sqlite3.connect(path).execute("SELECT name FROM sqlite_master WHERE name LIKE 'lazaret%'")]
    expected, definitions = read(path, stored=raw, own=own)
    found, made = read(out, stored=raw, own=[] if raw else own)
    has_refused = False
    if not raw:
        found, has_refused = with_set_aside(out, found)
    if has_refused:
        if told.code != 2:
            yield f"exit {told.code} where rows were set aside"
    elif raw and own:
        # The result has tables of those names, so that the store's get others, which is told.
        if told.code != 2:
            yield f"exit {told.code} where tables got other names"
        found = {table: next((rows for rows in found.values() if rows == expected[table]), collections.Counter()) for table in expected}
    elif told.code != 0:
        yield f"exit {told.code}, causes {[cause['code'] for cause in told.data.get('causes', [])]}"
    elif told.data.get("causes"):
        yield f"causes are told of a sound store: {told.data['causes']}"
    if path.read_bytes() != whole:
        yield "the store was changed"
    for table in expected:
        missing, more = expected[table] - found.get(table, {}), found.get(table, collections.Counter()) - expected[table]
        if missing or more:
            yield f"{table}: {sum(missing.values())} rows missing, {sum(more.values())} others, of {sum(expected[table].values())}"
    yield from complaints(out)
    for key, sql in definitions.items():
        if raw and not (sql or "").upper().startswith("CREATE VIRTUAL"):
            continue
        if not key[1].startswith("sqlite_") and plain(made.get(key)) != plain(sql):
            yield f"{key[0]} {key[1]} is declared as {str(made.get(key))[:120]}"


def main(words):
    failed, tried = 0, 0
    for name in STORES:
        if not all(word in name for word in words):
            continue
        for options in ((), ("--raw",)):
            with tempfile.TemporaryDirectory() as folder:
                false = list(check(name, Path(folder), 1 + len(options), *options))
            tried += 1
            failed += bool(false)
            for one in false:
                print(f"FALSE {name} {' '.join(options)}: {one}")
    print(f"{failed} of {tried} odd stores are not given back whole")
    sys.exit(bool(failed) or tried == 0)


main(sys.argv[1:])
