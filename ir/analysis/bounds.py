"""In-bounds queries: whether each access of a function is inside of its buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from ..identity import Uid
from ..loop.nodes import Block, Buffer, Load, PrimFunc, Store
from ..symbolic import (
    FALSE,
    TRUE,
    Bool,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mul,
    Var,
    all_of,
    any_of,
    as_expr,
    is_proved,
    is_simple,
    linear_form,
    negate,
    substitute,
    to_text,
)
from ..symbolic.terms import factors_of, linear_terms
from .facts_at import assuming
from .scopes import Binder, Scope, sites

Status: TypeAlias = Literal["proved", "checked", "unknown", "outside"]
"""``checked`` by a condition at entry; ``outside`` for all arguments for which it runs."""

_ZERO: Final = as_expr(0)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The status of an obligation, and the entry condition that implies it."""

    status: Status
    check: Bool = TRUE


@dataclass(frozen=True, slots=True, eq=False)
class BoundedAccess:
    """The in-bounds status of one access.

    Parameters
    ----------
    buffer : Buffer
        The accessed buffer.
    indices : tuple of Expr
        The indices.
    writes : bool
        Whether the access is a store.
    uid : Uid or None
        The innermost block or loop around the access.
    status : Status
        The status of the access: the worst of its dimensions.
    check : Bool
        The condition over the symbols of the parameters that implies the bounds, if the status is
        ``checked``.
    axis : int
        The dimension that determines the status.
    block : Block or None
        The innermost block around the access.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    uid: Uid | None
    status: Status
    check: Bool = TRUE
    axis: int = 0
    block: Block | None = None

    @property
    def text(self) -> str:
        """The access as text."""
        return f"{self.buffer.name}[{', '.join(map(to_text, self.indices)) or '()'}]"

    @property
    def range_text(self) -> str:
        """The index and the legal range of the dimension that determines the status."""
        index, size = to_text(self.indices[self.axis]), to_text(self.buffer.shape[self.axis])
        return f"index {index} of axis {self.axis} is not in [0, {size})"


_ORDER: Final[Mapping[Status, int]] = {"proved": 0, "checked": 1, "unknown": 2, "outside": 3}


@lru_cache(maxsize=1024)
def bounded_accesses(func: PrimFunc) -> tuple[BoundedAccess, ...]:
    r"""Return the in-bounds status of each access of a function, in program order.

    An access is proved by the ranges of its variables, the conditions around it, and the facts of
    the function. Otherwise, if its indices are monotonic in every variable, the bounds of the
    extreme iterations are a condition over the symbols of the parameters, which can be checked at
    entry.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "n = symbols('n', lower=0)\n@prim_func\ndef f(x: Buffer[(n,), f32]" + (
    ...     ", y: Out[(8,), f32]):\n    for i in range(8): y[i] = x[i]"
    ... )
    >>> [(a.text, a.status) for a in bounded_accesses(parse(text, check=False).prim("f"))]
    [('y[i]', 'proved'), ('x[i]', 'checked')]
    >>> func = parse(text).prim("f")  # `n >= 8` is a fact, which is checked at entry
    >>> [(a.text, a.status) for a in bounded_accesses(func)]
    [('y[vi]', 'proved'), ('x[vi]', 'proved')]
    """
    return tuple(_accesses(func))


def _accesses(func: PrimFunc) -> Iterator[BoundedAccess]:
    symbols = _symbols(func)
    for site in sites(func):
        if not isinstance(site.node, Load | Store):
            continue
        node = site.node
        worst, axis, checks = Answer("proved"), 0, list[Bool]()
        for k, (index, size) in enumerate(zip(node.indices, node.buffer.shape, strict=False)):
            answer = within(site.scope, index, size, symbols)
            if answer.status == "checked":
                checks.append(answer.check)
            if _ORDER[answer.status] > _ORDER[worst.status]:
                worst, axis = answer, k
        yield BoundedAccess(
            node.buffer,
            node.indices,
            isinstance(node, Store),
            site.uid,
            worst.status,
            all_of(*checks) if worst.status == "checked" else TRUE,
            axis,
            site.block,
        )


def _symbols(func: PrimFunc) -> frozenset[Var]:
    """Return the symbols whose values are known at entry."""
    dims = (d for b in func.buffer_params for d in b.shape)
    return frozenset((*func.scalar_params, *(v for d in dims for v in d.free)))


def within(scope: Scope, index: Expr, size: Expr, symbols: frozenset[Var]) -> Answer:
    """Return whether ``0 <= index < size`` wherever the scope runs."""
    first = obligation(scope, index, symbols)
    last = obligation(scope, size - 1 - index, symbols)
    return joined((first, last))


def joined(answers: Sequence[Answer]) -> Answer:
    """Return the answer to a conjunction of obligations."""
    worst = max(answers, key=lambda a: _ORDER[a.status])
    if worst.status != "checked":
        return worst
    return Answer("checked", all_of(*(a.check for a in answers)))


def obligation(scope: Scope, slack: Expr, symbols: frozenset[Var]) -> Answer:
    """Return whether ``slack >= 0`` wherever the scope runs."""
    claim = slack >= 0
    if claim is TRUE and not slack.free:
        return Answer("proved")
    contained = scope.contained  # else the declared ranges of iteration variables do not hold
    if claim is TRUE and contained:
        return Answer("proved")
    far = slack if contained else substitute(slack, scope.values)
    found = least(far, scope.near_binders() if contained else scope.all_binders())
    if found is not None and is_simple(found >= 0, scope.base):
        return Answer("proved")
    if contained and is_simple(claim, scope.near):
        return Answer("proved")
    if is_proved(substitute(slack, scope.values) >= 0, scope.far):
        return Answer("proved")
    if found is None or not found.free <= symbols:
        return Answer("unknown")
    return at_entry(scope, found >= 0, symbols)


def at_entry(scope: Scope, claim: Bool, symbols: frozenset[Var]) -> Answer:
    """Return the answer for a condition over the symbols of the parameters."""
    runs = _premises(scope, symbols)
    if claim is FALSE or is_proved(negate(claim), assuming(scope.base, *runs)):
        return Answer("outside")
    return Answer("checked", any_of(*(negate(p) for p in runs), claim))


def _premises(scope: Scope, symbols: frozenset[Var]) -> tuple[Bool, ...]:
    """Return conditions over the symbols of the parameters under which the scope runs at all."""
    ranges = [b.first <= b.last for b in scope.all_binders() if b.repeats]
    found = [p for p in (*ranges, *scope.all_conditions()) if p is not TRUE]
    return tuple(dict.fromkeys(p for p in found if p.free <= symbols))


def least(term: Expr, binders: Sequence[Binder]) -> Expr | None:
    """Return the smallest value of a term over the values of variables; None if unknown.

    The result is attained at an iteration if the ranges of all variables are not empty.

    Examples
    --------
    >>> from ..symbolic import as_expr, var
    >>> i, a = var("i"), var("a")
    >>> least(a - i, (Binder(i, as_expr(0), as_expr(7)),))
    a - 7
    """
    for binder in reversed(binders):
        if binder.var not in term.free:
            continue
        sign = _direction(term, binder.var)
        if sign is None:
            return None
        term = substitute(term, {binder.var: binder.first if sign > 0 else binder.last})
    return term


def _direction(term: Expr, variable: Var) -> int | None:
    """Return 1 if a term does not decrease with a variable, -1 if it does not increase."""
    if term is variable:
        return 1
    form = linear_form(term, (variable,))
    if form is not None:
        return _sign(form.coefficients.get(variable, _ZERO))
    match term:
        case Min(args=args) | Max(args=args):
            return _common(args, variable)
        case FloorDiv(numerator=numerator, divisor=divisor):
            sign = _sign(divisor) if variable not in divisor.free else None
            inner = _direction(numerator, variable)
            return None if sign is None or inner is None else sign * inner
        case Mul():
            return _of_product(factors_of(term), variable)
        case _:
            parts = linear_terms(term)[0]
            if len(parts) == 1 and parts[0][0] is term:
                return None
            signed = [(_direction(t, variable), c) for t, c in parts if variable in t.free]
            found = {None if d is None else (d if c > 0 else -d) for d, c in signed}
            return found.pop() if len(found) == 1 else None


def _of_product(factors: Sequence[Expr], variable: Var) -> int | None:
    inside = [f for f in factors if variable in f.free]
    signs = [_sign(f) for f in factors if variable not in f.free]
    inner = _direction(inside[0], variable) if len(inside) == 1 else None
    if inner is None or None in signs:
        return None
    for sign in signs:
        inner *= 1 if sign is None else sign
    return inner


def _common(args: Iterable[Expr], variable: Var) -> int | None:
    found = {_direction(a, variable) for a in args if variable in a.free}
    return found.pop() if len(found) == 1 else None


def _sign(term: Expr) -> int | None:
    if term.lower is not None and term.lower >= 0:
        return 1
    return -1 if term.upper is not None and term.upper <= 0 else None


def status_counts(accesses: Iterable[BoundedAccess]) -> dict[Status, int]:
    """Return the number of accesses per status."""
    counts: dict[Status, int] = {"proved": 0, "checked": 0, "unknown": 0, "outside": 0}
    for access in accesses:
        counts[access.status] += 1
    return {status: count for status, count in counts.items() if count}


def status_text(accesses: Iterable[BoundedAccess]) -> str:
    """Return the number of accesses per status, and the accesses that are not proved.

    Examples
    --------
    >>> status_text(())
    ''
    """
    listed = tuple(accesses)
    counts = ", ".join(f"{count} {status}" for status, count in status_counts(listed).items())
    open_ = dict.fromkeys(f"{a.text} {a.status}" for a in listed if a.status != "proved")
    return f"{counts}: {'; '.join(open_)}" if open_ else counts and f"{counts} in bounds"
