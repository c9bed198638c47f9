"""A server that receives bundles, started and ended by a test, with plain sockets to talk to it."""

import gzip
import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import tarfile
import time
from pathlib import Path

from tool import LAZARET, lazaret


class Server:
    """`lazaret serve --inbox` in a home of its own; `token` is that of a sender with `quota`."""

    def __init__(self, home, *options, quota="1GiB", environment={}, umask=None):
        self.home = Path(home)
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.token = self.sender("Sender", quota, umask)
        self.begin(options, environment, umask)

    @classmethod
    def resume(cls, other, *options):
        """A new server in the home of one that was ended."""
        server = cls.__new__(cls)
        server.home, server.token = other.home, other.token
        server.begin(options, {}, None)
        return server

    def begin(self, options, environment, umask):
        self.errors = open(self.home.parent / f"{self.home.name}.errors", "w+")
        self.process = subprocess.Popen(
            [LAZARET, "serve", "--inbox", "--home", str(self.home), "--port", "0", "--no-browser", "--json", *map(str, options)],
            stdout=subprocess.PIPE, stderr=self.errors, env={**os.environ, **environment},
            preexec_fn=None if umask is None else lambda: os.umask(umask))
        line = json.loads(self.process.stdout.readline())
        self.port, self.link = line["port"], "/" + line["url"].split("/", 3)[3]
        self.peak = 0

    def sender(self, name, quota, umask=None):
        command = [LAZARET, "inbox", "token", "new", name, "--quota", quota, "--home", str(self.home), "--json"]
        made = subprocess.run(
            command, capture_output=True, text=True, preexec_fn=None if umask is None else lambda: os.umask(umask))
        return json.loads(made.stdout)["token"]

    def stop(self):
        """Ends the server as Ctrl-C does; its exit code."""
        self.resident()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def resident(self):
        """The most bytes of memory that the server had so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        self.peak = max(self.peak, int(status.split("VmHWM:")[1].split()[0]) << 10)
        return self.peak

    def connect(self, timeout=5):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def raw(self, data, timeout=5, pause=0):
        """Sends bytes, and reads until the server closes the connection or is silent for `timeout` seconds."""
        with self.connect(timeout) as connection:
            try:
                for piece in data if isinstance(data, list) else [data]:
                    connection.sendall(piece)
                    time.sleep(pause)
            except OSError:
                # The server has had enough; its answer may still be there.
                pass
            return read(connection)

    def ask(self, method, path, fields={}, body=b"", token=None, timeout=20):
        """One request of its own connection: the status, the fields by their names in lower case, and the body."""
        head = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", **fields}
        if token:
            head = {"Authorization": f"Bearer {token}", "Tus-Resumable": "1.0.0", **head}
        if body or method in ("POST", "PATCH"):
            head.setdefault("Content-Length", str(len(body)))
        text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in head.items()) + "\r\n"
        return parsed(self.raw(text.encode() + body, timeout))

    def login(self, link=None):
        """The cookie of a session."""
        status, fields, _ = self.ask("GET", link or self.link)
        return fields["set-cookie"].split(";")[0] if status == 303 or status == 302 else None

    def send(self, bundle, token=None):
        """Sends a bundle in one piece: the address of the upload, or the status where it was not taken."""
        token = token or self.token
        status, fields, _ = self.ask("POST", "/inbox/uploads", {"Upload-Length": str(len(bundle))}, token=token)
        if status != 201:
            return status
        place = fields["location"]
        status, _, _ = self.ask(
            "PATCH", place, {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}, bundle, token)
        return place if status == 204 else status

    def bundles(self, cookie):
        return json.loads(self.ask("GET", "/inbox.json", {"Cookie": cookie})[2])["bundles"]

    def settled(self, cookie, count, seconds=30):
        """The bundles once there are so many, and no job waits or runs."""
        end = time.monotonic() + seconds
        while True:
            found = self.bundles(cookie)
            busy = [job for one in found for job in one["jobs"] if job["state"] in ("waiting", "running")]
            if (len(found) >= count and not busy) or time.monotonic() > end:
                return found
            time.sleep(0.1)


def read(connection):
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
            if len(found) > 8 << 20:
                break
    except OSError:
        pass
    return found


def parsed(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/1.1 ") else 0
    return status, {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}, body


def bag(files, level="full", store="App"):
    """The files of a bundle, by their names below its folder: the payload, and the tag files that go with it."""
    payload = {f"data/{name}": content for name, content in files.items()}
    tags = {
        "bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": f"Lazaret-Bundle-Version: 1\nLazaret-Level: {level}\nLazaret-Store: {store}\n".encode(),
        "manifest-sha256.txt": sums(payload)}
    return {**tags, "tagmanifest-sha256.txt": sums(tags), **payload}


def sums(files):
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()


def packed(files, top="bag", level=6):
    """The files as tar and gzip."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), level, mtime=0)
