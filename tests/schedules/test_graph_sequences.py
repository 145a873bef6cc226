"""Graph-level steps in any order preserve well-formedness and results, bit for bit."""

from __future__ import annotations

import random
from collections import Counter

from tilewright.ir.script import to_text
from tilewright.ir.verify import violations
from tilewright.schedules import State
from tilewright.schedules.apply import apply, check

from tests.schedules.test_graph_properties import (
    STEPS_ON_GRAPHS,
    RandomGraph,
    equal,
    outputs,
    random_step,
    with_cached_inputs,
)

SEEDS = 200
MIXED = (
    *STEPS_ON_GRAPHS,
    *("specialize", "clone_function", "legalize", "dispatch_to_library"),
    *("assume", "assume", "hoist_block", "hoist_block"),
)
"""The drawn steps; those that create unusual forms of calls, or are rarely legal, are repeated."""


def drawn(rng: random.Random, state: State) -> tuple[State, State | None, str]:
    """Return the state before a random step, the state after it if it is legal, and its title."""
    verb = rng.choice(MIXED)
    if verb == "plan_memory" and rng.random() < 0.7:
        return state, None, ""
    if verb == "hoist_block" and rng.random() < 0.8:
        state = with_cached_inputs(state)
    step = random_step(rng, state, verb)
    if step is None or check(state, step):
        return state, None, ""
    return state, apply(state, step).state, step.title()


def test_any_order_of_steps(fuzz_factor: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in range(SEEDS * fuzz_factor):
        rng = random.Random(seed)
        state = State.start(RandomGraph(rng).module)
        expected = outputs(state.module)
        history: list[str] = []
        for _ in range(rng.randint(3, 9)):
            state, after, title = drawn(rng, state)
            if after is None:
                continue
            history.append(title)
            accepted[title.partition("(")[0]] += 1
            assert not violations(after.module), (history, to_text(after.module))
            assert equal(expected, outputs(after.module)), (history, to_text(after.module))
            state = after
    assert set(accepted) == set(STEPS_ON_GRAPHS)
