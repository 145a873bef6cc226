"""Operators whose results have data-dependent sizes: nonzero, unique."""

from __future__ import annotations

import numpy as np

from ...dtype import i64
from ...symbolic import Expr, as_expr, product, var
from ..nodes import ConstantRef, Info, Operand, TensorInfo, TupleInfo, Value
from ..sorting import comparable
from .composition import Composer
from .evaluation import Array, Evaluation
from .operator import Operator, operator
from .shape_inference import CallFacts, Requirement, Tensor
from .signature import OperandSpec, Signature


def _compared(call: CallFacts) -> Tensor:
    x = call.tensor(0)
    narrow = x.dtype.is_float and x.dtype.bits < 16
    if x.dtype.is_packed or x.dtype.is_complex or narrow:
        raise call.error(0, f"elements of dtype {x.dtype} cannot be compared", "cast the operand")
    return x


def _operand(call: CallFacts) -> Value | ConstantRef:
    found = call.args[0]
    if not isinstance(found, Value | ConstantRef):
        raise call.error(0, "expected a tensor")
    return found


def _counted(graph: Composer, count: Value, capacity: Expr, name: str) -> Expr:
    """Return the symbol of a number that a library function found, at most the capacity."""
    symbol = var(name, lower=0)
    info = TensorInfo((as_expr(1),), i64, elements=(symbol,))
    graph.match_cast(count, info, name=f"{name}_of")
    graph.check(Requirement(symbol <= capacity, f"{name} is at most the number of elements"))
    return symbol


def _first(graph: Composer, value: Value, count: Expr) -> Value:
    return graph.emit("strided_slice", value, (as_expr(0),), (count,), axes=(0,))


@operator
class NonZero(Operator):
    """Find the indices of the elements that are not zero.

    Parameters
    ----------
    x : tensor
        Dtype bool or a real dtype of at least 8 bits (floats: 16), any shape of rank ``r``.

    Returns
    -------
    tensor
        Dtype i64, shape ``(k, r)``: one row of indices per element, in row-major order. The shape
        is unknown before the call; ``match_cast`` binds ``k`` to a symbol.

    Notes
    -----
    NaN is not zero, and -0.0 is. It is lowered to a call of the library function ``std.nonzero``.
    NumPy: ``argwhere``; PyTorch: ``nonzero``; ONNX: ``NonZero`` is the transpose.

    Examples
    --------
    >>> NonZero().reference((np.array([[0, 5], [7, 0]]),))
    array([[0, 1],
           [1, 0]])
    """

    name = "nonzero"
    signature = Signature((OperandSpec("x"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation of a matrix of unknown shape."""
        _compared(call)
        return TensorInfo(None, i64, rank=2)

    def evaluate(self, run: Evaluation) -> Array:
        """Search with NumPy."""
        x = run.array(0)
        return np.argwhere(x != 0).astype(np.int64)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Call the library function, and keep the rows that it found."""
        indices, count = graph.library("std.nonzero", _operand(call))
        capacity = product(call.tensor(0).shape)
        return (_first(graph, indices, _counted(graph, count, capacity, "nonzeros")),)


@operator
class Unique(Operator):
    """Find the distinct elements in ascending order.

    Parameters
    ----------
    x : tensor
        Dtype bool or a real dtype of at least 8 bits (floats: 16), any shape.

    Returns
    -------
    tuple of tensors
        The distinct elements ``(k,)``; the position of the first element of each value ``(k,)``,
        dtype i64; the number of the value of each element, dtype i64 and the shape of `x`; the
        number of elements of each value ``(k,)``, dtype i64. Positions are those of the flattened
        operand. The shapes with ``k`` are unknown before the call.

    Notes
    -----
    NaN equals NaN, and -0.0 equals 0.0. It is lowered to a call of the library function
    ``std.unique``. NumPy: ``unique``; PyTorch: ``unique``, in which NaN does not equal NaN; ONNX:
    ``Unique``.

    Examples
    --------
    >>> [part.tolist() for part in Unique().reference((np.array([5, 3, 5]),))]
    [[3, 5], [1, 0], [1, 0, 1], [1, 2]]
    """

    name = "unique"
    signature = Signature((OperandSpec("x"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotations; all but the third are vectors of unknown size."""
        x = _compared(call)
        position = TensorInfo(None, i64, rank=1)
        values = TensorInfo(None, x.dtype, rank=1)
        return TupleInfo((values, position, TensorInfo(x.shape, i64), position))

    def evaluate(self, run: Evaluation) -> tuple[Array, ...]:
        """Search with NumPy."""
        x = run.array(0)
        _, first, inverse, counts = np.unique(
            comparable(x).reshape(-1), return_index=True, return_inverse=True, return_counts=True
        )
        positions = tuple(p.astype(np.int64) for p in (first, inverse.reshape(x.shape), counts))
        return (x.reshape(-1)[first], *positions)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Call the library function, and keep the values that it found."""
        values, first, inverse, counts, count = graph.library("std.unique", _operand(call))
        found = _counted(graph, count, product(call.tensor(0).shape), "values")
        kept = (_first(graph, part, found) for part in (values, first, counts))
        unique, positions, sizes = kept
        return unique, positions, inverse, sizes
