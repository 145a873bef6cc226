"""LLVM text to objects, through the cache and the workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ...ir.target import Target
from ..cpu import resolve
from ..nvidia import assembler_version
from .cache import DiskCache, default_cache
from .workers import DEFAULT_TIMEOUT, Cancellation, Job, Pool, default_pool


@cache
def versions() -> str:
    """Name the versions that machine code depends on."""
    from importlib.metadata import version

    from llvmlite import binding

    llvm = ".".join(map(str, binding.llvm_version_info))
    return f"tilewright {version('tilewright')}, llvm {llvm}"


@cache
def source_version() -> str:
    """Name this compiler: its version, and in a checkout the state of its files as well.

    Artefacts of whole modules depend on every pass, which an editable install may change without
    changing its version.
    """
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(versions().encode())
    if (root / "pyproject.toml").exists():
        for folder in ("ir", "schedules", "codegen"):
            for path in sorted((root / folder).rglob("*.py")):
                state = path.stat()
                digest.update(f"{path} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()


def target_key(target: Target) -> str:
    """Name the machine that code is made for, with all its features."""
    if target.is_gpu:
        host = target_key(host_target(target))
        return f"{target.kind} {target.arch}, {assembler_version()}; host {host}"
    cpu = resolve(target)
    return f"{target.kind} {cpu.name} {cpu.features} {cpu.vector_bits}"


def host_target(target: Target) -> Target:
    """Give the processor that a target's host flow runs on: itself, or this machine's for a GPU.

    Examples
    --------
    >>> host_target(Target("cuda", arch="sm_80")).kind
    'cpu'
    """
    return Target("cpu", threads=target.threads) if target.is_gpu else target


@dataclass(frozen=True, slots=True)
class Built:
    """Objects in the order asked for, and how many of them LLVM had to make."""

    objects: tuple[bytes, ...]
    compiled: int


@dataclass(frozen=True, slots=True)
class Task:
    """One text to make something of: an object file, or what a GPU loads."""

    name: str
    text: str
    target: Target
    want: Literal["object", "image"] = "object"


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
) -> Built:
    """Make the object of every ``(name, LLVM text)`` for one target, each once."""
    return build_tasks(
        [Task(name, text, target) for name, text in texts], opt=opt, store=store, pool=pool,
        timeout=timeout, cancel=cancel, progress=progress,
    )  # fmt: skip


def build_tasks(
    tasks: Sequence[Task],
    *,
    opt: int = 2,
    store: DiskCache | None = None,
    pool: Pool | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    cancel: Cancellation | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Built:
    """Do every task, those with the same text for the same machine once.

    ``progress(name, ready, total)`` is told of everything that was made, on this thread.
    """
    kept = store or default_cache()
    keys = [kept.key(_machine(t, opt), t.text.encode()) for t in tasks]
    found: dict[str, bytes | None] = {key: kept.get(key) for key in dict.fromkeys(keys)}
    missing = [key for key, data in found.items() if data is None]
    first = [tasks[keys.index(key)] for key in missing]
    jobs = [Job(t.name, t.text, t.target, t.want, opt) for t in first]
    ready = len(found) - len(missing)

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
    return Built(tuple(data for key in keys if (data := found[key]) is not None), len(jobs))


def _machine(task: Task, opt: int) -> bytes:
    """Name all that decides what becomes of a text besides the text itself."""
    return f"{versions()}; {target_key(task.target)}; O{opt}".encode()
