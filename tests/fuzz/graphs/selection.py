"""Sorting, and operators whose results have sizes that depend on the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.symbolic import as_expr, product, to_text

from tests.fuzz.graphs.maker import MEASURED, MOST, Tensor, largest, least
from tests.fuzz.graphs.operators import some

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewright.ir.symbolic import Expr

    from tests.fuzz.graphs.maker import GraphMaker
    from tests.fuzz.graphs.operators import Draw

WIDE = ("bool", "i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64")
"""The dtypes whose elements are compared."""


def comparable(t: Tensor) -> bool:
    """Return whether elements have an order that does not depend on rounding."""
    return t.exact and t.dtype in WIDE


def ordered(m: GraphMaker) -> object:
    """Add ``sort``, ``argsort`` or ``topk`` along an axis."""
    x = some(m, lambda t: t.rank > 0 and comparable(t))
    if x is None:
        return None
    axis = m.rng.randrange(x.rank)
    size = x.shape[axis]
    bound = max(x.bound, float(largest(size)))
    op = m.rng.choice(["sort", "argsort", "topk"])
    if op == "topk":
        count = size if m.chance(0.3) else as_expr(m.rng.randint(0, min(4, least(size))))
        return m.emit_tuple(op, x, (count,), axis=axis, largest=m.chance(0.5), bound=bound)
    descending = m.chance(0.5)
    if op == "argsort":
        return m.emit(op, x, axis=axis, descending=descending, bound=largest(size))
    return m.emit_tuple(op, x, axis=axis, descending=descending, bound=bound)


def measured(m: GraphMaker, most: Expr) -> Expr:
    """Return a new symbol that a ``match_cast`` binds to a size that depends on the data."""
    fresh = m.name(MEASURED)
    found = m.symbol(fresh, least=0)
    m.measured.append(fresh)
    m.defined[fresh] = to_text(most)
    m.scope.define((found,))
    return found


def refined(m: GraphMaker, source: str, shape: tuple[Expr, ...], like: Tensor) -> Tensor:
    """Bind the refined annotation of a value."""
    made = Tensor(m.name(), shape, like.dtype, like.bound, like.exact)
    m.bind(made, f"{made.text} = match_cast({source}, {made.info})")
    return made


def positions(m: GraphMaker) -> object:
    """Add ``nonzero`` and, most often, a gather of the elements that it found."""
    x = some(m, lambda t: t.rank in (1, 2) and comparable(t) and few(t))
    if x is None or m.scope.closed:
        return None
    found = m.name()
    m.scope.lines.append(f"{found} = nonzero({x.text})")
    count = measured(m, product(x.shape))
    like = Tensor("", (), "i64", max(map(largest, x.shape)))
    rows = refined(m, found, (count, as_expr(x.rank)), like)
    if m.chance(0.3):
        return rows
    axis = m.rng.randrange(x.rank)
    column = m.emit("strided_slice", rows, (as_expr(axis),), (as_expr(axis + 1),), axes=(1,))
    where = column and m.emit("reshape", column, (count,))
    return where and m.emit("take", x, where, axis=axis, bound=x.bound)


def distinct(m: GraphMaker) -> object:
    """Add ``unique`` and some of its results, whose sizes are equal."""
    x = some(m, lambda t: comparable(t) and few(t))
    if x is None or m.scope.closed:
        return None
    whole = m.name("t")
    m.scope.lines.append(f"{whole} = unique({x.text})")
    most = float(max(1, largest(product(x.shape))))
    count = measured(m, product(x.shape))
    place = Tensor("", (), "i64", most)
    used = m.rng.sample(range(4), m.rng.randint(1, 4))
    for k in used:
        own = m.name()
        m.scope.lines.append(f"{own} = {whole}[{k}]")
        if k == 2:
            m.scope.values.append(Tensor(own, x.shape, "i64", most))
        else:
            refined(m, own, (count,), x if k == 0 else place)
    return used


def few(t: Tensor) -> bool:
    """Return whether a value has few elements, so that sums over the found ones remain exact."""
    return largest(product(t.shape)) <= MOST


SELECTION: Mapping[Draw, int] = {ordered: 4, positions: 1, distinct: 1}
