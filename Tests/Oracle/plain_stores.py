"""Plain stores of random schemas, damaged on their bytes: no row of one table in another, nothing called whole that is not.

Rows are read by Python's SQLite and damage is made page by page, so nothing here knows how a salvage works. For each store:
a table holds no row that the original lacks, but for rows that are reported as doubtful; exit 0 only where every row is there;
a table none of whose pages was hit, and whose way from the root is whole, is given back whole.
Arguments: `--seeds 1,2` (default: 5), `--only KIND`, `--keep FOLDER`.
"""

import argparse
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret, todays

WORDS = "river stone lamp winter paper garden engine silver morning table copper window island cloud".split()
TYPES = ["INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", "", "VARCHAR(20)", "INT", "DATETIME"]


def value(source, declared):
    """A value as apps keep it in a column of a type."""
    if source.random() < 0.1:
        return None
    text = lambda: " ".join(source.choices(WORDS, k=source.randrange(1, 9))) + " ü%d" % source.randrange(10_000)
    if declared in ("INTEGER", "INT"):
        return source.randrange(-5, 100_000)
    if declared in ("REAL", "NUMERIC"):
        return source.random() * 1000
    if declared in ("TEXT", "VARCHAR(20)"):
        return text()
    if declared == "BLOB":
        return source.randbytes(source.choice([0, 16, 40, 300]) if source.random() < 0.95 else 9000)
    return source.choice([text(), source.randrange(1000), source.randbytes(8)])


class Store:
    """A store of a random schema: `tables` maps the name of each table to the columns that are compared."""

    def __init__(self, path, source, encoding):
        self.path, self.source, self.tables = path, source, {}
        db = sqlite3.connect(path, isolation_level=None)
        db.execute(f"PRAGMA page_size = {source.choice([1024, 4096, 4096])}")
        db.execute(f"PRAGMA encoding = '{encoding}'")
        if source.random() < 0.2:
            db.execute("PRAGMA auto_vacuum = 1")
        db.execute("BEGIN")
        for number in range(source.randrange(2, 7)):
            self.make(db, f"{source.choice(WORDS)}_{number}")
        if source.random() < 0.4:
            db.execute("CREATE VIRTUAL TABLE notes USING fts5(title, body)")
            for _ in range(source.randrange(20, 200)):
                db.execute("INSERT INTO notes VALUES (?, ?)", (value(source, "TEXT"), value(source, "TEXT")))
            self.tables["notes"] = ["title", "body"]
        db.execute("COMMIT")
        for table in self.tables:
            if table != "notes" and source.random() < 0.3:
                db.execute(f'DELETE FROM "{table}" WHERE rowid % 9 = 4' if table not in self.bare else f'DELETE FROM "{table}" WHERE c0 > 90000')
        self.schema = [sql for sql, in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'notes\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite_%'")]
        db.close()

    def make(self, db, name):
        source = self.source
        self.bare = getattr(self, "bare", set())
        columns = [f"c{place} {source.choice(TYPES)}".strip() for place in range(source.randrange(1, 8))]
        types = [column.split()[1] if " " in column else "" for column in columns]
        form = source.choice(["key", "key", "sequence", "text", "bare", "none"])
        head, tail = {
            "key": ("id INTEGER PRIMARY KEY, ", ""), "sequence": ("id INTEGER PRIMARY KEY AUTOINCREMENT, ", ""),
            "text": ("k TEXT PRIMARY KEY, ", ""), "bare": ("c TEXT, ", ", PRIMARY KEY (c, c0)"), "none": ("", "")}[form]
        options = " WITHOUT ROWID" if form == "bare" else ""
        if form == "bare":
            columns[0], types[0] = "c0 INTEGER", "INTEGER"
            self.bare.add(name)
        db.execute(f'CREATE TABLE "{name}" ({head}{", ".join(columns)}{tail}){options}')
        names = [column.split()[0] for column in columns]
        lead = {"text": ["k"], "bare": ["c"]}.get(form, [])
        count = source.choice([0, 3, 40, 300, 1200])

        def fill(first, last):
            for row in range(first, last):
                values = [value(source, one) for one in types]
                if form == "bare":
                    values[0] = row
                keys = [f"{source.choice(WORDS)} {row}"] if lead else []
                places = ", ".join("?" * (len(keys) + len(values)))
                db.execute(f'INSERT INTO "{name}" ({", ".join(lead + names)}) VALUES ({places})', keys + values)
        fill(0, count)
        if source.random() < 0.3:
            added = source.choice(["x1 TEXT", "x1 INTEGER DEFAULT 7", "x1 TEXT DEFAULT 'd'"])
            db.execute(f'ALTER TABLE "{name}" ADD COLUMN {added}')
            names, types = names + ["x1"], types + [added.split()[1]]
            fill(count, count + count // 3)
        if source.random() < 0.5:
            db.execute(f'CREATE INDEX "{name}_i" ON "{name}" ({source.choice(names)})')
        if source.random() < 0.2:
            db.execute(f'CREATE INDEX "{name}_e" ON "{name}" (lower({names[-1]}))')
        if lead and source.random() < 0.4:
            db.execute(f'CREATE UNIQUE INDEX "{name}_u" ON "{name}" ({names[0]}, {", ".join(lead + names[:1])})')
        self.tables[name] = (["id"] if form in ("key", "sequence") else []) + lead + names


def rows(path, tables):
    """The rows of tables by their names; none of one that cannot be read."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.text_factory = bytes
    found = {}
    for table, columns in tables.items():
        try:
            picked = ", ".join(f'typeof("{column}"), "{column}"' for column in columns)
            found[table] = list(db.execute(f'SELECT {picked} FROM "{table}"'))
        except sqlite3.Error:
            found[table] = []
    db.close()
    return found


class Pages:
    """The pages of a store, read by the file format's own rules (sqlite.org/fileformat2.html)."""

    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        self.size = int.from_bytes(self.bytes[16:18], "big") or 65536
        self.count = len(self.bytes) // self.size
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.roots = {name: root for name, root in db.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0")}
        db.close()

    def start(self, page):
        return (page - 1) * self.size

    def tree(self, root):
        """The inner pages and the leaves of a tree."""
        inner, leaves, pending = [], [], [root]
        while pending:
            page = pending.pop()
            at = self.start(page) + (100 if page == 1 else 0)
            if self.bytes[at] in (10, 13):
                leaves.append(page)
                continue
            inner.append(page)
            for cell in range(int.from_bytes(self.bytes[at + 3:at + 5], "big")):
                offset = self.start(page) + int.from_bytes(self.bytes[at + 12 + 2 * cell:at + 14 + 2 * cell], "big")
                pending.append(int.from_bytes(self.bytes[offset:offset + 4], "big"))
            pending.append(int.from_bytes(self.bytes[at + 8:at + 12], "big"))
        return inner, leaves

    def zeroing(self, pages):
        damaged = bytearray(self.bytes)
        for page in pages:
            damaged[self.start(page):self.start(page) + self.size] = bytes(self.size)
        return damaged

    def swapping(self, pairs):
        damaged = bytearray(self.bytes)
        for one, other in pairs:
            first, second = slice(self.start(one), self.start(one) + self.size), slice(self.start(other), self.start(other) + self.size)
            damaged[first], damaged[second] = self.bytes[second], self.bytes[first]
        return damaged


def damages(pages, source):
    """Name, bytes, whether the list of tables is gone, and the pages that were hit."""
    some = lambda count: source.sample(range(2, pages.count + 1), min(count, pages.count - 1))
    roots = [root for root in pages.roots.values() if root > 1]
    inner = [page for root in roots for page in pages.tree(root)[0]]
    listed = pages.tree(1)
    yield "page 1 zeroed", pages.zeroing([1]), True, {1}
    yield "roots zeroed", pages.zeroing(roots), False, set(roots)
    yield "inner pages zeroed", pages.zeroing(inner), False, set(inner)
    hit = some(1)
    yield "one page zeroed", pages.zeroing(hit), False, set(hit)
    hit = some(max(2, pages.count // 20))
    yield "pages zeroed", pages.zeroing(hit), False, set(hit)
    damaged = bytearray(pages.bytes)
    for page in hit:
        damaged[pages.start(page):pages.start(page) + pages.size] = source.randbytes(pages.size)
    yield "pages random", damaged, False, set(hit)
    if len(roots) > 1:
        pair = source.sample(roots, 2)
        yield "roots exchanged", pages.swapping([pair]), False, set(pair)
    if pages.count > 6:
        pair = some(2)
        yield "pages exchanged", pages.swapping([pair]), False, set(pair)
    if listed[0]:
        hit = [source.choice(listed[1])]
        yield "a page of the list of tables zeroed", pages.zeroing(hit), True, set(hit)
    damaged = bytearray(pages.bytes)
    damaged[32:40] = bytes(8)
    yield "free list forgotten", damaged, False, set()
    damaged = bytearray(pages.bytes)
    places = [at for at in range(len(damaged)) if damaged[at:at + 7] in (b"CREATE ", b"C\0R\0E\0A") and at < pages.size * 3]
    if places:
        damaged[source.choice(places) + source.randrange(4)] ^= 1 << source.randrange(5)
        yield "a bit of a declaration", damaged, True, {1}
    damaged = bytearray(pages.bytes)
    damaged[20] ^= 1 << source.randrange(8)
    yield "reserved bytes", damaged, False, set()
    yield "cut off", pages.bytes[:int(len(pages.bytes) * source.uniform(0.3, 0.95))], True, None


def faults(store, truth, kind, data, is_listless, hit, folder):
    damaged, schema, output = folder / "damaged.sqlite", folder / "schema.sql", folder / "out.sqlite"
    for old in folder.glob("out*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    damaged.write_bytes(data)
    schema.write_text(";\n".join(store.schema) + ";\n")
    for options in ([], ["--raw"]) if not is_listless else (["--schema", str(schema)], []):
        ran = lazaret("salvage", damaged, *options, "-o", output, "--json")
        label = f"{kind} {' '.join(options[:1])}"
        if not output.exists():
            yield f"{label}: no result, {ran.error.strip()[:200]}"
            continue
        report = ran.data
        doubtful = {one["table"]: one.get("doubtful") or 0 for one in report["entities"]}
        found = rows(output, store.tables)
        missing = false = 0
        for table, want in truth.items():
            left = list(found[table])
            have = dict.fromkeys(want)
            wrong = sum(row not in have for row in left)
            gone = sum(row not in dict.fromkeys(left) for row in want)
            missing, false = missing + gone, false + wrong
            if wrong > doubtful.get(table, 0):
                yield f"{label}: {wrong} false rows in {table}, {doubtful.get(table, 0)} of them marked"
            if hit is not None and hit <= store.all_owned and not is_listless and gone and store.owned[table].isdisjoint(hit):
                yield f"{label}: {gone} of {len(want)} rows of {table} are missing, none of whose pages was hit"
        if ran.code == 0 and (missing or false):
            yield f"{label}: exit 0 with {missing} rows missing and {false} false"
        if missing == 0 and false == 0 and report["summary"].get("lost"):
            yield f"{label}: tells {report['summary']['lost']} lost of none"
        for old in folder.glob("out*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="5")
    parser.add_argument("--stores", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    options = parser.parse_args()
    cases = failed = 0
    for seed in map(int, options.seeds.split(",")):
        for number in range(options.stores):
            source = random.Random(f"{seed}/{number}")
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(options.keep or scratch)
                path = folder / "good.sqlite"
                path.unlink(missing_ok=True)
                store = Store(path, source, ["UTF-8", "UTF-16le"][number % 2])
                truth, pages = rows(path, store.tables), Pages(path)
                store.owned = {}
                for table in store.tables:
                    names = [name for name in pages.roots if name == table or name.startswith(f"{table}_")]
                    store.owned[table] = {page for name in names for part in pages.tree(pages.roots[name]) for page in part}
                # Pages of long values are no tree's.
                store.all_owned = {page for root in pages.roots.values() for part in pages.tree(root) for page in part}
                for kind, data, is_listless, hit in todays(damages(pages, source)):
                    if options.only not in kind:
                        continue
                    cases += 1
                    found = list(faults(store, truth, kind, data, is_listless, hit, folder))
                    failed += bool(found)
                    for fault in found:
                        print(f"seed {seed}, store {number}: {fault}")
    print(f"{cases} damaged stores, {failed} of them with a false claim")
    sys.exit(failed > 0 or cases == 0)


main()
