"""Writes under conditions, and the elements that they write for certain."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from tilewright.ir.analysis.guarded_writes import Write, guarded, settled
from tilewright.ir.analysis.intervals import Interval
from tilewright.ir.dtype import f32
from tilewright.ir.loop.nodes import Buffer
from tilewright.ir.symbolic import Bool, Expr, Facts, Var, as_expr, evaluate, var

SIZE = 41
T = Buffer(1, "t", (as_expr(SIZE),), f32)
START = var("start", lower=0, upper=3)


def elements(write: Write, start: int) -> set[tuple[int, ...]]:
    """Return the elements of the buffer that a write writes, by enumeration."""
    names = list(write.closed)
    ranges = [range(max(evaluate(write.closed[v].extent, {START: start}), 0)) for v in names]
    found = set[tuple[int, ...]]()
    for values in product(*ranges):
        env = {START: start, **dict(zip(names, values, strict=True))}
        if all(evaluate(g, env) for g in write.guards):
            found.add(tuple(evaluate(i, env) for i in write.indices))
    return {i for i in found if 0 <= i[0] < SIZE}


def random_write(random: Random) -> tuple[Write, Bool]:
    """Return a write in loops that are or resemble the digits of a number, and a condition."""
    extents = [random.choice((1, 2, 3, 4, 5)) for _ in range(random.choice((1, 2, 2, 3)))]
    loops = [var(f"v{k}", lower=0, upper=e - 1) for k, e in enumerate(extents)]
    scales, scale = list[int](), 1
    for extent in reversed(extents):
        scales.insert(0, scale)
        scale *= random.choice((extent, extent, extent, extent, extent + 1, extent - 1))
    number: Expr = sum((v * c for v, c in zip(loops, scales, strict=True)), start=as_expr(0))
    other = random.choice((number, number, number, loops[0], number + loops[-1]))
    forms = (number, number + START, number // 2, number % 5 + START, 9 - number, number * 3)
    index: Expr = random.choice(forms)
    limit = random.choice((as_expr(random.randrange(-1, 30)), START + 7, SIZE - START))
    claims = (other < limit, other <= limit, (number < limit) & (index < SIZE), other >= limit)
    closed: dict[Var, Interval] = {
        v: Interval.full(as_expr(e)) for v, e in zip(loops, extents, strict=True)
    }
    return Write((index,), closed), random.choice(claims)


@pytest.mark.parametrize("seed", range(300))
def test_a_settled_write_writes_the_same_elements_of_the_buffer(seed: int) -> None:
    random = Random(seed)
    write, claim = random_write(random)
    before = Write(write.indices, write.closed, (claim,))
    after = settled(guarded(write, claim, T, Facts()), T, Facts())
    for start in range(4):
        assert elements(after, start) == elements(before, start)


def test_most_numbers_below_a_limit_need_no_condition() -> None:
    random = Random(0)
    pairs = [random_write(random) for _ in range(200)]
    found = [settled(guarded(w, claim, T, Facts()), T, Facts()) for w, claim in pairs]
    assert sum(not w.guards for w in found) > 80


def test_a_write_mentions_the_variables_of_its_conditions() -> None:
    i, j, n = (var(name, lower=0) for name in "ijn")
    write = Write((i,), {i: Interval.full(n)}, (j < 3,))
    assert [write.mentions(v) for v in (i, j, n, var("k"))] == [True, True, True, False]
