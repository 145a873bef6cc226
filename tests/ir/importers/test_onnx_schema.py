"""Nodes of ONNX models are compared with the schemas of their operators."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tilewright.errors import TilewrightError, UnsupportedOperatorsError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_context import HANDLERS
from tilewright.ir.importers.onnx_file import MalformedModelError
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.script import parse, to_text

from tests.ir.importers.onnx_models import parsed


def with_attribute(body: str, name: str, value: Any, opset: int = 20) -> Any:
    from onnx import helper

    model = parsed(body, opset, inputs="float[2, 2] x")
    model.graph.node[0].attribute.append(helper.make_attribute(name, value))
    return model


TENSOR = np.ones(3, np.float32)

WRONG: list[tuple[str, str, Any, str]] = [
    ("y = Transpose(x)", "perm", float("nan"), "'perm' must be integers, got a number"),
    ("y = Transpose(x)", "perm", ["a", "a"], "'perm' must be integers, got strings"),
    ("y = Softmax(x)", "axis", "a", "'axis' must be an integer, got a string"),
    ("y = Softmax(x)", "other", 1, "no attribute 'other' in opset 20"),
    ("y = Softmax <axis = 0> (x)", "axis", 1, "attribute 'axis' is given twice"),
    ("y = Gelu(x)", "approximate", 1, "'approximate' must be a string, got an integer"),
    ("y = Gelu(x)", "approximate", b"\xff", "'approximate' is not UTF-8 text"),
    ("y = LayerNormalization(x, x)", "epsilon", TENSOR, "must be a number, got a tensor"),
    ("y = LayerNormalization(x, x)", "axis", TENSOR, "must be an integer, got a tensor"),
    ("y = ScatterElements(x, x, x)", "reduction", 3, "must be a string, got an integer"),
    ("y = Gemm(x, x)", "alpha", 2, "'alpha' must be a number, got an integer"),
    ("y = SimplifiedLayerNormalization(x, x)", "epsilon", "a", "must be a number, got a string"),
]


@pytest.mark.parametrize(("body", "name", "value", "message"), WRONG, ids=[w[3] for w in WRONG])
def test_wrong_attributes_are_reported_with_their_node(
    body: str, name: str, value: Any, message: str
) -> None:
    from onnx import numpy_helper

    held = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
    with pytest.raises(MalformedModelError, match=message) as caught:
        from_onnx(with_attribute(body, name, held))
    assert caught.value.where == "node 'y'"
    assert "check_model" in caught.value.hint


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = Neg(x, x)", "expected at most 1 inputs, got 2"),
        ("y = Add(x)", "expected at least 2 inputs, got 1"),
        ("y, z, w = Neg(x)", "expected at most 1 outputs, got 3"),
        ("y = Cast(x)", "the required attribute 'to' is missing"),
        ("y = Constant()", "expected one attribute, got 0"),
        ("y = Constant <value_int = 1, value_float = 1.0> ()", "expected one attribute, got 2"),
        ("a = Cast <to = 7> (x) y = Add(x, a)", "operands must have one dtype, got f32 and i64"),
        ("a = Cast <to = 7> (x) y = Max(x, x, a)", "operands must have one dtype, got f32"),
    ],
)
def test_wrong_operands(body: str, message: str) -> None:
    with pytest.raises(MalformedModelError, match=message):
        from_onnx(parsed(body, 20, inputs="float[2, 2] x"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = Softmax <axis = 99> (x)", "axis 99 is out of range for 2 dimensions"),
        ("y = Flatten <axis = 3> (x)", "axis 3 is out of range for 2 dimensions"),
        ("y = Transpose <perm = [0, 0]> (x)", "expected a permutation of 2 dimensions"),
        ("y = Transpose <perm = [0]> (x)", "expected a permutation of 2 dimensions"),
        ("y = Transpose <perm = [0, 7]> (x)", "axis 7 is out of range for 2 dimensions"),
        ("a = Constant <value_ints = [0, 0]> () y = Unsqueeze(x, a)", "contain an axis twice"),
        ('a = Constant <value_string = "a"> () y = Add(x, a)', "value_string is not supported"),
    ],
)
def test_wrong_values_of_attributes(body: str, message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        from_onnx(parsed(body, 18, inputs="float[2, 2] x"))


def test_values_that_cannot_be_read_are_unsupported() -> None:
    from onnx import SparseTensorProto

    model = parsed("y = Constant()", inputs="float[2, 2] x")
    attribute = model.graph.node[0].attribute.add(name="sparse_value", type=11)
    attribute.sparse_tensor.CopyFrom(SparseTensorProto())
    with pytest.raises(UnsupportedOperatorsError, match="sparse_value is a sparse tensor"):
        from_onnx(model)


def test_axes_that_are_not_a_vector_are_rejected() -> None:
    from onnx import numpy_helper

    model = parsed("y = Unsqueeze(x, a)", inputs="float[2, 2] x")
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((4, 4), np.int64), "a"))
    with pytest.raises(UnsupportedOperatorsError, match="must be a vector, got 2 dimensions"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("body", "dtype"), [("y = Sign(x)", np.bool_), ("y = BitwiseOr(x, x)", np.float32)]
)
def test_operands_that_cannot_be_folded_are_rejected(body: str, dtype: Any) -> None:
    from onnx import numpy_helper

    model = parsed(body, inputs="float[2] z")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, dtype), "x"))
    with pytest.raises(MalformedModelError, match="inputs of ONNX operator"):
        from_onnx(model)


def test_the_number_of_indices_is_compared_with_the_rank_before_they_are_read() -> None:
    model = parsed("y = GatherND(x, i)", inputs="float[2, 2] x, int64[3, 8589934592] i")
    with pytest.raises(UnsupportedOperatorsError, match="at most 2 indices per element"):
        from_onnx(model)


SCALARS: tuple[Any, ...] = (0, 1, -1, 2, 7, 2**62, 0.0, 1.5, float("nan"), -1e30, "none", "x")
LISTS: tuple[Any, ...] = ([0], [0, 1], [1, 0], [0, 0], [-1, 2**40], [0.5], ["a"])
DTYPES = (np.float32, np.int64, np.int32, np.bool_, np.float64, np.uint8)


def random_tensor(name: str, rng: random.Random) -> Any:
    from onnx import numpy_helper

    shape = rng.choices([0, 1, 2, 3], k=rng.choice([0, 1, 1, 2, 2, 3]))
    values = np.random.default_rng(rng.randrange(9)).integers(-3, 4, shape)
    return numpy_helper.from_array(np.asarray(values).astype(rng.choice(DTYPES)), name)


def random_attribute(name: str, rng: random.Random) -> Any:
    from onnx import helper

    value = rng.choice([*SCALARS, *LISTS, random_tensor(name, rng)])
    return helper.make_attribute(name, value)


def random_model(rng: random.Random) -> Any:
    """Return a model of one node with random inputs and attributes."""
    from onnx import TensorProto, defs, helper

    op, opset = rng.choice(sorted(HANDLERS)), rng.choice([11, 13, 17, 18, 20, 21, 23])
    inputs, initializers = [], []
    names = [f"x{k}" for k in range(rng.choice([1, 1, 2, 2, 3, 4]))]
    for name in names:
        if rng.random() < 0.5:
            dtype = rng.choice([1, 1, 1, 2, 6, 7, 9, 10, 16])
            shape = rng.choices([0, 1, 2, 3, "n", 2**33], k=rng.randrange(4))
            inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        else:
            initializers.append(random_tensor(name, rng))
    node = helper.make_node(op, names, [f"y{k}" for k in range(rng.choice([1, 1, 1, 2]))])
    known = list(defs.get_schema(op).attributes) if defs.has(op) else ["axis"]
    node.attribute.extend(random_attribute(n, rng) for n in known if rng.random() < 0.3)
    result = helper.make_tensor_value_info("y0", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [result], initializer=initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def test_random_nodes_raise_only_named_errors(fuzz_factor: int) -> None:
    rng, outcomes = random.Random(0), {"imported": 0, "rejected": 0}
    for _ in range(250 * fuzz_factor):
        try:
            str(from_onnx(random_model(rng)))
            outcomes["imported"] += 1
        except TilewrightError:
            outcomes["rejected"] += 1
    assert min(outcomes.values()) > 10


HOSTILE_NAMES = (
    "a b", "1", "", "_", "lambda", "inf", "x" * 10_000, "../a", "a\nb", "a\0b", "\"'`", "<b>", "é",
    "a:b;exit()", "__class__", "\u202e", "n", "main", "prepare",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=ascii)
def test_hostile_names_survive_a_round_trip(name: str) -> None:
    """Use the name for the input, a dimension, a node, a value, and the output."""
    import onnx

    model = parsed("t = Neg(x) y = Abs(t)", inputs="float[n] x")
    graph = model.graph
    graph.name = graph.node[0].name = graph.node[1].doc_string = name
    graph.input[0].type.tensor_type.shape.dim[0].dim_param = name
    if name:
        graph.node[0].output[0] = graph.node[1].input[0] = name + "t"
        graph.input[0].name = graph.node[0].input[0] = name
        graph.output[0].name = graph.node[1].output[0] = name + "y"
        model.producer_name = name
    assert isinstance(model, onnx.ModelProto)
    module = from_onnx(model)
    text = to_text(module)
    assert to_text(parse(text)) == text
    (found,) = run_graph(module, [np.ones(1, np.float32)])
    assert found.tolist() == [1]
