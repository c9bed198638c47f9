"""Bundles for tests: as much of one as a sender looks at, filled with noise."""

import gzip
import hashlib
import io
import os
import random
import tarfile


def make_bundle(path, size, seed, level="scrubbed"):
    """Writes a bundle of about `size` bytes, for its owner alone; returns its SHA-256."""
    source = random.Random(seed)
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as raw:
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=0, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
                info = f"Lazaret-Bundle-Version: 1\nLazaret-Level: {level}\n".encode()
                for name, content in (("bag-info.txt", info), ("bagit.txt", b"BagIt-Version: 1.0\n")):
                    entry = tarfile.TarInfo(f"bag/{name}")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
                entry = tarfile.TarInfo("bag/data/noise")
                entry.size = size
                archive.addfile(entry, Noise(source, size))
    return digest(path)


class Noise(io.RawIOBase):
    """Bytes that do not pack."""

    def __init__(self, source, size):
        self.source, self.left = source, size
        self.block = source.randbytes(1 << 20)

    def read(self, count=-1):
        count = min(self.left, count if count >= 0 else self.left)
        parts = []
        while count > 0:
            # A block with a beginning of its own, so that no two are alike, and making them takes no time.
            part = (self.source.randbytes(16) + self.block[16:])[:count]
            parts.append(part)
            count -= len(part)
            self.left -= len(part)
        return b"".join(parts)


def digest(path):
    sum = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            sum.update(piece)
    return sum.hexdigest()
