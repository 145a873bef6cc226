"""What compiler and user ask: is it proved, what are the bounds, what is simpler."""

from __future__ import annotations

from typing import overload

from .base import Bool, Expr, SymInt
from .build import as_expr
from .conditions import as_condition
from .facts import Facts
from .proof import ladder
from .proof.answer import Proof, Proved
from .ranges import Interval

_NOTHING = Facts()


def prove(claim: Bool, facts: Facts = _NOTHING, *, budget_ms: int = 50) -> Proof:
    """Decide whether a condition follows from discharged facts. Hints are never used.

    Own rules first, then small counter-examples, isl, and z3 with an amount of work in proportion
    to the budget. The work is counted, not timed, so the answer never depends on the machine.

    Parameters
    ----------
    claim : Bool
        The condition.
    facts : Facts
        What may be relied on.
    budget_ms : int
        About how long a person would wait, in milliseconds.

    Returns
    -------
    Proved, Refuted or Unknown
        A refutation carries values that were checked; Unknown says what was missing.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n", lower=0)
    >>> prove((n // 8) * 8 <= n)
    Proved(by='simplification')
    >>> print(prove((n // 8) * 8 >= n))
    n = 1
    """
    return ladder.decide(as_condition(claim), facts.predicates, budget_ms)


def is_proved(claim: Bool, facts: Facts = _NOTHING) -> bool:
    """Whether `prove` finds a proof.

    Examples
    --------
    >>> from tilewright.ir.symbolic import minimum, var
    >>> n = var("n")
    >>> is_proved(minimum(n, 64) <= n)
    True
    """
    return isinstance(prove(claim, facts), Proved)


@overload
def simplify(e: Expr | int, facts: Facts = ...) -> Expr: ...
@overload
def simplify(e: Bool, facts: Facts = ...) -> Bool: ...
@overload
def simplify(e: Expr | Bool | int, facts: Facts = ...) -> Expr | Bool: ...
def simplify(e: Expr | Bool | int, facts: Facts = _NOTHING) -> Expr | Bool:
    """Simplify a term where facts hold.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i, j = var("n", lower=1), var("i"), var("j")
    >>> facts = Facts().with_loop(j, n)
    >>> simplify((i * n + j) // n, facts), simplify((i * n + j) % n, facts)
    (i, j)
    """
    term = as_expr(e) if isinstance(e, int) else e
    known = ladder.relevant(term.free, facts.predicates)
    return ladder.simplifier_for(known).simplify(term) if known else term


def bounds(e: SymInt, facts: Facts | None = None) -> Interval:
    """Constant bounds, both included, as declarations and facts give them.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i = var("n", upper=64), var("i")
    >>> bounds(2 * i + 1, Facts().with_loop(i, n))
    Interval(lower=1, upper=127)
    """
    refined = _refined(as_expr(e), facts)
    return Interval(refined.lower, refined.upper)


def congruence(e: SymInt, facts: Facts | None = None) -> tuple[int, int]:
    """Modulus and remainder: ``e % modulus == remainder``.

    Modulus 1 says nothing; modulus 0 says that the value is the remainder.

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
    simplifier = ladder.simplifier_for(ladder.relevant(e.free, facts.predicates))
    found = simplifier.reduce(simplifier.know.enter(e))
    assert isinstance(found, Expr)  # noqa: S101 - a term's kind never changes
    return found
