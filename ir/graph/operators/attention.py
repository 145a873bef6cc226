"""Attention as a composition of operators that are scheduled and fused separately."""

from __future__ import annotations

import math
from typing import Any, Protocol

from ...symbolic import Expr, const_value
from ..nodes import Operand, Value
from .errors import OperandError
from .signature import tensor_info


class Emits(Protocol):
    """The protocol of graph builders."""

    def emit(self, op: str, *args: Any, name: str | None = None, **attributes: Any) -> Value:
        """Add a call of an operator and return its value."""
        ...


def _shape(operand: Operand, name: str) -> tuple[Expr, ...]:
    info = tensor_info(operand)
    if info is None or info.shape is None or len(info.shape) < 2:
        where = f"operand {name!r} of scaled_dot_product_attention"
        rank = None if info is None else info.rank
        found = "a value of unknown rank" if rank is None else f"rank {rank}"
        raise OperandError(f"expected a tensor of rank at least 2, got {found}", where=where)
    return info.shape


def _default_scale(query: tuple[Expr, ...]) -> float:
    width = const_value(query[-1])
    if width is None:
        where = "operand 'query' of scaled_dot_product_attention"
        message = f"the default scale requires a constant last dimension, got {query[-1]}"
        raise OperandError(message, where=where, hint="pass `scale` explicitly")
    return 1.0 / math.sqrt(width)


def _masked(b: Emits, scores: Value, mask: Operand) -> Value:
    """Add a numeric mask, or replace scores by minus infinity where a bool mask is false."""
    info = tensor_info(mask)
    if info is not None and info.dtype.kind == "bool":
        return b.emit("where", mask, scores, -math.inf, name="masked")
    return b.emit("add", scores, mask, name="masked")


def scaled_dot_product_attention(
    b: Emits,
    query: Operand,
    key: Operand,
    value: Operand,
    mask: Operand | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Value:
    """Emit ``softmax(query @ key.T * scale + mask) @ value``; fully masked rows give 0.

    Parameters
    ----------
    b : Emits
        The graph builder to emit into.
    query, key, value : Operand
        Tensors of the same floating-point dtype and of shapes ``(..., queries, width)``,
        ``(..., keys, width)`` and ``(..., keys, depth)``.
    mask : Operand, optional
        A tensor whose shape broadcasts to ``(..., queries, keys)``: either added to the scores, or
        of dtype bool and false for the keys that a query does not attend to.
    causal : bool
        Whether query ``i`` attends to keys ``0`` to ``i`` only.
    scale : float, optional
        The factor of the scores; default ``1 / sqrt(width)``.

    Returns
    -------
    Value
        A tensor of shape ``(..., queries, depth)``.

    Raises
    ------
    OperandError
        If an operand has an illegal rank or dtype, or if `scale` is omitted and ``width`` is not
        constant.
    ShapeMismatchError
        If the shapes do not match.

    References
    ----------
    Vaswani et al., Attention Is All You Need, 2017, section 3.2.1.

    Examples
    --------
    >>> from ...dtype import f32
    >>> from ...symbolic import as_expr, var
    >>> from ..builder import GraphBuilder
    >>> from ..nodes import TensorInfo
    >>> b, n = GraphBuilder("main"), var("n", lower=0)
    >>> q, k, v = (b.param(x, TensorInfo((n, as_expr(8)), f32)) for x in "qkv")
    >>> scaled_dot_product_attention(b, q, k, v).info.shape
    (n, 8)
    """
    queries, keys = _shape(query, "query"), _shape(key, "key")
    rank = len(keys)
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    transposed = b.emit("permute_dims", key, axes=swapped, name="key_t")
    scores = b.emit("matmul", query, transposed, name="scores")
    factor = _default_scale(queries) if scale is None else scale
    scores = b.emit("multiply", scores, factor, name="scaled")
    if causal:
        sizes = (queries[-2], keys[-2], 0)
        triangle = b.emit("causal_mask", sizes, name="causal")
        scores = _masked(b, scores, triangle)
    if mask is not None:
        scores = _masked(b, scores, mask)
    weights = b.emit("softmax", scores, axis=-1, masked_rows="zero", name="weights")
    return b.emit("matmul", weights, value, name="attention")
