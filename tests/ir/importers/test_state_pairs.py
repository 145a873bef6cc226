"""Inputs and outputs that become states: growing caches, fixed tensors, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import FactError
from tilewright.ir.graph.nodes import GraphFunc
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.state_names import StatePairError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations

from tests.ir.importers.onnx_models import attention_layer, parsed

STATE = {"past": "present"}
COUNTS = (3, 1, 1, 0, 2, 1)
"""The numbers of tokens of calls."""


def tokens(batch: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(batch)
    return [rng.standard_normal((batch, n, 4)).astype(np.float32) for n in COUNTS]


@pytest.fixture(scope="module")
def module() -> Module:
    return from_onnx(attention_layer(), state=STATE)


def main(module: Module) -> GraphFunc:
    return module.graph()


def test_a_cache_has_a_capacity_and_a_length(module: Module) -> None:
    text = to_text(module)
    assert violations(module) == ()
    assert to_text(parse(text, constants=module.constants)) == text
    assert "past_0_key: State[Tensor[(batch, capacity, 4), f32]]" in text
    assert "length: State[Tensor((1,), i64, elements=(past,))]" in text
    assert 'fact(seq + past <= capacity, "capacity of state \'length\'", by="entry_check")' in text
    assert main(module).result_names == ("y",)
    assert "concat" not in text


@pytest.mark.parametrize("batch", [1, 3])
def test_calls_with_a_state_equal_onnx_runtime(module: Module, batch: int) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(attention_layer().SerializeToString())
    exe = tw.compile(module)
    state = exe.new_state(batch=batch, capacity=8)
    held = [np.zeros((batch, 8, 4), np.float32) for _ in range(2)]
    length = np.zeros(1, np.int64)
    past = [np.zeros((batch, 0, 4), np.float32) for _ in range(2)]
    for x in tokens(batch):
        expected, *past = session.run(
            None, {"x": x, "past.0.key": past[0], "past.0.value": past[1]}
        )
        found = exe(x, state=state)
        (interpreted,) = run_graph(module, [x, *held, length])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(interpreted, expected, rtol=1e-5, atol=1e-5)
        used = past[0].shape[1]
        assert state["length"] == length == used
        for name, own, cache in zip(("past_0_key", "past_0_value"), held, past, strict=True):
            for values in (own, state[name]):
                np.testing.assert_allclose(values[:, :used], cache, rtol=1e-5, atol=1e-5)
                assert not values[:, used:].any()
    assert all(u.in_place for u in exe.memory(state_sizes(batch)).updates if u.kernel)


def state_sizes(batch: int) -> dict[str, int]:
    return {"batch": batch, "seq": 1, "past": 4, "capacity": 8}


def test_a_call_beyond_the_capacity_is_an_error_and_changes_nothing(module: Module) -> None:
    exe = tw.compile(module)
    state = exe.new_state(batch=1, capacity=4)
    exe(np.ones((1, 3, 4), np.float32), state=state)
    before = {k: v.copy() for k, v in state.items()}
    with pytest.raises(FactError, match=r"seq = 2, past = 3, capacity = 4") as caught:
        exe(np.ones((1, 2, 4), np.float32), state=state)
    assert "capacity of state 'length'" in str(caught.value)
    for name, array in before.items():
        np.testing.assert_array_equal(state[name], array)
    exe(np.ones((1, 1, 4), np.float32), state=state)
    assert state["length"] == 4


def test_a_length_may_be_set_to_continue_from_an_earlier_token(module: Module) -> None:
    exe = tw.compile(module)
    state, x = exe.new_state(batch=1, capacity=8), tokens(1)[0]
    exe(x, state=state)
    second = exe(x[:, :1], state=state)
    state["length"] = 3
    np.testing.assert_array_equal(exe(x[:, :1], state=state), second)
    state["length"] = -1
    with pytest.raises(tw.TilewrightError, match="past >= 0 is false for past = -1"):
        exe(x, state=state)
    state.reset()
    assert exe(x, state=state).shape == (1, 3, 4)
    assert state["length"] == 3


def test_a_schedule_of_a_cache_is_verified(module: Module) -> None:
    sch = tw.Schedule(module)
    sch.legalize()
    sch.fuse_ops()
    sch.fuse_tir()
    assert sch.verify().ok


def test_an_output_that_is_not_a_concatenation_is_copied_to_the_cache() -> None:
    body = "t = Concat <axis = 0> (past, x) present = Neg(t) y = ReduceSum(present)"
    model = cached(body)
    exe = tw.compile(from_onnx(model, state=STATE))
    state = exe.new_state(capacity=5)
    expected = np.zeros((0, 2), np.float32)
    for n in (2, 1, 0, 2):
        x = np.full((n, 2), n + 1, np.float32)
        expected = -np.concatenate([expected, x])
        assert exe(x, state=state) == expected.sum()
        np.testing.assert_array_equal(state["past"][: len(expected)], expected)


def cached(body: str, past: str = "float[p, 2] past") -> Any:
    """Return a model with a growing tensor and two results."""
    model = parsed(body, inputs=f"float[s, 2] x, {past}")
    model.graph.output.append(type(model.graph.output[0])())
    model.graph.output[1].CopyFrom(model.graph.output[0])
    model.graph.output[1].name = "present"
    return model


def test_a_value_that_is_read_after_the_update_has_its_old_elements() -> None:
    body = "present = Concat <axis = 0> (past, x) a = ReduceSum(present) b = ReduceSum(past) "
    body += "c = Mul(a, b) y = Add(c, b)"
    module = from_onnx(cached(body), state=STATE)
    exe = tw.compile(module)
    state = exe.new_state(capacity=4)
    total = 0
    for n in (1, 1, 2):
        new = total + 2 * n
        assert exe(np.ones((n, 2), np.float32), state=state) == new * total + total
        total = new


def test_a_tensor_of_one_shape_is_a_state_without_capacity() -> None:
    body = "present = Add(past, x) y = ReduceSum(present)"
    module = from_onnx(cached(body, "float[s, 2] past"), state=STATE)
    assert [p.access for p in main(module).params] == ["in", "state"]
    exe = tw.compile(module)
    state = exe.new_state(s=3)
    for k in range(1, 4):
        assert exe(np.ones((3, 2), np.float32), state=state) == 6 * k


def test_symbols_that_grow_have_lengths_of_their_own() -> None:
    body = "present_a = Concat <axis = 0> (past_a, x) y = ReduceSum(present_a) "
    body += "present_b = Concat <axis = 0> (past_b, x, x)"
    model = parsed(body, inputs="float[s, 2] x, float[p, 2] past_a, float[q, 2] past_b")
    for name in ("present_a", "present_b"):
        output = model.graph.output.add()
        output.CopyFrom(model.graph.output[0])
        output.name = name
    module = from_onnx(model, state={"past_": "present_"})
    exe = tw.compile(module)
    state = exe.new_state(p_capacity=4, q_capacity=6)
    for k in range(1, 4):
        assert exe(np.full((1, 2), k, np.float32), state=state) == k * (k + 1)
        assert (state["p_length"], state["q_length"]) == (k, 2 * k)
    assert state["past_b"].tolist() == [[1, 1], [1, 1], [2, 2], [2, 2], [3, 3], [3, 3]]


ANOTHER_RANK = "t = Concat <axis = 0> (past, x) a = Constant <value_ints = [0]> () "
ANOTHER_RANK += "present = Unsqueeze(t, a)"
GROWN = "present = Concat <axis = 0> (past, x)"


@pytest.mark.parametrize(
    ("body", "past", "message"),
    [
        ("t = Concat <axis = 0> (past, x) present = Cast <to = 11> (t)", "float[p, 2] past",
         "their dtypes differ: the input has f32(p, 2), the output f64(s + p, 2)"),
        (ANOTHER_RANK, "float[p, 2] past",
         "their ranks differ: the input has f32"),
        ("t = Concat <axis = 0> (past, x) present = Concat <axis = 1> (t, t)", "float[p, 2] past",
         "they differ in the dimensions [0, 1]: the input has f32(p, 2), the output f32(s + p, 4)"),
        (GROWN, "float[3, 2] past", "dimension 0 of the input is 3, not a symbol"),
        ("t = Concat <axis = 0> (x, x) present = Identity(t)", "float[p, 2] past",
         "dimension 0 may become smaller: the input has f32(p, 2), the output f32(s * 2, 2)"),
    ],
    ids=["dtype", "rank", "two dimensions", "constant", "smaller"],
)  # fmt: skip
def test_tensors_that_do_not_match_are_errors(body: str, past: str, message: str) -> None:
    with pytest.raises(StatePairError) as caught:
        from_onnx(cached(body + " y = ReduceSum(x)", past), state=STATE)
    assert message in str(caught.value), str(caught.value)
    assert caught.value.where == "input 'past' and output 'present'"
    assert caught.value.hint


def test_tensors_of_one_symbol_must_grow_alike() -> None:
    body = "present_a = Concat <axis = 0> (past_a, x) y = ReduceSum(present_a) "
    model = parsed(
        body + "present_b = Concat <axis = 0> (past_b, x, x)",
        inputs="float[s, 2] x, float[p, 2] past_a, float[p, 2] past_b",
    )
    for name in ("present_a", "present_b"):
        output = model.graph.output.add()
        output.CopyFrom(model.graph.output[0])
        output.name = name
    with pytest.raises(StatePairError, match="symbol p becomes s \\* 2 \\+ p, but s \\+ p in"):
        from_onnx(model, state={"past_": "present_"})


def test_a_fixed_tensor_of_a_size_that_grows_is_an_error() -> None:
    model = parsed(
        "present = Concat <axis = 0> (past, x) hn = Neg(h) y = ReduceSum(x)",
        inputs="float[s, 2] x, float[p, 2] past, float[p] h",
    )
    for name in ("present", "hn"):
        output = model.graph.output.add()
        output.CopyFrom(model.graph.output[0])
        output.name = name
    with pytest.raises(StatePairError, match="dimension 0 is p, but p grows in input 'past'"):
        from_onnx(model, state={"past": "present", "h": "hn"})
