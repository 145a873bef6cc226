"""Loads and stores with the loops, lets, and branches around them, inside and outside of blocks.

Other than the accesses of blocks, whose indices are over iteration variables, these are over the
variables of the loops around: lowering replaces iteration variables by their bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..identity import Uid
from ..loop.nodes import Bind, Block, Buffer, Element, For, If, Let, Stmt, Store
from ..loop.ranges import loop_var
from ..loop.visit import children
from ..symbolic import (
    TRUE,
    Bool,
    ContradictoryFactsError,
    Expr,
    Facts,
    Var,
    any_of,
    is_proved,
    negate,
    substitute,
    var,
)
from .accesses import guarded_loads, ranges_of, values_of
from .facts_at import within_loops
from .iter_map import injective_in


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """A load or store and the statements around it, outermost first.

    Parameters
    ----------
    statement : Store or Let
        The statement that contains it.
    buffer : Buffer
        The accessed buffer.
    indices : tuple of Expr
        The indices, over the variables of loops and lets.
    writes : bool
        Whether it is a store.
    loops : tuple of For
        The loops around it.
    binders : tuple of For and Let
        The loops and lets around it. The integers of the lets have arbitrary values.
    guards : tuple of Bool
        The conditions of the branches around it, and of the selections around a load.
    block : Block or None
        The innermost block around it.
    source : Uid or None
        The innermost block or loop around it, except loops over threads.
    """

    statement: Store | Let | Bind
    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    loops: tuple[For, ...] = ()
    binders: tuple[For | Let, ...] = ()
    guards: tuple[Bool, ...] = ()
    block: Block | None = None
    source: Uid | None = None

    @property
    def loaded(self) -> frozenset[Var]:
        """The integers loaded from memory around the access."""
        return frozenset(x.var for x in self.binders if isinstance(x, Let))


_Around: TypeAlias = (
    "tuple[tuple[For, ...], tuple[For | Let, ...], tuple[Bool, ...], Block | None, Uid | None]"
)


def occurrences(body: Stmt) -> Iterator[Occurrence]:
    r"""Yield the loads and stores in a statement; stores before the loads of their value.

    Blocks must not have iteration variables or an init.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "@prim_func\ndef f(y: InOut[(8,), f32]):\n    for i in range(8): y[i] = y[i] + 1.0"
    >>> func = parse(text, check=False).prim("f")
    >>> [(o.buffer.name, o.writes, [x.var.name for x in o.loops]) for o in occurrences(func.body)]
    [('y', True, ['i']), ('y', False, ['i'])]
    """
    stack: list[tuple[Stmt, _Around]] = [(body, ((), (), (), None, None))]
    while stack:
        statement, around = stack.pop()
        loops, binders, guards, block, source = around
        match statement:
            case Store(buffer=buffer, indices=indices, value=value):
                yield Occurrence(statement, buffer, indices, True, *around)
                yield from _loads(statement, value, around)
            case Bind(value=value, body=inner):
                yield from _loads(statement, value, around)
                stack.append((inner, around))
            case Let(load=load, body=inner):
                yield from _loads(statement, load, around)
                stack.append((inner, (loops, (*binders, statement), guards, block, source)))
            case For(body=inner, uid=uid, kind=kind):
                at = None if kind == "thread" else uid
                inside = (*loops, statement), (*binders, statement), guards, block, at
                stack.append((inner, inside))
            case If(condition=condition, then=then, otherwise=otherwise):
                if otherwise is not None:
                    claims = (*guards, negate(condition))
                    stack.append((otherwise, (loops, binders, claims, block, source)))
                stack.append((then, (loops, binders, (*guards, condition), block, source)))
            case Block(body=inner, uid=uid):
                stack.append((inner, (loops, binders, guards, statement, uid)))
            case _:
                stack.extend((part, around) for part in reversed(children(statement)))


def _loads(
    statement: Store | Let | Bind, element: Element, around: _Around
) -> Iterator[Occurrence]:
    """Yield the loads of an element of a statement."""
    loops, binders, guards, block, source = around
    for load, guard in guarded_loads(element):
        inner = guards if guard is TRUE else (*guards, guard)
        yield Occurrence(
            statement, load.buffer, load.indices, False, loops, binders, inner, block, source
        )


def separated_by(
    indices: Iterable[Expr], loops: Iterable[For | Let], facts: Facts
) -> frozenset[Var]:
    """Return the variables whose different values imply different indices.

    Parameters
    ----------
    indices : iterable of Expr
        The indices of an access.
    loops : iterable of For and Let
        The loops and lets around it whose iterations are compared, outermost first.
    facts : Facts
        The facts in scope at the outermost of them.
    """
    inside = tuple(loops)
    return injective_in(indices, ranges_of(inside), within_loops(facts, inside))


def never_equal(first: Occurrence, second: Occurrence, facts: Facts) -> bool:
    """Return whether two accesses are proved to access different elements, in any iterations.

    ``facts`` are those of the function.
    """
    try:
        facts, ours = _renamed(first, facts)
        facts, theirs = _renamed(second, facts)
    except ContradictoryFactsError:
        return True
    pairs = tuple(zip(ours, theirs, strict=True))
    return is_proved(any_of(*(a < b for a, b in pairs), *(a > b for a, b in pairs)), facts) or any(
        is_proved(a < b, facts) or is_proved(a > b, facts) for a, b in pairs
    )


def _renamed(found: Occurrence, facts: Facts) -> tuple[Facts, tuple[Expr, ...]]:
    """Return the indices of one execution, with facts about its variables."""
    names: dict[Var, Expr] = {}
    for binder in found.binders:
        values = values_of(binder).substitute(names)
        if isinstance(binder, For):
            names[binder.var] = fresh = loop_var(binder.var.name, values.extent)
            facts = facts.with_loop(fresh, values.extent)
        else:
            old = binder.var
            names[old] = fresh = var(old.name, lower=old.lower, upper=old.upper)
            facts = facts.assume(values.contains(fresh))
    for guard in found.guards:
        facts = facts.assume(substitute(guard, names))
    return facts, tuple(substitute(i, names) for i in found.indices)
