"""What only the environment is to blame for: locks, permissions, file descriptors, a full disk. A part of claims.py."""

import os
import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from claims_elsewhere import Place, damaged_store, elsewhere, goes_on, has_records
from claims_found import digest
from tool import LAZARET, contents

NOBODY = 65534


# SQLite's own exclusive lock; of a store that SQLite refuses, the bytes that it would lock.
HOLD = """
import fcntl, sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
try:
    store.execute("PRAGMA locking_mode = EXCLUSIVE")
    store.execute("BEGIN EXCLUSIVE")
except sqlite3.DatabaseError:
    store.close()
    store = open(sys.argv[1], "r+b")
    fcntl.lockf(store, fcntl.LOCK_EX, 512, 0x40000000)
print("held", flush=True)
sys.stdin.read()
"""


def locked(kind, version="V2"):
    def play(cell, matrix):
        damaged = damaged_store(matrix, kind, version)
        place = Place(cell, matrix, damaged.files)
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(place.store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if holder.stdout.readline().strip() != "held":
                cell.skip("the lock could not be taken")
                return
            before = contents(place.store.parent)
            told = place.run("inspect", "--json")
            place.claim(
                "locked-verdict", (told.verdict, told.code) == ("unavailable", 3), told, f"{told.verdict}, exit {told.code}",
                "another process has locked it: unavailable, exit 3")
            for verb in ("open", "quarantine add", "open"):
                told = place.run(verb, "--json")
                place.refuses(told, "locked-exit", "another process has locked it")
                place.claim("locked-words", "lock" in told.words.lower(), told, told.first_words, "another process has locked it")
            place.claim(
                "locked-moved", contents(place.store.parent) == before and not place.quarantined, told, "files changed",
                "nothing is moved, nothing installed")
        finally:
            holder.communicate()
        goes_on(place, damaged, version)
    return play


for each, more in (("none", "V2"), ("one leaf zeroed", "V2"), ("none", "V1"), ("header zeroed", "V2")):
    elsewhere(f"environment · locked, {'outdated, ' if more == 'V1' else ''}{each}")(locked(each, more))


@elsewhere("environment · another process locks a new file for a moment")
def locks_a_new_file(cell, matrix):
    """As a scanner does: one of the new files is locked as SQLite locks.

    The store is larger than the others, so that its files are there long enough to be met.
    """
    salvage, migration = ("one leaf zeroed", "V2", "Incompatible"), ("none", "V1", "migrating")
    if matrix.options.all:
        rounds = [(*each, which, seconds) for each in (salvage, migration) for which in range(8) for seconds in (0.2, 8)]
    else:
        rounds = [(*each, which, 0.2) for each in (salvage, migration) for which in range(4)]
        rounds += [(*salvage, 0, 0.3), (*salvage, 1, 0.3)]
    for number, (kind, version, word, which, seconds) in enumerate(rounds):
        damaged = damaged_store(matrix, kind, version, articles=2000)
        place = Place(cell, matrix, damaged.files, folder=f"round {number}")
        watcher = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "claims_locker.py"), str(place.root), str(seconds), str(which), word],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            watcher.stdout.readline()
            told = place.run("open", "--check", "full", "--json")
        finally:
            watched = watcher.communicate()[0].strip()
        told.shown += f" ({watched} for {seconds} s)"
        if told.code in (0, 2):
            has_records(place, damaged, told)
        else:
            place.refuses(told, "brief-lock-exit", "another process held a lock for a moment")
            goes_on(place, damaged, version)


@elsewhere("environment · few file descriptors")
def few_descriptors(cell, matrix):
    counts = range(4, 20) if matrix.options.all else (5, 9, 12)
    for kind, version in (("one leaf zeroed", "V2"), ("none", "V1")):
        damaged = damaged_store(matrix, kind, version)
        for count in counts:
            place = Place(cell, matrix, damaged.files, folder=f"{version} {count}")

            def limit(count=count):
                resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))

            told = place.run("open", "--check", "full", "--json", preexec_fn=limit)
            if told.code == 127:
                # The program itself could not be loaded.
                continue
            told.shown = f"(ulimit -n {count}; {told.shown})"
            place.claim("environment-crash", told.code >= 0, told, f"it crashed, signal {-told.code}", "it ends in good order")
            if told.code in (0, 2):
                has_records(place, damaged, told)
                continue
            place.refuses(told, "environment-exit", "no file can be opened any more")
            place.claim(
                "environment-cause", "permission" not in told.error.lower(), told, told.first_words,
                "too many files are open; nothing is forbidden")
            goes_on(place, damaged, version)


def as_nobody(cell, place):
    """How to run the tool so that permissions count; None where that cannot be done."""
    if os.geteuid() != 0:
        return {}
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    try:
        done = subprocess.run([LAZARET, "--version"], capture_output=True, **who)
    except OSError:
        done = None
    if not done or done.returncode != 0:
        cell.skip("permissions do not count for root, and another user cannot run the tool")
        return None
    for path in [place.root, *place.root.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    return who


def forbidden(kind, folder_mode, file_mode):
    def play(cell, matrix):
        damaged = damaged_store(matrix, kind)
        place = Place(cell, matrix, damaged.files)
        cell.folder.chmod(0o755)
        who = as_nobody(cell, place)
        if who is None:
            return
        place.store.chmod(file_mode)
        place.store.parent.chmod(folder_mode)
        try:
            before = digest({"": place.store.read_bytes()}) if os.access(place.store, os.R_OK) else None
            told = place.run("inspect", "--json", **who)
            if file_mode == 0:
                place.is_so("forbidden-verdict", told, "unavailable", 3)
            told = place.run("open", "--check", "full", "--json", **who)
            # A sound store that may only be read can be opened for that.
            codes = (3, 0) if kind == "none" else (3,)
            place.refuses(told, "forbidden-exit", "the store or its folder may not be written", codes)
            place.claim(
                "forbidden-moved", not place.quarantined and place.store.exists(), told, "it was moved", "nothing is moved")
            if before:
                place.claim(
                    "forbidden-moved", digest({"": place.store.read_bytes()}) == before, told, "its bytes changed",
                    "nothing is touched")
        finally:
            place.store.parent.chmod(0o755)
            if place.store.exists():
                place.store.chmod(0o644)
        goes_on(place, damaged)
    return play


for each in ("none", "one leaf zeroed"):
    elsewhere(f"environment · read-only folder, {each}")(forbidden(each, 0o555, 0o644))
    elsewhere(f"environment · unreadable file, {each}")(forbidden(each, 0o755, 0))
elsewhere("environment · read-only file, none")(forbidden("none", 0o755, 0o444))


@elsewhere("environment · full disk", is_long=True)
def full_disk(cell, matrix):
    """A small file system of its own, filled more and more."""
    disk = cell.folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", str(disk)], capture_output=True).returncode:
        cell.skip("no file system can be mounted here")
        return
    try:
        for kind, version in (("one leaf zeroed", "V2"), ("none", "V1")):
            damaged = damaged_store(matrix, kind, version)
            for free in range(100, 1600, 75):
                place = Place(cell, matrix, damaged.files, folder=f"disk/{version} {free}")
                filled = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - free * 1024
                ballast = disk / "ballast"
                ballast.write_bytes(bytes(max(0, filled)))
                told = place.run("open", "--check", "full", "--json")
                told.shown += f" ({free} kB free)"
                ballast.unlink()
                if told.code in (0, 2):
                    has_records(place, damaged, told)
                else:
                    place.refuses(told, "environment-exit", "the disk is full")
                    goes_on(place, damaged, version)
                subprocess.run(["rm", "-rf", str(place.root)])
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True)
