"""Backups by the built tool alone: stores that are damaged more and more, bits flipped in every file of a chain, runs that are killed.

What is true of a store is known from SQLite: its integrity check, and all rows of its tables. At every moment a good backup of a store
that was sound once can be restored; damage to a backup is named by its file and costs at most a block of 1 MiB. Arguments:

  --all        8 stores × 60 backups and 200 flipped bits, in place of a bounded part
  --seed N     the seed (1)
  WORDS        only scenarios whose names have one of these words
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import LAZARET, Tally, lazaret, scenarios

arguments = argparse.ArgumentParser()
arguments.add_argument("--all", action="store_true")
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("words", nargs="*")
options = arguments.parse_args()

PAGE = 4096
MIB = 1 << 20
STORES, ROUNDS, FLIPS = (8, 60, 200) if options.all else (3, 16, 40)


# MARK: Stores and what is true of them


def make(path, rows, seed, width=120):
    """A store with indexes, long values and free pages."""
    chance = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.executescript(
        f"""PRAGMA page_size = {PAGE};
        CREATE TABLE notes (id INTEGER PRIMARY KEY, kind INTEGER, size REAL, title TEXT COLLATE NOCASE, body TEXT);
        CREATE TABLE tags (id INTEGER PRIMARY KEY, note INTEGER, name TEXT, UNIQUE (note, name));
        CREATE INDEX notes_kind ON notes (kind, size DESC);
        CREATE INDEX notes_title ON notes (title);
        CREATE INDEX notes_short ON notes (length(body)) ;
        CREATE INDEX notes_some ON notes (kind) WHERE kind > 3;""")
    for number in range(1, rows + 1):
        db.execute("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", note(chance, number, width))
        db.execute("INSERT INTO tags VALUES (?, ?, ?)", (number, chance.randrange(rows), f"tag {number}"))
    db.commit()
    db.execute("ALTER TABLE notes ADD COLUMN later INTEGER DEFAULT 7")
    db.execute("CREATE INDEX notes_later ON notes (later)")
    db.commit()
    db.close()
    return path


def note(chance, number, width):
    long = "x" * 9000 if number % 97 == 0 else ""
    body = "".join(chance.choices("abcdefghijklmnop qrstuvwxyz0123456789", k=width)) + long
    return number, chance.randrange(9), chance.choice([number / 3, float(number), -0.0, 1e300]), f"Title {number}", body


def change(path, chance, count=5):
    db = sqlite3.connect(path)
    top = db.execute("SELECT coalesce(max(id), 0) FROM notes").fetchone()[0]
    for _ in range(count):
        db.execute("UPDATE notes SET body = ? WHERE id = ?", (f"changed {chance.random()}", chance.randrange(1, top + 1)))
    top += 1
    db.execute("INSERT INTO notes VALUES (?, ?, ?, ?, ?, 1)", note(chance, top, 100))
    db.commit()
    db.close()


def state(path):
    """All rows of a sound store, or None for one that SQLite finds damaged."""
    try:
        db = sqlite3.connect(path)
        try:
            if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                return None
            return {table: db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in ("notes", "tags")}
        finally:
            db.close()
    except sqlite3.Error:
        return None


def pages(path, kind, table=None):
    """The numbers of the pages that begin like pages of a kind (13 leaf of a table, 10 leaf of an index, 5 and 2 above)."""
    content = path.read_bytes()
    return [at // PAGE + 1 for at in range(PAGE, len(content), PAGE) if content[at] == kind]


def write(path, at, content):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(content)


def damage(path, kind, chance):
    """Damages a store so that SQLite's own check says so; False where this store has nothing of the kind."""
    leaves, entries = pages(path, 13), pages(path, 10)
    if kind == "leaf zeroed":
        write(path, (chance.choice(leaves) - 1) * PAGE, bytes(PAGE))
    elif kind == "leaf of random bytes":
        write(path, (chance.choice(leaves) - 1) * PAGE, chance.randbytes(PAGE))
    elif kind == "index page zeroed" and entries:
        write(path, (chance.choice(entries) - 1) * PAGE, bytes(PAGE))
    elif kind == "two leaves exchanged" and len(leaves) > 1:
        one, other = chance.sample(leaves, 2)
        content = path.read_bytes()
        first, second = content[(one - 1) * PAGE:one * PAGE], content[(other - 1) * PAGE:other * PAGE]
        write(path, (one - 1) * PAGE, second)
        write(path, (other - 1) * PAGE, first)
    elif kind == "entry of an index changed" and entries:
        page = chance.choice(entries)
        content = path.read_bytes()[(page - 1) * PAGE:page * PAGE]
        at = content.find(b"Title ")
        if at < 0:
            return False
        write(path, (page - 1) * PAGE + at, b"Tutle ")
    elif kind == "value of an indexed column changed":
        content = path.read_bytes()
        for page in chance.sample(leaves, len(leaves)):
            at = content.find(b"Title ", (page - 1) * PAGE, page * PAGE)
            if at >= 0:
                write(path, at, b"Tatle ")
                break
        else:
            return False
    elif kind == "entries of an index exchanged" and entries:
        page = chance.choice(entries)
        start = (page - 1) * PAGE
        content = path.read_bytes()[start:start + PAGE]
        if int.from_bytes(content[3:5], "big") < 2:
            return False
        write(path, start + 8, content[10:12] + content[8:10])
    elif kind == "tail cut off":
        os.truncate(path, path.stat().st_size // PAGE * PAGE - chance.randrange(1, 4) * PAGE)
    elif kind == "header garbled":
        write(path, 0, chance.randbytes(100))
    else:
        return False
    return state(path) is None


DAMAGE = [
    "leaf zeroed", "leaf of random bytes", "index page zeroed", "two leaves exchanged", "entry of an index changed",
    "value of an indexed column changed", "entries of an index exchanged", "tail cut off", "header garbled"]


# MARK: Backups


def listed(home):
    return lazaret("backup", "list", "--home", home, "--json").data.get("backups", [])


def create(store, home, *more):
    return lazaret("backup", "create", store, "--home", home, "--json", *more)


def restored(home, out, *more):
    """What restoring gives: its outcome, and the state of the store that it made."""
    for part in out.parent.glob(out.name + "*"):
        part.unlink()
    shutil.rmtree(out.parent / f".{out.stem}_SUPPORT", ignore_errors=True)
    outcome = lazaret("backup", "restore", *more, "--home", home, "--to", out, "--json")
    return outcome, state(out) if out.exists() else None


def place(home):
    return next(one for one in (home / "Backups").iterdir() if one.is_dir())


# MARK: Scenarios


def a_damaged_store_never_displaces_a_good_backup(folder, check):
    for number, kind in enumerate(DAMAGE):
        chance = random.Random(options.seed * 100 + number)
        store, home = make(folder / f"{number}" / "App.sqlite", 900, number), folder / f"{number}" / "home"
        home.mkdir()
        good = state(store)
        check(create(store, home).code == 0, f"{kind}: the sound store is not backed up")
        pristine = store.read_bytes()
        for _ in range(40):
            if damage(store, kind, chance):
                break
            store.write_bytes(pristine)
        else:
            check(False, f"{kind}: the store could not be damaged")
            continue
        second = create(store, home)
        check(second.code == 2, f"{kind}: the exit code of create is {second.code}", second)
        told = second.data.get("backup", {})
        check(told.get("isSound") is False and told.get("state") == "apart", f"{kind}: create calls it sound", second)
        pruned = lazaret("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", home)
        check(pruned.code == 0, f"{kind}: prune", pruned)
        lazaret("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", home)
        outcome, now = restored(home, folder / f"{number}" / "Out.sqlite")
        check(now == good, f"{kind}: the good backup is not what is restored", outcome)


def progressive_damage_leaves_a_good_backup_at_every_moment(folder, check):
    for number in range(STORES):
        chance = random.Random(options.seed * 1000 + number)
        store, home = make(folder / f"{number}" / "App.sqlite", 500 + 100 * number, number), folder / f"{number}" / "home"
        home.mkdir()
        good = []
        for step in range(ROUNDS):
            if step < ROUNDS // 5 or not good:
                change(store, chance)
            elif state(store) is None and chance.random() < 0.1:
                # The app is given back what a backup has, and goes on.
                _, now = restored(home, store.with_name("Back.sqlite"))
                check(now in good, f"store {number}, step {step}: nothing good to go back to")
                store.with_name("Back.sqlite").replace(store)
            elif chance.random() < 0.6:
                damage(store, chance.choice(DAMAGE[:7]), chance)
            elif state(store) is not None:
                change(store, chance)
            before = state(store)
            outcome = create(store, home)
            check(outcome.code == (2 if before is None else 0), f"store {number}, step {step}: create", outcome)
            if before is not None:
                good.append(before)
            lazaret("backup", "prune", "--keep-last", "2", "--trash-days", "0", "--home", home)
            outcome, now = restored(home, folder / f"{number}" / "Out.sqlite")
            if not check(now is not None and now in good, f"store {number}, step {step}: no good backup restores", outcome):
                break
            if not check(now == good[-1], f"store {number}, step {step}: not the last good one", outcome):
                break


def chain(folder, check, rows=24_000, count=4, values=0):
    """A full backup and deltas on it, each with the state of the store that it is of."""
    store, home = make(folder / "App.sqlite", rows, options.seed, width=160), folder / "home"
    home.mkdir()
    large = folder / ".App_SUPPORT" / "_EXTERNAL_DATA"
    chance = random.Random(options.seed)
    states = {}
    for step in range(count):
        for number in range(values):
            large.mkdir(parents=True, exist_ok=True)
            (large / f"VALUE-{step}-{number}").write_bytes(chance.randbytes(200_000 + 1000 * number))
        outcome = create(store, home)
        check(outcome.code == 0, "create", outcome)
        states[outcome.data["backup"]["id"]] = state(store)
        db = sqlite3.connect(store)
        db.execute("UPDATE notes SET body = body || ? WHERE id BETWEEN ? AND ?", (f" {step}", step * 500 + 1, step * 500 + 300))
        db.commit()
        db.close()
    kinds = [one["kind"] for one in reversed(listed(home))]
    check(kinds == ["full"] + ["delta"] * (count - 1), f"the backups are {kinds}")
    return store, home, states


def flip(path, at, bit):
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def own_files(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.name.startswith("b-"))


def restore_place(kept, pristine):
    """Everything in the folder of the backups is as it was."""
    for path in kept.iterdir():
        if path.is_file() and not (pristine / path.name).exists():
            path.unlink()
    for path in pristine.iterdir():
        if path.is_file() and (not (kept / path.name).exists() or (kept / path.name).read_bytes() != path.read_bytes()):
            shutil.copy2(path, kept / path.name)


def bytes_of_blocks(manifests, name):
    """How much of a packed file are its blocks; what stands behind them is a copy of the manifest."""
    for manifest in manifests:
        for file in manifest["files"]:
            if file["name"] == name:
                return file["bytes"]
    return None


def bits_flipped_in_all_files_of_a_chain_are_named_and_cost_a_block(folder, check):
    chance = random.Random(options.seed)
    store, home, states = chain(folder, check, values=3)
    newest = max(states)
    total = sum(len(rows) for rows in states[newest].values())
    # Rows whose pages are in one block, both tables taken together, and those of the pages at its ends.
    mostLost = total * MIB * 3 // store.stat().st_size
    kept = place(home)
    pristine = folder / "pristine"
    shutil.copytree(kept, pristine)
    manifests = [json.loads((pristine / f"{id_}.json").read_text()) for id_ in states]
    # Every kind of file as often as the blocks, and the note of the place.
    files = own_files(kept) + ["store.json"]
    blocks = lost = 0
    for number in range(FLIPS):
        name = files[number % len(files)]
        at, bit = chance.randrange((pristine / name).stat().st_size), chance.randrange(8)
        flip(kept / name, at, bit)
        cell = f"bit {bit} of byte {at} of {name}"
        verified = lazaret("backup", "verify", "--home", home, "--json")
        told = [
            problem for one in [*verified.data.get("backups", []), verified.data] for key in ("problems", "warnings")
            for problem in one.get(key) or []]
        named = [problem for problem in told if problem.get("file") == name or name in problem.get("words", "")]
        check(named, f"{cell}: verify does not name the file", verified)
        others = [problem for problem in told if problem.get("file") not in (None, name)]
        check(not others, f"{cell}: verify names {[one['file'] for one in others]}", verified)
        isBlock = name.endswith(".gz") and at < bytes_of_blocks(manifests, name)
        check(verified.code == (2 if isBlock else 0), f"{cell}: verify exits with {verified.code}", verified)
        blocks += isBlock
        if name.endswith((".pages", ".kit")) or name.endswith(".json") and not name.endswith((".proof.json", "store.json")):
            check((kept / name).read_bytes() == (pristine / name).read_bytes(), f"{cell}: it is not made anew")
        outcome, now = restored(home, folder / "Out.sqlite", newest)
        if outcome.code == 0 and now is not None:
            check(now == states[newest], f"{cell}: what is restored is not what was backed up", outcome)
        else:
            check(isBlock, f"{cell}: what is no block stops restoring", outcome)
            lost += 1
            damaged = sum(
                len(problem.get("blocks") or []) for one in verified.data["backups"] if one["id"] == name.split(".")[0]
                for problem in one["problems"] if problem.get("file") == name)
            check(damaged <= 1, f"{cell}: {damaged} blocks are damaged", verified)
            outcome, now = restored(home, folder / "Out.sqlite", newest, "--salvage")
            there = now or {"notes": [], "tags": []}
            missing = sum(len(set(states[newest][table]) - set(there[table])) for table in there)
            check(missing <= mostLost, f"{cell}: {missing} of {total} rows are lost", outcome)
        restore_place(kept, pristine)
    print(f"    {FLIPS} bits, {blocks} of them in blocks, {lost} of which cost one")


def manifests_that_are_lost_or_edited_cost_what_they_said_and_nothing_else(folder, check):
    chance = random.Random(options.seed)
    store, home, states = chain(folder, check, rows=9000, count=3, values=2)
    full, *deltas = sorted(states)
    kept = place(home)
    pristine = folder / "pristine"
    shutil.copytree(kept, pristine)
    manifest = json.loads((kept / f"{full}.json").read_text())
    carrier = f"{full}.sqlite.gz"
    behind = next(file["bytes"] for file in manifest["files"] if file["name"] == carrier)
    gunzip = subprocess.run(["gunzip", "-c", kept / carrier], capture_output=True)
    check(gunzip.returncode == 0 and not gunzip.stderr, f"gunzip says {gunzip.stderr}")
    (folder / "Gunzip.sqlite").write_bytes(gunzip.stdout)
    check(state(folder / "Gunzip.sqlite") == states[full], "what gunzip makes is not the database")

    def all_restore(cell):
        for id_ in states:
            outcome, now = restored(home, folder / "Out.sqlite", id_)
            check(now == states[id_], f"{cell}: {id_} does not restore", outcome)
            data = folder / ".Out_SUPPORT" / "_EXTERNAL_DATA"
            count = len(list(data.iterdir())) if data.is_dir() else 0
            check(count == 2 * (sorted(states).index(id_) + 1), f"{cell}: {count} large values come back", outcome)

    all_restore("sound")
    for id_ in states:
        (kept / f"{id_}.json").unlink()
    all_restore("all manifests removed")
    verified = lazaret("backup", "verify", "--home", home, "--json")
    check(verified.code == 0, "all manifests removed: verify", verified)
    check(all((kept / f"{id_}.json").read_bytes() == (pristine / f"{id_}.json").read_bytes() for id_ in states),
          "they are not made anew")
    restore_place(kept, pristine)
    for name in (full, deltas[0]):
        text = (kept / f"{name}.json").read_text()
        for old, new in (('"reason":"manual"', '"reason":"scheduled"'), ('"isSound":true', '"isSound":false'), ('"digest"', '"digesy"')):
            (kept / f"{name}.json").write_text(text.replace(old, new))
            one = next(one for one in listed(home) if one["id"] == name)
            check(one["reason"] == "manual" and one["isSound"], f"an edited manifest is believed: {old} {one}")
            check([warning["code"] for warning in one["warnings"]] == ["manifest-changed"], f"{old}: {one['warnings']}")
            all_restore(f"edited: {old}")
        restore_place(kept, pristine)
    for cell in ("removed", "damaged"):
        if cell == "removed":
            (kept / f"{full}.json").unlink()
            os.truncate(kept / carrier, behind)
        else:
            flip(kept / f"{full}.json", chance.randrange(1000), 3)
            flip(kept / carrier, behind + 28 + chance.randrange(1000), 3)
        all_restore(f"both manifests {cell}")
        one = next(one for one in listed(home) if one["id"] == full)
        check(one["manifest"] == "rebuilt" and one["unverified"] and one["state"] == "unproven", f"both {cell}: {one}")
        outcome = lazaret("backup", "verify", full, "--home", home, "--json")
        check(outcome.code == 0, f"both {cell}: verify", outcome)
        one = next(one for one in listed(home) if one["id"] == full)
        check(one["manifest"] == "own" and one["state"] == "proven", f"both {cell}, verified: {one}")
        check(one.get("path") == "../App.sqlite", f"both {cell}, verified: the path is {one.get('path')}")
        all_restore(f"both manifests {cell}, verified")
        change(store, chance)
        outcome = create(store, home)
        check(outcome.code == 0, f"both {cell}: the next backup", outcome)
        _, now = restored(home, folder / "Out.sqlite")
        check(now == state(store), f"both {cell}: the next backup does not restore")
        restore_place(kept, pristine)


def stores_of_one_name_are_never_mixed(folder, check):
    home = folder / "home"
    names = ["A/App.sqlite", "B/App.sqlite", "A/App.db", "A/.App.sqlite"]
    stores = {name: make(home / name, 300 + 40 * number, number) for number, name in enumerate(names)}
    chance = random.Random(options.seed)
    good = {name: [] for name in names}
    last = {}
    for step in range(30 if options.all else 10):
        name = chance.choice(names) if step >= len(names) else names[step]
        change(stores[name], chance)
        outcome = create(stores[name], home, *(["--full"] if chance.random() < 0.2 else []))
        check(outcome.code == 0, f"{name}, step {step}: create", outcome)
        good[name].append(state(stores[name]))
        if chance.random() < 0.4:
            pruned = lazaret("backup", "prune", "--of", stores[name], "--keep-last", "2", "--trash-days", "0", "--home", home)
            check(pruned.code == 0, f"{name}, step {step}: prune", pruned)
        for other, path in stores.items():
            if not good[other]:
                continue
            outcome, now = restored(home, folder / "Out.sqlite", "--of", path)
            check(now == good[other][-1], f"after {name}, step {step}: {other} is not what is restored", outcome)
    folders = [one["folder"] for one in listed(home)]
    check(len(set(folders)) == len(names), f"the folders are {sorted(set(folders))}")
    for one in listed(home):
        path = one["path"]
        outcome, now = restored(home, folder / "Out.sqlite", one["id"], "--of", home / path)
        check(now in good[path], f"{one['id']} of {path} is of another store", outcome)
    ids = {name: [one["id"] for one in listed(home) if one["path"] == name] for name in names}
    foreign = ids["B/App.sqlite"][0]
    if foreign not in ids["A/App.sqlite"]:
        before = stores["A/App.sqlite"].read_bytes()
        outcome = lazaret("backup", "restore", foreign, "--of", stores["A/App.sqlite"], "--home", home, "--json")
        check(outcome.failure.get("code") == "backup-of-other-store", "another store's backup is restored", outcome)
        check(stores["A/App.sqlite"].read_bytes() == before, "the store was touched")


def a_home_or_a_store_that_moves_keeps_its_backups(folder, check):
    home = folder / "one" / "home"
    names = ["A/App.sqlite", "B/App.sqlite"]
    good = {}
    for number, name in enumerate(names):
        make(home / name, 300, number)
        for _ in range(2):
            change(home / name, random.Random(number))
            check(create(home / name, home).code == 0, f"{name}: create")
        good[name] = state(home / name)
    moved = folder / "two" / "elsewhere" / "home"
    moved.parent.mkdir(parents=True)
    for cell in ("renamed", "copied"):
        home.rename(moved) if cell == "renamed" else shutil.copytree(home, moved)
        for name in names:
            outcome, now = restored(moved, folder / "Out.sqlite", "--of", moved / name)
            check(now == good[name], f"{cell}: {name} is not restored", outcome)
            change(moved / name, random.Random(9))
            outcome = create(moved / name, moved)
            check(outcome.code == 0 and outcome.data["backup"]["kind"] == "delta", f"{cell}: {name} begins anew", outcome)
            good[name] = state(moved / name)
        check(len({one["folder"] for one in listed(moved)}) == 2, f"{cell}: the folders are not two")
        home = moved
        moved = folder / "three" / "home"
        moved.parent.mkdir(parents=True, exist_ok=True)
    # Without its note, and with a changed one, the manifests tell.
    for number, name in enumerate(names):
        note = next(Path(one["folder"]) for one in listed(home) if one["path"] == name) / "store.json"
        note.unlink() if number else flip(note, note.read_text().index("App.sqlite"), 1)
        outcome, now = restored(home, folder / "Out.sqlite", "--of", home / name)
        check(now == good[name], f"{name} is not found without its note", outcome)
        outcome = create(home / name, home)
        check(outcome.code == 0 and outcome.data["backup"]["kind"] == "delta", f"{name} begins anew", outcome)


def pruning_reads_what_it_drops_others_for(folder, check):
    store, home = make(folder / "App.sqlite", 1500, 5), folder / "home"
    home.mkdir()
    check(create(store, home, "--full").code == 0, "create")
    good = state(store)
    change(store, random.Random(1))
    newest = create(store, home, "--full").data["backup"]["id"]
    path = place(home) / f"{newest}.sqlite.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    for _ in range(2):
        pruned = lazaret("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", home)
        check(pruned.code in (0, 2), "prune", pruned)
    outcome, now = restored(home, folder / "Out.sqlite")
    check(now == good, "the older good backup was dropped for a damaged one", outcome)


def killed_runs_leave_nothing_that_is_not_cleared(folder, check):
    chance = random.Random(options.seed)
    store, home = make(folder / "App.sqlite", 12_000, 3), folder / "home"
    home.mkdir()
    start = time.monotonic()
    check(create(store, home).code == 0, "create")
    took = time.monotonic() - start
    for step in range(40 if options.all else 12):
        change(store, chance, 50)
        run = subprocess.Popen(
            [LAZARET, "backup", "create", store, "--home", home] + (["--full"] if step % 2 else []),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(took * chance.random() * 1.1)
        run.send_signal(signal.SIGKILL)
        run.wait()
        for one in listed(home):
            check(one["state"] != "broken" or not one.get("isSound"), f"step {step}: {one['state']}")
    outcome = create(store, home)
    check(outcome.code == 0, "create after the kills", outcome)
    left = [path.name for path in place(home).iterdir() if path.name.endswith(".unfinished")]
    check(not left, f"unfinished files stay: {left[:5]}")
    after = lazaret("backup", "list", "--home", home)
    check(after.code == 0, "half backups are listed after the next create", after)
    verified = lazaret("backup", "verify", "--home", home)
    check(verified.code == 0, "a backup that is listed is not whole", verified)


def verify_goes_on_while_others_prune(folder, check):
    store, home = make(folder / "App.sqlite", 3000, 4), folder / "home"
    home.mkdir()
    for _ in range(8):
        change(store, random.Random(2))
        create(store, home, "--full")
    run = subprocess.Popen(
        [LAZARET, "backup", "verify", "--home", home, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for keep in (7, 6, 5, 4, 3, 2, 1):
        lazaret("backup", "prune", "--keep-last", keep, "--trash-days", "0", "--home", home)
    out, error = run.communicate(timeout=300)
    check(run.returncode == 0, f"verify ends with {run.returncode}: {error.strip()[:300]} {out[:300]}")
    strays = [path.name for path in place(home).iterdir() if path.name.endswith(".proof.json")]
    whole = {one["id"] for one in listed(home)}
    check(all(name.removesuffix(".proof.json") in whole for name in strays), "proofs of removed backups stay")


def a_sudden_fall_is_told_and_kept_until_it_is_released(folder, check):
    store, home = make(folder / "App.sqlite", 800, 6), folder / "home"
    home.mkdir()
    first = create(store, home).data["backup"]["id"]
    before = state(store)
    db = sqlite3.connect(store)
    db.execute("DELETE FROM tags WHERE id % 3")
    db.commit()
    db.close()
    outcome = create(store, home)
    falls = outcome.data.get("backup", {}).get("falls") or []
    check([(one["name"], one["before"], one["after"], one["backup"]) for one in falls] == [("tags", 800, 266, first)],
          f"create tells {falls}", outcome)
    create(store, home, "--full")
    for _ in range(2):
        lazaret("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", home)
    check(first in [one["id"] for one in listed(home)], "the backup of before the fall was dropped")
    outcome, now = restored(home, folder / "Out.sqlite", first)
    check(now == before, "the backup of before the fall does not restore", outcome)
    outcome = lazaret("backup", "release", first, "--home", home, "--json")
    check(outcome.code == 0 and outcome.data.get("released") is True, "release", outcome)
    outcome = lazaret("backup", "prune", "--keep-last", "1", "--trash-days", "0", "--home", home, "--json")
    reasons = {
        reason["code"] for place in outcome.data["places"] for one in place["backups"] if one["id"] == first and one["kept"]
        for reason in one["reasons"]}
    # Another one may be made of it: the second, of which more indexes were compared than of the last.
    check(reasons <= {"needed"}, f"it is kept after it was released: {reasons}", outcome)


def backups_of_hidden_stores_are_listed(folder, check):
    store, home = make(folder / ".Hidden.sqlite", 50, 7), folder / "home"
    home.mkdir()
    check(create(store, home).code == 0, "create")
    check(len(listed(home)) == 1, "it is not listed")
    verified = lazaret("backup", "verify", "--home", home, "--json")
    check(verified.data.get("proven") == 1, "it is not verified", verified)


def sound_stores_of_many_kinds_are_never_taken_for_damaged(folder, check):
    kinds = {
        "utf16": "PRAGMA encoding = 'UTF-16le';", "vacuum": "PRAGMA auto_vacuum = FULL;", "small": "PRAGMA page_size = 512;",
        "large": "PRAGMA page_size = 65536;", "legacy": "PRAGMA legacy_file_format = ON;"}
    for number, (name, pragma) in enumerate(kinds.items()):
        store = folder / f"{name}.sqlite"
        chance = random.Random(options.seed * 10 + number)
        db = sqlite3.connect(store)
        db.executescript(
            pragma + """
            CREATE TABLE a (x INTEGER PRIMARY KEY, r REAL, n NUMERIC, t TEXT, b, u TEXT UNIQUE, v INT DEFAULT 5,
              g AS (x + 1) VIRTUAL, s AS (x * 2) STORED, UNIQUE (n, t));
            CREATE INDEX a_all ON a (r DESC, n, t COLLATE NOCASE, b); CREATE INDEX a_g ON a (g); CREATE INDEX a_s ON a (s);
            CREATE INDEX a_x ON a (x DESC); CREATE INDEX a_part ON a (r) WHERE n > 5; CREATE INDEX a_v ON a (v, u);
            CREATE INDEX a_rtrim ON a (t COLLATE RTRIM, x);
            CREATE TABLE w (k TEXT, l INT, m, PRIMARY KEY (l, k)) WITHOUT ROWID; CREATE INDEX w_m ON w (m);
            CREATE TABLE p (k TEXT PRIMARY KEY DESC, q TEXT COLLATE NOCASE, UNIQUE (q, k));""")
        values = [None, 0, 1, -1, 5, 5.0, 5.5, -0.0, 2**53 + 1, float(2**53), 2**62, -2**63, 1e300, "", "a", "A", "a ", "ä", "5",
                  b"", b"\0a", b"x" * 5000, "y" * 5000, "é" * 3000]
        for row in range(1500):
            pick = lambda: chance.choice(values)
            db.execute("INSERT OR IGNORE INTO a (x, r, n, t, b, u) VALUES (?, ?, ?, ?, ?, ?)",
                       (chance.randrange(-2**40, 2**40), pick(), pick(), pick(), pick(), pick() if row % 9 else f"u{row}"))
            db.execute("INSERT OR IGNORE INTO w VALUES (?, ?, ?)", (f"{pick()}", row, pick()))
            db.execute("INSERT OR IGNORE INTO p VALUES (?, ?)", (f"{pick()} {row}", f"Q {row}"))
        db.execute("DELETE FROM a WHERE abs(x) % 3 = 0")
        db.execute("ALTER TABLE a ADD COLUMN late TEXT DEFAULT 'so'")
        db.execute("CREATE INDEX a_late ON a (late, x)")
        db.execute("ALTER TABLE a ADD COLUMN none REAL")
        db.execute("CREATE INDEX a_none ON a (none)")
        db.commit()
        sound = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()
        check(sound, f"{name}: the store of the test is not sound")
        home = folder / f"home {name}"
        home.mkdir()
        outcome = create(store, home)
        check(outcome.code == 0, f"{name}: a sound store is called damaged: {outcome.data.get('backup', {}).get('check')}", outcome)
        depth = outcome.data.get("backup", {}).get("check", {})
        check(depth.get("depth") == "whole", f"{name}: the depth is {depth}", outcome)


Tally().run_all(scenarios(globals()), options.words)
