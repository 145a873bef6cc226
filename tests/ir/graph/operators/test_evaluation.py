"""Reference implementations of operators on packed integers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import DTYPES
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse

PACKED = [row.name for row in DTYPES.values() if row.is_packed]
UNARY = ("abs", "negative", "relu", "sign", "bitwise_not")
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "floor_divide": np.floor_divide, "mod": np.remainder,
}  # fmt: skip
SCANS = {
    "cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
}  # fmt: skip


def run(call: str, *inputs: np.ndarray, dtype: str) -> np.ndarray:
    """Return the result of an operator; its dtype is compared with the inferred one."""
    params = ", ".join(f"{name}: Tensor[(n, 4), {dtype}]" for name in "xy"[: len(inputs)])
    text = f'n = symbols("n")\n@graph_func\ndef main({params}):\n    z = {call}\n    return z\n'
    return np.asarray(run_graph(parse(text), list(inputs))[0])


def values(dtype: str, seed: int) -> np.ndarray:
    row = DTYPES[dtype]
    found = np.random.default_rng(seed).integers(row.lowest, row.highest + 1, (9, 4))
    return found.astype(row.numpy)


def wrapped(found: np.ndarray, dtype: str) -> np.ndarray:
    row = DTYPES[dtype]
    return (found - row.lowest) % (row.highest - row.lowest + 1) + row.lowest


@pytest.mark.parametrize("dtype", PACKED)
def test_functions_of_packed_integers_have_their_dtype(dtype):
    x = values(dtype, 0)
    for name in UNARY:
        assert run(f"{name}(x)", x, dtype=dtype).dtype == x.dtype


@pytest.mark.parametrize("dtype", PACKED)
def test_functions_of_packed_integers_wrap_and_divide_by_zero_without_warnings(dtype):
    x, y = values(dtype, 1), values(dtype, 2)
    wide = x.astype(np.int64), y.astype(np.int64)
    for name, function in BINARY.items():
        with np.errstate(all="ignore"):
            wanted = wrapped(function(*wide), dtype)
        np.testing.assert_array_equal(run(f"{name}(x, y)", x, y, dtype=dtype), wanted, name)


@pytest.mark.parametrize("dtype", PACKED)
def test_scans_of_packed_integers(dtype):
    x = values(dtype, 3)
    for name, function in SCANS.items():
        wanted = wrapped(function.accumulate(x.astype(np.int64), axis=1), dtype)
        np.testing.assert_array_equal(run(f"{name}(x, axis=1)", x, dtype=dtype), wanted, name)
