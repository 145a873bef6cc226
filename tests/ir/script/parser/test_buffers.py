"""Allocations inside of loops, branches, lets and blocks: text, scopes, and results."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import TilewrightError
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.nodes import Alloc
from tilewright.ir.loop.visit import allocations
from tilewright.ir.script import BufferScopeError, ParseError, parse, to_text
from tilewright.ir.structural_hash import structural_equal, structural_hash
from tilewright.ir.verify import IllFormedProgramError

RAGGED = """
m, n = symbols("m n", lower=0)

@prim_func
def ragged(n: Int, x: Buffer[(m,), f32], p: Buffer[(n + 1,), i32], y: Out[(m,), f32]):
    for i in range(n):
        with checked(p[i], 0, m + 1) as lo:
            with checked(p[i + 1], 0, m + 1) as hi:
                t = alloc((hi - lo,), f32, scope="local")
                for k in range(hi - lo):
                    with block("t"):
                        vl, vk = spatial(m + 1, lo), spatial(m + 1, k)
                        t[vk] = x[vl + vk] * 2.0
                for j in range(hi - lo):
                    with block("y"):
                        wl, wh, wj = spatial(m + 1, lo), spatial(m + 1, hi), spatial(m + 1, j)
                        y[wl + wj] = t[wh - wl - wj - 1]
"""

NESTED = """
n = symbols("n", lower=0)

@prim_func
def nested(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    a = alloc((n, 8), f32)
    for i in range(n):
        b = alloc((i + 1,), f32)
        for k in range(i + 1):
            with block("b"):
                vk = spatial(n, k)
                b[vk] = 1.0
        c = alloc((8,), f32, scope="local", alignment=16)
        for j in range(8):
            with block("c"):
                vi, vj = spatial(i), spatial(j)
                s = alloc((2,), f32)
                s[0] = x[vi, vj]
                s[1] = s[0] * 2.0
                c[vj] = s[1] + 1.0
        if i % 2 == 0:
            d = alloc((), f32)
            with block("d"):
                wi = spatial(n, i)
                d[()] = b[wi]
            for e in range(8):
                with block("even"):
                    we, wf = spatial(n, i), spatial(8, e)
                    a[we, wf] = c[wf] + d[()]
        else:
            for f in range(8):
                with block("odd"):
                    xi, xf = spatial(n, i), spatial(8, f)
                    a[xi, xf] = c[xf]
    for g in range(n):
        for h in range(8):
            with block("y"):
                yi, yj = spatial(g), spatial(h)
                y[yi, yj] = a[yi, yj]
"""


def test_a_scratch_of_loaded_size_runs():
    func = parse(RAGGED).prim("ragged")
    x, p = np.arange(10, dtype=np.float32), np.array([0, 3, 3, 10], np.int32)
    (y,) = call_prim(func, [x, p], {"n": 3})
    np.testing.assert_array_equal(y, [4, 2, 0, 18, 16, 14, 12, 10, 8, 6])


def test_a_range_of_negative_length_has_no_elements():
    func = parse(RAGGED).prim("ragged")
    x, p = np.arange(4, dtype=np.float32), np.array([0, 3, 1, 4], np.int32)
    (y,) = call_prim(func, [x, p], {"n": 3})
    np.testing.assert_array_equal(y, [4, 6, 4, 2])


def test_temporaries_at_several_depths_run():
    func = parse(NESTED).prim("nested")
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    (y,) = call_prim(func, [x])
    np.testing.assert_array_equal(y, x * 2 + 1 + np.array([[1], [0], [1]]))


@pytest.mark.parametrize("text", [RAGGED, NESTED], ids=["ragged", "nested"])
def test_the_text_is_read_back_exactly(text: str):
    module = parse(text)
    again = parse(str(module))
    assert str(again) == str(module)
    for ours, theirs in zip(module.prims, again.prims, strict=True):
        assert structural_equal(ours, theirs)
        assert structural_hash(ours) == structural_hash(theirs)
        names = [(a.buffer.name, a.buffer.uid) for a in allocations(ours.body)]
        assert names == [(a.buffer.name, a.buffer.uid) for a in allocations(theirs.body)]


def test_an_allocation_in_a_loop_differs_from_one_around_it():
    inside = parse(LOOP.format(outside="", inside="t = alloc((2,), f32)"))
    outside = parse(LOOP.format(outside="t = alloc((2,), f32)", inside=""))
    assert not structural_equal(inside.prims[0], outside.prims[0])


def test_the_value_of_an_earlier_iteration_is_not_read():
    text = LOOP.replace("t[0] = x[vi]", "t[vi % 2] = x[vi]")
    (y,) = call_prim(
        parse(text.format(outside="", inside="t = alloc((2,), f32)")).prims[0],
        [np.ones(4, np.float32)],
    )
    assert np.isnan(y).tolist() == [False, True, False, True]


def test_an_allocation_around_the_whole_body_is_a_buffer_of_the_function():
    func = parse(LOOP.format(outside="t = alloc((2,), f32)", inside="")).prims[0]
    assert [b.name for b in func.buffers] == ["t"]
    (buffer,) = func.buffers
    again = type(func)(func.name, func.params, Alloc(buffer, func.body))
    assert again.buffers == (buffer,)
    assert again.body is func.body


LOOP = """
@prim_func
def f(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    {outside}
    for i in range(4):
        {inside}
        with block("t"):
            vi = spatial(i)
            t[0] = x[vi]
        with block("y"):
            wi = spatial(i)
            y[wi] = t[0]
"""

AFTER = """    for i in range(4):
        t = alloc((2,), f32)
        t[0] = x[i]
    for j in range(4):
        y[j] = t[0]"""
BEFORE = """    for i in range(4):
        t[0] = x[i]
        t = alloc((2,), f32)
        y[i] = t[0]"""
OTHER_BRANCH = """    for i in range(4):
        if i < 2:
            t = alloc((2,), f32)
            t[0] = x[i]
            y[i] = t[0]
        else:
            y[i] = t[0]"""
OUTSIDE = [
    (AFTER, 9, "after the end of its scope", "lines 6 to 7"),
    (BEFORE, 6, "before it is allocated", "lines 7 to 8"),
    (OTHER_BRANCH, 11, "after the end of its scope", "lines 7 to 9"),
]


@pytest.mark.parametrize(
    ("body", "line", "when", "span"), OUTSIDE, ids=["after", "before", "other branch"]
)
def test_a_use_outside_of_the_scope(body: str, line: int, when: str, span: str):
    head = "\n\n@prim_func\ndef f(x: Buffer[(4,), f32], y: Out[(4,), f32]):\n"
    with pytest.raises(BufferScopeError, match=f"'t' is used {when}: it exists in {span}") as found:
        parse(head + body)
    assert found.value.line == line


WRONG = [
    ("t = alloc((j,), f32)", "no variable 'j'"),
    ("t = alloc((-2,), f32)", "expected an extent of at least 0, got -2"),
    ("x = alloc((2,), f32)", "duplicate buffer 'x'"),
    ("t = alloc((2,), f32, scope='none')", "no memory scope 'none'"),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_allocations_that_are_rejected(line: str, message: str):
    with pytest.raises(ParseError) as found:
        parse(LOOP.format(outside="", inside=line))
    assert message in found.value.message


def test_a_shape_of_a_variable_that_a_block_does_not_see():
    text = LOOP.format(outside="t = alloc((1,), f32)", inside="")
    text = text.replace("wi = spatial(i)", "wi = spatial(i)\n            s = alloc((i,), f32)")
    with pytest.raises(IllFormedProgramError, match="the shape of 's' uses loop variable 'i'"):
        parse(text)


def test_a_size_that_overflows():
    text = LOOP.replace("range(4)", "range(n)").replace("(4,)", "(n,)")
    text = text.format(outside="", inside="t = alloc((i * n * n * n + 1,), f32)")
    func = parse(f"n = symbols('n', lower=0)\n{text}").prims[0]
    with pytest.raises(TilewrightError, match="limit"):
        call_prim(func, [np.zeros(70_000, np.float32)])


def test_the_accumulator_of_a_reduction_is_allocated_outside_of_it():
    text = """
@prim_func
def f(x: Buffer[(4,), f32], y: Out[(1,), f32]):
    for i in range(4):
        t = alloc((1,), f32)
        with block("t"):
            vi = reduce(i)
            with init(): t[0] = 0.0
            t[0] += x[vi]
        with block("y"):
            y[0] = t[0]
"""
    with pytest.raises(IllFormedProgramError, match="inside of the reduction loops"):
        parse(text)


def test_a_shape_is_part_of_the_printed_program():
    text = to_text(parse(RAGGED))
    assert '                t = alloc((hi - lo,), f32, scope="local")' in text.splitlines()
