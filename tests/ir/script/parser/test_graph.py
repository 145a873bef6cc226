"""Parsing of states and updates: results of calls without annotations, and rejected texts."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.ir.graph.nodes import CallGraph, CallTIR, TensorInfo, TupleInfo
from tilewright.ir.script import to_text
from tilewright.ir.verify import violations

from tests.ir.graph.state_programs import KERNELS, PROGRAMS, A, X, program
from tests.ir.script.texts import unverified as parse


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_states_round_trip(name: str) -> None:
    module = parse(PROGRAMS[name])
    assert not violations(module)
    text = to_text(module)
    assert to_text(parse(text)) == text


def test_the_result_of_an_update_needs_no_annotation() -> None:
    module = parse(program(f"{A}, {X}", "a2 = call_tir(update, a, x, updates=(0,))\nreturn a2"))
    binding = module.graph().bindings[0]
    assert isinstance(binding.right, CallTIR)
    assert binding.right.updates == (0,)
    assert binding.right.outputs == ()
    assert binding.value.info == module.graph().params[0].value.info


def test_outputs_are_inferred_without_the_updated_arguments() -> None:
    module = parse(PROGRAMS["outputs and updates"])
    binding = module.graph().bindings[0]
    assert isinstance(binding.right, CallTIR)
    assert isinstance(binding.value.info, TupleInfo)
    assert binding.right.outputs == binding.value.info.fields[:1]
    assert isinstance(binding.right.outputs[0], TensorInfo)


def test_last_values_and_initial_values() -> None:
    text = 'constant("start", (8,), f32)\n' + program(
        'a: State[Tensor[(8,), f32], const("start")]', 'return {"y": a}, updates(a=a)'
    )
    func = parse(text).graph()
    assert func.params[0].initial is not None
    assert func.params[0].initial.key == "start"
    assert func.result_names == ("y",)
    assert [(u.param.name, u.value) for u in func.updates] == [("a", func.params[0].value)]
    assert str(func.updates[0]) == "a = a"
    assert func.returned == (func.params[0].value,) * 2


def test_calls_of_graphs_have_updates() -> None:
    right = parse(PROGRAMS["a called function"]).graph().bindings[0].right
    assert isinstance(right, CallGraph)
    assert right.updates == (0,)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a2 = call_tir(update, a, x, updates=0)\nreturn a2", "expected a tuple of positions"),
        ("a2 = call_tir(update, a, x, updates=(2,))\nreturn a2", "position 2, but the call has 2"),
        ("a2 = call_tir(update, a, x, updates=(1, 0))\nreturn a2", "expected increasing positions"),
        ("a2 = call_tir(update, a, x, updates=(0, 0))\nreturn a2", "expected increasing positions"),
        ("return a, updates(b=x)", "no parameter 'b'"),
        ("return a, updates(x)", "expected 0 positional arguments, got 1"),
        ("return a, updates(a=c)", "no value 'c'"),
        ("t = updates(a=a)\nreturn a", "not at the end of a return"),
    ],
)
def test_wrong_updates_are_named(body: str, message: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        parse(program(f"{A}, {X}", body))
    assert message in str(caught.value), str(caught.value)
    assert caught.value.hint


def test_an_initial_value_is_a_constant() -> None:
    text = KERNELS + "@graph_func\ndef main(a: State[Tensor[(8,), f32], 1.0]):\n    return a\n"
    with pytest.raises(TilewrightError, match="expected a constant as the initial value"):
        parse(text)
