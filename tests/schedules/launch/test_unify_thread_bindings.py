"""Thread-bound loops unified to one loop per launch axis around the whole body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.kernel_errors import ThreadAxisError, UnboundKernelError, WarpError
from tilewright.ir.loop.nodes import For, Stmt
from tilewright.ir.loop.visit import transform
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr
from tilewright.schedules.launch.launch_axes import launch_axes
from tilewright.target.target import Target

from tests.codegen.gpu import kernels
from tests.codegen.gpu.running import launch
from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    program,
    rejected,
    same_results,
    text_of,
)

NAME = "unify_thread_bindings"

REVERSE = """
n = symbols("n", lower=1)

@prim_func
def reverse(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    s = alloc((n, 64), i32, scope="shared")
    for i in thread(n, "blockIdx.x"):
        for a in thread(64, "threadIdx.x"):
            with block("keep"):
                vi, va = spatial(i), spatial(a)
                s[vi, va] = x[vi, va]
        for b in thread(64, "threadIdx.x"):
            with block("turn"):
                wi, wb = spatial(i), spatial(b)
                y[wi, wb] = s[wi, 63 - wb]
"""
"""Not interpretable afterward: a thread reads an element that another thread wrote."""

COPY = """
n = symbols("n", lower=1)

@prim_func
def copy(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    for i in thread(n, "blockIdx.x"):
        for a in thread(64, "threadIdx.x"):
            with block("copy"):
                vi, va = spatial(i), spatial(a)
                y[vi, va] = x[vi, va]
"""
TWICE = """
@prim_func
def twice(x: Buffer[(64,), i32], y: Out[(64,), i32], z: Out[(32,), i32]):
    for a in thread(64, "threadIdx.x"):
        with block("one"):
            va = spatial(a)
            y[va] = x[va]
    for b in thread(32, "threadIdx.x"):
        with block("two"):
            vb = spatial(b)
            z[vb] = x[vb]
"""
FIRST = """
n = symbols("n", lower=1)

@prim_func
def first(x: Buffer[(n, 8), i32], y: Out[(n, 8), i32]):
    t = alloc((n,), i32, scope="local")
    for i in thread(n, "blockIdx.x"):
        with block("first"):
            ui = spatial(i)
            t[ui] = x[ui, 0]
        for a in thread({threads}, "threadIdx.x"):
            for b in range({serial}):
                with block("add"):
                    vi, va = spatial(i), spatial(8, a * {serial} + b)
                    y[vi, va] = t[vi] + x[vi, va]
"""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, REVERSE, GPU))


@pytest.mark.parametrize("n", [1, 3])
def test_results(n):
    same_results(*both(NAME, REVERSE.replace("63 - wb", "wb"), GPU), n=n)


def test_axes_are_in_one_order():
    text = COPY.replace("blockIdx.x", "threadIdx.y").replace("thread(n", "thread(4")
    text = text.replace("(n, 64)", "(4, 64)").replace("threadIdx.x", "blockIdx.x")
    _, second = both(NAME, text, GPU)
    axes, _ = launch_axes(second)
    assert [axis.tag for axis in axes] == ["blockIdx.x", "threadIdx.y"]


@pytest.mark.parametrize(("threads", "serial", "annotated"), [(8, 1, True), (1, 8, False)])
def test_a_statement_outside_of_an_axis_is_annotated(threads, serial, annotated):
    """Not if the axis has one thread."""
    first, second = both(NAME, FIRST.format(threads=threads, serial=serial), GPU)
    assert ('threads=one("threadIdx.x")' in text_of(second)) == annotated
    same_results(first, second, n=2)


def test_serial_loops_of_one_iteration_are_removed():
    assert "for b in" not in text_of(both(NAME, FIRST.format(threads=8, serial=1), GPU)[1])
    assert "for b in" in text_of(both(NAME, FIRST.format(threads=4, serial=2), GPU)[1])


def test_a_function_without_thread_bound_loops():
    text = COPY.replace('thread(n, "blockIdx.x")', "range(n)").replace(
        'thread(64, "threadIdx.x")', "range(64)"
    )
    rejected(
        NAME,
        text,
        GPU,
        UnboundKernelError,
        "no loop of 'copy' is bound",
        "bind(loop, 'blockIdx.x')",
    )


def test_a_parameter_written_outside_of_the_thread_blocks():
    text = COPY.replace(
        "    for i in thread", "    with block('mark'):\n        y[0, 0] = 1\n    for i in thread"
    )
    message = "'y' is written outside of the loop bound to blockIdx.x"
    rejected(NAME, text, GPU, UnboundKernelError, message)


def test_an_unknown_axis():
    text = COPY.replace("threadIdx.x", "threadIdx.q")
    rejected(NAME, text, GPU, ThreadAxisError, "loop 'a'", "'threadIdx.q'", "vthread.z")


def test_two_extents_of_one_axis():
    message = "threadIdx.x has extent 64 in one loop and 32 in loop 'b'"
    error = rejected(NAME, TWICE, GPU, ThreadAxisError, message)
    assert error.details == {"extents": ["64", "32"]}


def test_threads_of_symbolic_extent():
    text = COPY.replace('thread(n, "blockIdx.x")', 'thread(n, "threadIdx.y")')
    message = "extent n of threadIdx.y is not a constant"
    rejected(NAME, text, GPU, ThreadAxisError, message)


def test_thread_blocks_of_an_extent_that_depends_on_a_loop():
    text = COPY.replace(
        'for a in thread(64, "threadIdx.x")', 'for a in thread(min(64, i + 1), "blockIdx.y")'
    ).replace("spatial(a)", "spatial(64, a)")
    rejected(NAME, text, GPU, ThreadAxisError, "of blockIdx.y is not known before the launch")


@pytest.fixture(scope="module")
def tensorized() -> str:
    """The text of a kernel with warp-level instructions."""
    return str(kernels.tensor_matmul())


def test_warps_of_another_extent(tensorized):
    text = tensorized.replace('thread(32, "threadIdx.x")', 'thread(16, "threadIdx.x")')
    message = "requires threadIdx.x to have extent 32; it has extent 16"
    error = rejected(NAME, text, GPU, WarpError, message)
    assert error.details == {"extent": "16"}


def test_a_warp_level_instruction_inside_of_a_loop_over_the_threads_of_a_warp(tensorized):
    other = {
        "threadIdx.x": ("threadIdx.y", as_expr(2)),
        "threadIdx.y": ("threadIdx.x", as_expr(32)),
    }

    def exchanged(statement: Stmt) -> Stmt:
        if isinstance(statement, For) and statement.thread in other:
            thread, extent = other[statement.thread]
            return replace(statement, thread=thread, extent=extent)
        return statement

    function = program(tensorized)
    function = replace(function, body=transform(function.body, exchanged))
    rejected(NAME, function, GPU, WarpError, "inside a loop bound to threadIdx.x")


def test_warp_level_instructions_without_a_loop_over_the_threads_of_a_warp():
    """The pass adds the axis."""
    text = """
@prim_func
def fill(y: Out[(16, 8), f32]):
    f = alloc((16, 8), f32, scope="fragment", layout=lambda i, j: (
        i // 16, j // 8, (i % 8) * 4 + (j // 2) % 4, ((i // 8) % 2) * 2 + j % 2
    ))
    for b in thread(1, "blockIdx.x"):
        with block("fill", intrinsic="cuda.fill.f32.16x8"):
            for i in unrolled(16):
                for j in unrolled(8):
                    with block("zero"):
                        vi, vj = spatial(i), spatial(j)
                        f[vi, vj] = 0.0
        with block("store", intrinsic="cuda.store.f32.16x8.global"):
            for k in unrolled(16):
                for l in unrolled(8):
                    with block("copy"):
                        vk, vl = spatial(k), spatial(l)
                        y[vk, vl] = f[vk, vl]
"""
    _, second = both(NAME, text, GPU)
    axes, _ = launch_axes(second)
    assert [(axis.tag, str(axis.extent)) for axis in axes] == [
        ("blockIdx.x", "1"),
        ("threadIdx.x", "32"),
    ]


def test_a_bound_loop_without_iterations_launches_the_statements_outside_of_it():
    text = """
@prim_func
def tail(x: Buffer[(8,), i32], y: Out[(8,), i32]):
    for a in thread(0, "threadIdx.x", bounds=(0, 7)):
        with block("first"):
            va = spatial(8, a)
            y[va] = x[va]
    for b in range(8):
        with block("rest"):
            vb = spatial(b)
            y[vb] = x[vb] + 1
"""
    kernel = lower_kernel(parse(text).prims[0], Target("simt"))
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    assert not launch(kernel, [x, y], {}).errors
    assert y.tolist() == [k + 1 for k in range(8)]
