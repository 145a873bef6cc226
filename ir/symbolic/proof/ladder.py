"""The order in which provers are asked, and the memory of their answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..base import Bool
from ..knowledge import FactKnowledge
from ..predicates import FALSE, TRUE
from ..simplify import Simplifier
from ..terms import Var
from . import polyhedra, sampling, smt
from .answer import Proof, Proved, Refuted, Unknown
from .question import Question

_WORLDS = 1024
_ANSWERS = 8192

_simplifiers: dict[frozenset[Bool], Simplifier] = {}
_answers: dict[tuple[Bool, frozenset[Bool], int], Proof] = {}


def simplifier_for(facts: frozenset[Bool]) -> Simplifier:
    """The simplifier under a set of conditions, compiled once."""
    found = _simplifiers.get(facts)
    if found is None:
        if len(_simplifiers) >= _WORLDS:
            _simplifiers.clear()
        found = _simplifiers.setdefault(facts, Simplifier(FactKnowledge(facts)))
    return found


@lru_cache(maxsize=4096)
def relevant(symbols: frozenset[Var], facts: frozenset[Bool]) -> frozenset[Bool]:
    """The facts that mention a symbol, directly or through other facts; and what never holds."""
    reached, chosen = set(symbols), {FALSE} & facts
    pending = set(facts)
    while True:
        new = {p for p in pending if not reached.isdisjoint(p.free)}
        if not new:
            return facts if not pending else frozenset(chosen)
        chosen |= new
        pending -= new
        reached.update(*[p.free for p in new])


def decide(claim: Bool, facts: frozenset[Bool], budget_ms: int) -> Proof:
    """Ask the provers in turn; the same question gets the same answer."""
    if claim is TRUE:
        return Proved("simplification")
    facts = relevant(claim.free, facts)
    key = (claim, facts, budget_ms)
    found = _answers.get(key)
    if found is None:
        if len(_answers) >= _ANSWERS:
            _answers.clear()
        found = _answers.setdefault(key, _climb(claim, facts, budget_ms))
    return found


def holds(claim: Bool, facts: frozenset[Bool]) -> bool:
    """Whether bounds and rewriting alone prove a claim; never asks isl or z3."""
    if claim is TRUE:
        return True
    simplifier = simplifier_for(relevant(claim.free, facts))
    return simplifier.reduce(simplifier.know.enter(claim)) is TRUE


def contradictory(facts: frozenset[Bool]) -> bool:
    """Whether conditions certainly exclude each other."""
    simplifier = simplifier_for(facts)
    if simplifier.know.world.contradictory:
        return True
    question = _question(FALSE, facts)
    if any(simplifier.reduce(p) is FALSE for p in question.remaining):
        return True
    if sampling.refute(question) is not None:
        return False
    return isinstance(polyhedra.decide(question), Proved)


def _question(claim: Bool, facts: frozenset[Bool]) -> Question:
    simplifier = simplifier_for(facts)
    reduced = simplifier.reduce(simplifier.know.enter(claim))
    remaining = tuple(simplifier.know.world.remaining)
    assert isinstance(reduced, Bool)  # noqa: S101 - a claim stays a claim
    return Question(claim, facts, simplifier, reduced, remaining)


def _climb(claim: Bool, facts: frozenset[Bool], budget_ms: int) -> Proof:
    question = _question(claim, facts)
    if question.reduced is TRUE:
        return Proved("bounds and rewriting")
    if question.simplifier.know.world.contradictory:
        return Proved("contradictory facts")
    sample = sampling.refute(question)
    if sample is not None:
        return Refuted(sample)
    rungs: tuple[Callable[[], Proof | None], ...] = (
        lambda: polyhedra.decide(question),
        lambda: smt.decide(question, budget_ms),
    )
    for rung in rungs:
        answer = rung()
        if answer is not None:
            return answer
    return Unknown(_missing(question))


def _missing(question: Question) -> str:
    """Say what could not be shown, in the program's symbols, and what could be stated."""
    open_claim = question.simplifier.leave(question.reduced)
    symbols = sorted(question.claim.free, key=lambda v: v.serial)
    names = ", ".join(v.name for v in symbols)
    return f"'{open_claim}' is neither proved nor refuted; a fact about {names} may decide it"
