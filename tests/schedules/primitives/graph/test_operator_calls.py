"""Bindings that replace operator calls have names and symbols of their own."""

from __future__ import annotations

from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule

PROGRAM = """
n, nonzeros = symbols("n nonzeros", lower=0)
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(n, 3), f32], y_max: Tensor[(nonzeros,), f32]):
    y = softmax(x)
    a = nonzero(y)
    b = nonzero(y_max)
    return y, a, b
"""


def test_names_and_symbols_are_new() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.decompose()
    assert not violations(sch.module)
    text = str(sch)
    assert "y_max_1: Tensor[(n, 1), f32] = max(x" in text
    assert "a: Tensor[(nonzeros_1, 2), i64]" in text
    assert "b: Tensor[(nonzeros_2, 1), i64]" in text
    lowered = Schedule(parse(PROGRAM))
    lowered.legalize()
    assert "a: Tensor[(nonzeros_1, 2), i64]" in str(lowered)


def test_symbols_that_a_loop_defines_have_facts() -> None:
    sch = Schedule(
        parse("""
k = symbols("k", lower=0)
m = symbols("m", lower=0)

@graph_func
def main(x: Tensor[(5,), f32]):
    @loop(k, count=2)
    def y(c: Tensor[(5,), f32] = x):
        found = nonzero(c)
        at: Tensor[(m, 1), i64] = match_cast(found, Tensor[(m, 1), i64])
        ones = full((m, 1), 1.0, dtype="f32")
        count = sum(ones)
        e = subtract(c, count)
        return e
    return y
""")
    )
    facts = set(sch.module.graph().facts)
    sch.decompose()
    added = set(sch.module.graph().facts) - facts
    assert [str(f.predicate) for f in added] == ["nonzeros < 6"]
    assert not violations(sch.module)
    assert sch.verify().required().ok
