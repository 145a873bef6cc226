"""Compiled code after random graph-level steps and the default rules equals the graph exactly.

All kernels compute sums and products of small integers, which are exact in single precision.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from tilewright.codegen import compile
from tilewright.ir.script import to_text
from tilewright.schedules import State

from tests.schedules.test_graph_properties import SHAPES, STEPS_ON_GRAPHS, RandomGraph, outputs
from tests.schedules.test_graph_sequences import drawn

SEEDS = 40


def test_compiled_equals_interpreted_after_any_graph_steps(fuzz_factor: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in range(1000, 1000 + SEEDS * fuzz_factor):
        rng = random.Random(seed)
        state = State.start(RandomGraph(rng).module)
        expected = iter(outputs(state.module))
        history: list[str] = []
        for _ in range(rng.randint(4, 12)):
            state, after, title = drawn(rng, state)
            if after is not None:
                history.append(title)
                accepted[title.partition("(")[0]] += 1
                state = after
        exe = compile(state)
        for k, shape in enumerate(SHAPES):
            x = np.random.default_rng(k).integers(-3, 4, (*shape, 4)).astype(np.float32)
            found = exe(x)
            for one in found if isinstance(found, tuple) else (found,):
                assert np.array_equal(one, next(expected)), (history, to_text(state.module))
    assert set(accepted) >= set(STEPS_ON_GRAPHS) - {"plan_memory"}
