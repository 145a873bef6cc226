"""Compiled terms against evaluation, one assignment at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.simt.terms import Terms, bound
from tilewright.ir.errors import MalformedProgramError
from tilewright.ir.symbolic import (
    all_of,
    any_of,
    ceildiv,
    eq,
    evaluate,
    maximum,
    minimum,
    ne,
    select,
    var,
)

a, b, c = var("a"), var("b"), var("c", lower=1)
TERMS = [
    a * 3 - b + 7,
    a * b * 2 + a,
    a // c - b // 4,
    a % c + b % 5,
    ceildiv(a, c),
    minimum(a, b, c) + maximum(a, b),
    select(a < b, a, b * 2),
    select(ne(b, 0), a // select(ne(b, 0), b, 1), 0),
]
CLAIMS = [a < b, a <= b + 1, eq(a % 3, b % 2), all_of(a < 3, b > -2), any_of(a < -3, ne(b, c))]


@pytest.mark.parametrize("term", [*TERMS, *CLAIMS], ids=repr)
def test_arrays_and_numbers_give_what_evaluation_gives(term):
    rng = np.random.default_rng(0)
    values = {a: rng.integers(-20, 20, 200), b: rng.integers(-20, 20, 200),
              c: rng.integers(1, 9, 200)}  # fmt: skip
    terms = Terms()
    run = terms.compile(term)
    environment = bound({a: 0, b: 0, c: 1}, terms)
    for variable, array in values.items():
        environment[terms.slot(variable)] = array
    made = np.broadcast_to(run(environment), 200)
    for k in range(200):
        here = {v: int(array[k]) for v, array in values.items()}
        assert made[k] == evaluate(term, here)
        assert run(bound(here, terms)) == evaluate(term, here)


def test_what_is_the_same_in_all_threads_stays_a_number():
    terms = Terms()
    run = terms.compile(a * 3 + b)
    assert isinstance(run(bound({a: 1, b: 2}, terms)), int)


def test_a_division_by_zero_gives_zero_as_in_a_side_that_is_not_chosen():
    terms = Terms()
    run = terms.compile(a // b)
    environment = bound({a: 5, b: 0}, terms)
    assert run(environment) == 0
    environment[terms.slot(b)] = np.array([0, 2])
    with np.errstate(all="ignore"):
        assert run(environment).tolist() == [0, 2]


def test_a_symbol_that_nothing_binds_is_named():
    terms = Terms()
    run = terms.compile(a + 1)
    with pytest.raises(MalformedProgramError, match="'a'"):
        run(terms.environment())
