"""Whether two accesses of a block's threads meet."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.gpu.touches import Touch, meet
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.nodes import NO_SOURCE, Reg
from tilewright.ir.thread.types import SHARED_POINTER

X, Y = var("x", lower=0, upper=15), var("y", lower=0, upper=3)
K = var("k", lower=0, upper=7)
N = var("n", lower=1)
AXES = {X: 16, Y: 4}
S, T = Reg("s", SHARED_POINTER), Reg("t", SHARED_POINTER)


def touch(offset, *, write=True, size=4, own=(), base=S, fixed=None):
    term = None if offset is None else as_expr(offset)
    return Touch(base, write, term, size, NO_SOURCE, frozenset(own), fixed or {})


PLAIN = Y * 64 + X * 4

APART = {
    "the same thread's": (touch(PLAIN), touch(PLAIN, write=False)),
    "the same thread's, vectors": (touch(PLAIN * 4, size=16), touch(PLAIN * 4 + 8, write=False)),
    "its own row of a loop": (
        touch(Y * 2048 + X * 128 + K * 16, own=(K,)),
        touch(Y * 2048 + X * 128 + K * 16 + 4, own=(K,), write=False),
    ),
    "rows that a loop runs through": (
        touch(K * 256 + PLAIN, own=(K,)),
        touch(K * 256 + PLAIN, own=(K,), write=False),
    ),
    "other halves": (touch(PLAIN), touch(PLAIN + 256)),
    "two readers": (touch(PLAIN, write=False), touch(252 - PLAIN, write=False)),
    "other memory": (touch(PLAIN), touch(PLAIN, base=T)),
    "one thread alone": (
        touch(0, fixed={X: as_expr(0), Y: as_expr(0)}),
        touch(0, fixed={X: as_expr(0), Y: as_expr(0)}, write=False),
    ),
    "a shift by what all have in common": (touch(PLAIN + N * 4), touch(PLAIN + N * 4)),
    "digits by division": (
        touch((X // 4) * 16 + (X % 4) * 4 + Y * 64),
        touch(X * 4 + Y * 64, write=False),
    ),
}

MEETING = {
    "turned around": (touch(PLAIN), touch(252 - PLAIN, write=False)),
    "a neighbour's": (touch(PLAIN), touch(PLAIN + 4, write=False)),
    "all threads of a column": (touch(X * 4), touch(X * 4)),
    "a vector over neighbours": (touch(PLAIN, size=8), touch(PLAIN, write=False)),
    "anywhere": (touch(None), touch(PLAIN, write=False)),
    "another round's": (touch(K * 4 + PLAIN, own=(K,)), touch(K * 4 + PLAIN, write=False)),
    "one thread for all": (
        touch(0, fixed={X: as_expr(0), Y: as_expr(0)}),
        touch(0, write=False),
    ),
    "two different threads": (
        touch(0, fixed={X: as_expr(0), Y: as_expr(0)}),
        touch(0, fixed={X: as_expr(1), Y: as_expr(0)}, write=False),
    ),
    "an unknown stride": (touch(Y * N + X * 4), touch(Y * N + X * 4)),
}


@pytest.mark.parametrize("name", APART)
def test_apart(name):
    first, second = APART[name]
    assert not meet(first, second, AXES)
    assert not meet(second, first, AXES)


@pytest.mark.parametrize("name", MEETING)
def test_meeting(name):
    first, second = MEETING[name]
    assert meet(first, second, AXES)
    assert meet(second, first, AXES)
