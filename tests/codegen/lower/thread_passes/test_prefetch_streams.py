"""Prefetches of reductions: which loops have them, their addresses, and results of all levels."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.thread_passes.prefetch_streams import DISTANCE, LINE
from tilewright.ir.dtype import dtype as dtype_of
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.ir.symbolic import linear_form
from tilewright.ir.symbolic.terms import linear_terms
from tilewright.ir.thread.nodes import Loop, MachineOp
from tilewright.ir.thread.operations.cpu import PREFETCH
from tilewright.ir.thread.text import to_text
from tilewright.ir.thread.visit import walk
from tilewright.schedules import Schedule
from tilewright.schedules.rules import apply_defaults
from tilewright.target.target import Target

from tests.codegen.guarded_memory import GuardedMemory
from tests.codegen.kernels import LEVELS, build

AVX2, AVX512 = (Target("cpu", arch="x86_64", features=(x,)) for x in ("avx2", "avx512"))

EXTREME = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), {d}], y: Out[(n,), {d}], p: Out[(n,), i64]):
    for i in range(n):
        for k in range(m):
            with block("find"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi], p[vi] = {first}, 9223372036854775807
                y[vi], p[vi] = {name}(x[vi, vk], vk)
"""

SUM = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += {term}
"""

DOT = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], w: Buffer[(m,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk] * w[vk]
"""

MAP = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = exp(x[vi])
"""

GOLDEN = """
@prim_func(scheduled=True)
def f(x: Buffer[(16, 32), f32], y: Out[(1,), f32]):
    for i in range(16):
        for k in vectorized(32):
            with block("sum"):
                vi, vk = reduce(i), reduce(k)
                with init(): y[0] = 0.0
                y[0] += abs(x[vi, vk] / 3.0) / 5.0
"""

STRIDED = SUM.replace("(n, m), f32", "(n, m, 4), f32")


def extreme(name="argmax", dtype="f32"):
    floats = dtype.startswith(("f", "b"))
    info = None if floats else np.iinfo(dtype_of(dtype).numpy)
    lowest = "-inf" if floats else str(info.min)
    largest = "inf" if floats else str(info.max)
    return EXTREME.format(d=dtype, name=name, first=lowest if name == "argmax" else largest)


def scheduled(text, target):
    sch = Schedule(parse(text), target)
    apply_defaults(sch)
    return sch.module.prims[0]


def prefetching(text, target=AVX512):
    """Return the loops with prefetches of a program after the default schedule."""
    function = lower_kernel(scheduled(text, target), target).function
    return [
        (s, [p for p in s.body if isinstance(p, MachineOp) and p.operation is PREFETCH])
        for s in walk(function.body)
        if isinstance(s, Loop) and any(isinstance(p, MachineOp) for p in s.body)
    ]


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "i32"])
def test_each_line_of_an_iteration_is_prefetched_once(dtype, target):
    found = prefetching(extreme(dtype=dtype), target)
    assert found
    for loop, prefetches in found:
        offsets = [p.args[0].offset for p in prefetches]
        forms = [linear_form(offset, {loop.var}) for offset in offsets]
        step = {form.coefficients[loop.var] for form in forms}
        assert len(step) == 1
        assert step == {LINE * len(prefetches)}
        first = offsets[0]
        assert [o - first for o in offsets] == [LINE * k for k in range(len(offsets))]


def test_the_distance_is_that_of_the_first_load():
    ((_, (first, *_)), *_) = prefetching(SUM.format(term="exp(x[vi, vk])"))
    assert linear_terms(first.args[0].offset)[1] == DISTANCE


@pytest.mark.parametrize("term", ["exp(x[vi, vk])", "x[vi, vk] / (1.0 + x[vi, vk] * x[vi, vk])"])
def test_sums_that_compute_much_per_load_are_prefetched(term):
    assert prefetching(SUM.format(term=term))


@pytest.mark.parametrize(
    "text",
    [SUM.format(term="x[vi, vk]"), DOT, MAP, STRIDED.format(term="exp(x[vi, vk, 0])")],
    ids=["sum", "dot", "map", "strided"],
)
def test_other_loops_are_not_changed(text):
    assert not prefetching(text)


def test_other_machines_are_not_changed():
    assert prefetching(extreme(), Target("cpu", arch="aarch64"))
    assert not prefetching(extreme(), Target("cpu", arch="riscv64"))
    assert not prefetching(extreme(), Target("cpu", arch="wasm32"))


VALUES = {
    "numbers": lambda rng, shape: rng.integers(-9, 9, shape),
    "equal": lambda _, shape: np.zeros(shape),
    "last": lambda _, shape: np.arange(np.prod(shape)).reshape(shape) % 120,
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "i32"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_results_at_the_ends_of_memory(name, dtype, level):
    """Pages without access follow the operands, so that a prefetch reads beyond them."""
    memory = GuardedMemory()
    text = extreme(name, dtype)
    kernel = build(scheduled(text, Target("cpu", features=(level,))), level)
    source = parse(text).prims[0]
    try:
        for shape in [(0, 5), (1, 1), (2, 7), (3, 67), (2, 257), (1, 1031)]:
            for made in VALUES.values():
                x = made(np.random.default_rng(3), shape).astype(dtype_of(dtype).numpy)
                check(kernel, source, memory, x, nan=False)
                if np.issubdtype(x.dtype, np.floating) and x.size:
                    x.flat[x.size // 2] = np.nan
                    check(kernel, source, memory, x, nan=True)
    finally:
        memory.close()


def check(kernel, source, memory, x, *, nan):
    wanted = [x.copy(), np.zeros(x.shape[0], x.dtype), np.zeros(x.shape[0], np.int64)]
    found = [memory.copy(a, at_end=True) for a in wanted]
    run_prim(source, wanted, {"n": x.shape[0], "m": x.shape[1]})
    assert kernel(*found) == 0
    for have, want in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_array_equal(have, want)
    assert np.isnan(found[1]).any() == nan if x.dtype.kind == "f" else True
    memory.close()


def test_golden(golden):
    func = lower_kernel(parse(GOLDEN).prims[0], AVX2).function
    golden("prefetch_streams.txt", f"{GOLDEN}\n-- after prefetch_streams --\n\n{to_text(func)}\n")
