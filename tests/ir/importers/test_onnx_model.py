"""Imported ONNX models compute the same results as PyTorch and ONNX Runtime."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.errors import TilewrightError, UnsupportedOperatorsError
from tilewright.ir.dtype import f32
from tilewright.ir.graph.nodes import Call, TensorInfo
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import MalformedModelError
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.loop.element_functions import named
from tilewright.ir.module import Module
from tilewright.ir.symbolic import to_text

from tests.ir.importers.models import (
    PAIRS,
    PAST,
    bert,
    cached_llama,
    encoder_inputs,
    llama_inputs,
    run_encoder,
    run_llama,
)
from tests.ir.importers.onnx_models import parsed, save_bert, save_llama, save_traced_bert

ONE_NODE = [
    ("y = Neg(x)", {}),
    ("y = Sqrt(x)", {}),
    ("y = Erf(x)", {}),
    ("y = Relu(x)", {}),
    ("y = Add(x, x)", {}),
    ("y = Max(x, x, x)", {}),
    ("y = Reciprocal(x)", {}),
    ("y = Transpose(x)", {}),
    ("y = Flatten <axis = 0> (x)", {}),
    ("y = Softmax(x)", {}),
    ("y = LogSoftmax <axis = 0> (x)", {}),
    ("y = ReduceSum <keepdims = 0> (x)", {}),
    ("y = ReduceMean <axes = [1]> (x)", {"opset": 17}),
    ("y = ReduceMax <axes = [-1], keepdims = 0> (x)", {"opset": 17}),
    ("y = ArgMax <axis = 1, keepdims = 0> (x)", {}),
    ("y = Cast <to = 11> (x)", {}),
    ("y = Identity(x)", {}),
    ("s = Shape(x) y = Expand(x, s)", {}),
    ("s = Size(x) y = Cast <to = 1> (s)", {}),
    ("s = Shape <start = 1> (x) y = ConstantOfShape <value = float[1] {2.5}> (s)", {}),
    ("r = Shape(x) q = Constant <value_ints = [-1]> () y = Reshape(x, q)", {}),
    ("q = Constant <value_ints = [1, 0, -1]> () y = Reshape(x, q)", {}),
    ("q = Constant <value_ints = [0, 2]> () y = Unsqueeze(x, q)", {}),
    ("q = Constant <value_ints = [2, 3]> () y = Tile(x, q)", {}),
    ("i = Constant <value_ints = [0, -1]> () y = Gather <axis = 1> (x, i)", {}),
    ("i = Constant <value_int = -1> () y = Gather(x, i)", {}),
    ("k = Constant <value_int = 0> () y = CumSum(x, k)", {}),
    ("k = Constant <value_int = 1> () y = CumSum <exclusive = 1> (x, k)", {}),
    ("k = Constant <value_int = -1> () y = CumSum <reverse = 1> (x, k)", {}),
    ("k = Constant <value_int = 0> () y = CumSum <exclusive = 1, reverse = 1> (x, k)", {}),
    ("y = Trilu(x)", {}),
    ("y = Trilu <upper = 0> (x)", {}),
    ("y = Concat <axis = 1> (x, x)", {}),
    ("a = IsNaN(x) b = Not(a) y = Where(b, x, x)", {}),
    ("a = Constant <value_float = 2.0> () y = Pow(x, a)", {}),
    ("a = Constant <value_float = -0.5> () y = Clip(x, a)", {}),
    ("y = Gemm <transB = 1, alpha = 0.5> (x, x)", {}),
    (
        (
            "a = Constant <value_ints = [1]> () "
            "b = Constant <value_ints = [9223372036854775807]> () y = Slice(x, a, b, a)"
        ),
        {},
    ),
    (
        (
            "s = Shape(x) z = ConstantOfShape <value = int64[1] {0}> (s) "
            'y = ScatterElements <reduction = "add"> (x, z, x)'
        ),
        {},
    ),
    (
        (
            "a = Constant <value_ints = [-2]> () b = Constant <value_ints = [-1]> () "
            "y = Slice(x, a, b)"
        ),
        {},
    ),
]


def interpret(module: Module, *arrays: Any) -> tuple[Any, ...]:
    return tuple(run_graph(module, list(arrays)))


@pytest.mark.parametrize(("body", "options"), ONE_NODE, ids=[b for b, _ in ONE_NODE])
def test_operators_equal_the_reference_implementation(body: str, options: dict[str, Any]) -> None:
    from onnx.reference import ReferenceEvaluator

    model = parsed(body, **options)
    module = from_onnx(model)
    for shape in ((2, 3), (3, 1), (4, 5)) if "-2" in body else ((2, 3), (1, 1), (4, 5)):
        x = np.random.default_rng(0).uniform(0.1, 3, shape).astype(np.float32)
        with np.errstate(all="ignore"):
            expected = ReferenceEvaluator(model).run(None, {"x": x})
        (found,) = interpret(module, x)
        assert found.shape == np.shape(expected[0])
        np.testing.assert_allclose(found, expected[0], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", sorted(n for n, f in named("onnx").items() if f.accepts(f32)))
def test_every_element_function_with_a_name_in_onnx_is_imported(name: str) -> None:
    function = named("onnx")[name]
    x = np.random.default_rng(0).uniform(0.05, 0.95, (2, 3)).astype(np.float32)
    x = x + 1 if name == "Acosh" else x
    module = from_onnx(parsed(f"y = {name}({', '.join(['x'] * function.arity)})"))
    (found,) = interpret(module, x)
    with np.errstate(all="ignore"):
        expected = [function.reference(*[v] * function.arity) for v in x.ravel()]
    np.testing.assert_allclose(found.ravel(), np.array(expected), rtol=2e-6, strict=True)


@pytest.fixture(scope="module", params=["exported", "traced"])
def bert_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bert") / "model.onnx"
    if request.param == "traced":
        save_traced_bert(path, "eager")
    else:
        save_bert(path, "sdpa", external=True)
    return path


def test_bert_equals_pytorch_at_every_shape(bert_file: Path) -> None:
    module = from_onnx(bert_file)
    model = bert("eager").double()
    for batch, length in PAIRS:
        inputs = encoder_inputs(batch, length)
        found = run_graph(module, inputs, precise=True)
        for have, want in zip(found, run_encoder(model, inputs), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)


def test_bert_equals_onnx_runtime(bert_file: Path) -> None:
    import onnxruntime

    module = from_onnx(str(bert_file))
    session = onnxruntime.InferenceSession(str(bert_file))
    for batch, length in PAIRS[:6]:
        inputs = encoder_inputs(batch, length)
        names = (i.name for i in session.get_inputs())
        expected = session.run(None, dict(zip(names, inputs, strict=True)))
        for have, want in zip(run_graph(module, inputs), expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_bert_keeps_names_and_computes_no_shapes(bert_file: Path) -> None:
    function = from_onnx(bert_file).graph()
    assert [p.value.name for p in function.params] == ["input_ids", "attention_mask"]
    info = function.params[0].value.info
    assert isinstance(info, TensorInfo)
    assert info.shape is not None
    assert [to_text(d) for d in info.shape] == ["batch", "seq"]
    assert function.result_names == ("last_hidden_state", "pooler_output")
    used = {b.right.op for b in function.bindings if isinstance(b.right, Call)}
    assert not {"gather_elements", "broadcast_to", "equal"} & used
    origins = {o for b in function.bindings for o in b.origins}
    assert "model.encoder.layer.0.attention.self.query" in origins
    assert any("seq <= 64" in to_text(f.predicate) for f in function.facts)


def test_llama_equals_pytorch_with_a_growing_cache(tmp_path: Path) -> None:
    path = tmp_path / "llama.onnx"
    save_llama(path, "sdpa")
    module = from_onnx(path)
    model = cached_llama("sdpa").double()
    for (batch, length), past in zip(PAIRS, cycle(PAST), strict=False):
        inputs = llama_inputs(batch, length, past)
        found = run_graph(module, inputs, precise=True)
        for have, want in zip(found, run_llama(model, inputs), strict=True):
            np.testing.assert_allclose(have, want, rtol=2e-6, atol=2e-6)


def test_dimensions_may_be_expressions_of_others() -> None:
    body = "y = Concat <axis = 0> (x, z)"
    module = from_onnx(parsed(body, inputs='float["n + 1"] z, float[n] x'))
    shapes = [p.value.info for p in module.graph().params]
    assert all(isinstance(s, TensorInfo) for s in shapes)
    found = interpret(module, np.ones(3, np.float32), np.zeros(2, np.float32))
    assert found[0].shape == (5,)


def test_unnamed_dimensions_are_named_by_input_and_axis() -> None:
    module = from_onnx(parsed("y = Neg(x)", inputs="float[?, 3] x"))
    info = module.graph().params[0].value.info
    assert isinstance(info, TensorInfo)
    assert info.shape is not None
    assert to_text(info.shape[0]) == "x_dim0"


def test_names_become_identifiers() -> None:
    model = parsed("y = Neg(x)")
    model.graph.input[0].name = "past_key_values.0.key"
    model.graph.node[0].input[0] = "past_key_values.0.key"
    assert from_onnx(model).graph().params[0].value.name == "past_key_values_0_key"


def test_functions_of_the_model_are_inlined() -> None:
    from onnx import parser

    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>'
        " g (float[n] x) => (float[n] y) { y = own.twice(x) }"
        ' <domain: "own", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }'
    )
    (found,) = interpret(from_onnx(model), np.ones(3, np.float32))
    np.testing.assert_array_equal(found, [2, 2, 2])


def defined_twice(kind: str) -> Any:
    """Return a model that defines a value twice."""
    from onnx import helper, numpy_helper

    model = parsed("y = Add(x, w)", inputs="float[1] x")
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    if kind == "initializer":
        graph.initializer.append(graph.initializer[0])
    if kind == "input":
        graph.input.append(graph.input[0])
    if kind == "node":
        graph.node.append(graph.node[0])
    if kind == "output of one node":
        graph.node.append(helper.make_node("Dropout", ["x"], ["z", "z"]))
    if kind == "node and input":
        graph.node.append(helper.make_node("Neg", ["x"], ["x"]))
    return model


@pytest.mark.parametrize(
    "kind", ["initializer", "input", "node", "output of one node", "node and input"]
)
def test_a_value_that_is_defined_twice_is_rejected(kind: str) -> None:
    with pytest.raises(MalformedModelError, match="is defined twice"):
        from_onnx(defined_twice(kind))


@pytest.mark.parametrize(
    "text",
    ["-" * 100_000 + "1", "[{[]:1},{}]", "[" * 100_000, "['a'," * 100_000 + "]", "[\0]", "['a"],
    ids=lambda text: ascii(text[:12]),
)
def test_hostile_names_of_modules_are_ignored(text: str) -> None:
    model = parsed("y = Neg(x)")
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value=text)
    assert from_onnx(model).graph().bindings[0].origins == frozenset({"y"})


def test_the_module_of_a_node_is_its_origin() -> None:
    model = parsed("y = Neg(x)")
    scopes = repr(["", "encoder", "encoder.layer.0", "neg"])
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    assert from_onnx(model).graph().bindings[0].origins == frozenset({"encoder.layer.0"})


SPLIT = "y, z = Split <axis = 0> (x, s)"


def split_model(n: str, *sizes: int) -> Any:
    from onnx import numpy_helper

    model = parsed(SPLIT, inputs=f"float[{n}] x", result="y")
    model.graph.initializer.append(numpy_helper.from_array(np.array(sizes, np.int64), "s"))
    return model


def test_the_sizes_of_split_must_sum_to_the_dimension() -> None:
    module = from_onnx(split_model("n", 2, 3))
    (found,) = interpret(module, np.arange(5, dtype=np.float32))
    assert found.tolist() == [0, 1]
    for size in (4, 6):
        with pytest.raises(TilewrightError, match="the sizes of Split must sum to the dimension"):
            interpret(module, np.ones(size, np.float32))
    with pytest.raises(TilewrightError, match="sizes of Split must sum to the dimension: 6 != 5"):
        from_onnx(split_model("6", 2, 3))
    with pytest.raises(MalformedModelError, match="3 sizes are given for 2 outputs"):
        from_onnx(split_model("6", 2, 3, 1))


def test_all_unsupported_operators_are_listed_with_their_nodes() -> None:
    body = "a = ImageDecoder(x) b = own.Mystery(a) c = RegexFullMatch(x) y = Add(a, x)"
    model = parsed(body)
    model.graph.node[2].name = "/encoder/layer.3/Det"
    with pytest.raises(UnsupportedOperatorsError) as caught:
        from_onnx(model)
    found = caught.value.details["operators"]
    assert isinstance(found, list)
    names = [str(f["operator"]) for f in found if isinstance(f, dict)]
    assert names == ["ImageDecoder", "RegexFullMatch"]
    assert "encoder.layer.3 (/encoder/layer.3/Det)" in str(caught.value)


def test_a_shape_of_unknown_length_is_rejected_by_name() -> None:
    with pytest.raises(UnsupportedOperatorsError, match="of unknown length"):
        from_onnx(parsed("y = Reshape(x, i)", inputs="float[2] x, int64[k] i"))


def test_wrong_indices_are_an_error_when_run() -> None:
    module = from_onnx(parsed("y = Gather(x, i)", inputs="float[n] x, int64[k] i"))
    with pytest.raises(Exception, match=r"index 3 is not in \[-3, 3\)"):
        interpret(module, np.ones(3, np.float32), np.array([0, 3]))
