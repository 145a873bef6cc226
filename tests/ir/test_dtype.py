"""The table of dtypes: one row per dtype, from which everything else is derived."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251  # the test of its support

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.analysis.cost import size_in_bytes
from tilewright.ir.dtype import (
    BYTE,
    DTYPES,
    DType,
    UnknownDTypeError,
    dtype,
    f32,
    from_numpy,
    i4,
)
from tilewright.ir.graph.live_ranges import tensor_bytes
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.loop.buffer_size import size_of
from tilewright.ir.symbolic import as_expr

ROWS = list(DTYPES.values())
FLOATS = [row for row in ROWS if row.is_float]
INTEGERS = [row for row in ROWS if row.is_integer]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_survives_pickling_and_copies(row: DType) -> None:
    assert pickle.loads(pickle.dumps(row)) is row
    assert copy.deepcopy(row) is row


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_array_dtype_belongs_to_one_row(row: DType) -> None:
    assert from_numpy(row.numpy) is row
    assert dtype(row.name) is row


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_register_is_a_machine_dtype(row: DType) -> None:
    assert row.part.register.is_machine
    assert row.part.compute.is_machine
    assert row.part.register.bits >= BYTE


@pytest.mark.parametrize("row", FLOATS, ids=str)
def test_the_derived_values_of_a_float_are_those_of_its_array_dtype(row: DType) -> None:
    known = ml_dtypes.finfo(row.numpy)
    assert row.largest == float(known.max)
    assert row.mantissa == known.nmant
    assert row.bias == 1 - known.minexp
    assert 1 + row.exponent + row.mantissa == row.bits == known.bits
    infinite = bool(np.isinf(np.asarray(np.inf).astype(row.numpy).astype(np.float64)))
    assert infinite is (row.special == "ieee")


@pytest.mark.parametrize("row", INTEGERS, ids=str)
def test_the_range_of_an_integer_is_that_of_its_array_dtype(row: DType) -> None:
    known = ml_dtypes.iinfo(row.numpy)
    assert (row.lowest, row.highest) == (int(known.min), int(known.max))


def test_names_in_other_formats_are_unique() -> None:
    for names in (
        [row.stored for row in ROWS],
        [row.onnx for row in ROWS if row.onnx],
        [row.torch for row in ROWS if row.torch],
        [row.safetensors for row in ROWS if row.safetensors],
        [(row.dlpack, row.bits) for row in ROWS],
    ):
        assert len(set(names)) == len(names)


def test_exact_conversions_are_those_to_wider_formats() -> None:
    exact = {(a.name, b.name) for a in FLOATS for b in FLOATS if a.is_exact_in(b)}
    assert {("f16", "f32"), ("bf16", "f32"), ("f8_e4m3", "f16"), ("f8_e5m2", "f16")} <= exact
    assert not {("bf16", "f16"), ("f16", "bf16"), ("f32", "bf16")} & exact


def test_128_elements_of_4_bits_are_64_bytes_for_cost_planner_and_lowering() -> None:
    function = tw.parse(
        """
@prim_func
def f(x: Buffer[(128,), i4], y: Out[(128,), i4]):
    for i in range(128):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]
"""
    ).prims[0]
    buffer = function.buffer_params[0]
    sizes = (
        size_in_bytes(buffer),
        tensor_bytes(TensorInfo((as_expr(128),), i4)),
        size_of(buffer),
    )
    assert sizes == (as_expr(64),) * 3


def test_an_unknown_dtype_lists_the_rows() -> None:
    with pytest.raises(UnknownDTypeError, match="no dtype 'float8'") as caught:
        dtype("float8")
    assert "f8_e4m3" in caught.value.hint
    with pytest.raises(UnknownDTypeError, match="no dtype corresponds to NumPy dtype 'object'"):
        from_numpy(np.dtype(object))


def test_a_row_has_no_size_in_bytes() -> None:
    assert not hasattr(f32, "bytes")
