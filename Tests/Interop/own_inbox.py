"""`lazaret send` against `lazaret serve --inbox`, over a line that is cut at twenty random places.

The bundle must arrive whole and the receipt must be the receiver's own, the same when another home sends the same bundle again. With
--bytes N it sends a bundle of N bytes over an undisturbed line instead, and tells the time and the memory of both sides.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
SKIPPED = 77


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def send(lazaret, bundle, port, home, token, host="127.0.0.1"):
    process = await asyncio.create_subprocess_exec(
        lazaret, "send", bundle, "--to", f"http://{host}:{port}/inbox/uploads", "--home", home, "--yes", "--wait", "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=dict(os.environ, LAZARET_TOKEN=token),
    )
    output, errors = await asyncio.wait_for(process.communicate(), 600)
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


async def cut(lazaret, folder, port, host, token, seed, size, count):
    from bundles import make_bundle
    from proxy import CuttingProxy

    bundle = os.path.join(folder, f"bundle-{seed}.lazaret.tar.gz")
    sum = make_bundle(bundle, size, seed)
    source = random.Random(seed)
    proxy = CuttingProxy(port, [(source.randrange(200, size), source.random() < 0.25) for _ in range(count)])
    await proxy.start(host, port)
    start = time.monotonic()
    result = await send(lazaret, bundle, port, os.path.join(folder, f"home-{seed}"), token, host)
    seconds = time.monotonic() - start
    await proxy.stop()
    receipt = result["receipt"]
    assert proxy.made == count, f"only {proxy.made} of {count} cuts were made"
    assert receipt["byReceiver"] and not result["alreadyThere"], result
    assert receipt["sha256"] == sum and receipt["bytes"] == os.path.getsize(bundle)
    again = await send(lazaret, bundle, port, os.path.join(folder, f"other-{seed}"), token)
    assert again["alreadyThere"] and again["receipt"]["id"] == receipt["id"], again
    besides = proxy.sent - os.path.getsize(bundle)
    print(f"  seed {seed}: {size} bytes whole after {count} cuts in {seconds:.1f} s; {besides} bytes besides")


async def refused(lazaret, folder, port):
    from bundles import make_bundle

    bundle = os.path.join(folder, "refused.lazaret.tar.gz")
    make_bundle(bundle, 1000, 1)
    result = subprocess.run(
        [lazaret, "send", bundle, "--to", f"http://127.0.0.1:{port}/inbox/uploads", "--home", os.path.join(folder, "none"),
         "--yes", "--json"],
        capture_output=True, env=dict(os.environ, LAZARET_TOKEN="nobody"), timeout=60,
    )
    assert json.loads(result.stderr)["error"]["code"] == "send-unauthorized", result
    print("  an unknown token: refused")


async def measure(lazaret, folder, port, token, size, server):
    from bundles import make_bundle

    bundle = os.path.join(folder, "large.lazaret.tar.gz")
    make_bundle(bundle, size, 1)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    start = time.monotonic()
    result = await send(lazaret, bundle, port, os.path.join(folder, "sender"), token)
    seconds = time.monotonic() - start
    assert result["receipt"]["byReceiver"]
    memory = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
    print(f"  {size} bytes in {seconds:.1f} s, {size / seconds / 1e6:.0f} MB/s, at most {memory:.0f} MB of memory to send")
    status = Path(f"/proc/{server.pid}/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        print(f"  at most {int(peak.split()[1]) / 1024:.0f} MB of memory to receive")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--size", type=int, default=12 << 20)
    parser.add_argument("--bytes", type=int)
    options = parser.parse_args()
    lazaret = os.environ["LAZARET"]
    receiver = os.environ.get("LAZARET_INBOX", lazaret)
    help = subprocess.run([receiver, "serve", "--help"], capture_output=True, text=True).stdout
    if "--inbox" not in help:
        print("SKIPPED: this lazaret receives no bundles")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "home")
        os.mkdir(home)
        words = subprocess.run(
            [receiver, "inbox", "token", "new", "interop", "--home", home, "--json"], capture_output=True, text=True, check=True)
        token = json.loads(words.stdout)["token"]
        port = free_port()
        # The server looks at the name and the port that it is called by: proxies have its port, and other names.
        hosts = [f"127.0.0.{number + 2}" for number in range(len(options.seeds))]
        names = [word for host in hosts for word in ("--host", host)]
        server = subprocess.Popen(
            [receiver, "serve", "--inbox", "--home", home, "--port", str(port), "--no-browser", "--json"] + names,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        try:
            assert json.loads(server.stdout.readline())["port"] == port
            if options.bytes:
                asyncio.run(measure(lazaret, folder, port, token, options.bytes, server))
                return
            asyncio.run(refused(lazaret, folder, port))
            for seed, host in zip(options.seeds, hosts):
                asyncio.run(cut(lazaret, folder, port, host, token, seed, options.size, 20))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
