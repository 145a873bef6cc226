"""Iter maps: injectivity of indices in loop variables (TensorIR §3.3).

An index is decomposed into a mixed-radix number. Each digit is ``(source // lower) % extent``,
where the source is a variable or another such number. The indices are injective in a variable if
their digits determine its value: iterations that differ in this variable have different indices,
so they access different elements or are different instances. Integers loaded from memory are
variables, too; as two iterations may load the same integer, indices of such integers alone are not
injective in any loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..symbolic import (
    Add,
    Expr,
    Facts,
    FloorDiv,
    Mod,
    Mul,
    Var,
    as_expr,
    ceildiv,
    const_value,
    eq,
    free_vars,
    is_proved,
    product,
    simplify,
)
from .intervals import Interval

_ONE = as_expr(1)


@dataclass(frozen=True, slots=True)
class _Digit:
    """The digit ``(source // lower) % extent`` of a source."""

    source: Expr
    lower: Expr
    extent: Expr


class _Reader:
    """A decomposition of indices into digits, with the size and the digits of every source."""

    def __init__(self, loops: Mapping[Var, Interval], facts: Facts) -> None:
        self._loops = loops
        self._facts = facts
        self.size: dict[Expr, Expr] = {v: values.extent for v, values in loops.items()}
        self.parts: dict[Expr, list[_Digit]] = {}

    def number(self, index: Expr) -> list[_Digit] | None:
        """Return the digits of an index, lowest first; None if it has no mixed-radix form."""
        terms = self._terms(index)
        ordered = None if terms is None else self._ordered(terms)
        if ordered is None:
            whole = self._merged(index)
            return None if whole is None else [whole]
        return ordered

    def _merged(self, index: Expr) -> _Digit | None:
        """Return the digit of a quotient or remainder whose multiples of the divisor are separate.

        The quotient ``(256 * i + j) // 5`` has the form ``51 * i + (i + j) // 5``. Its remainder
        ``(i + j) % 5`` is a digit of the same number, which the quotient determines.
        """
        terms = index.terms if isinstance(index, Add) else ((index, 1),)
        found = [t for t, scale in terms if scale == 1 and isinstance(t, FloorDiv | Mod)]
        varying = [t for t in found if not free_vars(t).isdisjoint(self._loops)]
        divisor = const_value(varying[0].divisor) if len(varying) == 1 else None
        if divisor is None or divisor < 1:
            return None
        (term,) = varying
        if isinstance(term, FloorDiv):
            number = term.numerator + (index - term) * divisor
            inner = self._source(number, term.divisor)
            if inner is None or not self._is_whole(inner, term.divisor):
                return None
            extent = simplify(ceildiv(inner.extent, divisor), self._facts)
            return replace(inner, lower=inner.lower * divisor, extent=extent)
        if term != index:
            return None
        numbers = (s for s in self.parts if const_value((s - term.numerator) % divisor) == 0)
        number = next(numbers, None)
        if number is None:
            return None
        whole = _Digit(number, _ONE, self.size[number])
        return replace(whole, extent=term.divisor) if self._is_whole(whole, term.divisor) else None

    def _terms(self, index: Expr) -> list[tuple[Expr, _Digit]] | None:
        found: list[tuple[Expr, _Digit]] = []
        pairs = index.terms if isinstance(index, Add) else ((index, 1),)
        for term, scale in pairs:
            if free_vars(term).isdisjoint(self._loops):
                continue
            factor, varying = self._factored(term)
            digit = None if varying is None else self._digit(varying)
            if digit is None:
                return None
            if const_value(digit.extent) != 1:  # a digit of extent 1 is always 0
                found.append((factor * abs(scale), digit))
        return found

    def _factored(self, term: Expr) -> tuple[Expr, Expr | None]:
        if not isinstance(term, Mul):
            return _ONE, term
        varying = [f for f in term.factors if not free_vars(f).isdisjoint(self._loops)]
        fixed = [f for f in term.factors if free_vars(f).isdisjoint(self._loops)]
        return product(tuple(fixed)), varying[0] if len(varying) == 1 else None

    def _digit(self, term: Expr) -> _Digit | None:
        match term:
            case Var():
                return _Digit(term, _ONE, self._loops[term].extent)
            case FloorDiv(numerator=numerator, divisor=divisor):
                inner = self._source(numerator, divisor)
                if inner is None or not self._is_whole(inner, divisor):
                    return None
                extent = simplify(ceildiv(inner.extent, divisor), self._facts)
                return replace(inner, lower=inner.lower * divisor, extent=extent)
            case Mod(numerator=numerator, divisor=divisor):
                inner = self._source(numerator, divisor)
                if inner is None or not self._is_whole(inner, divisor):
                    return None
                return replace(inner, extent=divisor)
            case _:
                return None

    def _is_whole(self, digit: _Digit, divisor: Expr) -> bool:
        """Return whether quotient and remainder of a digit by a divisor are digits, too."""
        reach, size = digit.lower * digit.extent, self.size[digit.source]
        if reach is size or is_proved(reach >= size, self._facts):
            return True
        return is_proved(eq(digit.extent % divisor, 0), self._facts)

    def _source(self, term: Expr, divisor: Expr) -> _Digit | None:
        """Return the digit of a dividend; a dividend of several digits becomes a new source."""
        if not free_vars(divisor).isdisjoint(self._loops):
            return None
        if isinstance(term, Var):
            return self._digit(term) if self._loops[term].start == 0 else None
        if isinstance(term, FloorDiv | Mod):
            return self._digit(term)
        digits = self.number(term)
        if digits is None or not self._is_compact(term, digits):
            return None
        size = product(tuple(d.extent for d in digits))
        self.size[term], self.parts[term] = size, digits
        return _Digit(term, _ONE, size)

    def _is_compact(self, term: Expr, digits: list[_Digit]) -> bool:
        """Return whether a number takes all values from 0 on, so that it can be a source."""
        if isinstance(term, Add) and any(scale < 0 for _, scale in term.terms):
            return False
        terms = self._terms(term)
        scales = {} if terms is None else {digit: scale for scale, digit in terms}
        reach = _ONE
        for digit in digits:  # a merged digit is the whole number, not a term of it
            if scales.get(digit, _ONE) is not reach or not self._from_zero(digit):
                return False
            reach = simplify(reach * digit.extent, self._facts)
        return not isinstance(term, Add) or term.constant == 0

    def _from_zero(self, digit: _Digit) -> bool:
        source = digit.source
        return not isinstance(source, Var) or self._loops[source].start == 0

    def _ordered(self, terms: list[tuple[Expr, _Digit]]) -> list[_Digit] | None:
        """Return digits ordered by scale; each scale must be at least the range of those below."""
        left, ordered = list(terms), list[_Digit]()
        reach = _ONE
        while left:
            least = self._least(left, reach)
            if least is None:
                return None
            left.remove(least)
            scale, digit = least
            ordered.append(digit)
            reach = simplify(scale * digit.extent, self._facts)
        return ordered

    def _least(self, terms: list[tuple[Expr, _Digit]], reach: Expr) -> tuple[Expr, _Digit] | None:
        exact = next((t for t in terms if t[0] is reach), None)
        if exact is not None:
            return exact
        constant = [(c, t) for t in terms if (c := const_value(t[0])) is not None]
        candidates = [min(constant, key=lambda p: p[0])[1]] if constant else terms
        return next((t for t in candidates if is_proved(t[0] >= reach, self._facts)), None)

    def whole(self, digits: Iterable[_Digit]) -> frozenset[Expr]:
        """Return the sources whose values the digits determine."""
        known: set[Expr] = set()
        pending = list(dict.fromkeys(digits))
        while True:
            by_source: dict[Expr, list[_Digit]] = {}
            for digit in pending:
                by_source.setdefault(digit.source, []).append(digit)
            new = [s for s, ds in by_source.items() if s not in known and self._complete(s, ds)]
            if not new:
                return frozenset(known)
            known.update(new)
            pending += [d for s in new for d in self.parts.get(s, []) if d not in pending]

    def _complete(self, source: Expr, digits: list[_Digit]) -> bool:
        left, reach = list(digits), _ONE
        while True:
            following = next((d for d in left if d.lower is reach), None)
            if following is None:
                size = self.size[source]
                return reach is size or is_proved(reach >= size, self._facts)
            left.remove(following)
            reach = simplify(reach * following.extent, self._facts)


def injective_in(
    indices: Iterable[Expr], loops: Mapping[Var, Interval], facts: Facts
) -> frozenset[Var]:
    """Return the variables in which the indices are injective.

    Parameters
    ----------
    indices : iterable of Expr
        Terms over the variables.
    loops : Mapping[Var, Interval]
        The variables that vary: loop variables and integers loaded from memory, with the
        intervals of their values. All other variables are fixed.
    facts : Facts
        The facts in scope.

    Examples
    --------
    >>> from ..symbolic import var
    >>> f, k = var("f", lower=0, upper=63), var("k", lower=0, upper=3)
    >>> loops = {f: Interval.full(as_expr(64)), k: Interval.full(as_expr(4))}
    >>> [v.name for v in injective_in((f // 8, f % 8), loops, Facts())]
    ['f']
    >>> [v.name for v in injective_in((63 - f,), loops, Facts())]
    ['f']
    >>> injective_in((f + k,), loops, Facts())
    frozenset()
    """
    reader = _Reader(loops, facts)
    digits: list[_Digit] = []
    unknown: list[Expr] = []
    for index in indices:
        number = reader.number(index)
        digits += number or ()
        unknown += [index] if number is None else []
    for index in unknown if reader.parts else ():
        digits += reader.number(index) or ()
    found = reader.whole(digits)
    return frozenset(v for v, values in loops.items() if v in found or values.extent == 1)
