"""One-line representations of modules, schedules, traces, executables and functions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant, Module

RELU = """n = symbols("n", lower=1)

@prim_func
def {name}(x: Buffer[(n, 128), f32], y: Out[(n, 128), f32]):
    for i in range(n):
        for j in range(128):
            with block("relu"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = max(x[vi, vj], 0.0)
"""


@pytest.fixture
def module() -> Module:
    return tw.parse(RELU.format(name="relu"))


def test_a_module_names_its_functions_and_the_size_of_its_constants(module: Module) -> None:
    assert repr(module) == "<Module: loops relu>"
    assert repr(Module()) == "<Module: empty>"
    names = [f"relu_{k}" for k in range(6)]
    functions = [tw.parse(RELU.format(name=n)).prim(n) for n in names]
    weight = Constant((1000, 500), f32, lambda: np.zeros((1000, 500), "float32"))
    many = Module().with_functions(*functions).with_constants({"w": weight})
    assert repr(many) == (
        "<Module: loops relu_0, relu_1, relu_2, relu_3 and 2 more; 1 constant of 2 MB>"
    )


def test_the_text_of_a_module_parses_back(module: Module) -> None:
    assert str(tw.parse(str(module))) == str(module)
    assert "def relu(" in str(module)


def test_a_schedule_and_its_trace_count_their_steps(module: Module) -> None:
    schedule = tw.Schedule(module)
    assert repr(schedule.trace) == "<Trace: 0 steps>"
    schedule.parallel(schedule.get_loops("relu")[0])
    assert repr(schedule) == "<Schedule: 4 steps on <Module: loops relu>>"
    assert repr(schedule.trace) == "<Trace: 4 steps, the last parallel>"
    assert str(schedule.trace).splitlines()[-1].startswith("sch.parallel(")


def test_an_executable_lists_its_signatures(module: Module) -> None:
    exe = tw.compile(module, tw.Target("cpu", threads=1))
    signature = "relu(x: Tensor((n, 128), f32)) -> f32"
    assert repr(exe) == f"<Executable for Target('cpu', threads=1): {signature}; 1 kernel>"
    assert repr(exe["relu"]) == f"<NativeFunction {signature}>"
