"""Compilation of LLVM text to objects, with the object cache and the compile workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from ...target.target import Target
from ..build_log import BuildLog
from ..llvm.processor import resolve
from ..nvidia import Image, assembler_version
from .object_cache import DiskCache, default_cache
from .worker_pool import (
    DEFAULT_TIMEOUT,
    Batch,
    CancelToken,
    CompileJob,
    WorkerPool,
    default_pool,
)


@cache
def versions() -> str:
    """Return the versions of Tilewright and LLVM, on which machine code depends."""
    from importlib.metadata import version

    from llvmlite import binding

    llvm = ".".join(map(str, binding.llvm_version_info))
    return f"tilewright {version('tilewright')}, llvm {llvm}"


@cache
def source_version() -> str:
    """Return a digest of the compiler for cache keys: its version and, in a checkout, its files.

    Artifacts of modules depend on every pass, and in a checkout passes change without a new
    version. Files are identified by path, size and modification time.
    """
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(versions().encode())
    if (root / "pyproject.toml").exists():
        for folder in ("target", "ir", "schedules", "codegen"):
            for path in sorted((root / folder).rglob("*.py")):
                state = path.stat()
                digest.update(f"{path} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()


def target_key(target: Target) -> str:
    """Return the part of a cache key that identifies the target, with all its features."""
    if target.is_gpu:
        host = target_key(host_target(target))
        return f"{target.kind} {target.arch}, {assembler_version()}; host {host}"
    cpu = resolve(target)
    return f"{target.kind} {cpu.name} {cpu.features} {cpu.vector_bits}"


def host_target(target: Target) -> Target:
    """Return the target of the host flow: a CPU target itself, or the host CPU for a GPU target.

    Examples
    --------
    >>> host_target(Target("cuda", arch="sm_80")).kind
    'cpu'
    """
    return Target("cpu", threads=target.threads) if target.is_gpu else target


LARGE_HOST_FLOW: Final = 500_000
"""The characters of LLVM IR above which a host flow is compiled without optimization.

The host flow of a graph function has no loops, and is one function, for which LLVM's passes take
quadratic time. It only calls kernels, so that optimization hardly matters.
"""


def host_job(
    text: str,
    target: Target,
    output: Literal["object", "assembly", "optimized"] = "object",
    *,
    name: str = "host flow",
) -> CompileJob:
    """Return the compilation of the host flow of graph functions, without optimization if large.

    Parameters
    ----------
    text : str
        LLVM IR text of the host functions.
    target : Target
        The target of the kernels.
    output : {"object", "assembly", "optimized"}
        Kind of the result.
    name : str
        Name in error messages.

    Examples
    --------
    >>> [host_job("x" * size, Target("cpu")).opt for size in (10, 2_000_000)]
    [2, 0]
    """
    opt = 2 if len(text) <= LARGE_HOST_FLOW else 0
    return CompileJob(name, text, host_target(target), output, opt)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The objects in the order of the jobs, and the number that were compiled, not cached."""

    objects: tuple[bytes, ...]
    compiled: int


def build_objects(
    texts: Sequence[tuple[str, str]],
    target: Target,
    *,
    opt: int = 2,
    store: DiskCache | None = None,
    pool: WorkerPool | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    cancel: CancelToken | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> BuildResult:
    """Compile every ``(name, LLVM text)`` for one target; equal texts are compiled once."""
    with (pool or default_pool()).batch(timeout=timeout, cancel=cancel) as batch:
        build = Build(batch, store)
        for name, text in texts:
            build.add(CompileJob(name, text, target, opt=opt))
        return build.finish(progress)


def own_object(name: str, text: Callable[[], str], target: Target) -> bytes:
    """Return the object of an LLVM text that depends on the target and the compiler alone.

    The text is not the cache key, so it is not generated if the object is in the cache.
    """
    store, job = default_cache(), CompileJob(name, "", target)
    key = store.key(_job_settings(job), f"{name}; {source_version()}".encode())
    data = _cached(store, key, job)
    if data is None:
        data = build_objects([(name, text())], target, store=store).objects[0]
        store.put(key, data)
    return data


class Build:
    """Jobs of one compilation: those not in the cache run in a batch while others are added.

    The cache key of a job is a digest of its LLVM text, its target, its optimization level, and the
    versions of Tilewright and LLVM.

    Parameters
    ----------
    batch : Batch
        The batch.
    store : DiskCache, optional
        The cache.
    """

    def __init__(self, batch: Batch, store: DiskCache | None = None) -> None:
        """Create a build without jobs."""
        self._batch = batch
        self._cache = store or default_cache()
        self._keys: list[str] = []
        self._found: dict[str, bytes | None] = {}
        self._running: list[tuple[str, str]] = []

    def add(self, job: CompileJob) -> None:
        """Add a job; one with the cache key of an earlier job does not run again."""
        key = self._cache.key(_job_settings(job), job.text.encode())
        self._keys.append(key)
        if key in self._found:
            return
        self._found[key] = _cached(self._cache, key, job)
        if self._found[key] is None:
            self._batch.add(job)
            self._running.append((key, job.name))

    def finish(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        log: BuildLog | None = None,
    ) -> BuildResult:
        """Wait for the jobs, and return the objects; report each that was not in the cache.

        ``progress(name, ready, total)`` is called on this thread; the log contains the time.
        """
        ready = len(self._found) - len(self._running)

        def done(position: int, seconds: float) -> None:
            nonlocal ready
            ready += 1
            name = self._running[position][1]
            if log is not None:
                log.kernel("code generation of", name, seconds)
            if progress is not None:
                progress(name, ready, len(self._found))

        objects = self._batch.finish(done)
        for (key, _), data in zip(self._running, objects, strict=True):
            self._cache.put(key, data)
            self._found[key] = data
        parts = tuple(data for key in self._keys if (data := self._found[key]) is not None)
        return BuildResult(parts, len(self._running))


def _cached(cache: DiskCache, key: str, job: CompileJob) -> bytes | None:
    """Return the output of a job in the cache; an entry that is no such output is removed."""
    data = cache.get(key)
    if data is None or _is_output(data, job):
        return data
    cache.remove(key)
    return None


def _is_output(data: bytes, job: CompileJob) -> bool:
    """Return whether data is a whole output of a job: an object file, or a GPU image."""
    if job.output == "image":
        try:
            Image.from_bytes(data)
        except Exception:  # noqa: BLE001  # of any kind, since the data may be anything
            return False
        return True
    if job.output != "object" or job.target.arch == "wasm32":
        return bool(data)
    if len(data) < _ELF_HEADER or data[:6] != b"\x7fELF\x02\x01":
        return False
    sections = int.from_bytes(data[0x28:0x30], "little")
    size, count = (int.from_bytes(data[k : k + 2], "little") for k in (0x3A, 0x3C))
    return 0 < sections <= len(data) - size * count  # the table of sections is at the end


_ELF_HEADER = 64


def _job_settings(job: CompileJob) -> bytes:
    """Return the part of a job's cache key besides its text: versions, target, and level."""
    return f"{versions()}; {target_key(job.target)}; O{job.opt}".encode()
