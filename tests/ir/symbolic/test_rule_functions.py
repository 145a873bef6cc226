"""The function of every rule preserves values and matches sampled terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from tilewright.ir.symbolic import (
    Bool,
    Const,
    Expr,
    eq,
    evaluate,
    maximum,
    minimum,
    negate,
    select,
    var,
)
from tilewright.ir.symbolic.rule import PLAIN, Rule
from tilewright.ir.symbolic.rules.choices import MAXIMUM, MINIMUM, SELECTION
from tilewright.ir.symbolic.rules.comparison import EQUALITY, ORDER
from tilewright.ir.symbolic.rules.division import DIVISION
from tilewright.ir.symbolic.rules.logic import CONJUNCTION, DISJUNCTION
from tilewright.ir.symbolic.rules.modulo import MODULO
from tilewright.ir.symbolic.rules.sums import SUMS
from tilewright.ir.symbolic.terms import FloorDiv, Mod, linear_terms

from tests.ir.symbolic.oracle import Array, Sampler, safe, value_of

ROUNDS = 2000
MINIMUM_USES = 8


def agree(rule: Rule, found: Expr | Bool | bool, expected: Array, where: Array, sampler: Sampler):
    values = (
        np.full(sampler.count, found)
        if isinstance(found, bool)
        else value_of(found, sampler.values)
    )
    wrong = where & (values != expected)
    assert not wrong.any(), f"{rule.name}: {found} gives {values[wrong]}, not {expected[wrong]}"


def divisors(s: Sampler) -> list[Expr]:
    _, n, m, _, j, _, p = s.symbols
    return [Const(d) for d in (1, 2, 3, 4, 6, 8, 12, 16, -3)] + [
        n, m, p, j, m * p, 8 * m, n + 1, m + 2 * p, -m, m * n,
    ]  # fmt: skip


def numerators(s: Sampler, d: Expr) -> Iterator[Expr]:
    """Yield terms that rules for a divisor can match."""
    x, n, m, i, _, k, p = s.symbols
    pick = lambda: s.random.choice(s.symbols)  # noqa: E731
    c = s.random.choice((1, 2, 3, 4, 8, -1))
    yield s.integer(2)[0]
    yield d * pick() + c * pick()
    yield (x % d) + c * d * pick()
    yield (x + c * n) % d
    yield x % (m * d) + c * pick() * d
    yield (x % (8 * m)) * c
    yield 8 * pick() + i + s.random.choice((0, 1, -8))
    yield m * pick() + x % m
    yield x // s.random.choice((m, p, Const(4))) + c
    yield c * k + i + 3
    yield 4 * k * c + s.random.choice((0, 1, 5))
    yield c * (x % 24) + n
    yield Const(0)
    yield -1 - x % m
    yield p


@pytest.mark.parametrize(("name", "rules"), [("//", DIVISION), ("%", MODULO)])
def test_rules_for_division_and_remainder(name: str, rules) -> None:
    uses: Counter[str] = Counter()
    s = Sampler(3)
    for _ in range(ROUNDS // 10):
        d = s.random.choice(divisors(s))
        for a in numerators(s, d):
            where = defined(a, s) & (value_of(d, s.values) != 0)
            x, y = value_of(a, s.values), value_of(d, s.values)
            expected = x // safe(y) if name == "//" else x % safe(y)
            for rule in rules:
                if not (isinstance(d, Const) and d.value < 0) or rule.name == "negative divisor":
                    found = rule.apply(a, d, PLAIN)
                    if found is not None:
                        uses[rule.name] += 1
                        agree(rule, found, expected, where, s)
    check_uses(rules, uses)


def check_uses(rules, uses: Counter[str]) -> None:
    assert {rule.name: uses[rule.name] for rule in rules if uses[rule.name] < MINIMUM_USES} == {}


def summands(s: Sampler) -> Iterator[dict[Expr, int]]:
    """Yield terms of sums before rules are applied."""
    x, n, m, i, _, k, _ = s.symbols
    f, c = s.random.choice((Const(1), m, n)), s.random.choice((1, 2, -3))
    d = s.random.choice((Const(4), Const(6), m, 2 * m))
    a = s.random.choice((x + i, x, 3 * x + n, x * m + i))
    quotient, remainder = a // d, a % d
    yield {k // 4: 4 * c, n: 1}
    yield {f * (k // 4): 8 * c, n: 1}
    yield gather(c * f * d * quotient, c * f * remainder, n)
    yield gather(c * f * a, -c * f * d * quotient, i)
    yield gather(c * remainder, c * d * (quotient % 5), i)
    yield gather(c * remainder, c * d * (quotient % m), n)
    low, high = minimum(x, n), maximum(x, n)
    yield gather(c * f * low, c * f * high, i) if f is not m else gather(c * low, c * high)


def gather(*parts: Expr) -> dict[Expr, int]:
    """Collect terms without building the sum."""
    terms: Counter[Expr] = Counter()
    for part in parts:
        for term, c in linear_terms(part)[0]:
            terms[term] += c
    return {term: c for term, c in terms.items() if c}


def test_rules_for_sums() -> None:
    uses: Counter[str] = Counter()
    s = Sampler(4)
    for _ in range(300):
        for terms in summands(s):
            expected = sum((c * value_of(t, s.values) for t, c in terms.items()), np.int64(5))
            where = np.ones(s.count, dtype=bool)
            for term in terms:
                where &= defined(term, s)
            for rule in SUMS:
                found = rule.apply(terms, 5)
                if found is not None:
                    uses[rule.name] += 1
                    agree(rule, found, expected, where, s)
    check_uses(SUMS, uses)


def defined(e: Expr, s: Sampler) -> Array:
    where = np.ones(s.count, dtype=bool)
    stack = [e]
    while stack:
        term = stack.pop()
        stack.extend(term.children)
        if isinstance(term, (FloorDiv, Mod)):
            where &= value_of(term.divisor, s.values) != 0
    return where


@pytest.mark.parametrize(("name", "rules"), [("min", MINIMUM), ("max", MAXIMUM)])
def test_rules_for_extrema(name: str, rules) -> None:
    uses: Counter[str] = Counter()
    s = Sampler(5)
    for _ in range(ROUNDS):
        s.restart()
        (a, x), (b, y) = s.integer(2), s.integer(1)
        a = s.random.choice((a, a, minimum(a, b, s.symbols[0]), maximum(a, b, s.symbols[0])))
        x = value_of(a, s.values)
        expected = np.minimum(x, y) if name == "min" else np.maximum(x, y)
        for rule in rules:
            found = rule.apply(a, b, PLAIN)
            if found is not None and not s.large:
                uses[rule.name] += 1
                agree(rule, found, expected, s.defined, s)
    check_uses(rules, uses)


def test_rules_for_selection() -> None:
    uses: Counter[str] = Counter()
    s = Sampler(6)
    for _ in range(ROUNDS):
        s.restart()
        (p, c), (a, x), (b, y) = s.condition(1), s.integer(1), s.integer(1)
        other = s.integer(1)[0]
        if s.random.random() < 0.3:
            p, c = s.random.choice(((a <= b, x <= y), (b < a, y < x)))
        a = s.random.choice((a, a, select(p, other, a), b))
        b = s.random.choice((b, b, select(p, other, b)))
        expected = np.where(c, value_of(a, s.values), value_of(b, s.values))
        for rule in SELECTION:
            found = rule.apply(p, a, b, PLAIN)
            if found is not None and not s.large:
                uses[rule.name] += 1
                agree(rule, found, expected, s.defined, s)
    check_uses(SELECTION, uses)


@pytest.mark.parametrize(("name", "rules"), [("<=", ORDER), ("==", EQUALITY)])
def test_rules_for_comparisons(name: str, rules) -> None:
    uses: Counter[str] = Counter()
    s = Sampler(7)
    for _ in range(ROUNDS):
        s.restart()
        e = s.random.choice(
            (s.integer(2)[0], 8 * s.integer(1)[0] + 4, s.integer(1)[0] * s.symbols[2])
        )
        x = value_of(e, s.values)
        expected = x <= 0 if name == "<=" else x == 0
        for rule in rules:
            if isinstance(e, Const) and rule.name not in ("order by range", "equality by range"):
                continue
            found = rule.apply(e, PLAIN)
            if found is not None and not s.large:
                uses[rule.name] += 1
                if isinstance(found, Expr):
                    found = found <= 0 if name == "<=" else eq(found, 0)
                agree(rule, found, expected, s.defined, s)
    check_uses(rules, uses)


@pytest.mark.parametrize(("name", "rules"), [("and", CONJUNCTION), ("or", DISJUNCTION)])
def test_rules_for_logic(name: str, rules) -> None:
    uses: Counter[str] = Counter()
    s = Sampler(8)
    for _ in range(ROUNDS):
        s.restart()
        (p, x), (e, v) = s.condition(1), s.integer(1)
        c = s.random.choice((-2, 1, 3))
        q, y = s.random.choice(
            (
                (negate(p), ~x),
                (p, x),
                (e <= 0, v <= 0),
                (eq(e, 0), v == 0),
                (negate(eq(e, 0)), v != 0),
            )
        )
        if s.random.random() < 0.5:
            p, x = s.random.choice(
                ((e <= c, v <= c), (eq(e, c), v == c), (negate(eq(e, c)), v != c))
            )
        expected = x & y if name == "and" else x | y
        for rule in rules:
            found = rule.apply(p, q)
            if found is not None and not s.large:
                uses[rule.name] += 1
                agree(rule, found, expected, s.defined, s)
    check_uses(rules, uses)


@pytest.mark.parametrize("bound", [1, 255, 256])
def test_the_order_of_a_quotient_and_its_product_is_normal(bound: int) -> None:
    """The rule of quotients would keep the product, whose factor another rule cancels again."""
    k = var("k", lower=1)
    quotient = (k + 254) // (k - 1)
    condition = quotient * (k - 1) >= bound
    for value in range(2, 300):
        assert evaluate(condition, {k: value}) == (
            (value + 254) // (value - 1) * (value - 1) >= bound
        )
