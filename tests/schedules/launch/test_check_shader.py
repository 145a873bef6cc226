"""Rejection of kernels that WebGPU shaders cannot express."""

from __future__ import annotations

import pytest

from tilewright.ir.kernel_errors import LaunchLimitError, ShaderError
from tilewright.ir.script import parse
from tilewright.schedules import State
from tilewright.schedules.launchable import Launchable, launchable
from tilewright.target.target import Target

from tests.codegen.lower.passes.running import GPU, after, check_comparison, program, rejected

NAME = "check_shader"
WEBGPU = Target("webgpu")

KERNEL = """
@prim_func(scheduled=True)
def f(x: Buffer[(64,), {of}], y: Out[(64,), {to}]):
    for i in thread(64, "threadIdx.x"):
        with block("b"):
            vi = spatial(i)
            y[vi] = {value}
"""
SINGLE = KERNEL.format(of="f32", to="f32", value="exp(x[vi])")
DOUBLE = KERNEL.format(of="f64", to="f32", value="f32(x[vi])")

ATOMIC = """
@prim_func(scheduled=True)
def f(x: Buffer[(64,), {dtype}], k: Buffer[(64,), i32], y: InOut[(8,), {dtype}]):
    for i in thread(64, "threadIdx.x"):
        with block("b"):
            vi = reduce(i)
            with checked(k[vi], 0, 8) as at:
                y[at] += x[vi]
"""

REJECTED = {
    "double": (DOUBLE, "buffer 'x' has dtype f64"),
    "value": (
        KERNEL.format(of="f32", to="f32", value="f32(f64(x[vi]) + 1)"),
        "computes with dtype f64",
    ),
    "function": (
        KERNEL.format(of="f32", to="f32", value="lgamma(x[vi])"),
        "function 'lgamma' of dtype f32 needs double precision",
    ),
}


def test_golden(golden):
    """A kernel of singles, and one of doubles."""
    golden(f"{NAME}.txt", check_comparison(NAME, (SINGLE, WEBGPU), (DOUBLE, WEBGPU), ShaderError))


@pytest.mark.parametrize("name", ["double", "value", "function"])
def test_double_precision(name):
    text, message = REJECTED[name]
    error = rejected(NAME, text, WEBGPU, ShaderError, message)
    assert "f32" in error.hint


def test_a_conversion_that_needs_doubles():
    text = KERNEL.format(of="i32", to="f8_e4m3", value="f8_e4m3(x[vi])")
    rejected(NAME, text, WEBGPU, ShaderError, "the conversion from i32 to f8_e4m3")


@pytest.mark.parametrize("dtype", ["i64", "f16"])
def test_atomic_updates_of_other_elements_than_words(dtype):
    message = f"update 'y' of dtype {dtype} atomically"
    rejected(NAME, ATOMIC.format(dtype=dtype), WEBGPU, ShaderError, message)


def test_atomic_updates_of_words():
    func = program(ATOMIC.format(dtype="f32"))
    assert after(NAME, func, WEBGPU) is not None


def _buffers(count: int) -> str:
    params = ", ".join(f"x{k}: Buffer[(64,), f32]" for k in range(count - 1))
    value = " + ".join(f"x{k}[vi]" for k in range(count - 1))
    return KERNEL.format(of="f32", to="f32", value=value).replace("x: Buffer[(64,), f32]", params)


def test_the_number_of_buffers():
    after(NAME, program(_buffers(8)), WEBGPU)
    error = rejected(NAME, _buffers(9), WEBGPU, LaunchLimitError, "has 9 buffers", "at most 8")
    assert error.details == {"bindings": 9, "limit": 8}


def test_problems_while_scheduling():
    state = State.start(parse(DOUBLE))
    [problem] = launchable(state, WEBGPU)
    assert problem.requirement is Launchable.SHADER
    assert not launchable(State.start(parse(SINGLE)), WEBGPU)
    [limit] = launchable(State.start(parse(_buffers(9))), WEBGPU)
    assert limit.requirement is Launchable.LAUNCH_LIMIT


def test_limits_of_a_workgroup():
    """256 invocations, and 16 KiB of memory."""
    many = SINGLE.replace("64", "512")
    [axis, threads] = launchable(State.start(parse(many)), WEBGPU)
    assert {axis.requirement, threads.requirement} == {Launchable.LAUNCH_LIMIT}
    assert threads.numbers == {"threads": 512, "limit": 256}
    assert not launchable(State.start(parse(many)), GPU)
