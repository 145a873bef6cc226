"""Import handlers of distinct elements and slices in PyTorch; PyTorch names their number."""

from __future__ import annotations

from ..dtype import bool_, i64
from ..symbolic import Expr, SymInt, as_expr
from . import factorizations as of
from .control_flow import Iteration, Tensors
from .formulas import Formula, joined, positions, size_of, stacked
from .ordering import sized_nonzero
from .shaping import axis_of
from .tensors import Imported
from .torch_context import TorchContext, aten


def _rows(t: TorchContext, x: Imported, axis: int) -> Formula:
    """Return the slices along an axis as rows."""
    found = Formula(t, x).permute(axis, *(k for k in range(x.rank) if k != axis))
    return found.reshape(x.shape[axis], -1)


def _starts(t: TorchContext, rows: Formula) -> Formula:
    """Return which rows differ from the row before; the first one does."""
    line = positions(t, rows.shape[0])
    before = (line - 1).maximum(0)
    differs = rows.apply("not_equal", rows.take(before, 0)).reduce("any", 1)
    return line.equal(0) | differs


def _runs(t: TorchContext, starts: Formula, count: Expr) -> tuple[Formula, Formula, Formula]:
    """Return the first positions of runs, the number of the run of each position, and lengths."""
    first = Formula(t, sized_nonzero(t, starts.x, count)).reshape(count)
    numbers = starts.to(i64).call("cumsum", axis=0) - 1
    end = size_of(t, starts.shape[0]).reshape(1)
    return first, numbers, joined([first.cut(0, 1, count), end], 0) - first


def _count(t: TorchContext, axis: int) -> Expr:
    return t.symbols.size(t.node.meta["val"][0].shape[axis])


@aten("unique_consecutive")
def unique_consecutive(
    t: TorchContext, x: Imported, inverse: bool = False, counts: bool = False,  # noqa: FBT001, FBT002
    dim: int | None = None, **_: bool,
) -> list[Imported]:  # fmt: skip
    """Import the first of each run of equal elements or slices."""
    del inverse, counts
    flat = Formula(t, x).reshape(-1) if dim is None else Formula(t, x)
    axis = 0 if dim is None else axis_of(dim, x.rank)
    first, numbers, lengths = _runs(t, _starts(t, _rows(t, flat.x, axis)), _count(t, axis))
    numbers = numbers.reshape(*x.shape) if dim is None else numbers
    return [flat.take(first, axis).x, numbers.x, lengths.x]


@aten("unique_dim")
def unique_dim(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, dim: int, sorted: bool = True,  # noqa: A002, FBT001, FBT002
    inverse: bool = False, counts: bool = False, **_: bool,  # noqa: FBT001, FBT002
) -> list[Imported]:  # fmt: skip
    """Import distinct slices along a dimension in ascending order."""
    del sorted, inverse, counts
    axis = axis_of(dim, x.rank)
    rows = _rows(t, x, axis)
    rows = Formula(t, t.tensor(t.plain(rows.x)))
    order = _ascending(t, rows)
    first, numbers, lengths = _runs(t, _starts(t, rows.take(order, 0)), _count(t, axis))
    start = Formula(t, t.uniform(0, (rows.shape[0],), i64))
    found = start.call("scatter_elements", order, numbers, axis=0)
    return [Formula(t, x).take(order.take(first, 0), axis).x, found.x, lengths.x]


def _ascending(t: TorchContext, rows: Formula) -> Formula:
    """Return the order of rows by their elements: sorts that keep order, by the last ones first."""
    count, width = rows.shape
    line = t.apply("arange", (as_expr(0), count, 1), dtype="i64")

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (order,) = (Formula(t, c) for c in now.carried)
        keys = rows.at(1, width - 1 - now.index).take(order, 0)
        ranks = t.items(t.emit("sort", t.plain(keys.x), axis=0))[1]
        return [order.take(Formula(t, ranks), 0).x], []

    return Formula(t, of.repeated(t, [line], width, body)[0])


@aten("nonzero_static")
def nonzero_static(t: TorchContext, x: Imported, *, size: SymInt, fill_value: int = -1) -> Imported:
    """Import the indices of the first elements that are not zero, and a number for missing ones."""
    count = as_expr(size)
    chosen = Formula(t, x).reshape(-1).to(bool_)
    rank = chosen.to(i64).call("cumsum", axis=0) - 1
    end = size_of(t, count)
    target = (chosen & (rank < end)).choose(rank, end, i64)
    start = Formula(t, t.uniform(-1, (count + 1,), i64))
    line = Formula(t, t.apply("arange", (as_expr(0), chosen.shape[0], 1), dtype="i64"))
    found = start.call("index_copy", target, line, axis=0).cut(0, 0, count)
    columns: list[Formula] = []
    rest = found
    for length in reversed(x.shape):
        columns.insert(0, rest % size_of(t, length).maximum(1))
        rest = rest // size_of(t, length).maximum(1)
    if not columns:
        return t.uniform(0, (count, as_expr(0)), i64)
    known = (found >= 0).unsqueeze(1)
    return known.choose(stacked(columns, 1), fill_value, i64).x
