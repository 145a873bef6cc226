"""Reductions across threads: every operation and dtype, within and across warps."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.thread.nodes import MachineOp
from tilewright.ir.thread.text import to_text
from tilewright.ir.thread.visit import walk

from tests.codegen.gpu.running import SIMT, agrees, program

ROWS = """
n = symbols("n", lower=1)

@prim_func
def rows(x: Buffer[(n, {count}), {dtype}], y: Out[(n,), {dtype}]):
    for i in thread(n, "blockIdx.x"):
        for k0 in range({serial}):
            for k1 in thread({threads}, "threadIdx.x"):
                with block("combine"):
                    vi, vk = spatial(i), reduce({count}, k0 * {threads} + k1)
                    guard(k0 * {threads} + k1 < {count})
                    with init(): y[vi] = {start}
                    y[vi] = {update}
"""

GRID = """
n = symbols("n", lower=1)

@prim_func
def grid(x: Buffer[(n, {a}, {b}), i32], y: Out[({shape}), i32]):
    for i in thread(ceildiv(n, {rows}), "blockIdx.x"):
        {loops}
                with block("combine"):
                    vi = spatial(n, i * {rows} + {row})
                    va, vb = {iters}
                    guard(i * {rows} + {row} < n)
                    with init(): y[{index}] = 0
                    y[{index}] += x[vi, va, vb]
"""

LOWEST = {"f16": "-inf", "f32": "-inf", "f64": "-inf", "i8": "-128", "i32": "-2147483648",
          "i64": "-9223372036854775808"}  # fmt: skip


def rows(dtype, operation, count, threads):
    """Return a program that reduces rows."""
    start, update = {
        "add": ("0", "y[vi] + x[vi, vk]"),
        "mul": ("1", "y[vi] * x[vi, vk]"),
        "max": (LOWEST.get(dtype, "0"), "max(y[vi], x[vi, vk])"),
    }[operation]
    serial = -(-count // threads)
    return program(
        ROWS.format(
            dtype=dtype, count=count, threads=threads, serial=serial, start=start, update=update
        )
    )


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "u8", "i32", "i64"])
@pytest.mark.parametrize("operation", ["add", "mul", "max"])
@pytest.mark.parametrize(("count", "threads"), [(70, 32), (70, 64), (5, 8), (30, 24)])
def test_rows(dtype, operation, count, threads):
    """One warp, several warps, and thread blocks that are not whole warps."""
    short = 8 if operation == "mul" and dtype != "i32" else count
    func = rows(dtype, operation, min(count, short), threads)
    agrees(func, func, {"n": 3})


@pytest.mark.parametrize("name", ["and", "or"])
def test_booleans(name):
    text = ROWS.replace("y[vi] = {update}", f"y[vi] = y[vi] {name} x[vi, vk]").format(
        dtype="bool", count=40, threads=32, serial=2, start="True" if name == "and" else "False"
    )
    func = program(text)
    agrees(func, func, {"n": 5})


LOOPS = {
    "x": """for r in thread(4, "threadIdx.y"):
            for k in thread(8, "threadIdx.x"):""",
    "y": """for r in thread(8, "threadIdx.x"):
            for k in thread(8, "threadIdx.y"):""",
    "xy": """for k0 in thread(8, "threadIdx.y"):
            for k in thread(8, "threadIdx.x"):""",
}


@pytest.mark.parametrize("size", [1, 5, 16])
@pytest.mark.parametrize(("axes", "rows_of", "row"), [("x", 4, "r"), ("y", 8, "r"), ("xy", 1, "0")])
def test_rows_and_columns_of_threads(axes, rows_of, row, size):
    """Parts of a warp, threads that are not neighbors, two axes at once, and partial rows."""
    iters = "spatial(1, 0), reduce(8, k)" if axes != "xy" else "reduce(8, k0), reduce(8, k)"
    text = GRID.format(
        a=8 if axes == "xy" else 1, b=8, shape="n,", rows=rows_of, loops=LOOPS[axes], row=row,
        iters=iters, index="vi",
    )  # fmt: skip
    func = program(text)
    agrees(func, func, {"n": size})


def test_an_init_that_is_not_the_identity_counts_once():
    func = program(
        ROWS.format(
            dtype="i32", count=64, threads=32, serial=2, start="7", update="y[vi] + x[vi, vk]"
        )
    )
    agrees(func, func, {"n": 2})


def test_partial_sums_are_in_registers():
    """One shuffle per halving of a warp, for any row length."""
    function = lower_kernel(rows("f32", "add", 700, 32), SIMT).function
    assert sum(isinstance(s, MachineOp) for s in walk(function.body)) == 5
    assert "shared" not in to_text(function)


IN_STEPS = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def sums(
    x: Buffer[(n, {groups}, {threads}), f32],
    y: Out[(n, {groups}), f32],
    z: Out[(n, {groups}), i32],
):
    for b in thread(n, "blockIdx.x"):
        for g in thread({groups}, "threadIdx.y"):
            for t in thread({threads}, "threadIdx.x"):
                with block("last"):
                    vb, vg, vt = spatial(b), spatial(g), reduce(t)

                    @reducer(identity=(-1000.0, 0))
                    def largest(a0: f32, a1: i32, b0: f32, b1: i32):
                        return where(a0 >= b0, a0, b0), where(a0 >= b0, a1, b1)
                    with init(): y[vb, vg], z[vb, vg] = -1000.0, 0
                    y[vb, vg], z[vb, vg] = largest(x[vb, vg, vt], vt)
"""


@pytest.mark.parametrize(
    ("groups", "threads"), [(1, 256), (1, 251), (4, 64), (2, 96), (5, 48), (8, 32), (3, 7)]
)
def test_groups_of_threads_without_warps(groups, threads):
    """Each group of threads has its own total, by one or by two steps."""
    program = tw.parse(IN_STEPS.format(groups=groups, threads=threads))
    exe = tw.compile(program, target="webgpu")
    draw = np.random.default_rng(threads)
    for rows in (0, 1, 5):
        x = np.stack([draw.permutation(groups * threads) for _ in range(rows)] or [[]])
        x = x.reshape(rows, groups, threads).astype(np.float32)
        largest, at = exe(x)
        if rows:
            np.testing.assert_array_equal(largest, x.max(-1))
            np.testing.assert_array_equal(at, x.argmax(-1))
    shader = exe.llvm("sums")
    assert ("step" in shader) == (threads in (256, 64, 96, 48, 32))
