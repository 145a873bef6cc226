"""Below the thread IR: which statement each instruction of MiniLM's largest kernels came from."""

from collections import Counter

import pytest

import tilewright as tw
from tilewright.codegen.cpu import with_level
from tilewright.codegen.llvm import assembly, emit_located, instructions
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.schedules.rules import finished
from tilewright.workbench import demo

pytestmark = pytest.mark.model

LEAST = 0.70
"""The share of a kernel's instructions that has to map to a statement."""


@pytest.fixture(scope="module")
def largest():
    """The ten kernels with the most instructions: name, instructions, uids of the program."""
    target = with_level(tw.Target("cpu"))
    module = finished(tw.from_exported_program(demo.export_minilm(demo.load_minilm())), target)
    kernels = []
    for func in module.prims:
        text, sources = emit_located([lower_kernel(func, target).function], target)
        kernels.append((func.name, instructions(assembly(text, target), sources)))
    return sorted(kernels, key=lambda kernel: -len(kernel[1]))[:10]


def test_most_instructions_map_to_a_statement(largest):
    for name, found in largest:
        counts = Counter(i.provenance for i in found)
        assert counts["statement"] >= LEAST * len(found), (name, counts)


def test_the_others_say_why_not(largest):
    for _, found in largest:
        assert {i.provenance for i in found} <= {"statement", "merged", "none"}
        assert all((i.source is not None) == (i.provenance == "statement") for i in found)


def test_statements_are_loops_and_blocks_by_name(largest):
    for _, found in largest:
        assert all(i.source.name for i in found if i.source is not None)
