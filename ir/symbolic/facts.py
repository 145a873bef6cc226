"""Facts: conditions a program may rely on, where each comes from and what makes it true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .base import Bool, SymInt
from .build import as_expr
from .conditions import as_condition
from .errors import ContradictoryFactsError
from .predicates import FALSE, TRUE, And
from .proof.ladder import contradictory
from .terms import Var
from .traverse import substitute


class Discharge(Enum):
    """What makes a fact true when the program runs."""

    ENTRY_CHECK = "entry check"
    MATCH_CAST = "match_cast"
    PROOF = "proof"
    CALLER = "caller"
    ASSUMED_HINT = "hint"
    """Nothing: a likely value, which `prove` never uses."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact comes from, in words, and its place in a program or file if it has one."""

    text: str
    location: str | None = None

    def __str__(self) -> str:
        return self.text if self.location is None else f"{self.text} at {self.location}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One condition with its origin and its discharge."""

    predicate: Bool
    origin: Origin
    discharge: Discharge

    @property
    def usable(self) -> bool:
        """Whether a proof may rest on it."""
        return self.discharge is not Discharge.ASSUMED_HINT

    def __str__(self) -> str:
        return f"{self.predicate} ({self.origin}; {self.discharge.value})"


_LOOP: Final = Origin("loop range")
_RANGE: Final = Origin("range")


class Facts:
    """An immutable collection of facts, in the order they were stated.

    Equal collections hold the same facts. Conjunctions are split, so each fact is one comparison
    or a disjunction.

    Examples
    --------
    >>> from tilewright.ir.symbolic import eq, is_proved, var
    >>> n, i = var("n", lower=0), var("i")
    >>> facts = Facts().assume(eq(n % 4, 0), origin="the caller pads").with_loop(i, n)
    >>> is_proved(i // 4 < n // 4, facts)
    True
    """

    __slots__ = ("_facts", "_hash", "predicates")

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        """Collect facts; repetitions are dropped, contradictions are not looked for."""
        self._facts: Final = tuple(dict.fromkeys(facts))
        self.predicates: Final = frozenset(f.predicate for f in self._facts if f.usable)
        self._hash: Final = hash(self.predicates)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and frozenset(self._facts) == frozenset(other._facts)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Facts({'; '.join(str(fact.predicate) for fact in self._facts)})"

    def assume(
        self,
        predicate: Bool,
        *,
        origin: Origin | str = "assumed",
        discharge: Discharge = Discharge.ENTRY_CHECK,
    ) -> Facts:
        """Add a fact.

        Raises
        ------
        ContradictoryFactsError
            The new fact cannot hold together with one that is there, or with the declared range
            of its symbols. The error names both.
        """
        place = Origin(origin) if isinstance(origin, str) else origin
        added = [Fact(part, place, discharge) for part in _conjuncts(as_condition(predicate))]
        for fact in added:
            self._check(fact)
        return Facts((*self._facts, *added)) if added else self

    def with_loop(self, symbol: Var, extent: SymInt) -> Facts:
        """Add ``0 <= symbol < extent``: inside the loop it holds, even if the loop never runs."""
        in_range = (as_expr(symbol) >= 0, as_expr(symbol) < extent)
        added = [Fact(p, _LOOP, Discharge.PROOF) for p in in_range if p is not TRUE]
        return Facts((*self._facts, *added)) if added else self

    def with_range(
        self,
        symbol: Var,
        lower: SymInt | None = None,
        upper: SymInt | None = None,
        *,
        origin: Origin | str = _RANGE,
        discharge: Discharge = Discharge.ENTRY_CHECK,
    ) -> Facts:
        """Add ``lower <= symbol <= upper``; either side may be missing."""
        least = TRUE if lower is None else as_expr(lower) <= symbol
        most = TRUE if upper is None else symbol <= as_expr(upper)
        return self.assume(least, origin=origin, discharge=discharge).assume(
            most, origin=origin, discharge=discharge
        )

    def union(self, other: Facts) -> Facts:
        """All facts of both."""
        if not other or other is self:
            return self
        return Facts((*self._facts, *other._facts)) if self._facts else other

    def substitute(self, values: Mapping[Var, SymInt]) -> Facts:
        """Replace symbols in every fact; what becomes trivially true is dropped."""
        return Facts(
            Fact(part, fact.origin, fact.discharge)
            for fact in self._facts
            for part in _conjuncts(substitute(fact.predicate, values))
        )

    def about(self, symbols: frozenset[Var]) -> Facts:
        """The facts that mention any of the symbols, directly or through other facts."""
        reached, chosen, grew = set(symbols), set[Fact](), True
        while grew:
            grew = False
            for fact in self._facts:
                if fact not in chosen and not reached.isdisjoint(fact.predicate.free):
                    chosen.add(fact)
                    reached |= fact.predicate.free
                    grew = True
        if len(chosen) == len(self._facts):
            return self
        return Facts(fact for fact in self._facts if fact in chosen)

    def _check(self, new: Fact) -> None:
        """Raise if a fact contradicts the range of its symbols or older facts."""
        if new.predicate is FALSE:
            raise _contradiction(new, ())
        related = self.about(new.predicate.free)
        older = [fact for fact in related if fact.usable]
        if not new.usable or not contradictory(related.predicates | {new.predicate}):
            return
        pair = (old for old in older if contradictory(frozenset((old.predicate, new.predicate))))
        culprit = next(pair, None)
        raise _contradiction(new, older if culprit is None else (culprit,))


def _conjuncts(predicate: Bool) -> tuple[Bool, ...]:
    if predicate is TRUE:
        return ()
    return predicate.args if isinstance(predicate, And) else (predicate,)


def _contradiction(new: Fact, others: Iterable[Fact]) -> ContradictoryFactsError:
    listing = " and ".join(f"'{old.predicate}' ({old.origin})" for old in others)
    against = listing or "the declared range of its symbols"
    claim = new.origin if new.predicate is FALSE else f"'{new.predicate}' ({new.origin})"
    return ContradictoryFactsError(
        f"the fact {claim} contradicts {against}",
        where=new.origin.location or "",
        hint="drop one of them, or split the program into versions",
        details={"fact": str(new), "others": [str(old) for old in others]},
    )
