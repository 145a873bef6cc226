"""Associative scans and selective state spaces of PyTorch, for each length by one program."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
import transformers
from torch._higher_order_ops.associative_scan import associative_scan_op

import tilewright as tw
from tilewright.ir.importers.torch_scans import scans_as_operators

scans: Any = import_module("torch._higher_order_ops.associative_scan")  # PyTorch hides the module

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")


class Recurrence(torch.nn.Module):
    """A linear recurrence along axis 1 by the mode that PyTorch exports for one length only."""

    def __init__(self, *, reverse: bool) -> None:
        super().__init__()
        self.reverse = reverse

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        def combine(p: Any, q: Any) -> Any:
            return {"a": p["a"] * q["a"], "b": q["a"] * p["b"] + q["b"]}

        terms = {"a": x, "b": y}
        return scans.associative_scan(
            combine, terms, -2, reverse=self.reverse, combine_mode="generic"
        )["b"]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_generic_scan_has_any_length(reverse: bool) -> None:
    module = Recurrence(reverse=reverse)
    sizes = {name: {0: "batch", 1: "length"} for name in ("x", "y")}
    args = (torch.rand(2, 6, 3), torch.randn(2, 6, 3))
    exe: Any = tw.compile(tw.from_torch(module, args, dynamic=sizes))
    for batch, length in ((2, 6), (1, 1), (3, 9), (2, 40)):
        x, y = torch.rand(batch, length, 3), torch.randn(batch, length, 3)
        torch.testing.assert_close(exe(x, y), module(x, y), rtol=1e-5, atol=1e-6)


def configured(kind: str, **values: Any) -> torch.nn.Module:
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=96, hidden_size=16, num_hidden_layers=1, state_size=4, time_step_rank=2,
        use_cache=False, **values,
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("kind", ["mamba", "falcon_mamba"])
def test_a_selective_state_space_has_any_length(kind: str) -> None:
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    module = configured(kind)
    sizes = {"input_ids": {0: "batch", 1: "length"}}
    example = {"input_ids": torch.randint(0, 96, (2, 6))}
    exe: Any = tw.compile(tw.from_torch(module, (), example, dynamic=sizes))
    for shape in ((2, 6), (1, 1), (3, 17)):
        ids = torch.randint(0, 96, shape)
        with torch.no_grad():
            wanted = module(input_ids=ids).logits
        torch.testing.assert_close(exe(input_ids=ids).logits, wanted, rtol=1e-4, atol=1e-5)


def test_the_functions_of_packages_are_restored() -> None:
    configured("mamba")
    modeling_mamba = import_module("transformers.models.mamba.modeling_mamba")
    before = scans.associative_scan, modeling_mamba.is_torchdynamo_exporting
    with pytest.raises(ValueError, match="stop"), scans_as_operators():
        assert scans.associative_scan is not before[0]
        assert not modeling_mamba.is_torchdynamo_exporting()
        raise ValueError("stop")
    assert (scans.associative_scan, modeling_mamba.is_torchdynamo_exporting) == before


def test_an_exported_scan_is_one_operator() -> None:
    args = (torch.rand(2, 6, 3), torch.randn(2, 6, 3))
    with scans_as_operators():
        program = torch.export.export(Recurrence(reverse=True), args)
    assert [n.target for n in program.graph.nodes].count(associative_scan_op) == 1
