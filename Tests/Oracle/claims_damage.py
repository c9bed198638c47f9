"""Kinds of damage, each with what is true of the store afterwards. A part of claims.py."""

import io
import plistlib
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

from claims_pages import PageMap
from claims_stores import Truth, write

CUT = 4096


class NotHere(Exception):
    """A kind of damage cannot be done to a store; says why."""


class Damaged:
    """A store after damage.

    files: its bytes by suffix. destroyed: pages of the main file of which no byte is left; hurt: those of which some are wrong.
    truth: the rows that the store held, to which what is found is compared; also: other values that a row may have as well.
    certain: the keys of the rows of which every byte is left, by table.
    is_damaged: whether something is wrong; None where no reader could know, or where either can be said with reason.
    is_drifted: whether the pages are sound, but not all that the model promises is there.
    """

    def __init__(self, sound, files=None, destroyed=(), hurt=(), is_damaged=True, truth=None, also=None, certain=None, why=""):
        self.sound, self.files = sound, dict(sound.files if files is None else files)
        self.also, self.is_drifted = also, False
        self.destroyed, self.hurt = set(destroyed), set(hurt)
        self.is_damaged, self.why = is_damaged, why
        self.truth = truth or sound.truth
        self.records = {name: table for name, table in sound.records.items() if table in self.truth.tables}
        self.certain = certain if certain is not None else self._rows(lambda row: not row.pages & (self.destroyed | self.hurt))

    def _rows(self, fits):
        if self.truth is not self.sound.base:
            return {table: set(rows) for table, rows in self.truth.tables.items()}
        found = {}
        for table in self.truth.tables:
            rows = self.sound.locations(table)
            found[table] = {key for key, row in rows.items() if fits(row)}
        return found

    @property
    def bounds_doubt(self):
        """Whether rows of which every byte is left are beyond doubt: what leads to them is left too."""
        interior = {page for tree in self.sound.pages.trees.values() for page in tree.interior}
        has_main = self.files.get("", b"") and len(self.files[""]) and "-wal" not in self.files
        return bool(has_main) and self.is_damaged is not None and not interior & (self.destroyed | self.hurt)

    def may_doubt_columns(self, table):
        """Whether a whole table may be doubtful: its definition may be lost, which alone told columns of one type apart."""
        schema = self.sound.pages.trees["sqlite_schema"]
        return table in self.sound.base.alike and bool({*schema.interior, *schema.leaves} & (self.destroyed | self.hurt))

    def total(self, name):
        return self.truth.count(self.records[name])


def sqlite_says(files):
    """What SQLite finds wrong in a copy of the files; `ok` where it finds nothing."""
    with tempfile.TemporaryDirectory(prefix="lazaret-claims-") as folder:
        path = Path(folder) / "copy.sqlite"
        write(path, files)
        try:
            store = sqlite3.connect(path)
            try:
                return " · ".join(str(row[0]) for row in store.execute("PRAGMA integrity_check(3)"))
            finally:
                store.close()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return str(error)


def sqlite_reads(files):
    """The rows that SQLite reads of a copy of the files."""
    with tempfile.TemporaryDirectory(prefix="lazaret-claims-") as folder:
        write(Path(folder) / "copy.sqlite", files)
        return Truth(Path(folder) / "copy.sqlite")


class Kind:
    """A kind of damage by its name; `of` says which stores it is for, `state` in which state they are made."""

    def __init__(self, name, function, state, of):
        self.name, self.function, self.state, self.of = name, function, state, of

    def damage(self, sound, chance):
        damaged = self.function(sound, chance)
        if not damaged.why:
            damaged.why = "SQLite says: " + " ".join(sqlite_says(damaged.files).split())[:100]
            if damaged.is_damaged is not None and damaged.is_damaged == damaged.why.endswith(": ok"):
                raise ValueError(f"{self.name} did not come out as it should: {damaged.why}")
        return damaged


KINDS = {}


def kind(name, state="rest", of=("core-data", "plain")):
    def keep(function):
        KINDS[name] = Kind(name, function, state, of)
        return function
    return keep


def main_of(sound):
    return bytearray(sound.files[""])


def put(data, page, content, size=4096, at=0):
    start = (page - 1) * size + at
    data[start : start + len(content)] = content


def over(sound, pages, content=None, **more):
    """The store with whole pages overwritten, by zeros if nothing else is given."""
    data, size = main_of(sound), sound.pages.page_size
    for page in pages:
        put(data, page, content or bytes(size), size)
    return Damaged(sound, {**sound.files, "": bytes(data)}, destroyed=pages, **more)


def leaf(sound, chance):
    """A leaf page in the middle of the largest table."""
    leaves = sound.pages.trees[sound.main_table].leaves
    return chance.choice(leaves[len(leaves) // 4 : -2])


# Nothing is wrong


@kind("none")
def none(sound, chance):
    return Damaged(sound, is_damaged=False)


@kind("none, with free pages", state="aged")
def none_aged(sound, chance):
    return Damaged(sound, is_damaged=False)


@kind("log kept", state="log")
def log_kept(sound, chance):
    return Damaged(sound, is_damaged=False)


@kind("log cut in its last frame", state="log")
def log_cut(sound, chance):
    files = {**sound.files, "-wal": sound.files["-wal"][:-CUT // 2]}
    return Damaged(sound, files, is_damaged=False, truth=sqlite_reads(files))


@kind("log missing", state="log")
def log_missing(sound, chance):
    files = {"": sound.files[""]}
    return Damaged(sound, files, is_damaged=False, truth=sqlite_reads(files))


@kind("bit flipped in the log", state="log")
def log_flipped(sound, chance):
    """SQLite reads what was committed before that frame; later frames may be taken for real with as good a reason."""
    log = bytearray(sound.files["-wal"])
    size = sound.pages.page_size + 24
    log[32 + len(log) // size // 2 * size + 24 + 100] ^= 0x10
    files = {**sound.files, "-wal": bytes(log)}
    return Damaged(sound, files, is_damaged=None, truth=sqlite_reads(files), also=sound.truth)


@kind("hot journal", state="journal")
def hot_journal(sound, chance):
    return Damaged(sound, is_damaged=False)


# Pages


@kind("one leaf zeroed")
def one_leaf_zeroed(sound, chance):
    return over(sound, [leaf(sound, chance)])


@kind("every twelfth page zeroed")
def every_twelfth_zeroed(sound, chance):
    return over(sound, range(12, sound.pages.count + 1, 12))


@kind("leaf of random bytes")
def leaf_random(sound, chance):
    return over(sound, [leaf(sound, chance)], chance.randbytes(sound.pages.page_size))


@kind("bit flipped in a leaf's kind")
def flip_kind(sound, chance):
    return flipped(sound, leaf(sound, chance), 0, 0x40)


@kind("bit flipped in a leaf's cell count")
def flip_count(sound, chance):
    return flipped(sound, leaf(sound, chance), 3, 0x80)


@kind("bit flipped in a leaf's cell pointer")
def flip_pointer(sound, chance):
    page = leaf(sound, chance)
    data, size = main_of(sound), sound.pages.page_size
    cells = int.from_bytes(data[(page - 1) * size + 3 : (page - 1) * size + 5], "big")
    return flipped(sound, page, 8 + 2 * min(3, cells - 1), 0x80)


def flipped(sound, page, at, bit):
    data, size = main_of(sound), sound.pages.page_size
    data[(page - 1) * size + at] ^= bit
    return Damaged(sound, {**sound.files, "": bytes(data)}, hurt=[page])


@kind("bit flipped in a value")
def flip_value(sound, chance):
    """Neither SQLite nor any other reader can know of it."""
    page = leaf(sound, chance)
    row = chance.choice([one for one in sound.locations(sound.main_table).values() if one.page == page and not one.chain])
    damaged = flipped(sound, page, row.offset + row.length - 4, 0x01)
    damaged.is_damaged, damaged.truth, damaged.also = None, sqlite_reads(damaged.files), sound.truth
    return damaged


@kind("tail cut off")
def tail_cut(sound, chance):
    size = sound.pages.page_size
    kept = len(sound.files[""]) * 4 // 5 // size * size - size // 3
    files = {**sound.files, "": sound.files[""][:kept]}
    return Damaged(sound, files, destroyed=range(kept // size + 2, sound.pages.count + 1), hurt=[kept // size + 1])


@kind("interior page zeroed")
def interior_zeroed(sound, chance):
    return over(sound, sound.pages.trees[sound.main_table].interior[:1])


@kind("index page zeroed")
def index_zeroed(sound, chance):
    name = "items_by_name" if sound.kind == "plain" else "ZARTICLE_ZAUTHOR_INDEX"
    return over(sound, sound.pages.trees[name].leaves[:1])


@kind("overflow chain cut")
def overflow_cut(sound, chance):
    rows = [row for row in sound.locations(sound.main_table).values() if len(row.chain) > 1]
    if not rows:
        raise NotHere("no value of such a store is on more than one overflow page")
    return over(sound, [chance.choice(rows).chain[1]])


@kind("metadata page zeroed", of=("core-data",))
def metadata_zeroed(sound, chance):
    return over(sound, sound.pages.trees["Z_METADATA"].leaves[:1])


@kind("free pages garbled", state="aged")
def free_garbled(sound, chance):
    data, size = main_of(sound), sound.pages.page_size
    put(data, sound.pages.trunks[0], chance.randbytes(8 + 4 * 20), size)
    return Damaged(sound, {**sound.files, "": bytes(data)})


@kind("free page count and trunk wrong", state="aged")
def free_header_wrong(sound, chance):
    data = main_of(sound)
    data[32:40] = struct.pack(">II", leaf(sound, chance), sound.pages.count // 2)
    return Damaged(sound, {**sound.files, "": bytes(data)})


# The header and the first page


@kind("first page zeroed")
def first_page_zeroed(sound, chance):
    return over(sound, [1])


@kind("first page random")
def first_page_random(sound, chance):
    return over(sound, [1], chance.randbytes(sound.pages.page_size))


@kind("header zeroed")
def header_zeroed(sound, chance):
    return header(sound, bytes(100))


@kind("header random")
def header_random(sound, chance):
    return header(sound, chance.randbytes(100))


@kind("header overwritten by text")
def header_text(sound, chance):
    return header(sound, (b"the quick brown fox jumps over the lazy dog, " * 3)[:100])


def header(sound, content, at=0):
    data = main_of(sound)
    data[at : at + len(content)] = content
    return Damaged(sound, {**sound.files, "": bytes(data)})


@kind("header's page size doubled")
def page_size_doubled(sound, chance):
    return header(sound, struct.pack(">H", sound.pages.page_size * 2), 16)


@kind("header's page size quartered")
def page_size_quartered(sound, chance):
    return header(sound, struct.pack(">H", sound.pages.page_size // 4), 16)


@kind("header's encoding UTF-16")
def encoding_lies(sound, chance):
    return header(sound, struct.pack(">I", 2), 56)


# Log and journal


def foreign_log(page_size):
    """The log of another database of the same page size."""
    with tempfile.TemporaryDirectory(prefix="lazaret-claims-") as folder:
        path = Path(folder) / "other.sqlite"
        store = sqlite3.connect(path, isolation_level=None)
        store.execute(f"PRAGMA page_size = {page_size}")
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("PRAGMA wal_autocheckpoint = 0")
        store.execute("CREATE TABLE planets (id INTEGER PRIMARY KEY, name TEXT)")
        for _ in range(4):
            store.executemany("INSERT INTO planets (name) VALUES (?)", [("x" * 400,) for _ in range(40)])
        data = Path(f"{path}-wal").read_bytes()
        store.close()
        return data


@kind("log of another store")
def log_foreign(sound, chance):
    files = {"": sound.files[""], "-wal": foreign_log(sound.pages.page_size)}
    return Damaged(sound, files, truth=sound.base, why="the log beside the store is another database's")


@kind("main file missing, all of it in the log", state="all in the log")
def main_missing(sound, chance):
    return without_main(sound, None)


@kind("main file without a byte, all of it in the log", state="all in the log")
def main_empty(sound, chance):
    return without_main(sound, b"")


@kind("main file blank, all of it in the log", state="all in the log")
def main_blank(sound, chance):
    damaged = without_main(sound, bytes(len(sound.files[""])))
    # SQLite reads such a store as it was, since it needs no page of the main file.
    damaged.is_damaged = None
    return damaged


@kind("main file missing, some of it in the log", state="log")
def main_missing_in_part(sound, chance):
    return without_main(sound, None)


@kind("main file blank, some of it in the log", state="log")
def main_blank_in_part(sound, chance):
    return without_main(sound, bytes(len(sound.files[""])))


def without_main(sound, content):
    files = {"": content, "-wal": sound.files["-wal"]}
    pages = logged_pages(sound.files["-wal"], sound.pages.page_size)
    size = sound.pages.page_size
    image = bytearray(sound.files[""].ljust(max(pages) * size, b"\0"))
    for number, page in pages.items():
        put(image, number, page, size)
    trees = PageMap(bytes(image), sound.truth.schema).trees
    certain = {
        table: {key for key, row in zip(rows, trees[sound.truth.names[table]].rows) if row.pages <= set(pages)}
        for table, rows in sound.truth.tables.items()}
    return Damaged(sound, files, certain=certain, why=f"the main file is gone, and {len(pages)} pages of it are in its log")


def logged_pages(log, page_size):
    """The newest committed version of each page in a sound log."""
    salt, pages, waiting = log[16:24], {}, {}
    for start in range(32, len(log), page_size + 24):
        number, committed = struct.unpack(">II", log[start : start + 8])
        if log[start + 8 : start + 16] != salt:
            break
        waiting[number] = log[start + 24 : start + 24 + page_size]
        if committed:
            pages.update(waiting)
            waiting = {}
    return pages


@kind("main file missing, journal left", state="journal")
def main_missing_journal(sound, chance):
    return without_main_but_journal(sound, None)


@kind("main file blank, journal left", state="journal")
def main_blank_journal(sound, chance):
    return without_main_but_journal(sound, bytes(len(sound.files[""])))


def without_main_but_journal(sound, content):
    files = {"": content, "-journal": sound.files["-journal"]}
    nothing = {table: set() for table in sound.truth.tables}
    return Damaged(sound, files, certain=nothing, why="the main file is gone, and a journal is left of it")


# The schema


@kind("column dropped")
def column_dropped(sound, chance):
    columns = next(iter(sound.base.tables[sound.main_table].values()))
    table, column = sound.main_table, next(name for name in ("note", "ZRATING", "ZSCORE") if name in columns)
    return changed(sound, f"ALTER TABLE {table} DROP COLUMN {column}", f"the column {column} of {table} was dropped")


@kind("table missing")
def table_missing(sound, chance):
    table = "drafts" if sound.kind == "plain" else "ZTAG"
    return changed(sound, f"DROP TABLE {table}", f"the table {table} was dropped")


def changed(sound, statement, why):
    with tempfile.TemporaryDirectory(prefix="lazaret-claims-") as folder:
        path = Path(folder) / "copy.sqlite"
        write(path, sound.files)
        store = sqlite3.connect(path)
        store.execute(statement)
        store.commit()
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        files = {"": path.read_bytes()}
    damaged = Damaged(sound, files, is_damaged=False, truth=sqlite_reads(files), why=why)
    damaged.is_drifted = True
    return damaged


# What is no store


def picture():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + bytes(3 * 64) for _ in range(64))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def archive():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("notes.txt", "some notes\n" * 400)
    return data.getvalue()


def program():
    """The header of an ELF file with something behind it."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x401000, 64, 0, 0, 64, 56, 1, 64, 0, 0) \
        + bytes(4000)


# What each file is, and the words for its kind that a message must have one of.
FOREIGN = {
    "text": (("# Read me\n\nThis is a text for people.\n" * 40).encode(), ("text",)),
    "picture": (picture(), ("picture", "image", "png")),
    "archive": (archive(), ("archive", "zip")),
    "property list, binary": (plistlib.dumps({"key": ["value"] * 50}, fmt=plistlib.FMT_BINARY), ("property list",)),
    "property list, XML": (plistlib.dumps({"key": ["value"] * 50}), ("property list", "xml", "text")),
    "program": (program(), ("program", "executable")),
}
