"""PyTorch operators without a handler are imported by their definitions in other operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_exported_program
from tilewright.ir.importers.torch_decompositions import calls_of, is_known
from tilewright.ir.interpreter.graph import run_graph

from tests.amounts import amount

F: Any = functional

# Functions of x (n, 4, 6) in (-2, 2).
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exponential units": lambda x: F.elu(x) + F.celu(x, 0.5) + F.selu(x),
    "leaky units": lambda x: F.leaky_relu(x, 0.1) + F.prelu(x, torch.arange(4) / 4),
    "hard units": lambda x: F.hardtanh(x) + F.hardswish(x) + F.hardsigmoid(x) + F.relu6(x * 4),
    "soft units": lambda x: F.softplus(x) + F.softsign(x) + F.mish(x) + F.logsigmoid(x),
    "thresholds": lambda x: F.threshold(x, 0.1, 2.0) + F.hardshrink(x) + F.softshrink(x),
    "gates": lambda x: F.glu(x, 1) + F.tanhshrink(x)[:, :2],
    "nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "linear": lambda x: F.interpolate(x, size=9, mode="linear", align_corners=True),
    "bilinear": lambda x: F.interpolate(x[:, None], size=(5, 9), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x[:, None], size=(5, 9), mode="bicubic"),
    "windows as columns": lambda x: F.unfold(x[:, None], (2, 3)),
    "response": lambda x: F.local_response_norm(x, 3),
    "maxima of parts": lambda x: F.adaptive_max_pool1d(x, 4),
    "rolled": lambda x: torch.roll(x, 3) + torch.diff(x, dim=1, prepend=x[:, :1]),
    "sums of products": lambda x: torch.einsum("bij,bkj->bik", x, x),
    "indexed dimensions": lambda x: (
        x[:, torch.tensor([0, 2]), torch.tensor([1, 3])]
        + x[:, torch.tensor([[0, 1]]).T, torch.tensor([1, 3])].sum(1)
    ),
    "indices around a dimension": lambda x: x[:2][torch.tensor([0, 1]), :, torch.tensor([1, 3])],
    "norms and logits": lambda x: torch.linalg.norm(x[0]) + x.logit(0.3),
    "triangles": lambda x: torch.addcmul(x, x, x, value=2) + torch.lerp(x, x * 2, 0.3),
}


@pytest.mark.parametrize("units", ["exponential units", "leaky units", "hard units", "soft units"])
def test_activations_are_imported_without_a_trace_of_decompositions(units: str) -> None:
    program = torch.export.export(One(FUNCTIONS[units]), (torch.randn(2, 4, 6),))
    names = {str(n.target) for n in calls_of(program) if not is_known(n)}
    assert names <= {"aten.softsign.default"}


class One(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


TOGETHER = amount(10, 1)
"""The number of functions in one program, because each export takes a tenth of a second."""


@pytest.mark.parametrize("first", range(0, len(FUNCTIONS), TOGETHER), ids=[*FUNCTIONS][::TOGETHER])
def test_definitions_equal_pytorch(first: int) -> None:
    names = [*FUNCTIONS][first : first + TOGETHER]
    whole = One(lambda x: [FUNCTIONS[name](x) for name in names])
    axes = {0: torch.export.Dim("n", min=2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(whole, (torch.ones(3, 4, 6),), dynamic_shapes=(axes,))
        module = from_exported_program(program)
    rng = np.random.default_rng(0)
    for n in (3, 5, 2):
        x = rng.uniform(-2, 2, (n, 4, 6)).astype(np.float32)
        for name, found in zip(names, run_graph(module, [x]), strict=True):
            expected = FUNCTIONS[name](torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(
                found, expected, rtol=2e-5, atol=1e-5, strict=True, err_msg=name
            )


def test_an_operator_without_a_definition_is_reported() -> None:
    program = torch.export.export(One(lambda x: torch.special.airy_ai(x)), (torch.ones(2, 4, 6),))
    assert any(not is_known(node) for node in calls_of(program))
    with pytest.raises(UnsupportedOperatorsError, match="airy_ai"):
        from_exported_program(program)
