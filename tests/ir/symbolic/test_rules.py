"""Every rule is valid: checked by z3, partly for divisors 1 to 16, and by random evaluation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import z3

from tilewright.ir.symbolic.rule import Rule
from tilewright.ir.symbolic.rules.choices import MAXIMUM, MINIMUM, SELECTION
from tilewright.ir.symbolic.rules.comparison import EQUALITY, ORDER
from tilewright.ir.symbolic.rules.division import DIVISION
from tilewright.ir.symbolic.rules.logic import CONJUNCTION, DISJUNCTION
from tilewright.ir.symbolic.rules.modulo import MODULO
from tilewright.ir.symbolic.rules.sums import SUMS

from tests.ir.symbolic.oracle import Formulas, Numbers, symbols_of

TABLES: dict[str, tuple[Rule, ...]] = {
    "division": DIVISION,
    "modulo": MODULO,
    "sums": SUMS,
    "least": MINIMUM,
    "greatest": MAXIMUM,
    "selection": SELECTION,
    "order": ORDER,
    "equality": EQUALITY,
    "both": CONJUNCTION,
    "either": DISJUNCTION,
}

# z3 does not decide these identities over free integers; the listed names take values 1 to 16.
# (In the nested remainder, coefficients only matter modulo the divisor.)
DIVISORS: dict[tuple[str, str], tuple[str, ...]] = {
    ("division", "extract divisible terms"): ("d",),
    ("modulo", "remainder by range"): ("d",),
    ("modulo", "drop multiples"): ("d",),
    ("modulo", "nested remainder"): ("c", "d", "m"),
    ("modulo", "extract a common factor"): ("e", "g"),
    ("modulo", "drop divisible terms"): ("d",),
    ("sums", "quotient and remainder"): ("d",),
    ("sums", "remainder from quotient"): ("d",),
    ("sums", "merge remainders"): ("d", "e"),
}

RULES = [pytest.param(t, r, id=f"{t}: {r.name}") for t, rules in TABLES.items() for r in rules]
EVALUATIONS = 100_000
BATCH = 400_000


def counterexamples(rule: Rule, constants: dict[str, int], rlimit: int) -> z3.CheckSatResult:
    """Ask z3 for values that satisfy the side condition and break the identity."""
    formulas = Formulas(constants)
    side_condition, identity = formulas(rule.side_condition), formulas(rule.identity)
    solver = z3.Solver()
    solver.set("rlimit", rlimit)
    solver.add(side_condition, z3.Not(identity), *formulas.side)
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
    names = symbols_of(rule.identity, rule.side_condition) or ["a"]
    accepted = 0
    for spread in (3, 8, 20, 6, 10, 4, 5, 7, 9, 30) * 4:
        numbers = Numbers({n: draw.integers(-spread, spread + 1, BATCH) for n in names})
        side_condition, identity = numbers(rule.side_condition), numbers(rule.identity)
        cases = side_condition & numbers.defined
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
    side_condition, identity = numbers(wrong.side_condition), numbers(wrong.identity)
    assert not identity[side_condition & numbers.defined].all()


def test_names_are_unique() -> None:
    names = [(table, rule.name) for table, rules in TABLES.items() for rule in rules]
    assert len(names) == len(set(names))
