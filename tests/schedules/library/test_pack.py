"""Packed right operands: in panels, and in groups whose depth is a multiple or is padded."""

from __future__ import annotations

import warnings

import pytest

from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.fuzz import oracles
from tests.fuzz.program import Program

TARGET = Target("cpu", features=("avx2",))

BYTES = """
n, m = symbols("n m", lower=0)
d = symbols("d", lower=0{symbol})

@prim_func
def random(x: Buffer[({rows}, d), u8], w: Buffer[{shape}, i8], y: {out}[{result}, i32]):
    {fact}
    for i in range(n):
        for j in range(m):
            for k in range(d):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[{at}] = i32(0)
                    y[{at}] += {product}
"""
PLAIN = {
    "symbol": "", "fact": "pass", "rows": "n", "shape": "(d, m)", "out": "Out",
    "result": "(n, m)", "at": "vi, vj", "product": "i32(x[vi, vk]) * i32(w[vk, vj])",
}  # fmt: skip
SWAPPED = {"product": "i32(w[vk, vj]) * i32(x[vi, vk])"}
TRANSPOSED = {"shape": "(m, d)", "product": "i32(w[vj, vk]) * i32(x[vi, vk])"}
SIZES = ((0, 0, 0), (1, 1, 4), (3, 5, 0), (5, 17, 8), (17, 33, 12))


def compared(text: str, module: Module, sch: Schedule, sizes) -> None:
    """Compare the native code of the scheduled program with the results of the program."""
    original = oracles.Original(Program("pack", text), module)
    function = sch.module.prims[0]
    symbols = {v.name: v for p in function.params for dim in p.buffer.shape for v in dim.free}
    kernel = oracles.native(function, "avx2", opt=0)
    for size in sizes:
        env = {symbols[name]: value for name, value in zip("nmd", size, strict=True)}
        oracles.run_native(original, kernel, env, "native code")


def by_default(text: str) -> tuple[Module, Schedule]:
    """Schedule a program by the default rules without a warning."""
    module = parse(text)
    sch = Schedule(module, TARGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sch.schedule_kernel("random")
    return module, sch


@pytest.mark.parametrize(
    ("changes", "padded", "grouped"),
    [
        ({}, True, True),
        (SWAPPED, True, True),
        (TRANSPOSED, True, True),
        ({"symbol": ", multiple_of=2"}, False, True),
        ({"symbol": ", multiple_of=4", **SWAPPED}, False, True),
        ({"fact": "fact(d % 2 == 0)"}, False, True),
        ({"rows": "n * 2", "product": "i32(x[vi * 2, vk]) * i32(w[vk, vj])"}, False, False),
        ({"symbol": ", multiple_of=2", "rows": "n * 2",
          "product": "i32(x[vi * 2, vk]) * i32(w[vk, vj])"}, False, True),
    ],
)  # fmt: skip
def test_products_of_bytes_are_grouped_where_the_depth_permits(changes, padded, grouped):
    text = BYTES.format(**{**PLAIN, **changes})
    module, sch = by_default(text)
    shown = str(sch)
    assert ("w_pad" in shown) == padded
    assert ("intrinsic=" in shown) == grouped
    odd = () if "%" in text or "multiple" in text else ((5, 17, 7), (1, 40, 1))
    compared(text, module, sch, (*SIZES, *odd))


@pytest.mark.parametrize("product", [PLAIN["product"], SWAPPED["product"]])
def test_the_copy_is_that_of_the_right_operand(product):
    text = BYTES.format(**{**PLAIN, "product": product})
    module = parse(text)
    sch = Schedule(module)
    copied = sch.pack("y", columns=8, group=2)
    sch.parallel(sch.get_loops(copied)[0])
    copy = sch.state.block(copied)
    assert {load.buffer.name for load in copy.reads} == {"w"}
    assert len(copy.writes[0].buffer.shape) == 4
    compared(text, module, sch, ((5, 17, 7), (5, 17, 8)))


UNIT_DIMENSION = """
n, m, d = symbols("n m d", lower=0)

@prim_func
def random(x: Buffer[(n, 1, d), {left}], w: Buffer[{shape}, {right}], y: Out[(1, n, m), {result}]):
    for b in range(n):
        for i in range(1):
            for j in range(m):
                for k in range(d):
                    with block("y"):
                        vb, vi, vj, vk = spatial(b), spatial(i), spatial(j), reduce(k)
                        with init(): y[vi, vb, vj] = {result}(0)
                        y[vi, vb, vj] += {result}(w[{at}]) * {result}(x[vb, vi, vk])
"""


@pytest.mark.parametrize("dtypes", [("u8", "i8", "i32"), ("i32", "i32", "i32")])
@pytest.mark.parametrize(
    ("shape", "at"),
    [
        ("(d, m)", "vk, vj"),
        ("(1, d, m)", "0, vk, vj"),
        ("(d, 1, m)", "vk, 0, vj"),
        ("(m, d, 1)", "vj, vk, 0"),
    ],
)
def test_operands_with_dimensions_of_one_element_are_packed(dtypes, shape, at):
    left, right, result = dtypes
    text = UNIT_DIMENSION.format(shape=shape, at=at, left=left, right=right, result=result)
    module, sch = by_default(text)
    assert "vectorized" in str(sch)
    compared(text, module, sch, (*SIZES, (5, 17, 7)))
