"""Functions of terms: the results and errors of `evaluate`."""

from __future__ import annotations

import time

import pytest

from tilewright.ir.symbolic import (
    FALSE,
    TRUE,
    Expr,
    UnboundSymbolError,
    ZeroDivisorError,
    all_of,
    any_of,
    eq,
    evaluate,
    select,
    var,
)
from tilewright.ir.symbolic.evaluator import evaluator

from tests.ir.symbolic.oracle import Sampler

x, y, n = var("x"), var("y"), var("n", lower=0)


@pytest.mark.parametrize("seed", range(3))
def test_functions_agree_with_numpy(seed: int) -> None:
    sampler = Sampler(700 + seed, count=8)
    for k in range(300):
        sampler.restart()
        e, expected = sampler.integer(3) if k % 2 else sampler.condition(2)
        function = evaluator(e)
        for at in range(sampler.count):
            if sampler.defined[at] and not sampler.large:
                values = {v: int(column[at]) for v, column in sampler.values.items()}
                assert function(values) == expected[at]
                assert type(function(values)) is (int if isinstance(e, Expr) else bool)


def test_constants_have_functions() -> None:
    assert evaluator(x - x + 3)({}) == 3
    assert evaluator(TRUE)({}) is True
    assert evaluator(FALSE)({}) is False


@pytest.mark.parametrize("large", [False, True])
def test_errors_are_those_of_evaluate(large: bool) -> None:
    more = sum((var(f"s{k}") // (k + 2) for k in range(200)), start=n) if large else n
    given = dict.fromkeys(more.free, 0)
    for e, values in ((x // y + more, {x: 1, y: 0}), (x % y + more, {x: 1, y: 0}), (x + more, {})):
        errors: list[str] = []
        for function in (evaluator(e), lambda at, e=e: evaluate(e, at)):
            with pytest.raises((UnboundSymbolError, ZeroDivisorError)) as caught:
                function({**given, **values})
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


def test_only_the_chosen_branch_has_a_value() -> None:
    chosen = evaluator(select(x > 0, n // x, y))
    assert (chosen({x: 2, n: 7}), chosen({x: 0, y: 5})) == (3, 5)


def test_conditions_end_at_the_first_decisive_part() -> None:
    both, one = all_of(eq(x, 0), y > 0), any_of(eq(x, 0), y > 0)
    order = [v for c in both.children for v in (x, y) if v in c.free]
    first, value = order[0], {x: (1, 0), y: (0, 1)}[order[0]]
    assert evaluator(both)({first: value[0]}) is False
    assert evaluator(one)({first: value[1]}) is True


def test_shared_subterms_are_evaluated_once() -> None:
    """Each level contains the one below it twice, so without sharing there are 2**60 subterms."""
    e: Expr = x
    for level in range(60):
        e = (e // 3) * (e % 5) + var(f"v{level}")
    values = dict.fromkeys(e.free, 1)
    start = time.process_time()
    assert evaluator(e)(values) == evaluate(e, values)
    assert time.process_time() - start < 5
