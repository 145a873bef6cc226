"""Loads and stores with the loops, lets, and branches around them, inside and outside of blocks.

Other than the accesses of blocks, whose indices are over iteration variables, these are over the
variables of the loops around: lowering replaces iteration variables by their bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..loop.nodes import Bind, Block, Buffer, For, If, Let, Load, Stmt, Store
from ..loop.ranges import loop_var
from ..loop.visit import children, loads, walk_element
from ..symbolic import (
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
from .accesses import ranges_of, values_of
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
        The conditions of the branches around it.
    block : Block or None
        The innermost block around it.
    """

    statement: Store | Let | Bind
    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    loops: tuple[For, ...] = ()
    binders: tuple[For | Let, ...] = ()
    guards: tuple[Bool, ...] = ()
    block: Block | None = None

    @property
    def loaded(self) -> frozenset[Var]:
        """The integers loaded from memory around the access."""
        return frozenset(x.var for x in self.binders if isinstance(x, Let))


_Around: TypeAlias = "tuple[tuple[For, ...], tuple[For | Let, ...], tuple[Bool, ...], Block | None]"


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
    stack: list[tuple[Stmt, _Around]] = [(body, ((), (), (), None))]
    while stack:
        statement, around = stack.pop()
        loops, binders, guards, block = around
        match statement:
            case Store(buffer=buffer, indices=indices):
                yield Occurrence(statement, buffer, indices, True, *around)
                for load in loads(statement):
                    yield Occurrence(statement, load.buffer, load.indices, False, *around)
            case Bind(value=value, body=inner):
                for load in (e for e in walk_element(value) if isinstance(e, Load)):
                    yield Occurrence(statement, load.buffer, load.indices, False, *around)
                stack.append((inner, around))
            case Let(load=load, body=inner):
                yield Occurrence(statement, load.buffer, load.indices, False, *around)
                stack.append((inner, (loops, (*binders, statement), guards, block)))
            case For(body=inner):
                stack.append((inner, ((*loops, statement), (*binders, statement), guards, block)))
            case If(condition=condition, then=then, otherwise=otherwise):
                if otherwise is not None:
                    stack.append((otherwise, (loops, binders, (*guards, negate(condition)), block)))
                stack.append((then, (loops, binders, (*guards, condition), block)))
            case Block(body=inner):
                stack.append((inner, (loops, binders, guards, statement)))
            case _:
                stack.extend((part, around) for part in reversed(children(statement)))


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
