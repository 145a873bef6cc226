"""Conditions at entry that the accesses, divisions, and loaded integers of a function need."""

from __future__ import annotations

from collections.abc import Iterator, Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from ..identity import Uid
from ..loop.nodes import (
    Alloc,
    Block,
    Condition,
    Element,
    For,
    If,
    Index,
    Let,
    Load,
    PrimFunc,
    Stmt,
    Store,
)
from ..sizes import shape_bytes
from ..symbolic import (
    Bool,
    Discharge,
    Expr,
    Fact,
    Facts,
    FloorDiv,
    Mod,
    Origin,
    Select,
    Term,
    Var,
    as_expr,
    conjuncts,
    is_proved,
    ne,
    postorder,
    substitute,
    to_text,
)
from ..symbolic.predicates import And, Or
from .bounds import Answer, Status, at_entry, bounded_accesses, obligation
from .scopes import Scope, Site, sites

Kind: TypeAlias = Literal["access", "divisor", "clamped range", "declared range"]


@dataclass(frozen=True, slots=True, eq=False)
class Obligation:
    """A condition that a part of a function needs, with its status.

    Parameters
    ----------
    kind : str
        The kind of the part.
    text : str
        The condition and the part that needs it, as text.
    status : Status
        The status.
    check : Bool
        The condition at entry that implies it, if the status is ``checked``.
    uid : Uid or None
        The innermost block or loop around the part.
    """

    kind: Kind
    text: str
    status: Status
    check: Bool
    uid: Uid | None


_ZERO: Final = as_expr(0)

_REASONS: Final[dict[Kind, str]] = {
    "access": "bounds of",
    "divisor": "divisor of",
    "clamped range": "range of",
    "declared range": "declared range of",
}


@lru_cache(maxsize=1024)
def obligations(func: PrimFunc) -> tuple[Obligation, ...]:
    r"""Return the obligations of a function that are not proved, without repetitions.

    Accesses that are checked in the kernel are omitted.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "@prim_func\ndef f(a: Int, y: Out[(8,), i64]):\n" + (
    ...     "    for i in range(8): y[i] = index(i // a, i64)"
    ... )
    >>> [(o.text, str(o.check)) for o in obligations(parse(text, check=False).prim("f"))]
    [('a != 0 in i // a', 'a != 0')]
    >>> obligations(parse(text).prim("f"))  # the condition is a fact, which is checked at entry
    ()
    """
    symbols = frozenset(
        (*func.scalar_params, *(v for b in func.buffer_params for d in b.shape for v in d.free))
    )
    found = [
        Obligation("access", f"{a.text}: {a.range_text}", a.status, a.check, a.uid)
        for a in bounded_accesses(func)
        if a.location == "entry" or a.status == "outside"
    ]
    seen: set[tuple[Scope, Expr]] = set()
    for site in sites(func):
        found += _divisors(site, symbols, seen)
        found += _declared(site, symbols)
        if isinstance(site.node, Let) and site.node.mode == "clamped":
            found += _clamped(site, site.node, symbols)
    distinct = {(o.kind, o.text, o.status, o.check): o for o in reversed(found)}
    return tuple(reversed(distinct.values()))


def _clamped(site: Site, let: Let, symbols: frozenset[Var]) -> Iterator[Obligation]:
    answer = obligation(site.scope, let.upper - let.lower - 1, symbols)
    if answer.status != "proved":
        text = f"{to_text(let.lower)} < {to_text(let.upper)} for {let.var.name!r}"
        yield Obligation("clamped range", text, answer.status, answer.check, site.uid)


def _declared(site: Site, symbols: frozenset[Var]) -> Iterator[Obligation]:
    """Yield the declared ranges of variables that do not follow from their extents.

    Those of a block hold where its predicate does. The init of a reduction does not have the
    conditions on the reduction, so they do not limit its variables.
    """
    scope = site.scope
    match site.node:
        case For(var=var, extent=extent):
            bound = [(var, _ZERO, extent - 1, scope)]
        case Let(var=var, lower=lower, upper=upper):
            bound = [(var, lower, upper - 1, scope)]
        case Block(iters=iters, predicate=predicate, init=init):
            inner = Scope(scope, (), (predicate,))
            bound = [
                (v.var, _ZERO, v.extent - 1, inner if init is None or v.kind == "reduce" else scope)
                for v in iters
            ]
        case _:
            return
    for variable, first, last, where in bound:
        slacks = [] if variable.lower is None else [first - variable.lower]
        slacks += [] if variable.upper is None else [variable.upper - last]
        slacks += [_ZERO - 1] if variable.multiple_of > 1 and last is not _ZERO else []
        for slack in slacks:
            answer = obligation(where, slack, symbols) if slack.free else _constant(slack)
            if answer.status != "proved":
                text = f"{variable.name!r}: [{to_text(first)}, {to_text(last)}] is not in "
                text += _declaration(variable)
                yield Obligation("declared range", text, answer.status, answer.check, site.uid)


def _declaration(variable: Var) -> str:
    low = "(-inf" if variable.lower is None else f"[{variable.lower}"
    high = "inf)" if variable.upper is None else f"{variable.upper}]"
    step = variable.multiple_of
    return f"{low}, {high}" + (f" in multiples of {step}" if step > 1 else "")


def _constant(slack: Expr) -> Answer:
    return Answer("proved" if slack.lower is not None and slack.lower >= 0 else "outside")


def _divisors(
    site: Site, symbols: frozenset[Var], seen: set[tuple[Scope, Expr]]
) -> Iterator[Obligation]:
    for term in terms_of(site.node):
        for part in postorder(term, _chooses):
            if not isinstance(part, FloorDiv | Mod):
                continue
            divisor = part.divisor
            if _nonzero(divisor) or (site.scope, divisor) in seen:
                continue
            seen.add((site.scope, divisor))
            answer = _divides(site.scope, divisor, symbols)
            if answer.status != "proved":
                text = f"{to_text(divisor)} != 0 in {to_text(part)}"
                yield Obligation("divisor", text, answer.status, answer.check, site.uid)


def _chooses(term: Term) -> bool:
    """Return whether a term evaluates only some of its parts."""
    return isinstance(term, Select | And | Or)


def _nonzero(term: Expr) -> bool:
    return (term.lower is not None and term.lower > 0) or (
        term.upper is not None and term.upper < 0
    )


def _divides(scope: Scope, divisor: Expr, symbols: frozenset[Var]) -> Answer:
    claim = ne(divisor, 0)
    if scope.contained and is_proved(claim, scope.near):
        return Answer("proved")
    if is_proved(substitute(claim, scope.values), scope.far):
        return Answer("proved")
    if divisor.free <= symbols:
        return at_entry(scope, claim, symbols)
    positive = obligation(scope, divisor - 1, symbols)
    return Answer("unknown") if positive.status == "outside" else positive


def terms_of(node: Stmt | Element) -> tuple[Expr | Bool, ...]:
    """Return the integer terms and conditions that a statement or element evaluates."""
    match node:
        case Store(indices=indices) | Load(indices=indices):
            return indices
        case For(extent=extent):
            return (extent,)
        case If(condition=condition):
            return (condition,)
        case Let():
            return (node.lower, node.upper)
        case Alloc(buffer=buffer):
            return (*buffer.shape, shape_bytes(buffer.shape, buffer.dtype))
        case Block(iters=iters, predicate=predicate):
            return (*(t for v in iters for t in (v.binding, v.extent)), predicate)
        case Index(value=value) | Condition(value=value):
            return (value,)
        case _:
            return ()


def _adds(check: Bool, known: AbstractSet[Bool], facts: Facts) -> bool:
    """Return whether a check is neither a fact nor a weaker form of another check."""
    weaker = isinstance(check, Or) and any(part in known for part in check.args)
    return check not in facts.predicates and not weaker


def with_entry_checks(func: PrimFunc) -> PrimFunc:
    r"""Add the conditions that a function needs at entry to its facts.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "@prim_func\ndef f(a: Int, x: Buffer[(8,), f32], y: Out[(1,), f32]):\n" + (
    ...     "    for i in range(1): y[i] = x[a]"
    ... )
    >>> [str(f.predicate) for f in with_entry_checks(parse(text).prim("f")).facts]
    ['a < 8', 'a >= 0']
    """
    added = [
        Fact(part, Origin(f"{_REASONS[o.kind]} {o.text}"), Discharge.ENTRY_CHECK)
        for o in obligations(func)
        if o.status == "checked"
        for part in conjuncts(o.check)
    ]
    first = {fact.predicate: fact for fact in reversed(added)}
    known = func.facts.predicates | first.keys()
    new = [fact for fact in reversed(first.values()) if _adds(fact.predicate, known, func.facts)]
    if not new:
        return func
    return replace(func, facts=Facts((*func.facts, *new), func.facts.hints))
