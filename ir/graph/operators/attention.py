"""Attention, composed of simpler operators so that each can be scheduled and fused."""

from __future__ import annotations

import math
from typing import Any, Protocol

from ...symbolic import Expr, const_value
from ..nodes import Operand, Value
from .errors import OperandError
from .signature import tensor_info


class Emits(Protocol):
    """Whatever operators can be emitted into, such as a graph builder."""

    def emit(self, op: str, *args: Any, name: str | None = None, **attributes: Any) -> Value:
        """Apply an operator."""
        ...


def _shape(operand: Operand, name: str) -> tuple[Expr, ...]:
    info = tensor_info(operand)
    if info is None or info.shape is None or len(info.shape) < 2:
        where = f"operand {name!r} of scaled_dot_product_attention"
        raise OperandError("expected a tensor of rank 2 or more", where=where)
    return info.shape


def _default_scale(query: tuple[Expr, ...]) -> float:
    width = const_value(query[-1])
    if width is None:
        where = "operand 'query' of scaled_dot_product_attention"
        raise OperandError("the last dimension has to be constant", where=where, hint="give scale")
    return 1.0 / math.sqrt(width)


def _masked(b: Emits, scores: Value, mask: Operand) -> Value:
    """Add a mask of numbers; where a mask of truth values is false, use minus infinity."""
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
    """Emit ``softmax(query @ key.T * scale + mask) @ value``; rows masked out entirely give 0.

    Parameters
    ----------
    b : Emits
        Where to emit: a graph builder.
    query, key, value : Operand
        Tensors of shape ``(..., queries, width)``, ``(..., keys, width)``, ``(..., keys, depth)``.
    mask : Operand, optional
        Added to the scores, or of dtype bool and false where a query may not attend.
    causal : bool
        Whether query ``i`` may attend to keys up to ``i`` only.
    scale : float, optional
        The factor of the scores; ``1 / sqrt(width)`` where it is not given.

    Returns
    -------
    Value
        A tensor of shape ``(..., queries, depth)``.

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
    turned = b.emit("permute_dims", key, axes=swapped, name="key_t")
    scores = b.emit("matmul", query, turned, name="scores")
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
