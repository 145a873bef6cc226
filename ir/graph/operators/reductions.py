"""Reductions over axes: sum, mean, product, extremes, any and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import DType, from_numpy
from ...loop.builder import Combiner, identity_of
from ...loop.nodes import Buffer, Element
from ...symbolic import Expr, as_expr
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation, accumulator_dtype
from .inference import CallFacts
from .lowering import Lowering, Source, accumulator, buffer_source, cast_to, divided, extent_as
from .operator import Operator, operator, register
from .signature import AttributeSpec, AttributeValues, DTypeClass, OperandSpec, Signature

_ATTRIBUTES = (AttributeSpec("axes", "ints", ()), AttributeSpec("keepdims", "bool", default=False))


def reduced_axes(attributes: AttributeValues, rank: int) -> tuple[int, ...]:
    """Read ``axes``, in order; none given means all."""
    return tuple(sorted(attributes.axes("axes", rank))) or tuple(range(rank))


def reduced_shape(
    shape: tuple[Expr, ...], axes: tuple[int, ...], *, keepdims: bool
) -> tuple[Expr, ...]:
    """Drop the reduced axes, or make them 1."""
    if keepdims:
        return tuple(as_expr(1) if k in axes else d for k, d in enumerate(shape))
    return tuple(d for k, d in enumerate(shape) if k not in axes)


def reduce_signature(dtypes: DTypeClass) -> Signature:
    """Give the signature of a reduction."""
    return Signature((OperandSpec("x", dtypes=dtypes),), _ATTRIBUTES)


def scattered(
    axes: tuple[int, ...], rank: int, kept: tuple[Expr, ...], reduced: tuple[Expr, ...]
) -> tuple[Expr, ...]:
    """Put kept and reduced indices in their places."""
    spatial, reduction = iter(kept), iter(reduced)
    return tuple(next(reduction) if k in axes else next(spatial) for k in range(rank))


_BOOLS = reduce_signature("bool")


class Reduction(Operator):
    """Combines elements over axes."""

    def result_dtype(self, dtype: DType) -> DType:
        """Keep the dtype."""
        return dtype

    def deduce(self, call: CallFacts) -> Info:
        """Drop the axes, or make them 1."""
        x = call.tensor(0)
        axes = reduced_axes(call.attributes, x.rank)
        shape = reduced_shape(x.shape, axes, keepdims=call.attributes.flag("keepdims"))
        return TensorInfo(shape, self.result_dtype(x.dtype))

    def combine(
        self, low: Lowering, out: Buffer, combiner: Combiner, x: Source | None = None
    ) -> None:
        """Add the block that combines; ``out`` has the shape of the result."""
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
    """A reduction that is one combiner."""

    name: str
    signature: Signature
    combiner: Combiner
    apply: Callable[..., Any]

    def evaluate(self, run: Evaluation) -> Array:
        """Reduce, from the neutral element so that nothing to reduce is no error."""
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
        """One block; in half precision through a single-precision temporary."""
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


def _initial(combiner: Combiner, dtype: np.dtype[Any]) -> Any:
    return identity_of(combiner, from_numpy(dtype)).value


register(CombinerReduction("sum", reduce_signature("number"), "add", np.sum))
register(CombinerReduction("prod", reduce_signature("number"), "mul", np.prod))
register(CombinerReduction("max", reduce_signature("number"), "max", np.max))
register(CombinerReduction("min", reduce_signature("number"), "min", np.min))


@dataclass(frozen=True)
class LogicReduction(Reduction):
    """Whether any, or all, of the elements are true."""

    name: str
    combiner: Combiner
    apply: Callable[..., Any]
    signature: Signature = _BOOLS

    def evaluate(self, run: Evaluation) -> Array:
        """Reduce."""
        x = run.array(0)
        axes = reduced_axes(run.attributes, x.ndim)
        return np.asarray(self.apply(x, axis=axes, keepdims=run.attributes.flag("keepdims")))

    def define(self, low: Lowering) -> None:
        """One block."""
        self.combine(low, low.out, self.combiner)


register(LogicReduction("any", "or", np.any))
register(LogicReduction("all", "and", np.all))


@operator
class Mean(Reduction):
    """The sum divided by the number of elements; of none it is NaN."""

    name = "mean"
    signature = reduce_signature("float")

    def evaluate(self, run: Evaluation) -> Array:
        """Sum and divide."""
        x = run.array(0)
        axes = reduced_axes(run.attributes, x.ndim)
        wide = x.astype(accumulator_dtype(x.dtype))
        count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        with np.errstate(all="ignore"):
            summed = wide.sum(axis=axes, keepdims=run.attributes.flag("keepdims"))
            return np.asarray(summed / wide.dtype.type(count)).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """One block that sums, one that divides."""
        x, out = low.sources[0], low.out
        wide = accumulator(out.dtype)
        total = low.builder.temporary("total", out.shape, wide)
        self.combine(low, total, "add")
        count = extent_as(wide, (x.shape[a] for a in reduced_axes(low.attributes, x.rank)))
        read = buffer_source(total)

        def value(*indices: Expr) -> Element:
            return cast_to(out.dtype, divided(read(*indices), count))

        low.builder.compute(out, value, name="divide")
