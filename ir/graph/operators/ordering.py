"""Sorting operators: sort, argsort, topk."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...dtype import i64
from ...symbolic import as_expr, to_text
from ..nodes import ConstantRef, Info, Operand, TensorInfo, TupleInfo, Value
from ..sorting import sort_rows
from .composition import Composer
from .evaluation import Array, Evaluation
from .gradients import GradientCall, zeros
from .operator import Operator, operator
from .shape_inference import CallFacts, Tensor
from .signature import AttributeSpec, OperandSpec, Signature

_AXIS: Final = AttributeSpec("axis", "int", -1)
_DESCENDING: Final = AttributeSpec("descending", "bool", default=False)


def _ordered(call: CallFacts) -> tuple[Tensor, int]:
    """Return an operand whose elements can be compared, and the axis."""
    x = call.require_rank(0, 1)
    narrow = x.dtype.is_float and x.dtype.bits < 16
    if x.dtype.is_packed or x.dtype.is_complex or narrow:
        raise call.error(0, f"elements of dtype {x.dtype} cannot be compared", "cast the operand")
    return x, call.attributes.axis("axis", x.rank)


def _tensor_operand(call: CallFacts) -> Value | ConstantRef:
    found = call.args[0]
    if not isinstance(found, Value | ConstantRef):
        raise call.error(0, "expected a tensor")
    return found


def _sorted(run: Evaluation, *, descending: bool) -> tuple[Array, Array]:
    x = run.array(0)
    axis = run.attributes.axis("axis", x.ndim)
    rows = np.moveaxis(x, axis, -1)
    values, positions = sort_rows(rows, descending=descending)
    return np.moveaxis(values, -1, axis), np.moveaxis(positions, -1, axis)


def _sort(call: CallFacts, graph: Composer, *, descending: bool) -> tuple[Value | ConstantRef, ...]:
    """Sort along the axis, which becomes the last one."""
    x = call.tensor(0)
    axis = call.attributes.axis("axis", x.rank)
    source = _tensor_operand(call)
    if axis == x.rank - 1:
        return graph.library("std.sort", source, descending=descending)
    swapped = list(range(x.rank))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    rows = graph.emit("permute_dims", source, axes=swapped)
    found = graph.library("std.sort", rows, descending=descending)
    return tuple(graph.emit("permute_dims", f, axes=swapped) for f in found)


def _at_positions(call: GradientCall, graph: Composer) -> Operand:
    """Return zeros with the cotangent of the first result at the positions of the second one."""
    x = call.tensor(0)
    start = zeros(graph, TensorInfo(x.shape, x.dtype))
    axis = call.attributes.axis("axis", x.rank)
    positions = graph.item(call.result, 1)
    return graph.emit("scatter_add", start, positions, call.cotangent(graph), axis=axis)


@operator
class Sort(Operator):
    """Sort the elements along an axis.

    Parameters
    ----------
    x : tensor
        Dtype bool or a real dtype of at least 8 bits (floats: 16), any shape of rank at least 1.
    axis : int, default -1
        The axis.
    descending : bool, default False
        Whether the greatest element is the first one.

    Returns
    -------
    tuple of tensors
        The sorted elements, and their positions along the axis in dtype i64; the shape of `x`.

    Notes
    -----
    The sort is stable, ascending and descending. NaN is greater than all numbers, and -0.0 equals
    0.0. It is lowered to a call of the library function ``std.sort``. NumPy: ``sort``; PyTorch:
    ``sort``.

    Examples
    --------
    >>> Sort().reference((np.array([3, 1, 2]),))
    (array([1, 2, 3]), array([1, 2, 0]))
    """

    name = "sort"
    signature = Signature((OperandSpec("x"),), (_AXIS, _DESCENDING))

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotations of elements and positions."""
        x, _ = _ordered(call)
        return TupleInfo((TensorInfo(x.shape, x.dtype), TensorInfo(x.shape, i64)))

    def evaluate(self, run: Evaluation) -> tuple[Array, ...]:
        """Sort with NumPy."""
        return _sorted(run, descending=run.attributes.flag("descending"))

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Call the library function on the permuted operand."""
        return _sort(call, graph, descending=call.attributes.flag("descending"))

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Add the cotangent of the elements at their positions."""
        del position
        return _at_positions(call, graph)


@operator
class ArgSort(Operator):
    """Find the positions of the sorted elements along an axis.

    Parameters
    ----------
    x : tensor
        Dtype bool or a real dtype of at least 8 bits (floats: 16), any shape of rank at least 1.
    axis : int, default -1
        The axis.
    descending : bool, default False
        Whether the greatest element is the first one.

    Returns
    -------
    tensor
        Dtype i64, the shape of `x`.

    Notes
    -----
    The order is that of ``sort``. NumPy: ``argsort`` with ``stable=True``; PyTorch: ``argsort``.

    Examples
    --------
    >>> ArgSort().reference((np.array([3, 1, 2]),))
    array([1, 2, 0])
    """

    name = "argsort"
    signature = Signature((OperandSpec("x"),), (_AXIS, _DESCENDING))

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation of the positions."""
        x, _ = _ordered(call)
        return TensorInfo(x.shape, i64)

    def evaluate(self, run: Evaluation) -> Array:
        """Sort with NumPy."""
        return _sorted(run, descending=run.attributes.flag("descending"))[1]

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Call the library function on the permuted operand."""
        return _sort(call, graph, descending=call.attributes.flag("descending"))[1:]


@operator
class TopK(Operator):
    """Find the greatest or smallest elements along an axis.

    Parameters
    ----------
    x : tensor
        Dtype bool or a real dtype of at least 8 bits (floats: 16), any shape of rank at least 1.
    k : tuple of one integer
        The number of elements, ``0 <= k <= d`` for the dimension ``d`` of the axis.
    axis : int, default -1
        The axis.
    largest : bool, default True
        Whether the greatest elements are found.

    Returns
    -------
    tuple of tensors
        The elements in the order of ``sort``, and their positions along the axis in dtype i64; the
        shape of `x` with dimension ``k`` at the axis.

    Raises
    ------
    ShapeMismatchError
        If ``k`` is greater than the dimension of the axis.

    Notes
    -----
    Of equal elements, those with lower positions are found. NaN is greater than all numbers.
    PyTorch: ``topk``; ONNX: ``TopK``.

    Examples
    --------
    >>> TopK().reference((np.array([3, 1, 2]), (2,)))
    (array([3, 2]), array([0, 2]))
    """

    name = "topk"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("k", ("dims",))),
        (_AXIS, AttributeSpec("largest", "bool", default=True)),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotations; require that the axis has enough elements."""
        x, axis = _ordered(call)
        if len(call.dims(1)) != 1:
            raise call.error(1, f"expected one integer, got {len(call.dims(1))}")
        (count,) = call.dims(1)
        size = to_text(x.shape[axis])
        call.require(count >= 0, f"k = {to_text(count)} is negative")
        call.require(count <= x.shape[axis], f"k = {to_text(count)} is greater than {size}")
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        return TupleInfo((TensorInfo(shape, x.dtype), TensorInfo(shape, i64)))

    def evaluate(self, run: Evaluation) -> tuple[Array, ...]:
        """Sort with NumPy and keep the first elements."""
        (count,) = run.dims(1)
        axis = run.attributes.axis("axis", run.array(0).ndim)
        chosen = (*(slice(None),) * axis, slice(count))
        found = _sorted(run, descending=run.attributes.flag("largest"))
        return tuple(part[chosen] for part in found)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Add the cotangent of the elements at their positions."""
        del position
        return _at_positions(call, graph)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Sort, then slice."""
        axis = call.attributes.axis("axis", call.tensor(0).rank)
        found = _sort(call, graph, descending=call.attributes.flag("largest"))
        return tuple(
            graph.emit("strided_slice", f, (as_expr(0),), call.dims(1), axes=(axis,)) for f in found
        )
