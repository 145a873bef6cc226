"""Attention in random graph programs: layouts, groups of heads, factors, and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.symbolic import as_expr, const_value, product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewright.ir.symbolic import Expr

    from tests.fuzz.graphs.maker import GraphMaker, Tensor
    from tests.fuzz.graphs.operators import Draw

WIDTHS = (1, 2, 4, 5, 8, 16, 17)
LOWEST = -1e30
"""A finite score that no score is less than, and that a factor does not make infinite."""

GROUP = 2
"""The heads of queries that share the keys of a head."""


def attention(m: GraphMaker) -> object:
    """Add two products with a softmax of the scores between them."""
    if not m.rounding:
        return None
    rng = m.rng
    outer = tuple(as_expr(rng.choice((1, 2, 4))) for _ in range(rng.choice((0, 1, 2, 2))))
    queries, keys = m.dim(), m.dim()
    if m.chance(0.3):
        keys = queries
    width, depth = (as_expr(rng.choice(WIDTHS)) for _ in range(2))
    q = _operand(m, outer, queries, width, grouped=False)
    k = _operand(m, outer, keys, width, grouped=True)
    v = _operand(m, outer, keys, depth, grouped=True)
    if q is None or k is None or v is None:
        return None
    rank = len(outer) + 2
    transposed = m.emit("permute_dims", k, axes=(*range(rank - 2), rank - 1, rank - 2))
    bound = q.bound * k.bound * 17
    x = transposed and m.emit("matmul", q, transposed, bound=bound, rounds=True)
    m.work.append(product((*outer, queries, keys, width)))
    for _ in range(rng.randint(0, 3)):
        x = x and _step(m, x)
    rows = rng.choice(("zero", "nan"))
    weights = x and m.emit("softmax", x, axis=-1, masked_rows=rows, bound=1.0, rounds=True)
    if weights is None:
        return None
    y = m.emit("matmul", weights, v, bound=v.bound, rounds=True)
    if y is None or not outer[1:] or m.chance(0.5):
        return y
    return m.emit("permute_dims", y, axes=(0, 2, 1, 3))


def _operand(
    m: GraphMaker, outer: tuple[Expr, ...], rows: Expr, width: Expr, *, grouped: bool
) -> Tensor | None:
    """Return an input in one of the layouts of models, as matrices of the batches and heads."""
    if len(outer) < 2 or m.chance(0.4):
        one = tuple(d if m.chance(0.8) else as_expr(1) for d in outer) if grouped else outer
        return m.param((*one, rows, width), "f32")
    batch, heads = outer
    if m.chance(0.5) or not grouped or const_value(heads) not in (2, 4):
        x = m.param((batch, rows, heads, width), "f32")
        return x and m.emit("permute_dims", x, axes=(0, 2, 1, 3))
    few = heads // GROUP
    x = m.param((batch, few, rows, width), "f32")
    x = x and m.emit("expand_dims", x, axes=(2,))
    x = x and m.emit("broadcast_to", x, (batch, few, as_expr(GROUP), rows, width))
    return x and m.emit("reshape", x, (batch, heads, rows, width))


def _step(m: GraphMaker, x: Tensor) -> Tensor | None:
    """Add a factor, a bias, or a mask to the scores."""
    rng, shape = m.rng, x.shape
    choice = rng.randrange(4)
    if choice == 0:
        return m.emit(rng.choice(("multiply", "divide")), x, rng.choice((0.5, 2.0)), rounds=True)
    if choice == 1:
        bias = m.param(m.narrowed(shape[-2:]), "f32")
        operands = (x, bias) if m.chance(0.7) else (bias, x)
        return bias and m.emit("add", *operands, bound=x.bound + 3, rounds=True)
    if choice == 2:
        last = as_expr(rng.choice((0, 1, 3)))
        mask = m.emit("causal_mask", (*shape[-2:], last), bound=1)
    else:
        mask = m.param(m.narrowed(shape), "bool")
    if mask is None:
        return None
    other = rng.choice((float("-inf"), float("-inf"), LOWEST))
    hidden = m.chance(0.4)
    operands = (mask, other, x) if hidden else (mask, x, other)
    return m.emit("where", *operands, bound=x.bound, rounds=True)


ATTENTION: Mapping[Draw, int] = {attention: 5}
