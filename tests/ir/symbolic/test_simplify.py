"""Constructors preserve values: thousands of random terms compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.symbolic import Add, Const, Mul, eq, to_text, var
from tilewright.ir.symbolic.traverse import Replacement, postorder, rebuild

from tests.ir.symbolic.oracle import Sampler, value_of

BATCHES = 12
PER_BATCH = 1000


@pytest.mark.parametrize("seed", range(BATCHES))
def test_random_integers_keep_their_value(seed: int) -> None:
    sampler = Sampler(seed)
    checked = 0
    while checked < PER_BATCH:
        sampler.restart()
        e, expected = sampler.integer(3)
        if sampler.large or not sampler.defined.any():
            continue
        found = value_of(e, sampler.values)
        wrong = sampler.defined & (found != expected)
        assert not wrong.any(), f"{e} at {describe(sampler, wrong)}"
        check_normal(e)
        check_value_range(e, expected[sampler.defined])
        checked += 1


def check_normal(root) -> None:
    """Check the normal form: sums of products of factors, and interned terms."""
    for e in postorder(root):
        match e:
            case Add(terms, constant):
                parts = [t for t, _ in terms]
                assert len(set(parts)) == len(parts)
                assert not any(isinstance(t, (Add, Const)) for t in parts)
                assert all(c != 0 for _, c in terms)
                assert constant or len(terms) > 1 or terms[0][1] != 1
            case Mul(factors):
                assert len(factors) > 1
                assert not any(isinstance(f, (Mul, Const)) for f in factors)
            case _:
                pass
    again = rebuild(root, Replacement({}))
    assert again is root, (root, again)


def describe(sampler: Sampler, wrong: np.ndarray) -> str:
    at = int(np.flatnonzero(wrong)[0])
    return ", ".join(f"{v.name}={values[at]}" for v, values in sampler.values.items())


def check_value_range(e, values: np.ndarray) -> None:
    """Check that all values satisfy the stored bounds and congruence."""
    assert e.lower is None or values.min() >= e.lower, (e, e.lower, values.min())
    assert e.upper is None or values.max() <= e.upper, (e, e.upper, values.max())
    if e.modulus == 0:
        assert (values == e.remainder).all(), e
    else:
        assert (values % e.modulus == e.remainder).all(), (e, e.modulus, e.remainder)


@pytest.mark.parametrize("seed", range(3))
def test_random_conditions_keep_their_value(seed: int) -> None:
    sampler = Sampler(1000 + seed)
    checked = 0
    while checked < PER_BATCH:
        sampler.restart()
        p, expected = sampler.condition(3)
        if sampler.large or not sampler.defined.any():
            continue
        found = value_of(p, sampler.values)
        wrong = sampler.defined & (found != expected)
        check_normal(p)
        assert not wrong.any(), f"{p} at {describe(sampler, wrong)}"
        checked += 1


def test_a_comparison_of_a_product_does_not_depend_on_the_order_of_its_factors():
    a, m, n = var("a", lower=0), var("m", lower=0), var("n", lower=1)
    after = var("l", lower=0)
    for free in (a, m, after):
        assert to_text(free * n > 0) == f"{free.name} > 0"
        assert to_text(eq(free * n, 0)) == f"{free.name} == 0"
    assert to_text(n * m > 0) == to_text(m * n > 0) == "m > 0"
