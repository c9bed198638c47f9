"""Kills every verb that copies a store at many moments: nothing of the store stays under a name that nobody asked for.

After each kill one command of another kind runs, on another store. Then no file may lie among the temporary files, and no hidden one
where a result was to be. The store and its home are made anew for each verb. Arguments: --all for 50 moments a verb instead of 4, a
seed, words of the verbs to try.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import LAZARET, todays

CANARY = b"Quirinus Vandermeer, Rosenweg 7"


def make(path, rows=60_000):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, note BLOB)")
        db.executemany("INSERT INTO person VALUES (?, ?, ?)", ((i, CANARY.decode() + f" {i}", os.urandom(300)) for i in range(rows)))
        db.execute("CREATE INDEX person_name ON person (name)")
    db.close()


class Scene:
    def __init__(self, folder):
        self.folder, self.tmp, self.out = folder, folder / "tmp", folder / "out"
        for place in (self.tmp, self.out, folder / "stores"):
            place.mkdir()
        self.store, self.other = folder / "stores/App.sqlite", folder / "Other.sqlite"
        make(self.store)
        self.schema = folder / "App.sql"
        self.schema.write_text("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, note BLOB);\nCREATE INDEX person_name ON person (name);\n")
        make(self.other, rows=3)
        self.env = dict(os.environ, TMPDIR=str(self.tmp), LAZARET_HOME=str(folder / "home"))
        self.env.pop("LAZARET_MODEL", None)

    def run(self, *words):
        return subprocess.run([LAZARET, *map(str, words)], env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def damage(self):
        with open(self.store, "r+b") as file:
            file.seek(4096 * 20)
            file.write(os.urandom(4096 * 30))

    def backup(self, *words):
        self.run("backup", "create", self.store, *words)

    def keys(self):
        key = self.folder / "key"
        if not key.exists():
            self.run("key", "new", "-o", key)
        return key, self.run("key", "public", key).stdout.strip()

    def bundle(self):
        self.run("export", self.store, "--level", "full", "-o", self.folder / "made", "--yes")
        return next(path for path in self.folder.glob("made*"))


VERBS = {
    "inspect": (None, lambda s: ["inspect", s.store, "--check", "full"]),
    "salvage": (Scene.damage, lambda s: ["salvage", s.store, "-o", s.out / "Rescued.sqlite"]),
    "open": (Scene.damage, lambda s: ["open", s.store, "--model", s.schema]),
    "backup create": (None, lambda s: ["backup", "create", s.store]),
    "backup create, encrypted": (None, lambda s: ["backup", "create", s.store, "--encrypt-to", s.keys()[1]]),
    "backup verify": (Scene.backup, lambda s: ["backup", "verify", "--of", s.store]),
    "backup verify, encrypted": (
        lambda s: s.backup("--encrypt-to", s.keys()[1]), lambda s: ["backup", "verify", "--of", s.store, "--identity", s.keys()[0]]),
    "restore --preview": (Scene.backup, lambda s: ["backup", "restore", "--of", s.store, "--preview"]),
    "restore --preview, encrypted": (
        lambda s: s.backup("--encrypt-to", s.keys()[1]),
        lambda s: ["backup", "restore", "--of", s.store, "--preview", "--identity", s.keys()[0]]),
    "restore": (Scene.backup, lambda s: ["backup", "restore", "--of", s.store, "--to", s.out / "Restored.sqlite"]),
    "salvage with a backup": (
        lambda s: (s.backup(), s.damage()), lambda s: ["salvage", s.store, "-o", s.out / "Rescued.sqlite", "--with-backup", "latest"]),
    "export, scrubbed": (None, lambda s: ["export", s.store, "--level", "scrubbed", "-o", s.out / "x", "--yes"]),
    "export, full": (Scene.damage, lambda s: ["export", s.store, "--level", "full", "-o", s.out / "x", "--yes"]),
    "export --dry-run": (None, lambda s: ["export", s.store, "--dry-run"]),
    "bundle check": (None, lambda s: ["bundle", "check", s.bundle()]),
    "bundle unpack": (None, lambda s: ["bundle", "unpack", s.bundle(), "-o", s.out / "unpacked"]),
    "damage": (None, lambda s: ["damage", s.store, "-o", s.out / "Damaged.sqlite", "--kind", "zero:5"]),
}


def hidden(folder):
    """The files below a folder that are hidden, or in a hidden folder."""
    return [path for path in folder.rglob("*") if path.is_file() and any(p.startswith(".") for p in path.relative_to(folder).parts)]


def play(name, moments, seed):
    prepare, command = VERBS[name]
    left = []
    folder = Path(tempfile.mkdtemp(prefix="killed-"))
    try:
        scene = Scene(folder)
        if prepare:
            prepare(scene)
        words = [str(word) for word in command(scene)]
        kept = folder / "kept"
        shutil.copytree(folder / "stores", kept)
        home = folder / "home"
        if home.exists():
            shutil.copytree(home, folder / "kept-home")

        def renew():
            for place in (folder / "stores", home, scene.out):
                shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(kept, folder / "stores")
            scene.out.mkdir()
            if (folder / "kept-home").exists():
                shutil.copytree(folder / "kept-home", home)

        start = time.monotonic()
        first = scene.run(*words)
        took = time.monotonic() - start
        assert first.returncode in (0, 2), f"{name}: exit {first.returncode}: {first.stderr[:400]}"
        source = random.Random(f"{seed}/{name}")
        for _ in range(moments):
            renew()
            process = subprocess.Popen(
                [LAZARET, *words], env=scene.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            moment = source.uniform(0, took)
            time.sleep(moment)
            process.send_signal(signal.SIGKILL)
            process.wait()
            scene.run("inspect", scene.other)
            for path in [p for p in scene.tmp.rglob("*") if p.is_file()] + hidden(scene.out):
                left.append(f"after {moment:.2f} of {took:.2f} s: {path.relative_to(folder)}, {path.stat().st_size} bytes")
            for path in list(scene.tmp.iterdir()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return left


def main():
    words = sys.argv[1:]
    moments = 50 if "--all" in words else 4
    seed = next((word for word in words if word.isdigit()), "1")
    wanted = [word for word in words if not word.startswith("--") and not word.isdigit()]
    failed = 0
    for name in todays(VERBS):
        if wanted and not any(word in name for word in wanted):
            continue
        left = play(name, moments, seed)
        failed += bool(left)
        print(f"{name}: {moments} kills, {len(left)} files left", flush=True)
        for line in left[:3]:
            print(f"   {line}")
    print(f"{failed} verbs left something")
    sys.exit(1 if failed else 0)


main()
