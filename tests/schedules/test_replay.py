"""Replay on programs with other names, with values as operands, and past illegal steps."""

from __future__ import annotations

from functools import cache

import pytest

from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules import (
    Schedule,
    State,
    TraceError,
    TraceMismatchError,
    from_json,
    from_python,
    replay,
)
from tilewright.schedules.text import to_json, to_python
from tilewright.target.target import Target

from tests.benchmarks.harness import count_calls
from tests.benchmarks.steps import MATMUL

CPU = Target("cpu", features=("avx512",))
GPU = Target("cuda", arch="sm_90a")

PRODUCT = """
@prim_func
def {f}({a}: Buffer[({n}, 48), f32], {b}: Buffer[(48, 64), f32], {c}: Out[({n}, 64), f32]):
    for {i} in range({n}):
        for {j} in range(64):
            for {k} in range(48):
                with block("{block}"):
                    vi, vj, vk = spatial({i}), spatial({j}), reduce({k})
                    with init(): {c}[vi, vj] = 0.0
                    {c}[vi, vj] += {a}[vi, vk] * {b}[vk, vj]
"""

GRAPH = """
@graph_func
def main(x: Tensor[({n}, 48), f32], w: Tensor[(48, 64), f32]):
    y = matmul(x, w)
    z = relu(y)
    return z
"""

HEAD = 'n = symbols("n", lower=1)\n'


def product(n: object, f: str = "matmul", block: str = "matmul", names: str = "ABCijk") -> Module:
    a, b, c, i, j, k = names
    text = PRODUCT.format(n=n, f=f, block=block, a=a, b=b, c=c, i=i, j=j, k=k)
    return parse(HEAD + text if n == "n" else text)


def fused(n: object) -> Module:
    text = GRAPH.format(n=n)
    sch = Schedule(parse(HEAD + text if n == "n" else text))
    sch.lower_graph("main")
    return sch.module


@cache
def recorded(n: object, target: Target) -> Schedule:
    sch = Schedule(product(n), target)
    sch.default_schedule()
    return sch


@pytest.mark.parametrize("target", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("n", [56, "n"])
@pytest.mark.parametrize("read", [
    lambda t: t,
    lambda t: from_json(to_json(t)),
    lambda t: from_python(to_python(t)),
], ids=["trace", "json", "python"])  # fmt: skip
def test_the_default_matmul_replays_on_a_renamed_and_on_a_fused_kernel(n, target, read) -> None:
    trace = read(recorded(n, target).trace)
    assert len(trace) > 30
    for module in (product(n, "dense"), product(n, "dense", "sums", "PQRuvw"), fused(n)):
        sch = Schedule(module, target)
        outcome = sch.replay(trace)
        assert outcome.complete
        assert outcome.done == len(trace)
        assert outcome.renamed[0].name == "matmul"
        assert outcome.completed() is sch.state
        kernel = next(f for f in sch.module.prims)
        assert dict(kernel.attributes)["scheduled"] is True


@pytest.mark.parametrize("target", [CPU, GPU], ids=["cpu", "gpu"])
def test_a_replay_on_another_kernel_keeps_its_results(target) -> None:
    trace = recorded("n", target).trace
    for module in (product("n", "dense", "sums", "PQRuvw"), fused("n")):
        sch = Schedule(module, target)
        sch.replay(trace).completed()
        assert sch.verify(runs=1).ok


def test_names_are_mapped_on_request() -> None:
    trace = recorded(56, CPU).trace
    both = product(56, "first").with_functions(*product(56, "second").prims)
    stopped = Schedule(both, CPU).replay(trace)
    assert stopped.done == 0
    assert "functions of the module are first, second" in str(stopped.error)
    sch = Schedule(both, CPU)
    outcome = sch.replay(trace, names={"matmul": "second"})
    assert outcome.complete
    assert str(outcome).splitlines()[1] == "step 0 (get_function) found 'second' for 'matmul'"
    assert sch.module.prim("first") is both.prim("first")
    for wrong in (["matmul"], {"matmul": 3}):
        with pytest.raises(TraceError, match="names are a mapping"):
            sch.replay(trace, names=wrong)  # type: ignore[arg-type]


def test_a_replay_continues_after_illegal_steps_on_request() -> None:
    sch = Schedule(product(56))
    _, j, k = sch.get_loops("matmul")
    _, inner = sch.split(j, factors=(None, 8))
    sch.vectorize(inner)
    sch.unroll(k)
    trace = sch.trace.changed(3, factors=(None, 0))
    stopped = Schedule(product(56)).replay(trace)
    assert (stopped.done, len(stopped.pending), stopped.skipped) == (3, 3, ())
    with pytest.raises(TraceMismatchError):
        stopped.completed()
    other = Schedule(product(56))
    outcome = other.replay(trace, skip=True)
    assert not outcome.complete
    assert outcome.done == 4
    assert [(s.step, s.op) for s in outcome.skipped] == [(3, "split"), (4, "vectorize")]
    assert "factor 0 is not provably positive" in str(outcome)
    assert "step 4 uses a result of step 3, which was skipped" in str(outcome)
    kinds = {x.var.name: x.kind for x in other.state.tree("matmul").loops.values()}
    assert kinds == {"i": "serial", "j": "serial", "k": "unrolled"}


def test_a_group_with_a_skipped_step_is_marked_as_edited() -> None:
    sch = Schedule(product(56))
    sch.tile("i", "j", sizes=(8, 8))
    number = next(k for k, s in enumerate(sch.trace.steps) if s.op == "reorder")
    trace = sch.trace.changed(number, loops=())
    group = replace_edited(trace)
    other = Schedule(product(56))
    outcome = other.replay(group, skip=True)
    assert [s.op for s in outcome.skipped] == ["reorder"]
    assert [g.edited for g in other.trace.groups] == [True]


def replace_edited(trace):
    """Return a trace whose groups are not marked as edited."""
    from dataclasses import replace

    return replace(trace, groups=tuple(replace(g, decisions={}) for g in trace.groups))


def test_values_are_operands() -> None:
    sch = Schedule(product(56))
    i, j, _ = sch.get_loops("matmul")
    extent = sch.get_extent(i)
    assert extent == 56
    sch.split(j, factors=(None, extent))
    assert str(sch.trace).splitlines()[-2:] == [
        "size = sch.get_extent(loop=i)",
        "j_0, j_1 = sch.split(loop=j, factors=(None, size))",
    ]
    for read in (lambda t: from_json(to_json(t)), lambda t: from_python(to_python(t))):
        other = Schedule(product(24))
        other.replay(read(sch.trace)).completed()
        assert [str(x.extent) for x in other.state.tree("matmul").loops.values()] == [
            "24", "3", "24", "48",
        ]  # fmt: skip


def test_a_symbolic_value_is_an_operand() -> None:
    sch = Schedule(product("n"))
    i, j, _ = sch.get_loops("matmul")
    sch.split(j, factors=(None, sch.get_extent(i)))
    assert "factors=(None, size)" in str(sch.trace)
    other = Schedule(product(24))
    other.replay(sch.trace).completed()
    assert str(other.state.loop(other.get_loop("j_1")).extent) == "24"


def test_a_value_of_another_history_is_a_literal() -> None:
    sch, other = Schedule(product(56)), Schedule(product(56))
    extent = other.get_extent(other.get_loop("i"))
    _, j, _ = sch.get_loops("matmul")
    sch.split(j, factors=(None, extent))
    assert str(sch.trace).splitlines()[-1] == "j_0, j_1 = sch.split(loop=j, factors=(None, 56))"
    assert type(sch.trace[-1].arguments[1][1][1]) is int


def test_a_value_computed_from_a_result_is_a_literal() -> None:
    sch = Schedule(product(56))
    i, j, _ = sch.get_loops("matmul")
    sch.split(j, factors=(None, sch.get_extent(i) // 2))
    assert "factors=(None, 28)" in str(sch.trace)


@pytest.mark.usefixtures("unverified_steps")
@pytest.mark.parametrize(("target", "most"), [(CPU, 57_000), (GPU, 125_000)], ids=str)
def test_the_number_of_calls_of_a_replay(target: Target, most: int) -> None:
    sch = Schedule(parse(MATMUL), target)
    sch.default_schedule()
    for _ in range(2):
        replay(State.start(parse(MATMUL), target), sch.trace).completed()
    state = State.start(parse(MATMUL), target)
    assert count_calls(lambda: replay(state, sch.trace).completed()) < most
