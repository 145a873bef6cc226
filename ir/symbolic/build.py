"""Constructors of integer terms: they normalize, apply the rewrite rules, and intern.

Results of operators are cached in bounded tables, so that building the same index twice costs one
dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from operator import attrgetter

from . import ranges
from .base import ALGEBRA, INTEGER, Expr, Order, SymInt, ValueRange, Var
from .errors import InvalidSymbolError, NotAnIntegerError
from .intern import InternTable
from .rule import PLAIN
from .rules.division import DIVISION
from .rules.modulo import MODULO
from .rules.sums import SUMS
from .terms import Add, Const, FloorDiv, Mod, Mul, factors_of, linear_terms

_CACHE_LIMIT = 1 << 15
_EXPANSION_LIMIT = 128

Cache = dict[object, Expr]

_by_order = attrgetter("order")
_sums: InternTable[Add] = InternTable()
_products: InternTable[Mul] = InternTable()
_quotients: InternTable[FloorDiv] = InternTable()
_remainders: InternTable[Mod] = InternTable()
_caches: list[Cache] = []


def new_cache() -> Cache:
    """Return a new cache of results that `clear_caches` clears."""
    cache: Cache = {}
    _caches.append(cache)
    return cache


def remember(cache: Cache, key: object, result: Expr) -> Expr:
    """Store a result in a cache and return it; a full cache is cleared first."""
    if len(cache) >= _CACHE_LIMIT:
        cache.clear()
    cache[key] = result
    return result


def clear_caches() -> None:
    """Clear all caches of results. Referenced terms stay interned."""
    for cache in _caches:
        cache.clear()


_add_cache = new_cache()
_subtract_cache = new_cache()
_multiply_cache = new_cache()
_floordiv_cache = new_cache()
_modulo_cache = new_cache()


def as_expr(x: SymInt) -> Expr:
    """Convert a Python integer to a term; return terms unchanged.

    Examples
    --------
    >>> as_expr(3)
    3
    """
    if isinstance(x, Expr):
        return x
    if isinstance(x, INTEGER):
        return Const(x)
    raise NotAnIntegerError(
        f"expected a symbolic integer, got {x!r} of type {type(x).__name__}",
        hint="pass an int or a symbolic expression",
    )


def const_value(e: SymInt) -> int | None:
    """Return the value of a constant term; None if the term has symbols.

    Examples
    --------
    >>> const_value(as_expr(2) * 4)
    8
    """
    if isinstance(e, Expr):
        return e.value if type(e) is Const else None
    return int(e)


def var(
    name: str, *, lower: int | None = None, upper: int | None = None, multiple_of: int = 1
) -> Var:
    """Create a symbol; two symbols of equal name are different.

    Parameters
    ----------
    name : str
        The name for printing.
    lower, upper : int, optional
        The bounds of its value, both inclusive.
    multiple_of : int
        A divisor of its value.

    Raises
    ------
    InvalidSymbolError
        If no integer satisfies the declaration.

    Examples
    --------
    >>> n = var("n", lower=1)
    >>> (n * 8 + 7) // 8
    n
    """
    if multiple_of < 1:
        raise InvalidSymbolError(
            f"expected a positive multiple_of for symbol {name!r}, got {multiple_of}",
            hint="use multiple_of=1 for a symbol without this constraint",
        )
    value_range = ranges.range_of_symbol(lower, upper, multiple_of)
    if (
        value_range[0] is not None
        and value_range[1] is not None
        and value_range[0] > value_range[1]
    ):
        raise InvalidSymbolError(
            f"symbol {name!r} has no valid value: no integer satisfies lower={lower}, "
            f"upper={upper}, multiple_of={multiple_of}",
            hint="lower and upper are inclusive; lower must not exceed upper",
        )
    return Var(name, value_range)


def value_range_of(e: Expr) -> ValueRange:
    """Return the value range that a term stores."""
    return e.lower, e.upper, e.modulus, e.remainder


def sum_of(terms: Mapping[Expr, int], constant: int) -> Expr:
    """Build ``sum(coefficient * term) + constant`` from distinct products; no zero coefficients."""
    if not terms:
        return Const(constant)
    if constant == 0 and len(terms) == 1:
        term, coefficient = next(iter(terms.items()))
        if coefficient == 1:
            return term
    key = (constant, frozenset(terms.items()))
    return _sums.get(key) or _new_sum(key, terms, constant)


def _new_sum(key: Hashable, terms: Mapping[Expr, int], constant: int) -> Expr:
    for term in terms:
        if term.has_sum_rules:
            for rule in SUMS:
                result = rule.apply(terms, constant)
                if result is not None:
                    return result
            break
    ordered = tuple(sorted(terms.items(), key=_first_order) if len(terms) > 1 else terms.items())
    parts = [((e.lower, e.upper, e.modulus, e.remainder), c) for e, c in ordered]
    value_range = ranges.range_of_sum(parts, constant)
    return _sums.add(key, Add(ordered, constant, value_range))


def weighted_sum(parts: Iterable[tuple[Expr, int]], constant: int) -> Expr:
    """Build ``sum(coefficient * part) + constant`` from arbitrary terms."""
    merged: dict[Expr, int] = {}
    for part, weight in parts:
        terms, inner = linear_terms(part)
        constant += weight * inner
        for term, c in terms:
            merged[term] = merged.get(term, 0) + weight * c
    return sum_of({term: c for term, c in merged.items() if c}, constant)


def _first_order(item: tuple[Expr, int]) -> Order:
    return item[0].order


def _merge(a: SymInt, b: SymInt, sign: int) -> Expr:
    """Return ``a + sign * b``."""
    terms_a, constant_a = linear_terms(a) if isinstance(a, Expr) else ((), a)
    terms_b, constant_b = linear_terms(b) if isinstance(b, Expr) else ((), b)
    merged = dict(terms_a)
    for term, coefficient in terms_b:
        total = merged.get(term, 0) + sign * coefficient
        if total:
            merged[term] = total
        else:
            del merged[term]
    return sum_of(merged, constant_a + sign * constant_b)


def add(a: SymInt, b: SymInt) -> Expr:
    """Return ``a + b``."""
    if type(a) is Const and type(b) is Const:
        return Const(a.value + b.value)
    key = (a, b)
    found = _add_cache.get(key)
    return found if found is not None else remember(_add_cache, key, _merge(a, b, 1))


def subtract(a: SymInt, b: SymInt) -> Expr:
    """Return ``a - b``."""
    if type(a) is Const and type(b) is Const:
        return Const(a.value - b.value)
    key = (a, b)
    found = _subtract_cache.get(key)
    return found if found is not None else remember(_subtract_cache, key, _merge(a, b, -1))


def multiply(a: SymInt, b: SymInt) -> Expr:
    """Return ``a * b``, expanded unless that creates too many terms."""
    if type(a) is Const and type(b) is Const:
        return Const(a.value * b.value)
    key = (a, b)
    found = _multiply_cache.get(key)
    if found is not None:
        return found
    return remember(_multiply_cache, key, _multiply(a, b))


def _multiply(a: SymInt, b: SymInt) -> Expr:
    factor_a, factor_b = const_value(a), const_value(b)
    if factor_a is not None:
        return _scale(as_expr(b), factor_a)
    if factor_b is not None:
        return _scale(as_expr(a), factor_b)
    return _expand(as_expr(a), as_expr(b))


def _expand(a: Expr, b: Expr) -> Expr:
    if type(a) is not Add and type(b) is not Add:
        return _product((*factors_of(a), *factors_of(b)))
    parts_a, parts_b = _parts(a), _parts(b)
    if len(parts_a) * len(parts_b) > _EXPANSION_LIMIT:
        return _product((*factors_of(a), *factors_of(b)))
    terms: dict[Expr, int] = {}
    for factors_a, c_a in parts_a:
        for factors_b, c_b in parts_b:
            term = _product((*factors_a, *factors_b))
            terms[term] = terms.get(term, 0) + c_a * c_b
    constant = terms.pop(Const(1), 0)
    return sum_of({term: c for term, c in terms.items() if c}, constant)


def _parts(e: Expr) -> list[tuple[tuple[Expr, ...], int]]:
    """Return the summands of a term as (factors, coefficient); a constant has no factors."""
    terms, constant = linear_terms(e)
    parts = [(factors_of(term), c) for term, c in terms]
    if constant:
        parts.append(((), constant))
    return parts


def _scale(e: Expr, factor: int) -> Expr:
    if factor == 1:
        return e
    if factor == 0:
        return Const(0)
    terms, constant = linear_terms(e)
    return sum_of({term: factor * c for term, c in terms}, factor * constant)


def _product(factors: Iterable[Expr]) -> Expr:
    ordered = tuple(sorted(factors, key=_by_order))
    if len(ordered) < 2:
        return ordered[0] if ordered else Const(1)
    powers: dict[Expr, int] = {}
    for factor in ordered:
        powers[factor] = powers.get(factor, 0) + 1
    key = frozenset(powers.items())
    return _products.get(key) or _products.add(key, Mul(ordered, _range_of_powers(powers)))


def _range_of_powers(powers: Mapping[Expr, int]) -> ValueRange:
    value_range: ValueRange = (1, 1, 0, 1)
    for factor, power in powers.items():
        base = value_range_of(factor)
        for _ in range(power // 2):
            value_range = ranges.range_of_square(base, value_range)
        if power % 2:
            value_range = ranges.range_of_product(base, value_range)
    return value_range


def floordiv(a: SymInt, d: SymInt) -> Expr:
    """Return ``a // d``, rounded toward minus infinity."""
    key = (a, d)
    found = _floordiv_cache.get(key)
    return (
        found
        if found is not None
        else remember(_floordiv_cache, key, _floordiv(as_expr(a), as_expr(d)))
    )


def _floordiv(a: Expr, d: Expr) -> Expr:
    if isinstance(d, Const):
        if d.value == 0:
            return _quotient(a, d)
        if isinstance(a, Const):
            return Const(a.value // d.value)
    found = _quotients.get((a, d))
    if found is not None:
        return found
    for rule in DIVISION:
        result = rule.apply(a, d, PLAIN)
        if result is not None:
            return result
    return _quotient(a, d)


def _quotient(a: Expr, d: Expr) -> Expr:
    value_range = ranges.range_of_floordiv(value_range_of(a), value_range_of(d))
    return decided(value_range, d) or _quotients.add((a, d), FloorDiv(a, d, value_range))


def decided(value_range: ValueRange, d: Expr | None = None) -> Const | None:
    """Return the constant if the range contains one value; None for a division by zero."""
    never = isinstance(d, Const) and d.value == 0
    return Const(value_range[3]) if value_range[2] == 0 and not never else None


def modulo(a: SymInt, d: SymInt) -> Expr:
    """Return ``a % d``, with the sign of the divisor."""
    key = (a, d)
    found = _modulo_cache.get(key)
    return (
        found
        if found is not None
        else remember(_modulo_cache, key, _modulo(as_expr(a), as_expr(d)))
    )


def _modulo(a: Expr, d: Expr) -> Expr:
    if isinstance(d, Const):
        if d.value == 0:
            return _remainder(a, d)
        if isinstance(a, Const):
            return Const(a.value % d.value)
    found = _remainders.get((a, d))
    if found is not None:
        return found
    for rule in MODULO:
        result = rule.apply(a, d, PLAIN)
        if result is not None:
            return result
    return _remainder(a, d)


def _remainder(a: Expr, d: Expr) -> Expr:
    value_range = ranges.range_of_mod(value_range_of(a), value_range_of(d))
    return decided(value_range, d) or _remainders.add((a, d), Mod(a, d, value_range))


def ceildiv(a: SymInt, d: SymInt) -> Expr:
    """Return ``a / d`` rounded up.

    Examples
    --------
    >>> n = var("n", lower=0)
    >>> ceildiv(n, 8)
    ceildiv(n, 8)
    >>> ceildiv(16, 8)
    2
    """
    divisor = as_expr(d)
    if divisor.lower is not None and divisor.lower >= 0:
        return (as_expr(a) + (divisor - 1)) // divisor
    return -((-as_expr(a)) // divisor)


def product(xs: Iterable[SymInt]) -> Expr:
    """Return the product of all terms; the empty product is 1.

    Examples
    --------
    >>> n = var("n")
    >>> product((2, n, 3))
    n * 6
    """
    result: Expr = Const(1)
    for x in xs:
        result = result * x
    return result


def total(xs: Iterable[SymInt]) -> Expr:
    """Return the sum of all terms; the empty sum is 0.

    Examples
    --------
    >>> n = var("n")
    >>> total((1, n, n))
    n * 2 + 1
    """
    return weighted_sum([(as_expr(x), 1) for x in xs], 0)


ALGEBRA.add = add
ALGEBRA.subtract = subtract
ALGEBRA.multiply = multiply
ALGEBRA.sum = sum_of
ALGEBRA.floordiv = floordiv
ALGEBRA.modulo = modulo
