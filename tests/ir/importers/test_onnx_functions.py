"""Functions of ONNX models: the expansion is counted before it is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import MalformedModelError, newest_opset
from tilewright.ir.importers.onnx_functions import MOST_NODES, ExpansionLimitError
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import node_cases


def with_functions(bodies: dict[str, list[Any]], main: str) -> Any:
    """Return a model whose only node calls a function; each function maps ``a`` to ``b``."""
    from onnx import TensorProto, helper

    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function("own", name, ["a"], ["b"], nodes, opsets)
        for name, nodes in bodies.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(main, ["x"], ["y"], domain="own")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


def calls(*names: str) -> list[Any]:
    """Return a chain of nodes; ``Neg`` is an operator, other names are functions."""
    from onnx import helper

    values = ["a", *(f"t{k}" for k in range(1, len(names))), "b"]
    return [
        helper.make_node(name, [values[k]], [values[k + 1]], domain="" if name == "Neg" else "own")
        for k, name in enumerate(names)
    ]


def doubling(depth: int) -> Any:
    """Return a model of 2 to the power of ``depth`` nodes in ``depth`` functions."""
    bodies = {"F0": calls("Neg")}
    bodies |= {f"F{k}": calls(f"F{k - 1}", f"F{k - 1}") for k in range(1, depth + 1)}
    return with_functions(bodies, f"F{depth}")


@pytest.mark.parametrize("depth", [24, 60, 90])
def test_a_small_file_does_not_expand_without_limit(depth: int) -> None:
    with pytest.raises(ExpansionLimitError, match=f"expand to {2**depth} nodes") as caught:
        from_onnx(doubling(depth))
    assert f"at most {MOST_NODES} nodes" in caught.value.message


def test_large_attributes_do_not_expand_without_limit() -> None:
    bodies = {"F0": calls("Neg")}
    bodies["F0"][0].doc_string = "a" * (1 << 20)
    bodies["F1"] = calls(*["F0"] * 1100)
    model = with_functions(bodies, "F1")
    assert model.ByteSize() < 1 << 21
    with pytest.raises(ExpansionLimitError, match="1100 nodes of"):
        from_onnx(model)


def test_nested_functions_are_expanded() -> None:
    module = from_onnx(doubling(3))
    assert len(module.graph().bindings) == 8
    (found,) = run_graph(module, [np.ones(1, np.float32)])
    assert found.tolist() == [1]


@pytest.mark.parametrize(
    ("bodies", "cycle"),
    [
        ({"F": ("Neg", "F")}, "function own.F calls function own.F"),
        ({"F": ("G",), "G": ("Neg", "F")}, "own.F calls function own.G calls function own.F"),
        ({"F": ("Neg",), "G": ("G",)}, "function own.G calls function own.G"),
    ],
)
def test_recursive_functions_are_rejected(bodies: dict[str, tuple[str, ...]], cycle: str) -> None:
    model = with_functions({name: calls(*body) for name, body in bodies.items()}, "F")
    with pytest.raises(MalformedModelError, match="is recursive: .*" + cycle):
        from_onnx(model)


def test_a_recursive_call_in_a_subgraph_is_rejected() -> None:
    from onnx import helper

    graph = helper.make_graph(calls("F"), "inner", [], [])
    body = calls("Neg")
    body[0].attribute.append(helper.make_attribute("then_branch", graph))
    with pytest.raises(MalformedModelError, match="is recursive"):
        from_onnx(with_functions({"F": body}, "F"))


def test_a_function_that_is_defined_twice_is_rejected() -> None:
    model = with_functions({"F": calls("Neg")}, "F")
    model.functions.append(model.functions[0])
    with pytest.raises(MalformedModelError, match="defined twice"):
        from_onnx(model)


@pytest.mark.parametrize("depth", [100, 3000, 20_000])
def test_a_long_chain_of_calls_is_a_named_error(depth: int) -> None:
    bodies = {"F0": calls("Neg")} | {f"F{k}": calls(f"F{k - 1}") for k in range(1, depth)}
    model = with_functions(bodies, f"F{depth - 1}")
    if depth == 100:
        assert len(from_onnx(model).graph().bindings) == 1
    else:
        with pytest.raises(MalformedModelError, match="cannot be expanded"):
            from_onnx(model)


DEFINED = node_cases(
    "attention", "causal_conv_with_state", "layernormalization", "linear_attention", "swiglu",
    opset=newest_opset(),
)  # fmt: skip


@pytest.mark.parametrize("name", [n for n in sorted(DEFINED) if "fp16" not in n])
def test_operators_that_omit_optional_operands_are_expanded(name: str) -> None:
    case = DEFINED[name]
    rtol = 2**-6 if case.outputs[0].dtype.name == "bfloat16" else 1e-3
    found = run_graph(from_onnx(case.model()), list(case.inputs))
    for have, want in zip(found, case.outputs, strict=True):
        wide = (np.asarray(a, np.float64) for a in (have, want))
        np.testing.assert_allclose(*wide, rtol=rtol, atol=1e-6)
        assert (have.dtype, have.shape) == (want.dtype, want.shape)


def test_an_attention_that_omits_its_mask_but_not_later_operands() -> None:
    """The inliner of ONNX fails for the empty name of an operand."""
    body = "y = Attention<is_causal = 1>(q, k, v, , , , n)"
    shape = "float[b, 2, s, 4] q, float[b, 2, t, 4] k, float[b, 2, t, 4] v, int64[b] n"
    module = from_onnx(parsed(body, 24, shape))
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    (whole,) = run_graph(module, [q, k, v, np.array([3])])
    scores = q @ k.swapaxes(2, 3) / 2 + np.where(np.tri(3, dtype=bool), 0, -np.inf)
    weights = np.exp(scores)
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(whole, weights @ v, rtol=1e-5, atol=1e-6)


def test_a_defined_operator_in_a_branch_is_expanded() -> None:
    body = """y = If(c) <then_branch = t () => (float[n] z) { z = Swish<alpha = 2.0>(x) },
        else_branch = e () => (float[n] w) { w = Identity(x) }>"""
    module = from_onnx(parsed(body, 24, "float[n] x, bool c"))
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    (found,) = run_graph(module, [x, np.array(True)])
    np.testing.assert_allclose(found, x / (1 + np.exp(-2 * x)), rtol=1e-5)
    (found,) = run_graph(module, [x, np.array(False)])
    np.testing.assert_array_equal(found, x)


def test_a_condition_that_is_known_selects_its_branch() -> None:
    body = """s = Shape(x) r = Size(s) two = Constant<value_int = 2>() c = Equal(r, two)
        y = If(c) <then_branch = t () => (float[n] z) { z = Identity(x) },
        else_branch = e () => (float[n] w) { w = ReduceSum<keepdims = 0>(x) }>"""
    module = from_onnx(parsed(body, 18, "float[n, m] x"))
    assert "if" not in str(module)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run_graph(module, [x])[0], x)
