#!/usr/bin/env python3
"""Measures the commands on a generated Core Data store against the usual tools.

  Scripts/bench [--rows N] [--reps N] [--only WORD] [--growth] [--check] [--write]

Each command and its yardstick run in turn, as whole processes; medians and the ratio between them count, and the command's peak of
memory. A yardstick that is not installed is left out. --growth repeats the commands at a hundredth, a tenth and all of the rows, and
says what a row costs; then with damage, with many tables and with many versions. --check exits with 1 where a ratio exceeds its limit,
which is some three times what 100,000 rows took when it was set: the goals are those of a million rows, and a smaller store shows the
start of a command more. Then the fastest runs count, not the medians. --write puts the whole table into Documentation/PERFORMANCE.md.
LAZARET names the program, else .build/release/lazaret. Nothing is written but below TMPDIR.
"""
import argparse, multiprocessing, os, plistlib, random, re, shutil, sqlite3, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.abspath(os.environ.get("LAZARET", os.path.join(ROOT, ".build/release/lazaret")))
WORDS = [a + b + c for a in ("ba", "de", "fi", "go", "ku", "la", "me", "no", "ri", "su") for b in ("", "l", "n", "r", "st") for c in ("a", "en", "in", "o", "um")]

ARTICLE = [("body", "String"), ("created", "Date"), ("flags", "Integer 32"), ("image", "Binary"), ("score", "Double"), ("title", "String")]
# The second version adds a column and renames one, which is done in place; the third removes one, which is a rebuild.
VERSIONS = {
    "Bench": ARTICLE,
    "Bench 2": ARTICLE[:-1] + [("headline", "String", "title"), ("subtitle", "String")],
    "Bench 3": [a for a in ARTICLE if a[0] != "image"],
}


def model(folder):
    """Writes a model of three versions."""
    bundle = os.path.join(folder, "Bench.xcdatamodeld")
    for name, article in VERSIONS.items():
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">']

        def entity(entity, attributes, relationships, index=""):
            lines.append(f'<entity name="{entity}" representedClassName="{entity}" syncable="YES">')
            for attribute, kind, *old in attributes:
                former = f' elementID="{old[0]}"' if old else ""
                lines.append(f'<attribute name="{attribute}" optional="YES" attributeType="{kind}"{former}/>')
            for relationship, target, inverse, count in relationships:
                lines.append(
                    f'<relationship name="{relationship}" optional="YES" {count} deletionRule="Nullify" '
                    f'destinationEntity="{target}" inverseName="{inverse}" inverseEntity="{target}"/>')
            lines.append(index + "</entity>")

        one, many = 'maxCount="1"', 'toMany="YES"'
        entity("Article", article, [("author", "Author", "articles", one), ("tags", "Tag", "articles", many)],
               '<fetchIndex name="byCreatedIndex"><fetchIndexElement property="created" type="Binary" order="ascending"/></fetchIndex>')
        entity("Author", [("born", "Date"), ("email", "String"), ("name", "String")], [("articles", "Article", "author", many)])
        entity("Tag", [("name", "String")], [("articles", "Article", "tags", many)])
        lines.append("</model>")
        version = os.path.join(bundle, name + ".xcdatamodel")
        os.makedirs(version)
        with open(os.path.join(version, "contents"), "w") as file:
            file.write("\n".join(lines))
    with open(os.path.join(folder, "mapping.json"), "w") as file:
        file.write('{"format": 1, "name": "three expressions", "source": "Bench", "destination": "Bench 2", "entities": [{"source": "Article", '
                   '"destination": "Article", "attributes": {"headline": "upper(title)", "subtitle": "substr(body, 1, 20)", '
                   '"score": "score * 2.0"}}]}')
    return bundle


def lazaret(*arguments, accepts=(0,)):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    if done.returncode not in accepts:
        sys.exit(f"lazaret {arguments[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def store(path, bundle, rows):
    """Makes a store of the first version with as many rows, a tenth of them authors and tags, half of them pairs."""
    lazaret("open", path, "--model", bundle, "--to", "Bench", "--home", os.path.join(os.path.dirname(path), "Home"))
    r = random.Random(1)

    def text(low, high):
        return " ".join(r.choices(WORDS, k=r.randint(low, high)))

    database = sqlite3.connect(path)
    tables = {row[0]: [c[1] for c in database.execute(f'PRAGMA table_info("{row[0]}")')]
              for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    entity = dict(database.execute("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY"))
    counts = {"Author": rows * 8 // 100, "Tag": max(1, rows * 2 // 100), "Article": rows * 45 // 100}
    makers = {
        "ZBODY": lambda: None if r.random() < 0.1 else text(5, 40) if r.random() < 0.99 else text(300, 3000),
        "ZCREATED": lambda: r.uniform(4e8, 7e8), "ZBORN": lambda: r.uniform(-5e8, 2e8), "ZFLAGS": lambda: r.randrange(1000),
        "ZIMAGE": lambda: r.randbytes(200) if r.random() < 0.1 else None, "ZSCORE": r.random, "ZTITLE": lambda: text(2, 7),
        "ZAUTHOR": lambda: r.randint(1, max(1, counts["Author"])), "ZEMAIL": lambda: f"{r.choice(WORDS)}{r.randrange(10**6)}@example.com",
        "ZNAME": lambda: text(2, 3),
    }
    for name, count in counts.items():
        table, columns = "Z" + name.upper(), tables["Z" + name.upper()]
        made = [makers.get(column) for column in columns[3:]]
        assert columns[:3] == ["Z_PK", "Z_ENT", "Z_OPT"] and all(made), columns
        database.executemany(
            f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})",
            ((key, entity[name], 1, *[make() for make in made]) for key in range(1, count + 1)))
        database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_NAME = ?", (count, name))
    join = next(t for t in tables if re.fullmatch(r"Z_\d+TAGS", t))
    article = next(i for i, c in enumerate(tables[join]) if c.endswith("ARTICLES"))
    pairs = set()
    while len(pairs) < rows * 45 // 100:
        pair = (r.randint(1, counts["Article"]), r.randint(1, counts["Tag"]))
        pairs.add(pair if article == 0 else pair[::-1])
    database.executemany(f"INSERT INTO {join} VALUES (?, ?)", sorted(pairs))
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("PRAGMA journal_mode = DELETE")
    database.close()


def rebuild(path, article, columns):
    """Returns SQL that makes a new store by hand, with other columns of the articles."""
    database = sqlite3.connect(path)
    entries = list(database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql NOTNULL AND name NOT LIKE 'sqlite_%'"))
    database.close()
    tables = [(name, article if name == "ZARTICLE" else sql) for kind, name, sql in entries if kind == "table"]
    fill = [f"INSERT INTO {name} SELECT {columns if name == 'ZARTICLE' else '*'} FROM o.{name};" for name, _ in tables]
    indexes = [sql + ";" for kind, _, sql in entries if kind == "index"]
    return ("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; "
            f"ATTACH '{path}' AS o; BEGIN; {' '.join(sql + ';' for _, sql in tables)} {' '.join(fill)} {' '.join(indexes)} COMMIT;")


class Work:
    def __init__(self, name, command, yardsticks=(), before=None, accepts=(0,)):
        self.name, self.command, self.yardsticks = name, command, yardsticks
        self.before, self.accepts = before or (lambda: None), accepts


class Run:
    """One run of a command: its time in seconds and the peak of its memory in megabytes."""

    def __init__(self, command, accepts=(0,)):
        start = time.perf_counter()
        process = subprocess.Popen(command, shell=isinstance(command, str), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        self.time, self.memory = time.perf_counter() - start, usage.ru_maxrss / 1000
        if os.waitstatus_to_exitcode(status) not in accepts:
            sys.exit(f"{command} ended with {os.waitstatus_to_exitcode(status)}:\n{errors.decode(errors='replace')[-2000:]}")


def clear(folder):
    """Removes what the last runs of a command and of its yardstick made."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(("own", "by-hand", "Own")):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def has(*programs):
    return all(shutil.which(program) for program in programs)


def works(folder, bundle, path):
    """The table: each command, its yardsticks with their goals, and what is made ready before each run."""
    def p(name):
        return os.path.join(folder, name)

    def t(*arguments):
        return [TOOL, *arguments]

    def fresh():
        clear(folder)
        os.mkdir(p("Own"))
        shutil.copyfile(path, p("own.sqlite"))

    first = ["--model", bundle, "--versions", "Bench,Bench 2,Bench 3"]
    database = sqlite3.connect(path)
    lines = database.execute("SELECT sql FROM sqlite_master WHERE name = 'ZARTICLE'").fetchone()[0]
    columns = [c[1] for c in database.execute("PRAGMA table_info(ZARTICLE)")]
    database.close()
    less = re.sub(r",? ?ZIMAGE BLOB", "", lines)
    shorter = rebuild(path, less, ", ".join(c for c in columns if c != "ZIMAGE"))
    changed = {"ZTITLE": "upper(ZTITLE)", "ZSCORE": "ZSCORE * 2.0"}
    mapped = rebuild(path, lines.replace("ZTITLE", "ZHEADLINE").replace(" )", ", ZSUBTITLE VARCHAR )"),
                     ", ".join(changed.get(c, c) for c in columns) + ", substr(ZBODY, 1, 20)")
    for name, sql in (("shorter", shorter), ("mapped", mapped)):
        with open(p(name + ".sql"), "w") as file:
            file.write(sql)
    vacuum = f"""sqlite3 {path} "VACUUM INTO '{p('by-hand')}'" && sqlite3 {p('by-hand')} 'PRAGMA integrity_check'"""
    backup = f"sqlite3 {path} \".backup '{p('by-hand')}'\" && "
    created = ["backup", "create", path, "--home", p("Own")]
    alter = (f"cp {path} {p('by-hand')} && sqlite3 {p('by-hand')} 'ALTER TABLE ZARTICLE ADD COLUMN ZSUBTITLE VARCHAR; "
             "ALTER TABLE ZARTICLE RENAME COLUMN ZTITLE TO ZHEADLINE; PRAGMA quick_check'")
    # Some distributions build the shell without what .recover needs.
    trial = subprocess.run(["sqlite3", ":memory:", ".recover"], capture_output=True, text=True)
    recovers = trial.stdout.startswith("BEGIN") and not trial.stderr
    result = [
        Work("start", t("--version")),
        Work("salvage", t("salvage", path, "--model", os.path.join(bundle, "Bench.xcdatamodel"), "-o", p("own.out")),
             [("`VACUUM INTO`, `integrity_check`", vacuum, 0.45, 6)]
             + ([("`.recover`", f"sqlite3 {path} .recover | sqlite3 {p('by-hand')}", 0.15, 1)] if recovers else []), lambda: clear(folder)),
        Work("salvage --raw", t("salvage", path, "--raw", "-o", p("own.out")),
             [("`VACUUM INTO`, `integrity_check`", vacuum, 0.4, 6)], lambda: clear(folder)),
        Work("inspect --check full", t("inspect", path, *first, "--check", "full"),
             [("`integrity_check`", f"sqlite3 {path} 'PRAGMA integrity_check'", 0.15, 3),
              ("`quick_check`", f"sqlite3 {path} 'PRAGMA quick_check'", 1.2, 10)], accepts=(0, 2)),
        Work("export --level scrubbed", t("export", path, "--level", "scrubbed", "--yes", "-o", p("own.bundle")),
             [("`gzip -1`", f"gzip -1 -c {path}", 2.5, 30)], lambda: clear(folder), accepts=(0, 2)),
        Work("backup create", t(*created), [("`.backup`, `pigz -6`", backup + f"pigz -6 -k {p('by-hand')}", 0.5, 3)] if has("pigz") else [], fresh),
        Work("backup create, zstd", t(*created, "--compression", "zstd"), [("`.backup`, `zstd -3`", backup + f"zstd -q -3 {p('by-hand')}", 0.6, 4.5)], fresh),
        Work("backup restore", t("backup", "restore", "--of", path, "--home", p("Kept"), "--to", p("own.sqlite")),
             [("`gzip -dc`", f"gzip -dc {p('kept.gz')} > {p('by-hand')}", 0.66, 6.5)], lambda: clear(folder)),
        Work("migrate, in place", t("migrate", p("own.sqlite"), *first, "--to", "Bench 2", "--direct", "--on-migration-loss", "migrate", "--home", p("Own")),
             [("copy, `ALTER TABLE`, `quick_check`", alter, 0.7, 7.5)], fresh, (0, 2)),
        Work("migrate, rebuild", t("migrate", p("own.sqlite"), *first, "--to", "Bench 3", "--direct", "--on-migration-loss", "migrate", "--home", p("Own")),
             [("new file by hand, `quick_check`",
               f"sqlite3 {p('by-hand')} < {p('shorter.sql')} && sqlite3 {p('by-hand')} 'PRAGMA quick_check'", 1.0, 7)], fresh, (0, 2)),
        Work("migrate, mapping file", t("migrate", p("own.sqlite"), *first, "--to", "Bench 2", "--mapping", p("mapping.json"), "--home", p("Own")),
             [("new file by hand", f"sqlite3 {p('by-hand')} < {p('mapped.sql')}", 1.5, 5)], fresh, (0, 2)),
    ]
    subprocess.run(f"gzip -6 -c {path} > {p('kept.gz')}", shell=True, check=True)
    lazaret("backup", "create", path, "--home", p("Kept"))
    return result


def many(folder, count):
    """A plain store of many small tables."""
    path = os.path.join(folder, f"tables-{count}.sqlite")
    database = sqlite3.connect(path)
    for number in range(count):
        database.execute(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, name TEXT, size REAL)")
        database.executemany(f"INSERT INTO t{number} VALUES (?, ?, ?)", ((i, f"row {i}", i / 3) for i in range(3)))
    database.commit()
    database.close()
    return path


def harmed(folder, path, share, random_bytes):
    """A copy of a store with a share of its pages overwritten, the first left as it is."""
    copy = os.path.join(folder, f"damaged-{share}-{random_bytes}.sqlite")
    shutil.copyfile(path, copy)
    r = random.Random(share)
    with open(copy, "r+b") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
        for page in range(1, os.path.getsize(copy) // size):
            if r.random() < share / 100:
                file.seek(page * size)
                file.write(r.randbytes(size) if random_bytes else bytes(size))
    return copy


def versioned(folder, count):
    """A model of many versions of five entities; the first forty add an attribute, and all change a type."""
    bundle = os.path.join(folder, f"Versions-{count}.xcdatamodeld")
    for number in range(count):
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">']
        for entity in range(5):
            lines.append(f'<entity name="E{entity}" representedClassName="E{entity}" syncable="YES"><attribute name="name" optional="YES" attributeType="String"/>')
            lines += [f'<attribute name="a{n}" optional="YES" attributeType="String"/>' for n in range(entity, min(number, 5 * 8), 5)]
            # Later versions change the type of one attribute in turn, so that a version's size does not grow with their number.
            lines.append(f'<attribute name="b" optional="YES" attributeType="{("Integer 32", "Double")[(number + entity) // 5 % 2]}"/></entity>')
        version = os.path.join(bundle, f"V{number:03}.xcdatamodel")
        os.makedirs(version)
        with open(os.path.join(version, "contents"), "w") as file:
            file.write("\n".join(lines) + "</model>")
    with open(os.path.join(bundle, ".xccurrentversion"), "wb") as file:
        plistlib.dump({"_XCCurrentVersionName": f"V{count - 1:03}.xcdatamodel"}, file)
    return bundle


def cliffs(folder, path, bundle, rows):
    """Tables of works whose cost a unit should not depend on the damage, nor on the number of tables, nor on that of versions.

    Each is its heading, the units of a cell and their scale, and its columns: a name, the number of units, and what makes its store.
    """
    model = os.path.join(bundle, "Bench.xcdatamodel")

    def commands(*options):
        out, home = os.path.join(folder, "own.out"), os.path.join(folder, "Own")
        return {
            "salvage": ["salvage", None, *options, "-o", out], "salvage --raw": ["salvage", None, "--raw", "-o", out],
            "inspect --check full": ["inspect", None, *options, "--check", "full"], "backup create": ["backup", "create", None, "--home", home],
            "export --level scrubbed": ["export", None, "--level", "scrubbed", "--yes", "-o", out]}

    damage = [("sound", rows, lambda: path)] + [
        (f"{share} % {'noise' if noise else 'zeroed'}", rows, lambda share=share, noise=noise: harmed(folder, path, share, noise))
        for noise in (False, True) for share in (1, 10, 50)]
    yield f"µs a row, MB, with damaged pages, {rows:,} rows", 1e6, damage, commands("--model", model)
    yield "ms a table, MB", 1e3, [(f"{n:,} tables", n, lambda n=n: many(folder, n)) for n in (10, 100, 1000, 5000)], commands()
    yield "ms a version, MB", 1e3, [(f"{n} versions", n, lambda n=n: versioned(folder, n)) for n in (2, 20, 200)], {
        "model verify": ["model", "verify", None, "--rows", "20"]}


def measure(work, reps, least):
    own, theirs = [], [[] for _ in work.yardsticks]
    for _ in range(reps):
        work.before()
        own.append(Run(work.command, work.accepts))
        for number, (_, command, *_) in enumerate(work.yardsticks):
            work.before()
            theirs[number].append(Run(command))
    middle = (lambda runs: min(r.time for r in runs)) if least else (lambda runs: statistics.median(r.time for r in runs))
    return middle(own), max(r.memory for r in own), [middle(runs) for runs in theirs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--only", help="the commands with this word")
    for flag in ("growth", "check", "write"):
        parser.add_argument("--" + flag, action="store_true")
    chosen = parser.parse_args()
    if chosen.write and (chosen.only or chosen.check):
        parser.error("--write writes medians of all commands: give neither --only nor --check with it.")
    if not has("sqlite3"):
        sys.exit("The yardsticks need the sqlite3 command.")
    lines, slow = [], []

    def say(line):
        print(line, flush=True)
        lines.append(line)

    with tempfile.TemporaryDirectory() as folder:
        sizes = [chosen.rows // 100, chosen.rows // 10, chosen.rows] if chosen.growth else [chosen.rows]
        costs = {}
        for rows in sizes:
            place = os.path.join(folder, str(rows))
            os.mkdir(place)
            bundle = model(place)
            path = os.path.join(place, "store.sqlite")
            # A process of its own: the memory of this one would count as that of every command started by it.
            maker = multiprocessing.Process(target=store, args=(path, bundle, rows))
            maker.start()
            maker.join()
            if maker.exitcode != 0:
                sys.exit("The store could not be made.")
            if not chosen.growth:
                say(f"A store of {rows:,} rows, {os.path.getsize(path) / 1e6:.0f} MB, {'fastest' if chosen.check else 'medians'} of {chosen.reps} runs in turn.\n")
                say("| command | time, memory | yardstick | ratio | goal |")
                say("|---|---|---|---|---|")
            for work in works(place, bundle, path):
                if chosen.only and chosen.only not in work.name or chosen.growth and work.name == "start":
                    continue
                own, memory, theirs = measure(work, chosen.reps, chosen.check)
                costs.setdefault(work.name, []).append((own, memory))
                if chosen.growth:
                    continue
                told = f"| `{work.name}` | {own:.3g} s, {memory:.0f} MB |"
                if not theirs:
                    say(told + " | | |")
                for (name, _, goal, limit), their in zip(work.yardsticks, theirs):
                    ratio = own / their
                    say(told + f" {name}: {their:.3g} s | {'**' if ratio > goal else ''}{ratio:.2f}{'**' if ratio > goal else ''} | {goal} |")
                    told = "| | |"
                    if ratio > limit:
                        slow.append(f"{work.name}: {ratio:.2f} of {name}, the limit is {limit}")
        if chosen.growth:
            say("| seconds / µs a row / MB | " + " | ".join(f"{rows:,} rows" for rows in sizes) + " |")
            say("|---" * (len(sizes) + 1) + "|")
            for name, runs in costs.items():
                say(f"| `{name}` | " + " | ".join(
                    f"{own:.3g} / {1e6 * own / rows:.3g} / {memory:.0f}" for (own, memory), rows in zip(runs, sizes)) + " |")
            for heading, scale, columns, commands in cliffs(folder, path, bundle, rows):
                chosen_ones = {name: words for name, words in commands.items() if (chosen.only or name) in name}
                cells = {name: [] for name in chosen_ones}
                for _, units, make in columns if chosen_ones else ():
                    made = make()
                    for name, words in chosen_ones.items():
                        command = [TOOL, *(made if word is None else word for word in words)]
                        work = Work(name, command, before=lambda: (clear(folder), os.mkdir(os.path.join(folder, "Own"))), accepts=range(4))
                        own, memory, _ = measure(work, chosen.reps, chosen.check)
                        cells[name].append(f"{scale * own / units:.3g}, {memory:.0f}")
                if cells:
                    say(f"\n| {heading} | " + " | ".join(name for name, *_ in columns) + " |")
                    say("|---" * (len(columns) + 1) + "|")
                for name, cell in cells.items():
                    say(f"| `{name}` | " + " | ".join(cell) + " |")
    if chosen.write:
        path = os.path.join(ROOT, "Documentation/PERFORMANCE.md")
        with open(path) as file:
            text = file.read()
        mark = "growth" if chosen.growth else "commands"
        pattern = re.compile(f"(<!-- {mark} -->\n).*?(<!-- end -->)", re.S)
        with open(path, "w") as file:
            file.write(pattern.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text))
    if chosen.check and slow:
        sys.exit("Over their limits:\n  " + "\n  ".join(slow))


main()
