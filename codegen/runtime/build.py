"""LLVM text to objects, through the cache and the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ...ir.target import Target
from ..cpu import resolve
from .cache import DiskCache, default_cache
from .workers import DEFAULT_TIMEOUT, Cancellation, Job, Pool, default_pool


@cache
def versions() -> str:
    """Name the versions that a result depends on."""
    from importlib.metadata import version

    from llvmlite import binding

    llvm = ".".join(map(str, binding.llvm_version_info))
    return f"tilewright {version('tilewright')}, llvm {llvm}"


def target_key(target: Target) -> str:
    """Name the machine that code is made for, with all its features."""
    cpu = resolve(target)
    return f"{target.kind} {cpu.name} {cpu.features} {cpu.vector_bits}"


def build_objects(
    texts: Sequence[tuple[str, str]],
    target: Target,
    *,
    opt: int = 2,
    store: DiskCache | None = None,
    pool: Pool | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    cancel: Cancellation | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[bytes]:
    """Make the object of every ``(name, LLVM text)``, each once.

    ``progress(name, ready, total)`` is told of every object that is there.
    """
    kept = store or default_cache()
    machine = f"{versions()}; {target_key(target)}; O{opt}".encode()
    keys = [kept.key(machine, text.encode()) for _, text in texts]
    found: dict[str, bytes | None] = {key: kept.get(key) for key in dict.fromkeys(keys)}
    missing = [key for key, data in found.items() if data is None]
    ready = len(found) - len(missing)
    if progress is not None and ready:
        progress("cache", ready, len(found))
    jobs = [Job(*texts[keys.index(key)], target, "object", opt) for key in missing]

    def done(position: int) -> None:
        nonlocal ready
        ready += 1
        if progress is not None:
            progress(jobs[position].name, ready, len(found))

    if jobs:
        made = (pool or default_pool()).run_all(jobs, timeout=timeout, cancel=cancel, done=done)
        for key, data in zip(missing, made, strict=True):
            kept.put(key, data)
            found[key] = data
    return [data for key in keys if (data := found[key]) is not None]
