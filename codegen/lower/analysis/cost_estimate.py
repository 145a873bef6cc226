"""An estimate of the work of a loop, which decides whether it runs on several threads."""

from __future__ import annotations

from typing import Final

from ....ir.loop import nodes as loop
from ....ir.loop.element_functions import element_function
from ....ir.loop.visit import children, walk_element
from ....ir.symbolic import Const, Expr, as_expr, const_value, maximum, substitute

LANES: Final = 16
"""The number of elements that are counted as one vector instruction."""


def estimated_work(statement: loop.Stmt) -> Expr:
    """Return the estimated number of instructions of a statement.

    Extents are multiplied; branches and sequences are added. A load in a register tile counts once
    per distinct index. Every iteration of a loop is assumed to cost as much as the first one, and
    an integer loaded from memory to have the end of its range that makes the work larger.
    """
    return _work(statement, ())


def _work(statement: loop.Stmt, tile: tuple[loop.For, ...]) -> Expr:
    match statement:
        case loop.Store():
            return as_expr(_store(statement, tile))
        case loop.Bind(value=value, body=body):
            return _value(value, tile) + _work(body, tile)
        case loop.For(kind="unrolled" | "vectorized", extent=Const(), body=body, var=var):
            return substitute(_work(body, (*tile, statement)), {var: 0})
        case loop.For(extent=extent, body=body, var=var):
            return substitute(_work(body, tile), {var: 0}) * maximum(extent, 0)
        case loop.Let(var=var, lower=lower, upper=upper, body=body):
            work = _work(body, tile)
            if var not in work.free:
                return work
            ends = (substitute(work, {var: end}) for end in (lower, upper - 1))
            return maximum(*ends)
        case _:
            total = as_expr(0)
            for child in children(statement):
                total += _work(child, tile)
            return total


def _store(store: loop.Store, tile: tuple[loop.For, ...]) -> int:
    return (0 if store.buffer.scope == "local" else _times(tile)) + _value(store.value, tile)


def _value(value: loop.Element, tile: tuple[loop.For, ...]) -> int:
    total = 0
    fused: set[int] = set()
    for element in walk_element(value):
        match element:
            case loop.Load(buffer=buffer, indices=indices):
                free = {v for i in indices for v in i.free}
                changing = tuple(t for t in tile if t.var in free)
                total += 0 if buffer.scope == "local" else _times(changing)
            case loop.Binary(op="add" | "sub", left=left, right=right):
                products = [e for e in (left, right) if isinstance(e, loop.Binary)]
                fused.update(id(e) for e in products[:1] if e.op == "mul")
                total += _times(tile)
            case _:
                total += 0 if id(element) in fused else _cost(element) * _times(tile)
    return total


def _times(tile: tuple[loop.For, ...]) -> int:
    """Return the number of instructions that one operation on every element of a tile takes."""
    times = 1
    for one in tile:
        count = const_value(one.extent) or 1
        times *= count if one.kind == "unrolled" else max(1, count // LANES)
    return times


def _cost(element: loop.Element) -> int:
    match element:
        case loop.Number() | loop.Index() | loop.Condition() | loop.Local():
            return 0
        case loop.Unary(op=op) | loop.Binary(op=op) | loop.Ternary(op=op):
            return element_function(op).cost
        case _:
            return 1
