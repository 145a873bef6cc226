"""Keyword arguments, signatures, documentation and named results of executables."""

from __future__ import annotations

import copy
import inspect
import pydoc

import numpy as np
import pytest

from tilewright.codegen import Executable, compile
from tilewright.codegen.errors import (
    ArgumentCountError,
    ArgumentNameError,
    CallError,
    OutputNameError,
)
from tilewright.codegen.manifest import ResultSpec
from tilewright.codegen.runtime.arguments import results_maker
from tilewright.ir.module import UnknownFunctionError
from tilewright.ir.script import parse
from tilewright.nearest import UnknownAttributeError

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def accumulate(x: Buffer[(n,), f32], k: Int, total: InOut[(n,), f32]):
    for i in range(n):
        total[i] = total[i] + x[i] * f32(k)

@prim_func
def copy(self: Buffer[(n,), f32], arguments: Buffer[(n,), f32], out: Out[(n,), f32]):
    for i in range(n):
        out[i] = self[i] - arguments[i]

@graph_func
def main(x: Tensor[(n, 8), f32], y: Tensor[(n, 8), f32]):
    total = add(x, y)
    logits = subtract(x, y)
    return total, logits
"""
SIGNATURE = "main(x: Tensor((n, 8), f32), y: Tensor((n, 8), f32))"


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile(parse(PROGRAM))


def pair() -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    return x, x * 3


def from_pickle(results: tuple) -> tuple:
    """Return the content of a pickle of results."""
    make, parts = results.__reduce__()
    assert parts[1] == tuple(results)
    return make(*parts)


def test_arguments_are_accepted_by_name_in_any_order(exe):
    x, y = pair()
    expected = exe(x, y)
    for results in (exe(x, y=y), exe(x=x, y=y), exe(y=y, x=x), exe["main"](y=y, x=x)):
        assert all(map(np.array_equal, results, expected))
    assert np.array_equal(exe(y, x).logits, y - x)


def test_names_that_python_uses_itself_are_parameters_too(exe):
    a, b = np.full(3, 5, np.float32), np.full(3, 2, np.float32)
    assert exe["copy"](self=a, arguments=b).tolist() == [3, 3, 3]
    assert exe["copy"](a, arguments=b).tolist() == [3, 3, 3]


def test_integers_and_written_arrays_are_accepted_by_name(exe):
    x, total = np.ones(4, np.float32), np.zeros(4, np.float32)
    result = exe["accumulate"](total=total, k=3, x=x)
    assert result is total
    assert total.tolist() == [3] * 4
    out = np.empty(4, np.float32)
    exe["copy"].into(x, out=out, arguments=total)
    assert out.tolist() == [-2] * 4


def test_profile_accepts_arguments_by_name(exe):
    x, y = pair()
    assert str(exe.profile(x, y=y, repeats=1)).startswith("profile of 'main'")


@pytest.mark.parametrize(
    ("positional", "named", "kind", "message"),
    [
        ((), {"x": 0, "z": 0}, ArgumentNameError, f"no parameter 'z' in {SIGNATURE}"),
        ((0,), {"Y": 0}, ArgumentNameError, f"no parameter 'Y' (did you mean 'y'?) in {SIGNATURE}"),
        ((0,), {"x": 0}, ArgumentNameError,
         f"parameter 'x' has two values, argument 1 and by name: {SIGNATURE}"),
        ((0, 0), {"y": 0}, ArgumentNameError,
         f"parameter 'y' has two values, argument 2 and by name: {SIGNATURE}"),
        ((), {"y": 0}, ArgumentCountError, f"no argument for 'x': {SIGNATURE}"),
        ((0, 0, 0), {"y": 0}, ArgumentCountError,
         f"number of arguments: expected 2, got 4: {SIGNATURE}"),
        ((0,), {}, ArgumentCountError, f"number of arguments: expected 2, got 1: {SIGNATURE}"),
    ],
)  # fmt: skip
def test_names_that_do_not_match_are_named_errors(exe, positional, named, kind, message):
    with pytest.raises(kind) as caught:
        exe(*positional, **named)
    assert isinstance(caught.value, CallError)
    assert caught.value.message == message
    assert caught.value.where == "function 'main'"


def test_several_results_are_a_tuple_with_names(exe):
    x, y = pair()
    results = exe(x, y)
    assert isinstance(results, tuple)
    total, logits = results
    assert results.total is total
    assert results[1] is results.logits is results["logits"] is logits
    assert results[:1] == (total,)
    with pytest.raises(OutputNameError, match="no output 'logit'; did you mean 'logits'"):
        results["logit"]
    assert results == (total, logits)
    assert repr(results).startswith("Results(total=array(")
    assert type(exe["accumulate"](x[0], 2, y[0].copy())) is np.ndarray


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, from_pickle])
def test_named_results_can_be_copied_and_pickled(exe, again):
    results = again(exe(*pair()))
    assert results._fields == ("total", "logits")
    assert np.array_equal(results.total, exe(*pair()).total)
    assert results._replace(total=1).total == 1


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "if"), ("a", "_b"), ("a", "0b"), ("a", "b c"), ("a",), ()]
)
def test_results_without_valid_names_are_a_plain_tuple(names):
    make = results_maker([ResultSpec(name, "f32", 1) for name in names])
    made = make(range(len(names)))
    assert type(made) is tuple
    assert made == tuple(range(len(names)))


def test_signatures_show_types_and_results(exe):
    expected = (
        "(x: 'Tensor((n, 8), f32)', y: 'Tensor((n, 8), f32)') -> "
        "'(total : Tensor((n, 8), f32), logits : Tensor((n, 8), f32))'"
    )
    for found in (exe.signature(), inspect.signature(exe), inspect.signature(exe["main"])):
        assert str(found) == expected
    assert str(inspect.signature(exe["accumulate"])) == (
        "(x: 'Tensor((n,), f32)', k: 'i64', total: 'Tensor((n,), f32)') -> "
        "'total : Tensor((n,), f32)'"
    )
    with pytest.raises(UnknownFunctionError, match="did you mean 'accumulate'"):
        exe.signature("acumulate")


def test_help_shows_parameters_and_results(exe):
    text = pydoc.plain(pydoc.render_doc(exe["accumulate"]))
    assert "Compiled function 'accumulate' for cpu." in text
    assert "x : Tensor((n,), f32)\n        Read." in text
    assert "total : Tensor((n,), f32)\n        Read, and written in place." in text
    assert "The parameter 'total', written in place." in text


def test_a_parameter_that_is_not_an_identifier_has_no_signature():
    from tilewright.codegen.manifest import FunctionSpec, ParamSpec
    from tilewright.codegen.runtime.arguments import bound_arguments, signature_of

    params = tuple(ParamSpec(n, "f32", "tensor", "f32", 0, "in") for n in ("input.1", "class"))
    spec = FunctionSpec("f", params, (), (), (), (), (), (), (), 0, 0)
    assert signature_of(spec) is None
    assert bound_arguments(spec, (), {"class": 2, "input.1": 1}) == (1, 2)


def test_functions_are_found_by_name(exe):
    assert list(exe) == list(exe.names) == ["main", "accumulate", "copy"]
    assert "copy" in exe
    assert "cpy" not in exe
    with pytest.raises(UnknownFunctionError, match=r"no function 'cpy'; did you mean 'copy'\?"):
        exe["cpy"]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("prfile", "Executable has no attribute 'prfile'; did you mean 'profile'?",
         "help(Executable) lists the attributes"),
        ("accumulate", "Executable has no attribute 'accumulate'",
         "exe['accumulate'] is the function of this name"),
        ("run", "Executable has no attribute 'run'", "call the executable: exe(x)"),
    ],
)  # fmt: skip
def test_unknown_attributes_are_reported_with_a_similar_one(exe, name, message, hint):
    with pytest.raises(UnknownAttributeError) as caught:
        getattr(exe, name)
    assert (caught.value.message, caught.value.hint) == (message, hint)
