"""Import handlers of sorting and selection in PyTorch and ONNX."""

from __future__ import annotations

from ..dtype import i64
from ..graph.nodes import TensorInfo, Value
from ..symbolic import Expr, as_expr, var
from .emitter import Emitter
from .formulas import Formula, positions
from .onnx_context import OnnxContext, onnx_op
from .shaping import permute, reshape
from .tensors import Imported
from .torch_context import TorchContext, aten


def _sort(t: Emitter, x: Imported, axis: int, *, descending: bool) -> list[Imported]:
    if not x.rank:
        return [x, t.uniform(0, (), i64)]
    return t.items(t.emit("sort", t.plain(x), axis=axis, descending=descending))


@aten("sort")
def sort(
    t: TorchContext, x: Imported, dim: int = -1, descending: bool = False,  # noqa: FBT001, FBT002
    *, stable: bool | None = None,
) -> list[Imported]:  # fmt: skip
    """Import sorting, which is stable here in any case."""
    del stable
    return _sort(t, x, dim, descending=descending)


@aten("argsort")
def argsort(
    t: TorchContext, x: Imported, dim: int = -1, descending: bool = False,  # noqa: FBT001, FBT002
    *, stable: bool | None = None,
) -> Imported:  # fmt: skip
    """Import the positions of the sorted elements."""
    del stable
    return _sort(t, x, dim, descending=descending)[1]


def _topk(t: Emitter, x: Imported, k: Expr, axis: int, *, largest: bool) -> list[Imported]:
    if not x.rank:  # PyTorch accepts a scalar as a vector of one element
        found = _topk(t, reshape(t, x, (1,)), k, axis, largest=largest)
        return [reshape(t, v, ()) for v in found]
    return t.items(t.emit("topk", t.plain(x), (k,), axis=axis, largest=largest))


@aten("topk")
def topk(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, k: int | Expr, dim: int = -1,
    largest: bool = True, sorted: bool = True,  # noqa: A002, FBT001, FBT002
) -> list[Imported]:  # fmt: skip
    """Import the greatest or smallest elements, which are sorted here in any case."""
    del sorted
    return _topk(t, x, as_expr(k), dim, largest=largest)


@aten("nonzero")
def nonzero(t: TorchContext, x: Imported) -> Imported:
    """Import the indices of the elements that are not zero; PyTorch names their number."""
    return sized_nonzero(t, x, t.symbols.size(t.node.meta["val"].shape[0]))


def sized_nonzero(t: Emitter, x: Imported, count: Expr) -> Imported:
    """Return the indices of the elements that are not zero; there are ``count`` of them."""
    info = TensorInfo((count, as_expr(x.rank)), i64)
    return t.tensor(t.builder.match_cast(t.emit("nonzero", t.plain(x)), info, name="indices"))


def repeated_positions(t: Emitter, times: Imported, size: Expr) -> Imported:
    """Return each position as often as a number; the sum of the numbers is ``size``."""
    ends = Formula(t, times).to(i64).call("cumsum", axis=0)
    total = Formula(t, times).to(i64).sum(0).reshape(1)
    t.builder.match_cast(t.plain(total.x), TensorInfo((as_expr(1),), i64, elements=(size,)))
    ended = ends.unsqueeze(0) <= positions(t, size).unsqueeze(1)
    return ended.to(i64).sum(1).x


def _unique(t: Emitter, x: Imported, count: Expr) -> list[Imported]:
    """Return distinct elements, first positions, numbers, and counts."""
    found = t.emit("unique", t.plain(x))

    def known(position: int, name: str) -> Imported:
        dtype = i64 if position else x.dtype
        item: Value = t.builder.item(found, position)
        return t.tensor(t.builder.match_cast(item, TensorInfo((count,), dtype), name=name))

    numbers = t.tensor(t.builder.item(found, 2))
    return [known(0, "values"), known(1, "positions"), numbers, known(3, "counts")]


@aten("_unique2")
def unique(
    t: TorchContext, x: Imported, sorted: bool = True,  # noqa: A002, FBT001, FBT002
    return_inverse: bool = False, return_counts: bool = False,  # noqa: FBT001, FBT002
) -> list[Imported]:  # fmt: skip
    """Import distinct elements, which are sorted here in any case."""
    del sorted, return_inverse, return_counts
    values, _, numbers, counts = _unique(t, x, t.symbols.size(t.node.meta["val"][0].shape[0]))
    return [values, numbers, counts]


@onnx_op("TopK")
def onnx_topk(t: OnnxContext) -> list[Imported]:
    """Import TopK; elements are sorted in any case."""
    (count,) = t.sizes(t.input(1))
    largest = bool(t.integer("largest", 1))
    return _topk(t, t.input(0), count, t.integer("axis", -1), largest=largest)


@onnx_op("NonZero")
def onnx_nonzero(t: OnnxContext) -> Imported:
    """Import NonZero, whose result is transposed."""
    found = sized_nonzero(t, t.input(0), var("nonzeros", lower=0))
    return permute(t, found, (1, 0))
