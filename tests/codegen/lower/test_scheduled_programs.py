"""Random programs after random legal steps: compiled code equals the interpreter, bit for bit."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tilewright.ir.module import Module
from tilewright.schedules import State

from tests.amounts import amount
from tests.codegen.kernels import LEVELS
from tests.codegen.lower.test_random_programs import check
from tests.schedules.random_steps import FUNCTION, chains, random_state
from tests.strategies import prim_funcs, symbols_of


@pytest.mark.parametrize("level", LEVELS)
def test_compiled_equals_interpreted_after_any_steps(level: str) -> None:
    @settings(
        max_examples=amount(30, 240),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(prim_funcs() | chains(), st.integers(0, 2**32))
    def run(func, seed) -> None:
        rng = random.Random(seed)
        state = random_state(rng, State.start(Module().with_functions(func)), rng.randint(2, 8))
        scheduled = state.module.prim(FUNCTION)
        check(scheduled, {v: rng.randint(1, 6) for v in symbols_of(func)}, level)

    run()
