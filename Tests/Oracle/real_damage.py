"""Real stores with damage that their own bytes tell of: every row that is there comes back, and no other is certain.

Rows are read by Python's SQLite before the damage, so nothing here knows how a salvage works. For each store and kind: a table
holds no row that the original lacks, but for as many as are reported as doubtful; exit 0 only where every row is there; and where
`.recover` is at hand (LAZARET_RECOVER, a sqlite3 with it), it gets no row more.
Arguments: `--kinds zero:5,roots` (default: kinds that nothing leaves in doubt), `--seeds 1,2` (default: 1), `--store WORD`.
"""

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret, leave_skipped, real_material, todays

KINDS = "cell-pointers:20,page-headers:5,declaration:word,field:cell-count,zero:5"
REAL = real_material()
RECOVER = os.environ.get("LAZARET_RECOVER")
LARGEST = 1_500_000


def stores(word):
    for folder in ("stores", "swiftdata"):
        for path in sorted((REAL / folder).rglob("*")):
            if word not in str(path) or not path.is_file() or path.name.endswith(("-wal", "-shm", "-journal")):
                continue
            with path.open("rb") as file:
                if path.stat().st_size <= LARGEST and file.read(16) == b"SQLite format 3\0":
                    yield path


def rows(path, tables=None):
    """The rows of each table, and how often each is there; none of one that cannot be read."""
    db = sqlite3.connect(path)
    db.text_factory = bytes
    found = {}
    for name in tables or [name.decode() for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]:
        try:
            found[name] = Counter(db.execute(f'SELECT * FROM "{name}"'))
        except sqlite3.Error:
            found[name] = Counter()
    db.close()
    return found


def copy(source, folder, name):
    """A copy of a store with its log and journal."""
    folder.mkdir(parents=True)
    for end in ("", "-wal", "-journal"):
        part = source.with_name(source.name + end)
        if part.exists():
            shutil.copy(part, folder / (name + end))
    return folder / name


def recovered(damaged, folder, tables):
    """The rows that `.recover` gets."""
    output = folder / "recovered.sqlite"
    with subprocess.Popen([RECOVER, copy(damaged, folder, "in.sqlite"), ".recover"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tool:
        subprocess.run([RECOVER, output], stdin=tool.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return rows(output, tables)


def shared(truth, found):
    return sum((truth[table] & found[table]).total() for table in truth)


def faults(truth, damaged, scratch):
    output = scratch / "out" / "out.sqlite"
    output.parent.mkdir()
    ran = lazaret("salvage", damaged, "--raw", "-o", output, "--json")
    if not output.exists():
        yield f"no result: {ran.error.strip()[:150]}"
        return
    found = rows(output, truth)
    doubtful = {one["table"]: one.get("doubtful") or 0 for one in ran.data["entities"]}
    missing = sum((truth[table] - found[table]).total() for table in truth)
    for table in truth:
        wrong = (found[table] - truth[table]).total()
        if wrong > doubtful.get(table, 0):
            yield f"{wrong} rows of {table} are not the original's, {doubtful.get(table, 0)} of them are doubtful"
    if ran.code == 0 and missing:
        yield f"exit 0, and {missing} rows are missing"
    if ran.code not in (0, 2):
        yield f"exit {ran.code}"
    if RECOVER:
        ours, others = shared(truth, found), shared(truth, recovered(damaged, scratch / "recover", truth))
        if others > ours:
            yield f".recover has {others} rows, and {ours} came back"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--store", default="")
    options = parser.parse_args()
    if REAL is None:
        leave_skipped("there are no real stores")
    if not RECOVER:
        print("skipped: no sqlite3 with .recover is given by LAZARET_RECOVER, so nothing is compared with it")
    cases = failed = 0
    for store in todays(stores(options.store)):
        for kind in options.kinds.split(","):
            for seed in options.seeds.split(","):
                with tempfile.TemporaryDirectory() as place:
                    scratch = Path(place)
                    truth = rows(copy(store, scratch / "truth", "store.sqlite"))
                    damaged = scratch / "damaged.sqlite"
                    if lazaret("damage", copy(store, scratch / "sound", "store.sqlite"), "-o", damaged, "--kind", kind, "--seed", seed).code:
                        continue
                    cases += 1
                    found = list(faults(truth, damaged, scratch))
                    failed += bool(found)
                    for fault in found:
                        print(f"{store.relative_to(REAL)}, {kind}, seed {seed}: {fault}")
    print(f"{failed} of {cases} damaged real stores have a false claim")
    sys.exit(failed > 0 or cases == 0)


main()
