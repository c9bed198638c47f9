"""Inspects and opens every sound real store, and holds what is said and done against what SQLite finds and does.

A store is sound where SQLite's own check says so. `inspect` without a model finds nothing wrong with it, and counts the rows that
SQLite counts. Where a model fits, `open` says so, moves nothing, and leaves the bytes that SQLite itself leaves when it opens and
closes the store. `salvage --raw` gives every value of it back, each of its storage class. Arguments: words of the paths of the stores
to try.
"""

import collections
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import contents, lazaret, leave_skipped, real_material, todays
from values import opened, quoted_rows

PARTS = ("", "-wal", "-journal")
MODELS = (".xcdatamodeld", ".momd", ".xcdatamodel", ".mom")


def stores(material):
    for folder in ("stores", "swiftdata"):
        for path in sorted((material / folder).rglob("*")):
            if path.is_file() and not path.name.endswith(PARTS[1:]) and path.read_bytes()[:15] == b"SQLite format 3":
                yield path


def models(material):
    """Every model, and every version of it alone, by the folder of the project that it is of."""
    found = collections.defaultdict(list)
    for path in sorted((material / "models").rglob("*")):
        if path.suffix in MODELS:
            found[path.relative_to(material / "models").parts[0]].append(path)
    return found


def copied(path, folder):
    copy = folder / "Store.sqlite"
    for part in PARTS:
        if os.path.exists(f"{path}{part}"):
            shutil.copyfile(f"{path}{part}", f"{copy}{part}")
    return copy


def tables(connection):
    """The names of ordinary tables."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    return [name for name, sql in rows if not name.startswith("sqlite_") and not sql.startswith("CREATE VIRTUAL")]


def values(path):
    """Every row of every ordinary table, as SQLite quotes its values."""
    connection = opened(path)
    result = {}
    try:
        for name in tables(connection):
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            result[name] = quoted_rows(connection, name, columns)
    finally:
        connection.close()
    return result


def is_sound(path):
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(copied(path, Path(folder)))
        try:
            return connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
        except sqlite3.DatabaseError:
            return False
        finally:
            connection.close()


class Store:
    """One store and what was found false about it."""

    def __init__(self, path, fitting):
        self.path, self.fitting, self.false, self.claims, self.is_opened = path, fitting, [], 0, False

    def claim(self, holds, words):
        self.claims += 1
        if not holds:
            self.false.append(words)

    def play(self):
        with tempfile.TemporaryDirectory() as folder:
            self.inspect(Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            self.salvage(Path(folder))
        for model in self.fitting:
            if self.is_opened:
                break
            with tempfile.TemporaryDirectory() as folder:
                self.open(model, Path(folder))

    def inspect(self, folder):
        copy = copied(self.path, folder)
        before = contents(folder)
        told = lazaret("inspect", copy, "--json")
        self.claim(told.code == 0 and told.data.get("verdict") == "compatible", f"inspect: {told}")
        self.claim(contents(folder) == before, "inspect changed a file")
        connection = sqlite3.connect(copy)
        for entity in told.data.get("entities", []):
            # An entity that shares its table is counted by its number.
            if sum(one["table"] == entity["table"] for one in told.data["entities"]) > 1:
                continue
            (rows,) = connection.execute(f'SELECT count(*) FROM "{entity["table"]}"').fetchone()
            self.claim(entity["rows"] == rows, f"inspect counts {entity['rows']} of {entity['name']}, SQLite {rows}")
        connection.close()

    def salvage(self, folder):
        copy, out = copied(self.path, folder), folder / "Out.sqlite"
        whole = folder / "whole"
        whole.mkdir()
        expected = values(copied(self.path, whole))
        told = lazaret("salvage", copy, "--raw", "-o", out, "--json")
        self.claim(told.code == 0, f"salvage --raw: {told}")
        self.claim(told.data.get("causes", []) == [], f"salvage --raw names causes: {told.data.get('causes')}")
        made = values(out) if out.exists() else {}
        differing = [name for name in expected if made.get(name) != expected[name]]
        self.claim(not differing, f"salvage --raw: other rows in {differing[:5]}")

    def open(self, model, folder):
        copy = copied(self.path, folder)
        if lazaret("inspect", copy, "--model", model, "--json").data.get("verdict") != "compatible":
            return
        self.is_opened = True
        sqlite = folder / "as SQLite does"
        sqlite.mkdir()
        other = copied(self.path, sqlite)
        connection = sqlite3.connect(other)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.close()
        home = folder / "Home"
        told = lazaret("open", copy, "--model", model, "--home", home, "--json")
        self.claim(told.code == 0 and told.data.get("verdict") == "compatible", f"open: {told}")
        self.claim(not told.data.get("events"), f"open tells of events: {told.data.get('events')}")
        self.claim(copy.read_bytes() == other.read_bytes(), "open leaves other bytes than SQLite does")
        left = {path.name for path in folder.iterdir()} - {"as SQLite does", "Home"}
        self.claim(left == {path.name for path in sqlite.iterdir()}, f"open leaves {sorted(left)}")


def main(words):
    material = real_material()
    if not material:
        leave_skipped("the folder of real stores is missing")
    known, claims, false, opened, tried = models(material), 0, 0, 0, 0
    for path in todays(stores(material)):
        name = str(path.relative_to(material))
        if not all(word in name for word in words) or not is_sound(path):
            continue
        project = path.relative_to(material).parts[1]
        store = Store(path, known.get(project, []))
        store.play()
        tried, claims, false, opened = tried + 1, claims + store.claims, false + len(store.false), opened + store.is_opened
        for one in store.false:
            print(f"FALSE {name}: {one}")
    print(f"{tried} sound stores, {opened} opened with a model that fits; {false} of {claims} claims do not hold")
    sys.exit(bool(false) or tried == 0)


main(sys.argv[1:])
