"""Clicks through the inspector in a real browser: headless Chromium, driven by Playwright, with axe's accessibility rules.

    inspector.py --lazaret PATH --examples FOLDER --public FOLDER --artifacts FOLDER [--chromium PATH]

It makes the demonstration's stores, starts `lazaret serve`, and fails where a page has an error on its console, asks another
host for anything, breaks a rule of axe's, has no JSON twin, or where what a person would do on the way through does not work.
Screenshots of every kind of page, light and dark, wide and narrow, are kept among the artefacts.
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

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
        name = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-") or "start"
        name = prefix + name
        if name in names:
            name += f"-{len(names)}"
        names.add(name)
        visit.look(name)
        visit.twin(path)
        for link in visit.page.eval_on_selector_all("main a[href], header a[href]", "links => links.map(link => link.getAttribute('href'))"):
            target = urllib.parse.urljoin(path, link)
            clean = urllib.parse.urlsplit(target)
            if target.startswith("/") and not clean.path.startswith(("/public/", "/open/")) and not clean.path.endswith(".json"):
                if not re.search(r"\.(csv|gz|sqlite)$|/export|/download|format=", target):
                    queue.append(target)
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
    page.get_by_role("link", name="What did I lose?").first.click()
    expect(page.locator("main h1")).to_contain_text("lose")
    page.go_back()

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
    page.locator("main a[href*='/pages/'], main a[href*='/frames/']").first.click()
    expect(page.locator(".hex, pre").first).to_be_visible()
    visit.look("bytes-of-a-record")

    answer = visit.context.request.get(visit.server.origin + listing.removesuffix("/records") + "/export/csv")
    if not answer.ok or len(answer.text().splitlines()) < rows:
        visit.failures.add(listing, f"cannot be had as a table: {answer.status}")


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
    page.locator("section", has_text="In their place").get_by_role("link", name="Healthy.sqlite").first.click()
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


def repair(visit):
    """A store that lacks something of its own model: what it lacks, what its records contradict, the repair, and the way back."""
    page = visit.page
    visit.go("/stores")
    page.locator("section", has_text="In their place").get_by_role("link", name="Repairable.sqlite").first.click()
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
    page.get_by_role("button", name="Make it ready").click()
    page.get_by_role("link", name="See what came of it").click(timeout=60_000)
    expect(page.get_by_role("heading", name="Do you agree?")).to_be_visible()
    expect(page.locator("main")).to_contain_text("store/WrongLog.sqlite")
    visit.look("what-the-bundle-would-hold")
    page.get_by_role("button", name="Write the bundle").click()
    page.get_by_role("link", name="See what came of it").click(timeout=60_000)
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
    parser.add_argument("--no-pictures", action="store_true", help="look at each page once, in one size")
    options = parser.parse_args()
    artifacts = pathlib.Path(options.artifacts)
    artifacts.mkdir(parents=True, exist_ok=True)
    if options.no_pictures:
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
                "walk": lambda: walk(visit), "act": lambda: act(visit), "repair": lambda: repair(visit),
                "support": lambda: support(browser, visit, inbox, failures, artifacts),
            }
            for name, step in steps.items():
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
