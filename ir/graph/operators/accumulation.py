"""Operators that add to elements at loaded indices: index_add, scatter_add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...loop.combiners import Combiner
from ...loop.nodes import Binary, Buffer, Element, IterKind, Load, Stmt, Store
from ...symbolic import Expr, SymInt
from ..nodes import Operand
from .composition import Composer
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall
from .indexing import AXIS, INDICES, WRAP, IndexCopy, ScatterElements, checked_indices, let_index
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import operator
from .signature import OperandSpec, Signature

_SIGNATURE = Signature(
    (OperandSpec("x", dtypes="field"), INDICES, OperandSpec("updates", dtypes="field")),
    (AXIS, WRAP),
)


@operator
class IndexAdd(IndexCopy):
    """Add slices along an axis at the positions of an index vector.

    Parameters
    ----------
    x : tensor
        A numeric dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
    indices : tensor
        An integer dtype, shape ``(k,)``, values in ``[0, d)``.
    updates : tensor
        The dtype of `x`, shape ``(..., k, ...)``.
    axis : int, default 0
        The axis.
    wrap : bool, default False
        Whether negative indices in ``[-d, 0)`` count from the end.

    Returns
    -------
    tensor
        A copy of `x` with the updates added.

    Raises
    ------
    OperandError
        If the dtypes or ranks do not match.
    ShapeMismatchError
        If `updates` does not have the required shape.

    Notes
    -----
    All updates of one slice are added: in order, but on a GPU atomically in any order. 16-bit
    floats are added in float32 and rounded once. An index out of range is a run-time error.
    PyTorch: ``index_add``.

    Examples
    --------
    >>> IndexAdd().reference((np.ones(3), np.array([2, 0, 2]), np.array([5.0, 6.0, 7.0])))
    array([ 7.,  1., 13.])
    """

    name = "index_add"
    signature = _SIGNATURE

    def evaluate(self, run: Evaluation) -> Array:
        """Copy ``x`` and add the updates with NumPy."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        return _added(x, (*(slice(None),) * axis, front), updates)

    def define(self, low: Lowering) -> None:
        """Define one block that copies, unless in place, and one that adds updates."""
        axis, wrap = low.attributes.axis("axis", low.sources[0].rank), low.attributes.flag("wrap")

        def body(out: Buffer, *iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                return _add(low, out, (*iters[:axis], index, *iters[axis + 1 :]), iters)

            return let_index(low.load(1, (iters[axis],)), out.shape[axis], at, wrap=wrap)

        _define(low, self.name, low.sources[2].shape, axis, body)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the cotangent, or its elements at the positions of the updates."""
        g = call.cotangent(graph)
        if not position:
            return g
        axis = call.attributes.axis("axis", call.tensor(0).rank)
        wrap = call.attributes.flag("wrap")
        return graph.emit("take", g, call.args[1], axis=axis, wrap=wrap)


@operator
class ScatterAdd(ScatterElements):
    """Add elements along an axis: ``out[indices[i, j], j] += updates[i, j]`` for axis 0.

    Parameters
    ----------
    x : tensor
        A numeric dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
    indices : tensor
        An integer dtype, the rank of `x`, values in ``[0, d)``. Its dimensions along other axes are
        at most those of `x`.
    updates : tensor
        The dtype of `x`, the shape of `indices`.
    axis : int, default 0
        The axis.
    wrap : bool, default False
        Whether negative indices in ``[-d, 0)`` count from the end.

    Returns
    -------
    tensor
        A copy of `x` with the updates added.

    Raises
    ------
    OperandError
        If the dtypes or ranks do not match.
    ShapeMismatchError
        If the shapes of `updates` and `indices` differ, or `indices` exceeds `x`.

    Notes
    -----
    All updates of one element are added: in order, but on a GPU atomically in any order. 16-bit
    floats are added in float32 and rounded once. An index out of range is a run-time error. NumPy:
    ``add.at``; ONNX: ``ScatterElements`` with reduction ``add``; PyTorch: ``scatter_add``.

    Examples
    --------
    >>> ScatterAdd().reference((np.ones(3), np.array([2, 0, 2]), np.array([5.0, 6.0, 7.0])))
    array([ 7.,  1., 13.])
    """

    name = "scatter_add"
    signature = _SIGNATURE

    def evaluate(self, run: Evaluation) -> Array:
        """Copy ``x`` and add the updates with NumPy."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        target: list[Any] = list(np.indices(indices.shape))
        target[axis] = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        return _added(x, tuple(target), updates)

    def define(self, low: Lowering) -> None:
        """Define one block that copies, unless in place, and one that adds updates."""
        axis, wrap = low.attributes.axis("axis", low.sources[0].rank), low.attributes.flag("wrap")

        def body(out: Buffer, *iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                return _add(low, out, (*iters[:axis], index, *iters[axis + 1 :]), iters)

            return let_index(low.load(1, iters), out.shape[axis], at, wrap=wrap)

        _define(low, self.name, low.sources[1].shape, axis, body)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the cotangent, or its elements at the positions of the updates."""
        g = call.cotangent(graph)
        if not position:
            return g
        axis = call.attributes.axis("axis", call.tensor(0).rank)
        wrap = call.attributes.flag("wrap")
        return graph.emit("gather_elements", g, call.args[1], axis=axis, wrap=wrap)


def _added(x: Array, target: tuple[Any, ...], updates: Array) -> Array:
    """Return ``x`` with updates added in order, rounded once."""
    wide = accumulator_dtype(x.dtype)
    out = x.astype(wide)
    with np.errstate(all="ignore"):
        np.add.at(out, target, updates.astype(wide))
    return out.astype(x.dtype)


def _add(low: Lowering, out: Buffer, target: tuple[Expr, ...], iters: tuple[Expr, ...]) -> Stmt:
    return combined(out, target, cast_to(out.dtype, low.sources[2](*iters)))


def combined(
    out: Buffer, target: tuple[Expr, ...], update: Element, combiner: Combiner = "add"
) -> Stmt:
    """Return the store of an element combined with an update."""
    return Store(out, target, Binary(combiner, Load(out, target), update))


def update_kinds(shape: tuple[Expr, ...], axis: int) -> list[tuple[SymInt, IterKind]]:
    """Return the iteration variables of updates: several along the axis may have one target."""
    return [(d, "reduce" if k == axis else "spatial") for k, d in enumerate(shape)]


def _define(
    low: Lowering, name: str, shape: tuple[Expr, ...], axis: int, body: Callable[..., Stmt]
) -> None:
    """Define the block of the sums; 16-bit floats use a temporary."""
    x, out, wide = low.sources[0], low.out, accumulator(low.out.dtype)
    kinds = update_kinds(shape, axis)
    if wide == out.dtype:
        low.copy_first()
        low.builder.block(kinds, lambda *i: body(out, *i), name=name)
        return
    sums = low.builder.temporary("sums", out.shape, wide)
    low.builder.compute(sums, lambda *i: cast_to(wide, x(*i)), name="copy")
    low.builder.block(kinds, lambda *i: body(sums, *i), name=name)
    round_to_result(low, sums)


def round_to_result(low: Lowering, wide: Buffer) -> None:
    """Define a block that converts the elements of a wider buffer to the result."""
    out, read = low.out, buffer_source(wide)
    low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")
