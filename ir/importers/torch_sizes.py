"""Importing what exported programs compute with sizes rather than tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..symbolic import Expr, SymInt, as_expr, eq, maximum, minimum, ne, product
from .tensors import Imported
from .torch_context import TorchContext, aten


@aten("sym_size")
def size(t: TorchContext, x: Imported, dim: int) -> Expr:
    """The size of one dimension."""
    del t
    return x.shape[dim]


@aten("sym_numel")
def count(t: TorchContext, x: Imported) -> Expr:
    """The number of elements."""
    del t
    return product(x.shape)


@aten("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
      "sym_constrain_range_for_size")  # fmt: skip
def nothing(t: TorchContext, *_: Any, **__: Any) -> None:
    """A check of PyTorch's own; what it guards is among the facts or proved here again."""
    del t


def _compare(function: Callable[[Expr, Expr], Any]) -> Callable[[SymInt, SymInt], Any]:
    return lambda a, b: function(as_expr(a), as_expr(b))


SIZE_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "getitem": operator.getitem,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "sym_max": maximum,
    "sym_min": minimum,
    "eq": _compare(eq),
    "ne": _compare(ne),
    "lt": _compare(operator.lt),
    "le": _compare(operator.le),
    "gt": _compare(operator.gt),
    "ge": _compare(operator.ge),
}
"""Python functions that exported programs apply to sizes and lists, by name."""
