"""Functions of ONNX models: the expansion is counted before it is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import MalformedModelError
from tilewright.ir.importers.onnx_functions import MOST_NODES, ExpansionLimitError
from tilewright.ir.interpreter.graph import run_graph


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
