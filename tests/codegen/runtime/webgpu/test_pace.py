"""Submissions of about 50 ms, and calls that are stopped between their launches."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import StateError, StoppedError
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.codegen.lower.shaders import kernel_shaders
from tilewright.codegen.runtime.webgpu import pace
from tilewright.codegen.runtime.webgpu.device import opened_device
from tilewright.codegen.runtime.webgpu.pace import RATES, SECONDS, Pace
from tilewright.ir.module import Module
from tilewright.ir.script import parse

from tests.codegen.wgsl.running import WEBGPU, compiled

STEPS = """
n = symbols("n", lower=0)

@prim_func
def add_one(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            with block("add"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + 1.0

@prim_func
def turn(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            with block("turn"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, 7 - vj]

@graph_func
def main(total: State[Tensor[(n, 8), f32]], x: Tensor[(n, 8), f32]):
    a = call_tir(add_one, x, outputs=(Tensor[(n, 8), f32],))
    b = call_tir(turn, a, outputs=(Tensor[(n, 8), f32],))
    c = call_tir(add_one, b, outputs=(Tensor[(n, 8), f32],))
    d = call_tir(turn, c, outputs=(Tensor[(n, 8), f32],))
    longer = add(total, d)
    return d, updates(total=longer)
"""


@dataclass
class Recorded:
    """An action before one of the launches of a call, and the number of launches."""

    at: int
    action: Any
    count: int = 0
    works: list[int] = field(default_factory=list)


@pytest.fixture
def before_launch(monkeypatch):
    """Run an action before a launch is recorded."""

    def use(at: int, action: Any = None) -> Recorded:
        device = opened_device()
        found, record = Recorded(at, action), type(device).record

        def wrapped(*arguments: Any, **options: Any) -> None:
            found.count += 1
            found.works.append(options["work"])
            if found.count == found.at:
                found.action()
            record(device, *arguments, **options)

        monkeypatch.setattr(device, "record", wrapped)
        return found

    return use


@pytest.fixture(scope="module")
def exe():
    return compiled(STEPS)


X = np.arange(24, dtype=np.float32).reshape(3, 8)


def test_a_submission_has_at_most_its_time_of_work():
    pace_ = Pace("CPU")
    share = SECONDS * RATES["CPU"] / 4
    assert [pace_.is_full(share) for _ in range(5)] == [False] * 4 + [True]
    pace_.submitted(1.0, share)
    assert pace_.running == 4 * share
    assert not pace_.is_full(share)
    assert pace_.is_full(4 * share)


def test_a_single_long_launch_is_submitted_alone():
    pace_ = Pace("")
    assert not pace_.is_full(1e15)
    assert pace_.is_full(1.0)


@pytest.mark.parametrize(("seconds", "wait", "measured"), [(0.2, 0.19, True), (0.2, 0.01, False)])
def test_the_rate_is_measured_by_waits_for_the_device(seconds, wait, measured):
    """A wait that ends at once does not show how long the device was busy."""
    pace_ = Pace("CPU")
    pace_.is_full(1e7)
    pace_.submitted(5.0, 0.0)
    pace_.waited(5.0 + seconds - wait, 5.0 + seconds)
    assert (pace_.rate < RATES["CPU"]) == measured
    assert pace_.rate == pytest.approx((1e9 + 1e7 / seconds) / 2 if measured else 1e9)
    assert not pace_.running


def test_the_work_of_a_launch_is_a_term_of_its_sizes(exe, before_launch):
    found = before_launch(0)
    exe(X, state=exe.new_state(n=3))
    few = [*found.works]
    exe(np.zeros((300, 8), np.float32), state=exe.new_state(n=300))
    assert min(few) > 0
    assert found.works[len(few) :] == [10 * work for work in few]  # 10 workgroups instead of 1
    (kernel,) = parse(STEPS.partition("@prim_func\ndef turn")[0]).prims
    sch = tw.Schedule(Module().with_functions(kernel), WEBGPU)
    sch.schedule_kernel("add_one")
    shaders = kernel_shaders(lower_kernel(sch.module.prims[0], WEBGPU), WEBGPU)
    assert {s.work for s in shaders} != {"0"}


def test_results_of_many_short_submissions(exe, monkeypatch):
    monkeypatch.setattr(pace, "SECONDS", 0.0)
    state = exe.new_state(n=3)
    for k in range(1, 4):
        np.testing.assert_array_equal(exe(X, state=state), X + 2)
        np.testing.assert_array_equal(state["total"].numpy(), (X + 2) * k)


def test_a_stopped_call_launches_no_more_kernels(exe, before_launch):
    found = before_launch(1, lambda: exe["main"].stop())
    state = exe.new_state(n=3)
    with pytest.raises(StoppedError, match="stopped before it launched all its kernels"):
        exe(X, state=state)
    assert found.count == 1
    np.testing.assert_array_equal(exe(X, state=exe.new_state(n=3)), X + 2)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _signal() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("action", [_interrupt, _signal])
def test_an_interrupt_between_launches_ends_the_call(exe, before_launch, action):
    found = before_launch(1, action)
    state = exe.new_state(n=3)
    with pytest.raises(KeyboardInterrupt):
        exe(X, state=state)
    assert found.count == 1
    with pytest.raises(StateError, match="interrupted"):
        exe(X, state=state)
    np.testing.assert_array_equal(exe(X, state=exe.new_state(n=3)), X + 2)
