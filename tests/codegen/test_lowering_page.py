"""The generated page `docs/lowering.md`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tilewright.codegen.lowering_page import (
    CPU,
    GPU,
    LINES,
    PROGRAM,
    WIDTH,
    llvm_version,
    page,
    without_llvm_output,
)
from tilewright.codegen.stages import stages_of
from tilewright.ir.script import parse, to_text

if TYPE_CHECKING:
    from pathlib import Path


def test_the_committed_page_is_current(root: Path) -> None:
    committed = (root / "docs" / "lowering.md").read_text(encoding="utf-8")
    made = page()
    if f"LLVM {llvm_version()}." not in committed:
        committed, made = map(without_llvm_output, (committed, made))
    assert committed == made, "run python -m tilewright.codegen.lowering_page > docs/lowering.md"


def test_the_page_has_a_section_for_each_stage_and_each_pass_of_gpus(root: Path) -> None:
    text = (root / "docs" / "lowering.md").read_text(encoding="utf-8")
    sections = re.findall(r"^##+ (\w+)$", text, re.MULTILINE)
    passes = [s.name for s in stages_of(GPU) if s.level in ("loop", "thread")]
    on_cpu = [s.name for s in stages_of(CPU)]
    assert sections == [*on_cpu, *(name for name in passes if name not in on_cpu)]
    assert max(map(len, text.split("\n"))) <= WIDTH + 30
    fences = re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
    assert max(fence.count("\n") for fence in fences) <= 2 * LINES


def test_the_program_of_the_page_parses() -> None:
    assert to_text(parse(to_text(parse(PROGRAM)))) == to_text(parse(PROGRAM))


def test_output_of_llvm_is_omitted_for_other_versions() -> None:
    text = "a\n## llvm_optimized\n\nb\n## assembly\n\nc\n## Passes for GPUs\nd\n"
    assert without_llvm_output(text) == "a\n## Passes for GPUs\nd\n"
