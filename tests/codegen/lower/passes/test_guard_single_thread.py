"""Statements outside of thread loops guarded so that one thread executes them."""

from __future__ import annotations

import pytest

from tests.codegen.gpu.running import agrees
from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    program,
    same_results,
    text_of,
    unchanged,
)

NAME = "guard_single_thread"

FIRST = """
n = symbols("n", lower=1)

@prim_func
def add_first(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    s = alloc((n,), i32, scope="shared")
    c = alloc((n,), i32, scope="local")
    for i in thread(n, "blockIdx.x"):
        with block("first"):
            vi = spatial(i)
            s[vi] = x[vi, 0]
        with block("each"):
            ui = spatial(i)
            c[ui] = s[ui] + 1
        for a in thread(64, "threadIdx.x"):
            with block("add"):
                wi, wa = spatial(i), spatial(a)
                y[wi, wa] = x[wi, wa] + c[wi]
"""
"""The shared element is written by one thread, the register by each."""

COPY = """
@prim_func
def copy(x: Buffer[(4, {columns}), i32], y: Out[(4, {columns}), i32], z: InOut[(4,), i32]):
    {before}
    for a in thread(4, "threadIdx.y"):
        {inside}
        for b in thread({columns}, "threadIdx.x"):
            with block("copy"):
                ua, ub = spatial(a), spatial(b)
                y[ua, ub] = x[ua, ub]
"""


def copy(before: str = "pass", inside: str = "pass", columns: int = 8) -> str:
    """Return a program with statements outside of one or both thread axes."""
    return COPY.format(before=before, inside=inside, columns=columns)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, FIRST, GPU))


@pytest.mark.parametrize("n", [1, 3])
def test_results(n):
    same_results(*both(NAME, FIRST, GPU), n=n)


@pytest.mark.parametrize(
    ("text", "guard", "store"),
    [
        (copy(inside="z[a] = 5"), "if threadIdx_x == 0:", "z[threadIdx_y] = 5"),
        (copy(before="z[0] = 5"), "if threadIdx_x == 0 and threadIdx_y == 0:", "z[0] = 5"),
        (copy(inside="z[a] = 5", columns=1), "", "z[threadIdx_y] = 5"),
        (copy(before="z[0] = 5", columns=1), "if threadIdx_y == 0:", "z[0] = 5"),
    ],
    ids=["one axis", "two axes", "an axis of one thread", "the other axis"],
)
def test_guards(text, guard, store):
    first, second = both(NAME, text, GPU)
    lines = [line.strip() for line in text_of(second).splitlines() if "block(" not in line]
    assert lines[lines.index(store) - 1] == (
        guard or 'for threadIdx_y in thread(4, "threadIdx.y"):'
    )
    same_results(first, second)


def test_statements_of_all_threads_are_not_changed():
    assert unchanged(NAME, copy(), GPU)


def test_stores_into_memory_that_threads_share_are_guarded_beside_stores_into_registers():
    text = """
@prim_func
def delay(x: Buffer[(5,), f32], r: InOut[(1,), f32], y: Out[(32,), f32]):
    s = alloc((1,), f32, scope="local")
    for i in range(5):
        with block("step"):
            vi = ordered(i)
            s[0] = r[0]
            r[0] = x[vi]
    for a in thread(32, "threadIdx.x"):
        with block("use"):
            va = spatial(a)
            y[va] = s[0]
"""
    _, second = both(NAME, text, GPU)
    lines = [line.strip() for line in text_of(second).splitlines()]
    guarded = [lines[k + 1] for k, line in enumerate(lines) if line == "if threadIdx_x == 0:"]
    assert len(guarded) == 1
    assert guarded[0].startswith("r[0] = ")


RUNNING = """
n = symbols("n", lower=1)

@prim_func
def running(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    s = alloc((64,), i32, scope="shared")
    {local}
    for i in range(n):
        for k in range(64):
            with block("sums"):
                vi, vk = ordered(i), ordered(k)
                q = x[vi, vk] * 2
                s[vk] = where(vk >= 1, s[vk - 1], 0) + q
                {store}
        for a in thread(64, "threadIdx.x"):
            with block("use"):
                wi, wa = spatial(i), spatial(a)
                y[wi, wa] = s[wa] {use}
"""


def test_one_condition_around_a_loop_of_one_thread():
    """The bound value, which only the guarded store uses, is not computed by the others."""
    text = RUNNING.format(local="pass", store="pass", use="")
    _, second = both(NAME, text, GPU)
    lines = [line.strip() for line in text_of(second).splitlines()]
    assert lines[lines.index("if threadIdx_x == 0:") + 1] == "for k in range(64):"
    assert lines.count("if threadIdx_x == 0:") == 1
    agrees(program(text), program(text), {"n": 3})


def test_a_statement_of_all_threads_remains_outside_of_the_condition():
    text = RUNNING.format(
        local='c = alloc((1,), i32, scope="local")', store="c[0] = s[vk]", use="+ c[0]"
    )
    _, second = both(NAME, text, GPU)
    lines = [line.strip() for line in text_of(second).splitlines()]
    assert lines.index("for k in range(64):") < lines.index("if threadIdx_x == 0:")
    agrees(program(text), program(text), {"n": 3})


def test_all_threads_take_part_in_the_combination_of_a_reduction():
    text = """
n = symbols("n", lower=1)

@prim_func
def total(x: Buffer[(n, 64), i32], y: InOut[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        for k in thread(64, "threadIdx.x"):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
    _, second = both(NAME, text, GPU)
    lines = [line.strip() for line in text_of(second).splitlines()]
    combined = next(k for k, line in enumerate(lines) if "threads=combined" in line)
    assert combined < lines.index("if threadIdx_x == 0:")


def test_a_condition_on_several_threads_is_not_moved_around_an_exchange():
    """The threads below 4 exchange elements, so a barrier is required between the statements."""
    text = """
n = symbols("n", lower=1)

@prim_func
def turned(x: Buffer[(n, 4), i32], y: Out[(n, 4), i32]):
    s = alloc((4,), i32, scope="shared")
    for i in range(n):
        for a in thread(8, "threadIdx.x"):
            with block("keep"):
                vi, va = spatial(i), spatial(4, a)
                guard(a < 4)
                s[va] = x[vi, va]
        for b in thread(8, "threadIdx.x"):
            with block("turn"):
                wi, wb = spatial(i), spatial(4, b)
                guard(b < 4)
                y[wi, wb] = s[3 - wb]
"""
    agrees(program(text), program(text), {"n": 3})
    columns = text.replace(
        'for a in thread(8, "threadIdx.x"):', 'for a in thread(4, "threadIdx.y"):'
    )
    columns = columns.replace(
        'for b in thread(8, "threadIdx.x"):', 'for b in thread(4, "threadIdx.y"):'
    )
    wide = columns.replace(
        "    for i in range(n):",
        """    r = alloc((8,), i32, scope="shared")
    for t in thread(8, "threadIdx.x"):
        with block("other"):
            vt = spatial(t)
            r[vt] = 0
    for i in range(n):""",
    )
    agrees(program(wide), program(wide), {"n": 3})
