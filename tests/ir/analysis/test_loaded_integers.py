"""Integers loaded from memory with proved ranges: each names the discharge of its proof."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.codegen.errors import KernelError
from tilewright.ir.script import parse, to_text
from tilewright.ir.script.errors import ParseError
from tilewright.ir.verify import IllFormedProgramError

GATHER = """
@prim_func
def f(pos: Buffer[(4,), {dtype}], x: Buffer[(256,), f32], y: Out[(4,), f32]):
    for i in range(4):
        with block("w"):
            vi = spatial(i)
            with proved(pos[vi], {range}) as p:
                y[vi] = x[p - ({low})]
"""
CHECKED_BEFORE = """
n, m = symbols("n m", lower=1)

@prim_func
def f(pos: {mode}[(n,), i32], x: Buffer[(m,), f32], y: Out[(3, n), f32]):
    {first}
        with checked(pos[{index}], 0, m) as q:
            pass
    for j in range(3):
        for i in range(n):
            with block("w"):
                vj, vi = spatial(j), spatial(i)
                with proved(pos[vi], 0, {upper}, by="q") as p:
                    y[vj, vi] = x[p]
"""


def gather(limits: str, dtype: str = "u8", low: int = 0) -> str:
    return GATHER.format(range=limits, dtype=dtype, low=low)


def checked_before(
    first: str = "for k in range(n):", index: str = "k", mode: str = "Buffer", upper: str = "m"
) -> str:
    return CHECKED_BEFORE.format(first=first, index=index, mode=mode, upper=upper)


def test_a_proof_without_a_discharge_is_rejected_and_the_fix_is_a_check():
    with pytest.raises(IllFormedProgramError, match="nothing that discharges the proof") as caught:
        parse(gather("0, 256"))
    assert "checked(...)" in caught.value.hint
    parse(gather("0, 256").replace("proved", "checked"))


@pytest.mark.parametrize(
    ("dtype", "low", "upper"), [("u8", 0, 256), ("i8", -128, 128), ("i8", -128, 400)]
)
def test_the_dtype_discharges_a_range_of_all_its_values(dtype, low, upper):
    size = upper - low
    text = gather(f'{low}, {upper}, by="dtype"', dtype, low).replace("256,)", f"{size},)")
    module = parse(text)
    assert to_text(parse(to_text(module))) == to_text(module)
    pos = np.array([low, 0, 5, 100], dtype={"u8": np.uint8, "i8": np.int8}[dtype])
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(build(module)(pos, x), x[pos.astype(int) - low])


def test_a_range_smaller_than_that_of_the_dtype_is_not_proved_by_it():
    with pytest.raises(IllFormedProgramError, match=r"an element of dtype i8 is in \[-128, 128\)"):
        parse(gather('0, 128, by="dtype"', "i8"))


def test_an_unknown_discharge_is_rejected():
    with pytest.raises(ParseError, match="no discharge 'the caller'; discharges are 'dtype'"):
        parse(gather('0, 256, by="the caller"'))


def test_a_check_of_every_element_discharges_later_ranges():
    exe = build(parse(checked_before()))
    pos, x = np.array([2, 0, 1], np.int32), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(exe(pos, x), np.broadcast_to(x[pos], (3, 3)))
    with pytest.raises(KernelError, match=r"value 3, exclusive upper bound 3"):
        exe(np.array([2, 3, 1], np.int32), x)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (checked_before("for k in range(n // 2):"), "does not check every element of 'pos'"),
        (checked_before(index="0"), "does not check every element of 'pos'"),
        (
            checked_before("if n > 4:\n      for k in range(n):", index="k"),
            "does not check every element of 'pos'",
        ),
        (checked_before(mode="InOut"), "does not check every element of 'pos'"),
        (checked_before(upper="m - 1"), "is not contained in"),
    ],
)
def test_a_check_that_does_not_imply_the_range_is_rejected(text, reason):
    with pytest.raises(IllFormedProgramError, match=reason):
        parse(text)


def test_an_enclosing_check_of_the_same_element_discharges_a_wider_range():
    text = (
        gather('0, 256, by="q"', "i32")
        .replace(
            "            with proved",
            "            with checked(pos[vi], 0, 200) as q:\n              with proved",
        )
        .replace("                y[vi]", "                  y[vi]")
    )
    module = parse(text)
    pos, x = np.array([5, 199, 0, 7], np.int32), np.arange(256, dtype=np.float32)
    np.testing.assert_array_equal(build(module)(pos, x), x[pos])
