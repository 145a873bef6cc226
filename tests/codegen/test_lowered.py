"""`tilewright.lower`: programs after a stage, their texts, and their changes."""

from __future__ import annotations

import re

import pytest

import tilewright as tw
from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.errors import CompileCanceledError
from tilewright.codegen.lower.host.function import FlowFunctions
from tilewright.codegen.lowered import UnknownKernelError, stage_text
from tilewright.codegen.program import NotAProgramError
from tilewright.codegen.stages import UnknownPassError, stages_of
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.thread.function import ThreadFunc
from tilewright.progress import ProgressOptionError
from tilewright.schedules import Schedule

CPU = tw.Target("cpu", arch="x86_64", features=("avx2",), threads=4)

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("double"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0

@prim_func
def negate(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("negate"):
            vi = spatial(i)
            y[vi] = -x[vi]

@graph_func
def main(x: Tensor[(n,), f32]):
    twice: Tensor[(n,), f32] = call_tir(double, x)
    back: Tensor[(n,), f32] = call_tir(negate, twice)
    return back
"""
MODULE = tw.parse(PROGRAM)


def test_by_default_all_functions_are_lowered() -> None:
    lowered = tw.lower(MODULE, CPU)
    assert {name: type(f.function) for name, f in lowered.functions.items()} == {
        "double": ThreadFunc,
        "negate": ThreadFunc,
        "main": FlowFunctions,
    }
    assert lowered.stage == "host"
    assert lowered["double"].stage.name == "narrow_indices"
    text = str(lowered)
    assert re.findall(r"^# (\w+) after (\w+)$", text, re.MULTILINE) == [
        ("double", "narrow_indices"),
        ("negate", "narrow_indices"),
        ("main", "host"),
    ]
    assert "launch double(x" in text


def test_one_kernel_prints_without_a_heading() -> None:
    lowered = tw.lower(MODULE, CPU, stop_after="strip_mine", kernel="negate")
    assert list(lowered.functions) == ["negate"]
    assert str(lowered) == str(lowered["negate"])
    assert isinstance(lowered["negate"].function, PrimFunc)
    assert str(lowered).startswith("n = symbols(")


def test_the_default_schedule_is_that_of_compile() -> None:
    scheduled = tw.lower(MODULE, CPU, stop_after="scheduled")
    assert list(scheduled.functions) == ["double", "negate", "main"]
    assert tw.parse(str(scheduled["double"])).prim("double").attributes
    llvm = tw.lower(MODULE, CPU, stop_after="llvm", kernel="double")["double"].text
    assert llvm == tw.compile(MODULE, CPU).llvm("double")


def test_texts_of_llvm_are_those_of_the_executable() -> None:
    executable = tw.compile(MODULE, CPU)
    for stage, text in [
        ("llvm_optimized", executable.llvm("double", optimized=True)),
        ("assembly", executable.assembly("double")),
    ]:
        assert tw.lower(MODULE, CPU, stop_after=stage, kernel="double")["double"].text == text


def test_graph_functions_have_llvm_text_too() -> None:
    text = tw.lower(MODULE, CPU, stop_after="llvm", kernel="main")["main"].text
    assert "define i32 @main__entry(" in text
    assert "@double(" in text


@pytest.mark.parametrize("form", ["function", "module", "schedule", "state"])
def test_all_forms_of_a_program(form: str) -> None:
    func = MODULE.prim("double")
    module = tw.parse(PROGRAM).with_functions(func)
    programs = {
        "function": func,
        "module": module,
        "schedule": Schedule(module, CPU),
        "state": Schedule(module, CPU).state,
    }
    text = str(tw.lower(programs[form], CPU, stop_after="to_thread", kernel="double"))
    assert text.startswith("def double(table: ptr, x: ptr, y: ptr, n) -> i32:")


def test_the_target_of_a_schedule_is_the_default() -> None:
    lowered = tw.lower(Schedule(MODULE, tw.Target("simt")))
    assert lowered.target == tw.Target("simt")
    assert lowered["double"].stage.name == "narrow_indices"


def test_the_schedule_of_the_program_is_kept() -> None:
    sch = Schedule(MODULE, CPU)
    (i,) = sch.get_loops(sch.get_block("double", function="double"))
    sch.unroll(sch.split(i, factors=(None, 3))[1])
    text = str(tw.lower(sch, stop_after="realize_blocks", kernel="double"))
    assert "in unrolled(3):" in text


def test_a_program_of_another_type_is_rejected() -> None:
    with pytest.raises(NotAProgramError, match="got str"):
        tw.lower("def double", CPU)  # pyright: ignore[reportArgumentType]


def test_the_change_by_a_pass_is_a_unified_diff() -> None:
    function = tw.lower(MODULE, CPU, stop_after="realize_blocks", kernel="double")["double"]
    lines = function.diff().split("\n")
    assert lines[:2] == ["--- after decompose_reductions", "+++ after realize_blocks"]
    assert any(line.startswith("-") and "spatial(" in line for line in lines)
    assert not function.translated


def test_a_pass_without_effect_is_stated() -> None:
    lowered = tw.lower(MODULE, CPU, stop_after="check_instructions", kernel="double")
    assert lowered.diff() == "check_instructions does not change 'double'"


def test_the_first_change_is_relative_to_the_program() -> None:
    function = tw.lower(MODULE, CPU, stop_after="scheduled", kernel="double")["double"]
    assert function.before == str(tw.parse(PROGRAM).prim("double")) + "\n"
    assert function.diff().startswith("--- before\n+++ after scheduled\n")


def test_after_a_translation_the_whole_text_is_the_change() -> None:
    for stage in ("to_thread", "llvm", "assembly"):
        function = tw.lower(MODULE, CPU, stop_after=stage, kernel="double")["double"]
        assert function.translated
        assert function.diff() == function.text


def test_a_misspelled_kernel_is_reported_with_the_nearest_name_first() -> None:
    with pytest.raises(UnknownKernelError) as caught:
        tw.lower(MODULE, CPU, stop_after="strip_mine", kernel="negat")
    assert caught.value.message == "no kernel 'negat' after 'strip_mine'; did you mean 'negate'?"
    assert caught.value.hint == "functions after 'strip_mine' are negate, double"
    with pytest.raises(UnknownKernelError, match="no kernel 'main' after 'strip_mine'"):
        tw.lower(MODULE, CPU, stop_after="strip_mine")["main"]


def test_a_misspelled_pass_is_rejected_before_the_program_is_lowered() -> None:
    seen: list[str] = []
    with pytest.raises(UnknownPassError, match="did you mean 'strip_mine'"):
        tw.lower(MODULE, CPU, stop_after="stripmine", progress=lambda _, name: seen.append(name))
    assert seen == []


def test_progress_names_each_function() -> None:
    seen: list[tuple[float, str]] = []
    tw.lower(MODULE, CPU, progress=lambda fraction, name: seen.append((fraction, name)))
    assert seen == [(0.0, "scheduling"), (0.0, "double"), (1 / 3, "negate"), (2 / 3, "main")]


def test_progress_is_an_option_as_in_compile(capsys) -> None:
    tw.lower(MODULE, CPU, progress=True)
    assert "lowering" in capsys.readouterr().err
    tw.lower(MODULE, CPU, progress=False)
    assert not capsys.readouterr().err
    with pytest.raises(ProgressOptionError, match="expected a bool, a function or None, got 3"):
        tw.lower(MODULE, CPU, progress=3)


def test_html_is_static_and_folds_all_but_the_first_function() -> None:
    page = tw.lower(MODULE, CPU)._repr_html_()
    assert page.count("<details>") >= 2
    assert "<script" not in page
    assert "double after narrow_indices (thread IR)" in page


def test_repr_is_one_line() -> None:
    lowered = tw.lower(MODULE, CPU, stop_after="to_thread")
    assert repr(lowered) == f"<Lowered after to_thread for {CPU}: double, negate>"
    assert repr(lowered["double"]) == "<LoweredFunction 'double' after to_thread>"


def test_json_has_the_text_of_each_function() -> None:
    data = tw.lower(MODULE, CPU, stop_after="to_thread").to_json()
    assert data["stage"] == "to_thread"
    assert [f["name"] for f in data["functions"]] == ["double", "negate"]


@pytest.mark.parametrize("stage", [s.name for s in stages_of(CPU) if s.name != "host"])
def test_stage_text_is_the_text_of_one_function(stage: str) -> None:
    whole = tw.lower(MODULE, CPU, stop_after=stage, kernel="double")["double"].text
    assert stage_text(MODULE, CPU, "double", stage) == whole


def test_stage_text_of_host_code() -> None:
    assert "def main__run(" in stage_text(MODULE, CPU, "main", "host")
    with pytest.raises(UnknownKernelError, match="no kernel 'double' after 'host'"):
        stage_text(MODULE, CPU, "double", "host")


def test_stage_text_of_a_kernel_does_not_require_the_rest_of_the_program() -> None:
    rest = """
constant("table", (4,), f32)

@graph_func
def other(x: Tensor[(4,), f32]):
    twice = add(const("table"), const("table"))
    y = add(x, twice)
    return y
"""
    module = tw.parse(PROGRAM + rest)
    with pytest.raises(tw.TilewrightError, match="constant 'table' were not supplied"):
        tw.lower(module, CPU, stop_after="to_thread", kernel="double")
    assert stage_text(module, CPU, "double", "to_thread").startswith("def double(")


def test_a_canceled_token_stops_the_compile_worker() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CompileCanceledError):
        stage_text(MODULE, CPU, "double", "assembly", cancel=cancel)


def test_a_kernel_of_another_type_is_rejected() -> None:
    for kernel in (3, b"double", ["double"]):
        with pytest.raises(UnknownKernelError, match="expected the name of a kernel, got "):
            tw.lower(MODULE, CPU, stop_after="to_thread", kernel=kernel)


def test_functions_are_found_as_in_a_mapping() -> None:
    lowered = tw.lower(MODULE, CPU, stop_after="to_thread")
    assert list(lowered) == ["double", "negate"]
    assert len(lowered) == 2
    assert "double" in lowered
    assert "main" not in lowered


def test_a_program_without_kernels_is_stated() -> None:
    module = tw.parse("@graph_func\ndef main(x: Tensor[(3,), f32]):\n    return x")
    lowered = tw.lower(module, CPU, stop_after="to_thread")
    assert str(lowered) == "# the program has no kernels, and to_thread prints kernels only"
    assert lowered.diff() == str(lowered)
    assert "the program has no kernels" in lowered._repr_html_()


def test_html_of_many_functions_is_limited() -> None:
    kernel = PROGRAM.split("@prim_func")[1].strip()
    text = 'n = symbols("n", lower=1)\n' + "\n\n".join(
        "@prim_func\n" + kernel.replace("def double", f"def double_{k}") for k in range(12)
    )
    page = tw.lower(tw.parse(text), CPU, stop_after="llvm")._repr_html_()
    shown = page.count("<summary")
    assert shown < 36
    assert " more functions; print() shows all" in page
    assert len(page) < 2_000_000
