"""Inspect, open, open again, salvage again, back up, prune, restore: one store, and what each step says against the truth.

A part of claims.py.
"""

import json
import re
import shlex
import sqlite3
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from claims_found import Found, as_sqlite_leaves_it, digest
from claims_stores import SUFFIXES, read, write
from claims_told import ALL_RECOVERED, EXITS, HEADLINE, HEADLINE_WITHOUT_SHARE, SCORE, UNDO, Account, numbers, result_of, run
from tool import contents

OWN = ("Z_METADATA", "Z_MODELCACHE", "Z_PRIMARYKEY")

# A sentence on pairs, which no record has.
PAIRS_TOLD = re.compile(r"[^.]*\bpairs? of many-to-many relationships[^.]*\.")
# A sentence on values of another version than the app's, which no column takes.
VALUES_TOLD = re.compile(r"[^.]*\bvalues? that (?:has|have) no column (?:was|were) set aside\.")


class Sequence:
    """All steps at one store.

    verdicts: those that are right; should: `open`, `migrate`, `replace` or `stay`, what opening should do, or several of them.
    """

    def __init__(self, cell, damaged, model, other, verdicts, should, knows_before=False, backs_up=True):
        self.cell, self.claim, self.damaged, self.model, self.other = cell, cell.claim, damaged, model, other
        self.verdicts, self.should, self.knows_before, self.backs_up = verdicts, should, knows_before, backs_up
        self.folder = cell.folder
        self.store, self.home = self.folder / "Stores/App.sqlite", self.folder / "Home"
        self.home.mkdir()
        self.is_plain = damaged.sound.kind == "plain"
        self.total = sum(damaged.total(name) for name in damaged.records)
        self.earlier_backup, self.is_lacking = None, False

    def run(self, *arguments, **more):
        return run(self.folder, *arguments, **more)

    def play(self):
        if self.knows_before:
            self.open_before()
        for suffix in SUFFIXES:
            Path(f"{self.store}{suffix}").unlink(missing_ok=True)
        write(self.store, self.damaged.files)
        self.inspect()
        self.add()
        if self.damaged.is_damaged and self.should == {"replace"} and not self.cell.is_wrong_model:
            self.salvage_evidence()
        text = self.open_text() if self.should != {"open"} and self.should != {"stay"} else None
        told = self.open(text)
        if told is None:
            return
        stored = self.run("quarantine", "list", self.store, "--json").data.get("stores", [])
        self.open_again(told, stored)
        self.salvage_again(stored)
        self.back_up()

    def open_before(self):
        """The store while nothing was wrong with it: a kit is noted, and a backup made."""
        write(self.store, self.damaged.sound.files)
        told = self.run("open", self.store, "--model", self.model, "--home", self.home, "--json")
        self.claim("opens-before", told.code == 0, told, f"exit {told.code}", "the store is sound")
        made = self.run("backup", "create", self.store, "--home", self.home, "--json")
        self.claim("backup-exit", made.code == 0, made, f"exit {made.code}: {made.first_words}", "the store is sound")
        self.earlier_backup = made.data.get("backup", {}).get("id")
        # What comes later has a later time then.
        time.sleep(1.1)

    def copy(self, name):
        """The store in a folder of its own, with a home of its own."""
        place = self.folder / name
        (place / "Home").mkdir(parents=True)
        write(place / "App.sqlite", self.damaged.files)
        return place / "App.sqlite", place / "Home"

    # Looking

    def inspect(self):
        before = contents(self.store.parent)
        told = self.run("inspect", self.store, "--model", self.model, "--json")
        text = self.run("inspect", self.store, "--model", self.model)
        self.claim(
            "inspect-touches-nothing", contents(self.store.parent) == before, text, "files in the folder changed",
            "looking changes nothing")
        self.claim(
            "inspect-verdict", told.verdict in self.verdicts, told, f"verdict {told.verdict}",
            f"{' or '.join(sorted(self.verdicts))} ({self.damaged.why})")
        right = EXITS.get(told.verdict, set())
        for one in (told, text):
            # A log or journal that was not read to its end may have held more.
            right = {2} if "not read to its end" in one.out and told.verdict == "compatible" else right
            self.claim(
                "inspect-exit", one.code in right or told.verdict not in EXITS, one, f"exit {one.code} for {told.verdict}",
                f"{told.verdict} exits with {' or '.join(map(str, sorted(right)))}")
        first = text.out.splitlines()[0] if text.out else ""
        self.claim(
            "inspect-text-verdict", first.endswith(f": {told.verdict}"), text, first[-80:], f"the JSON says {told.verdict}")
        health = told.data.get("health", {})
        notes = [note for note in health.get("notes", []) if note.get("severity") == "damage"]
        if notes and told.verdict in ("compatible", "outdated", "incompatible"):
            self.claim(
                "inspect-contradicts-itself", False, told, f"{told.verdict}, with the damage note {notes[0]['words']!r}",
                "damage that was seen is followed up")
        if self.damaged.is_damaged:
            self.claim(
                "inspect-damaged-exit", told.code != 0 and text.code != 0, text, f"exit {text.code}",
                f"damaged: {self.damaged.why}")
            sound = re.search(r"(?<!in)compatible|Nothing needs to be done|Nothing wrong", text.out)
            self.claim(
                "inspect-says-sound", not sound, text, sound.group(0) if sound else "", f"damaged: {self.damaged.why}")
            self.inspect_facts(told, text)
        elif self.damaged.is_damaged is False:
            self.claim(
                "inspect-sound-called-damaged", not health.get("damaged") or self.damaged.is_drifted, told,
                f"damage: {[note['words'] for note in notes][:2]}", "SQLite finds nothing wrong")
        self.inspect_counts(told)

    def inspect_facts(self, told, text):
        """What a damaged header says is no fact."""
        health, sound = told.data.get("health", {}), self.damaged.sound
        data = self.damaged.files.get("") or b""
        if data[:100] == sound.files[""][:100]:
            return
        pages, size = health.get("pageCount"), health.get("pageSize")
        self.claim(
            "header-as-fact", size in (None, sound.pages.page_size), told, f"pages of {size} bytes",
            f"its pages have {sound.pages.page_size}")
        there = -(-len(data) // sound.pages.page_size)
        logged = len(self.damaged.files.get("-wal") or b"") // sound.pages.page_size
        self.claim(
            "header-as-fact", pages is None or pages <= there + logged, told, f"{pages} pages", f"the file has {there}")
        number = int.from_bytes(sound.files[""][96:100], "big")
        right = f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
        written = re.search(r"written by SQLite ([\d.]+\d)", text.out)
        self.claim(
            "header-as-fact", not written or written.group(1) == right, text, written.group(0) if written else "",
            f"it was written by {right}, and its header is overwritten")

    def inspect_counts(self, told):
        counted = {one["name"]: one.get("rows") for one in told.data.get("entities", [])}
        for name, table in self.damaged.records.items():
            rows = counted.get(name)
            if rows is None:
                continue
            true = {self.damaged.truth.count(table)} | ({self.damaged.also.count(table)} if self.damaged.also else set())
            self.claim("inspect-counts", rows in true, told, f"{rows} records of {name}", f"{sorted(true)}")

    def add(self):
        """`quarantine add` of a copy: whole, and for the reason that the others give."""
        store, home = self.copy("added")
        told = self.run("quarantine", "add", store, "--model", self.model, "--home", home, "--json")
        if told.code == 3 and "unavailable" in self.verdicts:
            return
        if not self.claim("add-exit", told.code == 0, told, f"exit {told.code}: {told.first_words}", "the store is there"):
            return
        self.check_quarantined(told, told.data)
        reason = told.data.get("receipt", {}).get("reason", {})
        if self.damaged.is_damaged and "unavailable" not in self.verdicts:
            # The codes of what a sound store can be.
            other = reason.get("code", "").endswith(("by-request", "-model", "-version", "no-store-but-leftovers"))
            self.claim("add-verdict", not other, told, reason.get("words"), f"damaged: {self.damaged.why}")

    def check_quarantined(self, told, stored):
        """The files in quarantine are those that were there, byte for byte."""
        main = stored.get("store") or ""
        kept = digest(read(main)) if main else {}
        self.claim(
            "quarantined-whole", kept == digest(self.damaged.files), told, f"{len(kept)} files kept, or with other bytes",
            "every file of the store is kept as it was")

    # Opening

    def salvage_evidence(self):
        """`salvage` of the damaged store where it is."""
        before, out = contents(self.store.parent), self.folder / "Out.sqlite"
        option = "--schema" if self.is_plain else "--model"
        told = self.run("salvage", self.store, option, self.model, "-o", out, "--home", self.home, "--json")
        self.claim(
            "salvage-touches-nothing", contents(self.store.parent) == before, told, "files in the folder changed",
            "looking changes nothing")
        if not out.exists():
            self.claim(
                "salvage-finds-nothing", not any(self.damaged.certain.values()), told, f"exit {told.code}: {told.first_words}",
                "records are left")
            return
        text = self.run(
            "salvage", self.store, option, self.model, "-o", self.folder / "Out 2.sqlite", "--home", self.home)
        found = Found(self.damaged, out, f"{out}-set-aside")
        self.check_report(told, told.data, None)
        self.check_salvaged(told, Account(told.data.get("entities", []), self.damaged.records), found)
        self.check_complete(told, told.data.get("complete"), found, text.out)
        self.check_texts(text, Account(told.data.get("entities", []), self.damaged.records))
        for path in self.folder.glob("Out*"):
            path.unlink()

    def open_text(self):
        """What is said to people, at a copy; its quarantine is undone by the command that it names."""
        store, home = self.copy("read")
        told = self.run("open", store, "--model", self.model, "--home", home)
        if self.damaged.is_damaged and "replace" in self.should and "moved into quarantine" not in told.out:
            told = self.run("open", store, "--model", self.model, "--home", home, "--check", "full")
        self.claim("no-score", not SCORE.search(told.words), told, said(SCORE, told.words), "no score is told")
        if "quarantine" not in told.out or told.code == 3:
            return told
        undo = UNDO.search(told.out)
        if self.claim("undo-command", undo, told, "no command that undoes it", "each quarantine ends with the exact command"):
            words = shlex.split(undo.group(0).rstrip(". \n"))[1:]
            undone = self.run(*words)
            back = digest(read(store)) == digest(self.damaged.files)
            self.claim(
                "undo-works", undone.code == 0 and back, undone, f"exit {undone.code}: {undone.first_words}",
                "the store is back byte for byte")
        if self.cell.is_wrong_model and self.damaged.is_damaged is False:
            pattern = rf"\b({self.total:,}|{self.total}) records?\b[^.]*quarantine"
            self.claim(
                "wrong-model-counts", re.search(pattern, told.out), told, "no count of what is in quarantine",
                f"{self.total:,} records are in quarantine")
        return told

    def open(self, text):
        """Opens the store at its place; None where the sequence ends here."""
        before, bytes_before = contents(self.store.parent), digest(read(self.store))
        told = self.run("open", self.store, "--model", self.model, "--home", self.home, "--json")
        verdict = told.verdict
        if told.failure:
            verdict = "unavailable" if told.code == 3 else "none"
        agreed = self.claim(
            "open-verdict", verdict in self.verdicts, told,
            f"verdict {verdict}, exit {told.code} {told.failure.get('detail', '')[:80]}",
            f"{' or '.join(sorted(self.verdicts))} ({self.damaged.why})")
        if not agreed and self.damaged.is_damaged and verdict in ("compatible", "outdated", "none") and "replace" in self.should:
            # What comes after is examined all the same.
            told = self.run("open", self.store, "--model", self.model, "--home", self.home, "--check", "full", "--json")
        quarantined = told.event("quarantine")
        did = "stay" if told.failure else "replace" if quarantined else "migrate" if told.event("migration") else "open"
        if (told.failure or {}).get("code") == "foreign-store":
            # Nothing of the app's, at a path that its home does not know.
            did = "refuse"
        self.claim(
            "open-does", did in self.should, told, f"{did}, exit {told.code}: {told.first_words if told.failure else verdict}",
            f"{' or '.join(sorted(self.should))} ({self.damaged.why})")
        if did in ("stay", "refuse"):
            self.claim("open-exit", told.code in (1, 3), told, f"exit {told.code}", "a store that stays is no success")
            if did == "stay" and "stay" in self.should:
                self.claim("open-exit", told.code == 3, told, f"exit {told.code}", "the store is unavailable: exit 3")
            waits = self.damaged.is_damaged and "quarantine" in told.words
            if waits:
                # That it is newer was in nothing but what was salvaged of it, which waits for a newer app.
                folder = self.store.parent / "Incompatible"
                stores = {re.sub(r"\.sqlite.*", ".sqlite", path.name) for path in folder.glob("*.sqlite*")}
                kept = [digest(read(folder / name)) for name in stores]
                self.claim(
                    "waits-in-quarantine", bytes_before in kept, told, "its bytes are not in quarantine",
                    "the store lies in quarantine byte for byte")
            else:
                self.claim(
                    "stays-as-it-is", contents(self.store.parent) == before, told, "files in the folder changed",
                    "nothing is moved")
            again = self.run("open", self.store, "--model", self.model, "--home", self.home, "--json")
            self.claim(
                "open-again", again.code == told.code and (waits or digest(read(self.store)) == bytes_before), again,
                f"exit {again.code}", f"as the first time: {told.code}")
            if self.damaged.is_damaged is False:
                self.back_up()
            return None
        is_repaired = bool(told.event("repair"))
        if did == "open" and self.damaged.is_damaged is False and "open" in self.should and not is_repaired:
            left = self.store.read_bytes()
            self.claim(
                "open-changes-bytes", left == as_sqlite_leaves_it(self.damaged.files), told, "other bytes than SQLite leaves",
                "opening a sound store changes nothing else")
        if did in ("open", "migrate"):
            self.check_opened(told, did)
            return told
        self.check_quarantined(told, {"store": str(quarantined.get("path", ""))})
        if self.cell.is_wrong_model:
            self.check_set_apart(told)
        else:
            self.check_replaced(told, text)
        return told

    def check_opened(self, told, did):
        """The store was opened or migrated: every record is there, and nothing is said to be wrong."""
        found = Found(self.damaged, self.store)
        if not self.claim(
                "opened-is-sound", not found.problem, told, f"exit {told.code}, {told.verdict}", f"SQLite: {found.problem}"):
            return
        self.check_rows(told, found, None)
        is_repaired, notice = bool(told.event("repair")), told.data.get("notice") or {}
        lacks = is_repaired and (self.has_pairs_without_records() or self.has_lost_tables())
        right = 2 if lacks or "not read to its end" in told.out else 0
        self.claim("open-exit", told.code == right, told, f"exit {told.code}", f"exit {right}")
        key = "lazaret.notice.repaired-with-losses" if lacks else "lazaret.notice.repaired"
        right = notice.get("key") == key if is_repaired else not notice
        self.claim("open-notice", right, told, str(notice)[:80], "what was added is told, and else nothing")
        self.claim(
            "repair-of-drift", not is_repaired or self.damaged.is_drifted, told, "it was repaired", "the store lacks nothing")
        kept = told.event("backup").get("path")
        if did == "migrate" or is_repaired:
            is_kept = kept and digest(read(kept)) == digest(self.damaged.files)
            self.claim(
                "original-kept", is_kept or kept and "-wal" in self.damaged.files, told, f"backup {kept}",
                "the original is kept as it was")

    def has_pairs_without_records(self):
        """Whether the store has pairs of a relationship of which a record is not there."""
        tables = self.damaged.truth.tables
        articles, tags = (tables.get(one, {}) for one in ("ZARTICLE", "ZTAG"))
        pairs = [table for table in tables if table not in OWN and table not in self.damaged.records.values()]
        return any(key[0] not in articles or key[1] not in tags for table in pairs for key in tables[table])

    def has_lost_tables(self):
        """Whether a table is missing that had records."""
        there, before = self.damaged.truth.tables, self.damaged.sound.base.tables
        return any(before.get(table) and table not in there for table in self.damaged.records.values())

    def check_set_apart(self, told):
        """A store of another model: it is in quarantine, nothing of it is called lost, and what is installed is empty."""
        event = told.event("salvage")
        account = Account(event.get("salvage", {}).get("entities", []), self.damaged.records)
        self.claim(
            "wrong-model-lost", account.sums[2] == 0, told, str(account), "nothing of a sound store is lost"
        ) if self.damaged.is_damaged is False else None
        identifier = told.event("quarantine").get("id")
        listed = self.run("quarantine", "list", "--home", self.home)
        share = re.search(r"(\d+)(?:\.\d+)? %", listed.out)
        self.claim("list-share", not share, listed, share.group(0) if share else "", "nothing of it is in the installed store")
        for more in ((), ("--install",)):
            live = digest(read(self.store))
            again = self.run("quarantine", "salvage", identifier, "--model", self.model, "--home", self.home, "--json", *more)
            self.claim(
                "salvage-with-unfit-model", again.code not in (0, 2) and digest(read(self.store)) == live, again,
                f"exit {again.code}: {again.first_words}", "no entity of the model is in the store: it is refused")

    def check_replaced(self, told, text):
        """A damaged store was quarantined and salvaged: rows, numbers and words."""
        event = told.event("salvage").get("salvage", {})
        # What a run before had salvaged is told in the event of its recovery.
        found = Found(self.damaged, self.store, event.get("setAside"))
        account = Account(event.get("entities", []), self.damaged.records)
        if not self.claim("installed-is-sound", not found.problem, told, f"exit {told.code}", f"SQLite: {found.problem}"):
            return
        state = event.get("state")
        if any(self.damaged.certain[table] for table in self.damaged.records.values()):
            self.claim(
                "empty-store-installed", any(found.count(table) for table in self.damaged.records.values()), told,
                f"an empty store was installed: {event.get('failure', {}).get('words', state)}", "records are left")
        if state != "installed":
            notice = told.data.get("notice", {})
            words = told.event("salvage").get("words", "") + notice.get("message", "")
            self.claim(
                "nothing-recovered-told", told.code == 2 and "recovered" not in notice.get("title", ""), told,
                f"exit {told.code}: {words[:100]}", "an empty store took its place: exit 2")
            return
        self.is_lacking = any(found.count(table) < self.damaged.truth.count(table) for table in self.damaged.records.values())
        self.check_rows(told, found, account)
        self.check_identifier(told, found)
        self.check_salvaged(told, account, found)
        self.check_complete(told, event.get("complete"), found, json.dumps(told.data))
        self.check_same_numbers(told, account, event)
        if text:
            self.check_texts(text, account)
        notice = told.data.get("notice", {}).get("message", "")
        words = told.event("salvage").get("words", "")
        self.claim(
            "notice-numbers", not any(one.isdigit() for one in notice), told, notice, "what users read has no numbers")
        self.check_words(told, "words-numbers", words, account)
        if not self.is_plain:
            self.check_pairs(told, words, found)
        if event.get("report") and Path(event["report"]).is_file():
            report = json.loads(Path(event["report"]).read_text())
            self.check_report(told, report, account)
            if not self.is_plain:
                cut = [one for one in report.get("rebuild", {}).get("referencesCut", []) if one.get("property") == "author"]
                counted = sum(one["count"] for one in cut)
                self.claim(
                    "references-cut", counted == found.cut(), told, f"{counted} references of Article.author cut",
                    f"{found.cut()} are")

    def check_identifier(self, told, found):
        """A store keeps its identifier: object URIs, history and mirroring hang on it."""
        if not self.damaged.certain.get("Z_METADATA"):
            return
        (before,), after = self.damaged.truth.tables["Z_METADATA"].values(), found.tables.get("Z_METADATA", {})
        told_now = [one.get("Z_UUID") for one in after.values()]
        self.claim("uuid-stays", told_now == [before["Z_UUID"]], told, f"{told_now}", f"{before['Z_UUID']}")

    def check_rows(self, told, found, account):
        """Every row of which every byte is left is there with its values; every other one is right, or told to be doubtful."""
        for table in self.damaged.truth.tables:
            if table in OWN:
                continue
            missing = found.missing(table)
            if table not in self.damaged.records.values():
                # Pairs of a relationship whose records are both there.
                articles, tags = (found.tables.get(one, {}) for one in ("ZARTICLE", "ZTAG"))
                missing = [key for key in missing if key[0] in articles and key[1] in tags]
            self.claim(
                "rows-missing", not missing, told,
                f"{len(missing)} of {len(self.damaged.certain[table])} rows of {table} are missing, as {missing[:3]}",
                "every byte of them is left")
            wrong = found.wrong(table)
            name = next((name for name, one in self.damaged.records.items() if one == table), None)
            doubtful = account.doubtful.get(name, 0) if account and name else 0
            self.claim(
                "rows-wrong", len(wrong) <= doubtful, told,
                f"{len(wrong)} rows of {table} are not as they were, as {wrong[:3]}, and {doubtful} are told to be doubtful",
                "a value that may be wrong is told")

    def check_salvaged(self, told, account, found):
        """The numbers of a salvage against the rows that are there, and those that there were."""
        for name, table in self.damaged.records.items():
            there, total = found.count(table), self.damaged.total(name)
            recovered, lost = account.recovered.get(name, 0), account.lost.get(name, 0)
            self.claim("recovered-counted", recovered == there, told, f"{recovered} of {name} recovered", f"{there} are there")
            most = total - there
            least = max(0, most - len(found.aside.get(table, [])))
            if total == 0:
                self.claim(
                    "empty-loses-nothing", (recovered, lost, account.doubtful.get(name, 0)) == (0, 0, 0), told,
                    f"{lost} of {name} lost", "it held nothing")
            elif name in account.unknown:
                # It is honest where nothing of the table is left, or what is there is in doubt, and nowhere else; what others refer
                # to is lost at least.
                is_honest = (recovered == 0 and not self.damaged.certain[table]) or account.doubtful.get(name, 0) > 0
                self.claim(
                    "lost-unknown", is_honest and most > 0 and lost <= most, told,
                    f"an unknown number of {name} lost, {recovered} recovered",
                    f"{len(self.damaged.certain[table])} rows of it are whole, {most} are lost")
            elif account.exact.get(name, True):
                self.claim(
                    "lost-counted", least <= lost <= max(most, 0), told, f"{lost} of {name} lost", f"{least} are" if least == most
                    else f"{least} to {most} are")
            else:
                said, so = f"about {lost} of {name} lost", f"{least} to {most} are"
                self.claim("lost-estimated", (lost > 0) == (most > 0), told, said, so)
                # An estimate may be wrong, but not beyond all measure.
                self.claim("lost-estimated-far-off", lost <= 5 * most + 25 and 5 * lost + 25 >= least, told, said, so)
            if self.knows_before and least == most:
                # With a log that may be lost a kit's counts are right of what was noted, and no more is known.
                self.claim(
                    "kit-counts", lost == most, told,
                    f"{'' if account.exact.get(name, True) else 'about '}{lost} of {name} lost", f"{most} are, as the kit tells")
            if self.damaged.bounds_doubt and not self.damaged.may_doubt_columns(table):
                suspects = total - len(self.damaged.certain[table])
                doubtful = account.doubtful.get(name, 0)
                self.claim(
                    "doubtful-without-cause", doubtful <= suspects, told, f"{doubtful} of {name} doubtful",
                    f"all bytes of all but {suspects} are left")

    def check_complete(self, told, complete, found, text):
        """`complete`, its exit code, and the words for it, are said where everything is there and only there."""
        whole = found.is_whole(self.damaged.records) and not found.cut()
        self.claim("complete", whole or not complete, told, "complete", "not everything is there as it was")
        claimed = ALL_RECOVERED.search(text)
        self.claim("all-recovered", whole or not claimed, told, said(ALL_RECOVERED, text), "not everything is there as it was")
        self.claim(
            "salvage-exit", told.code == (0 if complete else 2), told, f"exit {told.code} for complete: {complete}",
            "exit 0 where everything was recovered, else 2")

    def check_same_numbers(self, told, account, event):
        """Event, receipt, list and report say the same."""
        sums = (event.get("recovered"), event.get("doubtful"), event.get("lost"))
        self.claim("sums", sums == account.sums, told, f"{sums}", f"its entities have {account.sums}")
        identifier = told.event("quarantine").get("id")
        shown = self.run("quarantine", "show", identifier, "--home", self.home, "--json")
        listed = self.run("quarantine", "list", "--home", self.home, "--json")
        stores = [one for one in listed.data.get("stores", []) if one.get("id") == identifier]
        for command, receipt in ((shown, shown.data.get("receipt", {})), (listed, (stores or [{}])[0].get("receipt", {}))):
            other = Account(result_of(receipt).get("entities", []), self.damaged.records)
            self.claim("receipt-numbers", other == account, command, str(other), f"the opening said {account}")
        shown = self.run("quarantine", "show", identifier, "--home", self.home)
        listed = self.run("quarantine", "list", "--home", self.home)
        self.check_texts(shown, account)
        self.claim("no-score", not SCORE.search(listed.words), listed, said(SCORE, listed.words), "no score is told")
        share = re.search(r"(\d+)(?:\.\d+)? %", listed.out)
        self.claim(
            "list-share", not share or int(share.group(1)) in shares(account), listed, share.group(0) if share else "",
            f"{account}: {' or '.join(map(str, sorted(shares(account))))} %")

    def check_report(self, told, report, account):
        """The report's sums are those of its entities, and of records only; and the same as told elsewhere."""
        own = Account(report.get("entities", []), self.damaged.records)
        summary = report.get("summary", {})
        sums = tuple(summary.get(name) for name in ("recovered", "doubtful", "lost"))
        counted = [one for one in report.get("entities", []) if self.is_plain or not one.get("table", "").startswith("Z_")]
        right = tuple(sum(one.get(name, 0) for one in counted) for name in ("recovered", "doubtful", "lost"))
        self.claim(
            "report-sums", sums == right, told, f"the report's summary has {sums} recovered, doubtful and lost",
            f"its entities have {right}; Core Data's own tables are no records")
        if account:
            self.claim("report-numbers", own == account, told, f"the report says {own}", f"the opening said {account}")

    def check_texts(self, told, account):
        """The headline, the words for estimates and doubt, and no score."""
        self.claim("no-score", not SCORE.search(told.words), told, said(SCORE, told.words), "no score is told")
        recovered, doubtful, lost = account.sums
        if account.is_whole or recovered + lost == 0:
            return
        right = f"{recovered:,} of {'' if account.is_exact else 'about '}{account.total:,} records (… %)"
        found = HEADLINE.search(told.out)
        if not found and account.total == recovered:
            bare = HEADLINE_WITHOUT_SHARE.search(told.out)
            self.claim("headline", bool(bare) and bare.group(1) == f"{recovered:,}", told, "no such headline", right)
            return
        is_rough = not account.is_exact or ": an unknown number" in told.out
        if self.knows_before and found and not found.group(2):
            # The text is told of a copy that has no kit, of which indexes can count what a kit with a lost log cannot.
            is_rough = False
        holds = bool(found) and (found.group(1), bool(found.group(2)), found.group(3)) == (
            f"{recovered:,}", is_rough, f"{account.total:,}") and (
                is_rough and account.total == recovered if found.group(4) is None
                else int(found.group(4)) in shares(account))
        self.claim("headline", holds, told, found.group(0) if found else "no such headline", right)
        if doubtful:
            self.claim(
                "doubt-has-reason", re.search(r"doubtful,? because", told.out), told, f"{doubtful} doubtful, without a reason",
                "doubtful because …")

    def check_words(self, told, rule, words, account):
        recovered, doubtful, lost = account.sums
        allowed = {recovered, doubtful, lost, account.total, sum(account.aside.values())} | shares(account)
        words = VALUES_TOLD.sub("", PAIRS_TOLD.sub("", words))
        other = numbers(words) - allowed
        needed = {one for one in (recovered, lost, doubtful) if one and not account.is_whole} - numbers(words)
        self.claim(rule, not other and not needed, told, f"{words[:140]!r}", str(account))

    def check_pairs(self, told, words, found):
        """What is told of pairs of relationships, which no record has, against those that are not there."""
        tables = [one for one in self.damaged.truth.tables if one not in OWN and one not in self.damaged.records.values()]
        missing = sum(self.damaged.truth.count(one) - len(found.tables.get(one, {})) for one in tables)
        sentences = PAIRS_TOLD.findall(words)
        # Of "5 of 30 pairs" the first.
        count = sum(int(re.search(r"\d[\d,]*|$", one).group().replace(",", "") or 0) for one in sentences)
        loose = [word for word in ("about", "least", "unknown") if any(word in one.lower() for one in sentences)]
        is_right = True if "about" in loose else count <= missing if loose else count == missing
        self.claim("pairs-numbers", is_right, told, f"{' '.join(sentences)[:140]!r}", f"{missing} pairs are not there")

    # Afterwards

    def open_again(self, first, stored):
        """What was opened is of the app's model now: nothing more is done or told."""
        before = Found(self.damaged, self.store).tables
        told = self.run("open", self.store, "--model", self.model, "--home", self.home, "--json")
        if self.damaged.is_damaged and not first.event("quarantine"):
            return
        again = self.run("quarantine", "list", self.store, "--json").data.get("stores", [])
        right = {"compatible"} | self.verdicts - {"damaged", "incompatible", "outdated"}
        self.claim(
            "open-again", told.verdict in right and told.code == 0, told,
            f"{told.verdict}, exit {told.code} {told.failure.get('detail', '')[:80]}", "compatible, exit 0")
        self.claim(
            "open-again-quarantines", len(again) == len(stored), told, f"{len(again)} in quarantine", f"{len(stored)} before")
        self.claim("open-again-notice", "notice" not in told.data, told, str(told.data.get("notice"))[:80], "it was told already")
        self.claim(
            "open-again-rows", Found(self.damaged, self.store).tables == before, told, "other rows than before",
            "nothing was changed")

    def salvage_again(self, stored):
        """The same evidence gives the same losses; what was made after the event is none."""
        if self.cell.is_wrong_model or not stored or not result_of(stored[0].get("receipt", {})):
            return
        identifier, receipt = stored[0]["id"], stored[0]["receipt"]
        first = Account(result_of(receipt).get("entities", []), self.damaged.records)
        for more in ((), ("--with-backup", "latest"), ("--model", self.other)):
            if "--with-backup" in more:
                if self.earlier_backup or not self.backs_up:
                    continue
                self.run("backup", "create", self.store, "--home", self.home, "--full")
            model = () if "--model" in more else ("--model", self.model)
            told = self.run("quarantine", "salvage", identifier, *model, "--home", self.home, "--json", *more)
            if "--model" in more:
                self.claim(
                    "salvage-with-unfit-model", told.code not in (0, 2), told, f"exit {told.code}: {told.first_words}",
                    "no entity of the model is in the store: it is refused")
                shown = self.run("quarantine", "show", identifier, "--home", self.home, "--json")
                now = Account(result_of(shown.data.get("receipt", {})).get("entities", []), self.damaged.records)
                self.claim(
                    "better-result-replaced", now.sums[0] >= first.sums[0], told, f"the result that the receipt names: {now}",
                    f"the first one: {first}")
                continue
            if more and told.code not in (0, 2):
                # Refused, because the only backup is from after the event: what there is stays as it is.
                shown = self.run("quarantine", "show", identifier, "--home", self.home, "--json")
                now = Account(result_of(shown.data.get("receipt", {})).get("entities", []), self.damaged.records)
                self.claim("refused-changes-nothing", now == first, told, str(now), f"as before: {first}")
                continue
            result = result_of(told.data)
            now = Account(result.get("entities", []), self.damaged.records)
            report = told.data.get("report")
            report = json.loads(Path(report).read_text()) if report and Path(report).is_file() else {}
            kit = report.get("kit", {}).get("date")
            self.claim(
                "kit-of-after-the-event", not kit or kit < receipt["date"], told, f"the kit of {kit} was used",
                f"the event was at {receipt['date']}")
            self.claim("salvage-again-losses", now == first, told, str(now), f"as the first time: {first}")
            name = result.get("name")
            found = Found(self.damaged, Path(stored[0]["store"]).parent / (name if isinstance(name, str) else ""))
            there = sum(found.count(table) for table in self.damaged.records.values())
            self.claim(
                "better-result-replaced", there >= first.sums[0], told, f"the result has {there} records now",
                f"the first had {first.sums[0]}")
            former = Path(stored[0]["store"]).parent / str(result_of(receipt).get("name"))
            self.claim(
                "both-results-stay", now == first or former.exists(), told, f"{former.name} is gone",
                "the results differ, so that both stay")

    def back_up(self):
        """Back up, go on working, back up again, prune, restore: what is restored is what was backed up."""
        if not self.backs_up or Found(self.damaged, self.store).problem:
            return
        made = self.run("backup", "create", self.store, "--home", self.home, "--json")
        self.check_backup(made)
        with sqlite3.connect(self.store) as store:
            if has(store, "items"):
                store.execute("INSERT INTO items (name) VALUES ('made later')")
            else:
                number, name = store.execute(
                    "SELECT max(Z_ENT), Z_NAME FROM Z_PRIMARYKEY WHERE Z_NAME IN ('Tag', 'Planet')").fetchone()
                table = f"Z{(name or '').upper()}"
                if has(store, table):
                    next_key = f"SELECT coalesce(max(Z_PK), 0) + 1, ?, 1 FROM {table}"
                    store.execute(f"INSERT INTO {table} (Z_PK, Z_ENT, Z_OPT) {next_key}", (number,))
        store.close()
        made = self.run("backup", "create", self.store, "--home", self.home, "--full", "--json")
        self.check_backup(made)
        newest = made.data.get("backup", {}).get("id")
        pruned = self.run("backup", "prune", "--of", self.store, "--keep-last", "1", "--home", self.home, "--json")
        self.claim("prune-exit", pruned.code == 0, pruned, f"exit {pruned.code}: {pruned.first_words}", "exit 0")
        listed = self.run("backup", "list", self.store, "--home", self.home, "--json")
        left = {one.get("id"): one for one in listed.data.get("backups", [])}
        self.claim("prune-keeps-newest", newest in left, pruned, f"left are {sorted(left)}", f"{newest} is the newest")
        if self.earlier_backup and self.is_lacking:
            dropped = self.earlier_backup not in left
            self.claim(
                "prune-only-copy", not dropped or "lost" in pruned.words, pruned, f"{self.earlier_backup} was dropped",
                "it alone holds records that were lost since")
        target = self.folder / "Restored.sqlite"
        restored = self.run("backup", "restore", newest or "", "--to", target, "--of", self.store, "--home", self.home, "--json")
        if not self.claim(
                "restore-exit", restored.code == 0 and target.exists(), restored, f"exit {restored.code}: {restored.first_words}",
                "the backup is whole"):
            return
        live, back = Found(self.damaged, self.store), Found(self.damaged, target)
        self.claim(
            "restore-equals", not back.problem and back.tables == live.tables, restored, back.problem or "other rows",
            "the restored store is the one that was backed up")

    def check_backup(self, made):
        # A store that lacks what its metadata names is kept as evidence, whatever its pages are like.
        right = (0, 2) if self.damaged.is_drifted else (0,)
        self.claim("backup-exit", made.code in right, made, f"exit {made.code}: {made.first_words}", "the store is sound")
        backup, found = made.data.get("backup", {}), Found(self.damaged, self.store)
        for one in backup.get("entities", []):
            if one["table"] in found.tables and one.get("rows") is not None:
                self.claim(
                    "backup-counts", one["rows"] == found.count(one["table"]), made, f"{one['rows']} of {one['name']}",
                    f"{found.count(one['table'])} are there")


def has(store, table):
    return bool(store.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone())


def said(pattern, text):
    found = pattern.search(text)
    return text[max(0, found.start() - 30) : found.end() + 20].strip().replace("\n", " ") if found else ""


def shares(account):
    """The share of what was recovered in percent, rounded either way; 100 only where nothing is lost."""
    recovered, total = account.sums[0], account.total
    share = 100 * recovered / total if total else 100
    return {int(share), round(share)} - ({100} if total > recovered else set())
