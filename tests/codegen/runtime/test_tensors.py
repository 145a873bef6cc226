"""Conversion of arguments: integers, masked arrays, and tensors whose memory is not their value."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.codegen import Executable
from tilewright.codegen.errors import ArgumentTypeError, SizeError

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def add(x: Buffer[(n,), f32], k: Int, y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] + f32(k)
"""
X = np.ones(4, np.float32)


@pytest.fixture(scope="module")
def exe() -> Executable:
    return tw.compile(tw.parse(PROGRAM))


@pytest.mark.parametrize("value", [2**63, 2**64 + 3, -(2**63) - 1, np.uint64(2**63)])
def test_an_integer_of_more_than_64_bits_names_the_parameter(exe: Executable, value: int) -> None:
    with pytest.raises(SizeError) as caught:
        exe(X, value)
    assert caught.value.message == f"expected a 64-bit integer, got {value}"
    assert caught.value.where == "function 'add', parameter 'k' (i64)"
    assert caught.value.details["bits"] == 64 + (value == 2**64 + 3)


def test_a_very_large_integer_is_not_printed(exe: Executable) -> None:
    with pytest.raises(SizeError, match="expected a 64-bit integer, got one of 33220 bits"):
        exe(X, 10**10000)


def test_a_masked_array_is_rejected(exe: Executable) -> None:
    with pytest.raises(ArgumentTypeError, match="masked arrays are not supported") as caught:
        exe(np.ma.masked_array(X, [True, False, False, False]), 1)
    assert caught.value.hint == "x.filled(value) replaces the masked elements"


def test_a_negative_bit_is_rejected_with_the_fix(exe: Executable) -> None:
    negative = torch._neg_view(torch.arange(4.0))
    with pytest.raises(ArgumentTypeError, match="its negative bit is set") as caught:
        exe(negative, 0)
    assert caught.value.hint == "x.resolve_neg() returns its values"
    assert exe(negative.resolve_neg(), 0).tolist() == [0, -1, -2, -3]


def test_parts_of_tensors_are_accepted(exe: Executable) -> None:
    assert exe(torch.arange(8.0)[5:], 0).tolist() == [5, 6, 7]
