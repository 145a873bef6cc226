"""Bags of embeddings and reductions of segments equal PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError

from tests.ir.importers.exported import same_as_pytorch

F: Any = functional

TABLE = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


def test_bags_of_rows_for_any_number_of_indices() -> None:
    def function(table: Any, at: Any, starts: Any) -> list[Any]:
        modes = [F.embedding_bag(at, table, starts, mode=m) for m in ("sum", "mean", "max")]
        return [
            *modes,
            F.embedding_bag(at, table, starts, mode="max", padding_idx=4),
            F.embedding_bag(at, table, starts, mode="mean", padding_idx=2),
            F.embedding_bag(at, table, starts, mode="sum", per_sample_weights=at * 0.5),
        ]

    bags, count = torch.export.Dim("bags"), torch.export.Dim("count")
    same_as_pytorch(
        function, TABLE, torch.tensor([0, 2, 4, 4, 1, 2, 2]), torch.tensor([0, 2, 2, 5]),
        dynamic=[{}, {0: count}, {0: bags}],
        others=[(TABLE, torch.tensor([1, 3, 4]), torch.tensor([0, 1]))],
    )  # fmt: skip


def test_bags_with_their_last_end_and_as_rows() -> None:
    def function(table: Any, at: Any, starts: Any) -> list[Any]:
        return [
            F.embedding_bag(at, table, starts, mode="sum", include_last_offset=True),
            F.embedding_bag(at.reshape(2, 3), table, mode="mean"),
        ]

    same_as_pytorch(
        function, TABLE, torch.tensor([0, 2, 4, 4, 1, 2]), torch.tensor([0, 2, 2, 6])
    )  # fmt: skip


def test_the_other_results_of_bags_are_rejected_by_name() -> None:
    class Sizes(torch.nn.Module):
        def forward(self, at: Any) -> Any:
            return torch.ops.aten._embedding_bag(TABLE, at, torch.tensor([0, 2]))[2]

    program = torch.export.export(Sizes(), (torch.tensor([0, 2, 4]),))
    with pytest.raises(UnsupportedOperatorsError, match="the bags of the indices"):
        tw.from_exported_program(program)


@pytest.mark.parametrize("order", [2.0, 1.0, 0.5])
def test_rows_with_a_largest_norm(order: float) -> None:
    def function(table: Any, at: Any) -> list[Any]:
        return [torch.ops.aten.embedding_renorm.default(table, at, 0.9, order)]

    count, rows = torch.export.Dim("count"), torch.export.Dim("rows")
    larger = torch.arange(21.0).reshape(7, 3) / 30
    same_as_pytorch(
        function, TABLE, torch.tensor([0, 2, 4, 4]), dynamic=[{0: rows}, {0: count}],
        others=[(TABLE, torch.tensor([], dtype=torch.long)), (larger, torch.arange(7))],
    )  # fmt: skip


def test_a_table_with_a_largest_norm_is_changed() -> None:
    class Lookup(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding.from_pretrained(TABLE.clone(), max_norm=0.9)

        def forward(self, at: Any) -> Any:
            return self.table(at)

    model, at = Lookup(), torch.tensor([[0, 3], [3, 1]])
    run: Any = tw.compile(tw.from_exported_program(torch.export.export(model, (at,))))
    expected = model(at)
    np.testing.assert_allclose(run(at.numpy()), expected, rtol=1e-6)
    (changed,) = run.state.values()
    np.testing.assert_allclose(changed, model.table.weight.detach(), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_reductions_of_segments(name: str) -> None:
    def function(x: Any, lengths: Any, rows: Any) -> list[Any]:
        reduce: Any = torch._segment_reduce
        form: dict[str, Any] = {"axis": 0, "unsafe": True}
        return [
            reduce(x, name, lengths=lengths, **form),
            reduce(x, name, lengths=lengths, initial=1.5, **form),
            reduce(x, name, offsets=torch.tensor([0, 0, 2, 5]), **form),
            reduce(x, name, lengths=rows, axis=1, unsafe=True),
        ]

    same_as_pytorch(
        function, TABLE, torch.tensor([2, 0, 3]), torch.tensor([[1, 2]]).expand(5, 2).clone()
    )  # fmt: skip
