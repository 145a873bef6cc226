"""A content-addressed cache on disk: safe under concurrent use, checksummed, bounded in size.

An entry is written to a temporary file, which is then renamed, so readers never see partial
entries. It begins with the checksum of its content; an entry with a wrong checksum is removed and
counts as a miss.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import reprlib
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import TilewrightError

_MAGIC = b"tilewright-cache-1\n"
_DIGEST = 32
DEFAULT_LIMIT = 1 << 30


def default_folder() -> Path:
    """Return the folder of the cache: ``TILEWRIGHT_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("TILEWRIGHT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tilewright"


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
        self._lock = threading.Lock()

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
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            self.misses += 1
            return None
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        if data[:start] != _MAGIC + hashlib.sha256(payload).digest():
            self.misses += 1
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        self.hits += 1
        with contextlib.suppress(OSError):
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store an entry; errors of the file system are ignored."""
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
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

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
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
