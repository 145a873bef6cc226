"""Straight-line code: the values that a statement binds and the stores after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .nodes import Alloc, Bind, Element, If, Local, Seq, Stmt, Store
from .visit import seq, walk_element


def statements_of(statement: Stmt) -> tuple[Stmt, ...]:
    """Return the statements of a sequence in order, a bind before those in its scope.

    The statements in the scope of a bind are those after it.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             t = x[vi] * 2.0
    ...             y[vi] = t * t
    ... ''').prim("f")
    >>> [type(s).__name__ for s in statements_of(f.body.body.body)]
    ['Bind', 'Store']
    """
    match statement:
        case Seq(body=parts):
            return tuple(inner for part in parts for inner in statements_of(part))
        case Bind(body=body):
            return (statement, *statements_of(body))
        case _:
            return (statement,)


def joined(statements: tuple[Stmt, ...]) -> Stmt:
    """Return the statement whose statements are given, with binds around those after them."""
    result: tuple[Stmt, ...] = ()
    for statement in reversed(statements):
        if isinstance(statement, Bind):
            result = (Bind(statement.local, statement.value, seq(*result)),)
        else:
            result = (statement, *result)
    return seq(*result)


def last_of(statement: Stmt) -> Stmt:
    """Return the last statement, inside of allocations, binds, and branches without ``else``."""
    while True:
        match statement:
            case Seq(body=(*_, last)):
                statement = last
            case Alloc(body=body) | Bind(body=body) | If(then=body, otherwise=None):
                statement = body
            case _:
                return statement


def with_last(statement: Stmt, new: Stmt) -> Stmt:
    """Return a statement with another last one, see `last_of`."""
    match statement:
        case Seq(body=(*before, last)):
            return seq(*before, with_last(last, new))
        case Alloc(body=body) | Bind(body=body):
            return replace(statement, body=with_last(body, new))
        case If(then=body, otherwise=None):
            return replace(statement, then=with_last(body, new))
        case _:
            return new


def straight_line(statement: Stmt) -> tuple[tuple[Bind, ...], tuple[Store, ...]] | None:
    """Return the binds and the stores of a statement; None if it contains any other one."""
    parts = statements_of(statement)
    binds = tuple(s for s in parts if isinstance(s, Bind))
    stores = tuple(s for s in parts if isinstance(s, Store))
    return (binds, stores) if len(binds) + len(stores) == len(parts) else None


def single_store(statement: Stmt) -> Store | None:
    """Return the store of a statement that consists of one store after binds, or None."""
    while isinstance(statement, Bind):
        statement = statement.body
    return statement if isinstance(statement, Store) else None


def used_binds(binds: Sequence[Bind], values: Iterable[Element]) -> tuple[Bind, ...]:
    """Return the binds whose values some values use, directly or through others, in order."""
    used = {e for value in values for e in walk_element(value) if isinstance(e, Local)}
    kept: list[Bind] = []
    for bind in reversed(binds):
        if bind.local in used:
            kept.append(bind)
            used |= {e for e in walk_element(bind.value) if isinstance(e, Local)}
    return tuple(reversed(kept))


def own_values(statements: tuple[Stmt, ...]) -> tuple[Element, ...]:
    """Return the values that statements store or bind themselves, in order."""
    return tuple(s.value for s in statements if isinstance(s, Store | Bind))
