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


class Server:
    """`lazaret serve` over the demonstration's stores, at any free port."""

    def __init__(self, options, folder):
        self.folder = folder
        run = subprocess.run(
            [options.lazaret, "demo", "--folder", folder, "--examples", options.examples, "--no-browser"],
            capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            raise SystemExit(f"the demonstration failed: {run.stderr}")
        self.home = str(next(path for path in pathlib.Path(folder).iterdir() if path.is_dir()))
        model = str(pathlib.Path(options.examples) / "Garage.xcdatamodeld")
        self.process = subprocess.Popen(
            [options.lazaret, "serve", "--home", self.home, "--model", model, "--port", "0", "--no-browser", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"LAZARET_PUBLIC": options.public, "PATH": "/usr/bin:/bin"})
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the server did not start: {self.process.stderr.read()}")
        self.link = json.loads(line)["url"]
        parts = urllib.parse.urlsplit(self.link)
        self.origin = f"{parts.scheme}://{parts.netloc}"

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
    path = re.sub(r"/entities/[^/]+", "/entities/*", path)
    path = re.sub(r"/(records|pages|frames|work|models|versions|attributes|values|tables)/[^/]+", r"/\1/*", path)
    return path


class Visit:
    """A browser that reports what its pages do."""

    def __init__(self, browser, server, failures, artifacts):
        self.server, self.failures, self.artifacts = server, failures, artifacts
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
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


def crawl(visit, start, limit=60):
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


def walk(visit):
    """The way of a person whose store broke."""
    page = visit.page
    visit.go("/stores")
    page.get_by_role("link", name="Truncated.sqlite").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Truncated")
    expect(page.locator("body")).to_contain_text(re.compile("recovered", re.I))
    # The map: as a picture that a keyboard can walk over.
    page.get_by_role("link", name=re.compile("map", re.I)).first.click()
    drawing = page.locator("canvas, svg[role=img], [data-page-map], [data-pages]").first
    expect(drawing).to_be_visible()
    page.go_back()
    # What is lost, in words.
    page.get_by_role("link", name=re.compile("lose|lost", re.I)).first.click()
    expect(page.locator("main")).to_contain_text(re.compile("lost", re.I))

    # Records of a store that was salvaged, a filter, a record, a relationship, its bytes.
    visit.go("/stores")
    page.get_by_role("link", name="Overwritten.sqlite").first.click()
    store = urllib.parse.urlsplit(page.url).path
    visit.go(store + "/salvaged/entities")
    page.locator("main a[href*='/entities/']").filter(has_text=re.compile("Car")).first.click()
    expect(page.locator("table").first).to_be_visible()
    listing = urllib.parse.urlsplit(page.url).path
    rows = page.locator("table tbody tr").count()
    if rows == 0:
        visit.failures.add(listing, "shows no record")
    page.locator("table tbody tr a[href*='/records/'], table tbody tr a").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    related = page.locator("main a[href*='/records/']")
    if related.count() == 0:
        visit.failures.add(page.url, "a car leads to no other record")
    else:
        related.first.click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()

    # The original, as far as it can be read, and the very bytes of a record.
    visit.go(store + "/original/entities")
    page.wait_for_url(re.compile("entities"))
    link = page.locator("main a[href*='/entities/']").filter(has_text=re.compile("Car")).first
    expect(link).to_be_visible(timeout=30_000)
    link.click()
    page.locator("table tbody tr a").first.click()
    page.locator("main a[href*='/pages/']").first.click()
    expect(page.locator("main")).to_contain_text(re.compile("cell", re.I))

    # What is filtered, as a file.
    answer = visit.context.request.get(visit.server.origin + listing + ".csv")
    if answer.status != 200 or "text/csv" not in answer.headers.get("content-type", "") or answer.text().count("\n") <= rows:
        visit.failures.add(listing + ".csv", f"the table is not to be had as CSV: {answer.status}")


def act(visit):
    """Actions ask before they do anything, are reported, and need the token of the page."""
    page = visit.page
    visit.go("/stores")
    page.get_by_role("link", name="Healthy.sqlite").first.click()
    page.get_by_role("link", name=re.compile("back ?up", re.I)).first.click()
    expect(page.locator("main form")).to_be_visible()
    visit.look("asks-back-up")
    page.locator("main form button[type=submit], main form button:not([type])").last.click()
    expect(page.locator("main")).to_contain_text(re.compile("done|finished|backed up", re.I), timeout=30_000)
    visit.look("work-done")
    for method, path in (("post", "/stores"), ("post", "/work/x/cancel")):
        answer = getattr(visit.context.request, method)(visit.server.origin + path)
        if answer.status < 400:
            visit.failures.add(path, f"{method} without a token answers {answer.status}")
    visit.go("/stores")
    backup = page.locator("a[href*='/stores/b-']")
    expect(backup.first).to_be_visible()
    backup.first.click()
    page.get_by_role("link", name=re.compile("restore", re.I)).first.click()
    expect(page.locator("main form")).to_be_visible()
    expect(page.locator("main")).to_contain_text(re.compile("added|changed|lost|same", re.I), timeout=30_000)
    visit.look("asks-restore")
    page.locator("main form button[type=submit], main form button:not([type])").last.click()
    expect(page.locator("main")).to_contain_text(re.compile("done|finished|restored", re.I), timeout=30_000)


def without_scripts(browser, visit):
    """Reading works with JavaScript off."""
    context = browser.new_context(java_script_enabled=False, storage_state=visit.context.storage_state())
    page = context.new_page()
    for path in ("/stores", "/models", "/work"):
        response = page.goto(visit.server.origin + path)
        if response.status != 200 or not page.locator("main h1").first.is_visible():
            visit.failures.add(path, "cannot be read without JavaScript")
    link = page.goto(visit.server.origin + "/stores") and page.get_by_role("link", name="Truncated.sqlite").first
    link.click()
    page.get_by_role("link", name=re.compile("map", re.I)).first.click()
    if page.locator("main svg, main table").count() == 0:
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
        server = Server(options, folder)
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
            kinds = crawl(visit, ["/stores", shown])
            if before != server.evidence():
                failures.add("evidence", "looking changed it")
            for step in (walk, act):
                try:
                    step(visit)
                except Exception as error:
                    failures.add(step.__name__, f"at {visit.page.url}: {str(error).splitlines()[0]}")
                    visit.page.screenshot(path=str(artifacts / f"failed-{step.__name__}.png"), full_page=True)
            try:
                without_scripts(browser, visit)
            except Exception as error:
                failures.add("without scripts", str(error).splitlines()[0])
            if before != server.evidence():
                failures.add("evidence", "acting changed it")
        finally:
            browser.close()
            server.stop()
    print(f"{len(kinds)} kinds of pages, {visit.shots} pictures in {artifacts}, {len(failures.all)} failures")
    for kind in sorted(kinds):
        print("  ", kind)
    return 1 if failures.all else 0


if __name__ == "__main__":
    sys.exit(main())
