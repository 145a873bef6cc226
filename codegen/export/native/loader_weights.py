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
    ``verify`` is "open" to compare the tensors with their sha256, or "trusted".
    """

    def __init__(
        self,
        path: Path,
        facts: dict | None,
        *,
        copy: bool = False,
        expected: str | None = None,
        verify: str = "open",
    ) -> None:
        self.path, self.copied, self._file = path, copy, -1
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self._facts = os.fstat(self._file)
            size = self._facts.st_size
            self.array = self._read(size) if copy else self._mapped(size)
        except OSError as error:
            raise ModelError(f"{path}: cannot read the weights: {error.strerror}") from None
        data = memoryview(self.array)
        if facts is None:
            problem = header_problem(data, expected, verify=verify)
        elif verify == "trusted" or hashlib.sha256(data).hexdigest() == facts.get("sha256"):
            problem = ""
        else:
            problem = damaged_block(data) or "the sha256 differs from that in the manifest"
        if problem:
            raise ModelError(f"{path}: {problem}")

    def _mapped(self, size: int) -> np.ndarray:
        """Map the file; Linux enters all pages at once, which a first call would do one by one."""
        whole = getattr(mmap, "MAP_POPULATE", 0)
        how = {"flags": mmap.MAP_SHARED | whole, "prot": mmap.PROT_READ} if whole else {}
        try:
            mapped = mmap.mmap(self._file, 0, **(how or {"access": mmap.ACCESS_READ}))
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


def _metadata(data: memoryview) -> tuple[int, dict, dict]:
    """Return the size of the header of a file, its entries, and its metadata.

    Raises ValueError, KeyError, TypeError, or RecursionError if it has none.
    """
    size = 8 + int.from_bytes(data[:8], "little")
    if size > len(data):
        raise ValueError(f"{len(data)} bytes are fewer than those of the header, {size}")
    entries = json.loads(bytes(data[8:size]))
    facts = entries["__metadata__"]
    if not isinstance(facts, dict):
        raise TypeError("the metadata is not an object")
    return size, entries, facts


def header_problem(data: memoryview, expected: str | None = None, *, verify: str = "open") -> str:
    """Return how a file of weights differs from the sha256 in its header, or no text.

    ``expected`` is the sha256 that the header must contain. ``verify`` is "open" to compare the
    tensors with it, "blocks" to also compare every block that the header lists, or "trusted".
    """
    try:
        size, _, facts = _metadata(data)
        found = facts["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return (
            f"the header has no sha256 of the tensors ({error}); write the file with "
            "'tilewright weights pack'"
        )
    if expected is not None and found != expected:
        return f"expected sha256 {expected}, got {found}"
    if verify == "trusted":
        return ""
    differs = hashlib.sha256(data[size:]).hexdigest() != found
    problem = damaged_block(data) if differs or verify == "blocks" else ""
    return problem or ("the sha256 differs from that in the header" if differs else "")


def damaged_block(data: memoryview) -> str:
    """Return which block of a file of weights differs from its sha256 in the header.

    Return no text if none does, or the header, as that of an earlier version, lists no blocks.
    """
    try:
        size, entries, facts = _metadata(data)
        length, listed = facts.get("block_bytes"), facts.get("blocks")
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    if length is None and listed is None:
        return ""
    text = length if isinstance(length, str) else ""
    block = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    if not block or not isinstance(listed, str):
        return f"the header has blocks of {str(length)[:40]!r} bytes, expected a positive number"
    count = -(-(len(data) - size) // block)
    if len(listed) != 64 * count:
        return (
            f"the header lists {len(listed) / 64:g} sha256 of blocks of {block} bytes, but the "
            f"tensors have {count} blocks"
        )
    for k in range(count):
        first, last = size + k * block, min(size + (k + 1) * block, len(data)) - 1
        wanted = listed[64 * k : 64 * k + 64]
        found = hashlib.sha256(data[first : last + 1]).hexdigest()
        if found != wanted:
            names = _tensors_between(entries, first - size, last + 1 - size)
            return (
                f"block {k + 1} of {count} of the weights, bytes {first} to {last} of the file, is "
                f"damaged: expected sha256 {wanted}, got {found}; tensors in it: {names}"
            )
    return ""


def _tensors_between(entries: dict, first: int, end: int) -> str:
    names = []
    for name, entry in entries.items():
        try:
            begin, stop = entry["data_offsets"]
            inside = begin < end and first < stop
        except (ValueError, KeyError, TypeError):
            continue  # the metadata, or an entry that the library refuses
        if inside and not name.startswith("__filler__"):
            names.append(repr(name))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (", ".join(names[:3]) or "none") + more


def check_files(folder: Path, manifest: dict, verify: str = "open") -> None:
    """Compare the size and, unless ``verify`` is "trusted", the sha256 of files with the manifest.

    Symbolic links are followed. Raises ModelError for the first file that is missing or differs.
    """
    for name in (manifest["library"], manifest["weights"]):
        if name not in manifest["files"]:
            raise ModelError(f"{name}: the manifest does not list this file")
    for name, facts in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{path}: the file is missing or not a regular file")
        expected = facts.get("bytes") if isinstance(facts, dict) else None
        if name == manifest["weights"] and manifest.get("weights_replaceable"):
            continue  # the header of the file contains the sha256 of its tensors
        if not isinstance(facts, dict) or path.stat().st_size != expected:
            raise ModelError(f"{path}: expected {expected} bytes, got {path.stat().st_size} bytes")
        if name == manifest["weights"] or verify == "trusted":
            continue  # _Weights checks the memory that the model uses
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != facts.get("sha256"):
                raise ModelError(f"{path}: the sha256 differs from that in the manifest")
