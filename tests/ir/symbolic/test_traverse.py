"""Evaluation, substitution, linear forms."""

from __future__ import annotations

import pytest

from tilewright.ir.symbolic import (
    FALSE,
    TRUE,
    UnboundSymbolError,
    ZeroDivisorError,
    all_of,
    any_of,
    determined_by,
    divides_by_zero,
    eq,
    evaluate,
    free_vars,
    linear_form,
    minimum,
    select,
    substitute,
    total,
    unknown_of,
    var,
    without_zero_divisors,
)

from tests.ir.symbolic.oracle import Sampler, value_of

x, y, n = var("x"), var("y"), var("n", lower=0)


@pytest.mark.parametrize("seed", range(3))
def test_evaluate_agrees_with_numpy(seed: int) -> None:
    sampler = Sampler(900 + seed, count=8)
    for k in range(300):
        sampler.restart()
        e, expected = sampler.integer(3) if k % 2 else sampler.condition(2)
        for at in range(sampler.count):
            if sampler.defined[at] and not sampler.large:
                values = {v: int(column[at]) for v, column in sampler.values.items()}
                assert evaluate(e, values) == expected[at]


@pytest.mark.parametrize("seed", range(3))
def test_substitute_agrees_with_evaluation(seed: int) -> None:
    sampler = Sampler(950 + seed)
    v = sampler.symbols[0]
    for _ in range(300):
        sampler.restart()
        (e, _), (new, column) = sampler.integer(3), sampler.integer(1)
        if sampler.large:
            continue
        expected = value_of(e, {**sampler.values, v: column})
        found = value_of(substitute(e, {v: new}), sampler.values)
        where = sampler.defined & (_divisors_hold(e, {**sampler.values, v: column}))
        assert (found == expected)[where].all(), (e, new)


def _divisors_hold(e, values):
    from tilewright.ir.symbolic import FloorDiv, Mod
    from tilewright.ir.symbolic.traverse import postorder

    divisors = [t.divisor for t in postorder(e) if isinstance(t, (FloorDiv, Mod))]
    holds = next(iter(values.values())) == next(iter(values.values()))
    for d in divisors:
        holds &= value_of(d, values) != 0
    return holds


def test_substitution_is_simultaneous() -> None:
    assert substitute(x - y, {x: y, y: x}) is y - x
    assert substitute(x < y, {x: 3, y: 4}) is TRUE
    assert substitute(eq(x, y), {x: 3, y: 4}) is FALSE
    assert substitute(x, {}) is x
    assert substitute(x + 1, {y: 3}) is x + 1


def test_lazy_branches_are_not_evaluated() -> None:
    guarded = select(n > 0, x // n, 0)
    assert evaluate(guarded, {n: 0, x: 5}) == 0
    assert evaluate(guarded, {n: 2, x: 5}) == 2
    assert evaluate(all_of(n > 0, x // n > 3) | (y < 0), {n: 0, x: 1, y: -1})


def test_division_by_zero_is_named() -> None:
    with pytest.raises(ZeroDivisorError, match="'x // n' divides 5 by zero"):
        evaluate(x // n, {x: 5, n: 0})
    with pytest.raises(ZeroDivisorError, match="'x % n' divides 5 by zero"):
        evaluate(x % n + 3, {x: 5, n: 0})
    with pytest.raises(ZeroDivisorError):
        evaluate(substitute(x // n, {n: 0}), {x: 1})


def test_missing_values_are_named() -> None:
    with pytest.raises(UnboundSymbolError, match="symbol 'y' has no value") as caught:
        evaluate(x + y, {x: 1, n: 2})
    assert "n, x" in str(caught.value)


def test_free_vars_of_conditions() -> None:
    assert free_vars(any_of(x < 1, select(y < n, 1, 2) > x)) == {x, y, n}


def test_linear_forms() -> None:
    form = linear_form(x * n + 3 * x - 2 * y + n * n + 1, {x, y})
    assert form is not None
    assert dict(form.coefficients) == {x: n + 3, y: -2}
    assert form.rest is n * n + 1
    back = total([c * v for v, c in form.coefficients.items()]) + form.rest
    assert back is x * n + 3 * x - 2 * y + n * n + 1


@pytest.mark.parametrize("e", [x * x, x * y, x // 2, minimum(x, 3) + y, (x % 4) * n])
def test_non_linear_terms(e) -> None:
    assert linear_form(e, {x, y}) is None


def test_linear_forms_of_constants_and_other_symbols() -> None:
    form = linear_form(7, {x})
    assert form is not None
    assert not form.coefficients
    assert form.rest == 7
    other = linear_form(n // 2, {x})
    assert other is not None
    assert other.rest is n // 2


def test_divisors_that_are_zero_are_replaced_by_one():
    i, n = var("i", lower=0), var("n", lower=0)
    for term, expected in (
        (i // n, i),
        ((i + 1) % n, 0 * i),
        (((i + 1) // n + 3) % 5, (i + 4) % 5),
        (eq(i // n, 4), eq(i, 4)),
    ):
        zero = substitute(term, {n: 0})
        assert divides_by_zero(zero)
        assert without_zero_divisors(zero) is expected
    assert not divides_by_zero(i // n)
    assert without_zero_divisors(i // n) is i // n


def test_terms_determine_symbols() -> None:
    assert unknown_of(3 * x - y + 1, {y}) == (x, 3, 1 - y)
    assert unknown_of(x + y, ()) is None
    assert unknown_of(x * x, ()) is None
    assert unknown_of(x * y, {y}) is None
    assert determined_by((x + y, 2 * y + 4)) == {x, y}
    assert determined_by((x + y, x - y)) == set()
