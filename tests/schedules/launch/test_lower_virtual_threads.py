"""Virtual threads distributed to the statements that depend on them."""

from __future__ import annotations

import pytest

from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "lower_virtual_threads"

REVERSE = """
n = symbols("n", lower=1)

@prim_func
def reverse(x: Buffer[(n, 128), i32], y: Out[(n, 128), i32]):
    s = alloc((n, 128), i32, scope="shared")
    t = alloc((n, 64), i32, scope="local")
    for i in thread(n, "blockIdx.x"):
        for v in thread(2, "vthread"):
            for a in thread(64, "threadIdx.x"):
                with block("keep"):
                    vi, va = spatial(i), spatial(128, v * 64 + a)
                    s[vi, va] = x[vi, va]
        for v1 in thread(2, "vthread"):
            for b in thread(64, "threadIdx.x"):
                with block("take"):
                    wi, wv, wb = spatial(i), spatial(v1), spatial(b)
                    t[wi, wb] = s[wi, 127 - wv * 64 - wb]
                with block("double"):
                    ui, uv, ub = spatial(i), spatial(v1), spatial(b)
                    y[ui, uv * 64 + ub] = t[ui, ub] * 2
"""
"""Both virtual threads write all elements of t, so it gets a dimension for them."""

LOOP = """
n = symbols("n", lower=1)

@prim_func
def loop(x: Buffer[(n, 2, 4), i32], y: InOut[(2, 4), i32]):
    for v in thread(2, "{axis}"):
        for k in range(n):
            for a in thread(4, "threadIdx.x"):
                with block("sum"):
                    vv, vk, va = spatial(v), reduce(k), spatial(a)
                    y[vv, va] += x[vk, vv, va]
"""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, REVERSE, GPU))


def test_results():
    same_results(*both(NAME, REVERSE, GPU), n=2)


def test_a_temporary_with_distinct_elements_is_not_expanded():
    text = REVERSE.replace("t = alloc((n, 64)", "t = alloc((n, 128)")
    text = text.replace("t[wi, wb]", "t[wi, wv * 64 + wb]").replace(
        "t[ui, ub]", "t[ui, uv * 64 + ub]"
    )
    first, second = both(NAME, text, GPU)
    assert "t = alloc((n, 128), i32" in text_of(second)
    same_results(first, second, n=2)


def test_the_loop_moves_into_serial_loops():
    first, second = both(NAME, LOOP.format(axis="vthread.x"), GPU)
    lines = [line.strip() for line in text_of(second).splitlines()]
    assert lines.index("for k in range(n):") < lines.index("for v in unrolled(2):")
    same_results(first, second, n=3)


def test_nested_virtual_threads():
    text = LOOP.format(axis="vthread.y").replace(
        'thread(4, "threadIdx.x")', 'thread(4, "vthread.x")'
    )
    first, second = both(NAME, text, GPU)
    assert "thread(" not in text_of(second)
    same_results(first, second, n=3)


@pytest.mark.parametrize("axis", ["threadIdx.y", "blockIdx.x"])
def test_other_axes_are_not_changed(axis):
    assert unchanged(NAME, LOOP.format(axis=axis), GPU)


def test_one_virtual_thread():
    text = LOOP.format(axis="vthread").replace("thread(2,", "thread(1,").replace("2, 4", "1, 4")
    same_results(*both(NAME, text, GPU), n=3)
