"""Operators of ONNX Runtime: the interpreter returns the results of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_onnx
from tilewright.ir.interpreter.graph import run_graph

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def model(op: str, inputs: list[Any], outputs: int = 1, **attributes: Any) -> Any:
    """Return a model of one node with inputs like arrays; None omits one."""
    from onnx import TensorProto, helper

    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    made = [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results[:1]]
    graph = helper.make_graph([node], "g", infos, made)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def expected(made: Any, inputs: list[Any]) -> list[np.ndarray[Any, Any]]:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {f"x{k}": x for k, x in enumerate(inputs) if x is not None})


ROWS = floats(2, 3, 8)
TABLES = [floats(16, 2), floats(16, 2)]
AT = np.array([[3, 0, 5], [1, 2, 7]])
PACKED = RNG.integers(0, 256, (5, 2, 8), dtype=np.uint8)
CASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "gelu": ("Gelu", [ROWS], {}),
    "bias": ("BiasGelu", [ROWS, floats(8)], {}),
    "fast": ("FastGelu", [ROWS, floats(8)], {}),
    "quick": ("QuickGelu", [ROWS], {"alpha": 1.5}),
    "product": ("FusedMatMul", [floats(2, 3, 4), floats(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    "product_of_columns": ("FusedMatMul", [floats(4, 3), floats(4, 5)], {"transA": 1}),
    "skip": ("SkipLayerNormalization", [ROWS, floats(2, 3, 8), floats(8), floats(8)], {}),
    "skip_bias": (
        "SkipLayerNormalization", [ROWS, floats(2, 3, 8), floats(8), None, floats(8)],
        {"epsilon": 0.1},
    ),
    "skip_rms": ("SkipSimplifiedLayerNormalization", [ROWS, floats(2, 3, 8), floats(8)], {}),
    "embedding": (
        "EmbedLayerNormalization",
        [np.array([[1, 2], [3, 0]], np.int32), np.array([[0, 1], [1, 1]], np.int32), floats(5, 4),
         floats(3, 4), floats(2, 4), floats(4), floats(4)],
        {},
    ),
    "rotary": ("RotaryEmbedding", [floats(2, 4, 3, 4), AT, *TABLES], {}),
    "rotary_pairs": ("RotaryEmbedding", [floats(2, 4, 3, 4), AT, *TABLES], {"interleaved": 1}),
    "rotary_rows": ("RotaryEmbedding", [floats(2, 3, 8), AT, *TABLES], {}),
    "rotary_start": ("RotaryEmbedding", [floats(2, 3, 8), np.array([4]), *TABLES], {}),
    "rotary_part": (
        "RotaryEmbedding", [floats(2, 3, 12), AT, *TABLES],
        {"rotary_embedding_dim": 4, "num_heads": 2},
    ),
    "bits": ("MatMulNBits", [floats(3, 32), PACKED, floats(10)], {
        "K": 32, "N": 5, "bits": 4, "block_size": 16}),
    "bits_zero": (
        "MatMulNBits", [floats(3, 32), PACKED, floats(10), RNG.integers(0, 256, 5, dtype=np.uint8)],
        {"K": 32, "N": 5, "bits": 4, "block_size": 16},
    ),
    "bits_tail": ("MatMulNBits", [floats(2, 3, 27), PACKED, floats(10)], {
        "K": 27, "N": 5, "bits": 4, "block_size": 16}),
    "attention": ("Attention", [ROWS, floats(8, 24), floats(24)], {"num_heads": 2}),
    "attention_mask": (
        "Attention", [ROWS, floats(8, 24), floats(24), np.array([[1, 1, 0], [1, 0, 0]], np.int32)],
        {"num_heads": 4, "scale": 0.3},
    ),
    "attention_lengths": (
        "Attention", [ROWS, floats(8, 24), floats(24), np.array([2, 3], np.int32)],
        {"num_heads": 2},
    ),
    "attention_causal": (
        "Attention", [ROWS, floats(8, 24), floats(24)], {"num_heads": 2, "unidirectional": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_returns_the_results_of_onnx_runtime(name: str) -> None:
    op, inputs, attributes = CASES[name]
    outputs = 2 if op == "EmbedLayerNormalization" else 1
    made = model(op, inputs, outputs, **attributes)
    found = run_graph(from_onnx(made), [x for x in inputs if x is not None])
    np.testing.assert_allclose(found[0], expected(made, inputs)[0], rtol=2e-4, atol=2e-5)


def test_the_sum_of_a_skip_is_a_result() -> None:
    x, skip, scale = floats(2, 3, 8), floats(2, 3, 8), floats(8)
    made = model("SkipSimplifiedLayerNormalization", [x, skip, scale], 1)
    made.graph.node[0].output.extend(["", "", "sum"])
    info = made.graph.output.add()
    info.CopyFrom(made.graph.output[0])
    info.name = "sum"
    _, total = run_graph(from_onnx(made), [x, skip, scale])
    np.testing.assert_array_equal(total, x + skip)


def test_a_compiled_product_of_bits_of_symbolic_rows() -> None:
    op, inputs, attributes = CASES["bits"]
    made = model(op, inputs, **attributes)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    run = tw.compile(from_onnx(made))
    for rows in (1, 4):
        x = floats(rows, 32)
        np.testing.assert_allclose(
            run(x, *inputs[1:]), expected(made, [x, *inputs[1:]])[0], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "text"),
    [
        ("MatMulNBits", [*CASES["bits"][1], None, np.zeros(32, np.int32)], CASES["bits"][2],
         "operand g_idx"),
        ("MatMulNBits", CASES["bits"][1], {**CASES["bits"][2], "bits": 3}, "3 bits"),
        ("Attention", [ROWS, floats(8, 24), floats(24), None, floats(2, 2, 2, 1, 4)],
         {"num_heads": 2}, "operand past"),
    ],
)  # fmt: skip
def test_other_forms_are_rejected_by_name(
    op: str, inputs: list[Any], attributes: dict[str, Any], text: str
) -> None:
    with pytest.raises(UnsupportedOperatorsError, match=text):
        from_onnx(model(op, inputs, **attributes))
