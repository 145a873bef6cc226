"""Every rule is true (z3, or divisors 1 to 16 each and random numbers) and is used as stated."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import z3

from tilewright.ir.symbolic.rule import Rule
from tilewright.ir.symbolic.rules.choices import GREATEST, LEAST, SELECTION
from tilewright.ir.symbolic.rules.comparison import EQUALITY, ORDER
from tilewright.ir.symbolic.rules.division import DIVISION
from tilewright.ir.symbolic.rules.logic import BOTH, EITHER
from tilewright.ir.symbolic.rules.modulo import MODULO
from tilewright.ir.symbolic.rules.sums import SUMS

from tests.ir.symbolic.oracle import Formulas, Numbers, symbols_of

TABLES: dict[str, tuple[Rule, ...]] = {
    "division": DIVISION,
    "modulo": MODULO,
    "sums": SUMS,
    "least": LEAST,
    "greatest": GREATEST,
    "selection": SELECTION,
    "order": ORDER,
    "equality": EQUALITY,
    "both": BOTH,
    "either": EITHER,
}

# Where z3 does not decide the identity over free integers: the names that get all values 1 to 16.
# (In the fourth, coefficients only matter modulo the divisor.)
DIVISORS: dict[tuple[str, str], tuple[str, ...]] = {
    ("division", "take out known multiples"): ("d",),
    ("modulo", "remainder by range"): ("d",),
    ("modulo", "drop multiples"): ("d",),
    ("modulo", "remainder of remainders"): ("c", "d", "m"),
    ("modulo", "remainder by a unit and what it leaves"): ("e", "g"),
    ("modulo", "drop known multiples"): ("d",),
    ("sums", "quotient and remainder"): ("d",),
    ("sums", "what a quotient leaves"): ("d",),
    ("sums", "two digits make one"): ("d", "e"),
}

RULES = [pytest.param(t, r, id=f"{t}: {r.name}") for t, rules in TABLES.items() for r in rules]
EVALUATIONS = 100_000
BATCH = 400_000


def counterexamples(rule: Rule, constants: dict[str, int], rlimit: int) -> z3.CheckSatResult:
    """Ask z3 for values that satisfy the side condition and break the identity."""
    formulas = Formulas(constants)
    given, identity = formulas(rule.given), formulas(rule.identity)
    solver = z3.Solver()
    solver.set("rlimit", rlimit)
    solver.add(given, z3.Not(identity), *formulas.side)
    return solver.check()


@pytest.mark.parametrize(("table", "rule"), RULES)
def test_z3_proves_the_identity(table: str, rule: Rule) -> None:
    names = DIVISORS.get((table, rule.name), ())
    for values in product(range(1, 17), repeat=len(names)):
        constants = dict(zip(names, values, strict=True))
        if "c" in constants and constants["c"] * constants["m"] % constants["d"]:
            continue  # the side condition is false
        assert counterexamples(rule, constants, 10_000_000) == z3.unsat, constants


def test_the_list_of_divisors_names_rules() -> None:
    assert set(DIVISORS) <= {
        (table, rule.name) for table, rules in TABLES.items() for rule in rules
    }


@pytest.mark.parametrize(("table", "rule"), RULES)
def test_random_numbers_satisfy_the_identity(table: str, rule: Rule) -> None:
    del table
    draw = np.random.default_rng(7)
    names = symbols_of(rule.identity, rule.given) or ["a"]
    accepted = 0
    for spread in (3, 8, 20, 6, 10, 4, 5, 7, 9, 30) * 4:
        numbers = Numbers({n: draw.integers(-spread, spread + 1, BATCH) for n in names})
        given, identity = numbers(rule.given), numbers(rule.identity)
        cases = given & numbers.defined
        assert identity[cases].all()
        accepted += int(cases.sum())
        if accepted >= EVALUATIONS:
            return
    pytest.fail(f"only {accepted} cases satisfy {rule.given!r}")


def test_a_wrong_rule_would_be_found() -> None:
    wrong = Rule("wrong", "(g*u + v) // (g*e) == u // e", "0 <= v < g and e != 0", print)
    assert counterexamples(wrong, {}, 10_000_000) == z3.sat
    draw = np.random.default_rng(0)
    numbers = Numbers({n: draw.integers(-5, 6, 10_000) for n in "guve"})
    given, identity = numbers(wrong.given), numbers(wrong.identity)
    assert not identity[given & numbers.defined].all()


def test_names_are_unique() -> None:
    names = [(table, rule.name) for table, rules in TABLES.items() for rule in rules]
    assert len(names) == len(set(names))
