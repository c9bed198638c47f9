"""Measures the inspector's record pages; called by Scripts/bench-inspector with what the server announced."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request

announced = json.loads(sys.argv[1])
parts = urllib.parse.urlsplit(announced["url"])
base = f"{parts.scheme}://{parts.netloc}"


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


opener = urllib.request.build_opener(NoRedirect)
try:
    opener.open(announced["url"])
    sys.exit("the link did not redirect")
except urllib.error.HTTPError as error:
    cookie = error.headers["Set-Cookie"].split(";")[0]


def open_(path):
    return urllib.request.urlopen(urllib.request.Request(base + path, headers={"Cookie": cookie}))


def get(path):
    return open_(path).read()


def memory():
    text = open(f"/proc/{os.environ['SERVER']}/status").read()
    return int(re.search(r"VmHWM:\s+(\d+)", text).group(1)) // 1024


def times(path, count):
    spent = []
    for _ in range(count):
        begun = time.perf_counter()
        get(path)
        spent.append(time.perf_counter() - begun)
    spent.sort()
    return spent


def tell(what, spent):
    print(
        f"{what}: median {spent[len(spent) // 2] * 1000:.1f} ms, 99 % under {spent[len(spent) * 99 // 100] * 1000:.1f} ms"
    )


get("/stores")
print(f"start to first page: {(time.time_ns() - int(os.environ['BEGUN'])) / 1e6:.0f} ms")
stores = json.loads(get("/stores.json"))
live = re.search(r'"(l-[A-Za-z0-9_-]+)"', json.dumps(stores)).group(1)

for side in ["live", "original"]:
    begun = time.perf_counter()
    while True:
        entities = json.loads(get(f"/stores/{live}/{side}/entities.json"))
        if not entities.get("preparing"):
            break
        time.sleep(0.05)
    print(f"\nside {side}: ready after {time.perf_counter() - begun:.2f} s, memory {memory()} MB")
    entity = max(entities["entities"], key=lambda item: item["records"] or 0)
    count = entity["records"]
    path = entity["path"]
    print(f"{entity['name']}: {count} records")
    first = times(path, 300)
    tell("first page", first)
    tell("page in the middle", times(f"{path}?_next=i{count // 2}", 300))
    tell("page near the end", times(f"{path}?_next=i{count - 200}", 300))
    tell("the same as JSON", times(f"{path}.json?_next=i{count - 200}", 300))
    key = json.loads(get(f"{path}.json?_size=1&_next=i{count // 2}"))["rows"][0]["key"]
    tell("one record", times(f"{path}/{key}", 300))
    columns = json.loads(get(f"{path}.json?_size=1"))["columns"]
    text = next(column["name"] for column in columns if column["type"] == "string")
    tell(f"filter {text} contains e, page", times(f"{path}?{text}__contains=e", 50))
    tell(f"filter {text} contains nothing that is there, page", times(f"{path}?{text}__contains=qqqqzz", 10))
    facets = [("_facet_year", "date"), ("_facet_month", "date"), ("_facet_range", "real"), ("_facet_range", "integer")]
    for facet, kind in facets:
        column = next((column["name"] for column in columns if column["type"] == kind), None)
        if column:
            address = f"{path}?{facet}={column}"
            tell(f"{facet} of {column}, counted", times(address, 1))
            tell(f"{facet} of {column}, again", times(address, 300))
    console = f"/stores/{live}/{side}/query"
    for sql, count in [
        (f"SELECT * FROM {entity['name']}", 300), (f"SELECT count(*) FROM {entity['name']}", 20),
        (f"SELECT {text}, count(*) FROM {entity['name']} GROUP BY 1 ORDER BY 2 DESC", 3),
    ]:
        tell(f"query {sql}", times(f"{console}?sql={urllib.parse.quote(sql)}", count))
    export = path.rsplit("/", 1)[0] + "/export/csv"
    begun = time.perf_counter()
    stream = open_(f"{export}?{text}__contains=e")
    stream.read(1)
    stream.readline()
    stream.readline()
    head = time.perf_counter() - begun
    size = sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))
    print(
        f"export of a filter: first row after {head * 1000:.1f} ms, {size / 1e6:.0f} MB in {time.perf_counter() - begun:.1f} s"
    )
    for threads, connections in [(1, 1), (2, 32)]:
        result = subprocess.run(
            ["wrk", "-t", str(threads), "-c", str(connections), "-d", "8s", "--latency", "-H", f"Cookie: {cookie}", base + path],
            capture_output=True, text=True, check=True,
        ).stdout
        rate = re.search(r"Requests/sec:\s+([\d.]+)", result).group(1)
        worst = re.search(r"99%\s+(\S+)", result).group(1)
        print(f"wrk, {connections} connections: {rate} requests/s, 99 % under {worst}")
        if "Non-2xx" in result:
            print("  some were refused")
    print(f"memory: {memory()} MB at most")
