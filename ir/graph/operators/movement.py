"""Operators that move elements without computing: permute, broadcast, concatenate, slice, split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...loop.nodes import Condition, Element, Where
from ...symbolic import Expr, as_expr, ceildiv, const_value, product, total
from ..nodes import Info, TensorInfo, TupleInfo
from .broadcasting import require_broadcastable
from .creation import require_sizes
from .evaluation import Array, Evaluation
from .inference import MOST_ELEMENTS, CallFacts, Tensor, shape_text
from .lowering import Lowering, Source
from .operator import Operator, operator
from .signature import AttributeSpec, OperandSpec, Signature


@operator
class PermuteDims(Operator):
    """Reorder dimensions: dimension ``k`` of the result is dimension ``axes[k]`` of ``x``."""

    name = "permute_dims"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Reorder the shape."""
        x = call.tensor(0)
        axes = call.attributes.axes("axes", x.rank)
        if len(axes) != x.rank:
            raise call.error(0, f"rank {x.rank} does not fit the {len(axes)} axes {axes}")
        return TensorInfo(tuple(x.shape[a] for a in axes), x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Transpose."""
        return np.transpose(run.array(0), run.attributes.integers("axes"))

    def define(self, low: Lowering) -> None:
        """One block over the result."""
        x = low.sources[0]
        axes = low.attributes.axes("axes", x.rank)

        def value(*indices: Expr) -> Element:
            return x(*(indices[axes.index(k)] for k in range(x.rank)))

        low.builder.compute(low.out, value, name=self.name)


@operator
class BroadcastTo(Operator):
    """Repeat along dimensions of 1 and new leading dimensions until the shape is ``shape``."""

    name = "broadcast_to"
    signature = Signature((OperandSpec("x"), OperandSpec("shape", ("dims",))))

    def deduce(self, call: CallFacts) -> Info:
        """Take the shape as it is given."""
        x, shape = call.tensor(0), call.dims(1)
        require_sizes(call, shape)
        require_broadcastable(call, x.shape, shape)
        size = const_value(product(shape))
        uniform = x.elements is not None and len(x.elements) == 1
        elements = None
        if x.elements is not None and uniform and size is not None and size <= MOST_ELEMENTS:
            elements = x.elements * size
        return TensorInfo(shape, x.dtype, elements=elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Repeat."""
        return np.broadcast_to(run.array(0), run.dims(1)).copy()

    def define(self, low: Lowering) -> None:
        """One block over the result."""
        low.builder.compute(low.out, lambda *i: low.sources[0].broadcast(i), name=self.name)


@operator
class Concat(Operator):
    """Put tensors one after the other along ``axis``."""

    name = "concat"
    signature = Signature((OperandSpec("x", variadic=True),), (AttributeSpec("axis", "int", 0),))

    def deduce(self, call: CallFacts) -> Info:
        """Add up the dimension, and require that the others are equal."""
        tensors = call.tensors()
        dtype = call.require_same_dtype(range(len(tensors)))
        first = tensors[0]
        axis = call.attributes.axis("axis", first.rank)
        for k, x in enumerate(tensors[1:], start=1):
            call.require_rank(k, first.rank, first.rank)
            reason = f"cannot concatenate {shape_text(first.shape)} and {shape_text(x.shape)}"
            for d in (d for d in range(first.rank) if d != axis):
                call.require_equal(first.shape[d], x.shape[d], f"{reason}: axis {d} has")
        size = total(x.shape[axis] for x in tensors)
        shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
        return TensorInfo(shape, dtype, elements=_joined(tensors))

    def evaluate(self, run: Evaluation) -> Array:
        """Concatenate."""
        arrays = run.arrays()
        return np.concatenate(arrays, axis=run.attributes.axis("axis", arrays[0].ndim))

    def define(self, low: Lowering) -> None:
        """One block that chooses the operand by position."""
        axis = low.attributes.axis("axis", low.out.rank)
        low.builder.compute(low.out, lambda *i: _chosen(low.sources, axis, i), name=self.name)


def _joined(tensors: tuple[Tensor, ...]) -> tuple[Expr, ...] | None:
    known = [x.elements for x in tensors if x.elements is not None]
    if len(known) < len(tensors) or tensors[0].rank != 1:
        return None
    joined = tuple(e for elements in known for e in elements)
    return joined if len(joined) <= MOST_ELEMENTS else None


def _chosen(sources: Sequence[Source], axis: int, indices: tuple[Expr, ...]) -> Element:
    starts = [as_expr(0)]
    for source in sources:
        starts.append(starts[-1] + source.shape[axis])

    def part(k: int) -> Element:
        own = (*indices[:axis], indices[axis] - starts[k], *indices[axis + 1 :])
        return sources[k](*own)

    found = part(len(sources) - 1)
    for k in reversed(range(len(sources) - 1)):
        found = Where(Condition(indices[axis] < starts[k + 1]), part(k), found)
    return found


@operator
class StridedSlice(Operator):
    """Elements ``begin, begin + step, ...`` up to but without ``end`` along each of ``axes``.

    Requires ``0 <= begin <= end <= size``; whoever has Python's negative or overlong bounds
    resolves them before.
    """

    name = "strided_slice"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("begin", ("dims",)), OperandSpec("end", ("dims",))),
        (AttributeSpec("axes", "ints"), AttributeSpec("steps", "ints", ())),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Count the steps along each axis."""
        x = call.tensor(0)
        axes, steps = _slice_axes(call, x.rank)
        shape = list(x.shape)
        for axis, begin, end, step in zip(axes, call.dims(1), call.dims(2), steps, strict=True):
            _require_slice(call, x.shape[axis], begin, end, axis)
            shape[axis] = ceildiv(end - begin, step)
        return TensorInfo(tuple(shape), x.dtype, elements=_sliced(call, x, steps))

    def evaluate(self, run: Evaluation) -> Array:
        """Slice."""
        x = run.array(0)
        axes = run.attributes.axes("axes", x.ndim)
        steps = run.attributes.integers("steps") or (1,) * len(axes)
        chosen = [slice(None)] * x.ndim
        for axis, begin, end, step in zip(axes, run.dims(1), run.dims(2), steps, strict=True):
            chosen[axis] = slice(begin, end, step)
        return x[tuple(chosen)].copy()

    def define(self, low: Lowering) -> None:
        """One block over the result."""
        x = low.sources[0]
        axes, steps = _slice_axes(low.call, x.rank)
        begins = low.call.dims(1)

        def value(*indices: Expr) -> Element:
            moved = list(indices)
            for axis, begin, step in zip(axes, begins, steps, strict=True):
                moved[axis] = begin + indices[axis] * step
            return x(*moved)

        low.builder.compute(low.out, value, name=self.name)


def _slice_axes(call: CallFacts, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes = call.attributes.axes("axes", rank)
    steps = call.attributes.integers("steps") or (1,) * len(axes)
    for position, given in ((1, len(call.dims(1))), (2, len(call.dims(2)))):
        if given != len(axes):
            raise call.error(position, f"{given} integers for {len(axes)} axes {axes}")
    if len(steps) != len(axes) or any(s < 1 for s in steps):
        raise call.error(0, f"steps {steps} have to be positive, one for each of {axes}")
    return axes, steps


def _require_slice(call: CallFacts, size: Expr, begin: Expr, end: Expr, axis: int) -> None:
    text = f"slice [{begin}, {end}) of axis {axis} of {size} elements is out of range"
    for claim in (begin >= 0, begin <= end, end <= size):
        call.require(claim, text)


def _sliced(call: CallFacts, x: Tensor, steps: tuple[int, ...]) -> tuple[Expr, ...] | None:
    if x.elements is None or x.rank != 1 or len(steps) != 1:
        return None
    begin, end = const_value(call.dims(1)[0]), const_value(call.dims(2)[0])
    return None if begin is None or end is None else x.elements[begin : end : steps[0]]


@operator
class Split(Operator):
    """Cut along ``axis`` into pieces of the given ``sizes``, which add up to the dimension."""

    name = "split"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("sizes", ("dims",))), (AttributeSpec("axis", "int", 0),)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Give one tensor a size."""
        x, sizes = call.tensor(0), call.dims(1)
        axis = call.attributes.axis("axis", x.rank)
        require_sizes(call, sizes)
        reason = f"pieces {shape_text(sizes)} do not make up axis {axis} of {shape_text(x.shape)}"
        call.require_equal(total(sizes), x.shape[axis], reason)
        return TupleInfo(
            tuple(TensorInfo((*x.shape[:axis], s, *x.shape[axis + 1 :]), x.dtype) for s in sizes)
        )

    def evaluate(self, run: Evaluation) -> tuple[Array, ...]:
        """Cut."""
        x = run.array(0)
        ends = np.cumsum(run.dims(1))[:-1]
        return tuple(p.copy() for p in np.split(x, ends, run.attributes.axis("axis", x.ndim)))

    def define(self, low: Lowering) -> None:
        """One block a piece."""
        x = low.sources[0]
        axis = low.attributes.axis("axis", x.rank)
        start = as_expr(0)
        for k, (out, size) in enumerate(zip(low.results, low.call.dims(1), strict=True)):
            low.builder.compute(out, _Piece(x, axis, start), name=f"split{k}")
            start = start + size


class _Piece:
    """Reads a source moved along one axis."""

    def __init__(self, source: Source, axis: int, start: Expr) -> None:
        self._source, self._axis, self._start = source, axis, start

    def __call__(self, *indices: Expr) -> Element:
        axis = self._axis
        return self._source(*indices[:axis], indices[axis] + self._start, *indices[axis + 1 :])
