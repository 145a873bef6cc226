"""Recurrent layers of PyTorch, for each length by one program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import tilewright as tw
from tilewright.ir.graph.nodes import Loop
from tilewright.ir.graph.visit import all_bindings
from tilewright.ir.importers.torch_recurrent import recurrent_layers_as_scans, recurrent_rules

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")

LAYERS: list[tuple[type[nn.Module], dict[str, Any]]] = [
    (nn.LSTM, {"num_layers": 2, "batch_first": True}),
    (nn.LSTM, {"bidirectional": True, "bias": False}),
    (nn.LSTM, {"proj_size": 3, "num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"proj_size": 3, "bias": False}),
    (nn.GRU, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    (nn.GRU, {"bias": False}),
    (nn.RNN, {"num_layers": 2}),
    (nn.RNN, {"nonlinearity": "relu", "bidirectional": True}),
]


@pytest.mark.parametrize(("layer", "values"), LAYERS, ids=str)
def test_results_are_those_of_pytorch_for_each_length(layer: Any, values: dict[str, Any]) -> None:
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    module = layer(5, 7, **values).eval()
    axes = ("batch", "length") if values.get("batch_first") else ("length", "batch")
    sizes = {"input": dict(enumerate(axes))}
    exe: Any = tw.compile(tw.from_torch(module, (torch.randn(4, 6, 5),), dynamic=sizes))
    for shape in ((4, 6, 5), (1, 3, 5), (9, 1, 5)):
        x = torch.randn(shape)
        with torch.no_grad():
            expected = module(x)
        for found, want in zip(
            pytree.tree_leaves(exe(x)), pytree.tree_leaves(expected), strict=True
        ):
            torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-6)


def test_a_given_state_is_the_first_one() -> None:
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    module = nn.LSTM(5, 7, num_layers=2).eval()
    given = (torch.randn(4, 3, 5), (torch.randn(2, 3, 7), torch.randn(2, 3, 7)))
    exe: Any = tw.compile(tw.from_torch(module, given))
    with torch.no_grad():
        expected = pytree.tree_leaves(module(*given))
    for found, want in zip(pytree.tree_leaves(exe(*given)), expected, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-6)


def test_an_exported_layer_is_one_loop_per_layer_and_direction() -> None:
    module = nn.GRU(5, 7, num_layers=2, bidirectional=True).eval()
    with torch.no_grad():
        program = torch.export.export(module, (torch.randn(40, 2, 5),))
    mod = tw.from_exported_program(program)
    found = [b for graph in mod.graphs for b in all_bindings(graph.bindings)]
    assert sum(isinstance(b.right, Loop) for b in found) == 4
    assert len(found) < 200


def test_the_definitions_of_pytorch_are_restored() -> None:
    operators: list[Any] = list(recurrent_rules())
    before = [dict(op.py_kernels) for op in operators]
    inside: list[dict[Any, Any]] = []
    with pytest.raises(ValueError, match="inside"), recurrent_layers_as_scans():
        inside += [dict(op.py_kernels) for op in operators]
        raise ValueError("inside")
    assert all(a != b for a, b in zip(inside, before, strict=True))
    assert [dict(op.py_kernels) for op in operators] == before
