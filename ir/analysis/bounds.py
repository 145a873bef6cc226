"""In-bounds queries: whether each access of a function is inside of its buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from ..identity import Uid
from ..loop.nodes import Block, Buffer, Load, PrimFunc, Store
from ..symbolic import (
    FALSE,
    TRUE,
    Bool,
    Discharge,
    Expr,
    Facts,
    Var,
    all_of,
    any_of,
    as_expr,
    is_proved,
    is_simple,
    negate,
    substitute,
    to_text,
)
from ..symbolic.monotone import direction
from .facts_at import assuming
from .scopes import Binder, Scope, sites

Status: TypeAlias = Literal["proved", "checked", "unknown", "outside"]
"""``checked`` at run time; ``outside`` for all arguments for which it runs."""

Location: TypeAlias = Literal["entry", "access"]
"""Where an index is checked: once at entry of the function, or in the kernel before the access."""

_ZERO: Final = as_expr(0)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The status of an obligation, and the entry condition that implies it.

    The condition is ``exact`` if it also follows from the obligation: an iteration that runs needs
    it.
    """

    status: Status
    check: Bool = TRUE
    exact: bool = True


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
        The condition over the symbols of the parameters that is equivalent to the bounds, if the
        access is checked at entry.
    axis : int
        The dimension that determines the status.
    block : Block or None
        The innermost block around the access.
    location : str or None
        Where the access is checked, if the status is ``checked``.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    uid: Uid | None
    status: Status
    check: Bool = TRUE
    axis: int = 0
    block: Block | None = None
    location: Location | None = None

    @property
    def label(self) -> str:
        """The status as text, with the location of a check."""
        locations = {"entry": "checked at entry", "access": "checked in the kernel"}
        return self.status if self.location is None else locations[self.location]

    @property
    def text(self) -> str:
        """The access as text."""
        return f"{self.buffer.name}[{', '.join(map(to_text, self.indices)) or '()'}]"

    @property
    def range_text(self) -> str:
        """The index and the legal range of the dimension that determines the status."""
        index, size = to_text(self.indices[self.axis]), to_text(self.buffer.shape[self.axis])
        return f"index {index} of axis {self.axis} is not in [0, {size})"


CHECK_BOUNDS: Final = ("check_bounds", True)
"""The attribute of a function whose kernel checks the accesses that are not proved."""

_ORDER: Final[Mapping[Status, int]] = {"proved": 0, "checked": 1, "unknown": 2, "outside": 3}

_LOCATIONS: Final[Mapping[int, Location]] = {1: "entry", 2: "access"}

_LABELS: Final[tuple[str, ...]] = ("proved", "checked at entry", "checked in the kernel", "outside")


@lru_cache(maxsize=1024)
def bounded_accesses(func: PrimFunc) -> tuple[BoundedAccess, ...]:
    r"""Return the in-bounds status of each access of a function, in program order.

    An access is proved by the ranges of its variables, the conditions around it, and the facts of
    the function. Otherwise, if its indices are monotonic in every variable, and the iterations of
    the extreme indices run, their bounds are a condition over the symbols of the parameters, which
    is checked at entry. Every other access is checked in the kernel, each time that it runs.

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


@lru_cache(maxsize=256)
def displayed_accesses(func: PrimFunc) -> tuple[BoundedAccess, ...]:
    r"""Return the in-bounds status of each access as `bounded_accesses`, for display.

    The status of an access whose proof needs a fact that is checked at entry is ``checked``.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "n = symbols('n', lower=0)\n@prim_func\ndef f(x: Buffer[(n,), f32]" + (
    ...     ", y: Out[(8,), f32]):\n    for i in range(8): y[i] = x[i]"
    ... )
    >>> [(a.text, a.label) for a in displayed_accesses(parse(text).prim("f"))]
    [('y[vi]', 'proved'), ('x[vi]', 'checked at entry')]
    """
    found = bounded_accesses(func)
    kept = [f for f in func.facts if f.discharge is not Discharge.ENTRY_CHECK]
    if len(kept) == len(func.facts):
        return found
    without = bounded_accesses(replace(func, facts=Facts(kept, func.facts.hints)))
    pairs = zip(found, without, strict=True)
    return tuple(
        replace(a, status="checked", location="entry")
        if a.status == "proved" and b.status != "proved"
        else a
        for a, b in pairs
    )


def _accesses(func: PrimFunc) -> Iterator[BoundedAccess]:
    symbols = _symbols(func)
    for site in sites(func):
        if not isinstance(site.node, Load | Store):
            continue
        node = site.node
        sides = zip(node.indices, node.buffer.shape, strict=False)
        answers = [within(site.scope, index, size, symbols) for index, size in sides]
        axis = max(range(len(answers)), key=lambda k: _rank(answers[k]), default=0)
        worst = answers[axis] if answers else Answer("proved")
        rank = _rank(worst)
        yield BoundedAccess(
            node.buffer,
            node.indices,
            isinstance(node, Store),
            site.uid,
            "checked" if rank in _LOCATIONS else worst.status,
            all_of(*(a.check for a in answers)) if rank == 1 else TRUE,
            axis,
            site.block,
            _LOCATIONS.get(rank),
        )


def _rank(answer: Answer) -> int:
    """Return the order of an answer: proved, checked at entry, in the kernel, or outside."""
    return _ORDER[answer.status] if answer.exact else _ORDER["unknown"]


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
    worst = max(answers, key=_rank)
    if worst.status != "checked":
        return worst
    return Answer("checked", all_of(*(a.check for a in answers)), worst.exact)


def obligation(scope: Scope, slack: Expr, symbols: frozenset[Var]) -> Answer:
    """Return whether ``slack >= 0`` wherever the scope runs."""
    claim = slack >= 0
    if claim is TRUE and not slack.free:
        return Answer("proved")
    contained = scope.contained  # else the declared ranges of iteration variables do not hold
    if claim is TRUE and contained:
        return Answer("proved")
    far = substitute(slack, scope.values)
    binders = scope.near_binders() if contained else scope.all_binders()
    found = least(slack if contained else far, binders)
    if found is not None and is_simple(found >= 0, scope.base):
        return Answer("proved")
    if contained and is_simple(claim, scope.near):
        return Answer("proved")
    if is_proved(far >= 0, scope.far):
        return Answer("proved")
    attained = _attained(scope, slack, far, symbols)
    if attained is not None:
        return at_entry(scope, attained >= 0, symbols)
    if found is None or not found.free <= symbols:
        return Answer("unknown", exact=False)
    return replace(at_entry(scope, found >= 0, symbols), exact=False)


def _attained(scope: Scope, slack: Expr, far: Expr, symbols: frozenset[Var]) -> Expr | None:
    """Return the least value of a term if an iteration that runs attains it, else None.

    The iteration is a point of the loops, or of the domain of a block whose iterations all run.
    """
    if not scope.certain:
        return None
    runs = _premises(scope, symbols)
    point = _Point(far, scope.all_binders(), scope.all_conditions())
    if point.runs(scope, symbols, runs):
        return point.term
    if scope.values and scope.contained and scope.complete:
        point = _Point(slack, scope.near_binders(), scope.near_conditions())
        if point.runs(scope, symbols, runs):
            return point.term
    return None


class _Point:
    """An iteration in which a term has its least value, and the conditions for it to run."""

    def __init__(self, term: Expr, binders: Sequence[Binder], conditions: Iterable[Bool]) -> None:
        """Replace the variables by the limits of their ranges, innermost first."""
        self.known = True
        claims = [*conditions, *(b.first <= b.last for b in binders if b.repeats)]
        for binder in reversed(binders):
            sign = direction(term, binder.var) if binder.var in term.free else 1
            if sign is None or (binder.var in term.free and not binder.repeats):
                self.known = False
                break
            limit = {binder.var: binder.first if sign > 0 else binder.last}
            if binder.var not in term.free and _depends(claims, binder.var):
                limit = {binder.var: binder.last}
            if binder.repeats:
                term = substitute(term, limit)
                claims = [substitute(c, limit) for c in claims]
        self.term = term
        self.claims = claims

    def runs(self, scope: Scope, symbols: frozenset[Var], premises: tuple[Bool, ...]) -> bool:
        """Return whether the iteration runs if anything in a scope runs."""
        if not self.known or not self.term.free <= symbols:
            return False
        rest = [c for c in self.claims if c is not TRUE and c not in premises]
        known = assuming(scope.base, *premises) if rest else scope.base
        return all(is_simple(c, known) or is_proved(c, known) for c in rest)


def _depends(claims: Sequence[Bool], variable: Var) -> bool:
    return any(variable in c.free for c in claims)


def at_entry(scope: Scope, claim: Bool, symbols: frozenset[Var]) -> Answer:
    """Return the answer for a condition over the symbols that an iteration needs."""
    runs = _premises(scope, symbols)
    known = assuming(scope.base, *runs)
    # Conditions that exclude each other prove every claim: nothing runs. Products of variables are
    # no longer part of the claim.
    if FALSE in runs or is_proved(claim, known):
        return Answer("proved")
    if claim is FALSE or is_proved(negate(claim), known):
        return Answer("outside" if known.consistent else "proved")
    return Answer("checked", any_of(*(negate(p) for p in runs), claim))


def _premises(scope: Scope, symbols: frozenset[Var]) -> tuple[Bool, ...]:
    """Return conditions over the symbols of the parameters under which the scope runs at all."""
    near = scope.near_binders() if scope.contained else ()
    ranges = [b.first <= b.last for b in (*scope.all_binders(), *near) if b.repeats]
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
        sign = direction(term, binder.var)
        if sign is None:
            return None
        term = substitute(term, {binder.var: binder.first if sign > 0 else binder.last})
    return term


def with_kernel_checks(func: PrimFunc) -> PrimFunc:
    """Add the attribute `CHECK_BOUNDS` if an access needs a check in the kernel."""
    if CHECK_BOUNDS in func.attributes or all(
        a.location != "access" for a in bounded_accesses(func)
    ):
        return func
    return replace(func, attributes=(*func.attributes, CHECK_BOUNDS))


def kernel_checked(func: PrimFunc) -> frozenset[tuple[Buffer, tuple[Expr, ...]]]:
    """Return the buffers and indices of the accesses that lowering checks in the kernel.

    Only functions with the attribute `CHECK_BOUNDS` have such accesses.
    """
    if CHECK_BOUNDS not in func.attributes:
        return frozenset()
    return frozenset((a.buffer, a.indices) for a in bounded_accesses(func) if a.status != "proved")


def checks_stores(func: PrimFunc) -> bool:
    """Return whether lowering checks a store in the kernel."""
    if CHECK_BOUNDS not in func.attributes:
        return False
    return any(a.writes and a.status != "proved" for a in bounded_accesses(func))


def status_counts(accesses: Iterable[BoundedAccess]) -> dict[str, int]:
    """Return the number of accesses per status and location of the check.

    Examples
    --------
    >>> status_counts(())
    {}
    """
    counts: dict[str, int] = dict.fromkeys(_LABELS, 0)
    for access in accesses:
        counts[access.label] += 1
    return {label: count for label, count in counts.items() if count}


def status_text(accesses: Iterable[BoundedAccess]) -> str:
    """Return the number of accesses per status, and the accesses that are not proved.

    Examples
    --------
    >>> status_text(())
    ''
    """
    listed = tuple(accesses)
    counts = ", ".join(f"{count} {label}" for label, count in status_counts(listed).items())
    open_ = dict.fromkeys(f"{a.text} {a.label}" for a in listed if a.status != "proved")
    return f"{counts}: {'; '.join(open_)}" if open_ else counts and f"{counts} in bounds"
