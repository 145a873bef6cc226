"""Files of weights: a part of the Python loader, without other imports.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

# @BEGIN@
import hashlib
import json
import mmap
import os
from pathlib import Path

import numpy as np


class ModelError(Exception):
    """An invalid file or call; ``code`` is the error code of the library, or 0."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class _Weights:
    """Weights in memory, and the file from which they were mapped or copied.

    Processes that map one file share its memory. ``facts`` are those of the file in the manifest;
    if they are None, its header contains the sha256 of the tensors, which must be ``expected``.
    """

    def __init__(
        self, path: Path, facts: dict | None, *, copy: bool = False, expected: str | None = None
    ) -> None:
        self.path, self.copied, self._file = path, copy, -1
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self._facts = os.fstat(self._file)
            size = self._facts.st_size
            self.array = self._read(size) if copy else self._mapped(size)
        except OSError as error:
            raise ModelError(f"{path}: cannot read the weights: {error.strerror}") from None
        if facts is None:
            self._check_header(expected)
        else:
            _check_digest(path, hashlib.sha256(self.array), facts)

    def _mapped(self, size: int) -> np.ndarray:
        try:
            mapped = mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # some file systems cannot map files
            self.copied = True
            return self._read(size)
        return np.frombuffer(mapped, np.uint8)

    def _read(self, size: int) -> np.ndarray:
        raw = np.empty(size + 64, np.uint8)
        start = -raw.ctypes.data % 64
        weights = raw[start : start + size]
        with open(self._file, "rb", closefd=False) as file:
            file.readinto(weights)
        return weights

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def _check_header(self, expected: str | None) -> None:
        size = int.from_bytes(self.array[:8].tobytes(), "little")
        try:
            found = json.loads(self.array[8 : 8 + size].tobytes())["__metadata__"]["sha256"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelError(
                f"{self.path}: the header has no sha256 of the tensors ({error}); write the file "
                "with 'tilewright weights pack'"
            ) from None
        if expected is not None and found != expected:
            raise ModelError(f"{self.path}: expected sha256 {expected}, got {found}")
        if hashlib.sha256(self.array[8 + size :]).hexdigest() != found:
            raise ModelError(f"{self.path}: the sha256 differs from that in the header")

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return self.array.ctypes.data

    def check(self) -> bool:
        """Check that the mapped file was not written; return whether the path names another one.

        Raises ModelError with the size, the time, and the inode if it was.
        """
        before, now = self._facts, os.fstat(self._file)
        pairs = (before.st_size, now.st_size), (before.st_mtime_ns, now.st_mtime_ns)
        for (old, new), name in zip(pairs, ("size", "modification time"), strict=True):
            if old != new and not self.copied:
                raise ModelError(
                    f"{self.path}: the mapped file (inode {now.st_ino}) was written: {name} {old} "
                    f"is now {new}; replace files by rename, and call update()"
                )
        try:
            other = self.path.stat()
        except OSError:
            return False
        return (other.st_dev, other.st_ino) != (before.st_dev, before.st_ino)


def _check_digest(path: Path, digest, facts: dict) -> None:
    if digest.hexdigest() != facts.get("sha256"):
        raise ModelError(f"{path}: the sha256 differs from that in the manifest")
