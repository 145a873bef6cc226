"""Replays that share a prefix: the same outcome, and only the later steps are applied."""

from __future__ import annotations

import pytest

from tilewright.ir.script import parse
from tilewright.schedules import PrefixMemo, Schedule, State, TraceError, replay, to_json
from tilewright.target.target import Target

MATMUL = """
@prim_func
def mm(A: Buffer[(28, 16), f32], B: Buffer[(16, 64), f32], C: Out[(28, 64), f32]):
    for i in range(28):
        for j in range(64):
            for k in range(16):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""
CPU = Target("cpu", features=("avx512",))


def recorded() -> Schedule:
    sch = Schedule(parse(MATMUL), CPU)
    sch.default_schedule()
    return sch


def test_a_repeated_replay_applies_no_step() -> None:
    trace, memo = recorded().trace, PrefixMemo()
    state = State.start(parse(MATMUL), CPU)
    first = replay(state, trace, memo=memo)
    assert (memo.hits, len(memo)) == (0, len(trace))
    again = replay(state, trace, memo=memo)
    assert memo.hits == len(trace)
    assert again.complete
    assert again.state is first.state
    assert to_json(again.state.trace) == to_json(replay(state, trace).state.trace)


def test_a_changed_step_is_applied_after_the_common_prefix() -> None:
    trace, memo = recorded().trace, PrefixMemo()
    state = State.start(parse(MATMUL), CPU)
    replay(state, trace, memo=memo)
    splits = [k for k, s in enumerate(trace.steps) if s.op == "split"]
    changed = trace.changed(splits[-1], factors=(None, 16))
    plain, shared = replay(state, changed), replay(state, changed, memo=memo)
    assert 0 < memo.hits <= splits[-1]
    assert str(shared.state.module) == str(plain.state.module) != str(recorded().module)
    assert to_json(shared.state.trace) == to_json(plain.state.trace)


def test_another_state_and_other_names_are_not_shared() -> None:
    trace, memo = recorded().trace, PrefixMemo()
    state = State.start(parse(MATMUL), CPU)
    replay(state, trace, memo=memo)
    replay(State.start(parse(MATMUL), CPU), trace, memo=memo)
    replay(state, trace, names={"other": "mm"}, memo=memo)
    assert memo.hits == 0


def test_an_illegal_step_after_a_known_prefix() -> None:
    trace, memo = recorded().trace, PrefixMemo()
    state = State.start(parse(MATMUL), CPU)
    replay(state, trace, memo=memo)
    last = [k for k, s in enumerate(trace.steps) if s.op == "split"][-1]
    wrong = trace.changed(last, factors=(None, 0))
    for skip in (False, True):
        plain = replay(state, wrong, skip=skip)
        shared = replay(state, wrong, skip=skip, memo=memo)
        assert (shared.done, len(shared.skipped)) == (plain.done, len(plain.skipped))
        assert str(shared) == str(plain)
        assert to_json(shared.state.trace) == to_json(plain.state.trace)


def test_the_number_of_steps_is_bounded() -> None:
    trace, memo = recorded().trace, PrefixMemo(limit=5)
    state = State.start(parse(MATMUL), CPU)
    for _ in range(2):
        assert replay(state, trace, memo=memo).complete
    assert len(memo) == 5
    with pytest.raises(TraceError, match="at least one step, got limit=0"):
        PrefixMemo(limit=0)
