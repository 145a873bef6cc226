"""A content-addressed cache on disk: safe under concurrent use, checksummed, bounded in size.

An entry is written to a temporary file, which is then renamed, so readers never see partial
entries. It begins with the checksum of its key and content; an entry with a wrong checksum is
removed and counts as a miss. So is an entry that another user owns or can write, because entries
contain machine code. A folder that other users can write is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import reprlib
import tempfile
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import TilewrightError
from ...locks import renew_in_children
from .private_files import (
    NotPrivateError,
    check_folder,
    make_folder,
    open_file,
    read_file,
    user_folder,
)

_MAGIC = b"tilewright-cache-2\n"
_DIGEST = 32
DEFAULT_LIMIT = 1 << 30


def default_folder() -> Path:
    """Return the folder of the cache: ``TILEWRIGHT_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("TILEWRIGHT_CACHE")
    return Path(chosen) if chosen else user_folder()


class CacheFolderWarning(UserWarning):
    """A cache folder that is not used because another user owns it or can write it.

    Compilation works, but its results are not stored.
    """


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Size of the cache, and its hits and misses by this process; sizes are in bytes."""

    folder: str
    entries: int
    bytes: int
    limit: int
    hits: int
    misses: int


class DiskCache:
    """A folder of entries by key, with least-recently-used eviction.

    Parameters
    ----------
    folder : Path, optional
        Folder of the cache, created by the first write; by default :func:`default_folder`.
    limit : int
        Maximum size in bytes.

    Examples
    --------
    >>> import tempfile
    >>> cache = DiskCache(Path(tempfile.mkdtemp()))
    >>> key = cache.key(b"target", b"program")
    >>> cache.get(key) is None
    True
    >>> cache.put(key, b"the result")
    >>> cache.get(key)
    b'the result'
    """

    def __init__(self, folder: Path | None = None, *, limit: int = DEFAULT_LIMIT) -> None:
        """Store folder and limit."""
        self.folder = folder or default_folder()
        self.limit = limit
        self.hits = 0
        self.misses = 0
        self._written = 0
        self._warned = False
        self._lock = threading.Lock()
        renew_in_children(self)

    @staticmethod
    def key(*parts: bytes) -> str:
        """Return the digest of the inputs of a result; the lengths of the parts are included."""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def get(self, key: str) -> bytes | None:
        """Return an entry, or None; a damaged entry is removed."""
        payload = self._read(key)
        if payload is None:
            self.misses += 1
            return None
        self.hits += 1
        with contextlib.suppress(OSError):
            os.utime(self._path(key))
        return payload

    def _read(self, key: str) -> bytes | None:
        try:
            check_folder(self.folder)
        except NotPrivateError as error:
            self._warn(error)
            return None
        except OSError:
            return None
        try:
            data = read_file(self._path(key), max(self.limit, DEFAULT_LIMIT))
        except FileNotFoundError:
            return None
        except OSError:  # also a link or a pipe, or a file of another user
            self.remove(key)
            return None
        start = len(_MAGIC) + _DIGEST
        if data[:start] == _head(key, data[start:]):
            return data[start:]
        self.remove(key)
        return None

    def _warn(self, error: NotPrivateError) -> None:
        """Report once that the folder is not used."""
        if self._warned:
            return
        self._warned = True
        message = f"the cache folder is not used: {error}; TILEWRIGHT_CACHE selects another folder"
        warnings.warn(CacheFolderWarning(message), stacklevel=2)

    def remove(self, key: str) -> None:
        """Remove an entry, if there is one; errors of the file system are ignored."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def put(self, key: str, payload: bytes) -> None:
        """Store an entry; errors of the file system are ignored."""
        path = self._path(key)
        with contextlib.suppress(OSError):
            make_folder(self.folder)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_head(key, payload) + payload)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._count_written(len(payload))

    def _count_written(self, written: int) -> None:
        with self._lock:
            self._written += written
            due = self._written > self.limit // 16
            self._written = 0 if due else self._written
        if due:
            self.evict()

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        if not self.folder.is_dir():
            return
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(OSError):
                state = path.stat()
                yield state.st_mtime, state.st_size, path

    def evict(self) -> int:
        """Remove least-recently-used entries until the rest fits; return how many were removed."""
        import fcntl  # missing on some platforms, which must get UnsupportedPlatformError instead

        make_folder(self.folder)
        with os.fdopen(open_file(self.folder / "lock", os.O_RDWR | os.O_CREAT), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return 0
            return self._evict()

    def _evict(self) -> int:
        entries = sorted(self._entries())
        total, removed = sum(size for _, size, _ in entries), 0
        for _, size, path in entries:
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
            total -= size
        return removed

    def clear(self) -> int:
        """Remove all entries; return how many were removed."""
        removed = 0
        for _, _, path in list(self._entries()):
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def statistics(self) -> CacheStatistics:
        """Return the number and size of entries, and the hits and misses."""
        entries = list(self._entries())
        total = sum(size for _, size, _ in entries)
        return CacheStatistics(
            str(self.folder), len(entries), total, self.limit, self.hits, self.misses
        )


def _head(key: str, payload: bytes) -> bytes:
    """Return the start of an entry, which identifies its format, key, and content."""
    return _MAGIC + hashlib.sha256(key.encode() + b"\n" + payload).digest()


class CacheLimitError(TilewrightError):
    """A size limit of the cache that is not a number of bytes."""

    title = "Invalid limit of the cache"


_MAX_DIGITS = 18
_CACHES: dict[Path, DiskCache] = {}


def _limit(text: str) -> int:
    """Return the size limit of the cache in bytes; without a text, the default."""
    if not text.strip():
        return DEFAULT_LIMIT
    if not text.strip().isdecimal() or len(text) > _MAX_DIGITS:
        raise CacheLimitError(
            f"expected a number of bytes, got {reprlib.repr(text)}",
            where="environment variable TILEWRIGHT_CACHE_LIMIT",
            hint="set it to an integer, such as 1000000000 for 1 GB",
        )
    return int(text)


def default_cache() -> DiskCache:
    """Return the cache that the environment variables select now."""
    limit = _limit(os.environ.get("TILEWRIGHT_CACHE_LIMIT", ""))
    cache = _CACHES.setdefault(default_folder(), DiskCache(default_folder(), limit=limit))
    cache.limit = limit
    return cache
