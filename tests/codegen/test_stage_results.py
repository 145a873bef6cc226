"""The functions of a program after each stage, computed on demand."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.codegen import stage_results
from tilewright.codegen.compiler import NothingToCompileError
from tilewright.codegen.lower.pipeline import after_each_pass
from tilewright.codegen.stage_results import StageResults
from tilewright.codegen.stages import find_stage
from tilewright.ir.kernel_errors import MissingInstructionError, ThreadAxisError
from tilewright.ir.module import Module
from tilewright.schedules import Schedule

from tests.codegen.test_lowered import CPU, MODULE
from tests.schedules.launch.test_check_instructions import TILE


def names(stage: str, target: tw.Target = CPU) -> tuple[str, ...]:
    return StageResults(MODULE, target).names(find_stage(stage, target))


def test_functions_at_each_level() -> None:
    assert names("scheduled") == ("double", "negate", "main")
    assert names("strip_mine") == names("to_thread") == ("double", "negate")
    assert names("host") == ("main",)
    assert names("llvm") == names("assembly") == ("double", "negate", "main")
    assert names("sass", tw.Target("cuda")) == ("double", "negate")


def test_entry_functions_are_part_of_the_host_code_only() -> None:
    results = StageResults(Module().with_functions(MODULE.prim("double")), CPU)
    assert results.names(find_stage("scheduled", CPU)) == ("double",)
    assert results.names(find_stage("host", CPU)) == ("double__call", "double__into")


def test_each_pass_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    def counted(func, target):
        for name, result in after_each_pass(func, target):
            runs.append(name)
            yield name, result

    monkeypatch.setattr(stage_results, "after_each_pass", counted)
    results = StageResults(MODULE, CPU)
    for stage in ("strip_mine", "realize_blocks", "strip_mine"):
        results.after("double", stage)
    assert runs[-1] == "strip_mine"
    assert len(runs) == len(set(runs))
    assert results.lowered("double").name == "double"
    assert runs[-3:] == ["widen_strided_accesses", "prefetch_streams", "narrow_indices"]
    assert len(runs) == len(set(runs))


def test_a_pass_that_fails_fails_again() -> None:
    """A tensorized program of another target."""
    func = tw.parse(TILE).prims[0]
    results = StageResults(Module().with_functions(func), tw.Target("cpu", arch="aarch64"))
    for _ in range(2):
        with pytest.raises(MissingInstructionError):
            results.after(func.name, "check_instructions")


def test_the_text_before_the_first_stage_is_the_program() -> None:
    results = StageResults(MODULE, CPU)
    first = find_stage("scheduled", CPU)
    assert results.before("double", first).startswith("n = symbols(")
    assert "@prim_func\n" in results.before("double", first)


def test_a_function_of_the_default_rules_has_no_text_before() -> None:
    text = "@graph_func\ndef main(x: Tensor[(8,), f32]):\n    y = exp(x)\n    return y\n"
    results = StageResults(tw.parse(text), CPU)
    assert results.before("exp", find_stage("scheduled", CPU)) == ""


def test_an_empty_module_is_rejected() -> None:
    with pytest.raises(NothingToCompileError):
        StageResults(Module(), CPU)


def test_the_module_is_scheduled_once() -> None:
    results = StageResults(Schedule(MODULE, CPU).module, CPU)
    assert dict(results.module.prim("double").attributes)["scheduled"] is True


def test_the_pass_that_fails_is_named() -> None:
    (func,) = tw.parse("""
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def copy(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in thread(n, "threadIdx.x"):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]
""").prims
    results = StageResults(Module().with_functions(func), tw.Target("cuda", arch="sm_80"))
    for _ in range(2):
        with pytest.raises(ThreadAxisError) as caught:
            results.after("copy", "to_thread")
        assert caught.value.where == "loop 'i' of 'copy', pass 'unify_thread_bindings'"
        assert caught.value.details["pass"] == "unify_thread_bindings"
