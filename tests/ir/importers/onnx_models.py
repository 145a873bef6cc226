"""ONNX models for the importer tests: exported models, and small models written as text."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

from tests.ir.importers.models import bert, cached_llama


def parsed(body: str, opset: int = 18, inputs: str = "float[n, m] x", result: str = "y") -> Any:
    """Return a model with a graph of the given nodes."""
    from onnx import parser

    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    return parser.parse_model(f"{head} g ({inputs}) => (float[k] {result}) {{ {body} }}")


@cache
def wrapped_bert(attention: str) -> Any:
    """Return a BERT whose result is a plain tuple, as ONNX requires."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            found = self.model(input_ids, attention_mask=attention_mask)
            return found.last_hidden_state, found.pooler_output

    return Wrapped(bert(attention)).eval()


NAMES: dict[str, Any] = {
    "input_names": ["input_ids", "attention_mask"],
    "output_names": ["last_hidden_state", "pooler_output"],
}


def save_bert(path: Path, attention: str, *, external: bool = False) -> None:
    """Export with torch.export."""
    import torch
    from torch.export import Dim

    ids = torch.randint(0, 99, (2, 7))
    axes = {0: Dim("batch", max=128), 1: Dim("seq", max=64)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            wrapped_bert(attention),
            (ids, torch.ones_like(ids)),
            dynamo=True,
            dynamic_shapes={"input_ids": axes, "attention_mask": axes},
            verbose=False,
            **NAMES,
        )
    assert program is not None
    program.save(str(path), external_data=external)


def save_traced_bert(path: Path, attention: str) -> None:
    """Export with tracing, the format of most published models."""
    import torch

    ids = torch.randint(0, 99, (2, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            wrapped_bert(attention),
            (ids, torch.ones_like(ids)),
            str(path),
            dynamo=False,
            opset_version=14,
            dynamic_axes={name: {0: "batch", 1: "seq"} for name in NAMES["input_names"]},
            **NAMES,
        )


def save_llama(path: Path, attention: str) -> None:
    """Export a Llama with a growing cache."""
    import torch
    from torch.export import Dim

    held = [(torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)) for _ in range(2)]
    batch, length, past = (Dim(name, max=32) for name in ("batch", "seq", "past"))
    layer = {0: batch, 2: past}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            cached_llama(attention),
            (torch.randint(0, 99, (2, 3)), torch.ones(2, 8, dtype=torch.long), held),
            dynamo=True,
            dynamic_shapes={
                "ids": {0: batch, 1: length},
                "mask": {0: batch, 1: Dim("total", min=4, max=64)},
                "past": [(layer, layer)] * 2,
            },
            verbose=False,
        )
    assert program is not None
    program.save(str(path))


def attention_layer() -> Any:
    """Return one layer of attention whose cache is a pair of inputs and a pair of outputs."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    weights = [
        onnx.numpy_helper.from_array(rng.standard_normal((4, 4)).astype(np.float32), name)
        for name in ("wq", "wk", "wv")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "wq"], ["q"]),
        helper.make_node("MatMul", ["x", "wk"], ["k"]),
        helper.make_node("MatMul", ["x", "wv"], ["v"]),
        helper.make_node("Concat", ["past.0.key", "k"], ["present.0.key"], axis=-2),
        helper.make_node("Concat", ["past.0.value", "v"], ["present.0.value"], axis=1),
        helper.make_node("Transpose", ["present.0.key"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "present.0.value"], ["y"]),
    ]

    def info(name: str, size: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size, 4])

    inputs = [info("x", "seq"), info("past.0.key", "past"), info("past.0.value", "past")]
    outputs = [info("y", "seq"), info("present.0.key", "all"), info("present.0.value", "all")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
