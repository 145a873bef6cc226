"""Operator calls that become library calls."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.graph.libraries import LIBRARY_FUNCTIONS, LibraryFunction
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, from_json, to_json, to_python
from tilewright.schedules.handles import BindingRef
from tilewright.schedules.primitives.graph.dispatch_to_library import DispatchToLibrary
from tilewright.target.target import Target

from tests.schedules.helpers import rejected

PROGRAM = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 8), f32], w: Tensor[(8, 4), f32], h: Tensor[(n, 8), f16]):
    t = relu(x)
    y = matmul(t, w)
    z = exp(h)
    return y, z
"""


def binding(sch: Schedule, name: str) -> BindingRef:
    return sch.get_binding(name)


def test_a_matrix_product_becomes_a_call_and_back() -> None:
    sch = Schedule(parse(PROGRAM))
    before = str(sch)
    handle = sch.dispatch_to_library("y", "blas.sgemm")
    assert 'y: Tensor[(n, 4), f32] = call_library("blas.sgemm", t, w)' in str(sch)
    assert sch.verify().required().ok
    assert binding(sch.branch(), "y") == handle
    after = str(sch)
    sch.undo()
    assert str(sch) == before
    sch.redo()
    assert str(sch) == after


def test_it_replays_from_a_trace() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.dispatch_to_library("y", "blas.sgemm")
    assert "dispatch_to_library" in to_python(sch.trace)
    other = Schedule(parse(PROGRAM))
    other.replay(from_json(to_json(sch.trace)))
    assert str(other) == str(sch)


def test_the_compiled_program_calls_the_library() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.dispatch_to_library("y", "blas.sgemm")
    exe = tw.compile(sch)
    rng = np.random.default_rng(0)
    for n in (0, 1, 5):
        x, w = rng.random((n, 8), np.float32), rng.random((8, 4), np.float32)
        h = rng.random((n, 8)).astype(np.float16)
        expected = np.asarray(run_graph(parse(PROGRAM), [x, w, h])[0])
        assert np.allclose(exe(x, w, h)[0], expected, rtol=1e-5)
    assert "blas.sgemm" in [launch.kernel for launch in exe.profile(x, w, h)]


def test_suggestions() -> None:
    sch = Schedule(parse(PROGRAM))
    found = list(DispatchToLibrary.suggest(sch.state, binding(sch, "y")))
    assert [s.library for s in found if isinstance(s, DispatchToLibrary)] == ["blas.sgemm"]
    assert not list(DispatchToLibrary.suggest(sch.state, binding(sch, "t")))


def test_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    sch = Schedule(parse(PROGRAM))
    y, t, z = (binding(sch, name) for name in "ytz")
    step = DispatchToLibrary(binding(sch, "x"), "blas.sgemm")
    rejected(sch, step, DispatchToLibrary.Requires.OPERATOR_CALL, "no binding")
    step = DispatchToLibrary(y, "blas.sgem")
    rejected(sch, step, DispatchToLibrary.Requires.REGISTERED, "others are blas.sgemm")
    step = DispatchToLibrary(t, "blas.sgemm")
    rejected(sch, step, DispatchToLibrary.Requires.IMPLEMENTS, "call of 'relu'")
    step = DispatchToLibrary(y, "blas.dgemm")
    rejected(sch, step, DispatchToLibrary.Requires.IMPLEMENTS, "call of 'matmul'")
    half = LibraryFunction("test.half", np.exp, implements=lambda call: (call.args, ()))
    functions = {**LIBRARY_FUNCTIONS, half.name: half}
    monkeypatch.setattr(f"{DispatchToLibrary.__module__}.LIBRARY_FUNCTIONS", functions)
    step = DispatchToLibrary(z, "test.half")
    rejected(sch, step, DispatchToLibrary.Requires.ON_TARGET, "targets are none")
    sch.legalize()
    step = DispatchToLibrary(binding(sch, "y"), "blas.sgemm")
    rejected(sch, step, DispatchToLibrary.Requires.OPERATOR_CALL, "CallTIR")


def test_targets_without_a_native_function() -> None:
    sch = Schedule(parse(PROGRAM), Target("cuda", arch="sm_90a"))
    step = DispatchToLibrary(binding(sch, "y"), "blas.sgemm")
    message = "no native function for cuda; targets are cpu"
    rejected(sch, step, DispatchToLibrary.Requires.ON_TARGET, message)
