"""Stores whose declarations eat time or memory, through every command and every page: each ends within its limits.

SQLite makes each store with cheap declarations and rows; then its schema is rewritten, which SQLite only parses. What is read back
is read by SQLite from columns that no expression gives. A command has a limit of time and of memory, which the kernel measures; the
serving process has one of memory over all stores, and each page one of time.
Every third store is played, and all of them with --all, in two or three minutes. Arguments: words of the names of the stores to try;
--serve plays only the pages, --commands only the commands.
"""

import http.client
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
import models
from tool import LAZARET, contents, todays

SECONDS, MEGABYTES = 20, 512
PAGE_SECONDS, SERVER_MEGABYTES = 20, 200
# What a process may ask for before the kernel stops it: a machine that does other work is not to suffer.
ADDRESS_SPACE = 6 << 30

BIG = "hex(zeroblob(140000000))"
# One call of a function, which nothing can interrupt.
LONG = "instr(zeroblob(100000000), zeroblob(50000000) || x'01')"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
ROWS = 60

# What a person may type about each store, and what a link may hold that wants to keep the server busy.
QUERIES = ["SELECT * FROM t", "SELECT count(*) FROM t AS a NATURAL JOIN t AS b", "SELECT * FROM v", "SELECT * FROM sqlite_master"]
ATTACKS = [
    ENDLESS, f"SELECT {BIG}", f"SELECT {LONG}",
    "WITH x0 AS (SELECT 1 c)" + "".join(f", x{n} AS (SELECT a.c FROM x{n - 1} a, x{n - 1} b)" for n in range(1, 60)) + " SELECT * FROM x59",
    "SELECT c" + " FROM (SELECT c+c+c+c+c+c+c+c c" * 8 + " FROM (SELECT 1 c FROM sqlite_master)" + ")" * 8,
    "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT x FROM c",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT trim(group_concat(x), group_concat(x)) FROM c",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT json_group_array(x) FROM c",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c ORDER BY random()",
    "PRAGMA hard_heap_limit = 1", "ATTACH '/tmp/made-by-a-query.sqlite' AS x", "VACUUM INTO '/tmp/made-by-a-query.sqlite'",
]

STORES = {}


def store(name):
    """Registers what makes a plain store with a table `t`, whose rows are `rows()`."""
    def register(make):
        STORES[name] = make
        return make
    return register


def rows():
    return [(number, f"name {number} " + "abcdefgh" * (number % 7), number * 3) for number in range(1, ROWS + 1)]


def plain(db, columns="id INTEGER PRIMARY KEY, a TEXT, b INTEGER"):
    db.execute(f"CREATE TABLE t ({columns})")
    db.executemany("INSERT INTO t (id, a, b) VALUES (?, ?, ?)", rows())


def redeclare(db, name, sql):
    """Gives something of the schema another statement, as a hostile file has it."""
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
    (version,) = db.execute("PRAGMA schema_version").fetchone()
    db.execute(f"PRAGMA schema_version = {version + 1}")
    db.execute("PRAGMA writable_schema = OFF")


def table(extra):
    return f"CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b INTEGER{extra})"


def declared(extra):
    """A plain store whose table has something more at the end of its declaration."""
    def make(db):
        plain(db)
        redeclare(db, "t", table(extra))
    return make


DECLARED = {
    "a long generated column": f", g TEXT GENERATED ALWAYS AS ({BIG})",
    "a long generated column, stored": f", g TEXT GENERATED ALWAYS AS ({BIG}) STORED",
    "a generated column that must not be null": f", g TEXT NOT NULL GENERATED ALWAYS AS (replace({BIG}, '0', '00'))",
    "a generated column that is one long call": f", g INTEGER GENERATED ALWAYS AS ({LONG})",
    "a generated column by printf": ", g TEXT GENERATED ALWAYS AS (printf('%.*c', 900000000, 'x'))",
    "columns that double each other": ", c0 TEXT AS (a || a)" + "".join(f", c{n + 1} TEXT AS (c{n} || c{n})" for n in range(27)),
    "a thousand generated columns": "".join(f", g{n} TEXT AS (hex(zeroblob(1000000)))" for n in range(1000)),
    "a long check": f", CHECK (length({BIG}) > 0)",
    "a check that is one long call": f", CHECK ({LONG} IS NOT 1)",
    "a check with a long pattern": f", CHECK (hex(zeroblob(2000000)) NOT LIKE '{'%0_' * 8000}1')",
    "many checks": "".join(f", CHECK (length(hex(zeroblob({20000000 + n}))) > {n})" for n in range(200)),
    "a deep check": ", CHECK (" + "(" * 90 + "a" + " || a)" * 90 + " IS NOT 1)",
    "a check of half a megabyte": ", CHECK (-id NOT IN (" + ", ".join(f"length(hex(zeroblob({20000 + n})))" for n in range(15000)) + "))",
    "a long default": f", d TEXT DEFAULT ({BIG}) NOT NULL",
}
for name, extra in DECLARED.items():
    STORES[name] = declared(extra)


def indexed(first, hostile, unique=""):
    """A plain store with an index whose expressions are changed."""
    def make(db):
        plain(db)
        db.execute(f"CREATE {unique} INDEX i ON t ({first})")
        redeclare(db, "i", f"CREATE {unique} INDEX i ON t {hostile}")
    return make


STORES["an index of long values"] = indexed("length(a)", f"(length({BIG}) + id)")
STORES["a unique index of long values"] = indexed("length(a) + id * 1000", f"(substr({BIG}, id, 9) || id)", "UNIQUE")
STORES["a partial index by one long call"] = indexed("a", f"(a) WHERE {LONG} IS NOT 1")
STORES["an index by a long pattern"] = indexed("a", f"(a) WHERE hex(zeroblob(2000000)) NOT LIKE '{'%0_' * 8000}1'")


@store("endless triggers")
def triggers(db):
    plain(db)
    for event in "INSERT", "UPDATE", "DELETE":
        db.execute(f"CREATE TRIGGER x{event} AFTER {event} ON t BEGIN {ENDLESS}; END")
        db.execute(f"CREATE TRIGGER y{event} BEFORE {event} ON t BEGIN SELECT {BIG}; END")


@store("endless views")
def views(db):
    plain(db)
    db.execute(f"CREATE VIEW endless AS {ENDLESS}")
    db.execute(f"CREATE VIEW big AS SELECT id, {BIG} AS a FROM t")
    db.execute(f"CREATE VIEW Z_METADATA AS SELECT 1 AS Z_VERSION, {BIG} AS Z_UUID, ({ENDLESS}) AS Z_PLIST")
    db.execute("CREATE VIEW Z_PRIMARYKEY AS SELECT 1 AS Z_ENT, big.a AS Z_NAME, 0 AS Z_SUPER, 1 AS Z_MAX FROM big")
    db.execute(f"CREATE VIEW lazaret_pages AS {ENDLESS}")


@store("views that multiply")
def multiplied(db):
    plain(db)
    db.execute("CREATE VIEW v0 AS SELECT * FROM t")
    for n in range(9):
        redeclared = " UNION ALL ".join([f"SELECT * FROM v{n}"] * 8)
        db.execute(f"CREATE VIEW v{n + 1} AS {redeclared}")


@store("full text over an endless view")
def full_text(db):
    plain(db)
    db.execute("CREATE TABLE v (id INTEGER PRIMARY KEY, a TEXT)")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(a, content='v', content_rowid='id')")
    db.execute("INSERT INTO f (rowid, a) VALUES (1, 'one')")
    db.execute("DROP TABLE v")
    db.execute(f"CREATE VIEW v AS {ENDLESS.replace('count(*) FROM c', 'x AS id, ' + BIG + ' AS a FROM c')}")


@store("full text over a generated column")
def full_text_generated(db):
    plain(db)
    db.execute("CREATE VIRTUAL TABLE f USING fts4(content='t', a)")
    db.execute("INSERT INTO f (docid, a) SELECT id, a FROM t")
    redeclare(db, "t", f"CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT, b INTEGER, a TEXT AS ({BIG}))")


@store("thousands of tables")
def many_tables(db):
    plain(db)
    for number in range(4_000):
        db.execute(f"CREATE TABLE n{number} (a)")


@store("a table of two thousand columns with indexes")
def wide(db):
    plain(db)
    db.execute("CREATE TABLE w (" + ", ".join(f"c{n}" for n in range(1999)) + ")")
    db.execute("INSERT INTO w (c0) VALUES (1)")
    for n in range(300):
        db.execute(f"CREATE INDEX w{n} ON w (c{n}, c{n + 1})")


@store("tables of Core Data that are generated")
def generated_bookkeeping(db):
    plain(db)
    db.execute("CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)")
    db.execute("INSERT INTO Z_PRIMARYKEY VALUES (1, 'T', 0, 60)")
    db.execute("CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)")
    db.execute("INSERT INTO Z_METADATA VALUES (1, 'x', x'00')")
    db.execute("CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
    db.execute("INSERT INTO Z_MODELCACHE VALUES (x'00')")
    redeclare(db, "Z_METADATA", f"CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID AS ({BIG}), Z_PLIST AS (zeroblob(900000000)))")
    redeclare(db, "Z_MODELCACHE", "CREATE TABLE Z_MODELCACHE (x, Z_CONTENT BLOB AS (zeroblob(900000000)))")


def varint(number):
    parts = [number & 0x7F]
    while number := number >> 7:
        parts.append(number & 0x7F | 0x80)
    return bytes(reversed(parts))


@store("rows that share one overflow chain")
def shared_chain(db, leaves=200, chain=2000):
    """1,600 rows, each with the same 8 MB."""
    plain(db)
    db.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, a BLOB)")
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'u'").fetchone()

    def finish(path):
        data = bytearray(path.read_bytes())
        first = len(data) // 4096 + 1
        local = (4096 - 12) * 32 // 255 - 23
        length = local + chain * 4092
        head = bytes([6, 0]) + varint(12 + 2 * (length - 6))
        key, inner = 0, []
        for leaf in range(leaves):
            page, start, cells = bytearray(4096), 4096, []
            for _ in range(8):
                key += 1
                cell = varint(length) + varint(key) + head + bytes(local - len(head)) + (first + leaves).to_bytes(4, "big")
                start -= len(cell)
                page[start:start + len(cell)] = cell
                cells.append(start)
            page[:8] = b"\x0d\0\0" + len(cells).to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0"
            page[8:8 + 2 * len(cells)] = b"".join(place.to_bytes(2, "big") for place in cells)
            data += page
            inner.append((first + leaf).to_bytes(4, "big") + varint(key))
        for number in range(chain):
            data += (first + leaves + number + 1 if number < chain - 1 else 0).to_bytes(4, "big") + b"x" * 4092
        page, start, cells = bytearray(4096), 4096, []
        for cell in inner[:-1]:
            start -= len(cell)
            page[start:start + len(cell)] = cell
            cells.append(start)
        page[:12] = b"\x05\0\0" + len(cells).to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0" + inner[-1][:4]
        page[12:12 + 2 * len(cells)] = b"".join(place.to_bytes(2, "big") for place in cells)
        data[(root - 1) * 4096:root * 4096] = page
        data[28:32] = (len(data) // 4096).to_bytes(4, "big")
        path.write_bytes(data)
    return finish


# Stores of Core Data: the same with tables that a model knows.
MODELLED = {
    "an entity with a long generated attribute": ("ZNAME VARCHAR", f"ZNAME VARCHAR AS ({BIG})"),
    "an entity with a long check": ("ZNAME VARCHAR", f"ZNAME VARCHAR CHECK (length({BIG}) > 0)"),
    "an entity with a check that is one long call": ("ZNAME VARCHAR", f"ZNAME VARCHAR CHECK ({LONG} IS NOT 1)"),
    "an entity with a long default": ("ZNAME VARCHAR", f"ZNAME VARCHAR DEFAULT ({BIG})"),
    "an entity with endless triggers": None,
    "an entity with a hostile index": None,
}


def modelled(name, model, path):
    """A store of Core Data with something hostile in the declaration of its entity."""
    models.empty_store(model, path)
    models.insert(path, {"Car": [{"name": f"car {n}"} for n in range(ROWS)]})
    db = sqlite3.connect(path, isolation_level=None)
    change = MODELLED[name]
    if change:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'ZCAR'").fetchone()
        assert change[0] in sql, sql
        redeclare(db, "ZCAR", sql.replace(*change))
    elif "index" in name:
        indexed_sql = f"CREATE INDEX i ON ZCAR (ZNAME) WHERE {LONG} IS NOT 1"
        db.execute("CREATE INDEX i ON ZCAR (ZNAME)")
        redeclare(db, "i", indexed_sql)
    else:
        for event in "INSERT", "UPDATE", "DELETE":
            db.execute(f"CREATE TRIGGER x{event} AFTER {event} ON ZCAR BEGIN {ENDLESS}; END")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    for ending in "-wal", "-shm":
        Path(str(path) + ending).unlink(missing_ok=True)
    shutil.rmtree(path.parent / "made", ignore_errors=True)


def made(name, folder, model):
    """The store of a name in a new folder."""
    path = folder / "Stores" / "App.sqlite"
    path.parent.mkdir(parents=True)
    if name in MODELLED:
        modelled(name, model, path)
    else:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        finish = STORES[name](db)
        db.execute("COMMIT")
        db.close()
        if finish:
            finish(path)
    return path


# MARK: Commands

class Run:
    """One command, with the time and the memory that it took."""

    def __init__(self, arguments, cwd):
        self.arguments = [str(one) for one in arguments]
        begun = time.monotonic()
        with tempfile.TemporaryFile(dir=cwd) as out:
            process = subprocess.Popen(
                [LAZARET, *self.arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, preexec_fn=limited)
            timer = threading.Timer(SECONDS + 5, process.kill)
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            self.text = out.read(20_000).decode(errors="replace")
        self.seconds, self.megabytes, self.code = time.monotonic() - begun, usage.ru_maxrss // 1024, process.returncode

    def fault(self):
        if self.seconds > SECONDS:
            return f"took {self.seconds:.1f} s"
        if self.megabytes > MEGABYTES:
            return f"took {self.megabytes} MB"
        if self.code not in (0, 1, 2, 3):
            return f"ended with {self.code}: {self.text[-300:]}"
        return None


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def values(path, name):
    """The rows of the table that no expression gives, read by SQLite; None where they cannot be read."""
    columns, source = ("ZNAME", "ZCAR") if name in MODELLED else ("id, a, b", "t")
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 << 20)
    end = time.monotonic() + 5
    db.set_progress_handler(lambda: time.monotonic() > end, 1000)
    try:
        return sorted(db.execute(f"SELECT {columns} FROM {source}").fetchall())
    except sqlite3.Error as error:
        return str(error)
    finally:
        db.close()


def given(name):
    """Whether SQLite reads the rows from the file alone."""
    return name not in ("an entity with a long generated attribute", "full text over a generated column")


def commands(name, folder, model, schema):
    """Every command that looks at a store, in an order in which each has what it needs."""
    out, home, store = folder / "Out", folder / "Home", folder / "Stores/App.sqlite"
    out.mkdir()
    wanted = model if name in MODELLED else schema
    by = ["--model", model] if name in MODELLED else ["--schema", schema]
    yield "inspect", ["inspect", store, "--json"]
    yield "inspect with a model", ["inspect", store, "--model", wanted, "--json"]
    if name in MODELLED:
        yield "inspect --check data", ["inspect", store, "--model", model, "--check", "data", "--json"]
        yield "repair --dry-run", ["repair", store, "--model", model, "--dry-run"]
        yield "drift", ["damage", store, "-o", out / "Drifted.sqlite", "--kind", "drift:column"]
        yield "plan", ["plan", store, "--model", model]
        yield "migrate", ["migrate", store, "--model", model, "--output", out / "Migrated.sqlite"]
    yield "salvage --raw", ["salvage", store, "--raw", "--deleted", "-o", out / "Raw.sqlite", "--json"]
    yield "salvage", ["salvage", store, "-o", out / "Salvaged.sqlite", "--json"]
    yield "salvage with a model", ["salvage", store, *by, "-o", out / "Fitted.sqlite", "--json"]
    yield "damage", ["damage", store, "-o", out / "Damaged.sqlite", "--kind", "zero:2"]
    yield "salvage of the damaged", ["salvage", out / "Damaged.sqlite", "-o", out / "Again.sqlite", "--json"]
    for level in "facts", "damaged-pages", "scrubbed", "full":
        yield f"export {level}", ["export", store, "-o", out / f"{level}.tar.gz", "--level", level, "--yes", "--home", home]
    yield "bundle", ["bundle", "check", out / "full.tar.gz"]
    yield "kit create", ["kit", "create", store, "-o", out / "App.lazaretkit"]
    yield "backup create", ["backup", "create", store, "--home", home]
    yield "backup verify", ["backup", "verify", "--home", home]
    yield "backup restore --preview", ["backup", "restore", "--of", store, "--home", home, "--preview"]
    yield "backup restore --to", ["backup", "restore", "--of", store, "--home", home, "--to", out / "Restored.sqlite"]
    if name in MODELLED:
        yield "backup restore --entity", [
            "backup", "restore", "--of", store, "--home", home, "--entity", "Car", "--model", model, "--to", out / "Cars.sqlite"]
    shutil.copytree(store.parent, folder / "Apart")
    yield "open", ["open", folder / "Apart/App.sqlite", "--model", wanted, "--home", folder / "Opened", "--json"]
    shutil.copytree(store.parent, folder / "Moved")
    yield "quarantine add", ["quarantine", "add", folder / "Moved/App.sqlite", "--home", folder / "Moved"]
    shut = sorted((folder / "Moved").rglob("Incompatible/*.sqlite"))
    if shut:
        yield "quarantine salvage", ["quarantine", "salvage", shut[0], "--home", folder / "Moved", "--model", wanted]


def play_commands(name, model, schema, tally):
    with tempfile.TemporaryDirectory(prefix="lazaret-hostile-") as folder:
        folder = Path(folder)
        store = made(name, folder, model)
        before, expected = contents(store.parent), values(store, name)
        for verb, arguments in commands(name, folder, model, schema):
            run = Run(arguments, folder)
            fault = run.fault()
            if not fault and contents(store.parent) != before:
                fault = "changed the evidence"
            if not fault and given(name) and verb in ("salvage", "salvage --raw"):
                found = values(Path(arguments[arguments.index("-o") + 1]), name)
                if found != expected and not isinstance(expected, str):
                    fault = f"rows differ: {str(found)[:200]} (exit code {run.code}) {run.text[-300:]}"
            tally.note(f"{name}: {verb}", fault, run.seconds, run.megabytes)


# MARK: Pages

class Server:
    """The inspector of a home, as a browser that followed its link sees it."""

    def __init__(self, home, model):
        self.out = tempfile.NamedTemporaryFile(mode="w+", suffix=".json")
        self.process = subprocess.Popen(
            [LAZARET, "serve", "--home", home, "--port", "0", "--no-browser", "--json", "--model", model],
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.DEVNULL, preexec_fn=limited)
        for _ in range(400):
            text = Path(self.out.name).read_text()
            if text.strip().endswith("}"):
                break
            time.sleep(0.05)
        parts = urllib.parse.urlsplit(json.loads(text)["url"])
        self.host, self.port, self.cookie, self.token = parts.hostname, parts.port, "", ""
        _, fields, _ = self.request("GET", parts.path)
        self.cookie = fields["Set-Cookie"].split(";")[0]

    def request(self, method, path, body=None):
        """The status, the header fields and the beginning of the body of an answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PAGE_SECONDS + 5)
        try:
            fields = {"Cookie": self.cookie}
            if body is not None:
                fields |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}:{self.port}"}
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read(8 << 20)
        finally:
            connection.close()

    def get(self, path):
        """The JSON of a page, once it is not being prepared any more."""
        begun = time.monotonic()
        while True:
            status, _, body = self.request("GET", path)
            data = json.loads(body) if body[:1] == b"{" else {}
            if "preparing" not in data or time.monotonic() - begun > PAGE_SECONDS:
                return status, data
            time.sleep(0.1)

    def megabytes(self):
        """The most memory that it had."""
        try:
            return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) // 1024
        except (OSError, AttributeError):
            return -1

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def pages(server, identifier, attacks=()):
    """Every page of a store, found by what the pages before it say, and queries over it."""
    yield f"/stores/{identifier}.json"
    for page in "map", "losses", "plan", "compare", "export", "backup", "salvage", "repair", "check", "pages/1", "pages/2":
        yield f"/stores/{identifier}/{page}.json"
    _, data = server.get(f"/stores/{identifier}.json")
    sides = sorted(set(re.findall(rf"/stores/{identifier}/([a-z0-9-]+)/entities", json.dumps(data)))) or ["live", "original"]
    for side in sides:
        place = f"/stores/{identifier}/{side}"
        yield f"{place}/entities.json"
        _, data = server.get(f"{place}/entities.json")
        for entity in [one for one in data.get("entities", []) if one["name"] in ("t", "Car", "w", "Z_METADATA", "v", "big", "endless")]:
            path = entity["path"]
            yield f"{path}.json"
            status, page = server.get(f"{path}.json")
            for column in [one.get("name", "") for one in page.get("columns", [])][:5]:
                yield f"{path}.json?_sort={urllib.parse.quote(column)}"
                yield f"{path}.json?{urllib.parse.quote(column)}__contains=abc"
            yield f"{path}/1.json"
            yield f"{path.removesuffix('/records')}/export/csv"
            yield f"{path.removesuffix('/records')}/export/json"
        yield f"{place}/search.json?q=abc"
        for query in [*QUERIES, *attacks]:
            yield f"{place}/query.json?sql={urllib.parse.quote(query)}"
        yield f"{place}/query/export/csv?sql={urllib.parse.quote(QUERIES[0])}"
        attacks = ()
    for first, second in zip(sides, sides[1:]):
        yield f"/stores/{identifier}/compare/{first}/{second}/entities.json"
        for entity in "t", "Car":
            yield f"/stores/{identifier}/compare/{first}/{second}/entities/{entity}/records.json"


def play_pages(names, model, tally):
    with tempfile.TemporaryDirectory(prefix="lazaret-hostile-") as folder:
        home = Path(folder) / "Home"
        home.mkdir()
        for number, name in enumerate(names):
            path = made(name, Path(folder) / f"{number}", model)
            # A quarantined store of each, its backup, and the store itself where it was.
            place = home / f"App{number:02}.sqlite"
            for _ in range(2):
                shutil.copy(path, place)
                Run(["backup", "create", place, "--home", home], folder)
                Run(["quarantine", "add", place, "--home", home, "--reason", name], folder)
            shutil.copy(path, place)
        server = Server(home, model)
        try:
            _, data = server.get("/stores.json")
            identifiers = sorted(set(re.findall(r'"/stores/([A-Za-z0-9_.-]+?)(?:\.json)?"', json.dumps(data))))
            if len(identifiers) < len(names):
                tally.note("pages", f"only {len(identifiers)} stores are shown", 0, 0)
            shown = 0
            for identifier in identifiers:
                for path in pages(server, identifier, ATTACKS if identifier == identifiers[0] else ()):
                    begun, fault = time.monotonic(), None
                    try:
                        status, page = server.get(path)
                        if status >= 500 and status not in (503, 504):
                            fault = f"answered {status}"
                        if re.search(r"/entities/(t|Car)/records\.json$", path) and "/compare/" not in path:
                            shown += len(page.get("rows", []))
                    except (OSError, http.client.HTTPException) as error:
                        fault = f"no answer: {error!r}"
                    spent, memory = time.monotonic() - begun, server.megabytes()
                    if spent > PAGE_SECONDS:
                        fault = f"took {spent:.1f} s"
                    if memory > SERVER_MEGABYTES or memory < 0:
                        fault = f"the server took {memory} MB"
                    tally.note(f"page {path}", fault, spent, memory)
                    if Path("/tmp/made-by-a-query.sqlite").exists():
                        fault = "made a file"
                    if fault and (memory > SERVER_MEGABYTES or memory < 0 or "no answer" in fault):
                        # What comes after is to be told from what was.
                        server.end()
                        server = Server(home, model)
                        break
            # A store where it was, two quarantined ones and a backup at the least.
            if shown < ROWS * 3 * len(names):
                tally.note("pages", f"only {shown} rows of {len(names)} stores are shown", 0, 0)
        finally:
            server.end()


class Tally:
    def __init__(self):
        self.passed, self.failed, self.slowest, self.largest = 0, 0, (0, ""), (0, "")

    def note(self, name, fault, seconds, megabytes):
        self.slowest, self.largest = max(self.slowest, (seconds, name)), max(self.largest, (megabytes, name))
        if fault:
            self.failed += 1
            print(f"FAILED {name}: {fault} [{seconds:.1f} s, {megabytes} MB]", flush=True)
        else:
            self.passed += 1


def main():
    options = [one for one in sys.argv[1:] if one.startswith("--")]
    words = [one for one in sys.argv[1:] if not one.startswith("--")]
    names = [one for one in [*STORES, *MODELLED] if not words or any(word in one for word in words)]
    if not words and "--all" not in options:
        names = todays(names[::3])
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="lazaret-hostile-") as folder:
        version = models.Version("V1", models.entity("Car", "name"))
        model = models.write_model(Path(folder) / "Garage.xcdatamodeld", [version], "V1")
        schema = Path(folder) / "schema.sql"
        schema.write_text("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b INTEGER);\n")
        if "--serve" not in options:
            for name in names:
                play_commands(name, model, schema, tally)
        if "--commands" not in options:
            play_pages(names, model, tally)
    print(f"{len(names)} stores; slowest: {tally.slowest[1]}, {tally.slowest[0]:.1f} s; largest: {tally.largest[1]}, {tally.largest[0]} MB")
    print(f"{tally.passed} passed, {tally.failed} failed")
    sys.exit(1 if tally.failed or not tally.passed else 0)


if __name__ == "__main__":
    main()
