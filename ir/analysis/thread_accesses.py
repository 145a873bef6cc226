"""Accesses of different threads of a thread block to the same elements.

A kernel is examined as the loops that it is lowered from: the indices of each dimension, the
extents of the loops, the branches, and the selections around a load are all used by the proof.
Addresses in bytes do not show them any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Final, NamedTuple, TypeAlias

from ...target.gpus import BLOCK_AXES, THREAD_AXES
from ..identity import Uid
from ..loop.nodes import For, Let, PrimFunc
from ..loop.ranges import loop_var
from ..symbolic import (
    Bool,
    Eq,
    Expr,
    Facts,
    Var,
    all_of,
    any_of,
    conjuncts,
    const_value,
    eq,
    is_proved,
    ne,
    substitute,
    var,
)
from .accesses import ranges_of, values_of
from .distances import equal_pairs, never_overlap
from .facts_at import assuming, within_loops
from .iter_map import injective_in
from .occurrences import Occurrence, occurrences

MOST_PAIRS: Final = 64
"""The number of pairs of accesses of two statements that are examined."""

_Indices: TypeAlias = "tuple[tuple[Var, Var], ...]"


class AccessKey(NamedTuple):
    """The loads or the stores of a statement from or to a buffer.

    Parameters
    ----------
    source : Uid
        The innermost block or loop around them.
    buffer : str
        The name of the buffer.
    writes : bool
        Whether they are stores.
    """

    source: Uid
    buffer: str
    writes: bool


class ThreadAccesses:
    """The accesses of a kernel whose outermost loops are the axes of its launch.

    Parameters
    ----------
    func : PrimFunc
        The kernel. Blocks must not have iteration variables or an init.
    opaque : set of Uid
        The blocks whose accesses the kernel does not show, such as those of instructions.

    Examples
    --------
    >>> from ..script import parse
    >>> func = parse(
    ...     '''
    ... n = symbols("n", lower=1)
    ... @prim_func
    ... def f(y: InOut[(8, n), f32]):
    ...     for t in thread(8, "threadIdx.x"):
    ...         for j in range(n):
    ...             y[t, j] = where(condition(j >= 1), y[t, j - 1], 0.0) + 1.0
    ... ''',
    ...     check=False,
    ... ).prim("f")
    >>> j = func.body.body
    >>> write, read = (AccessKey(j.uid, "y", writes) for writes in (True, False))
    >>> ThreadAccesses(func).are_disjoint(write, read, frozenset({j.var}))
    True
    """

    def __init__(self, func: PrimFunc, opaque: AbstractSet[Uid] = frozenset()) -> None:
        """Initialize; the first query collects the accesses."""
        self._func = func
        self._opaque = opaque
        self._found: dict[AccessKey, list[Occurrence]] | None = None

    def _collected(self) -> dict[AccessKey, list[Occurrence]]:
        """Return the accesses of each statement; elements that share a byte are omitted."""
        if self._found is None:
            self._found = {}
            for access in occurrences(self._func.body):
                source, buffer = access.source, access.buffer
                if source is not None and source not in self._opaque and not buffer.dtype.is_packed:
                    key = AccessKey(source, buffer.name, access.writes)
                    self._found.setdefault(key, []).append(access)
        return self._found

    def are_disjoint(
        self,
        first: AccessKey,
        second: AccessKey,
        ended: AbstractSet[Var],
        prove: Callable[[Bool, Facts], bool] = is_proved,
    ) -> bool:
        """Return whether it is proved that different threads access different elements.

        The threads belong to one thread block. Two reads are examined like other accesses.

        Parameters
        ----------
        first, second : AccessKey
            The accesses of two threads.
        ended : set of Var
            The loop variables whose values may differ between the accesses. In the other serial
            loops around both, the accesses are in one iteration.
        prove : callable
            Returns whether a claim is proved from facts; called if simpler arguments do not decide.
        """
        found, facts = self._collected(), self._func.facts
        ours, theirs = found.get(first, ()), found.get(second, ())
        if not ours or not theirs or len(ours) * len(theirs) > MOST_PAIRS:
            return False
        return all(
            _axes(a) == _axes(b) and _Pair.of(a, b, facts, ended).is_disjoint(prove)
            for a in ours
            for b in theirs
        )


def in_own_parts(accesses: list[Occurrence], facts: Facts) -> bool:
    """Return whether it is proved that each thread block accesses only its own elements.

    Parameters
    ----------
    accesses : list of Occurrence
        All accesses to a buffer, in a kernel whose outermost loops are the axes of its launch.
    facts : Facts
        The facts of the function.
    """
    if len(accesses) ** 2 > MOST_PAIRS:
        return False
    pairs = combinations_with_replacement(accesses, 2)
    found = (p for p in pairs if p[0].writes or p[1].writes)
    return all(in_one_thread_block(a, b, facts) for a, b in found)


def in_one_thread_block(first: Occurrence, second: Occurrence, facts: Facts) -> bool:
    """Return whether it is proved that different thread blocks access different elements.

    The parameters are two accesses to a buffer, and the facts of the function.
    """
    if _axes(first) != _axes(second):
        return False
    return _Pair.of(first, second, facts, owners=BLOCK_AXES).is_disjoint(is_proved)


def reads_own_writes(write: Occurrence, read: Occurrence, facts: Facts) -> bool:
    """Return whether it is proved that each thread reads only elements that it stores itself.

    Only the axes on which the store depends are compared: along the others, each thread writes the
    same elements.

    Parameters
    ----------
    write, read : Occurrence
        A store and a load of one buffer.
    facts : Facts
        The facts of the function.
    """
    terms = (*write.indices, *write.guards, *(x.extent for x in write.loops))
    used = frozenset[Var]().union(*(term.free for term in terms))
    owners = tuple(
        x.thread
        for x in write.loops
        if x.thread in THREAD_AXES and x.var in used and const_value(x.extent) != 1
    )
    if not owners:
        return True
    if _axes(write) != _axes(read):
        return False
    return _Pair.of(write, read, facts, owners=owners).is_disjoint(is_proved)


def _axes(access: Occurrence) -> list[For]:
    """Return the loops over threads around an access."""
    return [x for x in access.loops if x.kind == "thread"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Accesses to one buffer by two threads, with different variables for all that may differ.

    Parameters
    ----------
    first, second : Occurrence
        The accesses.
    common : list of For
        The loops around both that are in the same iteration, outermost first.
    names : dict of Var to Expr
        The variables of the second access instead of those of the loops around it.
    threads : tuple of tuple of Var
        The indices of the compared threads, of the second and of the first access.
    outer : Facts
        The facts in scope inside of the common loops.
    facts : Facts
        The facts in scope at both accesses.
    """

    first: Occurrence
    second: Occurrence
    common: list[For]
    names: dict[Var, Expr]
    threads: tuple[tuple[Var, Var], ...]
    outer: Facts
    facts: Facts

    @classmethod
    def of(
        cls,
        first: Occurrence,
        second: Occurrence,
        facts: Facts,
        ended: AbstractSet[Var] | None = None,
        owners: tuple[str, ...] = THREAD_AXES,
    ) -> _Pair:
        """Rename the variables of the second access, except those of common loops.

        If ``ended`` is None, all iterations may differ. ``owners`` are the axes of the threads that
        are compared: those of a thread block, or thread blocks.
        """
        common = list(_common(first, second, ended, owners))
        names: dict[Var, Expr] = {}
        threads: list[tuple[Var, Var]] = []
        outer = within_loops(facts, common)
        facts = assuming(within_loops(facts, first.binders), *first.guards)
        for binder in second.binders:
            values = values_of(binder).substitute(names)
            fresh = binder.var
            if binder not in common:
                fresh = names[binder.var] = _copy(binder, values.extent)
            facts = assuming(facts, fresh >= values.start, fresh < values.stop)
            if isinstance(binder, For) and binder not in common and binder.thread in owners:
                threads.append((fresh, binder.var))
        facts = assuming(facts, *(substitute(g, names) for g in second.guards))
        return cls(first, second, common, names, tuple(threads), outer, facts)

    def is_disjoint(self, prove: Callable[[Bool, Facts], bool]) -> bool:
        """Return whether the threads are equal or their elements differ."""
        indices = zip(self.first.indices, self.second.indices, strict=True)
        fixed, left, differ = self._fixed()
        distances = [substitute(substitute(b, self.names) - a, fixed) for a, b in indices]
        if differ:
            return any(never_overlap(d) for d in distances)
        left, distances = _unequal(left, distances)
        if not left or any(never_overlap(d) for d in distances):
            return True
        if self._matched_axes() >= {mine for _, mine in left}:
            return True
        same = all_of(*(eq(a, b) for a, b in left))
        return prove(any_of(same, *(ne(d, 0) for d in distances)), self.facts)

    def _fixed(self) -> tuple[dict[Var, Expr], _Indices, bool]:
        """Return the thread indices that guards fix, the others, and whether two of them differ."""
        ours, theirs = (_fixed_by(x.guards) for x in (self.first, self.second))
        fixed: dict[Var, Expr] = {}
        left: list[tuple[Var, Var]] = []
        differ = False
        for other, mine in self.threads:
            here, there = ours.get(mine), theirs.get(mine)
            fixed.update({} if here is None else {mine: here})
            fixed.update({} if there is None else {other: there})
            if here is None or there is None:
                left.append((other, mine))
            differ = differ or (here is not None and there is not None and here != there)
        return fixed, tuple(left), differ

    def _matched_axes(self) -> frozenset[Var]:
        """Return the thread indices that the indices with equal terms in both determine."""
        inside = [x for x in self.first.binders if x not in self.common]
        others = [x for x in self.second.binders if x not in self.common]
        names: dict[Var, Expr] = {b.var: a.var for a, b in _matching(inside, others)}
        unmatched = {x.var for x in others} - names.keys()
        indices = zip(self.first.indices, self.second.indices, strict=True)
        same = [a for a, b in indices if unmatched.isdisjoint(b.free) and a == substitute(b, names)]
        if not same:
            return frozenset()
        return injective_in(same, ranges_of(inside), within_loops(self.outer, inside))


def _common(
    first: Occurrence, second: Occurrence, ended: AbstractSet[Var] | None, owners: tuple[str, ...]
) -> Iterator[For]:
    """Yield the loops around two accesses whose variables have one value in both."""
    around = {id(x) for x in second.loops}
    same_iteration = ended is not None
    for loop in first.loops:
        if loop.kind == "thread":
            of_block = owners == THREAD_AXES and loop.thread in BLOCK_AXES
            if of_block or const_value(loop.extent) == 1:
                yield loop
            continue
        same_iteration = same_iteration and loop.kind == "serial" and loop.var not in (ended or ())
        if same_iteration and id(loop) in around:
            yield loop


def _copy(binder: For | Let, extent: Expr) -> Var:
    """Return another variable with the range of that of a loop or an integer."""
    old = binder.var
    if isinstance(binder, For):
        return loop_var(old.name, extent)
    return var(old.name, lower=old.lower, upper=old.upper)


def _fixed_by(guards: Iterable[Bool]) -> dict[Var, Expr]:
    """Return the variables that conditions fix to a constant, with their values."""
    equations = [p for guard in guards for p in conjuncts(guard) if isinstance(p, Eq)]
    sides = [(p.left, p.right) for p in equations] + [(p.right, p.left) for p in equations]
    return {
        one: other
        for one, other in sides
        if isinstance(one, Var) and const_value(other) is not None
    }


def _unequal(left: _Indices, distances: list[Expr]) -> tuple[_Indices, list[Expr]]:
    """Return the thread indices that may differ at distance 0, and distances over these only."""
    while left:
        equal = frozenset[tuple[Var, Var]]().union(*(equal_pairs(d, left) for d in distances))
        if not equal:
            break
        names: dict[Var, Expr] = dict(equal)
        distances = [substitute(d, names) for d in distances]
        left = tuple(pair for pair in left if pair not in equal)
    return left, distances


def _matching(
    inside: list[For | Let], others: list[For | Let]
) -> Iterator[tuple[For | Let, For | Let]]:
    """Yield the loops and integers around two accesses, in order, that have the same values."""
    names: dict[Var, Expr] = {}
    left = list(inside)
    for theirs in others:
        values = values_of(theirs).substitute(names)
        for position, mine in enumerate(left):
            if _is_alike(mine, theirs) and values_of(mine) == values:
                left = left[position + 1 :]
                names[theirs.var] = mine.var
                yield mine, theirs
                break


def _is_alike(mine: For | Let, theirs: For | Let) -> bool:
    """Return whether two statements bind variables of one kind."""
    if isinstance(mine, For) and isinstance(theirs, For):
        return mine.thread == theirs.thread
    return isinstance(mine, Let) and isinstance(theirs, Let)
