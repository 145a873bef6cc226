"""Limits on the expressions that inlining builds."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.analysis.value_size import FUSED, LARGEST, value_size
from tilewright.ir.loop.visit import stores
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, StepError
from tilewright.schedules.primitives.placement.compute_inline import ComputeInline
from tilewright.schedules.primitives.placement.reverse_compute_inline import ReverseComputeInline
from tilewright.schedules.rules import with_default_schedule

from tests.schedules.helpers import rejected


def blocks(count: int, value: str) -> str:
    """Return a function of blocks that each use the result of the previous one."""
    lines = ["@prim_func", "def f(x: Buffer[(3, 64), f32], y: Out[(3, 64), f32]):"]
    lines += [f"    t{k} = alloc((3, 64), f32)" for k in range(count - 1)]
    for k in range(count):
        source, target = f"t{k - 1}" if k else "x", f"t{k}" if k + 1 < count else "y"
        lines += [
            f"    for i{k} in range(3):",
            f"        for j{k} in range(64):",
            f'            with block("b{k}"):',
            f"                vi{k}, vj{k} = spatial(i{k}), spatial(j{k})",
            f"                {target}[vi{k}, vj{k}] = "
            + value.replace("v", f"{source}[vi{k}, vj{k}]"),
        ]
    return "\n".join(lines) + "\n"


def test_the_default_rules_limit_expressions():
    for value in ("v * 0.5 + 1.0", "v * v"):
        module = with_default_schedule(parse(blocks(60, value)))
        found = [value_size(s.value) for s in stores(module.prim("f").body)]
        assert all(size.within(FUSED) for size in found)
        assert len(found) == (2 if "1.0" in value else 1)


def test_250_blocks_in_one_kernel_compile():
    exe = compile(parse(blocks(250, "v * 0.5 + 1.0")), "cpu")
    x = np.ones((3, 64), np.float32)
    np.testing.assert_allclose(exe(x), np.full((3, 64), 2.0), rtol=1e-5)


@pytest.mark.parametrize(("value", "count"), [("v * 0.5 + 1.0", 90), ("tanh(v)", 160)])
def test_inlining_stops_at_a_limit_and_the_result_compiles(value, count):
    sch = Schedule(parse(blocks(count, value)))
    k = 0
    with suppress(StepError):
        while True:
            sch.compute_inline(f"b{k}")
            k += 1
    found = [value_size(s.value) for s in stores(sch.module.prim("f").body)]
    assert all(size.within(LARGEST) for size in found)
    step = ComputeInline(sch.get_block(f"b{k}"))
    rejected(sch, step, ComputeInline.Requires.VALUE_SIZE, "the limits are 100,000 nodes")
    assert str(parse(str(sch.module))) == str(sch.module)
    x = np.ones((3, 64), np.float32)
    assert np.isfinite(compile(sch, "cpu")(x)).all()


def test_inlining_consumers_stops_at_the_same_limit():
    sch = Schedule(parse(blocks(90, "v * 0.5 + 1.0")))
    k = 1
    with suppress(StepError):
        while True:
            sch.apply(ReverseComputeInline(sch.get_block(f"b{k}")))
            k += 1
    step = ReverseComputeInline(sch.get_block(f"b{k}"))
    rejected(sch, step, ReverseComputeInline.Requires.VALUE_SIZE, "a depth of 151")


def chains(count: int, values: int) -> str:
    """Return a function of blocks that each bind values, and use the result of the previous one."""
    lines = ["@prim_func", "def f(x: Buffer[(8,), i32], y: Out[(8,), i32]):"]
    lines += [f"    u{k} = alloc((8,), i32)" for k in range(count - 1)]
    for k in range(count):
        source, target = f"u{k - 1}" if k else "x", f"u{k}" if k + 1 < count else "y"
        lines += [f"    for i{k} in range(8):", f'        with block("b{k}"):']
        lines += [f"            v{k} = spatial(i{k})", f"            t{k}_0 = {source}[v{k}] * 3"]
        lines += [f"            t{k}_{j} = t{k}_{j - 1} * 3 + {j}" for j in range(1, values)]
        lines += [f"            {target}[v{k}] = t{k}_{values - 1} + t{k}_0"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("step", [ComputeInline, ReverseComputeInline])
def test_inlining_stops_before_a_block_binds_more_values_than_the_text_may_have(step) -> None:
    """The values would be nested too deeply for passes, which raised RecursionError."""
    inlined = step is ComputeInline
    sch = Schedule(parse(chains(4, 100)))
    order = (0, 1) if inlined else (3, 2)
    sch.apply(step(sch.get_block(f"b{order[0]}")))
    last = step(sch.get_block(f"b{order[1]}"))
    rejected(sch, last, step.Requires.VALUE_SIZE, "values; the limits are 256 values")
    assert str(parse(str(sch.module))) == str(sch.module)
    assert sch.verify().ok


def test_many_values_that_are_not_bound_may_be_inlined() -> None:
    value = " + ".join(f"t0[max(vi1 - {k}, 0), vj1]" for k in range(120))
    text = blocks(2, "v * 0.5").replace("t0[vi1, vj1] * 0.5", value)
    sch = Schedule(parse(text))
    sch.compute_inline("b0")
    assert sch.verify().ok
