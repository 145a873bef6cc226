"""Conversion to sympy, and sympy as an oracle."""

from __future__ import annotations

import pytest
import sympy

from tilewright.ir.symbolic import (
    UnsolvableEquationError,
    ceildiv,
    eq,
    evaluate,
    latex,
    minimum,
    select,
    solve_for,
    substitute,
    to_sympy,
    var,
)
from tilewright.ir.symbolic.predicates import TRUE

from tests.ir.symbolic.oracle import Sampler

n, m, b, s, t = (var(name) for name in "nmbst")


@pytest.mark.parametrize("seed", range(2))
def test_sympy_gives_the_same_values(seed: int) -> None:
    sampler = Sampler(1200 + seed, count=3)
    for k in range(60):
        sampler.restart()
        e, expected = sampler.integer(2) if k % 3 else sampler.condition(1)
        formula, symbols = to_sympy(e)
        for at in range(sampler.count):
            if sampler.defined[at] and not sampler.large:
                point = {symbols[v]: int(sampler.values[v][at]) for v in symbols}
                assert formula.subs(point) == expected[at], (e, point)


def test_expanded_polynomials_agree_with_sympy() -> None:
    x, y = sympy.symbols("x y")
    ours = (n + 2 * m) * (n - m + 3) * (m + 1)
    theirs = sympy.expand((x + 2 * y) * (x - y + 3) * (y + 1))
    formula, symbols = to_sympy(ours)
    assert sympy.expand(formula.subs({symbols[n]: x, symbols[m]: y}) - theirs) == 0
    assert len(sympy.Add.make_args(theirs)) == len(sympy.Add.make_args(formula))


def test_latex() -> None:
    assert latex(n // 4) == r"\left\lfloor{\frac{n}{4}}\right\rfloor"
    assert latex(n * n + 1) == "n^{2} + 1"
    assert r"\min" in latex(minimum(n, m))
    assert r"\begin{cases}" in latex(select(n < m, n, 1))
    assert latex(n % 8 < 3) == r"n \bmod 8 \leq 2"


SOLVABLE = [
    (eq(2 * m, 2 * n + 6), m, n + 3),
    (eq(b * s, t), b, t // s),
    (eq(n - m, 3 * b), n, 3 * b + m),
    (eq(b * n, b * 4), n, 4),
    (eq(n + (m // 4) * 2, b), n, b - (m // 4) * 2),
    (eq(3 * n, m), n, m // 3),
]


@pytest.mark.parametrize(("equation", "symbol", "expected"), SOLVABLE, ids=str)
def test_solve_for(equation, symbol, expected) -> None:
    found = solve_for(equation, symbol)
    assert found == expected
    if not any(v in (t, m) for v in symbol.free):
        values = dict.fromkeys(equation.free, 12)
        if evaluate(equation, {**values, symbol: evaluate(found, values)}):
            assert substitute(equation, {**values, symbol: evaluate(found, values)}) is TRUE


@pytest.mark.parametrize(
    ("equation", "symbol", "reason"),
    [
        (n < m, n, "it is not an equation"),
        (eq(n, m), t, "the symbol does not occur"),
        (eq(ceildiv(n, 4), m), n, "it occurs inside"),
        (eq(n * n, m * m), n, "it has 2 solutions"),
        (eq(minimum(n, 3) + n, m), n, "it occurs inside"),
    ],
)
def test_unsolvable_equations_report_the_reason(equation, symbol, reason: str) -> None:
    with pytest.raises(UnsolvableEquationError, match=reason):
        solve_for(equation, symbol)
