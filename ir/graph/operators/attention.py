"""Attention, composed of simpler operators so that each can be scheduled and fused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...identity import NO_ORIGIN, Origins
from ...symbolic import Expr, const_value
from ..nodes import Operand, Value
from .errors import OperandError
from .signature import tensor_info

if TYPE_CHECKING:
    from ..builder import GraphBuilder


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


def _masked(b: GraphBuilder, scores: Value, mask: Operand, origins: Origins) -> Value:
    """Add a mask of numbers; where a mask of truth values is false, use minus infinity."""
    info = tensor_info(mask)
    if info is not None and info.dtype.kind == "bool":
        return b.emit("where", mask, scores, -math.inf, name="masked", origins=origins)
    return b.emit("add", scores, mask, name="masked", origins=origins)


def scaled_dot_product_attention(
    b: GraphBuilder,
    query: Operand,
    key: Operand,
    value: Operand,
    mask: Operand | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    origins: Origins = NO_ORIGIN,
) -> Value:
    """Emit ``softmax(query @ key.T * scale + mask) @ value``; rows masked out entirely give 0.

    Parameters
    ----------
    b : GraphBuilder
        Where to emit.
    query, key, value : Operand
        Tensors of shape ``(..., queries, width)``, ``(..., keys, width)``, ``(..., keys, depth)``.
    mask : Operand, optional
        Added to the scores, or of dtype bool and false where a query may not attend.
    causal : bool
        Whether query ``i`` may attend to keys up to ``i`` only.
    scale : float, optional
        The factor of the scores; ``1 / sqrt(width)`` where it is not given.
    """
    queries, keys = _shape(query, "query"), _shape(key, "key")
    rank = len(keys)
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    turned = b.emit("permute_dims", key, axes=swapped, name="key_t", origins=origins)
    scores = b.emit("matmul", query, turned, name="scores", origins=origins)
    factor = _default_scale(queries) if scale is None else scale
    scores = b.emit("multiply", scores, factor, name="scaled", origins=origins)
    if causal:
        sizes = (queries[-2], keys[-2], 0)
        triangle = b.emit("causal_mask", sizes, name="causal", origins=origins)
        scores = _masked(b, scores, triangle, origins)
    if mask is not None:
        scores = _masked(b, scores, mask, origins)
    weights = b.emit(
        "softmax", scores, axis=-1, masked_rows="zero", name="weights", origins=origins
    )
    return b.emit("matmul", weights, value, name="attention", origins=origins)
