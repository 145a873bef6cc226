"""Thread IR of CPU kernels: emulation and machine code give bit-identical results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.codegen.simt import run_kernel
from tilewright.ir.dtype import DTYPES, bf16, bool_, dtype, f16, f32, f64, i8, i32, i64, u8
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import For, PrimFunc, Stmt
from tilewright.ir.loop.visit import transform
from tilewright.ir.symbolic import evaluate
from tilewright.ir.thread.function import LaunchGrid
from tilewright.target.target import Target

from tests.codegen.functions import SPECIAL, several
from tests.codegen.kernels import BEST
from tests.codegen.lower.test_random_programs import freely_ordered
from tests.strategies import outputs, prim_funcs, sizes

ARITHMETIC = ("add", "sub", "mul", "div", "min", "max")
INTEGER = (*ARITHMETIC, "floordiv", "mod", "and", "or", "xor", "shl", "shr")
ORDER = ("lt", "le", "gt", "ge", "eq", "ne")


def execute(artifact: LoweredKernel, arrays, symbols) -> None:
    """Run a CPU kernel as a launch of one thread."""
    kernel = replace(artifact.function, launch=LaunchGrid(()))
    table = np.zeros(16, np.int64)
    values = [int(symbols[s]) for s in artifact.symbols]
    scratch = []
    if artifact.scratch is not None:
        size = int(evaluate(artifact.scratch, {**symbols, artifact.threads: 1}))
        scratch = [np.zeros(size, np.uint8)]
    report = run_kernel(kernel, (1, 1, 1), (1, 1, 1), [table, *arrays, *values, *scratch])
    assert report.findings == (), str(report)


def _same(ops, of, arrays) -> None:
    kernel = several(tuple(ops), of, BEST, len(arrays))
    results = [b.dtype.numpy for b in kernel.artifact.buffers[len(arrays) :]]
    native, emulated = ([np.zeros(arrays[0].shape, t) for t in results] for _ in range(2))
    assert kernel(*arrays, *native) == 0
    (count,) = kernel.artifact.symbols
    execute(kernel.artifact, [*arrays, *emulated], {count: len(arrays[0])})
    for (op, out), x, y in zip(ops, native, emulated, strict=True):
        with np.errstate(invalid="ignore"):
            both_nan = np.isnan(x) & np.isnan(y)
            zeros = (x == 0) & (y == 0) if op in ("min", "max") else np.False_  # of any sign
        same = (x.view(f"u{x.itemsize}") == y.view(f"u{y.itemsize}")) | both_nan
        assert (same | zeros).all(), (op, out.name, *(a[~same][:3] for a in (*arrays, x, y)))


def _numbers(of, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if of.kind == "bool":
        return rng.integers(0, 2, 203).astype(bool)
    if of.is_float:
        bits = rng.integers(0, 1 << of.bits, 181, np.uint64, endpoint=False)
        random = bits.astype(f"u{of.bytes}").view(of.numpy)
        with np.errstate(all="ignore"):
            return np.concatenate([random, SPECIAL.astype(of.numpy)])
    info = np.iinfo(of.numpy)
    edges = [info.min, info.max, 0, 1, info.max // 2, info.min + 1]
    random = rng.integers(info.min, info.max, 180, of.numpy, endpoint=True)
    small = rng.integers(0, 20, 17).astype(of.numpy)
    return np.concatenate([random, small, np.array(edges, of.numpy)])


@pytest.mark.parametrize("of", [f16, bf16, f32, f64, i8, u8, i32, i64], ids=str)
def test_operations_on_two_operands(of):
    ops = [(op, of) for op in (ARITHMETIC if of.is_float else INTEGER)]
    ops += [(op, bool_) for op in ORDER]
    _same(ops, of, [_numbers(of), _numbers(of, 1)[::-1].copy()])


@pytest.mark.parametrize("of", [f16, bf16, f32, f64], ids=str)
def test_operations_on_one_operand(of):
    ops = [(op, of) for op in ("neg", "abs", "sqrt", "floor", "ceil", "round", "trunc")]
    _same([*ops, ("isnan", bool_)], of, [_numbers(of)])


@pytest.mark.parametrize("op", ["exp", "sigmoid", "tanh", "log", "erf", "sin", "rsqrt"])
def test_functions_that_are_polynomials(op):
    """Chains of fused multiply-adds, where a double rounding changes the last bit."""
    rng = np.random.default_rng(5)
    x = np.concatenate([SPECIAL, rng.normal(size=2000, scale=4).astype(np.float32)])
    _same([(op, f32)], f32, [x])


@pytest.mark.parametrize("source", [t for t in DTYPES if t != "bool"])
def test_conversions(source):
    _same([("cast", to) for to in DTYPES.values() if to.name != source], dtype(source),
          [_numbers(dtype(source))])  # fmt: skip


def _with_kinds(func: PrimFunc, draw: st.DataObject) -> PrimFunc:
    def change(statement: Stmt) -> Stmt:
        if not isinstance(statement, For) or not freely_ordered(statement):
            return statement
        return replace(statement, kind=draw.draw(st.sampled_from(("serial", "vectorized"))))

    return replace(func, body=transform(func.body, change))


def test_random_programs_equal_the_interpreter():
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(prim_funcs(), st.data())
    def run(func: PrimFunc, data: st.DataObject) -> None:
        env = data.draw(sizes(func))
        func = _with_kinds(func, data)
        artifact = lower_kernel(func, Target("cpu", features=("avx2",)))

        def emulate(_function, arrays, _scalars) -> None:
            execute(artifact, arrays, env)

        expected, results = outputs(func, run_prim, env), outputs(func, emulate, env)
        for x, y in zip(expected, results, strict=True):
            assert x.tobytes() == y.tobytes()

    run()
