"""Reduction operators: sum, prod, max, min, mean, any, all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import DType, from_numpy
from ...loop.combiners import Combiner, identity_of
from ...loop.nodes import Buffer, Element
from ...symbolic import Expr, as_expr, product
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer, narrowed_to, widened
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall, extent, restored
from .lowering import Lowering, Source, accumulator, buffer_source, cast_to, divided, extent_as
from .operator import Operator, operator, register
from .shape_inference import CallFacts
from .signature import AttributeSpec, AttributeValues, DTypeClass, OperandSpec, Signature

_ATTRIBUTES = (AttributeSpec("axes", "ints", ()), AttributeSpec("keepdims", "bool", default=False))


def reduced_axes(attributes: AttributeValues, rank: int) -> tuple[int, ...]:
    """Return the reduced axes in increasing order; all axes if the attribute is empty."""
    return tuple(sorted(attributes.axes("axes", rank))) or tuple(range(rank))


def reduced_shape(
    shape: tuple[Expr, ...], axes: tuple[int, ...], *, keepdims: bool
) -> tuple[Expr, ...]:
    """Return the shape without the reduced axes; they are 1 if ``keepdims``."""
    if keepdims:
        return tuple(as_expr(1) if k in axes else d for k, d in enumerate(shape))
    return tuple(d for k, d in enumerate(shape) if k not in axes)


def reduce_signature(dtypes: DTypeClass) -> Signature:
    """Return the signature of a reduction of a class of dtypes."""
    return Signature((OperandSpec("x", dtypes=dtypes),), _ATTRIBUTES)


def scattered(
    axes: tuple[int, ...], rank: int, kept: tuple[Expr, ...], reduced: tuple[Expr, ...]
) -> tuple[Expr, ...]:
    """Merge kept and reduced indices into the indices of the operand."""
    spatial, reduction = iter(kept), iter(reduced)
    return tuple(next(reduction) if k in axes else next(spatial) for k in range(rank))


_BOOLS = reduce_signature("bool")


class Reduction(Operator):
    """The base class of reductions over axes."""

    def result_dtype(self, dtype: DType) -> DType:
        """Return the dtype of the result for the dtype of the operand."""
        return dtype

    def deduce(self, call: CallFacts) -> Info:
        """Return the reduced shape."""
        x = call.tensor(0)
        axes = reduced_axes(call.attributes, x.rank)
        shape = reduced_shape(x.shape, axes, keepdims=call.attributes.flag("keepdims"))
        return TensorInfo(shape, self.result_dtype(x.dtype))

    def combine(
        self, low: Lowering, out: Buffer, combiner: Combiner, x: Source | None = None
    ) -> None:
        """Define the reduction block; ``out`` has the shape of the result."""
        source = low.sources[0] if x is None else x
        axes = reduced_axes(low.attributes, source.rank)
        keepdims = low.attributes.flag("keepdims")
        extents = [source.shape[a] for a in axes]

        def value(*indices: Expr) -> Element:
            lead = indices[: out.rank]
            kept = tuple(i for k, i in enumerate(lead) if not (keepdims and k in axes))
            at = scattered(axes, source.rank, kept, indices[out.rank :])
            return cast_to(out.dtype, source(*at))

        low.builder.reduce(out, extents, value, combiner=combiner, name=self.name)


@dataclass(frozen=True)
class CombinerReduction(Reduction):
    """A numeric reduction with one combiner.

    Parameters
    ----------
    x : tensor
        A numeric dtype, shape ``(d0, ..., dn)``.
    axes : tuple of int, default ()
        The axes to reduce; all axes if empty.
    keepdims : bool, default False
        Whether the reduced axes remain, with dimension 1.

    Returns
    -------
    tensor
        The dtype of `x`; the shape of `x` without the reduced axes.

    Attributes
    ----------
    combiner : str
        The combiner of the reduction block.
    apply : callable
        The NumPy reference.

    Notes
    -----
    The result for an empty domain is the identity. 16-bit floats are accumulated in float32.
    ``max`` and ``min`` propagate NaN.

    ======== ============= ====== ======== ==============
    Operator Identity      Dtypes NumPy    ONNX
    ======== ============= ====== ======== ==============
    ``sum``  ``0``         field  ``sum``  ``ReduceSum``
    ``prod`` ``1``         field  ``prod`` ``ReduceProd``
    ``max``  minimum value number ``max``  ``ReduceMax``
    ``min``  maximum value number ``min``  ``ReduceMin``
    ======== ============= ====== ======== ==============

    Examples
    --------
    >>> CombinerReduction("sum", reduce_signature("number"), "add", np.sum).reference(
    ...     (np.array([[1, 2], [3, 4]]),), {"axes": (0,)}
    ... )
    array([4, 6])
    """

    name: str
    signature: Signature
    combiner: Combiner
    apply: Callable[..., Any]

    def evaluate(self, run: Evaluation) -> Array:
        """Reduce with NumPy; the result for an empty domain is the identity."""
        x = run.array(0)
        axes = reduced_axes(run.attributes, x.ndim)
        wide = accumulator_dtype(x.dtype)
        with np.errstate(all="ignore"):
            out = self.apply(
                x.astype(wide),
                axis=axes,
                keepdims=run.attributes.flag("keepdims"),
                initial=_initial(self.combiner, x.dtype),
            )
        return np.asarray(out).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one reduction block; 16-bit floats use a float32 temporary."""
        out = low.out
        wide = accumulator(out.dtype)
        if wide == out.dtype:
            self.combine(low, out, self.combiner)
            return
        partial = low.builder.temporary("partial", out.shape, wide)
        self.combine(low, partial, self.combiner)
        low.builder.compute(
            out, lambda *i: cast_to(out.dtype, buffer_source(partial)(*i)), name="rounded"
        )

    @property
    def has_gradient(self) -> bool:
        """Whether the reduction is ``sum``, ``max``, or ``min``."""
        return self.combiner != "mul"

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Broadcast the cotangent; equal extremes share it equally."""
        del position
        if not self.has_gradient:
            return None
        x = call.tensor(0)
        axes = reduced_axes(call.attributes, x.rank)
        spread = restored(graph, call.cotangent(graph), axes, x.shape)
        if self.combiner == "add":
            return spread
        found = graph.emit("equal", call.args[0], restored(graph, call.result, axes, x.shape))
        chosen = graph.emit("cast", found, dtype=x.dtype.name)
        count = graph.emit("sum", chosen, axes=axes, keepdims=True)
        return graph.emit("divide", graph.emit("multiply", spread, chosen), count)


def _initial(combiner: Combiner, dtype: np.dtype[Any]) -> Any:
    return identity_of(combiner, from_numpy(dtype)).value


register(CombinerReduction("sum", reduce_signature("field"), "add", np.sum))
register(CombinerReduction("prod", reduce_signature("field"), "mul", np.prod))
register(CombinerReduction("max", reduce_signature("number"), "max", np.max))
register(CombinerReduction("min", reduce_signature("number"), "min", np.min))


@dataclass(frozen=True)
class LogicReduction(Reduction):
    """A logical reduction.

    Parameters
    ----------
    x : tensor
        Dtype bool, shape ``(d0, ..., dn)``.
    axes : tuple of int, default ()
        The axes to reduce; all axes if empty.
    keepdims : bool, default False
        Whether the reduced axes remain, with dimension 1.

    Returns
    -------
    tensor
        Dtype bool; the shape of `x` without the reduced axes.

    Attributes
    ----------
    combiner : str
        The combiner of the reduction block.
    apply : callable
        The NumPy reference.

    Notes
    -----
    ======== ========= ====== ======= =============
    Operator Identity  Dtypes NumPy   ONNX
    ======== ========= ====== ======= =============
    ``any``  ``False`` bool   ``any`` ``ReduceMax``
    ``all``  ``True``  bool   ``all`` ``ReduceMin``
    ======== ========= ====== ======= =============

    Examples
    --------
    >>> LogicReduction("any", "or", np.any).reference((np.array([False, True]),))
    array(True)
    """

    name: str
    combiner: Combiner
    apply: Callable[..., Any]
    signature: Signature = _BOOLS

    def evaluate(self, run: Evaluation) -> Array:
        """Reduce with NumPy."""
        x = run.array(0)
        axes = reduced_axes(run.attributes, x.ndim)
        return np.asarray(self.apply(x, axis=axes, keepdims=run.attributes.flag("keepdims")))

    def define(self, low: Lowering) -> None:
        """Define one reduction block."""
        self.combine(low, low.out, self.combiner)


register(LogicReduction("any", "or", np.any))
register(LogicReduction("all", "and", np.all))


@operator
class Mean(Reduction):
    """Compute the arithmetic mean over axes; NaN for an empty domain.

    Parameters
    ----------
    x : tensor
        A floating-point or complex dtype, shape ``(d0, ..., dn)``.
    axes : tuple of int, default ()
        The axes to reduce; all axes if empty.
    keepdims : bool, default False
        Whether the reduced axes remain, with dimension 1.

    Returns
    -------
    tensor
        The dtype of `x`; the shape of `x` without the reduced axes.

    Notes
    -----
    16-bit floats are accumulated in float32. NumPy: ``mean``; ONNX: ``ReduceMean``.

    Examples
    --------
    >>> Mean().reference((np.array([[1.0, 3.0]]),), {"axes": (1,), "keepdims": True})
    array([[2.]])
    """

    name = "mean"
    signature = reduce_signature("inexact")

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the mean with NumPy."""
        x = run.array(0)
        axes = reduced_axes(run.attributes, x.ndim)
        wide = x.astype(accumulator_dtype(x.dtype))
        count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        with np.errstate(all="ignore"):
            summed = wide.sum(axis=axes, keepdims=run.attributes.flag("keepdims"))
            return np.asarray(summed / wide.dtype.type(count)).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one block that sums and one that divides."""
        x, out = low.sources[0], low.out
        wide = accumulator(out.dtype)
        total = low.builder.temporary("total", out.shape, wide)
        self.combine(low, total, "add")
        count = extent_as(wide, (x.shape[a] for a in reduced_axes(low.attributes, x.rank)))
        read = buffer_source(total)

        def value(*indices: Expr) -> Element:
            return cast_to(out.dtype, divided(read(*indices), count))

        low.builder.compute(out, value, name="divide")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Broadcast the cotangent, divided by the number of elements of the mean."""
        del position
        x = call.tensor(0)
        axes = reduced_axes(call.attributes, x.rank)
        count = extent(graph, product(x.shape[a] for a in axes), x.dtype)
        share = graph.emit("divide", call.cotangent(graph), count)
        return restored(graph, share, axes, x.shape)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Divide the sum by the number of elements."""
        x, axes = call.tensor(0), reduced_axes(call.attributes, call.tensor(0).rank)
        keepdims = call.attributes.flag("keepdims")
        summed = graph.emit("sum", widened(call, graph), axes=axes, keepdims=keepdims)
        count = extent(graph, product(x.shape[a] for a in axes), accumulator(x.dtype))
        return (narrowed_to(call, graph, graph.emit("divide", summed, count)),)
