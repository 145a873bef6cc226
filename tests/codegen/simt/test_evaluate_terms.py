"""Compiled terms, compared with the evaluation of single assignments."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.simt.evaluate_terms import TermEvaluator, bound
from tilewright.errors import MalformedProgramError
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
def test_arrays_and_numbers_equal_the_evaluation(term):
    rng = np.random.default_rng(0)
    values = {a: rng.integers(-20, 20, 200), b: rng.integers(-20, 20, 200),
              c: rng.integers(1, 9, 200)}  # fmt: skip
    terms = TermEvaluator()
    run = terms.compile(term)
    environment = bound({a: 0, b: 0, c: 1}, terms)
    for variable, array in values.items():
        environment[terms.slot(variable)] = array
    results = np.broadcast_to(run(environment), 200)
    for k in range(200):
        assignment = {v: int(array[k]) for v, array in values.items()}
        assert results[k] == evaluate(term, assignment)
        assert run(bound(assignment, terms)) == evaluate(term, assignment)


def test_a_uniform_term_is_a_number():
    terms = TermEvaluator()
    run = terms.compile(a * 3 + b)
    assert isinstance(run(bound({a: 1, b: 2}, terms)), int)


def test_a_division_by_zero_is_zero_because_both_sides_of_a_select_are_computed():
    terms = TermEvaluator()
    run = terms.compile(a // b)
    environment = bound({a: 5, b: 0}, terms)
    assert run(environment) == 0
    environment[terms.slot(b)] = np.array([0, 2])
    with np.errstate(all="ignore"):
        assert run(environment).tolist() == [0, 2]


def test_an_unbound_symbol_is_named():
    terms = TermEvaluator()
    run = terms.compile(a + 1)
    with pytest.raises(MalformedProgramError, match="'a'"):
        run(terms.environment())
