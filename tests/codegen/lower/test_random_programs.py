"""Random programs with random loop kinds: compiled code equals the interpreter, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import Block, For, PrimFunc, Stmt
from tilewright.ir.loop.visit import transform, walk
from tilewright.ir.symbolic import const_value

from tests.amounts import amount
from tests.codegen.kernels import LEVELS, Runtime, build
from tests.strategies import outputs, prim_funcs, sizes

KINDS = ("serial", "unrolled", "vectorized", "parallel")


def freely_ordered(loop: For) -> bool:
    """Return whether a loop has independent iterations: it binds spatial variables of one block."""
    blocks = [s for s in walk(loop) if isinstance(s, Block)]
    if len(blocks) != 1:
        return False
    kinds = {v.kind for v in blocks[0].iters if loop.var in v.binding.free}
    return kinds == {"spatial"}


def with_kinds(func: PrimFunc, draw: st.DataObject) -> PrimFunc:
    """Set random kinds on loops for which all kinds are legal."""

    def change(statement: Stmt) -> Stmt:
        if not isinstance(statement, For) or not freely_ordered(statement):
            return statement
        kinds = KINDS if const_value(statement.extent) is not None else ("serial", "vectorized",
                                                                        "parallel")  # fmt: skip
        return replace(statement, kind=draw.draw(st.sampled_from(kinds)))

    return replace(func, body=transform(func.body, change))


@pytest.mark.parametrize("level", LEVELS)
def test_compiled_equals_interpreted(level: str) -> None:
    @settings(
        max_examples=amount(20, 160),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(prim_funcs(), st.data())
    def run(func: PrimFunc, data: st.DataObject) -> None:
        env = data.draw(sizes(func))
        check(with_kinds(func, data), env, level)

    run()


def check(func: PrimFunc, env, level: str) -> None:
    def execute(function, arrays, scalars) -> None:
        symbols = {v: env[v] for v in kernel.artifact.symbols}
        assert kernel(*arrays, scalars=symbols, runtime=Runtime(threads=2)) == 0

    kernel = build(func, level)
    expected = outputs(func, run_prim, env)
    found = outputs(func, execute, env)
    for a, b in zip(expected, found, strict=True):
        assert a.tobytes() == b.tobytes(), (a, b)
