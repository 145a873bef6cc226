"""Provenance of machine instructions: the statements of MiniLM's largest kernels."""

from collections import Counter

import pytest

import tilewright as tw
from tilewright.codegen.llvm import assembly, emit_located, instructions
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.schedules.rules import with_default_schedule
from tilewright.workbench import demo

from tests.codegen.kernels import ALL_LEVELS

pytestmark = [pytest.mark.model, pytest.mark.slow]

LEAST = 0.65
"""The least share of instructions with a statement, of those that can have one."""

MOST_REGISTER_MOVES = 0.25
"""The greatest share of instructions that save, spill, reload, or copy registers.

AVX2 has half as many registers as AVX-512: 18 % of ``matmul_1`` are such moves, against 9 %.
"""


@pytest.fixture(scope="module")
def model():
    return tw.from_exported_program(demo.export_minilm(demo.load_minilm()))


@pytest.fixture(scope="module", params=ALL_LEVELS)
def largest(model, request):
    """The ten kernels with the most instructions, compiled only: names and instructions."""
    target = tw.Target("cpu", features=(request.param,))
    kernels = []
    for func in with_default_schedule(model, target).prims:
        text, sources = emit_located([lower_kernel(func, target).function], target)
        kernels.append((func.name, instructions(assembly(text, target), sources)))
    return sorted(kernels, key=lambda kernel: -len(kernel[1]))[:10]


def test_most_instructions_map_to_a_statement(largest):
    for name, found in largest:
        counts = Counter(i.provenance for i in found)
        assert counts["statement"] >= LEAST * (len(found) - counts["none"]), (name, counts)


def test_few_instructions_only_move_registers(largest):
    for name, found in largest:
        counts = Counter(i.provenance for i in found)
        assert counts["none"] <= MOST_REGISTER_MOVES * len(found), (name, counts)


def test_instructions_without_a_statement_state_the_reason(largest):
    for _, found in largest:
        assert {i.provenance for i in found} <= {"statement", "merged", "none"}
        assert all((i.source is not None) == (i.provenance == "statement") for i in found)


def test_sources_are_named_loops_and_blocks(largest):
    for _, found in largest:
        assert all(i.source.name for i in found if i.source is not None)
