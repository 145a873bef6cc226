"""The proof strategy: order of the provers, and caches of simplifiers and proofs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..base import Bool, Var
from ..knowledge import FactKnowledge
from ..predicates import FALSE, TRUE
from ..simplify import Simplifier
from . import polyhedra, sampling, smt
from .answer import Proof, Proved, Refuted, Unknown
from .goal import Goal

_SIMPLIFIER_LIMIT = 1024
_PROOF_LIMIT = 8192

_simplifiers: dict[frozenset[Bool], Simplifier] = {}
_proofs: dict[tuple[Bool, frozenset[Bool], int], Proof] = {}


def simplifier_for(facts: frozenset[Bool]) -> Simplifier:
    """Return the cached simplifier of a set of conditions."""
    found = _simplifiers.get(facts)
    if found is None:
        if len(_simplifiers) >= _SIMPLIFIER_LIMIT:
            _simplifiers.clear()
        found = _simplifiers.setdefault(facts, Simplifier(FactKnowledge(facts)))
    return found


@lru_cache(maxsize=4096)
def relevant(symbols: frozenset[Var], facts: frozenset[Bool]) -> frozenset[Bool]:
    """Return the facts that contain a symbol, directly or through other facts, and FALSE."""
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
    """Run the provers in order; results are cached and deterministic."""
    if claim is TRUE:
        return Proved("simplification")
    facts = relevant(claim.free, facts)
    key = (claim, facts, budget_ms)
    found = _proofs.get(key)
    if found is None:
        if len(_proofs) >= _PROOF_LIMIT:
            _proofs.clear()
        found = _proofs.setdefault(key, _run_provers(claim, facts, budget_ms))
    return found


def holds(claim: Bool, facts: frozenset[Bool]) -> bool:
    """Return whether bounds and rewriting prove a claim, without isl and z3."""
    if claim is TRUE:
        return True
    simplifier = simplifier_for(relevant(claim.free, facts))
    return simplifier.reduce(simplifier.knowledge.to_refined(claim)) is TRUE


def contradictory(facts: frozenset[Bool]) -> bool:
    """Return whether conditions are proved to be contradictory."""
    simplifier = simplifier_for(facts)
    if simplifier.knowledge.refinement.contradictory:
        return True
    goal = _make_goal(FALSE, facts)
    if any(simplifier.reduce(p) is FALSE for p in goal.remaining):
        return True
    if sampling.refute(goal) is not None:
        return False
    return isinstance(polyhedra.decide(goal), Proved)


def _make_goal(claim: Bool, facts: frozenset[Bool]) -> Goal:
    simplifier = simplifier_for(facts)
    reduced = simplifier.reduce(simplifier.knowledge.to_refined(claim))
    remaining = tuple(simplifier.knowledge.refinement.remaining)
    assert isinstance(reduced, Bool)  # noqa: S101 - simplification preserves the kind
    return Goal(claim, facts, simplifier, reduced, remaining)


def _run_provers(claim: Bool, facts: frozenset[Bool], budget_ms: int) -> Proof:
    if simplifier_for(facts).knowledge.refinement.contradictory:
        return Proved("contradictory facts")
    goal = _make_goal(claim, facts)
    if goal.reduced is TRUE:
        return Proved("bounds and rewriting")
    sample = sampling.refute(goal)
    if sample is not None:
        return Refuted(sample)
    provers: tuple[Callable[[], Proof | None], ...] = (
        lambda: polyhedra.decide(goal),
        lambda: smt.decide(goal, budget_ms),
    )
    for prover in provers:
        answer = prover()
        if answer is not None:
            return answer
    return Unknown(_missing(goal))


def _missing(goal: Goal) -> str:
    """Describe the undecided claim in original symbols, and the symbols of a helpful fact."""
    open_claim = goal.simplifier.to_original(goal.reduced)
    symbols = sorted(goal.claim.free, key=lambda v: v.serial)
    names = ", ".join(v.name for v in symbols)
    return f"'{open_claim}' is neither proved nor refuted; a fact about {names} may decide it"
