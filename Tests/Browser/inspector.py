"""Clicks through the inspector in a real browser: headless Chromium, driven by Playwright, with axe's accessibility rules.

    inspector.py --lazaret PATH --examples FOLDER --public FOLDER --artifacts FOLDER [--chromium PATH]

It makes the demonstration's stores, starts `lazaret serve`, and fails where a page has an error on its console, asks another
host for anything, breaks a rule of axe's, has no JSON twin, or where what a person would do on the way through does not work.
Screenshots of every kind of page, light and dark, wide and narrow, are kept among the artefacts.
"""

import argparse
import contextlib
import hashlib
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error as PlaywrightError, expect, sync_playwright

SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
SCHEMES = ("light", "dark")


class Failures:
    """What went wrong; the run goes on, so that one run tells all of it."""

    def __init__(self):
        self.all = []

    def add(self, where, what):
        text = f"{where}: {what}"
        if text not in self.all:
            self.all.append(text)
            print("FAILED", text, file=sys.stderr, flush=True)


def serve(options, *arguments):
    """Starts `lazaret serve` at any free port; the process, the link and the origin."""
    process = subprocess.Popen(
        [options.lazaret, "serve", *arguments, "--port", "0", "--no-browser", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"LAZARET_PUBLIC": options.public, "PATH": "/usr/bin:/bin"})
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"the server did not start: {process.stderr.read()}")
    link = json.loads(line)["url"]
    parts = urllib.parse.urlsplit(link)
    return process, link, f"{parts.scheme}://{parts.netloc}"


class Inbox:
    """The vendor's side: `lazaret serve --inbox` over a home of its own, with a key and a sender's token."""

    def __init__(self, options, folder):
        home = pathlib.Path(folder) / "vendor"
        home.mkdir()
        run = lambda *arguments: subprocess.run(
            [options.lazaret, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout
        self.key = home / "vendor.key"
        run("key", "new", "-o", str(self.key))
        self.recipient = run("key", "public", str(self.key)).strip()
        self.token = home / "token"
        self.token.write_text(json.loads(run("inbox", "token", "new", "Garage", "--home", str(home), "--json"))["token"])
        model = str(pathlib.Path(options.examples) / "Garage.xcdatamodeld")
        self.process, self.link, self.origin = serve(
            options, "--inbox", "--home", str(home), "--identity", str(self.key), "--model", model)
        self.uploads = self.origin + "/inbox/uploads"

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


class Server:
    """`lazaret serve` over the demonstration's stores, which sends to an inbox."""

    def __init__(self, options, folder, inbox):
        self.folder = folder
        run = subprocess.run(
            [options.lazaret, "demo", "--folder", folder, "--examples", options.examples, "--no-browser"],
            capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            raise SystemExit(f"the demonstration failed: {run.stderr}")
        self.home = str(next(path for path in pathlib.Path(folder).iterdir() if path.is_dir() and path.name != "vendor"))
        model = str(pathlib.Path(options.examples) / "Garage.xcdatamodeld")
        self.process, self.link, self.origin = serve(
            options, "--home", self.home, "--model", model, "--send-to", inbox.uploads, "--token-file", str(inbox.token))

    def evidence(self):
        """The sum of every file in quarantine that is evidence: no receipt, nothing that was salvaged."""
        folder = pathlib.Path(self.home) / "Stores" / "Incompatible"
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(".json") and ".salvaged" not in path.name and "set-aside" not in path.name
        }

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def pattern(path):
    """The kind of page behind an address: stores, entities, records and pages of one kind are one."""
    path = re.sub(r"/stores/([qlb])-[^/]+", r"/stores/\1", path)
    path = re.sub(r"/backup-[^/]+", "/backup", path)
    path = re.sub(r"/compare/[^/]+/[^/]+", "/compare/*/*", path)
    path = re.sub(r"/entities/[^/]+", "/entities/*", path)
    path = re.sub(r"/(bundles|exports|groups|outbox|related)/[^/]+", r"/\1/*", path)
    path = re.sub(r"/(records|pages|frames|work|models|versions|attributes|values|tables)/[^/]+", r"/\1/*", path)
    return path


# What of a page leads on.
LINKS = "main a[href], header a[href]"


def pages(path, links):
    """The addresses of pages among the links of a page: no files, no exports, nothing elsewhere."""
    for link in links:
        target = urllib.parse.urljoin(path, link)
        clean = urllib.parse.urlsplit(target)
        if target.startswith("/") and not clean.path.startswith(("/public/", "/open/")) and not clean.path.endswith(".json"):
            if not re.search(r"\.(csv|gz|sqlite)$|/export|/download|format=", target):
                yield target


def shot(kind):
    """The name of the pictures of a kind of page."""
    return re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-") or "start"


class Visit:
    """A browser that reports what its pages do."""

    def __init__(self, browser, server, failures, artifacts):
        self.server, self.failures, self.artifacts = server, failures, artifacts
        # The checker of rules puts a script into the page, which the page's policy refuses, as it must; a page of its own
        # that heeds the policy sees to that below.
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
        self.page = self.context.new_page()
        self.axe = Axe()
        self.shots = 0
        self.watch(self.page)

    def watch(self, page):
        page.on("console", lambda message: message.type in ("error", "warning") and self.failures.add(page.url, f"console: {message.text}"))
        page.on("pageerror", lambda error: self.failures.add(page.url, f"script: {error}"))
        page.on("request", self.request)

    def request(self, request):
        if not request.url.startswith((self.server.origin, "data:", "blob:", "about:")):
            self.failures.add(self.page.url, f"asks another host: {request.url}")

    def go(self, path):
        try:
            response = self.page.goto(self.server.origin + path, wait_until="load")
        except PlaywrightError as error:
            # A page that notices that its store has changed loads itself again, which takes the place of where it was to go.
            if "net::ERR_ABORTED" not in str(error) and "interrupted by another navigation" not in str(error):
                raise
            self.page.wait_for_load_state("load")
            response = self.page.goto(self.server.origin + path, wait_until="load")
        if response is None or response.status >= 400:
            self.failures.add(path, f"status {response.status if response else 'none'}")
        return response

    def rules(self, where):
        for violation in self.axe.run(self.page).response["violations"]:
            nodes = "; ".join(node["html"][:120] for node in violation["nodes"][:2])
            self.failures.add(where, f"axe {violation['id']} ({violation['impact']}): {nodes}")

    def look(self, name):
        """The page in every size and scheme: rules in each scheme, no sideways scrolling, a picture of each."""
        for scheme in SCHEMES:
            self.page.emulate_media(color_scheme=scheme)
            for size, (width, height) in SIZES.items():
                self.page.set_viewport_size({"width": width, "height": height})
                overflow = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                if overflow > 1:
                    self.failures.add(name, f"is {overflow} pixels wider than a {size} window")
                self.page.screenshot(path=str(self.artifacts / f"{name}-{scheme}-{size}.png"), full_page=True)
                self.shots += 1
            self.rules(f"{name} ({scheme})")
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size({"width": 1280, "height": 900})

    def twin(self, path):
        address = urllib.parse.urlsplit(path)
        twin = address.path + ".json" + ("?" + address.query if address.query else "")
        response = self.context.request.get(self.server.origin + twin)
        if response.status != 200 or "json" not in response.headers.get("content-type", ""):
            self.failures.add(twin, f"the twin answers {response.status} {response.headers.get('content-type')}")
            return None
        return response.json()


def crawl(visit, start, limit=60, prefix=""):
    """One page of each kind that links lead to, looked at in every way; nothing is changed by it."""
    seen, queue, names = set(), list(start), set()
    while queue and len(seen) < limit:
        path = queue.pop(0)
        kind = pattern(urllib.parse.urlsplit(path).path)
        if kind in seen:
            continue
        seen.add(kind)
        response = visit.go(path)
        if response is None or "text/html" not in response.headers.get("content-type", ""):
            continue
        name = prefix + shot(kind)
        if name in names:
            name += f"-{len(names)}"
        names.add(name)
        visit.look(name)
        visit.twin(path)
        queue += pages(path, visit.page.eval_on_selector_all(LINKS, "links => links.map(link => link.getAttribute('href'))"))
    return seen


def ready(page):
    """Waits until what is being made to be looked at is there."""
    page.wait_for_function("!document.querySelector('[data-reload]')", timeout=30_000)


def walk(visit):
    """The way of a person whose store broke: its map, what is lost, its records, their relationships and bytes, a table."""
    page = visit.page
    visit.go("/stores")
    page.get_by_role("link", name="WrongLog.sqlite").first.click()
    expect(page.get_by_role("heading", name="Page map")).to_be_visible()
    store = urllib.parse.urlsplit(page.url).path
    canvas = page.locator(".map canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    expect(page.locator(".map-tip")).to_contain_text("Page 2")
    # The keys of the map leave only the pages of a table, and all of them when they are pressed again.
    key = page.locator(".legend.tables button").first
    key.click()
    expect(key).to_have_attribute("aria-pressed", "true")
    key.click()
    expect(key).to_have_attribute("aria-pressed", "false")
    # What is installed is not offered once more.
    if page.locator("nav[aria-label=Actions] a[href$='/install']").count():
        visit.failures.add(store, "offers to install what is installed")
    expect(page.get_by_role("link", name="The live store")).to_be_visible()
    expect(page.get_by_role("heading", name="History of the store")).to_be_visible()
    page.get_by_role("link", name="What did I lose?").first.click()
    expect(page.locator("main h1")).to_contain_text("lose")
    page.go_back()
    page.get_by_role("link", name="Compare", exact=True).click()
    ready(page)
    page.locator("select[name=second]").select_option("live")
    page.get_by_role("button", name="Compare").click()
    ready(page)
    expect(page.locator("main table").first).to_contain_text("Car")
    visit.look("compare")
    visit.go(store)

    page.get_by_role("link", name="Records", exact=True).click()
    ready(page)
    page.get_by_role("link", name="Car", exact=True).click()
    ready(page)
    listing = urllib.parse.urlsplit(page.url).path
    rows = page.locator("tbody tr").count()
    if rows <= 10:
        visit.failures.add(listing, f"shows {rows} cars of more than a hundred")
    page.goto(visit.server.origin + listing + "?plate__contains=1003")
    ready(page)
    filtered = page.locator("tbody tr").count()
    if not 0 < filtered < rows:
        visit.failures.add(page.url, f"a filter leaves {filtered} of {rows} rows")
    page.locator("tbody tr a").first.click()
    ready(page)
    visit.look("record-of-a-car")
    page.locator("main a[href*='/Owner/records/']").first.click()
    ready(page)
    expect(page.locator("h1")).to_be_visible()

    # The very bytes of a record of the original, and those of a page.
    visit.go(store + "/original/entities/Car/records")
    ready(page)
    page.locator("tbody tr a").first.click()
    ready(page)
    # One click less: the bytes are beside the values, with the names of the properties.
    expect(page.get_by_role("heading", name="Its bytes")).to_be_visible()
    expect(page.locator("table", has_text="Stored as")).to_contain_text("plate")
    visit.look("record-with-its-bytes")
    page.locator("main a[href*='/pages/'], main a[href*='/frames/']").first.click()
    expect(page.locator(".hex, pre").first).to_be_visible()
    visit.look("bytes-of-a-record")

    answer = visit.context.request.get(visit.server.origin + listing.removesuffix("/records") + "/export/csv")
    if not answer.ok or len(answer.text().splitlines()) < rows:
        visit.failures.add(listing, f"cannot be had as a table: {answer.status}")


def query(visit):
    """The records narrowed by several conditions and counted in steps, the keys, and a query in SQL that is run, saved and deleted."""
    page = visit.page
    visit.go("/stores")
    page.get_by_role("link", name="WrongLog.sqlite").first.click()
    page.get_by_role("link", name="Records", exact=True).click()
    ready(page)
    page.get_by_role("link", name="Car", exact=True).click()
    ready(page)
    records = urllib.parse.urlsplit(page.url).path
    page.keyboard.press("/")
    expect(page.locator("main input[type=search]")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    visit.look("keys")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()

    page.get_by_role("button", name="Add a condition").click()
    for number, (column, comparison, value) in enumerate([("plate", "contains", "1"), ("Z_PK", "is at least", "5")], 1):
        line = page.get_by_role("group", name=f"Condition {number}")
        line.locator("select").first.select_option(column)
        line.locator("select").last.select_option(label=comparison)
        line.get_by_label("Value").fill(value)
    page.get_by_role("button", name="Show", exact=True).click()
    ready(page)
    chips = page.get_by_role("list", name="What is shown")
    expect(chips.get_by_role("link")).to_have_count(2)
    visit.look("records-with-conditions")
    chips.get_by_role("link").last.click()
    expect(chips.get_by_role("link")).to_have_count(1)
    page.get_by_role("button", name="Take condition 1 away").click()
    expect(page.get_by_role("list", name="What is shown")).to_have_count(0)
    steps = page.locator(".facets .chips").get_by_role("link", name=re.compile("(by year|by month|in ranges)$"))
    for _ in range(min(3, steps.count())):
        steps.first.click()
        ready(page)
    visit.look("records-counted-in-steps")
    if page.locator(".facets li.step a").count() == 0:
        visit.failures.add(records, "counts no dates and no numbers")
    else:
        page.locator(".facets li.step a").first.click()
        expect(page.get_by_role("list", name="What is shown")).to_be_visible()

    page.get_by_role("link", name="Query", exact=True).click()
    ready(page)
    console = urllib.parse.urlsplit(page.url).path
    visit.look("query-before")
    page.locator("summary", has_text="Car").first.click()
    page.get_by_label("SQL").fill("SELECT plate, count(*) AS n FROM Car\nGROUP BY plate ORDER BY 1")
    page.get_by_label("SQL").press("Control+Enter")
    ready(page)
    rows = page.locator("tbody tr").count()
    if rows < 20:
        visit.failures.add(console, f"shows {rows} rows of a query")
    visit.look("query-result")
    expect(page.get_by_role("status")).to_contain_text("and there are more")
    page.get_by_role("link", name="Next 100").click()
    expect(page.get_by_role("status")).to_contain_text("Rows 101 to")
    page.get_by_label("Save this query as").fill("All plates")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="All plates")).to_be_visible()
    visit.look("query-saved")
    page.get_by_role("button", name="Delete All plates").click()
    expect(page.get_by_role("link", name="All plates")).to_have_count(0)
    for sql, words in [
        ("SELECT colour FROM Cars", "no such table: Cars"), ("DELETE FROM Z_METADATA", "DELETE"), ("PRAGMA page_size", "PRAGMA"),
        ("ATTACH 'other' AS other", "ATTACH"), ("SELECT load_extension('x')", "load_extension"),
    ]:
        visit.go(console + "?sql=" + urllib.parse.quote(sql))
        expect(page.locator(".note.bad")).to_contain_text(words)
    visit.look("query-refused")
    begun = time.monotonic()
    visit.go(console + "?sql=" + urllib.parse.quote(
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"))
    if time.monotonic() - begun > 15:
        visit.failures.add(console, "a query without an end took longer than it may")
    expect(page.locator(".note.bad")).to_contain_text("longer")
    export = console + "/export/json?sql=" + urllib.parse.quote("SELECT plate FROM Car")
    answer = visit.context.request.get(visit.server.origin + export)
    if not answer.ok or len(answer.json()) <= 100:
        visit.failures.add(export, f"cannot be had: {answer.status}")


def act(visit):
    """Actions ask before they do anything, show how far they are, and need the token of the page."""
    page = visit.page
    visit.go("/stores")
    page.get_by_role("link", name="WrongLog.sqlite").first.click()
    store = urllib.parse.urlsplit(page.url).path
    visit.go(store + "/salvage")
    page.get_by_role("button", name="Salvage").click()
    page.get_by_role("link", name="See what came of it").wait_for(timeout=60_000)
    visit.look("work-done")

    visit.go("/stores")
    page.locator("section", has_text="Live stores").get_by_role("link", name="Healthy.sqlite").first.click()
    live = urllib.parse.urlsplit(page.url).path
    visit.go(live + "/backup")
    page.locator("main form button").first.click()
    page.get_by_role("link", name="See what came of it").wait_for(timeout=60_000)
    visit.go("/stores")
    page.locator("section", has_text="Backups").get_by_role("link", name="Healthy.sqlite").last.click()
    visit.look("backup")
    page.get_by_role("link", name="Restore").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    visit.look("asks-restore")
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("link", name="See what came of it").wait_for(timeout=60_000)

    for path in (store + "/discard", store + "/salvage", live + "/backup"):
        answer = visit.context.request.post(visit.server.origin + path)
        if answer.status != 403:
            visit.failures.add(path, f"an action without a token answers {answer.status}")


def evidence(visit, options):
    """A quarantined store whose file has grown since, and one of which only the receipt is left."""
    stores = pathlib.Path(visit.server.home) / "Stores"

    def quarantine(name):
        path = stores / name
        subprocess.run(
            [options.lazaret, "damage", str(stores / "Healthy.sqlite"), "-o", str(path), "--kind", "zero:8", "--seed", "8"],
            capture_output=True, timeout=60, check=True)
        added = subprocess.run(
            [options.lazaret, "quarantine", "add", str(path), "--home", visit.server.home, "--json"],
            capture_output=True, text=True, timeout=60, check=True)
        return pathlib.Path(json.loads(added.stdout)["store"])

    page = visit.page
    with open(quarantine("Grown.sqlite"), "ab") as file:
        file.write(b"more")
    gone = quarantine("Gone.sqlite")
    for path in gone.parent.glob(f"{gone.name}*"):
        path.unlink()
    shutil.rmtree(gone.parent / f".{gone.stem}_SUPPORT", ignore_errors=True)
    visit.go("/stores")
    visit.look("stores-with-changed-evidence")
    page.locator("section", has_text="In quarantine").get_by_role("link", name="Grown.sqlite").first.click()
    ready(page)
    expect(page.locator("main")).to_contain_text("It is no longer what was quarantined")
    visit.look("a-store-with-changed-evidence")
    visit.go("/stores")
    page.locator("section", has_text="In quarantine").get_by_role("link", name="Gone.sqlite").first.click()
    expect(page.locator("main")).to_contain_text("only its receipt is left")
    if page.locator("nav[aria-label=Actions] a").all_inner_texts() != ["Discard …"]:
        visit.failures.add("a store whose files are missing", "offers more than to discard it")
    visit.look("a-store-whose-files-are-missing")
    store = urllib.parse.urlsplit(page.url).path
    visit.twin(store)
    answer = visit.context.request.get(visit.server.origin + store + "/map.json")
    if answer.status != 404 or answer.json().get("code") != "evidence-missing":
        visit.failures.add(store + "/map", f"answers {answer.status}")


def damaged(browser, visit, options):
    """A damaged store that is still in its place: its map, its damage, its salvage, and a tab that was left open meanwhile."""
    page = visit.page
    healthy = pathlib.Path(visit.server.home) / "Stores" / "Healthy.sqlite"
    broken = healthy.with_name("Damaged.sqlite")
    subprocess.run(
        [options.lazaret, "damage", str(healthy), "-o", str(broken), "--kind", "zero:8", "--seed", "7"],
        capture_output=True, timeout=60, check=True)
    visit.go("/stores")
    page.locator("section", has_text="Live stores").get_by_role("link", name="Damaged.sqlite").first.click()
    ready(page)
    store = urllib.parse.urlsplit(page.url).path
    for heading in ("Page map", "Damage by page", "How much is left", "Entities"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    actions = page.locator("nav[aria-label=Actions] a").all_inner_texts()
    if actions[:3] != ["Salvage …", "Quarantine …", "Export …"]:
        visit.failures.add(store, f"offers {actions}")
    if page.locator("nav[aria-label=Actions] a.main").all_inner_texts() != ["Salvage …"]:
        visit.failures.add(store, "does not begin with its salvage")
    if re.search(r"\bZ[A-Z]{2,}", page.locator("main").inner_text()):
        visit.failures.add(store, "calls a table by its name in SQL")
    visit.look("a-damaged-store-in-its-place")
    visit.go(store + "/losses")
    ready(page)
    visit.look("what-a-damaged-store-lost")
    visit.go(store + "/map")
    ready(page)
    visit.look("map-of-a-damaged-store")
    page.goto(visit.server.origin + store + "/repair")
    page.get_by_role("link", name="Salvage …").click()
    visit.look("asks-salvage-in-its-place")

    # Another tab looks at the store, and a third is in the middle of a form, while it is salvaged here.
    left = visit.context.new_page()
    visit.watch(left)
    left.goto(visit.server.origin + store)
    ready(left)
    expect(left.locator("main")).to_contain_text("How much is left")
    typing = visit.context.new_page()
    visit.watch(typing)
    typing.goto(visit.server.origin + store + "/export")
    typing.get_by_label("Encrypt to these keys").fill("age1")
    page.get_by_role("button", name="Salvage").click()
    page.get_by_role("link", name="See what came of it").click(timeout=60_000)
    ready(page)
    visit.look("a-store-that-was-salvaged-in-its-place")
    expect(page.get_by_role("link", name="The live store")).to_be_visible()
    left.bring_to_front()
    expect(left.locator("main")).not_to_contain_text("How much is left", timeout=15_000)
    expect(left.locator("main")).to_contain_text("current model version")
    typing.bring_to_front()
    expect(typing.locator("[data-stale]")).to_be_visible(timeout=15_000)
    if typing.get_by_label("Encrypt to these keys").input_value() != "age1":
        visit.failures.add(store, "a form lost what was typed into it")
    left.close()
    typing.close()
    unseen(visit)


def unseen(visit):
    """A tab that was opened in the background shows what another program wrote before it was first looked at."""
    path = pathlib.Path(visit.server.home) / "Stores" / "Unseen.sqlite"
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO note SELECT i FROM n"
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        store.execute("CREATE TABLE note (text)")
        store.execute(rows, (1234,))
    visit.go("/stores")
    address = visit.page.get_by_role("link", name="Unseen.sqlite").first.get_attribute("href")
    tab = visit.context.new_page()
    visit.watch(tab)
    tab.add_init_script(
        "Object.defineProperty(Document.prototype, 'visibilityState', { get: () => window.isSeen ? 'visible' : 'hidden' });")
    tab.goto(visit.server.origin + address)
    expect(tab.locator("main")).to_contain_text("1,234")
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        store.execute(rows, (3000,))
    tab.evaluate("window.isSeen = true; document.dispatchEvent(new Event('visibilitychange'));")
    expect(tab.locator("main")).to_contain_text("4,234", timeout=15_000)
    tab.close()
    path.unlink()


def repair(visit):
    """A store that lacks something of its own model: what it lacks, what its records contradict, the repair, and the way back."""
    page = visit.page
    visit.go("/stores")
    page.locator("section", has_text="Live stores").get_by_role("link", name="Repairable.sqlite").first.click()
    store = urllib.parse.urlsplit(page.url).path
    expect(page.get_by_role("heading", name="What it lacks of its own model")).to_be_visible()
    expect(page.locator("main")).to_contain_text("1 missing column")
    visit.look("a-repairable-store")
    page.get_by_role("link", name="Check the records").click()
    page.get_by_role("button", name="Check").click()
    page.get_by_role("link", name="See what came of it").click(timeout=60_000)
    expect(page.locator("main")).to_contain_text("References that lead to no record")
    visit.look("records-that-were-checked")
    page.get_by_role("link", name="Repair …").click()
    expect(page.get_by_role("heading", name="What the repair would do", exact=True)).to_be_visible()
    promised = (visit.twin(store + "/repair") or {}).get("preview", {}).get("structure", {}).get("changes", [])
    if not promised:
        visit.failures.add(store + "/repair", "does not say what the repair would do")
    visit.look("asks-repair")
    page.get_by_role("button", name="Repair").click()
    page.get_by_role("link", name="See what came of it").click(timeout=60_000)
    expect(page.get_by_role("heading", name="How to undo it")).to_be_visible()
    done = (visit.twin(store + "/repaired") or {}).get("repair", {}).get("changes")
    if done != promised:
        visit.failures.add(store + "/repaired", f"did {done} in place of {promised}")
    visit.look("repaired")
    verdict = (visit.twin(store) or {}).get("examination", {}).get("verdict")
    if verdict != "compatible":
        visit.failures.add(store, f"is {verdict} after its repair")
    page.get_by_role("link", name="Restore it").click()
    expect(page.get_by_role("button", name="Restore")).to_be_visible()
    answer = visit.context.request.post(visit.server.origin + store + "/repair")
    if answer.status != 403:
        visit.failures.add(store, f"a repair without a token answers {answer.status}")


def support(browser, visit, inbox, failures, artifacts):
    """A bundle is looked at, agreed to, written and sent; the vendor sees it come in, opens it, and finds the store."""
    page = visit.page
    visit.go("/stores")
    page.get_by_role("link", name="WrongLog.sqlite").first.click()
    store = urllib.parse.urlsplit(page.url).path
    visit.go(store + "/export")
    visit.look("asks-export")
    page.get_by_label("Encrypt to these keys").fill(inbox.recipient)
    # The tree of attributes: a search, and one of two boxes of an attribute.
    page.get_by_label("Find an entity or an attribute").fill("maker")
    boxes = page.locator("tr[data-name='vehicle.maker'] input")
    boxes.nth(0).check()
    boxes.nth(1).check()
    if boxes.nth(0).is_checked():
        visit.failures.add(store + "/export", "an attribute both stays and is overwritten")
    boxes.nth(0).check()
    page.get_by_role("button", name="Preview").click()
    # Choosing, preview and agreement are one page: nothing is clicked on the way.
    expect(page.get_by_role("heading", name="Do you agree?")).to_be_visible(timeout=60_000)
    if urllib.parse.urlsplit(page.url).path != store + "/export":
        visit.failures.add(store + "/export", f"leads to {page.url}")
    expect(page.locator("main")).to_contain_text("Vehicle")
    expect(page.locator("main")).to_contain_text("store/WrongLog.sqlite")
    visit.look("what-the-bundle-would-hold")
    page.get_by_role("button", name="Write the bundle").click()
    page.get_by_role("link", name="The bundle", exact=True).click(timeout=60_000)
    digest = page.locator("dl code.wrap").first.inner_text()
    visit.look("a-bundle")
    page.get_by_role("link", name="Send …").click()
    expect(page.locator("main")).to_contain_text(digest)
    visit.look("asks-send")
    page.get_by_role("button", name="Send it").click()
    page.get_by_role("link", name="See what came of it").click(timeout=60_000)
    expect(page.locator("main")).to_contain_text("sent")
    visit.look("a-bundle-that-was-sent")
    visit.go("/bundles")
    visit.look("bundles")
    visit.go(store)
    expect(page.locator(".timeline")).to_contain_text("Sent")

    vendor = Visit(browser, inbox, failures, artifacts)
    vendor.page.goto(inbox.link)
    if vendor.page.url != inbox.origin + "/inbox":
        failures.add("the inbox's link", f"leads to {vendor.page.url}")
    bundle = None
    for _ in range(120):
        listed = vendor.context.request.get(inbox.origin + "/inbox.json").json()
        bundle = next((one for one in listed["bundles"] if one["sha256"] == digest), None)
        if bundle and bundle.get("store"):
            break
        time.sleep(0.5)
    if not bundle or not bundle.get("store"):
        failures.add("the inbox", f"did not open the bundle: {bundle}")
        return
    crawl(vendor, ["/inbox", "/stores"], limit=24, prefix="vendor-")
    visit.shots += vendor.shots
    vendor.context.close()


def strict(browser, visit):
    """The pages work under their own policy: with it heeded, nothing of theirs is refused."""
    context = browser.new_context(storage_state=visit.context.storage_state())
    page = context.new_page()
    visit.watch(page)
    for path in ("/stores", "/models", "/bundles", "/work", "/api"):
        page.goto(visit.server.origin + path)
    page.goto(visit.server.origin + "/stores")
    page.get_by_role("link", name="Truncated.sqlite").first.click()
    expect(page.locator(".map canvas")).to_be_visible()
    context.close()


def without_scripts(browser, visit):
    """Reading works with JavaScript off."""
    context = browser.new_context(java_script_enabled=False, storage_state=visit.context.storage_state())
    page = context.new_page()
    for path in ("/stores", "/models", "/bundles", "/work"):
        response = page.goto(visit.server.origin + path)
        if response.status != 200 or not page.locator("main h1").first.is_visible():
            visit.failures.add(path, "cannot be read without JavaScript")
    page.goto(visit.server.origin + "/stores")
    page.get_by_role("link", name="Truncated.sqlite").first.click()
    if page.locator(".map-still svg rect").count() == 0:
        visit.failures.add("the map", "shows nothing without JavaScript")
    context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("lazaret", "examples", "public", "artifacts"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--short", action="store_true", help="look at each page in one size, and walk the main path's first part")
    options = parser.parse_args()
    artifacts = pathlib.Path(options.artifacts)
    artifacts.mkdir(parents=True, exist_ok=True)
    if options.short:
        SIZES.pop("narrow")
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        inbox = Inbox(options, folder)
        server = Server(options, folder, inbox)
        before = server.evidence()
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        try:
            visit = Visit(browser, server, failures, artifacts)
            visit.page.goto(server.link)
            if visit.page.url != server.origin + "/stores":
                failures.add("the link", f"leads to {visit.page.url}")
            again = browser.new_context().request.get(server.link)
            if again.status < 400:
                failures.add("the link", "is good for more than once")
            # The store with the most to show comes first, so that its pages are those that are looked at.
            visit.go("/stores")
            shown = visit.page.get_by_role("link", name="Truncated.sqlite").first.get_attribute("href")
            strict(browser, visit)
            kinds = crawl(visit, ["/stores", shown])
            if before != server.evidence():
                failures.add("evidence", "looking changed it")
            steps = {
                "walk": lambda: walk(visit), "query": lambda: query(visit), "damaged": lambda: damaged(browser, visit, options), "act": lambda: act(visit), "repair": lambda: repair(visit),
                "support": lambda: support(browser, visit, inbox, failures, artifacts), "evidence": lambda: evidence(visit, options),
            }
            for name, step in list(steps.items())[: 1 if options.short else None]:
                try:
                    step()
                except Exception as error:
                    failures.add(name, f"at {visit.page.url}: {str(error).splitlines()[0]}")
                    visit.page.screenshot(path=str(artifacts / f"failed-{name}.png"), full_page=True)
            try:
                without_scripts(browser, visit)
            except Exception as error:
                failures.add("without scripts", str(error).splitlines()[0])
            # A restore puts the store that it replaces into quarantine; what was there before stays as it was.
            after = server.evidence()
            if any(after.get(path) != digest for path, digest in before.items()):
                failures.add("evidence", "acting changed it")
        finally:
            browser.close()
            server.stop()
            inbox.stop()
    print(f"{len(kinds)} kinds of pages, {visit.shots} pictures in {artifacts}, {len(failures.all)} failures")
    for kind in sorted(kinds):
        print("  ", kind)
    return 1 if failures.all else 0


if __name__ == "__main__":
    sys.exit(main())
