"""Who may read what the tool writes: 0600 in 0700 folders whatever the umask, and the access of a replaced file is kept.

Every verb that writes is run with the umasks 0 and 077. Everything that was not there before must be its owner's alone; only what was
moved (the same inode) and what has the app's own path keep the access of the app's file: mode, owner, ACL and extended attributes.
Arguments: words of the names of the cases to try.
"""

import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from inbox import Server, bag, packed
from models import Version, entity, insert, write_model
from tool import LAZARET, Outcome, Tally, lazaret, scenarios

ACL = "system.posix_acl_access"


def acl(group):
    """An access control list: the owner 6, a user 4242 read, the group as given, the mask 6, others nothing."""
    entries = [(1, 6, 0xFFFFFFFF), (2, 4, 4242), (4, group, 0xFFFFFFFF), (0x10, 6, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)


class Place:
    """A folder with a model of two versions, a store of the first, and a record of what is there."""

    def __init__(self, folder, check, umask):
        self.folder, self.check, self.umask = folder, check, umask
        one, two = Version("One", entity("Note", "title")), Version("Two", entity("Note", "title", "body"))
        self.old = write_model(folder / "old.xcdatamodeld", [one], "One")
        self.model = write_model(folder / "App.xcdatamodeld", [one, two], "Two")
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        self.store = self.work / "App.sqlite"
        self.run("open", self.store, "--model", self.old, "--home", folder / "first", "--json")
        insert(self.store, {"Note": [{"title": f"note {number}"} for number in range(400)]})

    def run(self, *arguments, code=(0, 2)):
        arguments = [str(one) for one in arguments]
        done = subprocess.run(
            [LAZARET, *arguments], capture_output=True, text=True, errors="replace", timeout=120, cwd=self.folder,
            preexec_fn=lambda: os.umask(self.umask))
        outcome = Outcome(arguments, done.returncode, done.stdout, done.stderr)
        self.check(outcome.code in code, "the command failed", outcome)
        return outcome

    def seen(self):
        return {path: path.lstat() for path in self.folder.rglob("*")}

    def step(self, *arguments, code=(0, 2), app=()):
        """Runs a command; what is new afterwards is its owner's alone, but for what it moved and the app's own paths."""
        before = self.seen()
        inodes = {status.st_ino for status in before.values()}
        outcome = self.run(*arguments, code=code)
        app = {Path(one) for one in app}
        for path, status in self.seen().items():
            if status.st_ino in inodes or path in app or path.is_symlink():
                continue
            self.check(
                not status.st_mode & 0o077,
                f"{path.relative_to(self.folder)} has the mode {stat.S_IMODE(status.st_mode):04o}", outcome)
        for path, status in before.items():
            if path.is_dir() and path.exists():
                self.check(path.stat().st_mode == status.st_mode, f"the mode of {path.relative_to(self.folder)} changed", outcome)
        return outcome

    def mark(self, path):
        """Gives a file an owner, a mode, a list and an attribute of its own; returns them as far as they could be set."""
        if os.geteuid() == 0:
            os.chown(path, 1234, 2345)
        os.chmod(path, 0o640)
        for name, value in ((ACL, acl(4)), ("user.lazaret.test", b"kept \x00 whole")):
            try:
                os.setxattr(path, name, value)
            except OSError:
                # A file system without them.
                pass
        return access(path)

    def keeps(self, path, before, outcome):
        now = access(path)
        self.check(now == before, f"{path.name} had the access {before} and has {now}", outcome)

    def damage(self, path):
        """Overwrites a page in the middle, behind the header."""
        with open(path, "r+b") as file:
            file.seek(4096 * 4)
            file.write(bytes(4096 * 3))


def access(path):
    status = path.stat()
    return (oct(stat.S_IMODE(status.st_mode)), status.st_uid, status.st_gid,
            sorted((name, os.getxattr(path, name)) for name in os.listxattr(path)))


def each_umask(play):
    def scenario(folder, check):
        for umask in (0, 0o077):
            place = folder / f"umask-{umask:03o}"
            place.mkdir()
            play(Place(place, check, umask))
    scenario.__name__ = play.__name__
    # What is run is known by its parameters.
    scenario.__code__ = scenario.__code__.replace(co_name=play.__name__)
    return scenario


@each_umask
def a_store_that_is_made(place):
    new = place.work / "New.sqlite"
    place.step("open", new, "--model", place.model, "--home", place.home)


@each_umask
def a_migration_keeps_the_access_of_the_store(place):
    before = place.mark(place.store)
    outcome = place.step("open", place.store, "--model", place.model, "--home", place.home, app=[place.store])
    place.keeps(place.store, before, outcome)
    other = place.work / "Other.sqlite"
    place.step("migrate", place.store, "--model", place.model, "-o", other, code=(0, 1, 2))


@each_umask
def migrate_in_place_and_into_a_file(place):
    other = place.work / "Other.sqlite"
    place.step("migrate", place.store, "--model", place.model, "-o", other)
    before = place.mark(place.store)
    outcome = place.step("migrate", place.store, "--model", place.model, "--home", place.home, app=[place.store])
    place.keeps(place.store, before, outcome)


@each_umask
def a_salvaged_store_has_the_access_of_the_damaged_one(place):
    place.damage(place.store)
    before = place.mark(place.store)
    outcome = place.step("open", place.store, "--model", place.old, "--home", place.home, app=[place.store])
    place.keeps(place.store, before, outcome)


@each_umask
def an_empty_store_has_the_access_of_the_one_it_replaces(place):
    place.store.write_bytes(bytes(8192))
    before = place.mark(place.store)
    outcome = place.step(
        "open", place.store, "--model", place.old, "--home", place.home, "--on-damage", "replace", app=[place.store])
    place.keeps(place.store, before, outcome)


@each_umask
def quarantine_salvage_install_release(place):
    place.damage(place.store)
    before = place.mark(place.store)
    place.step("quarantine", "add", place.store, "--home", place.home)
    outcome = place.step("quarantine", "list", "--home", place.home, "--json")
    name = outcome.data["stores"][0]["id"]
    outcome = place.step(
        "quarantine", "salvage", name, "--model", place.old, "--install", "--home", place.home, app=[place.store])
    place.keeps(place.store, before, outcome)
    place.store.unlink()
    outcome = place.step("quarantine", "release", name, "--home", place.home, app=[place.store])
    place.keeps(place.store, before, outcome)


@each_umask
def a_restored_backup_has_the_access_of_the_present_store(place):
    place.step("backup", "create", place.store, "--home", place.home)
    before = place.mark(place.store)
    outcome = place.step("backup", "restore", "--home", place.home, app=[place.store])
    place.keeps(place.store, before, outcome)
    place.step("backup", "restore", "--home", place.home, "--to", place.work / "Restored.sqlite")


@each_umask
def copies_and_results(place):
    place.step("kit", "create", place.store, "-o", place.work / "App.kit")
    broken = place.work / "Broken.sqlite"
    place.step("damage", place.store, "-o", broken, "--kind", "zero:20", "--seed", "1")
    place.step("salvage", broken, "-o", place.work / "Salvaged.sqlite")
    place.step("salvage", broken, "-o", place.work / "Fitted.sqlite", "--model", place.old, "--deleted")
    place.step("salvage", broken, "-o", place.work / "Raw.sqlite", "--raw")


@each_umask
def bundles(place):
    key = place.work / "key"
    place.step("key", "new", "-o", key)
    for level in ("facts", "damaged-pages", "scrubbed", "full"):
        bundle = place.work / f"{level}.lazaret.tar.gz"
        place.step("export", place.store, "-o", bundle, "--level", level, "--yes", "--home", place.home)
    place.step("bundle", "unpack", bundle, "-o", place.work / "unpacked")
    place.step("send", bundle, "--to", "http://127.0.0.1:9/", "--home", place.home, code=(0, 1, 2, 3))


@each_umask
def an_inbox(place):
    before = place.seen()
    with open(place.store, "rb") as file:
        content = file.read()
    server = Server(place.home, umask=place.umask)
    try:
        cookie = server.login()
        server.send(packed(bag({"store/App.sqlite": content, "deep/er/file.txt": b"text"})))
        found = server.settled(cookie, 1)
        place.check([one["state"] for one in found] == ["quarantined"], f"the bundle was not opened: {found}")
    finally:
        server.stop()
    place.check(any(place.home.rglob("*.salvaged.sqlite")), "nothing was salvaged")
    for path, status in place.seen().items():
        if path not in before and path.name != "home.errors":
            place.check(
                not status.st_mode & 0o077,
                f"{path.relative_to(place.folder)} has the mode {stat.S_IMODE(status.st_mode):04o}")


Tally().run_all(scenarios(globals()), sys.argv[1:])
