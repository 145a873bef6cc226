"""The table of element functions agrees with the dtypes of elements and with the text format."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import DTYPES, bool_, f32, i32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.element_functions import (
    FUNCTIONS,
    ElementFunction,
    ElementFunctionError,
    element_function,
    register,
)
from tilewright.ir.loop.nodes import Binary, Number, Unary
from tilewright.ir.loop.typing import dtype_problems
from tilewright.ir.script import parse, vocabulary
from tilewright.ir.words import OutsideFunctionError

CALLED = {*vocabulary.element_functions.__all__, "abs", "round", "min", "max", "pow"}


def applied(function: ElementFunction, dtype):
    """Return the function applied to ones."""
    value = True if dtype == bool_ else 1.0 if dtype.is_float else 1
    one = Number(value, dtype)
    return Unary(function.name, one) if function.arity == 1 else Binary(function.name, one, one)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_references_have_the_dtype_of_the_result(name: str) -> None:
    function = FUNCTIONS[name]
    for dtype in DTYPES.values():
        problems = list(dtype_problems(applied(function, dtype)))
        assert bool(problems) != function.accepts(dtype)
        if function.accepts(dtype):
            one = dtype.numpy.type(1)
            with np.errstate(all="ignore"):
                result = function.reference(*[one] * function.arity)
            assert np.asarray(result).dtype == function.result_dtype(dtype).numpy


@pytest.mark.parametrize("name", sorted(CALLED))
def test_functions_are_written_as_calls(name: str) -> None:
    function = FUNCTIONS[name]
    dtype = "bool" if function.predicate else "f32"
    call = f"{name}({', '.join(['x[vi]'] * function.arity)})"
    module = parse(
        f"""
@prim_func
def f(x: Buffer[(2,), f32], y: Out[(2,), {dtype}]):
    for i in range(2):
        with block("b"):
            vi = spatial(i)
            y[vi] = {call}
"""
    )
    assert call in str(module)
    y = np.empty(2, np.bool_ if function.predicate else np.float32)
    run_prim(module.prim("f"), [np.float32([0.5, 1]), y])
    assert y.tolist() == [function.reference(*[np.float32(v)] * function.arity) for v in (0.5, 1)]


def test_every_function_with_the_form_of_a_call_is_a_keyword() -> None:
    from tilewright.ir.script.parser.elements import CALLED as PARSED

    assert set(PARSED) == CALLED
    assert set(vocabulary.element_functions.__all__) <= set(vocabulary.__all__)
    with pytest.raises(OutsideFunctionError, match="'tanh' was called outside"):
        vocabulary.tanh(1.0)


def test_errors_of_the_registry() -> None:
    with pytest.raises(ElementFunctionError, match="no element function 'tan'") as raised:
        element_function("tan")
    assert "tanh" in raised.value.hint
    with pytest.raises(ElementFunctionError, match="registered twice"):
        register(FUNCTIONS["exp"])


def test_an_unknown_function_is_an_error_of_the_node() -> None:
    with pytest.raises(ElementFunctionError, match="no element function 'softplus'"):
        _ = Unary("softplus", Number(1.0, f32)).dtype
    with pytest.raises(ElementFunctionError, match="no element function 'gcd'"):
        list(dtype_problems(Binary("gcd", Number(1, i32), Number(1, i32))))
