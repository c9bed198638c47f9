"""Locks one of the new stores below a folder, as SQLite does for a writer, for a moment. A part of claims.py.

Arguments: the folder, how long in seconds, which of the new stores (0 for the first one), and a word that is in their paths.
"""

import fcntl
import os
import select
import sys
import time

# The bytes that SQLite locks: pending, reserved and shared (https://sqlite.org/src/file/src/os.h).
FIRST, LENGTH = 0x40000000, 512


def files_below(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(place, name)


def main():
    folder, seconds, wanted, word = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    known, held, seen, locked = set(files_below(folder)), [], 0, None
    print("watching", flush=True)
    while not select.select([sys.stdin], [], [], 0.0005)[0]:
        now = time.monotonic()
        for path in files_below(folder):
            if path in known or word not in path or not path.endswith((".sqlite", ".sqlite.unfinished")):
                continue
            known.add(path)
            seen += 1
            if seen <= wanted or locked:
                continue
            try:
                file = os.open(path, os.O_RDWR)
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, LENGTH, FIRST)
            except OSError:
                continue
            held.append((now + seconds, file))
            locked = os.path.relpath(path, folder)
        for until, file in [one for one in held if one[0] <= now]:
            os.close(file)
        held = [one for one in held if one[0] > now]
    print(locked or "no file", "was locked")


if __name__ == "__main__" and len(sys.argv) == 5:
    main()
