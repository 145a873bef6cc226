"""Decompositions of operators equal their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.dtype import dtype
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.graph.operators import get_operator
from tilewright.ir.graph.operators.shape_inference import CallFacts
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.symbolic import var
from tilewright.ir.verify import violations

CASES = (
    ("softmax", 1, {}),
    ("softmax", 1, {"axis": 0, "masked_rows": "zero"}),
    ("log_softmax", 1, {"axis": 0}),
    ("layer_norm", 1, {}),
    ("layer_norm", 3, {"epsilon": 0.1}),
    ("rms_norm", 2, {}),
    ("gelu", 1, {}),
    ("gelu", 1, {"approximate": "tanh"}),
    ("silu", 1, {}),
    ("mean", 1, {"axes": (0,)}),
    ("mean", 1, {"axes": (1,), "keepdims": True}),
)


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
@pytest.mark.parametrize(("op", "count", "attributes"), CASES)
def test_decompositions(op: str, count: int, attributes: dict[str, Any], name: str) -> None:
    n, m = var("n", lower=0), var("m", lower=0)
    shapes = [(n, m), (m,), (m,)][:count]
    graph = GraphBuilder("main")
    params = [graph.param(f"x{k}", TensorInfo(s, dtype(name))) for k, s in enumerate(shapes)]
    direct = graph.emit(op, *params, **attributes)
    call = CallFacts(op, get_operator(op).signature, tuple(params), tuple(attributes.items()),
                     graph.facts)  # fmt: skip
    parts = get_operator(op).decompose(call, graph)
    assert parts is not None
    module = Module().with_functions(graph.finish([direct, *parts]))
    assert not violations(module)
    assert get_operator(op).is_defined
    tolerance = {"f16": 1e-3, "f32": 1e-5, "f64": 1e-12}[name]
    for sizes in ((3, 5), (1, 1), (0, 2)):
        rng = np.random.default_rng(sum(sizes))
        by_name = dict(zip((n, m), sizes, strict=True))
        args = [rng.standard_normal([by_name[d] for d in s]).astype(name.replace("f", "float"))
                for s in shapes]  # fmt: skip
        want, have = (np.asarray(r) for r in run_graph(module, args))
        assert have.dtype == want.dtype
        np.testing.assert_allclose(
            have.astype(float), want.astype(float), rtol=tolerance, atol=tolerance
        )
