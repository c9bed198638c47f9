"""A tus client that others wrote (tuspy) sends to `lazaret serve --inbox` over a line that is cut at random places.

The environment says where the tool is (LAZARET). Exits with 77 where the client is not to be had.
"""

import gzip
import hashlib
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request

SKIPPED = 77
CUTS = 20

try:
    from tusclient import client
except ImportError:
    print("SKIPPED: tuspy is not there")
    sys.exit(SKIPPED)


class CuttingProxy:
    """Passes bytes on to a port, and cuts the connection after as many as it is told, once for each number."""

    def __init__(self, port, offsets):
        self.port = port
        self.offsets = list(offsets)
        self.passed = 0
        self.cuts = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self.pump, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, False), daemon=True).start()

    def pump(self, source, target, counts):
        try:
            while data := source.recv(16384):
                if counts:
                    with self.lock:
                        room = self.offsets[0] - self.passed if self.offsets else None
                        if room is not None and len(data) > room:
                            target.sendall(data[: max(0, room)])
                            self.offsets.pop(0)
                            self.passed += max(0, room)
                            self.cuts += 1
                            break
                        self.passed += len(data)
                target.sendall(data)
        except OSError:
            pass
        # Closed too: a socket that is only shut down holds up a client that is still sending.
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()


def bag(content):
    """A bundle with facts and a large file."""
    facts = {
        "formatVersion": 1, "level": "facts", "date": "2026-11-21T10:11:12Z", "app": "com.example.Garage",
        "store": "App.sqlite", "verdict": "damaged", "reason": "page-damaged", "pageStates": {"healthy": 9, "damaged": 1},
        "damagedTables": ["Car"], "pageSize": 4096, "bytes": 40960,
        "versions": {"app": "2.3", "library": "1", "operatingSystem": "Test"},
    }
    files = {"data/facts.json": json.dumps(facts).encode(), "data/content": content}
    digest = lambda data: hashlib.sha256(data).hexdigest()
    tags = {
        "bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": b"Lazaret-Bundle-Version: 1\nLazaret-Level: facts\nLazaret-Store: App\n",
        "manifest-sha256.txt": "".join(f"{digest(data)}  {name}\n" for name, data in files.items()).encode(),
    }
    tags["tagmanifest-sha256.txt"] = "".join(f"{digest(data)}  {name}\n" for name, data in tags.items()).encode()
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for name, data in (tags | files).items():
            entry = tarfile.TarInfo("bag/" + name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(output.getvalue(), 1)


def upload(proxy_port, token, path, chunk):
    """Sends a file with tuspy, and goes on where a cut connection ended it."""
    digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
    tus = client.TusClient(
        f"http://127.0.0.1:{proxy_port}/inbox/uploads", headers={"Authorization": f"Bearer {token}"})
    metadata = {"filename": "interop.lazaret.tar.gz", "sha256": digest, "level": "facts"}
    url, rounds = None, 0
    while True:
        rounds += 1
        if rounds > 400:
            raise RuntimeError("the upload has no end")
        try:
            uploader = tus.uploader(
                path, chunk_size=chunk, metadata=metadata, upload_checksum=True, url=url, retries=0)
            if url is None:
                uploader.set_url(uploader.create_url())
                url = uploader.url
                uploader.offset = 0
            else:
                uploader.offset = uploader.get_offset()
            uploader.upload()
            return url, digest, rounds
        except Exception as error:  # Whatever a cut connection looks like to it.
            status = getattr(error, "status_code", None)
            if status in (401, 404, 410, 412, 413, 415, 422):
                raise
            time.sleep(0.05)


def main():
    tool = os.environ.get("LAZARET", "lazaret")
    seed = int(os.environ.get("SEED", "21"))
    size = int(os.environ.get("SIZE", str(24 << 20)))
    print(f"seed {seed}, {size} bytes, {CUTS} cuts")
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bundle")
        with open(path, "wb") as file:
            file.write(bag(random.randbytes(size)))
        length = os.path.getsize(path)
        made = subprocess.run(
            [tool, "inbox", "token", "new", "Interop", "--home", folder, "--json"], capture_output=True, check=True)
        token = json.loads(made.stdout)["token"]
        server = subprocess.Popen(
            [tool, "serve", "--home", folder, "--inbox", "--port", "0", "--no-browser", "--json"],
            stdout=subprocess.PIPE, text=True)
        try:
            port = json.loads(server.stdout.readline())["port"]
            # The proxy has another port than the server, whose name for itself has its own.
            proxy = CuttingProxy(port, sorted(random.sample(range(2000, length), CUTS)))
            rewritten(proxy, port)
            url, digest, rounds = upload(proxy.address, token, path, 4 << 20)
            receipt_of = lambda: json.loads(urllib.request.urlopen(urllib.request.Request(
                url.replace(f":{proxy.address}/", f":{port}/"), headers={"Authorization": f"Bearer {token}"})).read())
            receipt = receipt_of()
            assert receipt["sha256"] == digest, receipt
            assert receipt["bytes"] == length, receipt
            assert proxy.cuts == CUTS, f"only {proxy.cuts} cuts were made"
            kept = os.path.join(folder, "Inbox", "Bundles", receipt["id"], "bundle.lazaret.tar.gz")
            assert hashlib.sha256(open(kept, "rb").read()).hexdigest() == digest
            again, _, _ = upload(proxy.address, token, path, 4 << 20)
            answer = urllib.request.Request(
                again.replace(f":{proxy.address}/", f":{port}/"), headers={"Authorization": f"Bearer {token}"})
            assert json.loads(urllib.request.urlopen(answer).read()) == receipt, "another receipt for the same bundle"
            print(f"arrived whole after {proxy.cuts} cuts, in {rounds} rounds; the same receipt for the same bundle")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        assert server.returncode == 0, server.returncode


def rewritten(proxy, port):
    """Makes the client name the server by its own port, as it would without a proxy between, and not wait for ever."""
    import requests

    send = requests.Session.send

    def named(self, request, **options):
        request.headers["Host"] = f"127.0.0.1:{port}"
        # The client's own default is to wait for ever.
        options["timeout"] = 20
        return send(self, request, **options)

    requests.Session.send = named


if __name__ == "__main__":
    main()
