"""Random graph programs and random steps, compared with every oracle; for hours in `make fuzz`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.ir.graph.nodes import LaunchKernel
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import TRUE
from tilewright.ir.verify import violations
from tilewright.schedules.primitives.graph.fuse_ops import FuseOps
from tilewright.schedules.primitives.specialize.specialize import Specialize

from tests.amounts import IS_LONG, amount
from tests.fuzz.graphs import plans, walks
from tests.fuzz.graphs.cases import GraphCase, GraphMinimizer, fails, smaller
from tests.fuzz.graphs.families import FAMILIES
from tests.fuzz.graphs.inputs import WORK, arguments, sizes, work
from tests.fuzz.graphs.oracles import GraphOriginal
from tests.fuzz.graphs.program import GraphProgram
from tests.fuzz.graphs.walks import COUNTED, DefectError, advance, complete, start, toward
from tests.fuzz.steps import ON_GRAPHS

STEPS = amount(5, COUNTED)
"""The number of accepted steps of a walk."""

SEED = 500
"""The first seed; the same in each run of CI, so that a failure is caused by a change."""


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_are_well_formed_and_run_at_all_sizes(family):
    for seed in range(30 if IS_LONG else 6):
        rng = random.Random(seed)
        program = FAMILIES[family](rng)
        module = program.module
        assert violations(module) == ()
        assert to_text(parse(to_text(module), constants=module.constants)) == to_text(module)
        original = GraphOriginal(program)
        for kind in ("small", "prime", "large"):
            found = sizes(rng, program, program.function, kind)
            results = original.run(found).results
            assert len(results) == len(program.exact)


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_keep_the_results(family):
    walk = start(SEED, family)
    advance(walk, STEPS)
    walk.finish()
    assert complete(walk, STEPS) or walk.tally.accepted.total() > 5


@pytest.mark.parametrize("goal", ON_GRAPHS)
def test_each_step_on_graphs_is_accepted_and_changes_a_program(goal):
    for seed in range(SEED, SEED + 60):
        walk = start(seed, goal=goal)
        if toward(walk, goal) and walk.tally.accepted[goal]:
            return
    pytest.fail(f"{goal} was never accepted")


def test_no_guard_of_a_sum_of_few_terms_leaves_it_undefined():
    walk = start(141000400)  # the condition was false for the only term of each row
    assert "guard(False)" not in walk.text


def test_programs_have_every_kind_of_result():
    """Results are inputs, views, constants and repeated values; states are read and written."""
    texts = [FAMILIES[f](random.Random(s)).text for f in FAMILIES for s in range(25)]
    returned = [line.strip() for text in texts for line in text.split("\n") if "return " in line]
    assert any("const(" in line for line in returned)
    assert any("updates(" in line for line in returned)
    names = [line.removeprefix("return ").split(", ") for line in returned]
    assert any(len(set(own)) < len(own) for own in names)
    assert any(name.startswith("x") for own in names for name in own)
    for part in ("if ", "match_cast", "State[", "InOut[", "updates=(0, 1)", "call(", "call_tir(",
                 "scalars=", "Tensor(None", "Tensor[(), ", "@loop(", "each(", "while ", "= conv(",
                 "max_pool(", "pad(", "sort(", "topk(", "unique(", "nonzero(", "walk_totals_f32(",
                 'call_library("blas.', 'call_library("walk.'):  # fmt: skip
        assert any(part in text for text in texts), part


PROGRAM = GraphProgram("case", """
n = symbols("n", lower=0)
m = symbols("m", lower=0)
constant("w", (4,), f32)

@graph_func
def main(x: Tensor[(n, 4), f32], y: Tensor[(m,), i32]):
    a = relu(x)
    b = add(a, const("w"))
    c = negative(y)
    d = multiply(b, 2.0)
    e = subtract(d, a)
    return c, e
""")  # fmt: skip


@pytest.fixture
def case(monkeypatch) -> GraphCase:
    """A failing walk, caused by a version whose guard is too wide."""
    monkeypatch.setattr(Specialize, "_guard", lambda *_: TRUE)
    steps = (
        {"verb": "dead_code", "function": {"kind": "function", "name": "main", "function": "main"}},
        {"verb": "legalize", "function": {"kind": "function", "name": "main", "function": "main"}},
        {"verb": "specialize", "symbol": "n", "lower": 2, "upper": 2, "multiple_of": 1,
         "function": {"kind": "function", "name": "relu", "function": "relu"}},
    )  # fmt: skip
    sizes_ = ({"n": 0, "m": 3}, {"n": 2, "m": 1}, {"n": 5, "m": 1})
    return GraphCase(PROGRAM, 0, steps, None, sizes_, "verify", "violations", "[G8 shapes", 0)


def test_a_case_fails_again_from_its_data_and_becomes_smaller(case):
    again = GraphCase.from_json(case.to_json())
    assert again.to_json() == case.to_json()
    assert "expected 2, got n" in str(fails(again))
    small = GraphMinimizer(again).minimized()
    assert fails(small)
    assert [step["verb"] for step in small.steps] == ["legalize", "specialize"]
    assert "negative" not in small.program.text
    assert violations(small.program.module) == ()


def test_smaller_programs_parse_and_run():
    texts = {"\n".join(lines) for lines in smaller(PROGRAM)}
    assert len(texts) > 5
    for text in texts:
        program = GraphProgram("case", text)
        assert violations(program.module) == ()
        found = sizes(random.Random(0), program, program.function, "prime")
        run_graph(program.module, arguments(program, found, 0))


def test_a_use_after_the_end_of_a_storage_is_noticed():
    text = """
@graph_func(stage="memory")
def main(x: Tensor[(4,), f32]):
    s = alloc_storage(16)
    t = view(s, 0, Tensor[(4,), f32])
    run = launch(double, x, t)
    kill(s)
    u = view(t, 0, Tensor[(2, 2), f32])
    return u

@prim_func
def double(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    for i in range(4):
        y[i] = x[i] * 2.0
"""
    module = parse(text)
    assert isinstance(module.graph().bindings[2].right, LaunchKernel)
    assert plans.problems(module) == [
        "main: binding 'u' uses 't' after its storage ended",
        "main: result 'u' is in a storage that ended",
    ]
    assert plans.problems(parse(text.replace("    kill(s)\n", ""))) == []


def test_a_step_without_its_check_is_noticed(monkeypatch):
    for phase in ("structural", "proofs"):
        monkeypatch.setattr(FuseOps, phase, lambda *_: iter(()))
    with pytest.raises(DefectError):
        for seed in range(SEED, SEED + 40):
            walk = start(seed, goal="fuse_ops")
            advance(walk)


def test_a_trace_that_leads_to_another_program_is_noticed(monkeypatch):
    walk = start(SEED, "dense")
    advance(walk)
    walk.replayed()
    shorter = walk.state.trace.without(len(walk.state.trace) - 1)
    monkeypatch.setattr(walks, "from_python", lambda _: shorter)
    with pytest.raises(DefectError, match="Python"):
        walk.replayed()


def test_data_of_one_seed_are_equal():
    program = FAMILIES["mixed"](random.Random(1))
    found = sizes(random.Random(1), program, program.function, "prime")
    one, other = (arguments(program, found, 3) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_sizes_of_much_work_are_the_least_that_were_tried() -> None:
    """Nested loops that run a kernel per pair of elements keep the interpreter busy for minutes."""
    program = FAMILIES["repeated"](random.Random(181000197))
    found = sizes(random.Random(1), program, program.function, "prime")
    assert WORK["prime"] < work(program, found) < 10**8
