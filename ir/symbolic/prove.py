"""Queries on terms under facts: proofs, bounds, congruences, simplification."""

from __future__ import annotations

from typing import overload

from .base import Bool, Expr, SymInt
from .build import as_expr
from .conditions import as_condition
from .facts import Facts
from .predicates import TRUE
from .proof import strategy
from .proof.answer import Proof, Proved
from .ranges import Bounds

_NOTHING = Facts()


def prove(claim: Bool, facts: Facts = _NOTHING, *, budget_ms: int = 50) -> Proof:
    """Prove or refute that a condition follows from facts. Hints are never used.

    The provers run from cheap to expensive: rewrite rules and bounds, sampling of
    counter-examples, isl, z3. The limit of work is a number of operations, not a time, so the
    answer does not depend on the machine.

    Parameters
    ----------
    claim : Bool
        The condition to prove.
    facts : Facts
        The facts that the proof may use.
    budget_ms : int
        The approximate time limit of z3 in milliseconds, converted to a number of operations.

    Returns
    -------
    Proved, Refuted or Unknown
        `Refuted` contains a checked counter-example; `Unknown` describes the missing fact.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n", lower=0)
    >>> prove((n // 8) * 8 <= n)
    Proved(by='simplification')
    >>> print(prove((n // 8) * 8 >= n))
    n = 1
    """
    return strategy.decide(as_condition(claim), facts.predicates, budget_ms)


def is_proved(claim: Bool, facts: Facts = _NOTHING) -> bool:
    """Return whether `prove` finds a proof.

    Examples
    --------
    >>> from tilewright.ir.symbolic import minimum, var
    >>> n = var("n")
    >>> is_proved(minimum(n, 64) <= n)
    True
    """
    return claim is TRUE or isinstance(prove(claim, facts), Proved)


def is_simple(claim: Bool, facts: Facts = _NOTHING) -> bool:
    """Return whether bounds and rewriting prove a condition, without the other provers.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n", lower=0)
    >>> is_simple(n // 2 <= n)
    True
    """
    return strategy.holds(as_condition(claim), facts.predicates)


@overload
def simplify(e: Expr | int, facts: Facts = ...) -> Expr: ...
@overload
def simplify(e: Bool, facts: Facts = ...) -> Bool: ...
@overload
def simplify(e: Expr | Bool | int, facts: Facts = ...) -> Expr | Bool: ...
def simplify(e: Expr | Bool | int, facts: Facts = _NOTHING) -> Expr | Bool:
    """Return an equal, simpler term under the given facts.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i, j = var("n", lower=1), var("i"), var("j")
    >>> facts = Facts().with_loop(j, n)
    >>> simplify((i * n + j) // n, facts), simplify((i * n + j) % n, facts)
    (i, j)
    """
    term = as_expr(e) if isinstance(e, int) else e
    known = strategy.relevant(term.free, facts.predicates)
    return strategy.simplifier_for(known).simplify(term) if known else term


def bounds(e: SymInt, facts: Facts | None = None) -> Bounds:
    """Return constant bounds of a term, both inclusive, from declarations and facts.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i = var("n", upper=64), var("i")
    >>> bounds(2 * i + 1, Facts().with_loop(i, n))
    Bounds(lower=1, upper=127)
    """
    refined = _refined(as_expr(e), facts)
    return Bounds(refined.lower, refined.upper)


def congruence(e: SymInt, facts: Facts | None = None) -> tuple[int, int]:
    """Return a modulus and a remainder with ``e % modulus == remainder``.

    Modulus 1 means no congruence; modulus 0 means that the value is the remainder.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> congruence(4 * var("n") + 3)
    (4, 3)
    """
    refined = _refined(as_expr(e), facts)
    return refined.modulus, refined.remainder


def _refined(e: Expr, facts: Facts | None) -> Expr:
    if facts is None or not facts.predicates:
        return e
    simplifier = strategy.simplifier_for(strategy.relevant(e.free, facts.predicates))
    found = simplifier.reduce(simplifier.knowledge.to_refined(e))
    assert isinstance(found, Expr)  # noqa: S101 - a term's kind never changes
    return found
