"""Repairs on their way to being undone, beside damage, before a migration, in many processes at once, and killed.

Each scenario takes a sound store, an empty folder and a function `check`; it returns whether the store had something for it. What is expected is
computed by plain SQL from the store as it was. Moments of kills are drawn from the seed.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import repairs_drifts
from models import Version, attribute, empty_store, entity, insert, relationship, write_model
from repairs_cases import Case, lost_values, wrong_keys
from repairs_drifts import DRIFTS, Facts, Sound, connect, quoted
from tool import LAZARET, lazaret

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__.replace("_", " ")] = function
    return function


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def drawn(*parts):
    return random.Random(f"{repairs_drifts.SEED} {' '.join(parts)}")


def drifted(sound, folder, names):
    """A copy with the first of some drifts for which the store has something."""
    for name in names:
        place = Path(folder, name.replace(" ", "-"))
        place.mkdir()
        case = Case(sound, name, place)
        if case.prepare(DRIFTS[name]):
            return case
    return None


def in_turn(sound, names):
    """The names, begun at one that is the same for a store in every run of a seed."""
    start = drawn(sound.name).randrange(len(names))
    return names[start:] + names[:start]


STRUCTURAL = ["half the columns of every table", "a key row", "the indexes", "all key rows", "a column", "something of everything",
              "the highest keys", "the table of keys", "a table"]


@scenario
def undone(sound, folder, check):
    """The kept original is the store to the byte, and puts it back."""
    case = drifted(sound, folder, in_turn(sound, STRUCTURAL))
    if case is None:
        return False
    before, bytes_before = Facts(case.store), digest(case.store)
    done = case.run("repair")
    if not check(done.code in (0, 2), f"{case.name}: the repair fails", done):
        return True
    kept = [one for one in case.home.rglob("*.sqlite") if one.is_file() and "set-aside" not in one.name]
    if not check(len(kept) == 1 and digest(kept[0]) == bytes_before, f"{case.name}: the kept original is not the store to the byte", done):
        return True
    undo = lazaret("backup", "restore", kept[0].stem, "--of", case.store, "--home", case.home)
    if check(undo.has_restored(case.store), f"{case.name}: the original cannot be restored", undo):
        now = Facts(case.store)
        check((now.rows, now.schema, now.keys, now.metadata) == (before.rows, before.schema, before.keys, before.metadata),
              f"{case.name}: the restored store is not the original")
        again = case.run("repair")
        check(again.code == done.code, f"{case.name}: after the undoing a repair ends with {again.code}", again)
    return True


def leaves(path, table):
    """The numbers of the leaf pages of a table, from its root down."""
    database = connect(path)
    (root,), = database.execute("SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchall()
    size = database.execute("PRAGMA page_size").fetchone()[0]
    database.close()
    raw, found, pages = Path(path).read_bytes(), [], [root]
    while pages:
        page = pages.pop(0)
        content = raw[(page - 1) * size:page * size]
        start = 100 if page == 1 else 0
        if content[start] == 13:
            found.append(page)
        elif content[start] == 5:
            count = int.from_bytes(content[start + 3:start + 5])
            offsets = [int.from_bytes(content[start + 12 + 2 * one:start + 14 + 2 * one]) for one in range(count)]
            pages += [int.from_bytes(content[one:one + 4]) for one in offsets] + [int.from_bytes(content[start + 8:start + 12])]
    return size, found


@scenario
def drifted_and_damaged(sound, folder, check):
    """What a store lacks of its model costs no record that is found in its twin that has all of it."""
    case = drifted(sound, folder, in_turn(sound, ["a key row", "all key rows", "the highest keys", "the parents in key rows", "the indexes",
                                                  "the unique indexes", "the triggers"]))
    table = max(sound.tables, key=lambda one: (len(sound.facts.rows[one]), one))
    if case is None or len(sound.facts.rows[table]) < 2:
        return False
    twin = Path(folder, "Twin.sqlite")
    shutil.copyfile(sound.path, twin)
    size, pages = leaves(twin, table)
    raws = [Path(one).read_bytes() for one in (case.store, twin)]
    pages = [one for one in pages if len({raw[(one - 1) * size:one * size] for raw in raws}) == 1]
    if not pages:
        return False
    page = drawn(sound.name, "page").choice(pages)
    results = []
    for path, raw in zip((case.store, twin), raws):
        Path(path).write_bytes(raw[:(page - 1) * size] + bytes(size) + raw[page * size:])
        # Without a log: the damage is what a reader sees.
        output = Path(folder, f"{Path(path).stem}-salvaged.sqlite")
        done = lazaret("salvage", path, "--model", sound.model, "-o", output, "--json")
        check(done.code in (0, 2), f"{case.name}: the salvage of {Path(path).name} fails", done)
        results.append(output)
    seen = case.run("inspect")
    check(seen.data.get("verdict") == "damaged", f"{case.name}: inspect says {seen.data.get('verdict')}", seen)
    if not all(one.exists() for one in results):
        return True
    found, expected = map(Facts, results)
    for name in sound.tables:
        lost = [key for key, row in expected.rows[name].items() if found.rows[name].get(key) != row]
        check(not lost, f"{case.name}: {len(lost)} of {len(expected.rows[name])} records of {name} are lost because of the drift: {lost[:4]}")
    before = digest(case.store)
    opened = case.run("open")
    kinds = [one["kind"] for one in opened.data.get("events", [])]
    check(opened.code in (0, 2) and opened.data.get("verdict") == "damaged" and "salvage" in kinds and "repair" not in kinds,
          f"{case.name}: open says {opened.data.get('verdict')} and does {kinds}", opened)
    check(any(digest(one) == before for one in case.store.parent.rglob("*.sqlite")) or
          any(digest(one) == before for one in case.home.rglob("*.sqlite")), f"{case.name}: the damaged store is not kept", opened)
    return True


def processes(case, verbs):
    command = [LAZARET, None, case.store, "--model", case.sound.model, "--json", "--home", case.home]
    return [subprocess.Popen([str(one) for one in command[:1] + [verb] + command[2:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for verb in verbs]


@scenario
def eight_at_once(sound, folder, check):
    """One of eight repairs; all others wait, find nothing to do, or say that the store is in use."""
    case = drifted(sound, folder, in_turn(sound, STRUCTURAL))
    if case is None:
        return False
    before = Facts(case.store)
    running = processes(case, ["repair", "open"] * 4)
    ends = [(one.args[1], *one.communicate(timeout=300), one.returncode) for one in running]
    told = "; ".join(f"{verb} {code}" for verb, _, _, code in ends)
    for verb, _, error, code in ends:
        check(code in (0, 2, 3), f"{case.name}: {verb} ends with {code}: {error.strip()[-300:]}")
    after = Facts(case.store)
    check(after.integrity == [("ok",)], f"{case.name}: integrity_check {after.integrity[:2]} ({told})")
    for words in [*lost_values(before, after), *wrong_keys(sound, after)]:
        check(False, f"{case.name}: {words} ({told})")
    kept = [one for one in case.home.rglob("*.sqlite") if one.is_file()]
    check(len(kept) == 1, f"{case.name}: {len(kept)} originals are kept ({told})")
    check(any(code in (0, 2) for _, _, _, code in ends), f"{case.name}: all of the eight were refused ({told})")
    again = case.run("inspect")
    check(again.data.get("verdict") == "compatible", f"{case.name}: then inspect says {again.data.get('verdict')} ({told})", again)
    check(not list(case.store.parent.glob(".*migrating*")), f"{case.name}: working files are left beside the store ({told})")
    return True


@scenario
def killed(sound, folder, check, kills=3):
    """After a kill the old store or the new one is in its place, and the next run ends in the new one."""
    case = drifted(sound, folder, in_turn(sound, STRUCTURAL))
    if case is None:
        return False
    original = case.store.read_bytes()
    before = Facts(case.store)
    begin = time.monotonic()
    done = case.run("repair")
    length = time.monotonic() - begin
    if not check(done.code in (0, 2), f"{case.name}: the repair fails", done):
        return True
    repaired = Facts(case.store)
    moments = drawn(sound.name, "kills")
    for number in range(kills):
        place = Path(folder, f"kill-{number}")
        place.mkdir()
        again = Case(sound, case.name, place)
        again.store.write_bytes(original)
        running, = processes(again, ["repair" if number % 2 else "open"])
        time.sleep(moments.uniform(0, length * 1.1))
        running.send_signal(signal.SIGKILL)
        running.communicate()
        if again.store.exists():
            now = Facts(again.store)
            is_old = (now.rows, now.schema, now.keys) == (before.rows, before.schema, before.keys)
            is_new = now.rows == repaired.rows and now.keys == repaired.keys
            check(is_old or is_new, f"{case.name}: after a kill the store is neither the old nor the new one")
        ended = again.run("open")
        check(ended.code in (0, 2), f"{case.name}: after a kill the next run ends with {ended.code}", ended)
        end = Facts(again.store)
        tables = [one for one in repaired.rows if not one.upper().startswith("Z_MODELCACHE")]
        check(all(end.rows[one] == repaired.rows[one] for one in tables) and end.integrity == [("ok",)],
              f"{case.name}: after a kill and another run the store is not the repaired one", ended)
        kept = {digest(one) for one in again.home.rglob("*.sqlite")}
        check(hashlib.sha256(original).hexdigest() in kept, f"{case.name}: after a kill and another run the original is not kept", ended)
    return True


# MARK: A model of two versions

CARS = 400


def versions():
    car = [attribute("plate"), attribute("wheels", "Integer 16", mandatory=True, default="4"), attribute("sold", "Date"),
           relationship("owner", "Person", "cars")]
    person = [attribute("name", mandatory=True, default="none"), attribute("email"), relationship("cars", "Car", "owner", to_many=True)]
    first = Version("V1", entity("Car", *car), entity("Person", *person), entity("Tag", "label"))
    second = Version("V2", entity("Car", *car, attribute("color", default="red")), entity("Person", *person), entity("Tag", "label"),
                     entity("Note", "text"))
    return first, second


class Outdated:
    """A store of the first of two versions, with the models."""

    def __init__(self, folder):
        first, second = versions()
        self.model = write_model(Path(folder, "App.xcdatamodeld"), [first, second], "V2")
        alone = write_model(Path(folder, "alone/App.xcdatamodeld"), [first], "V1")
        store = Path(folder, "made/Generated.sqlite")
        empty_store(alone, store)
        draws = drawn("records")
        people = [{"name": f"person {one}", "email": f"{one}@example.org"} for one in range(40)]
        cars = [{"plate": f"X {one}", "wheels": draws.choice([2, 3, 4]), "owner": draws.randint(1, 40), "sold": one + 0.5} for one in range(CARS)]
        insert(store, {"Person": people, "Car": cars, "Tag": [{"label": "a"}, {"label": "b"}, {"label": "c"}]})
        place = Path(folder, "sound")
        place.mkdir()
        self.sound = Sound(store, store.parent, place)


def drifted_and_outdated(outdated, name, folder, check):
    """The store is repaired and migrated in one go: its records are complete, and one original is kept."""
    case = Case(outdated.sound, name, folder)
    if not case.prepare(DRIFTS[name]):
        return False
    before, first = Facts(case.store), digest(case.store)
    files = sorted(one.name for one in case.store.parent.iterdir())
    run = [case.store, "--model", outdated.model, "--json", "--home", case.home]
    done = lazaret("open", *run)
    if done.failure.get("code") == "repair-refused":
        check(digest(case.store) == first and sorted(one.name for one in case.store.parent.iterdir()) == files,
              f"{name}: a refused repair changed something", done)
        return True
    kinds = [one["kind"] for one in done.data.get("events", [])]
    check(done.code in (0, 2) and done.data.get("verdict") == "outdated" and kinds == ["backup", "repair", "migration"],
          f"{name}: open says {done.data.get('verdict')} and does {kinds}", done)
    after = Facts(case.store)
    check(after.integrity == [("ok",)], f"{name}: integrity_check {after.integrity[:2]}")
    # The numbers of entities are others in the second version, and a number that was wrong was put right.
    for table in outdated.sound.tables:
        for key, row in before.rows.get(table, {}).items():
            now = after.rows[table].get(key, {})
            # A column of the app's is left behind where the migration makes the table anew, and that is told.
            kept = [one for one in row if one[:2] != "Z_" and (one in outdated.sound.fresh.columns[table] or done.code != 2)]
            wrong = [one for one in kept if now.get(one) != row[one]]
            if not check(not wrong and now, f"{name}: row {key} of {table} is not as it was in {wrong[:3]}"):
                break
    names = {row[1]: row for row in after.keys}
    check({"Car", "Person", "Tag", "Note"} <= set(names), f"{name}: Z_PRIMARYKEY has rows of {sorted(map(str, names))}")
    for entity_name in ("Car", "Person", "Tag"):
        rows = after.rows.get("Z" + entity_name.upper(), {})
        number, highest = names[entity_name][0], names[entity_name][3]
        check({row["Z_ENT"] for row in rows.values()} <= {str(number)}, f"{name}: records of {entity_name} have other numbers")
        check(highest >= max(rows, default=0), f"{name}: Z_MAX of {entity_name} is {highest}")
    kept = [one for one in case.home.rglob("*.sqlite") if one.is_file()]
    check([digest(one) for one in kept] == [first], f"{name}: the original is not kept once")
    again = lazaret("open", *run)
    check(again.code == 0 and again.data.get("verdict") == "compatible" and not again.data.get("events"),
          f"{name}: the next opening is not compatible", again)
    return True
