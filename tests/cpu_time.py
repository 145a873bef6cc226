"""CPU times relative to a reference computation, for time limits that hold on any machine.

The CPU time of the same code differs by a factor of two or more between processors, and on one
processor when its other threads are busy. Each sample is therefore divided by the time of a
reference computation that runs just before and after it, and is stated in milliseconds of the
machine on which the reference takes :data:`REFERENCE_MS`.
"""

from __future__ import annotations

import functools
import gc
import time
from typing import TYPE_CHECKING, Final, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable

REFERENCE_MS: Final = 0.25
"""The CPU time of the reference computation on an idle EPYC (Zen 5) at Python 3.11, in ms."""

RUNS: Final = 3
"""How often the test of a time limit runs until it passes."""

_ROUNDS: Final = 650

P = ParamSpec("P")


class _Node:
    __slots__ = ("children", "value")

    def __init__(self, value: int, children: tuple[_Node, ...]) -> None:
        self.value, self.children = value, children


def _reference() -> int:
    """Create, hash, look up and compare objects, as the compiler does."""
    seen: dict[tuple[int, int], _Node] = {}
    last: tuple[_Node, ...] = ()
    for k in range(_ROUNDS):
        node = _Node(k * 7 % 13, last[-2:])
        seen[node.value, len(node.children)] = node
        last = (*last[-3:], node)
    return sum(node.value for node in seen.values()) + len(last)


def _cpu_ms(run: Callable[[], object]) -> float:
    start = time.thread_time()
    run()
    return (time.thread_time() - start) * 1e3


def relative_ms(run: Callable[[], object]) -> float:
    """Return the CPU time of a call in milliseconds of the reference machine.

    Garbage is not collected meanwhile: a collection takes time in proportion to all objects of
    the process, and at random falls into the reference or into the call.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        before = _cpu_ms(_reference)
        taken = _cpu_ms(run)
        after = _cpu_ms(_reference)
    finally:
        if collects:
            gc.enable()
    return taken * REFERENCE_MS * 2 / (before + after)


def timed(test: Callable[P, None]) -> Callable[P, None]:
    """Mark a test of a time limit, which passes if one of :data:`RUNS` runs passes.

    Other work on the machine only adds time, so one measurement within the limit shows that the
    limit holds, and one beyond it does not show the opposite.
    """

    @functools.wraps(test)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> None:
        for _ in range(RUNS - 1):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                continue
        return test(*args, **kwargs)

    return repeated
