"""What is no store, long names, sparse files, where the home is, and real stores. A part of claims.py."""

import os
import random
import re
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from claims_damage import FOREIGN, KINDS, sqlite_says
from claims_found import Found, digest
from claims_stores import read, write
from claims_told import run
from tool import contents, real_material

ELSEWHERE = {}


def elsewhere(name, is_long=False):
    def keep(function):
        function.is_long = is_long
        ELSEWHERE[name] = function
        return function
    return keep


def damaged_store(matrix, kind, version="V2", articles=300):
    sound = matrix.factory(matrix.options.seed, articles=articles).make(version, KINDS[kind].state)
    return KINDS[kind].damage(sound, random.Random(f"{matrix.options.seed} {kind}"))


class Place:
    """A store of the app in a folder of its own, with a home."""

    def __init__(self, cell, matrix, files, name="App.sqlite", folder="place"):
        self.cell, self.claim, self.model = cell, cell.claim, matrix.models.app
        self.root = cell.folder / folder
        self.store, self.home = self.root / "Stores" / name, self.root / "Home"
        self.home.mkdir(parents=True)
        write(self.store, files)

    def run(self, verb, *options, **more):
        """Runs `inspect`, `open` or `quarantine add` with the model; all but `inspect` with the home."""
        home = () if verb == "inspect" else ("--home", self.home)
        return run(self.cell.folder, *verb.split(), self.store, "--model", self.model, *home, *options, **more)

    @property
    def quarantined(self):
        found = (self.store.parent / "Incompatible").glob("*.sqlite") if (self.store.parent / "Incompatible").is_dir() else ()
        return [path for path in found if not path.name.endswith(".salvaged.sqlite")]

    def is_so(self, rule, told, verdict, code):
        """A command gives this verdict and exits with this code."""
        said = told.failure.get("detail") or told.verdict
        holds = (told.verdict, told.code) == (verdict, code)
        return self.claim(rule, holds, told, f"{said}, exit {told.code}", f"{verdict}, exit {code}")

    def refuses(self, told, rule, why, codes=(3,)):
        """A command left everything as it was, and exits with one of these codes."""
        self.claim(rule, told.code in codes, told, f"exit {told.code}: {told.first_words}", f"{why}: exit {codes[0]}")


def goes_on(place, damaged, version="V2"):
    """Once the environment is as it should be, opening does what it does with such a store, and no record is lost."""
    told = place.run("open", "--check", "full", "--json")
    place.claim("goes-on", told.code in (0, 2), told, f"exit {told.code}: {told.first_words}", "nothing is in the way any more")
    has_records(place, damaged, told)


def has_records(place, damaged, told):
    found = Found(damaged, place.store)
    if not place.claim("installed-is-sound", not found.problem, told, f"exit {told.code}", f"SQLite: {found.problem}"):
        return
    tables = damaged.records.values()
    are_left, are_there = any(damaged.certain[table] for table in tables), any(found.count(table) for table in tables)
    if not place.claim(
            "environment-empty-store", are_there or not are_left,
            told, f"exit {told.code}: an empty store was installed", "the records are whole; the environment is not damage"):
        return
    for table in damaged.records.values():
        missing = found.missing(table)
        place.claim(
            "environment-lost-rows", not missing, told,
            f"{len(missing)} of {len(damaged.certain[table])} rows of {table} are missing",
            "they are whole in what was there; the environment is not damage")


# What is no store


def foreign(name, data, kinds):
    def play(cell, matrix):
        place = Place(cell, matrix, {"": data})
        before = contents(place.store.parent)
        told = place.run("inspect")
        place.claim("foreign-inspect", told.code != 0, told, f"exit {told.code}", f"its kind: {name}")
        place.claim("foreign-kind-named", names(told, kinds, cell), told, told.first_words, f"its kind: {name}")
        for command in (place.run("open"), place.run("open")):
            place.refuses(command, "foreign-refused", f"its kind: {name}; it is refused without --replace-foreign", (1, 3, 64))
            place.claim(
                "foreign-moved", contents(place.store.parent) == before, command, "it was moved away",
                f"its kind: {name}; it stays where it is")
            place.claim("foreign-kind-named", names(command, kinds, cell), command, command.first_words, f"its kind: {name}")
        told = run(cell.folder, "salvage", place.store, "--model", place.model, "-o", cell.folder / "Out.sqlite")
        place.claim(
            "foreign-salvaged", told.code not in (0, 2) or digest(read(place.store)) != digest({"": data}), told,
            f"exit {told.code}", "no record is in it")
        fresh = Place(cell, matrix, {"": data}, folder="replaced")
        told = fresh.run("open", "--replace-foreign", "--json")
        kept = [path for path in fresh.quarantined if path.read_bytes() == data]
        fresh.claim("foreign-replaced", told.code == 2 and kept, told, f"exit {told.code}: {told.first_words}",
                    "with --replace-foreign it is quarantined, whole, and a store is created: exit 2")
    return play


def names(told, kinds, cell):
    """Whether a kind is named, and not only in a path."""
    words = told.words.replace(str(cell.folder), "").lower()
    return any(kind in words for kind in kinds)


for each, (content, words) in FOREIGN.items():
    elsewhere(f"no store · {each}")(foreign(each, content, words))


@elsewhere("no store · random bytes")
def random_bytes(cell, matrix):
    data = random.Random(matrix.options.seed).randbytes(300_000)
    place = Place(cell, matrix, {"": data})
    before = contents(place.store.parent)
    told = place.run("inspect", "--json")
    reason = told.data.get("reason", {})
    place.claim(
        "random-verdict", (told.verdict, told.code) == ("unavailable", 3), told, f"{told.verdict}, exit {told.code}",
        "random bytes may be an encrypted store: unavailable, exit 3")
    place.claim(
        "random-reason", reason.get("code") == "encrypted-or-random", told, reason.get("code"), "encrypted-or-random")
    place.claim("random-hint", "SQLCipher" in told.out, told, reason.get("hint"), "the hint names SQLCipher")
    facts = {key: told.data.get("health", {}).get(key) for key in ("pageCount", "pageSize", "encoding", "writtenBySQLite")}
    facts = {key: value for key, value in facts.items() if value is not None}
    place.claim("random-as-fact", not facts, told, facts, "random bytes tell no facts")
    for round in range(2):
        told = place.run("open", "--json")
        place.refuses(told, "random-refused", "it may be an encrypted store")
        place.claim("random-hint", "SQLCipher" in told.words, told, told.first_words, "the hint names SQLCipher")
    told = place.run("open")
    place.claim(
        "random-moved", contents(place.store.parent) == before, told, "it was moved away", "it is never quarantined by default")


@elsewhere("no store · random bytes as large as a page")
def few_random_bytes(cell, matrix):
    place = Place(cell, matrix, {"": random.Random(matrix.options.seed).randbytes(4096)})
    before = contents(place.store.parent)
    for verb in ("inspect", "open"):
        place.refuses(place.run(verb), "random-refused", "it may be an encrypted store")
    place.claim("random-moved", contents(place.store.parent) == before, "lazaret open", "it was moved away",
                "it is never quarantined by default")


@elsewhere("no store · file without a byte")
def without_a_byte(cell, matrix):
    place = Place(cell, matrix, {"": b""})
    for verb in ("inspect", "open"):
        told = place.run(verb)
        words = told.words.lower()
        place.claim(
            "empty-file-words", re.search(r"\bempty\b|no byte|0 bytes|without a byte", words), told, told.first_words,
            "the file is empty")
        odd = [one for one in ("page of a sqlite", "is damaged", "recovered", "lost") if one in words]
        place.claim(
            "empty-file-words", not odd, told, odd, "nothing was in it, and nothing of it is damaged or lost: plain words")
    found = sqlite3.connect(place.store).execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    place.claim("empty-file-opens", found, told, "no tables", "a store for the model is there now")
    place.is_so("open-again", place.run("open", "--json"), "compatible", 0)


@elsewhere("no store · folder")
def a_folder(cell, matrix):
    place = Place(cell, matrix, {})
    place.store.mkdir(parents=True)
    (place.store / "notes.txt").write_text("notes")
    before = contents(place.store.parent)
    out = cell.folder / "Out.sqlite"
    for told in (
            place.run("open"), place.run("inspect"), place.run("quarantine add"),
            run(cell.folder, "salvage", place.store, "--model", place.model, "-o", out)):
        place.refuses(told, "folder-is-usage", "a folder is a usage error", (64,))
    place.claim(
        "folder-moved", contents(place.store.parent) == before and not out.exists(), told, "something changed",
        "nothing is touched")


@elsewhere("no store · nothing there")
def nothing(cell, matrix):
    place = Place(cell, matrix, {})
    place.store.parent.mkdir(exist_ok=True)
    place.is_so("missing-verdict", place.run("inspect", "--json"), "missing", 1)
    place.is_so("missing-created", place.run("open", "--json"), "missing", 0)
    place.is_so("open-again", place.run("open", "--json"), "compatible", 0)


# Names and sizes


@elsewhere("name · 250 bytes, none")
def long_name(cell, matrix):
    long_named(cell, matrix, "none", 250)


@elsewhere("name · 250 bytes, one leaf zeroed")
def long_name_damaged(cell, matrix):
    long_named(cell, matrix, "one leaf zeroed", 250)


def long_named(cell, matrix, kind, length):
    """Of this length SQLite opens it: the names of its log and index fit."""
    damaged = damaged_store(matrix, kind)
    place = Place(cell, matrix, damaged.files, name="n" * (length - 7) + ".sqlite")
    right = ("damaged", 2) if damaged.is_damaged else ("compatible", 0)
    place.is_so("long-name", place.run("inspect", "--check", "full", "--json"), *right)
    told = place.run("open", "--check", "full", "--json")
    if place.is_so("long-name", told, *right):
        has_records(place, damaged, told)


@elsewhere("name · 255 bytes")
def longest_name(cell, matrix):
    """SQLite itself cannot open it, since its log would have a longer name than a file can have; it can be looked at."""
    damaged = damaged_store(matrix, "none")
    place = Place(cell, matrix, damaged.files, name="n" * 248 + ".sqlite")
    before = contents(place.store.parent)
    place.is_so("long-name", place.run("inspect", "--json"), "compatible", 0)
    told = place.run("open")
    place.claim("long-name", told.code in (0, 1, 3), told, f"exit {told.code}", "it opens, or is refused")
    place.claim(
        "long-name-words", not re.search(r"\.(unfinished|lazaret|restoring|lock)", told.error), told, told.first_words[-100:],
        "what is too long is the store's name, not that of a file of the tool's")
    place.claim(
        "long-name-moved", place.store.exists() and not place.quarantined, told, "it was moved", "nothing is wrong with it")
    if told.code:
        place.claim("long-name-moved", contents(place.store.parent) == before, told, "files changed", "nothing is touched")


def sparse(kind):
    def play(cell, matrix):
        damaged = damaged_store(matrix, kind)
        place = Place(cell, matrix, damaged.files)
        try:
            os.truncate(place.store, 100 * 10**9)
        except OSError as error:
            cell.skip(f"no sparse file can be made: {error}")
            return
        if place.store.stat().st_blocks * 512 > 10**9:
            cell.skip("files are not sparse here")
            return
        right = ("damaged", 2) if damaged.is_damaged else ("compatible", 0)
        place.is_so("sparse", place.run("inspect", "--json"), *right)
        told = place.run("open", "--check", "full", "--json")
        if place.is_so("sparse", told, *right) and damaged.is_damaged:
            has_records(place, damaged, told)
    return play


elsewhere("sparse 100 GB · none")(sparse("none"))
elsewhere("sparse 100 GB · one leaf zeroed")(sparse("one leaf zeroed"))


# The home


@elsewhere("home · the store's folder")
def home_is_the_stores(cell, matrix):
    damaged = damaged_store(matrix, "header zeroed")
    store, nowhere = cell.folder / "Stores/App.sqlite", cell.folder / "elsewhere"
    write(store, damaged.files)
    nowhere.mkdir()
    told = run(cell.folder, "open", store, "--model", matrix.models.app, "--json", cwd=nowhere)
    left = sorted(path.name for path in nowhere.iterdir())
    cell.claim("home-is-the-stores", not left, told, f"in the current folder: {left}", "the home is the store's folder")
    identifier = told.event("quarantine").get("id", "")
    run(cell.folder, "open", store, "--model", matrix.models.app, cwd=nowhere)
    made = run(cell.folder, "backup", "create", store, "--json", cwd=nowhere)
    folder = made.data.get("backup", {}).get("folder", "")
    cell.claim(
        "home-is-the-stores", not (nowhere / "Backups").exists(), made, f"the backup is in {folder}",
        "the home is the store's folder")
    listed = run(cell.folder, "quarantine", "list", "--json", cwd=store.parent)
    found = [one.get("id") for one in listed.data.get("stores", [])]
    cell.claim("home-lists", identifier in found, listed, f"lists {found}", f"in the store's folder {identifier} is known")
    quarantined = store.parent / "Incompatible" / f"{identifier}.sqlite"
    again = run(cell.folder, "quarantine", "salvage", quarantined, "--model", matrix.models.app, "--json", cwd=nowhere)
    left = sorted(path.name for path in nowhere.iterdir() if path.name != "Backups")
    cell.claim("home-is-the-stores", not left and again.code == 0, again, f"exit {again.code}, in the current folder: {left}",
               "the home is the store's folder")


@elsewhere("home · LAZARET_HOME")
def home_of_the_environment(cell, matrix):
    damaged = damaged_store(matrix, "header zeroed")
    store, home = cell.folder / "Stores/App.sqlite", cell.folder / "Home"
    write(store, damaged.files)
    home.mkdir()
    named = {"LAZARET_HOME": str(home)}
    told = run(cell.folder, "open", store, "--model", matrix.models.app, "--json", environment=named)
    cell.claim("home-of-environment", (home / "Quarantines.json").exists(), told, f"the home has {os.listdir(home)}",
               "LAZARET_HOME is the home")
    listed = run(cell.folder, "quarantine", "list", "--json", environment=named)
    cell.claim("home-of-environment", listed.data.get("stores"), listed, "none", "the store is in the home's catalogue")


@elsewhere("home · one that does not exist")
def home_missing(cell, matrix):
    missing = cell.folder / "no such home"
    for words in (("quarantine", "list"), ("backup", "list"), ("backup", "verify"), ("backup", "prune"), ("outbox", "list")):
        told = run(cell.folder, *words, "--home", missing)
        cell.claim(
            "home-missing", told.code not in (0, 2) and not missing.exists(), told, f"exit {told.code}: {told.first_words}",
            "there is no such home: an error")


@elsewhere("home · a catalogue of earlier versions in the current folder")
def home_of_before(cell, matrix):
    damaged = damaged_store(matrix, "header zeroed")
    store, current = cell.folder / "Stores/App.sqlite", cell.folder / "current"
    write(store, damaged.files)
    current.mkdir()
    told = run(cell.folder, "open", store, "--model", matrix.models.app, "--home", current, "--json")
    identifier = told.event("quarantine").get("id", "?")
    listed = run(cell.folder, "quarantine", "list", cwd=current)
    cell.claim(
        "home-of-before", identifier in listed.words, listed, listed.first_words,
        f"the catalogue in the current folder has {identifier}")


@elsewhere("home · identifiers")
def identifiers(cell, matrix):
    damaged = damaged_store(matrix, "header zeroed")
    place = Place(cell, matrix, damaged.files)
    quarantined = place.run("open", "--json").event("quarantine").get("id", "")
    made = run(cell.folder, "backup", "create", place.store, "--home", place.home, "--json")
    backup = made.data.get("backup", {}).get("id", "")
    shapes = [re.sub(r"(-\d+)$", "", re.sub(r"\d+", "0", one)) for one in (quarantined, backup)]
    cell.claim(
        "identifiers-alike", quarantined and backup and shapes[0] != shapes[1], made,
        f"{backup}, as the quarantine {quarantined}", "identifiers of backups and quarantines can be told apart")


# Stores that others made


@elsewhere("real · sound stores", is_long=True)
def real_stores(cell, matrix):
    """What SQLite finds nothing wrong with is not called damaged, by either look."""
    material = real_material()
    if not material:
        cell.skip("there are no real stores")
        return
    for path in sorted((material / "stores").rglob("*")):
        if path.is_file() and path.read_bytes()[:16] == b"SQLite format 3\0":
            with_log = {suffix: data for suffix, data in read(path).items() if suffix != "-shm"}
            real_store(cell, path, with_log)


def real_store(cell, path, files):
    if sqlite_says(files) != "ok":
        return
    folder = cell.folder / f"{path.parent.name} {path.name}"
    store = folder / path.name
    write(store, files)
    before = contents(folder)
    for look in ("quick", "full"):
        told = run(cell.folder, "inspect", store, "--check", look, "--json")
        cell.claim(
            "real-called-damaged", told.verdict == "compatible" and not told.data.get("health", {}).get("damaged"), told,
            f"{told.verdict}: {told.data.get('reason', {}).get('words')}", "SQLite finds nothing wrong")
    cell.claim("inspect-touches-nothing", contents(folder) == before, told, "files changed", "looking changes nothing")
