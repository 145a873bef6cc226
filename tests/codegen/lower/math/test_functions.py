"""Every row of the table has code, a function to be tested against, and its special values."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.math import Code, apply_function
from tilewright.codegen.lower.math.expansion import EXPANSIONS, INTEGER_EXPANSIONS
from tilewright.ir.dtype import DType, bf16, f16, f32, f64, i32
from tilewright.ir.loop.element_functions import FUNCTIONS, ElementFunction
from tilewright.ir.thread.nodes import Const
from tilewright.ir.thread.types import VectorType

from tests.amounts import covering
from tests.codegen.functions import ARRAYS, EXACT, apply, apply_all, elementwise, several
from tests.codegen.kernels import BEST, LEVELS

FLOATS = (f64, f32, f16, bf16)
ROUNDED = [f for f in FUNCTIONS.values() if f.accepts(f64) and f.units and f.ulps(f64)]


@pytest.mark.parametrize("function", ROUNDED, ids=str)
def test_rounded_functions_have_an_exact_function(function: ElementFunction) -> None:
    """A row with an error bound has a function of many digits."""
    exact_remainders = ("mod", "floordiv")  # whose results are compared bit by bit
    assert function.name in EXACT or function.name in exact_remainders
    assert function.name in ARRAYS or function.name in ("fma", "ldexp")


def test_every_expansion_belongs_to_a_row() -> None:
    for name in EXPANSIONS:
        assert FUNCTIONS[name].accepts(f32)
    for name in INTEGER_EXPANSIONS:
        assert FUNCTIONS[name].accepts(i32) or FUNCTIONS[name].operands == "word"


@pytest.mark.parametrize("name", ["exp2", "tan", "acosh", "fma", "nextafter", "copysign"])
def test_formulas_are_of_all_lanes(name: str) -> None:
    function = FUNCTIONS[name]
    x = Const(0.25, VectorType(f32, 8))
    value = apply_function(name, (x,) * function.arity, Code([]))
    assert value.type == VectorType(f32, 8)


def _same(found: np.ndarray, expected: np.ndarray, ulps: float) -> np.ndarray:
    """Return whether results are equal with their signs, or within their bound."""
    with np.errstate(all="ignore"):
        wide, exact = found.astype(np.float64), expected.astype(np.float64)
        unit = np.spacing(np.abs(expected)).astype(np.float64)
        near = np.abs(wide - exact) <= (ulps + 0.5) * unit
    nan = np.isnan(wide) & np.isnan(exact)
    return nan | ((wide == exact) | near) & (np.signbit(wide) == np.signbit(exact))


@pytest.mark.parametrize(("dtype", "level"), covering(FLOATS, LEVELS), ids=str)
def test_special_values_of_functions_of_one_float(dtype: DType, level: str) -> None:
    rows = [f for f in FUNCTIONS.values() if f.arity == 1 and f.accepts(dtype) and not f.predicate]
    cases = [(f, x, y) for f in rows for x, y in f.special]
    x = np.array([x for _, x, _ in cases]).astype(dtype.numpy)
    kernel = several(tuple((f.name, dtype) for f in rows), dtype, level)
    found = dict(zip((f.name for f in rows), apply_all(kernel, x), strict=True))
    for k, (function, operand, result) in enumerate(cases):
        expected = np.array([result]).astype(dtype.numpy)
        bound = function.ulps(dtype)
        assert _same(found[function.name][k : k + 1], expected, bound)[0], (function, operand)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_of_functions_of_several_floats(dtype: DType) -> None:
    for function in FUNCTIONS.values():
        if function.arity == 1 or not function.accepts(dtype) or function.result == "complex":
            continue
        columns = [np.array(c) for c in zip(*function.special, strict=True)]
        dtypes = [dtype, function.second or dtype, dtype][: function.arity]
        arrays = [c.astype(t.numpy) for c, t in zip(columns, dtypes, strict=False)]
        expected = columns[-1].astype(dtype.numpy)
        found = apply(elementwise(function.name, dtype, BEST, arity=function.arity), *arrays)
        either = (found == 0) & (expected == 0) & (function.name in ("min", "max"))
        assert (_same(found, expected, function.ulps(dtype)) | either).all(), function
