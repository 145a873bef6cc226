"""Facts: conditions that proofs may use, each with its origin and its discharge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .base import Bool, SymInt, Var
from .build import as_expr
from .conditions import as_condition
from .errors import ContradictoryFactsError
from .predicates import FALSE, TRUE, conjuncts
from .proof.strategy import contradictory
from .traverse import substitute


class Discharge(Enum):
    """The mechanism that makes a fact true at run time."""

    ENTRY_CHECK = "entry check"
    MATCH_CAST = "match_cast"
    PROOF = "proof"
    CALLER = "caller"
    ASSUMED_HINT = "hint"
    """No mechanism: a likely value, which `prove` never uses."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a fact: a description, and a location in a program or file if known."""

    text: str
    location: str | None = None

    def __str__(self) -> str:
        return self.text if self.location is None else f"{self.text} at {self.location}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition with its origin and its discharge."""

    predicate: Bool
    origin: Origin
    discharge: Discharge

    @property
    def usable(self) -> bool:
        """True if a proof may use the fact; false for hints."""
        return self.discharge is not Discharge.ASSUMED_HINT

    def __str__(self) -> str:
        return f"{self.predicate} ({self.origin}; {self.discharge.value})"


_LOOP: Final = Origin("loop range")
_RANGE: Final = Origin("range")


class Facts:
    """An immutable collection of facts in order of addition.

    Collections with the same facts are equal. Conjunctions are split, so each fact is a comparison
    or a disjunction. Iteration, length, and ``predicates`` contain usable facts only. Likely
    conditions are stored separately in ``hints``: a hint used as a fact would miscompile.

    Examples
    --------
    >>> from tilewright.ir.symbolic import eq, is_proved, var
    >>> n, i = var("n", lower=0), var("i")
    >>> facts = Facts().assume(eq(n % 4, 0), origin="the caller pads").with_loop(i, n)
    >>> is_proved(i // 4 < n // 4, facts)
    True
    """

    __slots__ = ("_facts", "_hash", "hints", "predicates")

    def __init__(self, facts: Iterable[Fact] = (), hints: Iterable[Fact] = ()) -> None:
        """Store facts without duplicates; contradictions are not checked.

        Likely conditions among ``facts`` become hints.
        """
        given = tuple(dict.fromkeys(facts))
        usable = tuple(f for f in given if f.usable)
        likely = (f for f in given if not f.usable) if len(usable) < len(given) else ()
        self._facts: Final = usable
        self.hints: Final = tuple(dict.fromkeys((*hints, *likely)))
        self.predicates: Final = frozenset(f.predicate for f in usable)
        self._hash: Final = hash(self.predicates)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Facts)
            and frozenset(self._facts) == frozenset(other._facts)
            and frozenset(self.hints) == frozenset(other.hints)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Facts({'; '.join(str(fact.predicate) for fact in self._facts)})"

    def __str__(self) -> str:
        """Return one line per fact, with its origin and discharge."""
        return "\n".join(map(str, (*self._facts, *self.hints))) or "no facts"

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
            If the new fact contradicts an existing one or the declared range of its symbols. The
            error names both.
        """
        source = Origin(origin) if isinstance(origin, str) else origin
        added = [Fact(part, source, discharge) for part in conjuncts(as_condition(predicate))]
        for fact in added:
            self._check(fact)
        return Facts((*self._facts, *added), self.hints) if added else self

    @property
    def consistent(self) -> bool:
        """Whether the facts are not proved to be contradictory; checked for all at once."""
        false = any(fact.predicate is FALSE for fact in (*self._facts, *self.hints))
        return not false and not contradictory(self.predicates)

    def with_loop(self, symbol: Var, extent: SymInt) -> Facts:
        """Add ``0 <= symbol < extent``; it holds in the loop body even if the extent is 0."""
        in_range = (as_expr(symbol) >= 0, as_expr(symbol) < extent)
        added = [Fact(p, _LOOP, Discharge.PROOF) for p in in_range if p is not TRUE]
        return Facts((*self._facts, *added), self.hints) if added else self

    def with_range(
        self,
        symbol: Var,
        lower: SymInt | None = None,
        upper: SymInt | None = None,
        *,
        origin: Origin | str = _RANGE,
        discharge: Discharge = Discharge.ENTRY_CHECK,
    ) -> Facts:
        """Add ``lower <= symbol <= upper``; either bound is optional."""
        least = TRUE if lower is None else as_expr(lower) <= symbol
        most = TRUE if upper is None else symbol <= as_expr(upper)
        return self.assume(least, origin=origin, discharge=discharge).assume(
            most, origin=origin, discharge=discharge
        )

    def union(self, other: Facts) -> Facts:
        """Return the facts and the hints of both collections."""
        if other is self or not (other or other.hints):
            return self
        if not (self._facts or self.hints):
            return other
        return Facts((*self._facts, *other._facts), (*self.hints, *other.hints))

    def substitute(self, values: Mapping[Var, SymInt]) -> Facts:
        """Replace symbols in facts and hints; those that become trivially true are removed."""
        return Facts(
            Fact(part, fact.origin, fact.discharge)
            for fact in (*self._facts, *self.hints)
            for part in conjuncts(substitute(fact.predicate, values))
        )

    def about(self, symbols: frozenset[Var]) -> Facts:
        """Return the facts that contain any of the symbols, directly or through other facts.

        Hints are omitted.
        """
        reached, chosen, grew = set(symbols), set[Fact](), True
        while grew:
            grew = False
            for fact in self._facts:
                if fact not in chosen and not reached.isdisjoint(fact.predicate.free):
                    chosen.add(fact)
                    reached |= fact.predicate.free
                    grew = True
        if len(chosen) == len(self._facts) and not self.hints:
            return self
        return Facts(fact for fact in self._facts if fact in chosen)

    def _check(self, new: Fact) -> None:
        """Raise an error if a fact contradicts the range of its symbols or older facts."""
        if new.predicate is FALSE:
            raise _contradiction(new, ())
        if not new.usable:
            return
        older = self.about(new.predicate.free)
        if not contradictory(older.predicates | {new.predicate}):
            return
        pair = (old for old in older if contradictory(frozenset((old.predicate, new.predicate))))
        culprit = next(pair, None)
        raise _contradiction(new, older if culprit is None else (culprit,))


def _contradiction(new: Fact, others: Iterable[Fact]) -> ContradictoryFactsError:
    listing = " and ".join(f"'{old.predicate}' ({old.origin})" for old in others)
    against = listing or "the declared range of its symbols"
    false = f"of origin '{new.origin}'"
    claim = false if new.predicate is FALSE else f"'{new.predicate}' ({new.origin})"
    return ContradictoryFactsError(
        f"the fact {claim} contradicts {against}",
        where=new.origin.location or "",
        hint="remove one of them, or specialize the program into versions",
        details={"fact": str(new), "others": [str(old) for old in others]},
    )
