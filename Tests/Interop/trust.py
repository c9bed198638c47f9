"""`lazaret send` to receivers that are not to be trusted, and with an environment that would give things away: nothing goes out."""

import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
SKIPPED = 77


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def do_PUT(self):
        length = int(self.headers["Content-Length"])
        self.seen.append((self.path, self.headers["Authorization"], len(self.rfile.read(length))))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def certificate(folder, name, subject, *more):
    key, file = os.path.join(folder, f"{name}.key"), os.path.join(folder, f"{name}.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", file, "-subj", "/CN=test",
         "-days", "2", "-addext", f"subjectAltName={subject}", *more],
        check=True, capture_output=True,
    )
    return file, key


def listen(file, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


BUNDLE_OF_SYSTEM = "/etc/ssl/certs/ca-certificates.crt"


def can_trust():
    """Whether a process can be given certificates of its own: in a mount namespace, over those of the system."""
    command = ["unshare", "-m", "mount", "--bind", "/dev/null", BUNDLE_OF_SYSTEM]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0


def send(lazaret, bundle, port, folder, trusting=None):
    command = [
        lazaret, "send", bundle, "--put", "--to", f"https://127.0.0.1:{port}/x", "--home", tempfile.mkdtemp(dir=folder),
        "--yes", "--json",
    ]
    if trusting:
        mount = f'mount --bind "$0" {BUNDLE_OF_SYSTEM} && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mount, trusting] + command
    return subprocess.run(command, capture_output=True, timeout=60, env=dict(os.environ, LAZARET_TOKEN="s3cret"))


def main():
    from bundles import make_bundle

    if not shutil.which("openssl"):
        print("SKIPPED: there is no openssl")
        sys.exit(SKIPPED)
    lazaret = os.environ["LAZARET"]
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, "bundle.lazaret.tar.gz")
        make_bundle(bundle, 5000, 1)
        good = certificate(folder, "good", "IP:127.0.0.1")
        other = certificate(folder, "other", "DNS:support.example.com")
        cases = [("signed by no authority", good, None)]
        if can_trust():
            cases += [("for another host", other, other[0]), ("signed by another", good, other[0])]
        for name, pair, trusting in cases:
            result = send(lazaret, bundle, listen(*pair), folder, trusting)
            assert result.returncode == 1, (name, result)
            code = json.loads(result.stderr)["error"]["code"]
            assert code == "send-untrusted", (name, code)
            assert not Receiver.seen, (name, Receiver.seen)
            print(f"  a certificate {name}: refused, nothing went out")
        refused = subprocess.run(
            [lazaret, "send", bundle, "--put", "--to", "http://127.0.0.1:9/x", "--home", tempfile.mkdtemp(dir=folder), "--yes",
             "--json"],
            capture_output=True, timeout=60, env=dict(os.environ, http_proxy="http://127.0.0.1:9"),
        )
        assert json.loads(refused.stderr)["error"]["code"] == "send-request", refused
        print("  plain http through a proxy of the environment: refused")
        home = tempfile.mkdtemp(dir=folder)
        for address in ("https://one.invalid/x", "https://two.invalid/x"):
            subprocess.run(
                [lazaret, "send", bundle, "--to", address, "--home", home, "--yes", "--no-send"], check=True, capture_output=True)
        refused = subprocess.run(
            [lazaret, "outbox", "send", "--home", home, "--json"],
            capture_output=True, timeout=60, env=dict(os.environ, LAZARET_TOKEN="s3cret"),
        )
        assert json.loads(refused.stderr)["error"]["code"] == "send-request", refused
        print("  one token of the environment for two receivers: refused")
        if len(cases) == 1:
            print("  SKIPPED: no process can be made to trust another certificate here")
            return
        result = send(lazaret, bundle, listen(*good), folder, good[0])
        assert result.returncode == 0, result
        assert [seen[:2] for seen in Receiver.seen] == [("/x", "Bearer s3cret")]
        print("  a certificate that is trusted: sent")


if __name__ == "__main__":
    main()
