"""Attacks the built tool: random sequences of commands with kills, restores of damaged backups, and faults of the file system.

The model knows nothing of how the tool works. It reads stores with SQLite, in private copies, and knows which rows were committed when,
which bytes stood at a store's path, and which backups were acknowledged. Nothing that stood at the path may be lost, killed or not; an
acknowledged backup restores its rows; exit code 0 means that every row is there; nothing crashes, hangs or takes much memory; and an
error has a code and a hint that fits. Kills and faults come from a library that is compiled here; without a compiler kills come by the
clock, and no faults are played. Arguments:

  --all             330 sequences, 2000 restores and 800 faults, in place of a bounded part
  --sequences N, --restores N, --faults N
                    so many of each
  --seed N          the seed (1)
  --from N          the first number of each (0)
  --play PART:N     only this one, as a failure names it; where kills came by the clock it may go another way
  --stop            stop at the first failure, and leave its folder
"""

import argparse
import copy
import gzip
import hashlib
import os
import random
import re
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import LAZARET, Outcome, leave_skipped, natural, real_material, todays

parser = argparse.ArgumentParser()
parser.add_argument("--all", action="store_true")
for part, some, many in (("sequences", 12, 330), ("restores", 60, 2000), ("faults", 40, 800)):
    parser.add_argument(f"--{part}", type=int, default=many if "--all" in sys.argv else some)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--from", type=int, default=0, dest="first")
parser.add_argument("--play", default="")
parser.add_argument("--stop", action="store_true")
options = parser.parse_args()

SUFFIXES = ("", "-wal", "-journal")
OWN = ("Z_METADATA", "Z_MODELCACHE", "Z_PRIMARYKEY", "ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING")
EMPTY = {hashlib.sha256(b"").hexdigest()}
SECONDS, MEMORY = 10, 200 << 10
CHANGES = "create,write,fsync,rename,link,unlink,truncate,copy,mkdir"

# MARK: What fails: a library that is loaded before the others

SHIM = "#define _GNU_SOURCE\n" + "".join(
    f"#include <{name}.h>\n" for name in "errno fcntl signal stdarg stdio stdlib string sys/syscall sys/uio unistd".split()) + r"""
static const char *under, *calls; static long at, stays, seen; static int error, kills, to = -1;
__attribute__((constructor)) static void begin(void) {
  const char *what = getenv("ATTACK_DO");
  if (!what) return;
  under = getenv("ATTACK_UNDER"); calls = getenv("ATTACK_CALLS"); at = atol(getenv("ATTACK_AT")); stays = atol(getenv("ATTACK_STAYS"));
  kills = !strcmp(what, "kill"); error = atoi(what);
  to = syscall(SYS_openat, AT_FDCWD, getenv("ATTACK_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}
static int hit(const char *name, const char *path) {
  char word[32], line[9000];
  snprintf(word, sizeof word, ",%s,", name);
  if (strncmp(path, under, strlen(under)) || !strstr(calls, word)) return 0;
  long n = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
  int now = at && (n == at || (stays && n > at));
  if (now || !at) syscall(SYS_write, to, line, snprintf(line, sizeof line, "%ld %s %s\n", n, name, path + strlen(under)));
  if (now && kills) { syscall(SYS_kill, syscall(SYS_getpid), SIGKILL); for (;;) pause(); }
  if (now) errno = error;
  return now;
}
static int by(const char *name, int folder, const char *path) {
  char link[40], full[8500]; if (!under || !path) return 0;
  if (path[0] == '/') return hit(name, path);
  if (folder == AT_FDCWD) strcpy(link, "/proc/self/cwd"); else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  long count = syscall(SYS_readlinkat, AT_FDCWD, link, full, 4096);
  if (count <= 0) return 0;
  snprintf(full + count, 4200, path[0] ? "/%s" : "%s", path); return hit(name, full);
}
#define CALL(type, function, name, parameters, folder, path, ...) \
  type function parameters { return by(name, folder, path) ? -1 : syscall(__VA_ARGS__); }
CALL(ssize_t, write, "write", (int f, const void *b, size_t n), f, "", SYS_write, f, b, n)
CALL(ssize_t, pwrite, "write", (int f, const void *b, size_t n, off_t o), f, "", SYS_pwrite64, f, b, n, o)
CALL(ssize_t, pwrite64, "write", (int f, const void *b, size_t n, off_t o), f, "", SYS_pwrite64, f, b, n, o)
CALL(ssize_t, writev, "write", (int f, const struct iovec *v, int n), f, "", SYS_writev, f, v, n)
CALL(ssize_t, read, "read", (int f, void *b, size_t n), f, "", SYS_read, f, b, n)
CALL(ssize_t, pread, "read", (int f, void *b, size_t n, off_t o), f, "", SYS_pread64, f, b, n, o)
CALL(ssize_t, pread64, "read", (int f, void *b, size_t n, off_t o), f, "", SYS_pread64, f, b, n, o)
CALL(int, fsync, "fsync", (int f), f, "", SYS_fsync, f)
CALL(int, fdatasync, "fsync", (int f), f, "", SYS_fdatasync, f)
CALL(int, ftruncate, "truncate", (int f, off_t n), f, "", SYS_ftruncate, f, n)
CALL(int, ftruncate64, "truncate", (int f, off_t n), f, "", SYS_ftruncate, f, n)
CALL(ssize_t, copy_file_range, "copy", (int f, off64_t *a, int t, off64_t *b, size_t n, unsigned g), t, "",
     SYS_copy_file_range, f, a, t, b, n, g)
CALL(int, rename, "rename", (const char *a, const char *b), AT_FDCWD, b, SYS_rename, a, b)
CALL(int, renameat, "rename", (int f, const char *a, int t, const char *b), t, b, SYS_renameat2, f, a, t, b, 0)
CALL(int, renameat2, "rename", (int f, const char *a, int t, const char *b, unsigned g), t, b, SYS_renameat2, f, a, t, b, g)
CALL(int, link, "link", (const char *a, const char *b), AT_FDCWD, b, SYS_linkat, AT_FDCWD, a, AT_FDCWD, b, 0)
CALL(int, linkat, "link", (int f, const char *a, int t, const char *b, int g), t, b, SYS_linkat, f, a, t, b, g)
CALL(int, unlink, "unlink", (const char *a), AT_FDCWD, a, SYS_unlinkat, AT_FDCWD, a, 0)
CALL(int, unlinkat, "unlink", (int f, const char *a, int g), f, a, SYS_unlinkat, f, a, g)
CALL(int, mkdir, "mkdir", (const char *a, mode_t m), AT_FDCWD, a, SYS_mkdirat, AT_FDCWD, a, m)
CALL(int, mkdirat, "mkdir", (int f, const char *a, mode_t m), f, a, SYS_mkdirat, f, a, m)
#define OPEN(function, folder, ...) int function(__VA_ARGS__ const char *a, int g, ...) { \
  va_list l; va_start(l, g); int m = g & (O_CREAT | O_TMPFILE) ? va_arg(l, int) : 0; va_end(l); \
  return by(g & (O_CREAT | O_WRONLY | O_RDWR) ? "create" : "open", folder, a) ? -1 : syscall(SYS_openat, folder, a, g, m); }
#define COMMA ,
OPEN(open, AT_FDCWD) OPEN(open64, AT_FDCWD) OPEN(openat, f, int f COMMA) OPEN(openat64, f, int f COMMA)
"""


def compiled(folder):
    """The library, or None where it has no effect here."""
    (folder / "shim.c").write_text(SHIM)
    if not any(shutil.which(one) and subprocess.run(
            [one, "-shared", "-fPIC", "-O1", "-w", "-o", folder / "shim.so", folder / "shim.c"], capture_output=True).returncode == 0
            for one in ("cc", "clang", "gcc")):
        return None
    place = folder / "probe"
    place.mkdir()
    make_plain(place / "App.sqlite", random.Random(1), 3)
    run(place, "inspect", place / "App.sqlite", shim=folder / "shim.so", at=0, do=5, calls="open,read")
    return folder / "shim.so" if calls_of(place) else None


# MARK: Running the tool

TOTALS = {}


def run(place, *words, shim=None, at=None, do=None, calls=CHANGES, stays=False, after=None):
    """One command; it is killed after so many seconds, or at the call with a number, or that call fails with an error."""
    words = [str(word) for word in words]
    (place / "tmp").mkdir(exist_ok=True)
    settings = {name: value for name, value in os.environ.items() if not name.startswith("LAZARET_")}
    settings |= {"TMPDIR": str(place / "tmp"), "SWIFT_BACKTRACE": "enable=no"}
    if shim and at is not None:
        log_of(place).unlink(missing_ok=True)
        settings |= {
            "LD_PRELOAD": str(shim), "ATTACK_AT": str(at), "ATTACK_DO": str(do), "ATTACK_CALLS": f",{calls},", "ATTACK_UNDER": f"{place}/",
            "ATTACK_STAYS": str(int(stays)), "ATTACK_LOG": str(log_of(place))}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        start = time.monotonic()
        process = subprocess.Popen(
            [LAZARET, *words], stdout=out, stderr=error, stdin=subprocess.DEVNULL, env=settings, cwd=place / "tmp")
        timer = threading.Timer(after if after is not None else 60, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        for file in (out, error):
            file.seek(0)
        told = Outcome(words, process.returncode, out.read().decode(errors="replace"), error.read().decode(errors="replace"))
    # What Python itself has counts for its child until that is another program.
    told.seconds, told.memory = seconds, used.ru_maxrss if used.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss else 0
    told.killed = told.code == -9 and (after is not None or do == "kill")
    told.faulty = do not in (None, "kill") and bool(at)
    told.ended = not told.killed and not (told.faulty and told.code in (1, 3))
    TOTALS.update(
        commands=TOTALS.get("commands", 0) + 1, kills=TOTALS.get("kills", 0) + told.killed, seconds=max(TOTALS.get("seconds", 0), seconds),
        memory=max(TOTALS.get("memory", 0), told.memory))
    return told


def log_of(place):
    return place.parent / f"{place.name}.calls"


def calls_of(place):
    """The calls that the library has seen, or those that it made fail."""
    return log_of(place).read_text(errors="replace").splitlines() if log_of(place).exists() else []


# MARK: What SQLite reads

CACHE, HELP = {}, {}


def read(path):
    """The files of a store that hold something, by suffix."""
    found = {suffix: Path(f"{path}{suffix}") for suffix in SUFFIXES}
    return {suffix: one.read_bytes() for suffix, one in found.items() if one.is_file() and one.stat().st_size}


def write(path, files):
    for suffix in (*SUFFIXES, "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    for suffix, content in files.items():
        Path(f"{path}{suffix}").write_bytes(content)


def key_of(files):
    return tuple((suffix, hashlib.sha256(files[suffix]).hexdigest()) for suffix in SUFFIXES if suffix in files)


def rows(files):
    """All rows by table, or None where SQLite finds damage or there is no store."""
    key = key_of(files)
    if key not in CACHE:
        CACHE[key] = None
        with tempfile.TemporaryDirectory(prefix="attack-copy-") as folder:
            write(Path(folder) / "copy", files)
            try:
                CACHE[key] = all_rows(Path(folder) / "copy") if "" in files else None
            except (sqlite3.Error, UnicodeError):
                pass
    return CACHE[key]


def all_rows(path):
    db = sqlite3.connect(path)
    try:
        db.text_factory = bytes
        if db.execute("PRAGMA integrity_check").fetchall() != [(b"ok",)]:
            return None
        found = {}
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            name = name.decode()
            if name not in OWN and not name.startswith(("sqlite_", "lazaret_")):
                cursor = db.execute(f'SELECT * FROM "{name}"')
                columns = [one[0] for one in cursor.description]
                found[name] = sorted(repr([one for one in zip(columns, row) if one[0] not in ("Z_ENT", "Z_OPT")]) for row in cursor)
        return found
    finally:
        db.close()


def has_all(found, truth, only_counted=False):
    """Whether nothing of the truth is missing; after flipped bits values may differ, and rows are counted."""
    if found is None or truth is None:
        return truth is None
    if only_counted:
        return all(len(found.get(name, ())) >= len(each) for name, each in truth.items())
    return all(set(each) <= set(found.get(name, ())) for name, each in truth.items())


def differences(found, truth):
    if found is None or truth is None:
        return "no sound store" if found is None else "nothing to compare"
    lacks = {name: len(set(truth.get(name, ())) - set(found.get(name, ()))) for name in {*found, *truth}}
    return ", ".join(
        f"{name}: {len(found.get(name, ()))} rows for {len(truth.get(name, ()))}, {count} missing"
        for name, count in lacks.items() if found.get(name) != truth.get(name))


def log_is_clean(log):
    """Whether a write-ahead log has frames of one generation, of which the last is a commit, and nothing else."""
    if len(log) < 32:
        return not log
    page, _, one, other = struct.unpack(">4I", log[8:24])
    if not 512 <= page <= 65536 or (len(log) - 32) % (page + 24):
        return False
    heads = [struct.unpack(">4I", log[at:at + 16]) for at in range(32, len(log), page + 24)]
    return not heads or heads[-1][1] != 0 and all(head[2:] == (one, other) for head in heads)


# MARK: Stores

PLAIN = {  # encoding, page size, large values, with a log
    "small": ("UTF-8", 4096, 0, False), "log": ("UTF-8", 4096, 2, True), "wide": ("UTF-16le", 4096, 3, True),
    "pages": ("UTF-16be", 1024, 1, False), "large": ("UTF-8", 4096, 12, True)}
REAL = (
    "coredataplus/history/2021_SampleModelV2.sqlite", "ddg-bookmarks/Bookmarks_V5.sqlite", "bergier-migration/Example_v2.0.0.sqlite",
    "wibosco-migration/CoreDataMigration_Example_2.sqlite", "wibosco-migration-large/CoreDataMigration_Example_2.sqlite",
    "coredataplus/SampleModel2/Fixtures/SampleModel2_V2.sqlite", "wire-zmessaging/store2-6.wiredatabase",
    "cartkit/CartKitStorageSwiftDataTests/LegacySwiftData/CartKitSwiftData_v1.sqlite", "ddg-syncmetadata/SyncMetadata_V3.sqlite")
SCHEMA = """CREATE TABLE note (id INTEGER PRIMARY KEY, kind INTEGER, size REAL, title TEXT, body BLOB);
CREATE TABLE tag (name TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (name, note)) WITHOUT ROWID;
CREATE INDEX note_kind ON note (kind);
CREATE INDEX note_title ON note (title);
"""


def make_plain(path, chance, count=120, encoding="UTF-8", page=4096, large=0, logged=False):
    db = sqlite3.connect(path)
    db.executescript(f"PRAGMA encoding = '{encoding}'; PRAGMA page_size = {page};" + SCHEMA)
    for _ in range(count):
        insert(db, chance)
    for _ in range(large):
        db.execute("INSERT INTO note VALUES (NULL, 9, 0.5, 'large', ?)", (chance.randbytes(chance.randrange(20_000, 150_000)),))
    db.commit()
    if logged:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()


def insert(db, chance):
    text = "".join(chance.choices("abcdefgh ijklmnopäöü €0123456789", k=chance.randrange(5, 60)))
    values = chance.randrange(9), chance.random(), text, chance.randbytes(chance.randrange(200))
    cursor = db.execute("INSERT INTO note VALUES (NULL, ?, ?, ?, ?)", values)
    db.execute("INSERT OR IGNORE INTO tag VALUES (?, ?)", (f"tag {chance.randrange(20)} {text[:4]}", cursor.lastrowid))


def in_a_copy(path, work):
    """Opens a private copy, and puts back what the work gives, or what is there when it is closed."""
    with tempfile.TemporaryDirectory(prefix="attack-copy-") as folder:
        place = Path(folder) / "copy"
        write(place, read(path))
        db = sqlite3.connect(place)
        files = work(db, place)
        db.close()
        write(path, files or read(place))


def alter(path, chance, is_logged, count=4):
    """Commits some rows, which stay in the log where there is one; at times a journal is left by a transaction that did not end."""
    def work(db, place):
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        is_hot = not is_logged and chance.random() < 0.15
        db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0" if is_logged else
            "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; PRAGMA cache_spill = 1" if is_hot else "")
        for _ in range(count):
            try:
                alter_note(db, chance) if "note" in tables else alter_record(db, chance, tables)
            except sqlite3.Error:
                pass
            db.commit()
        if is_hot and "note" in tables:
            db.execute("UPDATE note SET title = title || 'unfinished', kind = kind + 1")
        return read(place) if is_logged or is_hot else None
    in_a_copy(path, work)


def alter_note(db, chance):
    insert(db, chance)
    top = db.execute("SELECT max(id) FROM note").fetchone()[0]
    db.execute("UPDATE note SET title = title || 'x' WHERE id = ?", (chance.randrange(1, top + 1),))
    db.execute("DELETE FROM note WHERE id = ?", (chance.randrange(1, top + 1),))


def alter_record(db, chance, tables):
    table = chance.choice([name for name in tables if name.startswith("Z") and name not in OWN])
    texts = [one[1] for one in db.execute(f'PRAGMA table_info("{table}")') if one[2] == "VARCHAR"]
    keys = [key for (key,) in db.execute(f'SELECT Z_PK FROM "{table}" ORDER BY 1')]
    if texts and keys:
        db.execute(f'UPDATE "{table}" SET "{chance.choice(texts)}" = ? WHERE Z_PK = ?', (f"changed {chance.random()}", chance.choice(keys)))


def drift(path):
    """Drops an index that the model promises."""
    def work(db, _):
        names = db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
        if names:
            db.execute(f'DROP INDEX "{names[0][0]}"')
            db.commit()
    in_a_copy(path, work)


def harm(store, other, chance):
    """Damages a store where it lies; says how, or None where it has nothing of the kind."""
    files = read(store.path)
    foreign = read(other.path) if other else {}
    kinds = ["flip", "flip", "zero", "zero", "cut", "random"] + ["other main"] * (foreign.get("", files.get("")) != files.get(""))
    kinds += ["log flip", "log cut", "log gone", "log tail", "log zero"] * ("-wal" in files) + ["other log"] * ("-wal" in foreign)
    kind = chance.choice(kinds)
    main, log = bytearray(files.get("", b"")), bytearray(files.get("-wal", b""))
    page = int.from_bytes(main[16:18], "big") if main[16:18] in (b"\x10\0", b"\x04\0") else 4096
    if not main:
        return None
    for _ in range(chance.randrange(1, 4)):
        if kind in ("flip", "log flip"):
            content = main if kind == "flip" else log
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        elif kind in ("zero", "random"):
            at = chance.randrange(max(len(main) // page, 1)) * page
            main[at:at + page] = bytes(page) if kind == "zero" else chance.randbytes(page)
    if kind in ("cut", "log cut"):
        content = main if kind == "cut" else log
        del content[chance.randrange(len(content)):]
    elif kind == "log zero":
        at = chance.randrange(len(log))
        log[at:at + 4120] = bytes(len(log[at:at + 4120]))
    elif kind == "log tail":
        log += chance.randbytes(chance.randrange(1, 9000))
    log = b"" if kind == "log gone" else foreign["-wal"] if kind == "other log" else log
    main = foreign[""] if kind == "other main" else main
    changed = {**files, "": bytes(main), "-wal": bytes(log)}
    write(store.path, {suffix: content for suffix, content in changed.items() if content or not suffix})
    return {"log cut": "log gone", "other log": "log gone", "other main": "other"}.get(kind, kind)


class Store:
    """A store and what is known of it: its last committed rows, and what was done to it since."""

    def __init__(self, path, model, is_logged):
        self.path, self.model, self.is_logged, self.truth, self.harm = path, model, is_logged, None, frozenset()
        self.is_core_data, self.is_halfway = model.suffix == ".sqlite", False

    @property
    def sound(self):
        """Its rows, where nothing was done to it."""
        return self.truth if not self.harm else None


class Owed:
    """The files that stood at a store's path before they were replaced."""

    def __init__(self, store, files, why):
        self.name, self.parts, self.rows, self.why = store.path.name, dict(key_of(files)), rows(files), why
        self.is_clean = log_is_clean(files.get("-wal", b"")) and not any("log" in one for one in store.harm)


# MARK: A folder with stores and their home

class Scene:
    def __init__(self, folder, chance, shim=None, beside=False):
        self.folder, self.chance, self.shim = folder, chance, shim
        self.home = folder / "Stores" if beside else folder / "Home"
        for place in ("Stores", "Home", "out"):
            (folder / place).mkdir()
        self.stores, self.known, self.owed, self.backups, self.lacking, self.faults, self.done = [], {}, [], {}, set(), [], []
        self.number, self.digests, self.key, self.recipient, self.kept = 0, {}, folder / "key", None, None

    def fail(self, words, told=None):
        if options.stop:
            print("\n".join(self.done), told and told.words, words, f"left: {self.folder}", sep="\n", flush=True)
            os._exit(1)
        self.faults.append(f"{words}\n    {told or ''}\n    after {len(self.done)} steps: {'; '.join(self.done[-12:])}")

    def add(self, name, kind, real):
        path, model = self.folder / "Stores" / f"{name}.sqlite", self.folder / f"{name}.sql"
        if kind in REAL:
            model = self.folder / f"{name}-model.sqlite"
            write(path, read(real / "stores" / kind))
            write(model, read(path))
            sqlite3.connect(model).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
            is_logged = Path(f"{path}-wal").exists() or self.chance.random() < 0.3
        else:
            encoding, page, large, is_logged = PLAIN[kind]
            make_plain(path, self.chance, self.chance.randrange(20, 300), encoding, page, large, is_logged)
            model.write_text(SCHEMA)
        self.stores.append(Store(path, model, is_logged))
        self.note(self.stores[-1])
        return self.stores[-1]

    def with_key(self):
        run(self.folder, "key", "new", "-o", self.key)
        self.recipient = run(self.folder, "key", "public", self.key).out.strip()

    def identity(self):
        return ["--identity", self.key] if self.recipient else []

    def out(self, end):
        self.number += 1
        return self.folder / "out" / f"{self.number}{end}"

    # What is known

    def note(self, store, *harm):
        """After the store was changed here: what it is now. What only its path had is not owed any more."""
        files = read(store.path)
        store.truth, store.harm = (store.truth, store.harm | set(harm)) if harm else (rows(files), frozenset())
        self.known[store.path, key_of(files)] = (store.truth, store.harm)
        self.owed = [one for one in self.owed if self.has(one)]

    def settle(self, store, told, allowed, words):
        """After a command that may have changed the store: what is there must be one of what is allowed."""
        files = read(store.path)
        key, found = (store.path, key_of(files)), rows(files)
        if key not in self.known:
            allowed = [one for one in allowed if one is not None]
            if "" in files and found is None:
                self.fail(f"{words}: what stands there now is damaged", told)
            elif "" in files and allowed and found not in allowed:
                self.fail(f"{words}: {differences(found, allowed[0])}", told)
            self.known[key] = found, frozenset() if found is not None or "" not in files else frozenset({"unknown"})
        store.truth, store.harm = self.known[key]

    def index(self):
        """The digests of all files in the folders of stores and the home, by path; those of packed files too, of what is in them."""
        found = {}
        for place in {self.folder / "Stores", self.folder / "Home"}:
            for base, _, names in os.walk(place):
                for path in (os.path.join(base, name) for name in names):
                    at = os.stat(path)
                    stamp = path, at.st_size, at.st_mtime_ns, at.st_ino, at.st_ctime_ns
                    if stamp not in self.digests:
                        self.digests[stamp] = digests(path)
                    found[path] = self.digests[stamp]
        return found

    def has(self, owed):
        """Whether the files are together somewhere, or the rows are in a store, and no log is lost that was not read to its end."""
        files = self.index()
        for path, each in files.items():
            plain = path.removesuffix(".gz")
            beside = {suffix: files.get(plain + suffix, set()) | files.get(f"{plain}{suffix}.gz", set()) for suffix in SUFFIXES[1:]}
            if owed.parts.get("") in each and all(
                    owed.parts[suffix] in one if suffix in owed.parts else one <= EMPTY for suffix, one in beside.items()):
                return True
        there = set().union(*files.values())
        if "" not in owed.parts and all(digest in there for digest in owed.parts.values()):
            return True
        if owed.rows is None or not owed.is_clean and not all(digest in there for suffix, digest in owed.parts.items() if suffix):
            return False
        return any(rows(read(path)) == owed.rows for path in files if path.endswith(".sqlite") and ".salvaged" not in path)

    # Commands

    def run(self, store, *words, may_change=False, **how):
        """One command at a store, and what is true after any."""
        before = {one: (read(one.path), names_of(one)) for one in self.stores}
        told = run(self.folder, *words, "--json", **({"shim": self.shim} | how))
        short = " ".join(str(word).replace(f"{self.folder}/", "") for word in words)
        self.done.append(f"{short} → {'killed' if told.killed else told.code}")
        if how:
            hit = "".join(calls_of(self.folder)[:1]) if how.get("at") else f"{how.get('after')} s"
            self.done[-1] += f" [{how.get('do', 'killed')} at {hit}]"
        self.check_any(told)
        for one in self.stores:
            was, names = before[one]
            if read(one.path) != was or names_of(one) != names and not may_change:
                if not (may_change and one is store) and not one.is_halfway:
                    self.fail(f"{words[0]} touched {one.path.name}: {sorted(names)} is {sorted(names_of(one))}", told)
                if was:
                    self.owed.append(Owed(one, was, self.done[-1]))
                if one is not store:
                    self.settle(one, told, [], "what a killed command left")
        for one in [one for one in self.owed if not self.has(one)]:
            self.fail(f"LOST: {sorted(one.parts)} of {one.name}, replaced by: {one.why}", told)
            self.owed.remove(one)
        return told

    def check_any(self, told):
        if told.code < 0 and not told.killed or re.search(r"Fatal error|Crash|Backtrace|Stack dump|SIGILL|assertion", told.words):
            self.fail(f"CRASH: {told.words[:300]}", told)
        if told.seconds > SECONDS or told.memory > MEMORY:
            self.fail(f"it took {told.seconds:.1f} s and {told.memory >> 10} MB", told)
        if told.code in (1, 3, 64):
            hint = told.failure.get("hint", "")
            if told.code == 64 or not (told.failure.get("code") and hint) and not reason_of(told):
                self.fail(f"usage, or no code, or no hint: {told.words[:300]}", told)
            verb = tuple(told.arguments[:2 if told.arguments[0] in ("backup", "quarantine") else 1])
            for option in [] if "lazaret " in hint else re.findall(r"(?<![\w-])--[a-z-]+", hint):
                if verb not in HELP:
                    HELP[verb] = subprocess.run([LAZARET, *verb, "--help"], capture_output=True, text=True).stdout
                if option not in HELP[verb]:
                    self.fail(f"a hint of {' '.join(verb)} names {option}, which it does not have: {hint}", told)

    def open(self, store, **how):
        was, truth, harm = read(store.path), store.truth, store.harm
        told = self.run(store, "open", store.path, "--model", store.model, "--home", self.home, may_change=True, **how)
        files = read(store.path)
        now, reading = rows(files), rows(was)
        if not told.ended:
            if not harm and was and now != truth:
                self.fail(f"an open that did not end left something else of a sound store: {differences(now, truth)}", told)
        elif told.code not in (0, 2):
            # Another store may be newer than the app, or not to be migrated, and random bytes look encrypted.
            if not (told.code in (1, 3) and "other" in harm or told.code == 3 and "random" in harm):
                self.fail(f"open exits with {told.code}: {told.failure}; harm {sorted(harm)}", told)
        elif store.is_halfway and told.data.get("verdict") == "missing":
            self.fail("NEITHER: a command that did not end has moved away what stood there, and the app starts with an empty store", told)
        elif was and harm <= {"drift"}:
            if told.code and not any(one.get("kind") == "recovery" for one in told.data.get("events", [])):
                self.fail(f"a sound store is not opened as one: {told.data.get('verdict')}, {told.data.get('reason')}", told)
            if truth is not None and now != truth and not store.is_halfway:
                self.fail(f"LOST ROWS: a sound store: {differences(now, truth)}", told)
        elif was and told.code == 0:
            # What a killed command did may be taken back: then a store is there that was there before, with as many rows
            # where bits of it had been flipped.
            is_taken_back = any(one.get("kind") == "recovery" for one in told.data.get("events", [])) and any(
                known == now or known and harmed & {"flip", "log flip"} and has_all(now, known, only_counted=True)
                for (path, _), (known, harmed) in self.known.items() if path == store.path)
            if not is_taken_back:
                self.check_complete(now, truth, reading, harm, told)
        store.is_halfway = store.is_halfway and not told.ended
        self.settle(store, told, [truth, reading] if not told.ended and not harm else [], "open")
        return told

    def check_complete(self, now, truth, reading, harm, told):
        """Exit code 0 for a damaged store: nothing that could be known is missing."""
        if not (reading and now == reading) and not harm & {"unknown", "log gone", "other"} and not has_all(
                now, truth, only_counted=bool(harm & {"flip", "log flip"})):
            self.fail(f"PRETENDS: exit code 0, harm {sorted(harm)}: {differences(now, truth)}", told)

    def salvage(self, store, *more, **how):
        was, out = read(store.path), self.out(".sqlite")
        told = self.run(store, "salvage", store.path, "--model", store.model, "-o", out, "--home", self.home, *more, **how)
        now = rows(read(out))
        if store.harm - {"drift"} and told.code == 0:
            self.check_complete(now, store.truth, rows(was), store.harm, told)
        elif store.harm <= {"drift"} and told.code in (0, 2) and (now != store.truth if told.code == 0 else not has_all(now, store.truth)):
            self.fail(f"PRETENDS: salvage of a sound store: {differences(now, store.truth)}", told)
        elif store.harm <= {"drift"} and told.code == 1 and not told.faulty and "--with-backup" not in more:
            self.fail(f"salvage of a sound store fails: {told.failure}", told)
        if told.code in (1, 3) and out.exists():
            self.fail("a failed salvage left a result", told)
        return told

    def inspect(self, store, **how):
        was = read(store.path)
        told = self.run(store, "inspect", store.path, "--model", store.model, **how)
        verdict = told.data.get("verdict")
        if told.code == 0 and rows(was) is None:
            self.fail(f"PRETENDS: inspect says {verdict} of a store in which SQLite finds damage", told)
        if not store.harm and (told.ended and told.code or told.faulty and verdict in ("damaged", "incompatible", "missing")):
            self.fail(f"inspect exits with {told.code}, says {verdict} of a sound store: {told.data.get('reason')}", told)
        return told

    def export(self, store, level, **how):
        out = self.out(".tar.gz")
        told = self.run(store, "export", store.path, "--level", level, "--home", self.home, "-o", out, "--yes", **how)
        if told.code in (1, 3) and (out.exists() or not told.faulty):
            self.fail(f"a failed export, {'of which a bundle is left' if out.exists() else 'without a reason'}: {told.failure}", told)
        return told

    def repair(self, store, **how):
        truth = store.truth if store.harm <= {"drift"} else None
        told = self.run(store, "repair", store.path, "--model", store.model, "--home", self.home, may_change=True, **how)
        if truth is not None and told.ended and told.code:
            self.fail(f"repair of a sound store exits with {told.code}: {told.failure}", told)
        self.settle(store, told, [truth], "repair")
        return told

    def back_up(self, store, *more, **how):
        was = read(store.path)
        told = self.run(store, "backup", "create", store.path, "--home", self.home, *more, **how)
        made, reading = told.data.get("backup", {}), rows(was)
        key, is_sound = (store.path, made.get("id")), bool(made.get("isSound"))
        if told.code in (0, 2) and is_sound and reading is None or told.code == 0 and not is_sound:
            self.fail(f"PRETENDS: a backup of a damaged store ({sorted(store.harm)}) is called sound", told)
        elif told.code == 2 and not store.harm and "large-value-missing" not in told.out and not is_sound:
            self.fail(f"the backup of a sound store exits with 2: {made.get('check')}", told)
        elif told.ended and told.code in (1, 3) and told.failure.get("code") != "backup-encryption-missing":
            self.fail(f"no backup of {sorted(store.harm)}: {told.failure}", told)
        if told.code in (0, 2):
            self.backups[key] = (None, was) if made.get("kind") == "evidence" else (reading, None)
            self.lacking |= {key} if told.code == 2 and is_sound else set()
        return told

    def is_restored(self, key, told, files, words):
        """Whether an acknowledged backup gave what it is of, and says so."""
        truth, raw = self.backups[key]
        if raw is None and (told.code not in ((0, 2) if key in self.lacking else (0,)) or rows(files) != truth):
            self.fail(f"BACKUP: {key[1]} {words} with {told.code}: {differences(rows(files), truth)} {told.failure}", told)
        if raw is not None and (told.code not in (0, 2) or key_of(files) != key_of(raw)):
            self.fail(f"BACKUP: evidence {key[1]} {words} with {told.code}, {sorted(files)} for {sorted(raw)} {told.failure}", told)
        elif raw is not None and told.code == 0 and rows(raw) is None:
            self.fail(f"PRETENDS: {words} of the evidence of a damaged store exits with 0", told)

    def check_restore(self, key, **how):
        out = self.out(".sqlite")
        told = self.run(None, "backup", "restore", key[1], "--of", key[0], "--home", self.home, "--to", out, *self.identity(), **how)
        if told.ended:
            self.is_restored(key, told, read(out), "restores")
        write(out, {})
        return told

    def restore(self, store, key, **how):
        was = store.sound
        more = ["--no-backup"] if self.recipient or self.chance.random() < 0.3 else []
        told = self.run(
            store, "backup", "restore", key[1], "--of", store.path, "--home", self.home, *self.identity(), *more, may_change=True, **how)
        store.is_halfway = not told.ended and was is not None
        if told.ended:
            self.is_restored(key, told, read(store.path), "restores in place")
        self.settle(store, told, [was, self.backups[key][0]], "restore")
        return told

    def verify(self, store, mine, **how):
        told = self.run(None, "backup", "verify", "--of", store.path, "--home", self.home, *self.identity(), **how)
        each = told.data.get("backups", [])
        # Evidence is no backup to go back to, and what a killed run has left is told until the next one.
        is_less = any(self.backups[key][1] is not None or key in self.lacking for key in mine) or any(
            (store.path, one["id"]) not in mine for one in each)
        if told.ended and told.code not in ((0, 2) if is_less else (0,)):
            self.fail(f"verify exits with {told.code}: {[(one['id'], one.get('problems')) for one in each]}", told)
        return told

    def list(self, store, mine, **how):
        told = self.run(None, "backup", "list", store.path, "--home", self.home, **how)
        for _, id_ in mine if told.code == 0 else []:
            if id_ not in {one["id"] for one in told.data.get("backups", [])}:
                self.fail(f"BACKUP: {id_} is not listed", told)
        return told

    def prune(self, store, keep, *more, **how):
        good = sorted((id_ for (path, id_), (truth, _) in self.backups.items() if path == store.path and truth is not None), key=natural)
        told = self.run(store, "backup", "prune", "--of", store.path, "--home", self.home, "--keep-last", keep, *more, **how)
        if told.code in (0, 2):
            dropped = [one["id"] for place in told.data.get("places", []) for one in place["backups"] if not one["kept"]]
        else:
            # It may have dropped any but those that it was told to keep.
            dropped = good[:-keep]
        if told.ended and told.code in (1, 3) and good:
            self.fail(f"prune fails: {told.failure}", told)
        for id_ in dropped:
            if [id_] == good[-1:] or self.backups.pop((store.path, id_), (None, None))[1] is not None:
                self.fail(f"prune dropped evidence, or the newest good backup: {id_}", told)
        return told

    def quarantined(self):
        told = self.run(None, "quarantine", "list", "--home", self.home)
        if told.code not in (0, 2):
            self.fail(f"quarantine list: {told.failure}", told)
        return [one for one in told.data.get("stores", []) if Path(one.get("store") or "-").exists()]

    def quarantine(self, store, **how):
        told = self.run(store, "quarantine", "add", store.path, "--model", store.model, "--home", self.home, may_change=True, **how)
        if told.code == 0 and store.path.exists():
            self.fail("quarantine add leaves the store there", told)
        self.settle(store, told, [store.sound], "quarantine add")
        return told

    def release(self, store, kept, *more, **how):
        wanted, was = key_of(read(kept["store"])), read(store.path)
        told = self.run(store, "quarantine", "release", kept["id"], "--home", self.home, *more, may_change=True, **how)
        store.is_halfway = not told.ended and bool(was)
        if told.code == 0 and key_of(read(store.path)) != wanted:
            self.fail("quarantine release puts other bytes there", told)
        elif told.ended and told.code in (1, 3) and (more or not was):
            self.fail(f"release fails: {told.failure}", told)
        self.settle(store, told, [store.sound], "quarantine release")
        return told

    def salvage_quarantined(self, store, kept, *more, **how):
        was = store.path.exists()
        told = self.run(
            store, "quarantine", "salvage", kept["id"], "--model", store.model, "--home", self.home, *more, may_change=bool(more), **how)
        store.is_halfway = not told.ended and bool(more) and was
        self.settle(store, told, [], "quarantine salvage")
        return told

    def discard(self, store, kept, **how):
        """What is removed for good on purpose is not owed any more; the next command finishes what a killed one began."""
        place = Path(kept["store"])
        gone = set().union(*(self.index().get(str(one), set()) for one in place.parent.glob(f"{kept['id']}.*")))
        content, before = rows(read(place)), self.owed
        self.owed = [one for one in before if not set(one.parts.values()) & gone and (content is None or one.rows != content)]
        told = self.run(store, "quarantine", "discard", kept["id"], "--yes", "--home", self.home, **how)
        if told.ended:
            self.owed += [one for one in before if one not in self.owed and self.has(one)]
        if told.code == 0 and place.exists():
            self.fail("discard leaves it there", told)
        return told


def names_of(store):
    return {name for name in os.listdir(store.path.parent) if name.startswith(store.path.name)}


def reason_of(told):
    return (told.data.get("reason") or {}).get("hint")


def digests(path):
    """Those of a file, and of what a packed file of moderate size holds."""
    content = Path(path).read_bytes()
    found = {hashlib.sha256(content).hexdigest()}
    if path.endswith(".gz") and len(content) < 4 << 20:
        try:
            found.add(hashlib.sha256(gzip.decompress(content)).hexdigest())
        except (OSError, EOFError, ValueError, zlib.error):
            pass
    return found


# MARK: Sequences

STEPS = {
    "open": 5, "inspect": 2, "salvage": 3, "back up": 6, "list": 1, "verify": 2, "prune": 2, "restore": 3, "preview": 1, "check": 2,
    "quarantine": 1, "release": 2, "salvage quarantined": 2, "discard": 0.5, "export": 1, "repair": 2, "harm": 7, "write": 7, "drift": 1}


def play_sequence(scene, real):
    chance = scene.chance
    for name in ["App", "Other"][:chance.choice([1, 2, 2])]:
        scene.add(name, chance.choice([*PLAIN, *(REAL if real else ())]), real)
    if chance.random() < 0.3:
        scene.with_key()
    for turn in range(chance.randrange(17, 24)):
        if turn == 0:
            for store in scene.stores * 2:
                scene.open(store)
        step(scene, chance)
    for store in scene.stores * 2:
        scene.open(store)
    for key in scene.backups:
        scene.check_restore(key)


def step(scene, chance):
    store = chance.choice(scene.stores)
    what = chance.choices(list(STEPS), STEPS.values())[0]
    how = {}
    if chance.random() < 0.2:
        # Killed at a change of a file, or after a time.
        is_at = scene.shim and chance.random() < 0.7
        how = {"at": int(1.5 ** chance.uniform(0, 10)), "do": "kill"} if is_at else {"after": chance.uniform(0.02, 0.08)}
    if what in ("harm", "write", "drift"):
        if store.path.exists() and (what == "harm" or not store.harm):
            other = next((one for one in scene.stores if one is not store), None)
            kind = what
            if what == "harm":
                kind = harm(store, other, chance)
            elif what == "write":
                alter(store.path, chance, store.is_logged and chance.random() < 0.8)
            else:
                drift(store.path)
            if kind:
                scene.done.append(f"{what} {store.path.name}: {kind}")
                scene.note(store, *([kind] if what != "write" else []))
        return
    told = command(scene, store, what, chance, how)
    if told is not None and told.killed:
        # Some other command comes first at times; then the store opens.
        if chance.random() < 0.4:
            scene.run(None, chance.choice(["quarantine", "backup"]), "list", "--home", scene.home)
        scene.open(store)


def command(scene, store, what, chance, how):
    is_there, mine = store.path.exists(), [key for key in scene.backups if key[0] == store.path]
    if what == "open":
        return scene.open(store, **how)
    if what in ("release", "salvage quarantined", "discard"):
        kept = chance.choice(scene.quarantined() or [None])
        of = next((one for one in scene.stores if kept and str(one.path) == kept.get("receipt", {}).get("originalPath")), None)
        if what == "release" and of:
            return scene.release(of, kept, *chance.choice([["--replace"], ["--replace"], []]), **how)
        if what == "salvage quarantined" and of:
            # Over a store whose last backup is encrypted nothing is installed.
            return scene.salvage_quarantined(of, kept, *chance.choice([["--install"] * (not scene.recipient), []]), **how)
        return scene.discard(of, kept, **how) if of else None
    if mine and what in ("verify", "list"):
        return (scene.verify if what == "verify" else scene.list)(store, mine, **how)
    if mine and what == "prune":
        return scene.prune(store, chance.randrange(1, 4), *chance.choice([["--trash-days", "0"], []]), *scene.identity(), **how)
    if mine and what == "restore":
        return scene.restore(store, chance.choice(mine), **how)
    if mine and what == "check":
        return scene.check_restore(chance.choice(mine), **how)
    if not is_there:
        return None
    if what == "salvage":
        more = [[], ["--raw"], ["--deleted"], ["--raw", "--deleted"]]
        more += [["--with-backup", "latest", *scene.identity()]] if any(scene.backups[key][0] is not None for key in mine) else []
        return scene.salvage(store, *chance.choice(more), **how)
    if what == "back up":
        more = [[], [], ["--full"], ["--compression", "zstd"], ["--evidence"]]
        more += [["--encrypt-to", scene.recipient]] * 2 if scene.recipient else []
        return scene.back_up(store, *chance.choice(more), **how)
    if what == "preview" and mine:
        key = chance.choice(mine)
        return scene.run(
            store, "backup", "restore", key[1], "--of", store.path, "--home", scene.home, "--preview", *scene.identity(), **how)
    if what == "export":
        return scene.export(store, chance.choice(["facts", "damaged-pages", "scrubbed", "full"]), **how)
    if what == "repair" and store.is_core_data:
        return scene.repair(store, **how)
    return {"inspect": scene.inspect, "quarantine": scene.quarantine}.get(what, lambda *_, **__: None)(store, **how)


# MARK: Restores of damaged backups

class Chain:
    """Backups of one store that build on each other, each with the rows of its moment."""

    def __init__(self, folder, number):
        chance = random.Random(f"{options.seed}/chain/{number}")
        self.truth, self.what, is_large = {}, "", number % 8 in (3, 6)
        folder.mkdir()
        self.scene = Scene(folder, chance)
        self.store = folder / "Stores/App.sqlite"
        make_plain(self.store, chance, 900 if is_large else 90, large=30 if is_large else 2, logged=number % 3 == 0)
        more = ["--compression", "zstd"] if number & 1 else []
        if number & 2:
            self.scene.with_key()
            more += ["--encrypt-to", self.scene.recipient]
        for turn in range(5):
            told = self.backup("create", self.store, *more, *(["--full"] if turn == 3 else []))
            self.truth[told.data["backup"]["id"]] = rows(read(self.store))
            alter(self.store, chance, False, count=1)
        parents = {one["id"]: one.get("parent") for one in self.backup("list", *self.scene.identity()).data["backups"]}
        self.needs = {id_: {id_} for id_ in self.truth}
        for each in self.needs.values():
            while parent := next((parents[one] for one in each if parents.get(one) and parents[one] not in each), None):
                each.add(parent)
        self.place = next(one for one in (self.scene.home / "Backups").iterdir() if one.is_dir())
        self.files = {one.name: one.read_bytes() for one in sorted(self.place.iterdir()) if one.is_file()}

    def backup(self, *words):
        return run(self.scene.folder, "backup", *words, "--home", self.scene.home, "--json")

    def fail(self, words, told):
        self.scene.done = [self.what]
        self.scene.fail(words, told)

    def lay_out(self):
        for one in self.place.iterdir():
            if one.is_file() and one.name not in self.files:
                one.unlink()
        for name, content in self.files.items():
            path = self.place / name
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)

    def damage(self, chance):
        """Damages one file, or two; gives their names and how."""
        done = []
        for _ in range(chance.choice([1, 1, 1, 1, 2])):
            name = chance.choice(list(self.files))
            kind = chance.choice(["flip", "flip", "flip", "cut", "zero", "gone", "exchange", "tail", "empty"])
            content = bytearray(self.files[name])
            at = chance.randrange(len(content))
            if kind == "flip":
                content[at] ^= 1 << chance.randrange(8)
            elif kind == "zero":
                content[at:at + chance.choice([1, 16, 500, 5000])] = b"\0"
            elif kind in ("cut", "empty"):
                del content[at if kind == "cut" else 0:]
            elif kind == "tail":
                content += chance.randbytes(chance.randrange(1, 3000))
            elif kind == "exchange":
                end = name[name.index("."):]
                other = chance.choice([one for one in self.files if one.endswith(end) or chance.random() < 0.3])
                (self.place / other).write_bytes(content)
                content = self.files[other]
                done.append((other, kind, name))
            (self.place / name).write_bytes(content)
            if kind == "gone":
                (self.place / name).unlink()
            done.append((name, kind, at))
        return done

    def restore(self, id_, *more):
        out = self.scene.folder / "out/App.sqlite"
        write(out, {})
        told = self.backup(
            "restore", *([id_] if id_ else []), "--of", self.store, *self.scene.identity(), *(more or ["--to", out]))
        self.scene.check_any(told)
        if told.code in (1, 3) and read(out):
            self.fail("a restore that failed left a result", told)
        return told, rows(read(out))

    def play(self, chance):
        self.lay_out()
        done = self.damage(chance)
        names = {one[0] for one in done}
        owners = {id_ for id_ in self.truth for name in names if name.startswith(f"{id_}.")}
        id_ = chance.choice(list(self.truth))
        what = chance.choices(["restore", "newest", "verify", "verify one", "preview"], [60, 10, 15, 10, 5])[0]
        self.what = f"{what} {id_} with {done}"
        if what in ("verify", "verify one"):
            told = self.backup("verify", *([id_] if what == "verify one" else []), "--of", self.store, *self.scene.identity())
            self.scene.check_any(told)
            if told.code == 0 and id_ in {one["id"] for one in told.data.get("backups", [])}:
                after, now = self.restore(id_)
                if after.code or now != self.truth[id_]:
                    self.fail(f"PRETENDS: verify exits with 0, and {id_} restores with {after.code}", after)
            elif told.code and not any(one in told.words for one in names | owners):
                self.fail(f"verify names none of {sorted(names)}: {told.words[:600]}", told)
        else:
            told, now = self.restore(None if what == "newest" else id_, *(["--preview"] if what == "preview" else []))
            wanted = list(self.truth.values()) if what == "newest" else [self.truth[id_]]
            if what != "preview" and told.code == 0 and now not in wanted:
                self.fail(f"PRETENDS: it restores with 0: {differences(now, wanted[-1])}", told)
            elif what == "restore" and told.code and not owners & self.needs[id_]:
                self.fail(f"{id_} does not restore, though nothing of it is damaged", told)
            elif told.code == 1 and not any(
                    one in told.words for one in names | (owners if told.failure.get("code") == "backup-chain-broken" else set())):
                self.fail(f"restore names none of {sorted(names)}: {told.words[:600]}", told)
        others = [one for one in self.truth if not self.needs[one] & owners]
        if others:
            other = chance.choice(others)
            told, now = self.restore(other)
            if told.code or now != self.truth[other]:
                self.fail(f"{other}, of which nothing is damaged, restores with {told.code}: {differences(now, self.truth[other])}", told)


# MARK: Faults

def harmed(scene, store, is_known=True):
    """Two pages in the middle are zeroed; at times of a store that was opened before."""
    if is_known:
        scene.open(store)
    content = bytearray(store.path.read_bytes())
    at = len(content) // 8192 * 4096
    content[at:at + 8192] = bytes(8192)
    store.path.write_bytes(content)
    scene.note(store, "zero")


def drifted(scene, store):
    drift(store.path)
    scene.note(store, "drift")


def backed_up(scene, store, count=1):
    for _ in range(count):
        scene.back_up(store, "--full")
        alter(store.path, scene.chance, store.is_logged)
        scene.note(store)


def logged(scene, store):
    scene.open(store)
    alter(store.path, scene.chance, True)
    scene.note(store)


def quarantined(scene, store):
    harmed(scene, store)
    scene.open(store)
    scene.kept = scene.quarantined()[-1]


FAULTS = {  # the store, what is done before, the command
    "open": ("log", None, Scene.open),
    "open a log": ("wide", logged, Scene.open),
    "open damaged": ("log", harmed, Scene.open),
    "open damaged anew": ("small", lambda s, a: harmed(s, a, False), Scene.open),
    "open repairable": (REAL[0], drifted, Scene.open),
    "inspect": ("log", None, Scene.inspect),
    "salvage": ("log", harmed, Scene.salvage),
    "salvage raw": ("small", harmed, lambda s, a, **how: s.salvage(a, "--raw", **how)),
    "create": ("log", None, Scene.back_up),
    "create delta": ("large", backed_up, Scene.back_up),
    "create encrypted": ("small", lambda s, _: s.with_key(), lambda s, a, **how: s.back_up(a, "--encrypt-to", s.recipient, **how)),
    "create evidence": ("small", harmed, Scene.back_up),
    "restore": ("log", backed_up, lambda s, a, **how: s.restore(a, min(s.backups), **how)),
    "restore to": ("large", backed_up, lambda s, a, **how: s.check_restore(min(s.backups), **how)),
    "quarantine add": ("log", harmed, lambda s, a, **how: s.quarantine(a, **how) if a.path.exists() else None),
    "release": ("log", quarantined, lambda s, a, **how: s.release(a, s.kept, "--replace", **how) if read(s.kept["store"]) else None),
    "quarantine salvage": ("small", quarantined, lambda s, a, **how: s.salvage_quarantined(a, s.kept, "--install", **how)),
    "export": ("log", harmed, lambda s, a, **how: s.export(a, "full", **how)),
    "repair": (REAL[0], drifted, Scene.repair),
    "prune": ("small", lambda s, a: backed_up(s, a, 4), lambda s, a, **how: s.prune(a, 1, "--trash-days", 0, **how)),
}


class Laid:
    """A scene that is prepared once, and laid out anew for each fault."""

    def __init__(self, folder, name, real, shim):
        kind, prepare, self.command = FAULTS[name]
        folder.mkdir()
        self.pristine, self.counts = folder.parent / f"{folder.name} as it was", {}
        self.first = Scene(folder, random.Random(f"{options.seed}/fault/{name}"), shim)
        store = self.first.add("App", kind, real)
        if prepare:
            prepare(self.first, store)
        shutil.copytree(folder, self.pristine)

    def lay_out(self):
        shutil.rmtree(self.first.folder)
        shutil.copytree(self.pristine, self.first.folder)
        scene = copy.deepcopy(self.first)
        return scene, scene.stores[0]

    def play(self, chance):
        calls = chance.choice([CHANGES] * 3 + ["write", "fsync", "rename,link,unlink", "create,open", "read", "truncate,copy,mkdir"])
        if calls not in self.counts:
            scene, store = self.lay_out()
            self.command(scene, store, at=0, do=5, calls=calls)
            self.counts[calls] = len(calls_of(scene.folder))
        if not self.counts[calls]:
            return self.first.faults
        scene, store = self.lay_out()
        # No space (28) is left for a while; an error (5) comes once, or stays; and some are killed instead.
        error = 5 if calls in ("read", "create,open") else chance.choice([28, 5, "kill"] if calls == CHANGES else [28, 5])
        told = self.command(
            scene, store, at=chance.randrange(1, self.counts[calls] + 1), do=error, calls=calls,
            stays=chance.random() < {28: 0.6, 5: 0.3}.get(error, 0))
        TOTALS["faults"] = TOTALS.get("faults", 0) + bool(calls_of(scene.folder))
        if told.code not in (0, 1, 2, 3) and not told.killed or told.code in (1, 3) and "damage" in told.failure.get("code", "") and not store.harm:
            scene.fail(f"a fault ends with {told.code}: {told.failure}", told)
        again = self.command(scene, store)
        # What was done is not there to be done again.
        if again and again.code not in (0, 2) and not (told.ended and "quarantine" in again.arguments):
            scene.fail(f"the next run exits with {again.code}: {again.failure}", again)
        for one in (store, store):
            scene.open(one)
        for key in scene.backups:
            scene.check_restore(key)
        return scene.faults


# MARK: All of it

def numbers(part, count):
    TOTALS.clear()
    if options.play:
        name, number = options.play.split(":")
        return [int(number)] if name == part else []
    return todays(range(options.first, options.first + count))


def tell(part, number, play):
    """Plays one, prints what failed, and gives whether anything did."""
    try:
        faults = play()
    except Exception:
        faults = [f"the attack itself stopped: {traceback.format_exc()[-900:]}"]
    if faults:
        print(f"FAILED {part}:{number} (again: attack.py --seed {options.seed} --play {part}:{number})")
        for fault in faults[:4]:
            print("  - " + "\n    ".join(line.strip()[:1500] for line in fault.splitlines()), flush=True)
    return bool(faults)


def figures(part, count):
    if count:
        print(
            f"{count} {part}: {TOTALS['commands']} commands, {TOTALS['kills']} kills, {TOTALS.get('faults', 0)} faults, "
            f"{TOTALS['seconds']:.1f} s and {TOTALS['memory'] >> 10 or 'few'} MB at most", flush=True)


def main():
    failed, real = 0, real_material()
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name)
        shim = compiled(folder)
        print(*(["there are no real stores: generated ones are played"] * (not real) + [
            "nothing can be loaded into the tool: kills come by the clock, and no faults are played"] * (not shim)), sep="\n", end="")
        each = numbers("sequences", options.sequences)
        for number in each:
            chance = random.Random(f"{options.seed}/sequence/{number}")
            place = folder / f"sequence {number}"
            place.mkdir()
            scene = Scene(place, chance, shim, beside=chance.random() < 0.25)
            failed += tell("sequences", number, lambda: play_sequence(scene, real) or scene.faults)
            shutil.rmtree(place)
            CACHE.clear()
        figures("sequences", len(each))
        made, each = {}, numbers("restores", options.restores)
        for number in each:
            if number % 8 not in made:
                made[number % 8] = Chain(folder / f"chain {number % 8}", number % 8)
            chain = made[number % 8]
            chain.scene.faults = []
            failed += tell(
                "restores", number, lambda: chain.play(random.Random(f"{options.seed}/restore/{number}")) or chain.scene.faults)
        figures("restores", len(each))
        made, each = {}, numbers("faults", options.faults if shim else 0)
        names = [one for one, (kind, *_) in FAULTS.items() if real or kind in PLAIN]
        for number in each if shim else []:
            one = names[number % len(names)]
            if one not in made:
                made[one] = Laid(folder / f"fault {names.index(one)}", one, real, shim)
            failed += tell("faults", number, lambda: made[one].play(random.Random(f"{options.seed}/fault/{number}")))
        figures("faults", len(each) if shim else 0)
    if not shim and not (options.sequences or options.restores):
        leave_skipped("nothing can be loaded into the tool")
    sys.exit(1 if failed else 0)


main()
