"""Random programs and random legal steps, compared with every oracle; longer in `make fuzz`."""

from __future__ import annotations

import os
import secrets

import pytest

from tests.codegen.kernels import LEVELS
from tests.fuzz.programs import FAMILIES
from tests.fuzz.walks import VERBS, Counts, by_rules, toward, walked

ACCEPTED = {True: 2, False: 200}
"""The required number of accepted steps per primitive; True is for CI."""
FIRST = 0 if os.environ.get("TILEWRIGHT_PROFILE") != "fuzz" else secrets.randbits(32)
"""The first seed: fixed in CI, random in `make fuzz`."""
RARE = ("tensorize", "unannotate")
"""Primitives that rarely apply to random programs; only their rejections are checked."""


@pytest.mark.parametrize("verb", VERBS)
def test_every_step_satisfies_its_contract(verb: str, fuzz_factor: int) -> None:
    counts, wanted = Counts(), ACCEPTED[fuzz_factor == 1]
    for seed in range(40 * wanted if verb not in RARE else 4 * wanted):
        if counts.accepted[verb] >= wanted:
            break
        toward(verb, FIRST + seed, counts)
    assert counts.accepted[verb] >= wanted or verb in RARE


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_in_any_order(family: str, fuzz_factor: int) -> None:
    counts = Counts()
    for seed in range(3 if fuzz_factor == 1 else 150):
        walk = walked(FIRST + seed, counts, family)
        walk.run(["", *LEVELS][seed % (1 + len(LEVELS))])


@pytest.mark.parametrize("family", FAMILIES)
def test_default_rules(family: str, fuzz_factor: int) -> None:
    counts = Counts()
    for seed in range(3 if fuzz_factor == 1 else 200):
        by_rules(FIRST + seed, counts, family).run(["", *LEVELS][seed % (1 + len(LEVELS))])
