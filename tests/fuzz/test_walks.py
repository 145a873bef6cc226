"""Random programs and random steps, compared with every oracle; for hours in `make fuzz`."""

from __future__ import annotations

import random
from contextlib import nullcontext
from itertools import pairwise

import pytest

from tilewright.ir.verify import violations
from tilewright.schedules.primitives.loops.parallel import Parallel

from tests.amounts import IS_LONG, amount
from tests.codegen.kernels import LEVELS
from tests.fuzz.effects import races_permitted
from tests.fuzz.goals import GOALS
from tests.fuzz.inputs import sizes
from tests.fuzz.later import known
from tests.fuzz.oracles import Original, interpret
from tests.fuzz.programs import FAMILIES
from tests.fuzz.steps import TILES, VERBS
from tests.fuzz.walks import (
    COUNTED,
    GROUPS,
    DefectError,
    Walk,
    advance,
    complete,
    start,
    take,
    toward,
)

pytestmark = pytest.mark.slow

STEPS = amount(4, COUNTED)
"""The number of accepted steps of a walk."""

SEED = 500
"""The first seed; the same in each run of CI, so that a failure is caused by a change."""


def finished(seed: int, **options: str) -> Walk:
    """Run a walk; a defect of a known class is not an error."""
    walk = start(seed, **options)
    try:
        advance(walk, STEPS)
        if IS_LONG:
            walk.finish()
        else:
            walk.natively(walk.function, "native", LEVELS[-1:])
            walk.on_threads()
            walk.by_rules()
    except DefectError as defect:
        if not known(walk.program.family, defect.phase, defect.message):
            raise
    return walk


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_are_well_formed_and_run_at_all_sizes(family):
    for seed in range(6 if IS_LONG else 2):
        program = FAMILIES[family](random.Random(seed))
        module = program.module
        assert violations(module) == ()
        original = Original(program, module)
        rng = random.Random(seed)
        for kind in ("small", "prime", "large"):
            env = sizes(rng, program, original.function, kind)
            interpret(original, original.function, env)
            assert not (program.exact and original.undefined([env])), program.text


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_keep_the_results(family):
    walk = finished(SEED, family=family)
    assert complete(walk, STEPS), f"{len(walk.counted)} of {STEPS} steps, of {GROUPS} families"


@pytest.mark.parametrize("goal", VERBS)
def test_each_primitive_is_accepted(goal):
    for seed in range(SEED, SEED + 60):
        walk = start(seed, goal=goal)
        if toward(walk, goal):
            walk.natively(walk.function, "native", LEVELS[-1:])
            walk.on_threads()
            return
    pytest.fail(f"{goal} was never accepted")


def test_a_chosen_family_is_kept_with_every_goal():
    for goal in GOALS:
        assert start(SEED, family="scatter", goal=goal).program.family == "scatter"


@pytest.mark.parametrize("family", ["scatter", "attention", "raw"])
def test_programs_compile_as_a_whole(family):
    start(SEED, family=family).compiled()


@pytest.mark.parametrize("phase", ["verify", "native"])
def test_a_step_without_its_check_is_noticed(monkeypatch, phase):
    """The rule of independent iterations notices it; without the rule, native code is wrong."""
    for name in ("structural", "proofs", "outcome"):
        monkeypatch.setattr(Parallel, name, lambda *_: iter(()))
    rules = races_permitted() if phase == "native" else nullcontext()
    with rules, pytest.raises(DefectError) as found:
        for seed in range(SEED, SEED + 30):
            walk = start(seed, family="recurrence", goal="parallel")
            while not walk.tally.accepted["parallel"] and walk.tally.attempts < 40:
                walk.step("parallel")
            walk.natively(walk.function, "native")
    assert found.value.phase == phase


@pytest.mark.parametrize("verb", TILES)
def test_sampled_sizes_are_the_factors_of_a_split_and_replay(verb):
    for seed in range(SEED, SEED + 20):
        walk = start(seed, goal=verb)
        for _ in range(30):
            take(walk)
        steps = [s["verb"] for s in walk.history]
        if (verb, "split") in pairwise(steps):
            walk.replayed()
            return
    pytest.fail("no sampled sizes were used")
