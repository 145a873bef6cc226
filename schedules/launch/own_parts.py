"""Loops whose iterations write different elements of a temporary."""

from __future__ import annotations

from itertools import combinations

from ...ir.analysis import Interval, Tree, interval_of, ranges_of, union, values_of, within_loops
from ...ir.analysis.occurrences import Occurrence, separated_by
from ...ir.loop.nodes import For, Let
from ...ir.symbolic import Expr, Facts, Var, free_vars, is_proved, linear_form, substitute


def writes_own_part(loop: For, accesses: list[Occurrence], tree: Tree) -> bool:
    """Return whether no two iterations of a loop write the same element of a temporary.

    Iterations that read only elements that they wrote themselves may then use one temporary at the
    same time.

    Parameters
    ----------
    loop : For
        A loop around all accesses.
    accesses : list of Occurrence
        All accesses to the temporary.
    tree : Tree
        The index of the function.
    """
    return _writes_disjoint(loop, accesses, tree) or _in_own_part(loop, accesses, tree)


def _writes_disjoint(loop: For, accesses: list[Occurrence], tree: Tree) -> bool:
    """Return whether each write is to different elements, and all writes are to the same ones."""
    facts = tree.facts(loop)
    writes = [a for a in accesses if a.writes]
    distinct = all(loop.var in separated_by(a.indices, _inside(loop, a), facts) for a in writes)
    return distinct and all(_same_elements(loop, a, b, facts) for a, b in combinations(writes, 2))


def _inside(loop: For, access: Occurrence) -> tuple[For | Let, ...]:
    return access.binders[access.binders.index(loop) :]


def _same_elements(loop: For, first: Occurrence, second: Occurrence, facts: Facts) -> bool:
    """Return whether an iteration of a loop writes the elements of one access in the other one.

    Their indices are the same terms of loops, of which one access has all iterations of the other.
    """
    ours, theirs = (_used(loop, access) for access in (first, second))
    if len(ours) != len(theirs):
        return False
    names: dict[Var, Expr] = {}
    shorter = longer = True
    for a, b in zip(ours, theirs, strict=True):
        mine, other = values_of(a), values_of(b).substitute(names)
        names[b.var] = a.var
        if mine != other:
            begin = mine.start == other.start
            shorter = shorter and begin and is_proved(mine.extent <= other.extent, facts)
            longer = longer and begin and is_proved(mine.extent >= other.extent, facts)
    same = first.indices == tuple(substitute(i, names) for i in second.indices)
    return same and (shorter or longer)


def _used(loop: For, access: Occurrence) -> list[For | Let]:
    """Return the loops and lets inside of a loop on which the indices of an access depend."""
    used = set[Var]().union(*(free_vars(i) for i in access.indices))
    found: list[For | Let] = []
    for binder in reversed(_inside(loop, access)[1:]):
        if binder.var in used:
            found.insert(0, binder)
            values = values_of(binder)
            used |= free_vars(values.start) | free_vars(values.extent)
    return found


def _in_own_part(loop: For, accesses: list[Occurrence], tree: Tree) -> bool:
    """Return whether each iteration of a loop accesses only its own part of one dimension.

    The part starts at a multiple of the iteration, and is not larger than this multiple: the rows
    ``p * 4 + f // 8`` with ``f < 32``, for iteration ``p``.
    """
    facts = tree.facts(loop.body)
    found: list[list[Interval | None]] = []
    for access in accesses:
        inner = _inside(loop, access)[1:]
        ranges, known = ranges_of(inner), within_loops(facts, inner)
        found.append([interval_of(index, ranges, known) for index in access.indices])
    return any(_is_own(loop.var, dimension, facts) for dimension in zip(*found, strict=True))


def _is_own(variable: Var, intervals: tuple[Interval | None, ...], facts: Facts) -> bool:
    known = [i for i in dict.fromkeys(intervals) if i is not None]
    whole = None if None in intervals else union(known, facts)
    if whole is None or variable in free_vars(whole.extent):
        return False
    form = linear_form(whole.start, (variable,))
    step = None if form is None else form.coefficients.get(variable)
    return step is not None and is_proved(whole.extent <= step, facts)
