"""Scan operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np

from ...loop.combiners import Combiner, named_reducer, reducer_of
from ...loop.nodes import Binary, Buffer, Element, IterKind, Load, Number, Reducer, Stmt, Unary
from ...loop.scans import scan_of
from ...symbolic import Expr, SymInt, Var
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_AXIS: Final = AttributeSpec("axis", "int", 0)


class _Scan(Operator):
    """An operator whose results are the partial results of a reduction along an axis."""

    signature = Signature((OperandSpec("x", dtypes="number"),), (_AXIS,))
    combiner: ClassVar[Combiner]

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape and dtype of ``x``."""
        x = call.require_rank(0, 1)
        call.attributes.axis("axis", x.rank)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the partial results in order with NumPy."""
        x = run.array(0)
        wide = x.astype(accumulator_dtype(x.dtype))
        function = _FUNCTIONS[self.combiner]
        with np.errstate(all="ignore"):
            found = function.accumulate(
                wide, axis=run.attributes.axis("axis", x.ndim), dtype=wide.dtype
            )
        return found.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one scan; 16-bit floats are combined in a temporary of a wider dtype."""
        out = low.out
        wide = accumulator(out.dtype)
        target = out if wide == out.dtype else low.builder.temporary("wide", out.shape, wide)
        x = low.sources[0]
        reducer = reducer_of(self.combiner, wide)
        _define(low, reducer, (target,), lambda *i: (cast_to(wide, x(*i)),), self.name)
        if target is not out:
            read = buffer_source(target)
            low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")


_FUNCTIONS: Final[dict[Combiner, np.ufunc]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _define(
    low: Lowering,
    reducer: Reducer,
    targets: tuple[Buffer, ...],
    terms: Callable[..., tuple[Element, ...]],
    name: str,
) -> None:
    """Add a scan of terms into buffers along the axis of a call."""
    shape = low.sources[0].shape
    axis = low.attributes.axis("axis", len(shape))

    def body(*iters: Var) -> Stmt:
        at = tuple(Load(b, iters) for b in targets)
        return scan_of(reducer, at, iters[axis], terms(*iters)).body()

    kinds: list[tuple[SymInt, IterKind]] = [
        (d, "ordered" if k == axis else "spatial") for k, d in enumerate(shape)
    ]
    low.builder.block(kinds, body, name=name, reducer=reducer)


@operator
class CumSum(_Scan):
    """Compute inclusive running sums along an axis.

    Parameters
    ----------
    x : tensor
        A numeric or complex dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    The order of the additions of floats depends on the schedule, as that of a sum: the lanes of a
    vector and the parts of a long axis are added separately. Sums of 16-bit floats are computed in
    float32 and rounded once. NumPy: ``cumsum``; ONNX: ``CumSum``.

    Examples
    --------
    >>> CumSum().reference((np.array([1, 2, 3]),))
    array([1, 3, 6])
    """

    name = "cumsum"
    signature = Signature((OperandSpec("x", dtypes="field"),), (_AXIS,))
    combiner = "add"

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the running sums of the cotangent from the end."""
        del position
        axis = call.attributes.axis("axis", call.tensor(0).rank)
        backward = graph.emit("flip", call.cotangent(graph), axes=(axis,))
        return graph.emit("flip", graph.emit("cumsum", backward, axis=axis), axes=(axis,))


@operator
class CumProd(_Scan):
    """Compute inclusive running products along an axis.

    Parameters
    ----------
    x : tensor
        A numeric or complex dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    The order of the multiplications depends on the schedule, as in ``cumsum``; an intermediate
    product may overflow or underflow where another order does not. NumPy: ``cumprod``.

    Examples
    --------
    >>> CumProd().reference((np.array([1, 2, 3]),))
    array([1, 2, 6])
    """

    name = "cumprod"
    signature = Signature((OperandSpec("x", dtypes="field"),), (_AXIS,))
    combiner = "mul"


@operator
class CumMax(_Scan):
    """Compute running maxima along an axis.

    Parameters
    ----------
    x : tensor
        A numeric dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    All results after a NaN are NaN. NumPy: ``maximum.accumulate``; PyTorch: the values of
    ``cummax``.

    Examples
    --------
    >>> CumMax().reference((np.array([2, 1, 3]),))
    array([2, 2, 3])
    """

    name = "cummax"
    combiner = "max"


@operator
class CumMin(_Scan):
    """Compute running minima along an axis.

    Parameters
    ----------
    x : tensor
        A numeric dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    All results after a NaN are NaN. NumPy: ``minimum.accumulate``; PyTorch: the values of
    ``cummin``.

    Examples
    --------
    >>> CumMin().reference((np.array([2, 1, 3]),))
    array([2, 1, 1])
    """

    name = "cummin"
    combiner = "min"


@operator
class LogCumSumExp(_Scan):
    """Compute the logarithms of running sums of exponentials along an axis.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    The exponentials are relative to the running maximum, so that they do not overflow. NumPy:
    ``logaddexp.accumulate``; PyTorch: ``logcumsumexp``.

    Examples
    --------
    >>> LogCumSumExp().reference((np.zeros(2, np.float32),)).round(4)
    array([0.    , 0.6931], dtype=float32)
    """

    name = "logcumsumexp"
    signature = Signature((OperandSpec("x", dtypes="float"),), (_AXIS,))

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the partial results in order with NumPy."""
        x = run.array(0)
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            axis = run.attributes.axis("axis", x.ndim)
            found = np.logaddexp.accumulate(wide, axis=axis, dtype=wide.dtype)
        return found.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one scan of maxima and sums, and a block that combines them."""
        out, x = low.out, low.sources[0]
        wide = accumulator(out.dtype)
        parts = tuple(low.builder.temporary(name, out.shape, wide) for name in ("top", "total"))
        one = Number(1.0, wide)
        reducer = named_reducer("logsumexp", (wide, wide))
        _define(low, reducer, parts, lambda *i: (cast_to(wide, x(*i)), one), self.name)
        top, total = map(buffer_source, parts)

        def logarithm(*i: Expr) -> Element:
            value = Binary("add", Unary("log", total(*i)), top(*i))
            return cast_to(out.dtype, value)

        low.builder.compute(out, logarithm, name="logarithm")
