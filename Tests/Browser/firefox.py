"""Looks at every kind of the inspector's pages in Firefox, without a window, driven by Marionette.

    firefox.py --lazaret PATH --examples FOLDER --public FOLDER --artifacts FOLDER [--firefox PATH]

The walk in Chromium (inspector.py) does what a person does; this one finds what another browser shows otherwise: a script that fails, a page that
scrolls sideways, a rule of axe's that is broken, a search or a filter that does not answer. A picture of every kind of page is kept.
"""

import argparse
import base64
import pathlib
import re
import sys
import tempfile
import urllib.parse

import axe_playwright_python
from marionette_driver import By, errors
from marionette_driver.keys import Keys
from marionette_driver.marionette import Marionette
from marionette_driver.wait import Wait

from inspector import LINKS, Failures, Inbox, Server, pages, pattern, shot

AXE = next(pathlib.Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()


class Firefox:
    """A browser without a window, and what it writes about scripts."""

    def __init__(self, path, folder):
        self.log = pathlib.Path(folder) / "firefox.log"
        self.driver = Marionette(
            bin=path, headless=True, port=0, gecko_log=str(self.log), workspace=folder,
            prefs={"devtools.console.stdout.content": True, "app.update.enabled": False})
        self.driver.start_session()
        self.driver.timeout.page_load = 30
        self.read = 0

    def complaints(self):
        """What scripts and styles have complained of since the last time."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        new, self.read = text[self.read:], len(text)
        return [line for line in new.splitlines() if re.search(r"console\.(error|warn).*https?:|JavaScript error: https?:|Content-Security-Policy", line)]

    def stop(self):
        self.driver.quit()
        # Its own clean-up, when Python ends, would look for a folder that is gone.
        self.driver.instance = None


def size(driver, width, height):
    """Gives the page, and not the window, a size."""
    driver.set_window_rect(width=width, height=height)
    inner, outer = driver.execute_script("return [window.innerWidth, window.outerWidth]")
    if inner != width:
        driver.set_window_rect(width=width + outer - inner, height=height)


def look(firefox, name, failures, artifacts):
    driver = firefox.driver
    for kind, width in (("wide", 1280), ("narrow", 450)):
        size(driver, width, 900)
        overflow = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if overflow > 1:
            failures.add(name, f"is {overflow} pixels wider than a {kind} window")
        picture = driver.screenshot(full=True)
        (artifacts / f"firefox-{name}-{kind}.png").write_bytes(base64.b64decode(picture))
    size(driver, 1280, 900)
    # In a sandbox of its own, which the page's policy says nothing of.
    violations = driver.execute_async_script(
        AXE + ";const done = arguments[arguments.length - 1];"
        "(window.axe || axe).run(document).then(found => done(found.violations.map("
        "one => one.id + ': ' + one.nodes.slice(0, 2).map(node => node.html.slice(0, 120)).join('; '))), error => done(['axe: ' + error]));",
        script_timeout=60_000)
    for violation in violations:
        failures.add(name, f"axe {violation}")


def crawl(firefox, origin, start, failures, artifacts, limit=60):
    driver, seen, queue = firefox.driver, {}, list(start)
    while queue and len(seen) < limit:
        path = queue.pop(0)
        kind = pattern(urllib.parse.urlsplit(path).path)
        if kind in seen:
            continue
        driver.navigate(origin + path)
        if not driver.execute_script("return !!document.querySelector('main')"):
            failures.add(path, "has no content")
            continue
        seen[kind] = path
        look(firefox, shot(kind), failures, artifacts)
        for complaint in firefox.complaints():
            failures.add(path, complaint.strip()[:300])
        queue += pages(path, driver.execute_script(
            f"return [...document.querySelectorAll('{LINKS}')].map(link => link.getAttribute('href'))"))
    return seen


def use(firefox, origin, seen, failures):
    """The key that focuses the search, a filter, and a query."""
    driver = firefox.driver
    query = next((path for kind, path in seen.items() if kind.endswith("/query")), None)
    if query is None:
        return failures.add("use", "no console was found")
    for path in seen.values():
        driver.navigate(origin + path)
        if driver.find_elements(By.CSS_SELECTOR, "main input[type=search]"):
            break
    else:
        return failures.add("use", "no page with a search was found")
    driver.find_element(By.TAG_NAME, "body").send_keys("/")
    if not driver.execute_script("return document.activeElement.matches('main input[type=search]')"):
        failures.add(path, f"the key / focuses {driver.execute_script('return document.activeElement.outerHTML.slice(0, 200)')}")
    driver.navigate(origin + query)
    field = driver.find_element(By.CSS_SELECTOR, "form.query textarea")
    field.clear()
    field.send_keys("SELECT 6 * 7 AS answer")
    field.send_keys(Keys.CONTROL, Keys.ENTER)
    # The page goes while the answer comes, and its elements with it.
    wait = Wait(driver, timeout=20, ignored_exceptions=[errors.StaleElementException])
    try:
        wait.until(lambda driver: "42" in driver.find_element(By.TAG_NAME, "main").text)
    except errors.MarionetteException as error:
        failures.add("the console", f"does not answer: {type(error).__name__}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("lazaret", "examples", "public", "artifacts"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--firefox", default="/usr/bin/firefox-esr")
    options = parser.parse_args()
    artifacts = pathlib.Path(options.artifacts)
    artifacts.mkdir(parents=True, exist_ok=True)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        inbox = Inbox(options, folder)
        server = Server(options, folder, inbox)
        firefox = Firefox(options.firefox, folder)
        try:
            firefox.driver.navigate(server.link)
            firefox.complaints()
            shown = firefox.driver.find_element(By.PARTIAL_LINK_TEXT, "Truncated.sqlite").get_attribute("href")
            shown = urllib.parse.urlsplit(shown)._replace(scheme="", netloc="").geturl()
            seen = crawl(firefox, server.origin, ["/stores", shown], failures, artifacts)
            use(firefox, server.origin, seen, failures)
        finally:
            firefox.stop()
            server.stop()
            inbox.stop()
    print(f"Firefox: {len(seen)} kinds of pages, {len(failures.all)} failures")
    return 1 if failures.all else 0


if __name__ == "__main__":
    sys.exit(main())
