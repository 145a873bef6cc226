"""Conflicts between memory accesses of the threads of a thread block."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.analysis.memory_effects import MemoryAccess, may_conflict
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.nodes import NO_SOURCE, Reg
from tilewright.ir.thread.types import SHARED_POINTER

X, Y = var("x", lower=0, upper=15), var("y", lower=0, upper=3)
K = var("k", lower=0, upper=7)
N = var("n", lower=1)
AXES = {X: 16, Y: 4}
S, T = Reg("s", SHARED_POINTER), Reg("t", SHARED_POINTER)


def access(offset, *, write=True, size=4, loops=(), base=S, fixed=None):
    term = None if offset is None else as_expr(offset)
    return MemoryAccess(base, write, term, size, NO_SOURCE, frozenset(loops), fixed or {})


PLAIN = Y * 64 + X * 4

DISJOINT = {
    "the same thread's": (access(PLAIN), access(PLAIN, write=False)),
    "the same thread's, vectors": (access(PLAIN * 4, size=16), access(PLAIN * 4 + 8, write=False)),
    "a row per thread, in a loop": (
        access(Y * 2048 + X * 128 + K * 16, loops=(K,)),
        access(Y * 2048 + X * 128 + K * 16 + 4, loops=(K,), write=False),
    ),
    "rows in a loop": (
        access(K * 256 + PLAIN, loops=(K,)),
        access(K * 256 + PLAIN, loops=(K,), write=False),
    ),
    "other halves": (access(PLAIN), access(PLAIN + 256)),
    "two reads": (access(PLAIN, write=False), access(252 - PLAIN, write=False)),
    "other memory": (access(PLAIN), access(PLAIN, base=T)),
    "a single thread": (
        access(0, fixed={X: as_expr(0), Y: as_expr(0)}),
        access(0, fixed={X: as_expr(0), Y: as_expr(0)}, write=False),
    ),
    "an offset that all threads share": (access(PLAIN + N * 4), access(PLAIN + N * 4)),
    "digits by division": (
        access((X // 4) * 16 + (X % 4) * 4 + Y * 64),
        access(X * 4 + Y * 64, write=False),
    ),
}

CONFLICTING = {
    "reversed": (access(PLAIN), access(252 - PLAIN, write=False)),
    "a neighbor's": (access(PLAIN), access(PLAIN + 4, write=False)),
    "all threads of a column": (access(X * 4), access(X * 4)),
    "a vector over neighbors": (access(PLAIN, size=8), access(PLAIN, write=False)),
    "anywhere": (access(None), access(PLAIN, write=False)),
    "another iteration's": (access(K * 4 + PLAIN, loops=(K,)), access(K * 4 + PLAIN, write=False)),
    "one writer, all threads read": (
        access(0, fixed={X: as_expr(0), Y: as_expr(0)}),
        access(0, write=False),
    ),
    "two different threads": (
        access(0, fixed={X: as_expr(0), Y: as_expr(0)}),
        access(0, fixed={X: as_expr(1), Y: as_expr(0)}, write=False),
    ),
    "an unknown stride": (access(Y * N + X * 4), access(Y * N + X * 4)),
}


@pytest.mark.parametrize("name", DISJOINT)
def test_disjoint_accesses(name):
    first, second = DISJOINT[name]
    assert not may_conflict(first, second, AXES)
    assert not may_conflict(second, first, AXES)


@pytest.mark.parametrize("name", CONFLICTING)
def test_conflicting_accesses(name):
    first, second = CONFLICTING[name]
    assert may_conflict(first, second, AXES)
    assert may_conflict(second, first, AXES)
