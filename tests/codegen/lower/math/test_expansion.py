"""Every element function of floats is a thread-level operation or has an expansion."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.math import Code, apply_function
from tilewright.codegen.lower.math.expansion import (
    EXPANSIONS,
    DuplicateExpansionError,
    expansion,
)
from tilewright.codegen.lower.math.functions import UndefinedFunctionError
from tilewright.ir.dtype import DTYPES, bool_, f32, i32
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.thread.nodes import Const, Null
from tilewright.ir.thread.types import VectorType


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_lowered_for_every_dtype(name: str) -> None:
    """Complex elements are pairs of real ones in the input of this translation."""
    function = FUNCTIONS[name]
    for dtype in DTYPES.values():
        of = VectorType(dtype, 4)
        x = Const(1, of)
        if not function.accepts(dtype) or dtype.is_complex or function.result == "complex":
            continue
        value = apply_function(name, (x,) * function.arity, Code([]))
        expected = bool_ if function.predicate else dtype
        assert value.type == VectorType(expected, 4), (name, dtype)


def test_every_expansion_belongs_to_a_function() -> None:
    assert EXPANSIONS.keys() <= FUNCTIONS.keys()


def test_a_function_without_expansion_is_an_error() -> None:
    with pytest.raises(UndefinedFunctionError, match="'softplus' has no expansion"):
        apply_function("softplus", (Const(1.0, VectorType(f32)),), Code([]))


def test_an_expansion_needs_floats() -> None:
    with pytest.raises(UndefinedFunctionError, match="'exp' is not defined for dtype i32"):
        apply_function("exp", (Const(1, VectorType(i32)),), Code([]))


def test_addresses_are_not_elements() -> None:
    with pytest.raises(UndefinedFunctionError, match="not defined for addresses"):
        apply_function("abs", (Null(),), Code([]))


def test_an_expansion_is_registered_once() -> None:
    with pytest.raises(DuplicateExpansionError, match="'exp' has an expansion"):
        expansion("exp")
