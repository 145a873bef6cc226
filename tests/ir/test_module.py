"""Access to the functions of a module by name."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant, Module, UnknownFunctionError
from tilewright.ir.script import parse
from tilewright.nearest import UnknownAttributeError

PROGRAM = """
@prim_func
def halve(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[i] * 0.5

@graph_func
def main(x: Tensor[(8,), f32]):
    a: Tensor[(8,), f32] = call_tir(halve, x)
    return a
"""


def test_a_copy_is_the_module_itself():
    module = parse(PROGRAM)
    assert copy.copy(module) is module
    assert copy.deepcopy([module])[0] is module


def test_a_module_is_pickled_as_text_with_its_constants():
    import pickle  # noqa: TID251 - the test of its support

    weights = np.arange(8, dtype=np.float32)
    text = 'constant("w", (8,), f32)\n' + PROGRAM.replace(
        "call_tir(halve, x)", 'add(x, const("w"))'
    )
    module = parse(text, constants={"w": weights})
    again = pickle.loads(pickle.dumps(module))
    assert str(again) == str(module)
    np.testing.assert_array_equal(again.constants["w"].load(), weights)


def test_functions_of_both_levels_are_accessible_by_name():
    module = parse(PROGRAM)
    assert module["halve"] is module.prim("halve")
    assert module["main"] is module.graph("main")


def test_membership_accepts_names_and_functions():
    module = parse(PROGRAM)
    assert "halve" in module
    assert "half" not in module
    assert module["halve"] in module
    assert parse(PROGRAM)["halve"] not in module
    assert 3 not in module


def test_iteration_yields_the_functions_and_len_is_their_number():
    module = parse(PROGRAM)
    assert [f.name for f in module] == ["halve", "main"]
    assert len(module) == 2
    assert len(Module()) == 0
    assert not Module()


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda m: m["halv"], "no function 'halv'; did you mean 'halve'?",
         "functions are halve, main"),
        (lambda m: m["qqq"], "no function 'qqq'", "functions are halve, main"),
        (lambda m: m[0], "no function 0", "functions are halve, main"),
        (lambda m: m.prim("halv"), "no loop-level function 'halv'; did you mean 'halve'?",
         "loop-level functions are halve"),
        (lambda m: m.graph("halve"), "no graph-level function 'halve'",
         "graph-level functions are main"),
    ],
)  # fmt: skip
def test_an_unknown_function_is_reported_with_a_similar_one(call, message, hint):
    with pytest.raises(UnknownFunctionError) as caught:
        call(parse(PROGRAM))
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_module_without_functions_has_none():
    with pytest.raises(UnknownFunctionError) as caught:
        _ = Module()["main"]
    assert caught.value.hint == "functions are none"


def test_a_constant_is_one_line():
    constant = Constant((16, 24), f32, lambda: np.zeros((16, 24), np.float32), source="w\x1b.bin")
    assert repr(constant) == "<Constant f32[16, 24]: 0.00154 MB from w\\x1b.bin>"


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (
            "halve",
            "Module has no attribute 'halve'",
            "module['halve'] is the function of this name",
        ),
        (
            "with_function",
            "Module has no attribute 'with_function'; did you mean 'with_functions'?",
            "help(Module) lists the attributes",
        ),
        (
            "function",
            "Module has no attribute 'function'; did you mean 'functions'?",
            "help(Module) lists the attributes",
        ),
    ],
)
def test_an_unknown_attribute_is_reported_with_a_similar_one(name, message, hint):
    with pytest.raises(UnknownAttributeError) as caught:
        getattr(parse(PROGRAM), name)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_copies_are_made_without_the_attribute_errors():
    module = parse(PROGRAM)
    assert copy.copy(module).functions is module.functions
    assert not hasattr(module, "__array__")
