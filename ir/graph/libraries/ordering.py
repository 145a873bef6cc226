"""Sorting, distinct elements, and positions of nonzero elements, part of every executable.

NaN is greater than all numbers and equal to NaN, and -0.0 equals 0.0. Sorting is stable.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import i64
from ...symbolic import Expr, as_expr, product
from ..nodes import TensorInfo
from ..operators.shape_inference import CallFacts, Tensor
from ..operators.signature import AttributeSpec, OperandSpec, Signature
from ..sorting import find_nonzero, find_unique, sort_rows
from .function import LibraryFunction, RunTimeFunction, register_library_function

_ONE = as_expr(1)
_ANY = Signature((OperandSpec("x"),))
_SORT = Signature((OperandSpec("x"),), (AttributeSpec("descending", "bool", default=False),))


def _tensor(call: CallFacts) -> Tensor:
    x = call.tensor(0)
    if x.dtype.is_complex or (x.dtype.is_float and x.dtype.bits < 16):
        raise call.error(0, f"elements of dtype {x.dtype} cannot be compared", "cast the operand")
    return x


def _vector(x: Tensor, count: Expr) -> tuple[TensorInfo, TensorInfo]:
    return TensorInfo((count,), x.dtype), TensorInfo((count,), i64)


def _sort_outputs(call: CallFacts) -> tuple[TensorInfo, ...]:
    _tensor(call)
    x = call.require_rank(0, 1)
    return TensorInfo(x.shape, x.dtype), TensorInfo(x.shape, i64)


def _unique_outputs(call: CallFacts) -> tuple[TensorInfo, ...]:
    x = _tensor(call)
    values, positions = _vector(x, product(x.shape))
    return values, positions, TensorInfo(x.shape, i64), positions, TensorInfo((_ONE,), i64)


def _nonzero_outputs(call: CallFacts) -> tuple[TensorInfo, ...]:
    x = _tensor(call)
    shape = (product(x.shape), as_expr(x.rank))
    return TensorInfo(shape, i64), TensorInfo((_ONE,), i64)


def _row_workspace(infos: Sequence[TensorInfo]) -> Expr:
    """Return the bytes of keys and two lists of positions for one row."""
    return (infos[0].shape or (_ONE,))[-1] * 24


def _tensor_workspace(infos: Sequence[TensorInfo]) -> Expr:
    """Return the bytes of keys and two lists of positions for all elements."""
    return product(infos[0].shape or ()) * 24


register_library_function(
    LibraryFunction(
        "std.sort",
        sort_rows,
        _SORT,
        {"cpu": RunTimeFunction("tw_sort_rows")},
        _sort_outputs,
        _row_workspace,
    )
)
register_library_function(
    LibraryFunction(
        "std.unique",
        find_unique,
        _ANY,
        {"cpu": RunTimeFunction("tw_find_unique")},
        _unique_outputs,
        _tensor_workspace,
    )
)
register_library_function(
    LibraryFunction(
        "std.nonzero",
        find_nonzero,
        _ANY,
        {"cpu": RunTimeFunction("tw_find_nonzero")},
        _nonzero_outputs,
    )
)
