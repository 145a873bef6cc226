"""Primitives: each outcome and each check is computed once."""

from __future__ import annotations

from collections import Counter

import pytest

from tilewright.ir.script import parse
from tilewright.schedules import Schedule, State, replay
from tilewright.schedules.apply import Primitive, apply, check
from tilewright.schedules.problem import StepError
from tilewright.schedules.registry import STEPS
from tilewright.target.target import Target

MATMUL = """
@prim_func
def matmul(A: Buffer[(128, 256), f32], B: Buffer[(256, 512), f32], C: Out[(128, 512), f32]):
    for i in range(128):
        for j in range(512):
            for k in range(256):
                with block("matmul"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""
REORDER = STEPS["reorder"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """Return the number of calls of rewrites and of structural checks, by step."""
    found: Counter[tuple[str, str]] = Counter()

    def counted(cls: type[Primitive], name: str) -> None:
        original = getattr(cls, name)

        def method(self: Primitive, state: State) -> object:
            found[name, self.verb()] += 1
            return original(self, state)

        monkeypatch.setattr(cls, name, method)

    for cls in STEPS.values():
        if issubclass(cls, Primitive):
            for name in {"rewrite", "structural"} & set(vars(cls)):
                counted(cls, name)
    return found


@pytest.mark.parametrize(
    "target", [Target("cpu", features=("avx512",)), Target("cuda", arch="sm_90a")], ids=str
)
def test_a_replayed_step_is_rewritten_once(calls, target) -> None:
    sch = Schedule(parse(MATMUL), target)
    sch.default_schedule()
    calls.clear()
    replay(State.start(parse(MATMUL), target), sch.trace).completed()
    taken = Counter(s.op for s in sch.trace.steps if issubclass(STEPS[s.op], Primitive))
    rewrites = {op: count for (name, op), count in calls.items() if name == "rewrite"}
    assert rewrites == taken
    assert {"reorder", "compute_at"} <= taken.keys()


def test_a_checked_step_is_applied_without_another_check(calls) -> None:
    """The reorder of a reduction with an init examines its outcome."""
    sch = Schedule(parse(MATMUL))
    step = REORDER(sch.get_loops("matmul")[::-1])
    assert not check(sch.state, step)
    assert calls["structural", "reorder"] == calls["rewrite", "reorder"] == 1
    made = apply(sch.state, step)
    assert calls["structural", "reorder"] == calls["rewrite", "reorder"] == 1
    assert made.state.module.prims[0].body.var.name == "k"


def test_the_outcome_of_a_check_serves_no_other_step(calls) -> None:
    sch = Schedule(parse(MATMUL))
    i, j, k = sch.get_loops("matmul")
    assert not check(sch.state, REORDER((k, j, i)))
    assert apply(sch.state, REORDER((j, i, k))).state.module.prims[0].body.var.name == "j"
    with pytest.raises(StepError):
        apply(sch.state, REORDER((i, i, k)))
    assert calls["rewrite", "reorder"] == 2


def test_recorded_lookups_number_the_outcome_again(calls) -> None:
    """A step on handles that no step returned is preceded by queries, so its uids differ."""
    module = parse(MATMUL)
    loops = Schedule(module).get_loops("matmul")
    state = State.start(module)
    step = REORDER(loops[::-1])
    assert not check(state, step)
    after = apply(state, step).state
    assert len(after.trace) > 1
    assert calls["rewrite", "reorder"] == 2
