"""Random changes of programs: each construct occurs in programs of all kinds."""

from __future__ import annotations

import random

import pytest

from tilewright.ir.verify import violations

from tests.fuzz import mixing
from tests.fuzz.programs import FAMILIES

MARKS = {
    "bound": " q0 = ", "narrow": "max(min(", "several": "z0: InOut[", "reduced": "p0: InOut[",
    "started": "with init(): ", "bits": "(", "paired": ", c",
}  # fmt: skip
KINDS = ("chain", "reduction", "triangle", "gather", "csr", "in_place", "product", "scoped_rows")


@pytest.mark.parametrize("change", dict.fromkeys(mixing.CHANGES), ids=lambda c: c.__name__)
def test_changes_apply_to_programs_of_many_kinds(change):
    changed = []
    for family in KINDS:
        program = FAMILIES[family](random.Random(3))
        made = mixing.changed(program, change(random.Random(1), program))
        assert violations(made.module) == ()
        if made != program:
            changed.append(family)
            assert MARKS[change.__name__] in made.text or change is mixing.narrow
    assert changed


def test_most_programs_have_a_change():
    drawn = [FAMILIES[KINDS[k % len(KINDS)]](random.Random(k)) for k in range(24)]
    changed = [mixing.mixed(random.Random(k), p, 1.0) != p for k, p in enumerate(drawn)]
    assert sum(changed) > len(drawn) / 2


def test_a_share_of_the_programs_is_not_changed():
    program = FAMILIES["chain"](random.Random(0))
    assert mixing.mixed(random.Random(0), program, 0.0) is program


def test_absolute_values_of_complex_numbers_are_rounded():
    program = FAMILIES["pointwise"](random.Random(0))
    text = """
n = symbols("n", lower=0)

@prim_func
def random(x: Buffer[(n,), {t}], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = {value}
"""
    for t, value, exact in (("c64", "abs(x[vi])", False), ("f32", "abs(x[vi])", True),
                            ("c64", "real(x[vi])", True)):  # fmt: skip
        made = mixing.changed(program, text.format(t=t, value=value))
        assert (made != program, made.exact) == (True, exact)
