"""Composite steps of the library: documented, and legal where they are suggested."""

from __future__ import annotations

import inspect
import re

import pytest

from tilewright.ir.script import parse
from tilewright.schedules import BlockRef, FunctionRef, LoopRef, Schedule, StepError
from tilewright.schedules.composite import BodyRequirement
from tilewright.schedules.registry import composites
from tilewright.target.target import Target

from tests.schedules.helpers import CHAIN, MATMUL

LIBRARY = [step for step in composites() if step.family == "library"]
NAMES = {step.verb() for step in LIBRARY}
FLOATS = MATMUL.replace("i32", "f32").replace("= 0", "= 0.0")
GRAPH = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 8), f32], w: Tensor[(8, 16), f32]):
    y = matmul(x, w)
    z = relu(y)
    return z
"""


@pytest.mark.parametrize("step", LIBRARY, ids=lambda s: s.verb())
def test_documentation_has_all_sections(step):
    doc = inspect.cleandoc(step.__doc__)
    assert re.search(r"^Before::$", doc, re.MULTILINE)
    assert re.search(r"^After( \(.*\))?::$", doc, re.MULTILINE)
    for title in ("Notes", "Examples", *(["Parameters"] if step.parameters() else [])):
        assert f"\n{title}\n{'-' * len(title)}\n" in doc
    assert all(p.doc for p in step.parameters())
    assert bool(step.returns) == ("\nReturns\n" in doc)


def selections(sch: Schedule):
    for name, function in sch.module.functions.items():
        yield FunctionRef(name)
        if function in sch.module.prims:
            tree = sch.state.tree(name)
            yield from (LoopRef(name, uid, x.var.name) for uid, x in tree.loops.items())
            yield from (BlockRef(name, uid, b.name) for uid, b in tree.blocks.items())


@pytest.mark.parametrize(
    "program", [MATMUL, FLOATS, CHAIN, GRAPH], ids=["i32", "f32", "chain", "graph"]
)
@pytest.mark.parametrize("target", [None, Target("cuda", arch="sm_80")], ids=str)
def test_suggestions_preserve_results(program, target):
    start = Schedule(parse(program), target)
    applied: set[str] = set()
    for selection in selections(start):
        for found in start.suggest(selection):
            if found.step.verb() in NAMES and found.applicable:
                sch = start.branch()
                sch.apply(found.step)
                assert sch.trace.groups[0].op == found.step.verb()
                assert sch.verify(runs=1).ok, found.step.title()
                applied.add(found.step.verb())
    assert "default_schedule" in applied


def test_each_suggestion_is_drawn():
    found: set[str] = set()
    for program in (FLOATS, GRAPH, CHAIN):
        sch = Schedule(parse(program))
        found |= {s.step.verb() for x in selections(sch) for s in sch.suggest(x) if s.applicable}
    assert NAMES & found == {
        "default_schedule",
        "interchange",
        "lower_graph",
        "pack",
        "register_tile",
        "schedule_kernel",
        "tile",
        "vectorize_inner",
    }


@pytest.mark.parametrize(
    "name", ["matmul", "rows", "elementwise", "gpu_matmul", "gpu_rows"], ids=str
)
def test_a_rule_rejects_a_kernel_of_another_kind(name):
    sch = Schedule(parse(CHAIN if name in ("matmul", "gpu_matmul", "rows", "gpu_rows") else FLOATS))
    function = sch.module.prims[0].name
    with pytest.raises(StepError) as caught:
        getattr(sch, f"schedule_{name}")(function)
    (problem,) = caught.value.problems
    assert problem.requirement is BodyRequirement.BODY_SUPPORTS_PROGRAM
    assert f"{function!r}" in problem.message


def test_the_operand_of_another_block_is_not_packed():
    sch = Schedule(parse(CHAIN))
    with pytest.raises(StepError, match="'first' of function 'chain' is not a matrix product"):
        sch.pack("first", columns=8)


@pytest.mark.parametrize("sizes", [(1, 32), (32, 1), (1, 1)])
def test_tiles_of_one_row_and_symbolic_extents(sizes):
    sch = Schedule(parse("""
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, n), i32], y: Out[(n, n), i32]):
    for i in range(n):
        for j in range(n):
            with block("b"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
"""))  # fmt: skip
    sch.tile("i", "j", sizes)
    assert sch.verify().ok
