"""Takes samples of loaded programs, in turns where there are several."""

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
"""Seconds between frames of samples."""

Rounds = list[list[int]]
Tell = Callable[[Rounds], None]
Wanted = Callable[[], bool]


def take_rounds(
    runs: Sequence[Callable[[], object]], plan: Mapping[str, Any], tell: Tell, wanted: Wanted
) -> None:
    """Time calls until the owner has enough, the budget is spent, or nothing more is allowed.

    A round is one sample of every program; the order turns round from round to round, so that none
    always comes after the same other one. With hot caches and several programs, each sample
    follows an untimed call of the same program.
    """
    for _ in range(int(plan["warmup"])):
        for run in runs:
            run()
    with _held(plan["cores"]):
        _repeat(runs, plan, tell, wanted)


def _repeat(
    runs: Sequence[Callable[[], object]], plan: Mapping[str, Any], tell: Tell, wanted: Wanted
) -> None:
    flush = np.zeros(int(plan["flush"]) // 8) if plan["flush"] else None
    rewarm = flush is None and len(runs) > 1
    batch, told = Rounds(), time.monotonic()
    end = told + float(plan["seconds"])
    for count in range(int(plan["most"])):
        taken = [0] * len(runs)
        order = range(len(runs)) if count % 2 == 0 else reversed(range(len(runs)))
        for k in order:
            taken[k] = _sample(runs[k], flush, rewarm=rewarm)
        batch.append(taken)
        now = time.monotonic()
        over = now > end and count + 1 >= int(plan["least"])
        if now - told > _BATCH or over:
            tell(batch)
            batch, told = [], now
            if not wanted() or over:
                return
    tell(batch)


def _sample(run: Callable[[], object], flush: Any, *, rewarm: bool) -> int:
    if flush is not None:
        flush += 1.0
    if rewarm:
        run()
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start


@contextmanager
def _held(cores: Sequence[int]) -> Generator[None]:
    """Hold this thread and those that a parallel loop has started to a core each."""
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
    """List this process's threads, in the order in which they were started."""
    return sorted(int(entry.name) for entry in Path("/proc/self/task").iterdir())
