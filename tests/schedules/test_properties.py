"""Every primitive preserves the results of random programs, for random legal parameters."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings, strategies as st

from tilewright.ir.module import Module
from tilewright.ir.script import to_text
from tilewright.schedules import State, from_json, replay, to_json
from tilewright.schedules.apply import apply

from tests.amounts import amount
from tests.schedules.random_steps import (
    FUNCTION,
    EnoughError,
    chains,
    legal_step,
    loop_level,
    programs,
    random_state,
    same_results,
    scans,
)
from tests.strategies import prim_funcs, symbols_of

pytestmark = pytest.mark.slow

PROGRAMS = prim_funcs() | chains() | scans()
WANTED = amount(20, 200)
"""Required applications per primitive, because a check that rejects everything proves nothing."""


@pytest.mark.parametrize("cls", loop_level(), ids=lambda cls: cls.verb())
def test_results_stay_the_same(cls, fuzz_factor):
    accepted = 0

    @settings(max_examples=400 * fuzz_factor, phases=[Phase.generate])
    @given(programs(cls), st.integers(0, 2**32))
    def run(func, seed):
        nonlocal accepted
        if accepted >= WANTED:
            raise EnoughError
        rng = random.Random(seed)
        state = random_state(rng, State.start(Module().with_functions(func)), rng.randint(0, 4))
        step = legal_step(rng, state, cls)
        if step is None:
            return
        applied = apply(state, step).state
        after = applied.module.prim(FUNCTION)
        accepted += 1
        for _ in range(2):
            env = {v: rng.randint(1, 6) for v in symbols_of(func)}
            assert same_results(func, after, env), f"{step.title()}\n{to_text(after)}"

    with suppress(EnoughError):
        run()
    assert accepted >= WANTED


@settings(max_examples=60)
@given(PROGRAMS, st.integers(0, 2**32))
def test_a_replayed_trace_gives_the_same_text(func, seed):
    start = State.start(Module().with_functions(func))
    state = random_state(random.Random(seed), start, 5)
    again = replay(start, from_json(to_json(state.trace))).completed()
    assert to_text(again.module) == to_text(state.module)
    assert list(again.tree(FUNCTION).loops) == list(state.tree(FUNCTION).loops)
