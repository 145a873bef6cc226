"""After every primitive: compiled code equals the interpreter, bit for bit, on every level."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import Phase, given, note, settings, strategies as st

from tilewright.ir.module import Module
from tilewright.ir.script import to_text
from tilewright.schedules import State
from tilewright.schedules.apply import apply

from tests.amounts import amount
from tests.codegen.kernels import LEVELS
from tests.codegen.lower.test_random_programs import check
from tests.schedules.random_steps import (
    FUNCTION,
    EnoughError,
    legal_step,
    loop_level,
    programs,
    random_state,
)
from tests.strategies import symbols_of

pytestmark = pytest.mark.slow

WANTED = amount(10, 80)
"""Accepted applications of each primitive; the levels alternate, with more time all are used."""


@pytest.mark.parametrize("cls", loop_level(), ids=lambda cls: cls.verb())
def test_compiled_equals_interpreted(cls, fuzz_factor: int) -> None:
    accepted = 0

    @settings(max_examples=300 * fuzz_factor, phases=[Phase.generate])
    @given(programs(cls), st.integers(0, 2**32))
    def run(func, seed) -> None:
        nonlocal accepted
        if accepted >= WANTED:
            raise EnoughError
        rng = random.Random(seed)
        state = random_state(rng, State.start(Module().with_functions(func)), rng.randint(0, 3))
        step = legal_step(rng, state, cls)
        if step is None:
            return
        after = apply(state, step).state.module.prim(FUNCTION)
        accepted += 1
        note(f"{step.title()}\n{to_text(after)}")
        levels = LEVELS if fuzz_factor > 1 else LEVELS[accepted % len(LEVELS) :][:1]
        for level in levels:
            check(after, {v: rng.randint(1, 6) for v in symbols_of(func)}, level)

    with suppress(EnoughError):
        run()
    assert accepted >= WANTED
