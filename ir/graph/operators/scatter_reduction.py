"""Combination of elements at loaded indices by a choice of reductions: scatter_reduce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...dtype import from_numpy, i64
from ...loop.combiners import Combiner, identity_of
from ...loop.nodes import Binary, Buffer, Cast, Compare, Element, Number, Stmt, Where
from ...symbolic import Expr
from ..nodes import Info
from .accumulation import combined, round_to_result, update_kinds
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation, accumulator_dtype
from .indexing import AXIS, INDICES, WRAP, ScatterElements, checked_indices, let_index
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_COMBINERS: Final[dict[str, Combiner]] = {
    "sum": "add", "mul": "mul", "mean": "add", "max": "max", "min": "min",
}  # fmt: skip
_FUNCTIONS: Final[dict[Combiner, Any]] = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


@operator
class ScatterReduce(ScatterElements):
    """Combine elements along an axis: ``out[indices[i, j], j] += updates[i, j]`` for axis 0.

    Parameters
    ----------
    x : tensor
        A dtype of real numbers, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
    indices : tensor
        An integer dtype, the rank of `x`, values in ``[0, d)``. Its dimensions along other axes are
        at most those of `x`.
    updates : tensor
        The dtype of `x`, the shape of `indices`.
    axis : int, default 0
        The axis.
    wrap : bool, default False
        Whether negative indices in ``[-d, 0)`` count from the end.
    reduction : str, default "sum"
        The reduction: ``sum``, ``mul``, ``mean``, ``max``, or ``min``.
    include_self : bool, default True
        Whether the element of `x` is combined with its updates; otherwise they replace it.

    Returns
    -------
    tensor
        A copy of `x` with the elements that have updates combined.

    Raises
    ------
    OperandError
        If the dtypes or ranks do not match.
    OperatorAttributeError
        If the reduction is unknown.
    ShapeMismatchError
        If the shapes of `updates` and `indices` differ, or `indices` exceeds `x`.

    Notes
    -----
    Elements without updates are those of `x`. The updates of one element are combined in order,
    but on a GPU atomically in any order; 16-bit floats are combined in float32 and rounded once.
    The mean of integers is rounded down. An update that is NaN makes the result NaN. An index out
    of range is a run-time error. NumPy: ``multiply.at`` and others; ONNX: ``ScatterElements`` with
    a reduction; PyTorch: ``scatter_reduce``.

    Examples
    --------
    >>> x, at, updates = np.ones(3), np.array([2, 0, 2]), np.array([5.0, 6.0, 7.0])
    >>> ScatterReduce().reference((x, at, updates), {"reduction": "mean", "include_self": False})
    array([6., 1., 6.])
    """

    name = "scatter_reduce"
    is_update = True
    signature = Signature(
        (OperandSpec("x", dtypes="number"), INDICES, OperandSpec("updates", dtypes="number")),
        (
            AXIS,
            WRAP,
            AttributeSpec("reduction", "str", "sum"),
            AttributeSpec("include_self", "bool", default=True),
        ),
    )
    gradient = Operator.gradient  # pyright: ignore[reportAssignmentType] # it has none

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; check the reduction."""
        reduction = call.attributes.text("reduction")
        if reduction not in _COMBINERS:
            raise OperatorAttributeError(
                f"expected one of {', '.join(_COMBINERS)}, got {reduction!r}",
                where=f"attribute 'reduction' of {self.name}",
            )
        return super().deduce(call)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy ``x`` and combine the updates with NumPy."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        reduction, kept = run.attributes.text("reduction"), run.attributes.flag("include_self")
        combiner, wide = _COMBINERS[reduction], accumulator_dtype(x.dtype)
        target: list[Any] = list(np.indices(indices.shape))
        target[axis] = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        counts = np.zeros(x.shape, np.int64)
        np.add.at(counts, tuple(target), 1)
        out = x.astype(wide)
        if not kept:
            start = identity_of(combiner, from_numpy(x.dtype)).value
            out[counts > 0] = np.asarray(start).astype(wide)
        with np.errstate(all="ignore"):
            _FUNCTIONS[combiner].at(out, tuple(target), updates.astype(wide))
            if reduction == "mean":
                divisor = np.maximum(counts + int(kept), 1).astype(wide)
                out = out / divisor if wide.kind == "f" else out // divisor
        return out.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define blocks that count the updates if necessary, start, combine, and divide."""
        reduction, kept = low.attributes.text("reduction"), low.attributes.flag("include_self")
        combiner, x = _COMBINERS[reduction], low.sources[0]
        wide = accumulator(low.out.dtype)
        narrow = wide != low.out.dtype
        out = low.builder.temporary("wide", low.out.shape, wide) if narrow else low.out
        counts = None if kept and reduction != "mean" else self._counts(low)
        start = identity_of(combiner, wide)

        def first(*i: Expr) -> Element:
            own = cast_to(wide, x(*i))
            return own if kept or counts is None else Where(_positive(counts, i), start, own)

        if narrow or counts is not None:
            low.builder.compute(out, first, name="start")
        else:
            low.copy_first()
        self._combine(low, out, lambda *i: cast_to(wide, low.sources[2](*i)), combiner, self.name)
        if reduction == "mean" and counts is not None:
            _divide(low, out, counts, kept=kept)
        if narrow:
            round_to_result(low, out)

    def _counts(self, low: Lowering) -> Buffer:
        """Define blocks that count the updates of each element."""
        counts = low.builder.temporary("counts", low.out.shape, i64)
        low.builder.compute(counts, lambda *_: Number(0, i64), name="zeros")
        self._combine(low, counts, lambda *_: Number(1, i64), "add", "count")
        return counts

    def _combine(
        self,
        low: Lowering,
        out: Buffer,
        update: Callable[..., Element],
        combiner: Combiner,
        name: str,
    ) -> None:
        """Define a block that combines the elements at the indices with updates."""
        shape = low.sources[1].shape
        axis, wrap = low.attributes.axis("axis", len(shape)), low.attributes.flag("wrap")

        bound = low.builder.fresh("at")

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                target = (*iters[:axis], index, *iters[axis + 1 :])
                return combined(out, target, update(*iters), combiner)

            return let_index(low.load(1, iters), out.shape[axis], at, wrap=wrap, name=bound)

        low.builder.block(update_kinds(shape, axis), body, name=name)


def _positive(counts: Buffer, indices: tuple[Expr, ...]) -> Element:
    return Compare("gt", buffer_source(counts)(*indices), Number(0, i64))


def _divide(low: Lowering, out: Buffer, counts: Buffer, *, kept: bool) -> None:
    """Define a block that divides the sums by the numbers of their terms."""
    read, count = buffer_source(out), buffer_source(counts)
    op = "div" if out.dtype.is_float else "floordiv"

    def mean(*i: Expr) -> Element:
        terms: Element = count(*i)
        if kept:
            terms = Binary("add", terms, Number(1, i64))
        else:  # elements without updates are not divided
            terms = Binary("max", terms, Number(1, i64))
        return Binary(op, read(*i), Cast(out.dtype, terms) if out.dtype != i64 else terms)

    low.builder.compute(out, mean, name="mean")
