"""Hostile and damaged caches: programs still compile and compute the right results.

``python -m tests.attacks.caches COUNT SEED`` replaces all entries by each kind of file, then
damages random entries COUNT times.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright.codegen.build.object_cache import CacheFolderWarning, default_folder

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def scaled(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * {factor}.0
"""
X = np.arange(100, dtype=np.float32)


def check(factor: int) -> bool:
    """Compile and call a program; return whether it was in the cache."""
    exe = tw.compile(tw.parse(PROGRAM.format(factor=factor)))
    np.testing.assert_array_equal(exe(X), X * np.float32(factor))
    return exe.cached


def entries() -> list[Path]:
    """Return the paths of all entries."""
    return sorted(default_folder().glob("??/*"))


def _pipe(path: Path, _: bytes) -> None:
    os.mkfifo(path, 0o600)


def _endless(path: Path, _: bytes) -> None:
    path.symlink_to("/dev/zero")


def _folder(path: Path, _: bytes) -> None:
    (path / "inner").mkdir(parents=True)


def _writable(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o666)


def _empty(path: Path, _: bytes) -> None:
    path.touch(0o600)


def _huge(path: Path, _: bytes) -> None:
    path.touch(0o600)
    os.truncate(path, 1 << 40)  # without blocks on the disk


KINDS: dict[str, Callable[[Path, bytes], None]] = {
    "pipe": _pipe,
    "endless file": _endless,
    "file that others can write": _writable,
    "empty file": _empty,
    "huge file": _huge,
    "folder": _folder,
}


def replace_all() -> None:
    """Replace all entries by files of each kind."""
    for name, make in KINDS.items():
        shutil.rmtree(default_folder(), ignore_errors=True)
        check(2)
        for path in entries():
            data = path.read_bytes()
            path.unlink()
            make(path, data)
        if check(2):
            sys.exit(f"{name}: the entry was used")
        if name != "folder" and not check(2):
            sys.exit(f"{name}: the entry was not replaced")


def exchange() -> None:
    """Exchange the entries of two programs."""
    shutil.rmtree(default_folder())
    for factor in (3, 4):
        check(factor)
    paths = entries()
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)
    for factor in (3, 4):
        check(factor)


def damage(count: int, seed: int) -> None:
    """Change, remove, or insert bytes of random entries."""
    chance = random.Random(seed)
    for k in range(count):
        path = chance.choice([p for p in entries() if p.is_file()])
        data = bytearray(path.read_bytes())
        start = chance.randrange(len(data) + 1)
        stop = start + chance.choice((0, 1, 8, len(data)))
        data[start:stop] = chance.randbytes(chance.choice((0, 1, 8)))
        path.write_bytes(data)
        check(3 + k % 2)


def shared_folder() -> None:
    """Let others write the folder: nothing in it is used, which one warning reports."""
    default_folder().chmod(0o777)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if check(2) or check(2):
            sys.exit("an entry of a folder that others can write was used")
    if [w.category for w in caught] != [CacheFolderWarning]:
        sys.exit(f"warnings: {[str(w.message) for w in caught]}")


if __name__ == "__main__":
    replace_all()
    exchange()
    damage(int(sys.argv[1]), int(sys.argv[2]))
    shared_folder()
    sys.stdout.write("right\n")
