"""Sorting and selection of PyTorch and ONNX models, against PyTorch and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import parser

import tilewright as tw
from tilewright.ir.importers import from_exported_program, from_onnx
from tilewright.ir.interpreter import run_graph

BATCH = torch.export.Dim("batch", min=1)


class Sorted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        values, order = torch.sort(x, dim=1, descending=True, stable=True)
        top, at = torch.topk(x, 3, dim=-1)
        low, _ = torch.topk(x, 2, dim=1, largest=False)
        return values, order, torch.argsort(x, dim=1, stable=True), top, at, low


class Gathered(torch.nn.Module):
    """Rows that contain a positive number, multiplied by weights."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        found = torch.nonzero(x.amax(1) > 0)
        return x[found[:, 0]] @ w


class Distinct(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return values, inverse, counts


class Beam(torch.nn.Module):
    """Beam search: the best sequences of three tokens, by scores of pairs of tokens.

    The scores are only added, so their sums, and with them the order, have the same bits.
    """

    def __init__(self, vocabulary: int = 7, width: int = 3) -> None:
        super().__init__()
        self.width, self.vocabulary = width, vocabulary
        self.scores = torch.nn.Parameter(torch.randn(vocabulary, vocabulary))

    def forward(self, first: torch.Tensor) -> Any:
        best, tokens = torch.topk(self.scores[first], self.width)
        paths = tokens.unsqueeze(-1)
        for _ in range(2):
            scores = self.scores[paths[..., -1]]
            joint = (best.unsqueeze(-1) + scores).flatten(1)
            best, at = torch.topk(joint, self.width)
            parents = (at // self.vocabulary).unsqueeze(-1).expand(-1, -1, paths.shape[-1])
            paths = torch.cat(
                [torch.gather(paths, 1, parents), (at % self.vocabulary).unsqueeze(-1)], -1
            )
        return best, paths


def exported(model: torch.nn.Module, *args: torch.Tensor, dims: Any) -> tw.ir.module.Module:  # type: ignore[name-defined]
    program = torch.export.export(model.eval(), args, dynamic_shapes=dims, strict=False)
    return from_exported_program(program)


def compare(module: Any, model: torch.nn.Module, *inputs: list[torch.Tensor]) -> None:
    """Compare interpreter and executable with PyTorch for several inputs."""
    exe = tw.compile(module)
    for given in inputs:
        with torch.no_grad():
            expected = model(*given)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        arrays = [g.numpy() for g in given]
        found = exe(*arrays)
        for results in (run_graph(module, arrays), found if isinstance(found, tuple) else (found,)):
            for have, want in zip(results, wanted, strict=True):
                np.testing.assert_allclose(np.asarray(have), want.numpy(), rtol=1e-5, atol=1e-5)


def test_sorting() -> None:
    model = Sorted()
    module = exported(model, torch.randn(2, 5), dims=({0: BATCH},))
    ties = torch.tensor([[1.0, 2.0, 2.0, 0.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    compare(module, model, [torch.randn(4, 5)], [torch.randn(1, 5)])
    found = tw.compile(module)(ties.numpy())
    assert np.array_equal(np.asarray(found[1]), torch.sort(ties, descending=True, stable=True)[1])


def test_selected_rows_and_a_product_are_one_compilation() -> None:
    model, weights = Gathered(), torch.randn(4, 6)
    module = exported(model, torch.randn(5, 4), weights, dims=({0: BATCH}, {}))
    some = torch.randn(9, 4) - 1
    inputs = [torch.randn(5, 4), some, -torch.ones(3, 4), torch.ones(1, 4)]
    compare(module, model, *([x, weights] for x in inputs))


def test_distinct_elements() -> None:
    model = Distinct()
    module = exported(model, torch.tensor([3, 1, 3, 2]), dims=({0: BATCH},))
    compare(module, model, [torch.tensor([5, 5, 5])], [torch.randint(0, 4, (30,))])


def test_beam_search_is_one_compilation() -> None:
    torch.manual_seed(0)
    model = Beam()
    module = exported(model, torch.tensor([0, 1]), dims=({0: BATCH},))
    compare(module, model, *([torch.randint(0, 7, (n,))] for n in (1, 2, 5)))


def test_a_number_is_sorted_as_a_vector_of_one_element() -> None:
    class Scalar(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [*torch.sort(x), *torch.topk(x, 1)]

    module = exported(Scalar(), torch.tensor(3.0), dims=({},))
    found = [np.asarray(y) for y in run_graph(module, [np.array(3.0, np.float32)])]
    assert [y.tolist() for y in found] == [3.0, 0, 3.0, 0]


HEADER = '<ir_version: 8, opset_import: ["" : 17]> g '


def onnx_results(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    module = from_onnx(parser.parse_model(HEADER + text))
    found = tw.compile(module)(*arrays)
    results = [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]
    for have, want in zip(results, run_graph(module, list(arrays)), strict=True):
        np.testing.assert_array_equal(have, want)
    return results


@pytest.mark.parametrize("largest", [0, 1])
def test_onnx_topk(largest: int) -> None:
    text = f"""(float[n, 6] x) => (float[n, 2] y, int64[n, 2] i) {{
        k = Constant<value: tensor = int64[1] {{2}}>()
        y, i = TopK<axis = 1, largest = {largest}>(x, k)
    }}"""
    x = np.array([[3, 1, 3, 2, 1, 0], [0, 5, 4, 9, 9, 1]], np.float32)
    values, positions = onnx_results(text, x)
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :2]
    assert np.array_equal(positions, order)
    assert np.array_equal(values, np.take_along_axis(x, order, 1))


def test_onnx_nonzero() -> None:
    text = "(float[n, m] x) => (int64[2, k] y) { y = NonZero(x) }"
    for x in (np.eye(3, dtype=np.float32), np.zeros((2, 3), np.float32)):
        (found,) = onnx_results(text, x)
        assert np.array_equal(found, np.stack(np.nonzero(x)))


@pytest.mark.parametrize("ordered", [0, 1])
def test_onnx_unique(ordered: int) -> None:
    text = f"""(float[n] x) => (float[k] y, int64[k] i, int64[n] j, int64[k] c) {{
        y, i, j, c = Unique<sorted = {ordered}>(x)
    }}"""
    x = np.array([2, 1, 1, 3, 4, 3], np.float32)
    values, first, inverse, counts = onnx_results(text, x)
    assert np.array_equal(values[inverse], x)
    assert np.array_equal(x[first], values)
    assert values.tolist() == ([1, 2, 3, 4] if ordered else [2, 1, 3, 4])
    assert counts.tolist() == ([2, 1, 2, 1] if ordered else [1, 2, 2, 1])


class Repeated(torch.nn.Module):
    """Rows, columns, and positions, as often as numbers that are inputs."""

    def forward(self, x: torch.Tensor, times: torch.Tensor) -> Any:
        return (
            x.repeat_interleave(times, dim=0),
            x.repeat_interleave(times[:1], dim=1),
            torch.repeat_interleave(times),
            x.repeat_interleave(2),
            x.sum().repeat_interleave(3),
        )


def test_repetitions_by_data() -> None:
    model, times = Repeated(), torch.tensor([2, 0, 3])
    rows = torch.export.Dim("rows", min=2)
    module = exported(model, torch.randn(3, 4), times, dims=({0: rows}, {0: rows}))
    compare(
        module, model, [torch.randn(3, 4), times], [torch.randn(2, 4), torch.tensor([0, 0])],
        [torch.randn(5, 4), torch.tensor([1, 4, 0, 2, 1])],
    )  # fmt: skip


def test_repetitions_with_a_stated_size() -> None:
    class Stated(torch.nn.Module):
        def forward(self, x: torch.Tensor, times: torch.Tensor) -> Any:
            return x.repeat_interleave(times, dim=0, output_size=5)

    x, times = torch.randn(3, 4), torch.tensor([2, 0, 3])
    module = exported(Stated(), x, times, dims=None)
    compare(module, Stated(), [x, times], [x, torch.tensor([5, 0, 0])])
    with pytest.raises(tw.TilewrightError):
        run_graph(module, [x.numpy(), np.array([1, 0, 0])])
