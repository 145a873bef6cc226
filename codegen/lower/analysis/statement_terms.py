"""The symbolic terms of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.loop.nodes import Block, Condition, Element, For, If, Index, Let, Load, Stmt, Store
from ....ir.loop.visit import walk_element
from ....ir.symbolic import Bool, Expr


def _element_terms(element: Element) -> Iterator[Expr | Bool]:
    for inner in walk_element(element):
        match inner:
            case Load(indices=indices):
                yield from indices
            case Index(value=value) | Condition(value=value):
                yield value
            case _:
                pass


def own_terms(statement: Stmt) -> Iterator[Expr | Bool]:
    """Yield the terms of a statement, without those of nested statements."""
    match statement:
        case Store(indices=indices, value=value):
            yield from indices
            yield from _element_terms(value)
        case For(extent=extent):
            yield extent
        case If(condition=condition):
            yield condition
        case Let(lower=lower, upper=upper, load=load):
            yield from (lower, upper, *load.indices)
        case Block(iters=iters, predicate=predicate):
            yield predicate
            yield from (t for v in iters for t in (v.binding, v.extent))
        case _:
            return
