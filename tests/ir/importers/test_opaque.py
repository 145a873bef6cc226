"""Models with unsupported operators, which can be viewed, and run with registered functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import parser

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.graph.libraries import UnknownLibraryFunctionError
from tilewright.ir.importers import from_exported_program, from_onnx
from tilewright.ir.script import parse, to_text
from tilewright.workbench.graph_view import graph_view

from tests.ir.importers.unknown_operator import unknown


class Solver(torch.nn.Module):
    """Two operators that cannot be imported, between two that can."""

    def forward(self, x: torch.Tensor) -> Any:
        return unknown(torch.relu(x)) * 2.0, torch.special.airy_ai(x)


def program() -> Any:
    return torch.export.export(Solver(), (torch.eye(3),), strict=False)


def test_a_program_of_pytorch_is_rejected_or_kept() -> None:
    with pytest.raises(UnsupportedOperatorsError, match="2 operators"):
        from_exported_program(program())
    module = from_exported_program(program(), allow_unsupported=True)
    text = to_text(module)
    assert "tests.unknown" in text
    assert "airy_ai" in text
    assert to_text(parse(text)) == text
    kinds = {node.kind for node in graph_view(module.graph()).nodes}
    assert "library" in kinds


def test_compile_names_all_unsupported_operators() -> None:
    module = from_exported_program(program(), allow_unsupported=True)
    with pytest.raises(UnknownLibraryFunctionError) as error:
        tw.compile(module)
    assert "tests.unknown" in error.value.message
    assert "airy_ai" in error.value.message


def test_registered_functions_make_it_run() -> None:
    class Airy(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.airy_ai(torch.relu(x)) + 1.0

    x = torch.randn(4)
    exported = torch.export.export(Airy(), (x,), strict=False)
    module = from_exported_program(exported, allow_unsupported=True)
    (name,) = {b.right.symbol for b in module.graph().bindings if hasattr(b.right, "symbol")}
    tw.library_function(name, lambda x: torch.special.airy_ai(torch.tensor(x)).numpy())
    np.testing.assert_allclose(tw.compile(module)(x.numpy()), Airy()(x).numpy(), rtol=1e-6)


HEADER = '<ir_version: 8, opset_import: ["" : 17, "mine" : 1]> g '


def test_a_model_of_onnx() -> None:
    text = """(float[n, 4] x) => (float[n, 4] z) <float[n, 4] y> {
        y = mine.Blur <radius = 2, mode = "edge"> (x)
        z = Add(y, x)
    }"""
    model = parser.parse_model(HEADER + text)
    with pytest.raises(UnsupportedOperatorsError, match=r"mine\.Blur"):
        from_onnx(model)
    module = from_onnx(model, allow_unsupported=True)
    assert 'call_library("mine.Blur", x, radius=2, mode="edge")' in to_text(module)
    with pytest.raises(UnknownLibraryFunctionError, match=r"'mine\.Blur'"):
        tw.compile(module)


def test_results_of_unknown_types_remain_an_error() -> None:
    text = "(float[n, 4] x) => (float[n, 4] z) { y = mine.Blur(x)\n z = Add(y, x) }"
    with pytest.raises(UnsupportedOperatorsError) as error:
        from_onnx(parser.parse_model(HEADER + text), allow_unsupported=True)
    assert "the types of its results are unknown" in str(error.value)
