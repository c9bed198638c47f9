"""Whether whole stores are called drifted: the rule of the comparison, written apart, over stores that others wrote.

For each real Core Data or SwiftData store that carries its model, an empty store of that model is made, and what the real one lacks
of it is listed by tables, columns, indexes (by what they cover), triggers and rows of Z_PRIMARYKEY. None of the stores is drifted, so
every line is a false alarm; where `inspect` says otherwise than this rule, that is told too.
"""

import shutil
import sqlite3
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from tool import lazaret, leave_skipped, real_material, todays


def connect(path):
    database = sqlite3.connect(path)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database


def outline(path):
    """Tables with columns, shapes of indexes, triggers, Z_PRIMARYKEY, highest keys and entity numbers."""
    database = connect(path)
    tables, shapes, highest, numbers = {}, set(), {}, {}
    triggers = {name.upper() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    for name, sql in database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
        virtual = (sql or "").upper().startswith("CREATE VIRTUAL")
        columns = set() if virtual else {c[1].upper() for c in database.execute(f'PRAGMA table_xinfo("{name}")')}
        tables[name.upper()] = columns
        if virtual:
            continue
        for index in database.execute(f'PRAGMA index_list("{name}")').fetchall():
            covered = tuple((c[2] or "").upper() for c in database.execute(f'PRAGMA index_info("{index[1]}")'))
            shapes.add((name.upper(), covered, False))
            if index[2] and not index[4]:
                shapes.add((name.upper(), tuple(sorted(covered)), True))
        if {"Z_PK", "Z_ENT"} <= columns:
            highest[name.upper()] = database.execute(f'SELECT max(Z_PK) FROM "{name}"').fetchone()[0] or 0
            numbers[name.upper()] = {n for (n,) in database.execute(f'SELECT DISTINCT Z_ENT FROM "{name}"')}
    keys = database.execute("SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY").fetchall()
    database.close()
    return tables, shapes, triggers, keys, highest, numbers


def lacks(fresh, real):
    """What a store lacks of an empty one of its own model."""
    tables, shapes, triggers, keys, _, _ = outline(fresh)
    real_tables, real_shapes, real_triggers, real_keys, highest, numbers = outline(real)
    result = [f"table {t}" for t in tables if t not in real_tables and not t.startswith("SQLITE_")]
    for table, columns in tables.items():
        result += [f"column {table}.{c}" for c in columns - real_tables.get(table, columns)]
    for table, columns, unique in shapes:
        wanted = (table, tuple(sorted(columns)) if unique else columns, unique)
        if wanted not in real_shapes:
            result.append(f"{'unique ' if unique else ''}index of {table} over {', '.join(columns)}")
    result += [f"trigger {t}" for t in triggers - real_triggers]
    by_number = {row[0]: row for row in real_keys}
    names = {row[1] for row in keys}
    for number, name, parent, _ in keys:
        row = by_number.get(number)
        # Core Data leaves the name that an entity had before it was renamed.
        if row is None or row[1] != name and row[1] in names:
            result.append(f"row of {name}")
        elif row[2] != parent:
            result.append(f"parent of {name}")
        elif not parent and (row[3] or 0) < highest.get("Z" + name.upper(), 0):
            result.append(f"maximum of {name}")
    parents = {number: parent for number, _, parent, _ in keys}
    tables_of = {}
    for number, name, parent, _ in keys:
        root = number
        while parents.get(root):
            root = parents[root]
        tables_of.setdefault("Z" + next(k[1] for k in keys if k[0] == root).upper(), set()).add(number)
    for table, own in tables_of.items():
        if numbers.get(table, set()) - own:
            result.append(f"numbers in {table}")
    return result


def main(real):
    wrong = compared = 0
    files = sorted(p for p in real.rglob("*") if p.is_file() and not p.name.endswith(("-wal", "-shm")))
    for path in todays(files):
        with path.open("rb") as file:
            if file.read(15) != b"SQLite format 3" or "damaged" in path.parts:
                continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "real.sqlite")
            for suffix in ("", "-wal"):
                if Path(f"{path}{suffix}").exists():
                    shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
            database = connect(copy)
            try:
                row = database.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()
            except sqlite3.DatabaseError:
                continue
            finally:
                database.close()
            if not row or not row[0]:
                continue
            model, fresh = Path(folder, "Own.mom"), Path(folder, "fresh.sqlite")
            model.write_bytes(zlib.decompress(row[0], -15))
            made = lazaret("open", fresh, "--model", model, "--home", folder)
            if made.code:
                sys.exit(str(made))
            found = lacks(fresh, copy)
            told = lazaret("inspect", path, "--json").data
            compared += 1
            if found or told["verdict"] == "repairable":
                wrong += 1
                print(f"{path}: {told['verdict']}: {'; '.join(found) or told['reason']['words']}")
    print(f"{wrong} of {compared} stores are called drifted and are whole")
    return wrong > 0


if __name__ == "__main__":
    material = real_material()
    if material is None:
        leave_skipped("there are no real stores here")
    sys.exit(main(material))
