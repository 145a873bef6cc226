"""The list of stages, and one small kernel after each stage of each kind of target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.codegen import stages
from tilewright.codegen.lower import passes, thread_passes
from tilewright.codegen.lower.pipeline import PASSES, THREAD_PASSES, after_each_pass
from tilewright.codegen.stages import (
    STAGES,
    UnknownPassError,
    find_stage,
    stage_before,
    stage_table,
    stages_of,
)
from tilewright.schedules import launch
from tilewright.schedules.rules import with_default_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = tw.Target("cpu", arch="x86_64", features=("avx2",), threads=4)
CUDA = tw.Target("cuda", arch="sm_80")
SIMT = tw.Target("simt")
WEBGPU = tw.Target("webgpu")
TARGETS = {"cpu": CPU, "cuda": CUDA, "simt": SIMT, "webgpu": WEBGPU}

SUMS = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 16), f32]):
    y = sum(x, axes=(-1,))
    return y
"""

MATMUL = """
n = symbols("n", lower=1)

@prim_func
def matmul(x: Buffer[(n, 64), f32], w: Buffer[(64, 32), f32], y: Out[(n, 32), f32]):
    for i in range(n):
        for j in range(32):
            for k in range(64):
                with block("matmul"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0
                    y[vi, vj] += x[vi, vk] * w[vk, vj]
"""


def names(target: tw.Target | None = None) -> list[str]:
    return [stage.name for stage in stages_of(target)]


def test_every_pass_is_a_stage() -> None:
    folders = [Path(str(p.__file__)).parent for p in (passes, thread_passes, launch)]
    files = [path for folder in folders for path in folder.glob("[a-z]*.py")]
    written = {p.stem for p in files if "Pass):\n" in p.read_text(encoding="utf-8")}
    written -= {"lowering_pass"}
    listed = {one.name for one in PASSES} | {s.name for s in STAGES if s.level == "thread"}
    assert written == listed - {"to_thread"}
    assert listed <= {stage.name for stage in STAGES}
    assert len(STAGES) == len({stage.name for stage in STAGES})


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_stages_are_in_the_order_of_the_pipeline(target: tw.Target) -> None:
    scheduled = with_default_schedule(tw.parse(MATMUL), target).prims[0]
    executed = [name for name, _ in after_each_pass(scheduled, target)]
    listed = [s.name for s in stages_of(target) if s.level in ("loop", "thread")]
    assert listed == ["scheduled", *executed]
    assert [p.__name__ for p in THREAD_PASSES[-2:]] == ["InsertBarriers", "NarrowIndices"]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_summaries_are_sentences(stage: stages.Stage) -> None:
    assert stage.summary.endswith(".")
    assert "`" not in stage.summary
    assert stage.to_json()["name"] == stage.name


def test_the_table_of_stages() -> None:
    text = str(stage_table(stages_of(SIMT)))
    assert text.splitlines()[0].split() == ["pass", "result", "targets", "summary"]
    assert "insert_barriers" in text
    assert "thread IR" in text


def test_machine_code_is_listed_only_with_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sass" in names(CUDA)
    monkeypatch.setattr(stages, "disassembler", lambda: None)
    assert "sass" not in names(CUDA)
    with pytest.raises(UnknownPassError, match="requires ptxas and nvdisasm"):
        find_stage("sass", CUDA)


def test_a_misspelled_pass_is_reported_with_all_passes_in_order() -> None:
    with pytest.raises(UnknownPassError) as caught:
        find_stage("strip_mined", CPU)
    assert caught.value.message == "no pass 'strip_mined'; did you mean 'strip_mine'?"
    hint = caught.value.hint.removeprefix("passes for cpu are ").split(", ")
    assert hint == names(CPU)
    assert caught.value.details["passes"] == names(CPU)


@pytest.mark.parametrize("name", [3, b"host", ["host"], None])
def test_a_name_of_another_type_is_rejected(name) -> None:
    with pytest.raises(UnknownPassError, match="expected the name of a pass, got "):
        find_stage(name, CPU)


def test_a_pass_of_another_target_is_reported() -> None:
    with pytest.raises(
        UnknownPassError, match="'insert_barriers' runs for cuda, simt and webgpu, not for"
    ):
        find_stage("insert_barriers", CPU)


def test_stages_have_the_stage_before_as_input() -> None:
    def before(name: str, target: tw.Target) -> str | None:
        found = stage_before(find_stage(name, target), target)
        return None if found is None else found.name

    assert before("scheduled", CPU) is None
    assert before("check_instructions", CPU) == "scheduled"
    assert before("to_thread", CPU) == "sum_in_blocks"
    assert before("host", CPU) == "scheduled"
    assert before("llvm", CPU) == "narrow_indices"
    assert before("llvm", CUDA) == "narrow_indices"


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_small_kernel_after_each_stage(
    golden: Callable[[str, str], None], target: tw.Target
) -> None:
    parts = [SUMS.lstrip()]
    for stage in stages_of(target):
        # The output of LLVM and of the assembler depends on their versions.
        if stage.name not in ("llvm_optimized", "assembly", "sass"):
            name = "main" if stage.level == "host" else "sum"
            lowered = tw.lower(tw.parse(SUMS), target, stop_after=stage.name, kernel=name)
            parts.append(f"-- after {stage.name} --\n\n{lowered.diff().rstrip()}\n")
    golden(f"stages_{target.kind}.txt", "\n".join(parts))


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, target in TARGETS.items() for name in names(target)]
)
def test_every_stage_of_a_matmul_prints(kind: str, name: str) -> None:
    lowered = tw.lower(tw.parse(MATMUL), TARGETS[kind], stop_after=name)
    stage = find_stage(name, TARGETS[kind])
    text = str(lowered)
    expected = {
        "loop": "def matmul(",
        "thread": "def matmul(",
        "host": "def matmul__call__entry(",
        "llvm": "@matmul(",
        "assembly": "matmul",
        "wgsl": "fn main(",
    }
    assert expected[stage.level] in text
    assert "object at 0x" not in text


@pytest.mark.parametrize(
    ("target", "stage", "expected"),
    [
        (CPU, "llvm_optimized", "<8 x float>"),
        (CPU, "assembly", "vfmadd"),
        (CUDA, "llvm_optimized", "ptx_kernel"),
        (CUDA, "assembly", ".visible .entry matmul"),
        (CUDA, "sass", "FFMA"),
    ],
)
def test_output_of_llvm_is_that_of_the_target(target: tw.Target, stage: str, expected: str) -> None:
    function = tw.lower(tw.parse(MATMUL), target, stop_after=stage, kernel="matmul")["matmul"]
    assert expected in function.text
