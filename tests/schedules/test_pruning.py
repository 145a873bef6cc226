"""Traces without lookups that no step uses."""

from __future__ import annotations

from tilewright.ir.script import parse
from tilewright.ir.structural_hash import structural_equal
from tilewright.schedules import Schedule
from tilewright.target.target import Target

MATMUL = """
@prim_func
def mm(A: Buffer[(28, 16), f32], B: Buffer[(16, 64), f32], C: Out[(28, 64), f32]):
    for i in range(28):
        for j in range(64):
            for k in range(16):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""


def test_unused_queries_are_dropped() -> None:
    sch = Schedule(parse(MATMUL))
    sch.get_loop("k")
    block = sch.get_block("mm")
    sch.get_buffers(block)
    _, j, _ = sch.get_loops(block)
    with sch.composite("search"):
        sch.get_loops(block)
    sch.unroll(j)
    trace = sch.trace.pruned()
    assert [s.op for s in trace.steps] == ["get_block", "get_loops", "unroll"]
    assert trace.groups == ()
    again = Schedule(parse(MATMUL))
    assert again.replay(trace).complete
    assert structural_equal(again.module, sch.module)


def test_steps_are_kept_on_request() -> None:
    sch = Schedule(parse(MATMUL))
    sch.get_loop("k")
    sch.get_block("mm")
    sch.unroll("j")
    ops = [s.op for s in sch.trace.pruned([1]).steps]
    assert ops == [s.op for s in sch.trace.steps if s.op != "get_loop"]
    assert [s.op for s in sch.trace.pruned(range(len(sch.trace))).steps] == [
        s.op for s in sch.trace.steps
    ]


def test_results_of_groups_are_used() -> None:
    sch = Schedule(parse(MATMUL))
    with sch.composite("search"):
        i, _, _ = sch.get_loops(sch.get_block("mm"))
        sch.returns(i)
    assert sch.trace.pruned() is sch.trace


def test_a_default_schedule_keeps_its_program() -> None:
    sch = Schedule(parse(MATMUL), Target("cpu", features=("avx512",)))
    sch.default_schedule()
    trace = sch.trace.pruned()
    assert len(trace) < len(sch.trace)
    trace.check_groups()
    again = Schedule(parse(MATMUL), Target("cpu", features=("avx512",)))
    assert again.replay(trace).complete
    assert structural_equal(again.module, sch.module)
