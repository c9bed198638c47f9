"""Known values are looked for in scrubbed bundles of generated stores, sound and damaged.

SQLite makes each store, with values that are known: in rows in use, deleted, dropped, in indexes of every kind, as keys, in full-text
indexes, in Core Data's metadata and history, in files beside the store. No bundle may hold one of them, in UTF-8, in UTF-16 of either
order, as decimal digits, or as the bytes of a number; nor the name of a file beside the store, nor the SHA-256 of any of its files, as a
receipt of a quarantine has them: a store with such files is exported from quarantine, too. The scrubbed store must be what the original is, too: `PRAGMA integrity_check`
prints the same lines, and a salvage finds as much. Damage is done here, by bytes, and the search shares nothing with the tool.

Each store is tried sound in one encoding and damaged in one way; all of them in every encoding and way with --all. Other arguments: words of
the names of the stores to try, and
  --seed N    the seed of values and damage (1)
"""

import base64
import hashlib
import os
import plistlib
import random
import re
import shutil
import sqlite3
import string
import struct
import sys
import tarfile
import tempfile
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret, todays

ENCODINGS = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}
STORES = {}


def store(name, **settings):
    """Registers what fills a store; it gives the values that must not be found."""
    def register(fill):
        STORES[name] = (fill, settings)
        return fill
    return register


class Values:
    """Values that are not found by chance, each another one."""

    def __init__(self, seed):
        self.random, self.texts, self.numbers, self.reals, self.blobs = random.Random(seed), [], [], [], []
        self.rows = []

    def text(self, length=14, letters=string.ascii_letters + string.digits):
        text = "".join(self.random.choices(letters, k=length))
        self.texts.append(text)
        return text

    def mail(self):
        return self.add(f"{self.text(9, string.ascii_lowercase)}@{self.text(8, string.ascii_lowercase)}.example")

    def add(self, text):
        self.texts.append(text)
        return text

    def number(self):
        """Stored in six bytes, and as the number of a row too."""
        number = self.random.randrange(2**36, 2**45)
        self.numbers.append(number)
        return number

    def real(self):
        real = self.random.random() * 10 ** self.random.randrange(2, 12)
        self.reals.append(real)
        return real

    def blob(self, length=24):
        blob = self.random.randbytes(length)
        self.blobs.append(blob)
        return blob

    def identifier(self):
        text = str(uuid.UUID(int=self.random.getrandbits(128), version=4)).upper()
        self.texts.append(text)
        return text


def many(db, sql, rows):
    db.executemany(sql, rows)


# Stores

@store("rows in use")
def in_use(db, v, folder):
    db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, phone INTEGER, height REAL, picture BLOB, mixed)")
    for i in range(150):
        db.execute("INSERT INTO people (name, phone, height, picture, mixed) VALUES (?,?,?,?,?)", (
            v.mail(), v.number(), v.real(), v.blob(), v.random.choice([v.text, v.number, v.blob])()))


@store("deleted rows beside AUTOINCREMENT")
def deleted_sequence(db, v, folder):
    db.execute("CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    db.execute("INSERT INTO a VALUES (1)")
    db.execute("CREATE TABLE contacts (name TEXT, age INT)")
    many(db, "INSERT INTO contacts VALUES (?,?)", [(v.mail(), 20 + i % 60) for i in range(400)])
    db.execute("DELETE FROM contacts")


@store("deleted rows beside statistics")
def deleted_statistics(db, v, folder):
    db.execute("CREATE TABLE contacts (name TEXT, town TEXT, note TEXT)")
    db.execute("CREATE INDEX ci ON contacts (name)")
    many(db, "INSERT INTO contacts VALUES (?,?,?)", [(v.mail(), v.text(), v.text()) for _ in range(200)])
    db.execute("ANALYZE")
    db.execute("DELETE FROM contacts WHERE rowid > 3")


@store("a dropped table")
def dropped(db, v, folder):
    db.execute("CREATE TABLE z (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    db.execute("INSERT INTO z VALUES (3)")
    db.execute("CREATE TABLE contacts (name TEXT, phone INT, note TEXT)")
    many(db, "INSERT INTO contacts VALUES (?,?,?)", [(v.mail(), v.number(), v.text(60)) for _ in range(300)])
    db.execute("DROP TABLE contacts")


@store("pages of a dropped table in use again")
def reused(db, v, folder):
    db.execute("CREATE TABLE contacts (name TEXT, phone INT)")
    many(db, "INSERT INTO contacts VALUES (?,?)", [(v.mail(), v.number()) for _ in range(300)])
    db.execute("DROP TABLE contacts")
    for i in range(6):
        db.execute(f"CREATE TABLE t{i} (id INTEGER PRIMARY KEY AUTOINCREMENT, w TEXT)")
        db.execute(f"INSERT INTO t{i} (w) VALUES (?)", (v.text(),))


@store("rows that look like the schema's")
def like_schema(db, v, folder):
    db.execute("CREATE TABLE things (type TEXT, name TEXT, other TEXT, page INTEGER, sql TEXT)")
    for i in range(60):
        db.execute("INSERT INTO things VALUES ('table', ?, ?, ?, ?)", (v.text(), v.text(), i, f"CREATE {v.text()} {v.text()}"))
    db.execute("DELETE FROM things WHERE rowid % 2")


@store("vacuumed", vacuum=True)
def vacuumed(db, v, folder):
    db.execute("CREATE TABLE contacts (name TEXT, phone INT)")
    many(db, "INSERT INTO contacts VALUES (?,?)", [(v.mail(), v.number()) for _ in range(300)])
    db.execute("DELETE FROM contacts WHERE rowid % 3")


@store("pointer maps", auto_vacuum=1)
def pointer_maps(db, v, folder):
    db.execute("CREATE TABLE contacts (name TEXT, long BLOB)")
    many(db, "INSERT INTO contacts VALUES (?,?)", [(v.mail(), v.blob(3000)) for _ in range(40)])
    db.execute("DELETE FROM contacts WHERE rowid % 4 = 0")


@store("long values")
def long_values(db, v, folder):
    db.execute("CREATE TABLE letters (id INTEGER PRIMARY KEY, body TEXT, scan BLOB)")
    for _ in range(30):
        db.execute("INSERT INTO letters (body, scan) VALUES (?,?)", (" ".join(v.text() for _ in range(500)), v.blob(6000)))
    db.execute("DELETE FROM letters WHERE id % 3 = 1")


@store("references")
def references(db, v, folder):
    db.execute("CREATE TABLE cards (no INTEGER UNIQUE, owner TEXT)")
    db.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, card INTEGER REFERENCES cards (no), again INTEGER, "
               "FOREIGN KEY (again) REFERENCES cards (no))")
    numbers = [v.number() for _ in range(100)]
    many(db, "INSERT INTO cards VALUES (?,?)", [(n, v.text()) for n in numbers])
    many(db, "INSERT INTO visit (card, again) VALUES (?,?)", [(v.random.choice(numbers), n) for n in numbers])
    v.rows.append("SELECT count(*) FROM visit JOIN cards AS b ON b.no = card JOIN cards AS c ON c.no = again")


@store("keys that an app chose")
def chosen_keys(db, v, folder):
    db.execute("CREATE TABLE people (phone INTEGER PRIMARY KEY, name TEXT)")
    db.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY AUTOINCREMENT, phone INTEGER REFERENCES people, note TEXT)")
    db.execute("CREATE INDEX byName ON people (name)")
    db.execute("CREATE INDEX byPhone ON calls (phone, note)")
    numbers = sorted({v.number() for _ in range(400)})
    many(db, "INSERT INTO people VALUES (?,?)", [(n, v.mail()) for n in numbers])
    many(db, "INSERT INTO calls (phone, note) VALUES (?,?)", [(n, v.text()) for n in numbers[::2]])
    db.execute("INSERT INTO calls VALUES (?,?,?)", (v.number(), None, v.text()))
    db.execute("DELETE FROM people WHERE phone % 5 = 0")
    v.rows.append("SELECT count(*) FROM calls JOIN people USING (phone)")
    v.rows.append("SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'calls') = (SELECT max(id) FROM calls)")


@store("keys of tables without rowids")
def without_rowid(db, v, folder):
    db.execute("CREATE TABLE m (phone INTEGER, word TEXT, at REAL, PRIMARY KEY (phone, word)) WITHOUT ROWID")
    db.execute("CREATE INDEX byAt ON m (at, word DESC)")
    many(db, "INSERT INTO m VALUES (?,?,?)", [(v.number(), v.text(), v.real()) for _ in range(300)])
    db.execute("DELETE FROM m WHERE phone % 4 = 0")


@store("indexes of every kind")
def indexes(db, v, folder):
    db.execute("CREATE TABLE t (a TEXT, b INTEGER, c REAL, d BLOB UNIQUE, e TEXT COLLATE NOCASE, f)")
    for columns in ("a", "b, a", "c DESC", "e, b", "a COLLATE RTRIM, d", "f"):
        db.execute(f"CREATE INDEX \"i{columns}\" ON t ({columns})")
    db.execute("CREATE INDEX part ON t (f) WHERE b IS NOT NULL")
    for i in range(200):
        db.execute("INSERT INTO t VALUES (?,?,?,?,?,?)", (
            v.text(), v.number(), v.real(), v.blob(), v.mail(), v.random.choice([v.text, v.number, v.blob, v.real])()))
    db.execute("DELETE FROM t WHERE rowid % 6 = 0")


@store("text in another encoding")
def other_encoding(db, v, folder):
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    db.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, a TEXT)")
    db.execute("CREATE INDEX byA ON u (a)")
    for _ in range(60):
        word = "".join(v.random.choices("абвгдежзийклмнопрстуфхцчшщэюя", k=8)).encode("cp1251")
        v.blobs.append(word)
        for table in "tu":
            db.execute(f"INSERT INTO {table} (a) VALUES (CAST(? AS TEXT))", (word,))


@store("scripts of the world")
def scripts(db, v, folder):
    db.execute("CREATE TABLE t (a TEXT, b TEXT)")
    db.execute("CREATE INDEX i ON t (b)")
    for letters in ("абвгдежзиклмн", "東京大阪名古屋札幌仙台", "äöüßéèñçåø", "אבגדהוזחט", "😀😁😂🤣😃😄😅", "กขฃคฅฆงจฉช"):
        many(db, "INSERT INTO t VALUES (?,?)", [(v.text(9, letters), v.text(9, letters)) for _ in range(25)])


@store("full-text indexes")
def full_text(db, v, folder):
    db.execute("CREATE VIRTUAL TABLE f5 USING fts5 (title, body)")
    db.execute("CREATE VIRTUAL TABLE f4 USING fts4 (title, body)")
    for _ in range(80):
        row = (v.text(12, string.ascii_lowercase), " ".join(v.text(11, string.ascii_lowercase) for _ in range(6)))
        for table in ("f4", "f5"):
            db.execute(f"INSERT INTO {table} VALUES (?,?)", row)
    db.execute("DELETE FROM f5 WHERE rowid % 3 = 0")


@store("an R*-tree")
def r_tree(db, v, folder):
    db.execute("CREATE VIRTUAL TABLE r USING rtree (id, x0, x1, y0, y1)")
    for _ in range(100):
        x, y = v.random.random() * 90, v.random.random() * 90
        db.execute("INSERT INTO r VALUES (?,?,?,?,?)", (v.number(), x, x + 1, y, y + 1))


@store("small numbers")
def small_numbers(db, v, folder):
    db.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, age INTEGER, salary REAL, x INTEGER, kind INTEGER, name TEXT)")
    db.execute("CREATE INDEX bySalary ON p (salary)")
    for i in range(400):
        db.execute("INSERT INTO p (age, salary, x, kind, name) VALUES (?,?,?,?,?)", (
            v.random.randrange(3, 99), float(v.random.randrange(900, 99_000)), v.random.randrange(-90_000, 90_000), i % 3, v.text()))
    v.rows.append(("differ", "SELECT age FROM p ORDER BY id", "SELECT salary FROM p ORDER BY id", "SELECT x FROM p ORDER BY id"))
    v.rows.append("SELECT count(DISTINCT kind), sum(kind < 2) FROM p")


@store("a log", journal="WAL")
def log(db, v, folder):
    db.execute("CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, w TEXT)")
    db.execute("CREATE TABLE contacts (name TEXT, phone INT)")
    many(db, "INSERT INTO contacts VALUES (?,?)", [(v.mail(), v.number()) for _ in range(200)])
    db.commit()
    db.execute("DELETE FROM contacts WHERE rowid > 20")
    db.commit()
    many(db, "INSERT INTO a (w) VALUES (?)", [(v.text(),) for _ in range(300)])
    db.commit()
    db.execute("DROP TABLE contacts")


@store("a hot journal", journal="HOT")
def hot_journal(db, v, folder):
    db.execute("CREATE TABLE contacts (name TEXT, phone INT)")
    many(db, "INSERT INTO contacts VALUES (?,?)", [(v.mail(), v.number()) for _ in range(300)])


def core_data(db, v):
    """Tables as Core Data makes them."""
    db.execute("CREATE TABLE ZPERSON (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBOSS INTEGER, ZBORN TIMESTAMP, "
               "ZNAME VARCHAR, ZPHONE INTEGER, ZPICTURE BLOB)")
    db.execute("CREATE INDEX ZPERSON_ZBOSS_INDEX ON ZPERSON (ZBOSS)")
    db.execute("CREATE INDEX ZPERSON_ZBORN ON ZPERSON (ZBORN)")
    db.execute("CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)")
    db.execute("CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)")
    db.execute("CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
    db.execute("INSERT INTO Z_PRIMARYKEY VALUES (1, 'Person', 0, 300)")
    db.execute("INSERT INTO Z_MODELCACHE VALUES (?)", (zlib.compress(b"a model " * 40)[2:-4],))
    identifier = v.identifier()
    plist = {
        "NSStoreType": "SQLite", "NSStoreModelVersionHashesVersion": 3, "NSPersistenceFrameworkVersion": 1326, "NSStoreUUID": identifier,
        "NSStoreModelVersionIdentifiers": [""], "NSStoreModelVersionHashes": {"Person": bytes(range(32))},
        "NSCloudKitUserRecordName": v.text(20), "owner": v.mail(), "NSNumberOfMine": v.number()}
    db.execute("INSERT INTO Z_METADATA VALUES (1, ?, ?)", (identifier, plistlib.dumps(plist, fmt=plistlib.FMT_BINARY)))


@store("Core Data's tables")
def core_data_tables(db, v, folder):
    core_data(db, v)
    for i in range(300):
        db.execute("INSERT INTO ZPERSON VALUES (?,1,?,?,?,?,?,?)", (
            i + 1, 1 + i % 4, v.random.randrange(1, 300), v.random.random() * 3e8 + 3e8, v.mail(), v.number(), v.blob()))
    db.execute("DELETE FROM ZPERSON WHERE Z_PK % 4 = 1")


@store("Core Data's history")
def core_data_history(db, v, folder):
    core_data(db, v)
    db.execute("CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, ZTIMESTAMP FLOAT, "
               "ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZQUERYGEN BLOB)")
    db.execute("CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER, "
               "ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZTOMBSTONE0 VARCHAR, ZCOLUMNS BLOB)")
    for i in range(100):
        db.execute("INSERT INTO ZPERSON VALUES (?,1,1,NULL,?,?,?,?)", (i + 1, 5e8 + i * 86400.5, v.mail(), v.number(), v.blob()))
        db.execute("INSERT INTO ATRANSACTION VALUES (?,16002,1,1,?,?,?,?)", (i + 1, v.real(), v.text(), v.text(), v.blob()))
        db.execute("INSERT INTO ACHANGE VALUES (?,16001,1,2,1,?,?,?,?)", (i + 1, i + 1, i + 1, v.text(), v.blob()))


@store("values in files")
def external(db, v, folder):
    core_data(db, v)
    place = folder / ".Store_SUPPORT" / "_EXTERNAL_DATA"
    place.mkdir(parents=True)
    for i in range(20):
        name = v.identifier()
        (place / name).write_bytes(v.blob(9000))
        db.execute("INSERT INTO ZPERSON VALUES (?,1,1,NULL,?,?,?,?)", (
            i + 1, 5e8 + i, v.mail(), v.number(), b"\x02" + name.encode() + b"\0"))
    v.rows.append("files")
    # Files that Core Data knows nothing of, under names that a user gave.
    for stray in (place / f"{v.text()}.pdf", place.parent / v.text() / f"{v.text()}.txt"):
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(v.blob(700))


@store("words of our own")
def own_words(db, v, folder):
    db.execute("CREATE TABLE q (a TEXT, b INTEGER)")
    many(db, "INSERT INTO q VALUES (?,?)", [(w, n) for w in (
        "name", "value", "page", "damaged", "healthy", "SQLite", "level", "scrubbed", "replaced", "columns", "formatVersion", "main")
        for n in (4096, 1_048_576, 20_261_121)])


# Damage

def pages(data):
    size = struct.unpack(">H", data[16:18])[0] if data[:6] == b"SQLite" else 4096
    size = 65536 if size == 1 else size
    return size, len(data) // size


def over_pages(share, fill):
    def damage(data, r):
        size, count = pages(data)
        for page in r.sample(range(1, count), max(1, int(count * share))) if count > 1 else []:
            data[page * size:(page + 1) * size] = fill(size, r)
    return damage


def swap(data, r):
    size, count = pages(data)
    if count > 3:
        a, b = r.sample(range(1, count), 2)
        data[a * size:(a + 1) * size], data[b * size:(b + 1) * size] = data[b * size:(b + 1) * size], data[a * size:(a + 1) * size]


def flip(data, r):
    for _ in range(30):
        data[r.randrange(100, len(data))] ^= 1 << r.randrange(8)


def first_page(data, r):
    size, _ = pages(data)
    data[:size] = r.randbytes(size)


def cut(share):
    def damage(data, r):
        del data[len(data) - int(len(data) * share):]
    return damage


def header(data, r):
    data[:100] = bytes(100)


def roots(data, r):
    size, count = pages(data)
    for page in range(1, min(4, count)):
        data[page * size:page * size + 8] = bytes(8)


def free_list(data, r):
    data[32:40] = struct.pack(">II", r.randrange(1, 9), r.randrange(9))


KINDS = {
    "sound": lambda data, r: None, "pages zeroed": over_pages(0.2, lambda size, r: bytes(size)),
    "pages overwritten": over_pages(0.2, lambda size, r: r.randbytes(size)), "pages swapped": swap, "bits flipped": flip,
    "first page overwritten": first_page, "a fifth cut off": cut(0.2), "half cut off": cut(0.5), "header zeroed": header,
    "page headers zeroed": roots, "list of free pages wrong": free_list}


# The search

def varint(number):
    out = [number & 0x7F]
    while number := number >> 7:
        out.append(number & 0x7F | 0x80)
    return bytes(reversed(out))


def needles(v):
    """Every form of every value, and what it is."""
    found = {}
    for text in v.texts:
        for code in ENCODINGS.values():
            found[text.encode(code)] = f"text {text!r} in {code}"
    for number in v.numbers:
        found[str(number).encode()] = f"digits {number}"
        found[str(number).encode("utf-16-le")] = f"wide digits {number}"
        for width in (6, 8):
            found[number.to_bytes(width, "big")] = f"bytes of {number}"
        found[varint(number)] = f"row number {number}"
    for real in v.reals:
        found[struct.pack(">d", real)] = f"bytes of {real}"
        found[repr(real).encode()] = f"digits of {real}"
    for blob in v.blobs:
        for start in range(0, max(1, len(blob) - 15), 512):
            found[blob[start:start + 16]] = f"bytes {start} of {blob[:8].hex()}…"
    return {needle: words for needle, words in found.items() if len(needle) >= 6}


def places(blob, wanted):
    """Where which of the needles are in the bytes: looked up by their first six."""
    starts = {}
    for needle in wanted:
        starts.setdefault(needle[:6], []).append(needle)
    for offset in range(len(blob) - 5):
        for needle in starts.get(blob[offset:offset + 6], ()):
            if blob.startswith(needle, offset):
                yield offset, needle


def search(blob, wanted):
    """Those of the needles that are in the bytes."""
    return {needle for _, needle in places(blob, wanted)}


def left_in_place(sound, scrubbed, wanted, encoding):
    """The values of which eight characters or bytes in a row, or all, are where they were before the damage: four characters, where each
    has several bytes of which the first ones say little.

    What a flipped bit is in is no needle any more, nor what an overwritten page cut in two; the rest of it must be replaced all the same.
    """
    left = set()
    for offset, needle in places(sound, wanted):
        run = 16 if encoding != "UTF-8" or wanted[needle].startswith("text") and not needle.isascii() else 8
        same = 0
        for before, after in zip(needle, scrubbed[offset:offset + len(needle)]):
            same = same + 1 if before == after else 0
            if same >= min(run, len(needle)):
                left.add(needle)
                break
    return left


# The comparison

def check(path, folder):
    """What SQLite's own check prints, on a copy: the lines of all pages, and those of each table and its indexes."""
    copy = folder / "check"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", f"{copy}/c.sqlite{suffix}")
    db = sqlite3.connect(copy / "c.sqlite")
    # Words of the schema that SQLite repeats may be damaged.
    db.text_factory = lambda text: text.decode(errors="replace")
    try:
        first = db.execute("SELECT integrity_check FROM pragma_integrity_check(1000) LIMIT 1").fetchone()[0]
        of_pages = [re.sub(r"Rowid -?[0-9]{7,}", "Rowid N", line) for line in first.split("\n")] if first.startswith("***") else []
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")]
        return of_pages, {name: check_rows(db, "'" + name.replace("'", "''") + "'") for name in names}
    except sqlite3.Error as error:
        return [str(error)], {}
    except UnicodeDecodeError as error:
        return [repr(error.object)], {}
    finally:
        db.close()


def same_checks(before, after):
    """Whether two checks say the same, and if not what they say.

    Where a cell begins within another one, or the header of its record is damaged, SQLite reads values of the row as structure: whether it
    can read that record, and what it compares, depends on bytes that are replaced. What it says of the rows and indexes of such a table
    may differ then; what it says of all pages, and of the rows and indexes of every other table, is the same.
    """
    if before[0] != after[0]:
        return before[0], after[0]
    if set(before[1]) != set(after[1]):
        return sorted(before[1]), sorted(after[1])
    for name in before[1]:
        pair = before[1][name], after[1][name]
        if pair[0] != pair[1] and not any(overlaps(lines) or any("malformed" in line for line in lines) for lines in pair):
            return pair
    return None


def overlaps(lines):
    """Whether a check says that cells lie within each other."""
    return any("Multiple uses for byte" in line or "out of range" in line for line in lines)


def check_rows(db, argument):
    """The lines of a check of the whole store, or of a table and its indexes, as far as it comes."""
    lines = []
    try:
        for (text,) in db.execute(f"PRAGMA integrity_check({argument})"):
            lines += [re.sub(r"Rowid -?[0-9]{7,}", "Rowid N", line) for line in text.split("\n")]
    except (sqlite3.Error, MemoryError) as error:
        # SQLite takes damaged bytes for a length.
        lines.append(str(error))
    return lines


def salvage(path, folder):
    """What a salvage finds, in numbers: how many deleted rows it finds in free space rests on content alone, and noise may look like one."""
    out = folder / "salvaged"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    said = lazaret("salvage", path, "-o", out / "o.sqlite", "--raw", "--deleted", "--json", "--home", out / "h").data
    if "entities" not in said:
        return said.get("error", {}).get("code", "no report")
    return sorted(
        (one["name"], one["recovered"], one["doubtful"], one["keptApart"], Estimate(one["deleted"]), lost(one)) for one in said["entities"])


def found(path, folder):
    """About how many rows of each table a salvage finds, whatever it thinks of them."""
    said = salvage(path, folder)
    return said if isinstance(said, str) else [
        (name, Estimate(recovered + doubtful + apart + deleted.number)) for name, recovered, doubtful, apart, deleted, _ in said]


class Estimate:
    """A number that is an estimate, equal to others near it."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, Estimate) and abs(self.number - other.number) <= max(3, self.number // 8)

    def __lt__(self, other):
        return False

    def __repr__(self):
        return f"about {self.number}"


def lost(entity):
    """How many rows are lost; an estimate rests on how far apart keys are, of which a scrub keeps the order alone."""
    return entity["lost"] if entity["lostIsExact"] or not isinstance(entity["lost"], int) else "an estimate"


def answers(path, folder, question):
    copy = folder / "ask.sqlite"
    for suffix in ("", "-wal", "-journal"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    db = sqlite3.connect(copy)
    try:
        return db.execute(question).fetchall()
    finally:
        db.close()


def make(name, encoding, folder, seed):
    """Writes a store, and gives its path and its values."""
    fill, settings = STORES[name]
    made, path = folder / "made" / "Store.sqlite", folder / "stores" / "Store.sqlite"
    made.parent.mkdir()
    path.parent.mkdir()
    v = Values(f"{name} {encoding} {seed}")
    db = sqlite3.connect(made)
    db.execute(f"PRAGMA encoding = '{encoding}'")
    db.execute(f"PRAGMA page_size = {v.random.choice([1024, 4096])}")
    db.execute(f"PRAGMA auto_vacuum = {settings.get('auto_vacuum', 0)}")
    db.execute("PRAGMA secure_delete = 0")
    if settings.get("journal") == "WAL":
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
    fill(db, v, path.parent)
    db.commit()
    if settings.get("vacuum"):
        db.execute("VACUUM")
    if settings.get("journal") == "HOT":
        db.execute("PRAGMA cache_size = 2")
        db.execute("UPDATE contacts SET phone = phone + 1, name = 'x' || name")
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{made}{suffix}").exists():
            shutil.copy(f"{made}{suffix}", f"{path}{suffix}")
    db.rollback()
    db.close()
    return path, v


def compare(path, scrubbed, folder, v, kind):
    """What the scrubbed store is that the original is not."""
    faults = []
    # What a salvage carves out of pages without headers rests on content alone, which is not the same twice: then only how much it finds.
    how = found if kind == "page headers zeroed" else salvage
    checks, rows = (check(path, folder), check(scrubbed, folder)), (how(path, folder), how(scrubbed, folder))
    pairs = [("integrity_check", same_checks(*checks)), ("salvage", rows if rows[0] != rows[1] else None)]
    for words, pair in pairs:
        if pair:
            if isinstance(pair[0], list) and isinstance(pair[1], list):
                pair = next(((a, b) for a, b in zip(*pair) if a != b), pair)
            faults.append(f"{words}: {str(pair[0])[:110]} became {str(pair[1])[:110]}")
    if kind != "sound":
        return faults
    for question in v.rows:
        if question == "files":
            names = {one.name for one in (scrubbed.parent / ".Store_SUPPORT" / "_EXTERNAL_DATA").iterdir() if len(one.name) == 36}
            told = {row[0][1:-1].decode() for row in answers(scrubbed, folder, "SELECT ZPICTURE FROM ZPERSON")}
            if names != told:
                faults.append("references do not lead to the files")
        elif isinstance(question, tuple):
            for sql in question[1:]:
                pairs = list(zip(answers(path, folder, sql), answers(scrubbed, folder, sql)))
                same = sum(a == b for a, b in pairs)
                if same > len(pairs) / 10:
                    faults.append(f"{same} of {len(pairs)} numbers stay: {sql}")
        elif answers(path, folder, question) != answers(scrubbed, folder, question):
            faults.append(f"another answer: {question}")
    return faults


def sums(folder, parts=()):
    """The SHA-256 of every file below a folder, whole and the beginning, in the ways it is written."""
    found = {}
    for path in (one for one in folder.rglob("*") if one.is_file()):
        # A file without any value is in the bundle as it is: its sum tells no more.
        if path.read_bytes() in parts:
            continue
        digest = hashlib.sha256(path.read_bytes())
        for form in (digest.digest()[:8], digest.hexdigest()[:16].encode(), digest.hexdigest()[:16].upper().encode(),
                     base64.b64encode(digest.digest())[:20]):
            found[form] = f"the SHA-256 of {path.name}"
    return found


def quarantined(path, folder, wanted):
    """What is wrong with the bundles of a copy of a store that is put into quarantine, salvaged, and exported twice."""
    faults, copy = [], folder / "quarantined"
    shutil.copytree(path.parent, copy)
    store, home = copy / path.name, folder / "home of quarantine"
    wanted = wanted | sums(copy)
    lazaret("quarantine", "add", store, "--home", home, "--reason", "a word of the owner's", "--json")
    stores = lazaret("quarantine", "list", "--home", home, "--json").data.get("stores") or lazaret(
        "quarantine", "list", "--home", copy, "--json").data.get("stores") or []
    if len(stores) != 1:
        return ["the store is not in quarantine"]
    identifier = stores[0]["store"]
    lazaret("quarantine", "salvage", identifier, "--home", home, "--json")
    for number, level in enumerate(("facts", "scrubbed", "facts", "scrubbed")):
        bundle = folder / f"q{number}.tgz"
        done = lazaret("export", identifier, "--level", level, "--yes", "-o", bundle, "--home", home)
        if not bundle.exists():
            faults.append(f"no bundle at the level {level} from quarantine: {done}")
            continue
        with tarfile.open(bundle) as archive:
            parts = [one.name.encode() for one in archive]
            parts += [archive.extractfile(one).read() for one in archive if one.isfile()]
        hits = search(b"\n".join(parts), wanted)
        faults += [f"{len(hits)} forms are found at the level {level} from quarantine, such as {wanted[sorted(hits)[0]]}"] if hits else []
    return faults


def cell(name, encoding, kind, seed):
    """Tries one store, and gives what is wrong."""
    with tempfile.TemporaryDirectory(prefix="lazaret-canaries-") as root:
        folder = Path(root)
        path, v = make(name, encoding, folder, seed)
        sound = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal", "-journal") if Path(f"{path}{suffix}").exists()}
        data = bytearray(sound[""])
        KINDS[kind](data, random.Random(f"{name} {encoding} {kind} {seed}"))
        path.write_bytes(data)
        done = lazaret("export", path, "--level", "scrubbed", "--yes", "-o", folder / "b.tgz", "--home", folder / "home")
        if not (folder / "b.tgz").exists():
            return [f"no bundle: {done}"]
        unpacked = folder / "unpacked"
        with tarfile.open(folder / "b.tgz") as archive:
            parts = [one.name.encode() for one in archive]
            parts += [archive.extractfile(one).read() for one in archive if one.isfile()]
            archive.extractall(unpacked, filter="data")
        wanted = needles(v) | sums(path.parent, parts)
        hits = search(b"\n".join(parts), wanted)
        faults = [f"{len(hits)} of {len(wanted)} forms are found, such as {wanted[sorted(hits)[0]]}"] if hits else []
        for level in ("facts",) if kind == "sound" or encoding == "UTF-8" else ():
            lazaret("export", path, "--level", level, "--yes", "-o", folder / "f.tgz", "--home", folder / "home")
            if (folder / "f.tgz").exists():
                with tarfile.open(folder / "f.tgz") as archive:
                    hits = search(b"\n".join(archive.extractfile(one).read() for one in archive if one.isfile()), wanted)
                faults += [f"{len(hits)} forms are found at the level {level}, such as {wanted[sorted(hits)[0]]}"] if hits else []
            else:
                faults.append(f"no bundle at the level {level}")
        if (path.parent / ".Store_SUPPORT").exists():
            faults += quarantined(path, folder, wanted)
        scrubbed = next(one for one in unpacked.rglob("*.sqlite"))
        left = {one for suffix, bytes_ in sound.items() if Path(f"{scrubbed}{suffix}").exists()
                for one in left_in_place(bytes_, Path(f"{scrubbed}{suffix}").read_bytes(), wanted, encoding)}
        faults += [f"{len(left)} values stay in part, such as {wanted[sorted(left)[0]]}"] if left else []
        return faults + compare(path, scrubbed, folder, v, kind)


def wanted_cells(arguments):
    """The cells to try: each store sound in one encoding and damaged in one way, unless others are asked for."""
    seed = arguments[arguments.index("--seed") + 1] if "--seed" in arguments else "1"
    words = [one for one in arguments if not one.startswith("--") and one != seed]
    damages = [kind for kind in KINDS if kind != "sound"]
    cells = []
    for place, name in enumerate(STORES):
        encodings = ["UTF-8"] if name == "text in another encoding" else list(ENCODINGS)
        for number, encoding in enumerate(encodings):
            for kind in KINDS:
                is_sample = number == place % len(encodings) and kind in ("sound", damages[place % len(damages)])
                label = f"{name}, {encoding}, {kind}"
                if all(word in label for word in words) if words else is_sample or "--all" in arguments:
                    cells.append((label, name, encoding, kind, seed))
    return cells


def main(arguments):
    cells = todays(wanted_cells(arguments))
    bad = 0
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        for (label, *_), faults in zip(cells, pool.map(lambda one: cell(*one[1:]), cells)):
            bad += bool(faults)
            for fault in faults:
                print(f"FAILED {label}: {fault}", flush=True)
    print(f"{len(cells)} stores, {len(cells) - bad} passed, {bad} failed")
    sys.exit(bool(bad) or not cells)


if __name__ == "__main__":
    main(sys.argv[1:])
