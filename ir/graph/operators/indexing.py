"""Gather and scatter operators: take, gather_elements, index, index_copy, scatter_elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...loop.nodes import IterKind, Let, Load, Stmt, Store
from ...symbolic import Expr, SymInt, as_expr, const_value, product, var
from ..nodes import Info, Operand, TensorInfo
from .broadcasting import broadcast
from .composition import Composer
from .errors import OperandError
from .evaluation import Array, Evaluation
from .gradients import GradientCall, zeros
from .index_gradients import indexed_gradient, replaced_gradient
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import MAX_ELEMENTS, CallFacts, shape_text
from .signature import AttributeSpec, OperandSpec, Signature

INDICES = OperandSpec("indices", dtypes="integer")
AXIS = AttributeSpec("axis", "int", 0)
WRAP = AttributeSpec("wrap", "bool", default=False)


def let_index(
    load: Load, size: Expr, body: Callable[[Expr], Stmt], *, wrap: bool = False, name: str = "at"
) -> Stmt:
    """Return a ``Let`` that binds a loaded index in ``[0, size)`` in ``body``.

    ``wrap`` also allows indices in ``[-size, 0)``.
    """
    known = const_value(size)
    lower = -size if wrap else as_expr(0)
    least = None if known is None else -known
    bound = var(
        name, lower=least if wrap else 0, upper=None if known is None else max(known - 1, 0)
    )
    index = bound % size if wrap else bound
    return Let(bound, lower, size, load, "checked", body(index))


def checked_indices(indices: Array, size: int, op: str, *, wrap: bool = False) -> Array:
    """Return the indices as non-negative indices.

    Raises
    ------
    OperandError
        If an index is out of range.
    """
    wrong = (indices < (-size if wrap else 0)) | (indices >= size)
    if np.any(wrong):
        first = int(indices[wrong].ravel()[0])
        least = -size if wrap else 0
        raise OperandError(f"index {first} is not in [{least}, {size})", where=f"operator {op}")
    return np.where(indices < 0, indices + size, indices)


def _kinds(dims: tuple[Expr, ...], kind: IterKind) -> list[tuple[SymInt, IterKind]]:
    return [(d, kind) for d in dims]


@operator
class Take(Operator):
    """Take slices of a tensor along an axis; an embedding is a take along axis 0.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
    indices : tensor
        An integer dtype, shape ``(i0, ..., in)``, values in ``[0, d)``.
    axis : int, default 0
        The axis.
    wrap : bool, default False
        Whether negative indices in ``[-d, 0)`` count from the end.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(..., i0, ..., in, ...)``.

    Notes
    -----
    An index out of range is a run-time error. NumPy: ``take``; ONNX: ``Gather``.

    Examples
    --------
    >>> Take().reference((np.array([1.0, 2.0, 3.0]), np.array([2, 0])))
    array([3., 1.])
    """

    name = "take"
    signature = Signature((OperandSpec("x"), INDICES), (AXIS, WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape with the axis replaced by the shape of the indices."""
        x, indices = call.require_rank(0, 1), call.tensor(1)
        axis = call.attributes.axis("axis", x.rank)
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        return TensorInfo(shape, x.dtype, elements=_taken(x.elements, indices.elements, x.rank))

    def evaluate(self, run: Evaluation) -> Array:
        """Gather with NumPy."""
        x = run.array(0)
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        return np.take(x, checked_indices(run.array(1), x.shape[axis], "take", wrap=wrap), axis)

    def define(self, low: Lowering) -> None:
        """Define one block that loads the index, then the element."""
        x, indices = low.sources
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")
        end = axis + indices.rank

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                return Store(low.out, iters, x(*iters[:axis], index, *iters[end:]))

            load = low.load(1, iters[axis:end])
            return let_index(load, x.shape[axis], at, wrap=wrap)

        low.builder.block(_kinds(low.out.shape, "spatial"), body, name="take")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Add the slices of the cotangent at their positions in zeros."""
        del position
        x, indices, g = call.tensor(0), call.tensor(1), call.cotangent(graph)
        axis, wrap = call.attributes.axis("axis", x.rank), call.attributes.flag("wrap")
        at = graph.emit("reshape", call.args[1], (product(indices.shape),))
        shape = (*x.shape[:axis], product(indices.shape), *x.shape[axis + 1 :])
        slices = graph.emit("reshape", g, shape)
        start = zeros(graph, TensorInfo(x.shape, x.dtype))
        return graph.emit("index_add", start, at, slices, axis=axis, wrap=wrap)


def _taken(
    elements: tuple[Expr, ...] | None, indices: tuple[Expr, ...] | None, rank: int
) -> tuple[Expr, ...] | None:
    if elements is None or indices is None or rank != 1 or len(indices) > MAX_ELEMENTS:
        return None
    at = [const_value(i) for i in indices]
    inside = [k for k in at if k is not None and -len(elements) <= k < len(elements)]
    return tuple(elements[k] for k in inside) if len(inside) == len(at) else None


@operator
class GatherElements(Operator):
    """Gather elements along an axis: ``out[i, j] = x[indices[i, j], j]`` for axis 0.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
    indices : tensor
        An integer dtype, the rank of `x`, values in ``[0, d)``. Its dimensions along other axes are
        at most those of `x`.
    axis : int, default 0
        The axis.
    wrap : bool, default False
        Whether negative indices in ``[-d, 0)`` count from the end.

    Returns
    -------
    tensor
        The dtype of `x`, the shape of `indices`.

    Raises
    ------
    OperandError
        If the ranks differ.
    ShapeMismatchError
        If a dimension of `indices` exceeds that of `x`.

    Notes
    -----
    An index out of range is a run-time error. NumPy: ``take_along_axis``; ONNX: ``GatherElements``.

    Examples
    --------
    >>> GatherElements().reference((np.array([[1, 2], [3, 4]]), np.array([[1, 0]])))
    array([[3, 2]])
    """

    name = "gather_elements"
    signature = Signature((OperandSpec("x"), INDICES), (AXIS, WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the indices; require that it is within ``x`` along other axes."""
        x = call.require_rank(0, 1)
        indices = call.require_rank(1, x.rank, x.rank)
        axis = call.attributes.axis("axis", x.rank)
        for k in (k for k in range(x.rank) if k != axis):
            text = f"indices of shape {shape_text(indices.shape)}"
            reason = f"{text} must not exceed x of shape {shape_text(x.shape)} in axis {k}"
            call.require(indices.shape[k] <= x.shape[k], reason)
        return TensorInfo(indices.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Gather with NumPy."""
        x, indices = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        cut = tuple(slice(None) if k == axis else slice(0, n) for k, n in enumerate(indices.shape))
        return np.take_along_axis(x[cut], front, axis)

    def define(self, low: Lowering) -> None:
        """Define one block that loads the index, then the element."""
        x = low.sources[0]
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                return Store(low.out, iters, x(*iters[:axis], index, *iters[axis + 1 :]))

            return let_index(low.load(1, iters), x.shape[axis], at, wrap=wrap)

        low.builder.block(_kinds(low.out.shape, "spatial"), body, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Add the elements of the cotangent at their positions in zeros."""
        del position
        x = call.tensor(0)
        axis, wrap = call.attributes.axis("axis", x.rank), call.attributes.flag("wrap")
        start = zeros(graph, TensorInfo(x.shape, x.dtype))
        at, g = call.args[1], call.cotangent(graph)
        return graph.emit("scatter_add", start, at, g, axis=axis, wrap=wrap)


@operator
class Index(Operator):
    """Index the leading axes of a tensor by index tensors: ``x[i0, i1, ...]``.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(d0, d1, ..., ...)``.
    indices : tensor, one or more
        Integer dtypes, shapes that broadcast; the values of operand ``k`` are in ``[0, dk)``.
    wrap : bool, default False
        Whether negative indices in ``[-dk, 0)`` count from the end.

    Returns
    -------
    tensor
        The dtype of `x`; the broadcast shape of `indices` followed by the other dimensions of `x`.

    Notes
    -----
    An index out of range is a run-time error. NumPy: integer array indexing; ONNX: ``GatherND``.

    Examples
    --------
    >>> Index().reference((np.array([[1, 2], [3, 4]]), np.array([0, 1]), np.array([1, 0])))
    array([2, 3])
    """

    name = "index"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("indices", dtypes="integer", variadic=True)), (WRAP,)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape with the indexed axes replaced by the broadcast shape."""
        count = len(call.args) - 1
        x = call.require_rank(0, count)
        chosen = broadcast(call, [call.tensor(k + 1).shape for k in range(count)])
        return TensorInfo((*chosen, *x.shape[count:]), x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Gather with NumPy."""
        x, *indices = run.arrays()
        wrap = run.attributes.flag("wrap")
        front = [checked_indices(i, x.shape[k], "index", wrap=wrap) for k, i in enumerate(indices)]
        return x[tuple(front)].copy()

    def define(self, low: Lowering) -> None:
        """Define one block that loads the indices in order, then the element."""
        x, count = low.sources[0], len(low.sources) - 1
        lead = low.out.rank - (x.rank - count)
        wrap = low.attributes.flag("wrap")

        def chosen(iters: tuple[Expr, ...], found: tuple[Expr, ...]) -> Stmt:
            k = len(found)
            if k == count:
                return Store(low.out, iters, x(*found, *iters[lead:]))
            load = low.load_broadcast(k + 1, iters[:lead])
            rest: Callable[[Expr], Stmt] = lambda at: chosen(iters, (*found, at))  # noqa: E731
            return let_index(load, x.shape[k], rest, wrap=wrap, name=f"at{k}")

        low.builder.block(
            _kinds(low.out.shape, "spatial"), lambda *iters: chosen(iters, ()), name="index"
        )

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Add the elements of the cotangent at their positions in zeros."""
        del position
        return indexed_gradient(call, graph)


@operator
class IndexCopy(Operator):
    """Write slices along an axis at the positions of an index vector.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
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
        A copy of `x` with the slices at `indices` replaced.

    Raises
    ------
    OperandError
        If the dtypes or ranks do not match.
    ShapeMismatchError
        If `updates` does not have the required shape.

    Notes
    -----
    The last of several updates of one slice is kept. An index out of range is a run-time error. A
    static key-value cache is updated with this operator. PyTorch: ``index_copy``.

    Examples
    --------
    >>> IndexCopy().reference((np.zeros(3), np.array([2, 0]), np.array([5.0, 6.0])))
    array([6., 0., 5.])
    """

    name = "index_copy"
    is_update = True
    signature = Signature((OperandSpec("x"), INDICES, OperandSpec("updates")), (AXIS, WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; require one update per index."""
        x, indices = call.require_rank(0, 1), call.require_rank(1, 1, 1)
        updates = call.require_rank(2, x.rank, x.rank)
        call.require_same_dtype((0, 2))
        axis = call.attributes.axis("axis", x.rank)
        want = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        for k in range(x.rank):
            reason = (
                f"expected updates of shape {shape_text(want)}, got {shape_text(updates.shape)}"
            )
            call.require_equal(updates.shape[k], want[k], f"{reason}; axis {k}")
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy ``x`` and write the updates with NumPy."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        out = x.copy()
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        target: tuple[Any, ...] = (*(slice(None),) * axis, front)
        out[target] = updates
        return out

    def define(self, low: Lowering) -> None:
        """Define one block that copies, unless in place, and one that writes updates in order."""
        x, _, updates = low.sources
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")
        low.copy_first()

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                target = (*iters[:axis], index, *iters[axis + 1 :])
                return Store(low.out, target, updates(*iters))

            return let_index(low.load(1, (iters[axis],)), x.shape[axis], at, wrap=wrap)

        kinds = _kinds(updates.shape, "spatial")
        kinds[axis] = (updates.shape[axis], "ordered")
        low.builder.block(kinds, body, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the cotangent without the replaced slices, or the slices that are kept."""
        return replaced_gradient(call, position, graph, "take")


@operator
class ScatterElements(Operator):
    """Scatter elements along an axis: ``out[indices[i, j], j] = updates[i, j]`` for axis 0.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
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
        A copy of `x` with the elements at `indices` replaced.

    Raises
    ------
    OperandError
        If the dtypes or ranks do not match.
    ShapeMismatchError
        If the shapes of `updates` and `indices` differ, or `indices` exceeds `x`.

    Notes
    -----
    The last of several updates of one element is kept. An index out of range is a run-time error.
    NumPy: ``put_along_axis``; ONNX: ``ScatterElements``.

    Examples
    --------
    >>> ScatterElements().reference((np.zeros(3), np.array([2, 0]), np.array([5.0, 6.0])))
    array([6., 0., 5.])
    """

    name = "scatter_elements"
    is_update = True
    signature = Signature((OperandSpec("x"), INDICES, OperandSpec("updates")), (AXIS, WRAP))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; require that updates have the shape of the indices."""
        x = call.require_rank(0, 1)
        indices, updates = (
            call.require_rank(1, x.rank, x.rank),
            call.require_rank(2, x.rank, x.rank),
        )
        call.require_same_dtype((0, 2))
        axis = call.attributes.axis("axis", x.rank)
        shape = shape_text(indices.shape)
        for k, (have, want) in enumerate(zip(updates.shape, indices.shape, strict=True)):
            reason = f"shapes of updates {shape_text(updates.shape)} and indices {shape} differ"
            call.require_equal(have, want, f"{reason} in axis {k}")
            if k != axis:
                reason = (
                    f"indices of shape {shape} must not exceed x of shape {shape_text(x.shape)}"
                )
                call.require(want <= x.shape[k], f"{reason} in axis {k}")
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy ``x`` and write the updates with NumPy."""
        x, indices, updates = run.arrays()
        axis, wrap = run.attributes.axis("axis", x.ndim), run.attributes.flag("wrap")
        out = x.copy()
        front = checked_indices(indices, x.shape[axis], self.name, wrap=wrap)
        target: list[Any] = list(np.indices(indices.shape))
        target[axis] = front
        out[tuple(target)] = updates
        return out

    def define(self, low: Lowering) -> None:
        """Define one block that copies, unless in place, and one that writes updates in order."""
        x, indices, updates = low.sources
        axis, wrap = low.attributes.axis("axis", x.rank), low.attributes.flag("wrap")
        low.copy_first()

        def body(*iters: Expr) -> Stmt:
            def at(index: Expr) -> Stmt:
                target = (*iters[:axis], index, *iters[axis + 1 :])
                return Store(low.out, target, updates(*iters))

            return let_index(low.load(1, iters), x.shape[axis], at, wrap=wrap)

        kinds = _kinds(indices.shape, "spatial")
        kinds[axis] = (indices.shape[axis], "ordered")
        low.builder.block(kinds, body, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the cotangent without the replaced elements, or the elements that are kept."""
        return replaced_gradient(call, position, graph, "gather_elements")
