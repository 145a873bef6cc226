"""Shapes, bounds, and axes of ONNX operators that are inputs of the graph."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import CallError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

FILES = (
    "constantofshape", "cumsum", "expand", "onehot", "reducesum", "reducemax", "reshape", "slice",
    "split", "squeeze", "tile", "topk", "trilu", "unsqueeze", "rangeop",
)  # fmt: skip
CASES = node_cases(*FILES, opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_program_reads_sizes_and_axes_when_it_runs(name: str) -> None:
    interpreted(CASES[name])


def compiled(body: str, inputs: str):
    return tw.compile(from_onnx(parsed(body, 18, inputs)))


def test_one_compiled_slice_serves_every_bound() -> None:
    run = compiled(
        "y = Slice(x, starts, ends, axes, steps)",
        "float[n] x, int64[1] starts, int64[1] ends, int64[1] axes, int64[1] steps",
    )
    x = np.arange(7, dtype=np.float32)
    far = 2**62
    bounds = [0, 1, 3, 6, 7, 9, -1, -3, -7, -8, far, -far]
    for start in bounds:
        for end in bounds:
            for step in (1, 2, -1, -3):
                given = [np.array([v]) for v in (start, end, 0, step)]
                np.testing.assert_array_equal(run(x, *given), x[start:end:step], strict=True)


def test_a_step_of_zero_is_rejected_when_the_program_runs() -> None:
    run = compiled(
        "y = Slice(x, starts, ends, axes, steps)",
        "float[n] x, int64[1] starts, int64[1] ends, int64[1] axes, int64[1] steps",
    )
    zero = np.zeros(1, np.int64)
    with pytest.raises(CallError, match="given"):
        run(np.zeros(3, np.float32), zero, zero, zero, zero)


@pytest.mark.parametrize("shape", [(2, 6), (-1, 3), (4, -1), (0, 4), (12, 1), (-1, 12)])
def test_one_compiled_reshape_serves_every_shape(shape: tuple[int, int]) -> None:
    run = compiled("y = Reshape(x, s)", "float[n, m] x, int64[2] s")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = [x.shape[k] if d == 0 else d for k, d in enumerate(shape)]
    np.testing.assert_array_equal(run(x, np.array(shape)), x.reshape(wanted), strict=True)


@pytest.mark.parametrize("shape", [(5, 2), (-1, 5), (-2, -6)])
def test_a_shape_of_another_number_of_elements_is_rejected(shape: tuple[int, int]) -> None:
    run = compiled("y = Reshape(x, s)", "float[n, m] x, int64[2] s")
    with pytest.raises(CallError):
        run(np.zeros((3, 4), np.float32), np.array(shape))


def test_one_compiled_sum_serves_all_axes() -> None:
    run = compiled("y = ReduceSum<keepdims = 0>(x, axes)", "float[n, m, k] x, int64[2] axes")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for axes in [(0, 1), (1, 0), (0, 2), (-1, 1), (-3, -1)]:
        np.testing.assert_array_equal(run(x, np.array(axes)), x.sum(axes), strict=True)
    for axes in [(0, 0), (0, 3), (-4, 1), (1, -2)]:
        with pytest.raises(CallError):
            run(x, np.array(axes))


def test_known_sizes_stay_symbolic() -> None:
    module = from_onnx(parsed("s = Shape(x) y = Reshape(x, s)", 18, "float[n, m] x"))
    assert "given" not in str(module)


def test_negative_neighboring_indices_count_from_the_end() -> None:
    body = "i = Constant<value_ints = [-3, -2]>() y = Gather(x, i)"
    run = compiled(body, "float[n, m] x")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run(x), x[[-3, -2]], strict=True)
    body = "i = Constant<value_ints = [-1, 0, 1]>() y = Gather(x, i)"
    np.testing.assert_array_equal(compiled(body, "float[n, m] x")(x), x[[-1, 0, 1]], strict=True)


def test_a_bound_that_is_negative_for_some_sizes_is_not_taken_as_0() -> None:
    body = """s = Shape(x) five = Constant<value_ints = [5]>() from = Sub(s, five)
        far = Constant<value_ints = [9223372036854775807]>() y = Slice(x, from, far)"""
    run = compiled(body, "float[n] x")
    for size in (5, 9):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(run(x), x[size - 5 :], strict=True)
    with pytest.raises(CallError, match="must not count from the end"):
        run(np.zeros(3, np.float32))  # ONNX and Python return the last two elements


def test_a_bound_of_one_less_than_the_size_needs_no_check() -> None:
    body = """s = Shape(x) one = Constant<value_ints = [1]>() to = Sub(s, one)
        zero = Constant<value_ints = [0]>() y = Slice(x, zero, to)"""
    module = from_onnx(parsed(body, 18, "float[n] x"))
    assert "match_cast" not in str(module)
    run = tw.compile(module)
    for size in (0, 1, 6):
        assert len(run(np.zeros(size, np.float32))) == max(size - 1, 0)


def test_the_quotient_of_a_size_of_any_sign_stays_a_term() -> None:
    """The other elements of a shape that contains it are known, such as a 1 that broadcasts."""
    body = """s = Shape(x) three = Constant<value_ints = [3]>() less = Sub(s, three)
        two = Constant<value_ints = [2]>() half = Div(less, two)
        four = Constant<value_ints = [4]>() more = Add(half, four)
        one = Constant<value_ints = [1]>() shape = Concat<axis = 0>(one, more)
        wide = Concat<axis = 0>(two, more) a = Expand(x0, shape) b = Expand(x0, wide)
        y = Add(a, b)"""
    module = from_onnx(parsed(body, 18, "float[n] x, float x0"))
    assert "given" not in str(module)
    run = tw.compile(module)
    for size in range(9):
        found = run(np.zeros(size, np.float32), np.array(1.5, np.float32))
        quotient = int((size - 3) / 2)  # toward zero, which -1.5, -1, and -0.5 distinguish
        np.testing.assert_array_equal(found, np.full((2, quotient + 4), 3, np.float32), strict=True)
