"""Sampling of loaded programs, interleaved if there are several."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_BATCH = 0.05
"""The time between two frames of samples, in seconds."""

Rounds = list[list[int]]
SendSamples = Callable[[Rounds], None]
NeedsMore = Callable[[], bool]


def take_rounds(
    runs: Sequence[Callable[[], object]],
    plan: Mapping[str, Any],
    send: SendSamples,
    needs_more: NeedsMore,
) -> None:
    """Time calls until the owner has enough samples, or a limit of the plan is reached.

    A round is one sample of every program. Every other round has the reverse order, so that no
    program always runs after the same other one. With hot caches and several programs, each sample
    follows an untimed call of the same program.
    """
    for _ in range(int(plan["warmup"])):
        for run in runs:
            run()
    with _pinned(plan["cores"]):
        _repeat(runs, plan, send, needs_more)


def _repeat(
    runs: Sequence[Callable[[], object]],
    plan: Mapping[str, Any],
    send: SendSamples,
    needs_more: NeedsMore,
) -> None:
    flush = np.zeros(int(plan["flush"]) // 8) if plan["flush"] else None
    rewarm = flush is None and len(runs) > 1
    batch, sent = Rounds(), time.monotonic()
    end = sent + float(plan["seconds"])
    for count in range(int(plan["most"])):
        taken = [0] * len(runs)
        order = range(len(runs)) if count % 2 == 0 else reversed(range(len(runs)))
        for k in order:
            taken[k] = _sample(runs[k], flush, rewarm=rewarm)
        batch.append(taken)
        now = time.monotonic()
        over = now > end and count + 1 >= int(plan["least"])
        if now - sent > _BATCH or over:
            send(batch)
            batch, sent = [], now
            if not needs_more() or over:
                return
    send(batch)


def _sample(run: Callable[[], object], flush: Any, *, rewarm: bool) -> int:
    if flush is not None:
        flush += 1.0
    if rewarm:
        run()
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start


@contextmanager
def _pinned(cores: Sequence[int]) -> Generator[None]:
    """Pin this thread and the threads of parallel loops to a core each."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    own = threading.get_native_id()
    python = {t.native_id for t in threading.enumerate()}
    workers = [t for t in _threads() if t not in python]
    try:
        for k, thread in enumerate([own, *workers]):
            os.sched_setaffinity(thread, {int(cores[k % len(cores)])})
        yield
    finally:
        for thread in (own, *workers):
            os.sched_setaffinity(thread, before)


def _threads() -> list[int]:
    """Return the threads of this process, in the order of their creation."""
    return sorted(int(entry.name) for entry in Path("/proc/self/task").iterdir())
