"""`lazaret send` against a tus server that others wrote (tuspyserver), over a line that is cut at twenty random places.

The bundle must arrive whole, in one upload, and nothing that had arrived may be asked for again by another. With --bytes N it sends
a bundle of N bytes over an undisturbed line instead, and tells how long it took and how much memory the sender needed.
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


def serve(folder, port):
    import uvicorn
    from fastapi import FastAPI
    from tuspyserver import create_tus_router, lock

    # A connection that was cut can keep its lock over there; a second is enough to wait for that, not thirty.
    lock.acquire_upload_lock.__wrapped__.__defaults__ = (None, True, 1.0)
    app = FastAPI()
    app.include_router(create_tus_router(prefix="files", files_dir=folder, max_size=4 << 30))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", timeout_keep_alive=30)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port):
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def arrived(folder):
    return [path for path in Path(folder).iterdir() if path.is_file() and path.suffix not in (".info", ".lock", ".json")]


async def send(lazaret, bundle, port, home):
    process = await asyncio.create_subprocess_exec(
        lazaret, "send", bundle, "--to", f"http://127.0.0.1:{port}/files/", "--home", home, "--yes", "--wait", "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 600)
    if process.returncode != 0:
        raise SystemExit(f"lazaret send ended with {process.returncode}: {errors.decode()}")
    return json.loads(output)


async def cut(lazaret, folder, port, seed, size, count):
    from bundles import digest, make_bundle
    from proxy import CuttingProxy

    bundle = os.path.join(folder, f"bundle-{seed}.lazaret.tar.gz")
    sum = make_bundle(bundle, size, seed)
    source = random.Random(seed)
    cuts = [(source.randrange(200, size), source.random() < 0.25) for _ in range(count)]
    proxy = CuttingProxy(port, cuts)
    await proxy.start()
    start = time.monotonic()
    result = await send(lazaret, bundle, proxy.port, os.path.join(folder, f"home-{seed}"))
    seconds = time.monotonic() - start
    await proxy.stop()
    files = [path for path in arrived(os.path.join(folder, "files")) if digest(path) == sum]
    assert proxy.made == count, f"only {proxy.made} of {count} cuts were made"
    assert len(files) == 1, f"{len(files)} whole files arrived"
    assert result["receipt"]["sha256"] == sum and result["receipt"]["bytes"] == os.path.getsize(bundle)
    assert result["receipt"]["id"] == files[0].name, "the receipt names another upload"
    assert not result["receipt"]["byReceiver"] and not result["alreadyThere"]
    again = proxy.sent - os.path.getsize(bundle)
    print(f"  seed {seed}: {size} bytes whole after {count} cuts in {seconds:.1f} s; {again} bytes besides, fields included")


async def kill(lazaret, folder, port, seed, size):
    """The sender is killed again and again, at whatever it is doing, until it gets through."""
    from bundles import digest, make_bundle
    from proxy import CuttingProxy

    bundle, home = os.path.join(folder, "killed.lazaret.tar.gz"), os.path.join(folder, "home-killed")
    sum = make_bundle(bundle, size, seed)
    source = random.Random(seed)
    proxy = CuttingProxy(port, rate=8 << 20)
    await proxy.start()
    first = [lazaret, "send", bundle, "--to", f"http://127.0.0.1:{proxy.port}/files/", "--home", home, "--yes"]
    command, kills = first, 0
    while True:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
        try:
            _, errors = await asyncio.wait_for(process.communicate(), source.uniform(0.02, 0.5) if kills < 20 else 120)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            kills += 1
            if os.path.isdir(os.path.join(home, "Outbox")) and os.listdir(os.path.join(home, "Outbox")):
                command = [lazaret, "outbox", "send", "--home", home]
            continue
        if process.returncode != 0:
            raise SystemExit(f"lazaret ended with {process.returncode}: {errors.decode()}")
        listing = subprocess.run([lazaret, "outbox", "list", "--home", home, "--json"], capture_output=True, check=True)
        states = [entry["state"] for entry in json.loads(listing.stdout)["entries"]]
        if states == ["sent"]:
            break
        # Killed before it was in the outbox, or all of it: it is sent afresh.
        assert states in ([], ["waiting"]), states
        command = first
    await proxy.stop()
    files = [path for path in arrived(os.path.join(folder, "files")) if digest(path) == sum]
    assert len(files) == 1, f"{len(files)} whole files arrived"
    assert os.listdir(os.path.join(home, "Outbox", *os.listdir(os.path.join(home, "Outbox")))) == ["entry.json"]
    again = proxy.sent - os.path.getsize(bundle)
    print(f"  {size} bytes whole after {kills} kills of the sender; {again} bytes besides")


async def measure(lazaret, folder, port, size):
    from bundles import digest, make_bundle

    bundle = os.path.join(folder, "large.lazaret.tar.gz")
    sum = make_bundle(bundle, size, 1)
    start = time.monotonic()
    await send(lazaret, bundle, port, os.path.join(folder, "home"))
    seconds = time.monotonic() - start
    assert [path for path in arrived(os.path.join(folder, "files")) if digest(path) == sum]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  {size} bytes in {seconds:.1f} s, {size / seconds / 1e6:.0f} MB/s, at most {memory:.0f} MB of memory")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", nargs=2)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--size", type=int, default=12 << 20)
    parser.add_argument("--bytes", type=int)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve[0], int(options.serve[1]))
    try:
        import tuspyserver  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        print("SKIPPED: tuspyserver is not installed")
        sys.exit(SKIPPED)
    lazaret = os.environ["LAZARET"]
    with tempfile.TemporaryDirectory() as folder:
        files = os.path.join(folder, "files")
        os.mkdir(files)
        port = free_port()
        server = subprocess.Popen([sys.executable, __file__, "--serve", files, str(port)])
        try:
            wait_for(port)
            if options.bytes:
                asyncio.run(measure(lazaret, folder, port, options.bytes))
            else:
                for seed in options.seeds:
                    asyncio.run(cut(lazaret, folder, port, seed, options.size, 20))
                asyncio.run(kill(lazaret, folder, port, 99, options.size))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
