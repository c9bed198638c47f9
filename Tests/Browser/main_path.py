"""The main path through the inspector, as somebody with a broken store goes it, in Chromium without a window.

Fails on: anything that is not there, an error on the console, a request to another host, a violation of axe's rules.
"""

import json
import os
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

browser_path, announcement, pictures = sys.argv[1:4]
os.makedirs(pictures, exist_ok=True)
link = json.load(open(announcement))["url"]
origin = link.split("/open/")[0]
problems = []
visited = {}


def watch(page):
    """Notes everything that a page must not do."""
    page.on("console", lambda m: problems.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: problems.append(f"script: {e}"))
    page.on("request", lambda r: None if r.url.startswith((origin, "blob:")) else problems.append(f"other host: {r.url}"))
    page.on("response", lambda r: problems.append(f"{r.status}: {r.url}") if r.status >= 400 else None)


def note(page, name):
    """Remembers where a page is, for the looks at the end."""
    visited[name] = page.url


def ended(page):
    """Waits until a job has ended, and says what came of it where it did not end well."""
    page.get_by_role("link", name="See what came of it").or_(page.get_by_role("link", name="Back")).first.wait_for(
        timeout=30000)
    assert page.get_by_role("link", name="See what came of it").count() == 1, page.locator("main").inner_text()


def ready(page):
    """Waits until what is being made to be looked at is there."""
    page.wait_for_function("!document.querySelector('[data-reload]')", timeout=20000)


def main_path(page):
    page.goto(link)
    expect(page.get_by_role("heading", name="Stores", exact=True)).to_be_visible()
    note(page, "stores")

    # The broken store, and its map, which answers the keyboard.
    page.get_by_role("link", name="WrongLog.sqlite").first.click()
    expect(page.get_by_role("heading", name="Page map")).to_be_visible()
    note(page, "store")
    canvas = page.locator(".map canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    expect(page.locator(".map-tip")).to_contain_text("Page 2")
    page.get_by_role("link", name="What did I lose?").first.click()
    note(page, "losses")
    page.go_back()

    # What was salvaged: a list, a filter, a record, a relationship.
    page.get_by_role("link", name="Records", exact=True).click()
    ready(page)
    note(page, "entities")
    page.get_by_role("link", name="Car", exact=True).click()
    ready(page)
    note(page, "records")
    rows = page.locator("tbody tr").count()
    assert rows > 10, rows
    page.goto(page.url.split("?")[0] + "?plate__contains=1003")
    ready(page)
    assert 0 < page.locator("tbody tr").count() < rows
    page.locator("tbody tr a").first.click()
    ready(page)
    note(page, "record")
    page.locator("main a[href*='/Owner/records/']").first.click()
    ready(page)
    expect(page.locator("h1")).to_be_visible()

    # The bytes of a page of the original.
    store = visited["store"]
    page.goto(store + "/pages/2")
    expect(page.locator(".hex, pre").first).to_be_visible()
    note(page, "bytes")

    # An export.
    answer = page.request.get(visited["records"].split("?")[0].replace("/records", "/export/csv"))
    assert answer.ok and len(answer.text().splitlines()) > 10, answer.status

    # A salvage by hand, which shows how far it is, and what came of it.
    page.goto(store + "/salvage")
    note(page, "salvage")
    page.get_by_role("button", name="Salvage").click()
    ended(page)
    note(page, "job")

    # A backup, restored with a preview.
    page.goto(origin + "/stores")
    page.locator("section", has_text="Backups").get_by_role("link", name="Healthy.sqlite").last.click()
    note(page, "backup")
    page.get_by_role("link", name="Restore").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    note(page, "restore")
    page.get_by_role("button", name="Restore").click()
    ended(page)
    for name in ("models", "models/Garage", "work", "api", "session"):
        page.goto(f"{origin}/{name}")
        note(page, name.replace("/", "-"))


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    watch(page)
    main_path(page)
    state = context.storage_state()

    axe = Axe()
    for name, address in visited.items():
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)):
            # The checker puts a script into the page, which the page's policy would refuse.
            look = browser.new_context(
                storage_state=state, color_scheme=scheme, viewport={"width": width, "height": 844}, bypass_csp=True)
            page = look.new_page()
            watch(page)
            page.goto(address)
            page.wait_for_timeout(150)
            page.screenshot(path=f"{pictures}/{name}-{scheme}-{width}.png", full_page=True)
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                problems.append(f"{name} is wider than {width} points")
            for violation in axe.run(page).response["violations"]:
                problems.append(f"axe, {name}, {scheme}: {violation['id']}: {violation['nodes'][0]['html'][:120]}")
            look.close()

    # Reading works without scripts.
    still = browser.new_context(storage_state=state, java_script_enabled=False)
    page = still.new_page()
    page.goto(visited["store"])
    assert page.locator(".map-still svg rect").count() > 0
    browser.close()

for problem in sorted(set(problems)):
    print(problem)
print(f"{len(visited)} pages, {len(set(problems))} problems, screenshots in {pictures}")
sys.exit(1 if problems else 0)
