"""Carried values of loops that grow at their end."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.graph.in_place_updates import InPlaceUpdates
from tilewright.ir.graph.nodes import GrowTensor
from tilewright.ir.graph.visit import all_bindings
from tilewright.ir.interpreter import run_graph
from tilewright.ir.verify import IllFormedProgramError, violations

SYMBOLS = 'n, t, u, v, w, k, j, m = symbols("n t u v w k j m", lower=0)\n'

GROWING = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x, r: Tensor[(4,), f32] = each(rows)) -> Tensor[(u, 4), f32]:
        row = reshape(r, (1, 4))
        d = concat(c, row, axis=0)
        return d
    return y
"""

USED_BEFORE = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x, r: Tensor[(4,), f32] = each(rows)) -> Tensor[(u, 4), f32]:
        total = sum(c, axes=(0,), keepdims=True)
        row = reshape(r, (1, 4))
        both = add(total, row)
        d = concat(c, both, row, axis=0)
        return d
    return y
"""

USED_AFTER = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x, r: Tensor[(4,), f32] = each(rows)) -> Tuple[
        Tensor[(u, 4), f32], Tensor[(m, 4), f32]
    ]:
        row = reshape(r, (1, 4))
        d = concat(c, row, axis=0)
        e = sum(d, axes=(0,))
        f = sum(c, axes=(0,))
        g = subtract(e, f)
        return d, g
    a = y[0]
    b = y[1]
    return a, b
"""

TWO_VALUES = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(
        c: Tensor[(t, 4), f32] = x, d: Tensor[(v, 4), f32] = x, r: Tensor[(4,), f32] = each(rows)
    ) -> Tuple[Tensor[(u, 4), f32], Tensor[(w, 4), f32]]:
        row = reshape(r, (1, 4))
        e = concat(c, row, axis=0)
        f = concat(d, row, row, axis=0)
        return f, e
    a = y[0]
    b = y[1]
    return a, b
"""

BOTH_GROW = TWO_VALUES.replace("return f, e", "return e, f")

TWICE = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x, r: Tensor[(4,), f32] = each(rows)) -> Tensor[(u, 4), f32]:
        row = reshape(r, (1, 4))
        d = concat(c, row, axis=0)
        e = concat(d, row, axis=0)
        return e
    return y
"""

NESTED = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x) -> Tensor[(u, 4), f32]:
        @loop(j, count=2)
        def z(d: Tensor[(v, 4), f32] = c) -> Tensor[(w, 4), f32]:
            e = strided_slice(rows, (0,), (1,), axes=(0,))
            f = concat(d, e, axis=0)
            return f
        return z
    return y
"""

CONDITION = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    zero = full((), 0.0, dtype="f32")
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x, s: Tensor[(), f32] = zero) -> Tuple[
        Tensor[(u, 4), f32], Tensor[(), f32]
    ]:
        more = less(s, 3.0)
        while more:
            row = full((1, 4), 1.5, dtype="f32")
            d = concat(c, row, axis=0)
            e = add(s, 1.0)
            return d, e
    a = y[0]
    return a
"""

BRANCH = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    @loop(k, count=m)
    def y(c: Tensor[(t, 4), f32] = x, r: Tensor[(4,), f32] = each(rows)) -> Tensor[(u, 4), f32]:
        total = sum(r)
        more = less(total, 2.0)
        row = reshape(r, (1, 4))
        if more:
            d = concat(c, row, axis=0)
            e = concat(d, row, axis=0)
            h: Tensor[(t + 2, 4), f32] = e
        else:
            f = concat(c, row, row, axis=0)
            g = negative(f)
            h: Tensor[(t + 2, 4), f32] = g
        return h
    return y
"""

LEADING_ONES = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    x1 = reshape(x, (1, 1, n, 4))
    @loop(k, count=m)
    def y(
        c: Tensor[(1, 1, t, 4), f32] = x1, r: Tensor[(4,), f32] = each(rows)
    ) -> Tensor[(1, 1, u, 4), f32]:
        row = reshape(r, (1, 1, 1, 4))
        d = concat(c, row, axis=-2)
        return d
    return y
"""

OTHER_AXIS = """
@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(m, 4), f32]):
    x1 = permute_dims(x, axes=(1, 0))
    @loop(k, count=m)
    def y(c: Tensor[(4, t), f32] = x1, r: Tensor[(4,), f32] = each(rows)) -> Tensor[(4, u), f32]:
        row = reshape(r, (4, 1))
        d = concat(c, row, axis=1)
        return d
    return y
"""

IN_FRONT = GROWING.replace("concat(c, row, axis=0)", "concat(row, c, axis=0)")
ITSELF = GROWING.replace("concat(c, row, axis=0)", "concat(c, c, axis=0)")

PROGRAMS = {
    "growing": (GROWING, 1),
    "used before": (USED_BEFORE, 1),
    "used after": (USED_AFTER, 0),
    "exchanged": (TWO_VALUES, 0),
    "both": (BOTH_GROW, 2),
    "twice": (TWICE, 0),
    "nested": (NESTED, 1),
    "condition": (CONDITION, 1),
    "branch": (BRANCH, 0),
    "leading ones": (LEADING_ONES, 1),
    "other axis": (OTHER_AXIS, 0),
    "in front": (IN_FRONT, 0),
    "itself": (ITSELF, 0),
}


def inputs(n, m):
    rng = np.random.default_rng(n * 10 + m)
    return [rng.integers(-4, 4, (size, 4)).astype(np.float32) for size in (n, m)]


def planned(text):
    sch = tw.Schedule(tw.parse(SYMBOLS + text))
    sch.lower_graph("main")
    sch.plan_memory("main")
    return sch.module


def growths(module):
    return [
        b for b in all_bindings(module.graph("main").bindings) if isinstance(b.right, GrowTensor)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name):
    text, count = PROGRAMS[name]
    module = tw.parse(SYMBOLS + text)
    in_memory = planned(text)
    assert len(growths(in_memory)) == count
    assert not violations(in_memory)
    assert str(tw.parse(str(in_memory))) == str(in_memory)
    exe = tw.compile(module, "cpu")
    for n, m in ((0, 0), (0, 1), (1, 0), (3, 5), (2, 9), (5, 2)):
        args = inputs(n, max(m, 1) if name == "nested" else m)
        expected = run_graph(module, args)
        for found in (run_graph(in_memory, args), exe(*args), exe(*args)):
            results = found if isinstance(found, tuple | list) else (found,)
            for a, b in zip(results, expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_later_use_is_the_reason_of_a_copy():
    graph = tw.parse(SYMBOLS + USED_AFTER).graph()
    decisions = InPlaceUpdates(graph)
    appended = next(b.value for b in all_bindings(graph.bindings) if b.value.name == "d")
    assert not decisions.grows(appended)
    assert decisions.reason(appended, 0) == "'c' is used later, by 'f'"


STATE = """
@graph_func
def main(x: Tensor[(4,), f32], s: State[Tensor[(4,), f32]]):
    @loop(k, count=3)
    def y(c: Tensor[(t,), f32] = s) -> Tensor[(u,), f32]:
        d = add(c, 1.0)
        return d
    z = match_cast(y, Tensor[(4,), f32])
    w = add(x, z)
    return w, updates(s=z)
"""

GROWING_STATE = """
@graph_func
def main(x: Tensor[(4,), f32], s: State[Tensor[(4,), f32]]):
    @loop(k, count=3)
    def y(c: Tensor[(t,), f32] = s) -> Tensor[(u,), f32]:
        d = concat(c, x, axis=0)
        return d
    z = match_cast(y, Tensor[(16,), f32])
    a = strided_slice(z, (3,), (7,), axes=(0,))
    w = add(x, a)
    return w, updates(s=a)
"""


@pytest.mark.parametrize("text", [STATE, GROWING_STATE])
def test_a_varying_value_does_not_end_in_the_memory_of_a_state(text):
    module = tw.parse(SYMBOLS + text)
    exe = tw.compile(module, "cpu")
    x, state = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    for _ in range(3):
        (expected,) = run_graph(module, [x, state])
        np.testing.assert_array_equal(exe(x), expected)


def test_a_grown_value_is_a_carried_value():
    text = str(planned(GROWING))
    wrong = text.replace("d = grow(c,", "d = grow(r,")
    with pytest.raises(IllFormedProgramError, match="'r' grows, but it is not a carried value"):
        tw.parse(wrong)


def test_time_is_linear():
    """Copies of the whole value in 16,000 iterations would be 8 GB: at least 0.1 seconds."""
    text = SYMBOLS + GROWING.replace("4)", "16)").replace("(4,)", "(16,)")
    exe = tw.compile(tw.parse(text), "cpu")
    x, rows = np.zeros((1, 16), np.float32), np.zeros((16000, 16), np.float32)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        assert exe(x, rows).shape == (16001, 16)
        best = min(best, time.perf_counter() - start)
    assert best < 0.1


CONDITION = """
@graph_func
def main(x: Tensor[(n, 4), f32], r: Tensor[(1, 4), f32], limit: Tensor[(), f32]):
    @loop(k)
    def z(c: Tensor[(t, 4), f32] = x) -> Tensor[(u, 4), f32]:
        total = sum(c, axes=(0, 1))
        more = less(total, limit)
        while more:
            d = concat(c, r, axis=0)
            return d
    return z
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_the_condition_of_a_loop_reads_the_value_that_grows(n):
    """The append is in the body, so it is not between the calls of the condition."""
    module = tw.parse(SYMBOLS + CONDITION)
    arrays = [np.ones((n, 4), np.float32), np.ones((1, 4), np.float32), np.float32(13)]
    arrays[2] = np.asarray(arrays[2])
    (expected,) = run_graph(module, arrays)
    np.testing.assert_array_equal(tw.compile(module, "cpu")(*arrays), expected, strict=True)


STATIC_CACHE = """
@graph_func
def main(
    keys: State[Tensor[(2, 3, 5, 4), f32]], new: Tensor[(2, 3, 1, 4), f32], at: Tensor[(1,), i64]
):
    a = index_copy(keys, at, new, axis=2)
    b = sum(a, axes=(2,))
    return b, updates(keys=a)
"""

GROWING_CACHE = """
@graph_func
def main(x: Tensor[(2, 3, n, 4), f32], rows: Tensor[(m, 2, 3, 1, 4), f32]):
    @loop(k, count=m)
    def y(
        c: Tensor[(2, 3, t, 4), f32] = x, r: Tensor[(2, 3, 1, 4), f32] = each(rows)
    ) -> Tensor[(2, 3, u, 4), f32]:
        d = concat(c, r, axis=2)
        return d
    return y
"""


def test_a_static_cache_of_several_heads_is_updated_in_place():
    module = tw.parse(STATIC_CACHE)
    exe = tw.compile(module, "cpu")
    assert [(u.memory, u.in_place) for u in exe.memory().updates] == [("keys", True)]
    cache = np.zeros((2, 3, 5, 4), np.float32)
    for k in range(5):
        new, at = np.full((2, 3, 1, 4), k + 1, np.float32), np.array([k])
        (expected,) = run_graph(module, [cache, new, at])
        np.testing.assert_array_equal(exe(new, at), expected, strict=True)


def test_a_growing_cache_of_several_heads_is_copied():
    """Its heads are adjacent in memory, so that all of them but the first one move."""
    assert not growths(planned(GROWING_CACHE))
    rows = np.arange(4 * 2 * 3 * 4, dtype=np.float32).reshape(4, 2, 3, 1, 4)
    x = np.zeros((2, 3, 1, 4), np.float32)
    module = tw.parse(SYMBOLS + GROWING_CACHE)
    (expected,) = run_graph(module, [x, rows])
    np.testing.assert_array_equal(tw.compile(module, "cpu")(x, rows), expected, strict=True)
