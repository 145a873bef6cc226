"""Data movement operators: permute, broadcast, concatenate, slice, split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ...loop.nodes import Condition, Element, Where
from ...symbolic import Expr, as_expr, ceildiv, const_value, product, total
from ..nodes import Info, Operand, TensorInfo, TupleInfo
from .broadcasting import require_broadcastable
from .composition import Composer
from .creation import require_sizes
from .evaluation import Array, Evaluation
from .gradients import GradientCall, shape_of, zeros
from .lowering import Lowering, Source
from .operator import Operator, operator
from .shape_inference import MAX_ELEMENTS, CallFacts, Tensor, shape_text
from .signature import AttributeSpec, OperandSpec, Signature

MAX_CASES: Final = 16
"""The most operands of ``concat`` that are selected one after the other."""


@operator
class PermuteDims(Operator):
    """Permute the dimensions of a tensor.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(d0, ..., dn)``.
    axes : tuple of int
        A permutation of the axes; dimension ``k`` of the result is dimension ``axes[k]`` of `x`.

    Returns
    -------
    tensor
        The dtype of `x`, the permuted shape.

    Raises
    ------
    OperandError
        If `axes` does not list every axis of `x`.

    Notes
    -----
    NumPy: ``transpose``; ONNX: ``Transpose``.

    Examples
    --------
    >>> PermuteDims().reference((np.zeros((2, 3)),), {"axes": (1, 0)}).shape
    (3, 2)
    """

    name = "permute_dims"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the permuted shape."""
        x = call.tensor(0)
        axes = call.attributes.axes("axes", x.rank)
        if len(axes) != x.rank:
            raise call.error(0, f"expected one axis per dimension ({x.rank}), got axes={axes}")
        return TensorInfo(tuple(x.shape[a] for a in axes), x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Transpose with NumPy."""
        return np.transpose(run.array(0), run.attributes.integers("axes"))

    def define(self, low: Lowering) -> None:
        """Define one block over the result."""
        x = low.sources[0]
        axes = low.attributes.axes("axes", x.rank)

        def value(*indices: Expr) -> Element:
            return x(*(indices[axes.index(k)] for k in range(x.rank)))

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Permute the cotangent by the inverse permutation."""
        del position
        axes = call.attributes.axes("axes", call.tensor(0).rank)
        inverse = tuple(axes.index(k) for k in range(len(axes)))
        return graph.emit("permute_dims", call.cotangent(graph), axes=inverse)


@operator
class BroadcastTo(Operator):
    """Broadcast a tensor to a shape.

    Parameters
    ----------
    x : tensor
        Any dtype; its shape broadcasts to `shape`.
    shape : tuple of integers
        The shape of the result.

    Returns
    -------
    tensor
        The dtype of `x`, shape `shape`.

    Raises
    ------
    OperandError
        If `x` has more dimensions than `shape`.
    ShapeMismatchError
        If a dimension of `x` is neither 1 nor equal to that of `shape`.

    Notes
    -----
    NumPy: ``broadcast_to``; ONNX: ``Expand``.

    Examples
    --------
    >>> BroadcastTo().reference((np.array([[1], [2]]), (2, 2)))
    array([[1, 1],
           [2, 2]])
    """

    name = "broadcast_to"
    signature = Signature((OperandSpec("x"), OperandSpec("shape", ("dims",))))

    def deduce(self, call: CallFacts) -> Info:
        """Return the given shape."""
        x, shape = call.tensor(0), call.dims(1)
        require_sizes(call, shape)
        require_broadcastable(call, x.shape, shape)
        size = const_value(product(shape))
        uniform = x.elements is not None and len(x.elements) == 1
        elements = None
        if x.elements is not None and uniform and size is not None and size <= MAX_ELEMENTS:
            elements = x.elements * size
        return TensorInfo(shape, x.dtype, elements=elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Broadcast with NumPy."""
        return np.broadcast_to(run.array(0), run.dims(1)).copy()

    def define(self, low: Lowering) -> None:
        """Define one block over the result."""
        low.builder.compute(low.out, lambda *i: low.sources[0].broadcast(i), name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the cotangent, which is summed over the dimensions that broadcast."""
        del position
        return call.cotangent(graph)


@operator
class Concat(Operator):
    """Concatenate tensors along an axis.

    Parameters
    ----------
    x : tensor, one or more
        The same dtype and rank; equal dimensions except along `axis`.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The dtype of the operands; the dimension at `axis` is the sum of those of the operands.

    Raises
    ------
    OperandError
        If dtypes or ranks differ.
    ShapeMismatchError
        If dimensions differ along another axis.

    Notes
    -----
    NumPy: ``concatenate``; ONNX: ``Concat``.

    Examples
    --------
    >>> Concat().reference((np.array([1, 2]), np.array([3])))
    array([1, 2, 3])
    """

    name = "concat"
    signature = Signature((OperandSpec("x", variadic=True),), (AttributeSpec("axis", "int", 0),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the concatenated shape; require that the other dimensions are equal."""
        tensors = call.tensors()
        dtype = call.require_same_dtype(range(len(tensors)))
        first = tensors[0]
        axis = call.attributes.axis("axis", first.rank)
        for k, x in enumerate(tensors[1:], start=1):
            call.require_rank(k, first.rank, first.rank)
            reason = f"cannot concatenate {shape_text(first.shape)} and {shape_text(x.shape)}"
            for d in (d for d in range(first.rank) if d != axis):
                call.require_equal(first.shape[d], x.shape[d], f"{reason}; axis {d}")
        size = total(x.shape[axis] for x in tensors)
        shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
        return TensorInfo(shape, dtype, elements=_joined(tensors))

    def evaluate(self, run: Evaluation) -> Array:
        """Concatenate with NumPy."""
        arrays = run.arrays()
        return np.concatenate(arrays, axis=run.attributes.axis("axis", arrays[0].ndim))

    def define(self, low: Lowering) -> None:
        """Define one block that selects the operand by index."""
        axis = low.attributes.axis("axis", low.out.rank)
        low.builder.compute(low.out, lambda *i: _chosen(low.sources, axis, i), name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Slice the cotangent."""
        axis = call.attributes.axis("axis", call.tensor(0).rank)
        begin = total(x.shape[axis] for x in call.facts.tensors()[:position])
        bounds = (begin,), (begin + call.tensor(position).shape[axis],)
        return graph.emit("strided_slice", call.cotangent(graph), *bounds, axes=(axis,))


def _joined(tensors: tuple[Tensor, ...]) -> tuple[Expr, ...] | None:
    known = [x.elements for x in tensors if x.elements is not None]
    if len(known) < len(tensors) or tensors[0].rank != 1:
        return None
    joined = tuple(e for elements in known for e in elements)
    return joined if len(joined) <= MAX_ELEMENTS else None


def _chosen(sources: Sequence[Source], axis: int, indices: tuple[Expr, ...]) -> Element:
    starts = [as_expr(0)]
    for source in sources:
        starts.append(starts[-1] + source.shape[axis])

    def part(k: int) -> Element:
        own = (*indices[:axis], indices[axis] - starts[k], *indices[axis + 1 :])
        return sources[k](*own)

    def among(first: int, stop: int) -> Element:
        if stop - first == 1:
            return part(first)
        # A list of few cases, and a tree of many: its depth is the logarithm of their number.
        middle = first + (1 if stop - first <= MAX_CASES else (stop - first) // 2)
        below = Condition(indices[axis] < starts[middle])
        return Where(below, among(first, middle), among(middle, stop))

    return among(0, len(sources))


@operator
class StridedSlice(Operator):
    """Select the elements ``begin, begin + step, ...`` in ``[begin, end)`` along some axes.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(d0, ..., dn)``.
    begin, end : tuple of integers
        The bounds, one per axis of `axes`, with ``0 <= begin <= end <= d``.
    axes : tuple of int
        The axes to slice.
    steps : tuple of int, default all 1
        Positive steps, one per axis of `axes`.

    Returns
    -------
    tensor
        The dtype of `x`; a sliced dimension is ``ceildiv(end - begin, step)``.

    Raises
    ------
    OperandError
        If `begin`, `end` or `steps` do not match `axes`, or a step is not positive.
    ShapeMismatchError
        If the bounds are out of range.

    Notes
    -----
    Negative bounds, which NumPy and ONNX allow, must be resolved before. NumPy: basic slicing;
    ONNX: ``Slice``.

    Examples
    --------
    >>> StridedSlice().reference((np.arange(6), (1,), (6,)), {"axes": (0,), "steps": (2,)})
    array([1, 3, 5])
    """

    name = "strided_slice"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("begin", ("dims",)), OperandSpec("end", ("dims",))),
        (AttributeSpec("axes", "ints"), AttributeSpec("steps", "ints", ())),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape with the number of steps along each sliced axis."""
        x = call.tensor(0)
        axes, steps = _slice_axes(call, x.rank)
        shape = list(x.shape)
        for axis, begin, end, step in zip(axes, call.dims(1), call.dims(2), steps, strict=True):
            _require_slice(call, x.shape[axis], begin, end, axis)
            shape[axis] = ceildiv(end - begin, step)
        return TensorInfo(tuple(shape), x.dtype, elements=_sliced(call, x, steps))

    def evaluate(self, run: Evaluation) -> Array:
        """Slice with NumPy."""
        x = run.array(0)
        axes = run.attributes.axes("axes", x.ndim)
        steps = run.attributes.integers("steps") or (1,) * len(axes)
        chosen = [slice(None)] * x.ndim
        for axis, begin, end, step in zip(axes, run.dims(1), run.dims(2), steps, strict=True):
            chosen[axis] = slice(begin, end, step)
        return x[tuple(chosen)].copy()

    def define(self, low: Lowering) -> None:
        """Define one block over the result."""
        x = low.sources[0]
        axes, steps = _slice_axes(low.call, x.rank)
        begins = low.call.dims(1)

        def value(*indices: Expr) -> Element:
            moved = list(indices)
            for axis, begin, step in zip(axes, begins, steps, strict=True):
                moved[axis] = begin + indices[axis] * step
            return x(*moved)

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Pad the cotangent with zeros; add it at the selected positions for other steps."""
        del position
        x, g = call.tensor(0), call.cotangent(graph)
        axes, steps = _slice_axes(call.facts, x.rank)
        begins, ends = call.facts.dims(1), call.facts.dims(2)
        before, after = [as_expr(0)] * x.rank, [as_expr(0)] * x.rank
        for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
            if step == 1:
                before[axis], after[axis] = begin, x.shape[axis] - end
                continue
            own = shape_of(g)
            whole = TensorInfo((*own[:axis], x.shape[axis], *own[axis + 1 :]), x.dtype)
            at = graph.emit("arange", (begin, end, as_expr(step)))
            g = graph.emit("index_add", zeros(graph, whole), at, g, axis=axis)
        return graph.emit("pad", g, tuple(before), tuple(after))


def _slice_axes(call: CallFacts, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes = call.attributes.axes("axes", rank)
    steps = call.attributes.integers("steps") or (1,) * len(axes)
    for position, given in ((1, len(call.dims(1))), (2, len(call.dims(2)))):
        if given != len(axes):
            raise call.error(
                position, f"expected one integer per axis of {axes}, got {given} integers"
            )
    if len(steps) != len(axes) or any(s < 1 for s in steps):
        raise call.error(0, f"expected one positive step per axis of {axes}, got steps={steps}")
    return axes, steps


def _require_slice(call: CallFacts, size: Expr, begin: Expr, end: Expr, axis: int) -> None:
    text = f"slice [{begin}, {end}) must be within axis {axis} of extent {size}"
    for claim in (begin >= 0, begin <= end, end <= size):
        call.require(claim, text)


def _sliced(call: CallFacts, x: Tensor, steps: tuple[int, ...]) -> tuple[Expr, ...] | None:
    if x.elements is None or x.rank != 1 or len(steps) != 1:
        return None
    begin, end = const_value(call.dims(1)[0]), const_value(call.dims(2)[0])
    return None if begin is None or end is None else x.elements[begin : end : steps[0]]


@operator
class Split(Operator):
    """Split a tensor along an axis into parts of given sizes.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(..., d, ...)`` with dimension ``d`` at `axis`.
    sizes : tuple of integers
        The sizes of the parts; their sum is ``d``.
    axis : int, default 0
        The axis.

    Returns
    -------
    tuple of tensors
        One tensor per size ``s``: the dtype of `x`, shape ``(..., s, ...)``.

    Raises
    ------
    ShapeMismatchError
        If the sizes do not sum to ``d``.

    Notes
    -----
    NumPy: ``split``; ONNX: ``Split``.

    Examples
    --------
    >>> Split().reference((np.array([1, 2, 3]), (1, 2)))
    (array([1]), array([2, 3]))
    """

    name = "split"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("sizes", ("dims",))), (AttributeSpec("axis", "int", 0),)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return one tensor per size; require that the sizes sum to the dimension."""
        x, sizes = call.tensor(0), call.dims(1)
        axis = call.attributes.axis("axis", x.rank)
        require_sizes(call, sizes)
        reason = f"sizes {shape_text(sizes)} must sum to axis {axis} of {shape_text(x.shape)}"
        call.require_equal(total(sizes), x.shape[axis], reason)
        return TupleInfo(
            tuple(TensorInfo((*x.shape[:axis], s, *x.shape[axis + 1 :]), x.dtype) for s in sizes)
        )

    def evaluate(self, run: Evaluation) -> tuple[Array, ...]:
        """Split with NumPy."""
        x = run.array(0)
        ends = np.cumsum(run.dims(1))[:-1]
        return tuple(p.copy() for p in np.split(x, ends, run.attributes.axis("axis", x.ndim)))

    def define(self, low: Lowering) -> None:
        """Define one block per part."""
        x = low.sources[0]
        axis = low.attributes.axis("axis", x.rank)
        start = as_expr(0)
        for k, (out, size) in enumerate(zip(low.results, low.call.dims(1), strict=True)):
            low.builder.compute(out, _Piece(x, axis, start), name=f"split{k}")
            start = start + size

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Concatenate the cotangents of the parts."""
        del position
        axis = call.attributes.axis("axis", call.tensor(0).rank)
        parts = (call.cotangent(graph, k) for k in range(len(call.cotangents)))
        return graph.emit("concat", *parts, axis=axis)


class _Piece:
    """A source shifted along one axis."""

    def __init__(self, source: Source, axis: int, start: Expr) -> None:
        self._source, self._axis, self._start = source, axis, start

    def __call__(self, *indices: Expr) -> Element:
        axis = self._axis
        return self._source(*indices[:axis], indices[axis] + self._start, *indices[axis + 1 :])
