"""Conflicts between memory accesses of the threads of a thread block."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.analysis.memory_effects import MemoryAccess, may_conflict
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.nodes import NO_SOURCE, Reg, Source
from tilewright.ir.thread.types import GLOBAL_POINTER, SHARED_POINTER

X, Y = var("x", lower=0, upper=15), var("y", lower=0, upper=3)
K = var("k", lower=0, upper=7)
N = var("n", lower=1)
AXES = {X: 16, Y: 4}
S, T = Reg("s", SHARED_POINTER), Reg("t", SHARED_POINTER)
G = Reg("g", GLOBAL_POINTER)


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


def never(claim):
    """Fail where no prover may be called."""
    raise AssertionError(claim)


@pytest.mark.parametrize("copy", [0, 1, 7, -7])
def test_unrolled_copies_in_a_loop_are_decided_without_a_prover(copy):
    """Iterations of the loop are 8 rows apart; the symbol in the address is the same."""
    rows, row = var("rows", lower=0), Y * 64 + X * 4
    first = access(N * 4 + rows * 2048 + row, loops=(rows,), write=False)
    second = access(N * 4 + rows * 2048 + row + copy * 256)
    if copy:
        assert not may_conflict(first, second, AXES, never)
    else:
        assert not may_conflict(first, second, AXES)


def test_a_pair_without_a_proof_is_a_conflict():
    first, second = CONFLICTING["an unknown stride"]
    assert may_conflict(first, second, AXES, lambda _: False)


def test_accesses_of_one_block_at_other_iterations_are_not_of_the_same_thread():
    """The proof of ``bind`` is about one iteration of the loops around the threads."""
    moved = [
        MemoryAccess(G, True, (K + X + step) * 4, 4, Source(1, "b"), frozenset(loops))
        for step, loops in ((0, ()), (0, (K,)), (1, ()))
    ]
    assert not may_conflict(moved[0], moved[0], {X: 16})
    assert may_conflict(moved[1], moved[0], {X: 16})
    assert may_conflict(moved[0], moved[2], {X: 16})
