"""Peak rates of this machine, measured in the sandbox process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np

from ...ir.thread.function import ThreadFunc
from ...target.target import Target
from ..build.native_library import Library
from ..llvm import compile_text, emit_module
from .peak_loops import OPERATE, READ, Instruction, peak_kernel, read_kernel, vector

ROUNDS = 500_000
"""Iterations of the loop of operations; a call takes milliseconds."""

READ_BYTES = 64 << 20
"""The least number of bytes that a timed call reads, so that it takes milliseconds."""

REPEATS = 30
"""The number of timed calls; the fastest one is the peak."""

_ALIGNMENT = 64

Work = Callable[[], object]


def operation_rate(instruction: Instruction, target: Target, threads: int = 1) -> float:
    """Return the operations per second that an instruction reaches on a number of cores."""
    function, count = peak_kernel(instruction, target)
    library, address = _loaded(function, target, OPERATE)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(address)

    def work() -> None:
        out = (ctypes.c_char * _ALIGNMENT)()
        run(ctypes.addressof(out), ROUNDS)

    seconds = _fastest([work] * threads)
    del library
    return instruction.operations * count * ROUNDS * threads / seconds


def read_rate(target: Target, threads: int, size: int) -> float:
    """Return the bytes per second that threads read from ``size`` bytes, a part each."""
    function, step = read_kernel(vector(target))
    library, address = _loaded(function, target, READ)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    rounds = max(1, size // threads // step)
    times = max(1, READ_BYTES // (rounds * step * threads))

    def reading(data: np.ndarray[Any, Any]) -> Work:
        start = -data.ctypes.data % _ALIGNMENT + data.ctypes.data

        def work() -> None:
            out = (ctypes.c_char * _ALIGNMENT)()
            for _ in range(times):
                run(ctypes.addressof(out), start, rounds)

        return work

    # Pages that were never written are all the same zero page.
    parts = [np.full(rounds * step + _ALIGNMENT, 1, np.uint8) for _ in range(threads)]
    seconds = _fastest([reading(data) for data in parts])
    del library
    return rounds * step * times * threads / seconds


def _loaded(function: ThreadFunc, target: Target, name: str) -> tuple[Library, int]:
    library = Library([compile_text(emit_module([function], target), target)], target)
    return library, library.address(name)


def _fastest(work: Sequence[Work]) -> float:
    """Return the shortest time in which all threads finish, from the start of the first one."""
    barrier = threading.Barrier(len(work))

    def timed(run: Work) -> tuple[float, float]:
        barrier.wait()
        start = perf_counter()
        run()
        return start, perf_counter()

    with ThreadPoolExecutor(len(work)) as pool:
        rounds = [list(pool.map(timed, work)) for _ in range(REPEATS)]
    return min(max(stop for _, stop in spans) - min(s for s, _ in spans) for spans in rounds)
