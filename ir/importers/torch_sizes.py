"""Import handlers of size computations and runtime assertions of exported programs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..dtype import i64
from ..graph.nodes import TensorInfo
from ..symbolic import Expr, SymInt, as_expr, eq, maximum, minimum, ne, product
from .elementwise import convert
from .shaping import reshape
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError


@aten("sym_size")
def size(t: TorchContext, x: Imported, dim: int) -> Expr:
    """Return the size of one dimension."""
    del t
    return x.shape[dim]


@aten("sym_numel")
def count(t: TorchContext, x: Imported) -> Expr:
    """Return the number of elements."""
    del t
    return product(x.shape)


@aten("item", "_local_scalar_dense")
def item(t: TorchContext, x: Imported) -> Expr:
    """Return an integer of data as a size, which is read when the program runs."""
    value = t.node.meta["val"]
    if not x.dtype.is_integer:
        raise UnsupportedFormError(
            f"a number of dtype {x.dtype} that is read from a tensor is not supported; only "
            "integers are, as sizes"
        )
    term = t.symbols.size(value)
    source = reshape(t, convert(t, x, i64), (1,))
    info = TensorInfo((as_expr(1),), i64, elements=(term,))
    t.builder.match_cast(t.plain(source), info, name="size")
    return term


@aten("sym_storage_offset")
def storage_offset(t: TorchContext, _: Imported) -> Expr:
    """Return a name for the position of a tensor in its memory, which only assertions use."""
    if not all(map(_is_asserted, t.node.users)):
        raise UnsupportedFormError(
            "the position of a tensor in its memory is not part of an imported program"
        )
    return t.symbols.size(t.node.meta["val"])


def _is_asserted(node: Any) -> bool:
    """Return whether only assertions use the value of a node."""
    users = list(node.users)
    return str(node.target) == "aten._assert_scalar.default" or (
        bool(users) and all(map(_is_asserted, users))
    )


@aten("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
      "sym_constrain_range_for_size")  # fmt: skip
def nothing(t: TorchContext, *_: Any, **__: Any) -> None:
    """Ignore an assertion of PyTorch; its condition is a fact or is proved again on import."""
    del t


def _item(values: Sequence[Any], position: int) -> Any:
    return values[position]


def _negated(a: SymInt) -> Expr:
    return -as_expr(a)


def _computed(function: Callable[[Expr, Expr], Any]) -> Callable[[SymInt, SymInt], Any]:
    return lambda a, b: function(as_expr(a), as_expr(b))


def _floordiv(a: SymInt, b: SymInt) -> Expr:
    return as_expr(a) // b


SIZE_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "getitem": _item,
    "add": _computed(operator.add),
    "sub": _computed(operator.sub),
    "mul": _computed(operator.mul),
    "floordiv": _floordiv,
    "mod": _computed(operator.mod),
    "neg": _negated,
    "sym_max": maximum,
    "sym_min": minimum,
    "eq": _computed(eq),
    "ne": _computed(ne),
    "lt": _computed(operator.lt),
    "le": _computed(operator.le),
    "gt": _computed(operator.gt),
    "ge": _computed(operator.ge),
}
"""Python functions that exported programs apply to sizes and lists, by function name."""
