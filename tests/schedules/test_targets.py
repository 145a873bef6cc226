"""The effective targets of programs and of their functions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lowered import lower
from tilewright.schedules.primitives.loops.bind import Bind
from tilewright.schedules.targets import program_target
from tilewright.target import host
from tilewright.target.effective import TargetMismatchError
from tilewright.target.target import Target

from tests.schedules.helpers import rejected

PROGRAM = """
n = symbols("n", lower=0)

@prim_func(target=Target({target}))
def twice(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("twice"):
            vi = spatial(i)
            y[vi] = x[vi] + x[vi]
"""
AVX2, CUDA = '"cpu", features=("avx2",)', '"cuda", arch="sm_80"'


def program(target):
    return tw.parse(PROGRAM.format(target=target))


def test_the_target_of_a_function_is_honored():
    exe = tw.compile(program(AVX2))
    assert exe.target == Target("cpu", features=("avx2",))
    assert "zmm" not in exe.assembly("twice")
    np.testing.assert_array_equal(exe(np.arange(5, dtype=np.float32)), 2.0 * np.arange(5))
    assert lower(program(AVX2), stop_after="to_thread").target == exe.target


@pytest.mark.parametrize(
    "call",
    [
        lambda mod, path: tw.compile(mod, "cpu"),
        lambda mod, path: tw.compile(tw.Schedule(mod, "cpu")),
        lambda mod, path: lower(mod, "cpu"),
        lambda mod, path: tw.export(mod, path / "made", target="cpu"),
        lambda mod, path: tw.measure(mod, np.ones(4, np.float32), target="cpu"),
        lambda mod, path: tw.Workbench(mod, "cpu"),
    ],
    ids=["compile", "schedule", "lower", "export", "measure", "workbench"],
)
def test_another_target_than_that_of_a_function_is_rejected(call, tmp_path):
    message = "function 'twice' is for Target.'cuda', arch='sm_80'., but the program is compiled"
    with pytest.raises(TargetMismatchError, match=message):
        call(program(CUDA), tmp_path)


def test_the_target_of_the_schedule_is_the_default():
    schedule = tw.Schedule(program(AVX2), Target("cpu", threads=1))
    assert program_target(schedule) == Target("cpu", features=("avx2",), threads=1)
    assert program_target(schedule.state, "cpu") == Target("cpu", features=("avx2",))


def test_steps_use_the_effective_target():
    text = PROGRAM.format(target=CUDA).replace("(n,)", "(4096,)").replace("range(n)", "range(4096)")
    stated = tw.Schedule(tw.parse(text))
    given = tw.Schedule(tw.parse(text.replace(f"(target=Target({CUDA}))", "")), "cuda")
    for schedule in (stated, given):
        assert [type(s.step) for s in schedule.suggest(schedule.get_loops("twice")[0])].count(Bind)
        assert schedule.state.target_of("twice") == Target("cuda", arch="sm_80")
        loop = schedule.get_loops("twice")[0]
        rejected(schedule, Bind(loop, "threadIdx.x"), Bind.Requires.AXIS_LIMIT, "4096")


def test_the_host_has_explicit_features(monkeypatch):
    """A schedule for "cpu" uses the vectors of the machine that it is compiled for."""
    schedule = tw.Schedule(program('"cpu"'))
    assert schedule.state.target_of("twice") == host.with_level(Target("cpu"))
    monkeypatch.setenv(host.HOST_FEATURES, "avx2")
    assert schedule.state.target_of("twice") == Target("cpu", features=("avx2",))
    schedule.default_schedule()
    assert "vectorized(8)" in str(schedule)
