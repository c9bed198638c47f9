"""The server and its inbox under attack: hostile requests over plain sockets, and hostile bundles; each ends within its limits.

After every case the server answers, its memory stays below 200 MB, and Ctrl-C ends it in good order. Arguments: words of the names of
the cases to try.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import sqlite3
import sys
import tarfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
from inbox import Server, bag, packed, sums
from tool import Tally, lazaret, scenarios

MEMORY = 200 << 20
MIB = 1 << 20


@contextmanager
def serving(folder, check, *options, name="home", **more):
    server = Server(folder / name, *options, **more)
    try:
        yield server
        start = time.monotonic()
        status, _, _ = server.ask("GET", "/public/lazaret.css")
        check(status == 200, f"the server answers with {status} afterwards")
        check(time.monotonic() - start < 2, "the server is slow afterwards")
        check(server.resident() < MEMORY, f"the server took {server.resident() >> 20} MiB")
    finally:
        code = server.stop()
        check(code == 0, f"the server ended with {code}")


def host(server):
    return f"Host: 127.0.0.1:{server.port}\r\n"


def statuses(answer):
    """The status lines of an answer, wherever they are in it."""
    return [int(piece.split(b" ")[1]) for piece in answer.split(b"HTTP/1.")[1:]]


def disk(folder):
    """The bytes of all files below a folder, and how many files and folders there are."""
    size = count = 0
    for path, folders, files in os.walk(folder):
        count += len(folders) + len(files)
        for name in files:
            try:
                size += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                # It has just gone.
                pass
    return size, count


# Requests


def one_request_gets_one_status_line(folder, check):
    with serving(folder, check) as server:
        bad = ["5, 5", "5,5", "+5", "5 5", "-1", "0x5", "", "5;", "99999999999999999999", "5\r\nContent-Length: 5",
               "5\r\nContent-Length: 6", "5\r\nTransfer-Encoding: chunked"]
        for value in bad:
            request = f"POST /inbox HTTP/1.1\r\n{host(server)}Content-Length: {value}\r\n\r\nhello"
            found = statuses(server.raw(request.encode(), 1))
            check(len(found) == 1 and 400 <= found[0] < 500, f"Content-Length {value!r} was answered with {found}")
        for request in ("GET / HTTP/1.1\r\n\r\n", f"GET / HTTP/1.1\r\n{host(server)}{host(server)}\r\n",
                        f"GET / HTTP/1.1\r\n{host(server)}Nonsense\r\n\r\n", f"GET / HTTP/1.1\r\n{host(server)} folded\r\n\r\n",
                        f"GET / HTTP/9.9\r\n{host(server)}\r\n", f"BREW / HTTP/1.1\r\n{host(server)}\r\n"):
            found = statuses(server.raw(request.encode(), 1))
            check(len(found) == 1 and found[0] >= 400, f"{request!r} was answered with {found}")


def a_request_behind_a_refused_one_is_not_read(folder, check):
    with serving(folder, check) as server:
        smuggled = f"GET /public/lazaret.css HTTP/1.1\r\n{host(server)}\r\n"
        for fields in ("Content-Length: 3, 3\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: xchunked\r\n"):
            found = statuses(server.raw(f"POST /inbox HTTP/1.1\r\n{host(server)}{fields}\r\nabc{smuggled}".encode(), 1))
            check(200 not in found and len(found) == 1, f"{fields!r} was answered with {found}")


def idle_sockets_lock_no_other_out(folder, check):
    with serving(folder, check) as server:
        idle = []
        for number in range(700):
            connection = server.connect()
            if number % 2:
                connection.sendall(b"GET / HTTP/1.1\r\nHost:")
            idle.append(connection)
        for _ in range(5):
            start = time.monotonic()
            status, _, _ = server.ask("GET", "/public/lazaret.css", timeout=3)
            check(status == 200 and time.monotonic() - start < 2, f"beside 700 idle sockets the answer is {status}")
        for connection in idle:
            connection.close()


def slow_clients_are_cut_off(folder, check):
    with serving(folder, check) as server:
        silent, slow = server.connect(1), server.connect(1)
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        end = time.monotonic() + 14
        while time.monotonic() < end:
            try:
                slow.sendall(b"a")
            except OSError:
                break
            time.sleep(0.3)
        check(time.monotonic() < end, "a header that never ends was read for 14 seconds")
        silent.settimeout(1)
        try:
            check(silent.recv(1) == b"", "a silent connection was answered")
        except TimeoutError:
            check(False, "a silent connection was kept for 14 seconds")
        except OSError:
            pass


def large_headers_and_targets(folder, check):
    with serving(folder, check) as server:
        for request in (f"GET /{'a' * 100_000} HTTP/1.1\r\n{host(server)}\r\n",
                        f"GET / HTTP/1.1\r\n{host(server)}A: {'b' * 200_000}\r\n\r\n",
                        f"GET / HTTP/1.1\r\n{host(server)}" + "A: b\r\n" * 50_000 + "\r\n",
                        f"GET / HTTP/1.1\r\n{host(server)}Cookie: {'; '.join(f'a{n}=b' for n in range(5000))}\r\n\r\n",
                        f"GET /?{'&'.join(f'q{n}=1' for n in range(4000))} HTTP/1.1\r\n{host(server)}\r\n"):
            found = statuses(server.raw(request.encode(), 2))
            check(len(found) <= 1 and all(one >= 400 for one in found), f"{request[:30]!r} … was answered with {found}")


def bodies_without_end(folder, check):
    with serving(folder, check) as server:
        cookie = server.login()
        head = f"POST /session/end HTTP/1.1\r\n{host(server)}Cookie: {cookie}\r\n"
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        found = statuses(server.raw([f"{head}{form}Transfer-Encoding: chunked\r\n\r\n".encode()] + [chunk] * 300, 2))
        check(200 not in found and 303 not in found, f"20 MB in chunks were answered with {found}")
        found = statuses(server.raw(f"{head}{form}Content-Length: 4000000000\r\n\r\n".encode(), 2))
        check(found == [413], f"a body of 4 GB was answered with {found}")
        extension = b"5;" + b"x" * 100_000 + b"\r\nhello\r\n0\r\n\r\n"
        found = statuses(server.raw(f"{head}{form}Transfer-Encoding: chunked\r\n\r\n".encode() + extension, 2))
        check(200 not in found and len(found) <= 1, f"an extension of 100 kB was answered with {found}")
        parts = b"".join(b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' for _ in range(10_000)) + b"--b--\r\n"
        status, _, _ = server.ask(
            "POST", "/session/end", {"Cookie": cookie, "Content-Type": "multipart/form-data; boundary=b"}, parts)
        check(400 <= status < 500, f"a form of 10,000 parts was answered with {status}")


def paths_lead_nowhere_else(folder, check):
    with serving(folder, check) as server:
        cookie = server.login()
        for path in ("/public/../../../etc/passwd", "/public/%2e%2e/%2e%2e/etc/passwd", "/public/..%2f..%2fetc%2fpasswd",
                     "/public/lazaret.css%00.js", "//etc/passwd", "/inbox/bundles/..%2f..%2frecords.sqlite/download",
                     "/inbox/bundles/00000000-0000-0000-0000-000000000000/download", "http://127.0.0.1:1/", "/stores/q-..-0000/map"):
            status, _, body = server.ask("GET", path, {"Cookie": cookie})
            check(400 <= status < 500 and b"root:" not in body, f"{path} was answered with {status}")


def other_sites_and_other_names(folder, check):
    with serving(folder, check) as server:
        status, _, _ = server.ask("GET", "/inbox", {"Host": "evil.example"})
        check(status == 421, f"another host was answered with {status}")
        cookie = server.login()
        for fields in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}, {}):
            status, _, _ = server.ask("POST", "/session/end", {"Cookie": cookie, **fields})
            check(status == 403, f"a form of {fields} was answered with {status}")
        check(server.ask("GET", "/inbox", {"Cookie": cookie})[0] == 200, "the session ended all the same")


def events_are_few_in_a_session(folder, check):
    with serving(folder, check) as server:
        cookie = server.login()
        streams = []
        for _ in range(40):
            connection = server.connect()
            connection.sendall(f"GET /events HTTP/1.1\r\n{host(server)}Connection: close\r\nCookie: {cookie}\r\n\r\n".encode())
            streams.append(connection)
        time.sleep(1)
        open_ones = 0
        for connection in streams:
            connection.settimeout(0.2)
            found = b""
            try:
                while piece := connection.recv(65536):
                    found += piece
            except TimeoutError:
                open_ones += 1
            except OSError:
                pass
            connection.close()
        check(1 <= open_ones <= 16, f"{open_ones} of 40 streams of events of one session are open")


def sessions_end_and_links_are_used_once(folder, check):
    with serving(folder, check) as server:
        cookie = server.login()
        check(cookie is not None, "the link did not open")
        check(server.ask("GET", server.link)[0] == 403, "the link opened twice")
        check(server.ask("GET", "/open/" + "0" * 64)[0] == 403, "a made-up link was not refused")
        token = json.loads(server.ask("GET", "/session.json", {"Cookie": cookie})[2])["csrf"]
        status, fields, _ = server.ask("POST", "/session/end", {"Cookie": cookie, "X-CSRF-Token": token})
        check(status == 200 and "Max-Age=0" in fields.get("set-cookie", ""), f"logging out was answered with {status}")
        check(server.ask("GET", "/inbox", {"Cookie": cookie})[0] == 401, "the session is good after logging out")


def uploads_lie(folder, check):
    with serving(folder, check, quota="3MiB") as server:
        check(server.ask("POST", "/inbox/uploads", {"Upload-Length": "5"})[0] == 401, "an upload began without a token")
        body = f"POST /inbox/uploads HTTP/1.1\r\n{host(server)}Content-Length: 3000000000\r\nUpload-Length: 3000000000\r\n\r\n"
        check(statuses(server.raw([body.encode()] + [bytes(65536)] * 20, 2)) == [401], "a body without a token was read")
        for length in ("-1", "0", "1e9", "5, 5", "9223372036854775808", "99999999999", str(4 * MIB)):
            status, _, _ = server.ask("POST", "/inbox/uploads", {"Upload-Length": length}, token=server.token)
            check(400 <= status < 500 or status == 507, f"Upload-Length {length} was answered with {status}")
        status, fields, _ = server.ask("POST", "/inbox/uploads", {"Upload-Length": "10"}, token=server.token)
        place, part = fields["location"], {"Content-Type": "application/offset+octet-stream"}
        for offset, content, expected in ((5, b"x", 409), (0, b"x" * 11, 413), (-1, b"x", 400), (0, b"", 204)):
            status, _, _ = server.ask("PATCH", place, {**part, "Upload-Offset": str(offset)}, content, server.token)
            check(status == expected, f"{len(content)} bytes at {offset} were answered with {status}")
        status, _, _ = server.ask(
            "PATCH", place, {**part, "Upload-Offset": "0", "Upload-Checksum": "sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA="}, b"x", server.token)
        check(status == 460, f"a wrong sum was answered with {status}")
        other = server.sender("Other", "1MiB")
        check(server.ask("HEAD", place, token=other)[0] == 404, "another sender sees the upload")
        found = [server.ask("POST", "/inbox/uploads", {"Upload-Length": "10"}, token=server.token)[0] for _ in range(20)]
        check(found.count(201) == 15 and found[-1] == 429, f"twenty more uploads were answered with {found}")


def uploads_that_are_over_are_forgotten(folder, check):
    with serving(folder, check) as server:
        bundle = packed(bag({"note.txt": b"text"}))
        place = server.send(bundle)
        metadata = {"Upload-Length": str(len(bundle)), "Upload-Metadata": "sha256 " + b64(hashlib.sha256(bundle).hexdigest())}
        for _ in range(5):
            _, fields, _ = server.ask("POST", "/inbox/uploads", metadata, token=server.token)
            check(fields.get("upload-offset") == str(len(bundle)), "a file that is here is asked for again")
        for _ in range(20):
            _, fields, _ = server.ask("POST", "/inbox/uploads", {"Upload-Length": "10"}, token=server.token)
            server.ask("DELETE", fields["location"], token=server.token)
    with sqlite3.connect(folder / "home/Inbox/records.sqlite") as records:
        records.execute("UPDATE uploads SET expires = 1 WHERE state <> 'open'")
    records.close()
    with restarted(server, check) as second:
        with sqlite3.connect(folder / "home/Inbox/records.sqlite") as records:
            left = records.execute("SELECT count(*) FROM uploads").fetchone()[0]
        records.close()
        check(left == 0, f"{left} uploads that ended long ago are remembered")
        _, fields, _ = second.ask("POST", "/inbox/uploads", metadata, token=second.token)
        check(fields.get("upload-offset") == str(len(bundle)), "a file that is here is asked for again")
        check(second.ask("GET", fields["location"], token=second.token)[0] == 200, "there is no receipt for it")


# Bundles


def refused(folder, check, bundle, codes, quota="3MiB", most=3 * MIB, files=60):
    """Sends a bundle, which is to be refused with one of the codes; nothing of it stays but what was received."""
    with serving(folder, check, quota=quota) as server:
        cookie = server.login()
        place = server.send(bundle)
        if not check(isinstance(place, str), f"the upload was answered with {place}"):
            return
        peak, start = (0, 0), time.monotonic()
        while time.monotonic() - start < 20:
            peak = max(peak, disk(server.home))
            found = server.bundles(cookie)
            if found and not [job for job in found[0]["jobs"] if job["state"] in ("waiting", "running")]:
                break
            time.sleep(0.05)
        code = (found[0].get("failure") or {}).get("code")
        check(found[0]["state"] == "refused" and code in codes, f"the bundle is {found[0]['state']}, {code}")
    size, count = disk(server.home)
    # The records themselves take some.
    check(size <= most + MIB, f"{size} bytes are there for a quota of {quota}")
    check(count <= files, f"{count} files and folders are there")
    check(not (folder / "escaped").exists() and not (server.home / "escaped").exists(), "something lies outside")


def a_bundle_that_unpacks_to_more_than_the_quota(folder, check):
    refused(folder, check, packed(bag({"zeros": bytes(60 * MIB)})), ["sender-quota"])


def a_bundle_of_noise_that_unpacks_to_more_than_the_quota(folder, check):
    noise = b"".join(hashlib.sha256(str(n).encode()).digest() * 8 for n in range(16_000))
    refused(folder, check, packed(bag({"noise": noise}), level=9), ["sender-quota"])


def a_bundle_of_many_files(folder, check):
    refused(folder, check, packed(bag({f"f{number}": b"" for number in range(20_000)})), ["sender-quota"])


def a_bundle_of_many_folders(folder, check):
    files = {"/".join(f"{number}x{level}" for level in range(40)): b"" for number in range(200)}
    refused(folder, check, packed(bag(files)), ["sender-quota", "archive-name", "archive-too-large"])


def a_bundle_with_an_archive_bomb(folder, check):
    # Zeros within zeros: one that unpacks 1,000 times.
    refused(folder, check, packed(bag({"zeros": bytes(100 * MIB)}), level=9), ["archive-too-large"], quota="4GiB", most=4 * MIB)


def salvaged_stores_count_too(folder, check):
    store = folder / "App.sqlite"
    with sqlite3.connect(store) as made:
        made.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT)")
        made.executemany("INSERT INTO a (t) VALUES (?)", [("y" * 900,) for _ in range(1500)])
    made.close()
    content = store.read_bytes()
    with serving(folder, check, quota="2MiB") as server:
        cookie = server.login()
        check(isinstance(server.send(packed(bag({"store/App.sqlite": content}))), str), "the bundle was not taken")
        found = server.settled(cookie, 1)
        code = (found[0].get("failure") or {}).get("code")
        check(code == "sender-quota", f"the bundle is {found[0]['state']}, {code}")
        used = json.loads(server.ask("GET", "/inbox.json", {"Cookie": cookie})[2])["senders"][0]["used"]
        check(used <= 2 * MIB, f"{used} bytes count of a quota of 2 MiB")
    check(disk(server.home)[0] <= 3 * MIB, f"{disk(server.home)[0]} bytes are there for a quota of 2 MiB")


def what_is_placed_counts(folder, check):
    content = os.urandom(100_000) * 10
    with serving(folder, check, quota="10MiB") as server:
        cookie = server.login()
        bundle = packed(bag({"file": content}))
        server.send(bundle)
        found = server.settled(cookie, 1)
        used = json.loads(server.ask("GET", "/inbox.json", {"Cookie": cookie})[2])["senders"][0]["used"]
        check(found[0]["state"] == "unpacked", f"the bundle is {found[0]['state']}")
        check(len(bundle) + len(content) <= used <= len(bundle) + len(content) + MIB // 8, f"{used} bytes count")


def odd(kind):
    """An archive with an entry that no bundle has."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, content in bag({"a": b"a"}).items():
            entry = tarfile.TarInfo(f"bag/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        entry = tarfile.TarInfo(
            {"up": "bag/../../../../escaped", "root": "/tmp/escaped", "else": "escaped/a", "twice": "bag/data/A"}.get(kind, "bag/data/link"))
        entry.type = {"symlink": tarfile.SYMTYPE, "link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}.get(
            kind, tarfile.REGTYPE)
        if entry.type != tarfile.REGTYPE:
            entry.linkname = "/etc/passwd"
        archive.addfile(entry, io.BytesIO(b""))
    return gzip.compress(plain.getvalue(), mtime=0)


def bundles_with_odd_entries(folder, check):
    kinds = ["up", "root", "else", "twice", "symlink", "link", "device", "pipe"]
    with serving(folder, check) as server:
        cookie = server.login()
        for kind in kinds:
            server.send(odd(kind))
        found = server.settled(cookie, len(kinds))
        for one in found:
            check(one["state"] == "refused", f"a bundle is {one['state']}: {one.get('failure')}")
        check(len(found) == len(kinds), f"{len(found)} of {len(kinds)} bundles are there")
        check(not list(server.home.rglob("escaped")) and not Path("/tmp/escaped").exists(), "something lies outside")


def bundles_that_are_none(folder, check):
    good = bag({"a": b"a"})
    whole = packed(good)
    wrong = {**good, "data/a": b"b"}
    lists = "".join(f"{'0' * 64}  data/f{number}\n" for number in range(100_000)).encode()
    long = {**good, "manifest-sha256.txt": lists}
    files = {
        "noise": os.urandom(5000), "cut": whole[:-20], "no tar": gzip.compress(b"x" * 5000), "empty gzip": gzip.compress(b""),
        "wrong sum": packed(wrong), "a long manifest": packed({**long, "tagmanifest-sha256.txt": sums({"manifest-sha256.txt": lists})}),
        "age": b"age-encryption.org/v1\n-> X25519 " + b"A" * 5000, "half a header": b"\x1f\x8b"}
    with serving(folder, check, "--workers", "2") as server:
        cookie = server.login()
        for content in files.values():
            server.send(content)
        found = server.settled(cookie, len(files))
        for one in found:
            check(one["state"] in ("refused", "encrypted"), f"a bundle is {one['state']}: {one.get('failure')}")
        check(len(found) == len(files), f"{len(found)} of {len(files)} bundles are there")


def workers_cannot_get_out(folder, check):
    told = lazaret("inbox-worker", "--is-trial", folder)
    check(told.code == 0, "the trial failed", told)
    missing, done = told.data.get("missing"), told.data.get("done", {})
    if missing:
        print(f"  this kernel does not give: {', '.join(missing)}")
    if "calls" not in (missing or []):
        for name in ("socket", "socket6", "local", "program"):
            check(done.get(name) is False, f"a worker could do this: {name}")
    if "files" not in (missing or []):
        for name in ("read", "list", "write"):
            check(done.get(name) is False, f"a worker could do this: {name}")
    check(not any(folder.iterdir()), "the worker left a file")
    with serving(folder, check) as server:
        # What it cannot reach it does not need either.
        store = folder / "App.sqlite"
        with sqlite3.connect(store) as made:
            made.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT)")
            made.executemany("INSERT INTO a (t) VALUES (?)", [("y" * 90,) for _ in range(500)])
        made.close()
        cookie = server.login()
        server.send(packed(bag({"store/App.sqlite": store.read_bytes()})))
        found = server.settled(cookie, 1)
        states = {job["kind"]: job["state"] for job in found[0]["jobs"]}
        check(states == {"open": "done", "salvage": "done"}, f"the jobs are {states}: {found[0].get('failure')} {found[0]['jobs']}")


def pages_are_fast_with_ten_thousand_bundles(folder, check):
    store = folder / "App.sqlite"
    with sqlite3.connect(store) as made:
        made.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT)")
        made.execute("INSERT INTO a (t) VALUES ('text')")
    made.close()
    with serving(folder, check) as server:
        cookie = server.login()
        server.send(packed(bag({"store/App.sqlite": store.read_bytes(), **{f"f{n}": b"" for n in range(300)}})))
        first = server.settled(cookie, 1)[0]["id"]
    inbox = server.home / "Inbox"
    records = sqlite3.connect(inbox / "records.sqlite")
    columns = [row[1] for row in records.execute("PRAGMA table_info(bundles)")]
    row = dict(zip(columns, records.execute("SELECT * FROM bundles").fetchone()))
    jobs = records.execute("SELECT kind, state, attempts, not_before, lease_ends, date FROM jobs").fetchall()
    place = str(inbox / "Bundles")
    for number in range(10_000):
        name = str(uuid.UUID(int=number, version=4))
        copy = {**row, "id": name, "sha256": f"{number:064x}", "date": f"2026-11-{number % 20 + 1:02d}T{number % 24:02d}:00:00Z",
                "content": row["content"].replace(first, name)}
        records.execute(
            f"INSERT INTO bundles ({', '.join(copy)}) VALUES ({', '.join('?' * len(copy))})", list(copy.values()))
        for job in jobs:
            records.execute(
                "INSERT INTO jobs (bundle, kind, state, attempts, not_before, lease_ends, date) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name, *job))
        os.makedirs(f"{place}/{name}/Incompatible")
    records.commit()
    records.close()
    start = time.monotonic()
    with restarted(server, check) as second:
        check(time.monotonic() - start < 6, f"the server took {time.monotonic() - start:.1f} s to begin")
        cookie = second.login()
        for path in ("/inbox", "/inbox.json", "/inbox?q=2026", "/inbox?state=quarantined", f"/inbox/bundles/{first}", "/stores"):
            start = time.monotonic()
            status, _, _ = second.ask("GET", path, {"Cookie": cookie})
            took = time.monotonic() - start
            check(status == 200 and took < 1.5, f"{path} took {took:.2f} s, {status}")


@contextmanager
def restarted(server, check):
    """The same home with a new server."""
    again = Server.resume(server)
    try:
        yield again
        check(again.resident() < MEMORY, f"the server took {again.resident() >> 20} MiB")
    finally:
        check(again.stop() == 0, "the server did not end in good order")


def b64(text):
    return base64.b64encode(text.encode()).decode()


Tally().run_all(scenarios(globals()), sys.argv[1:])
