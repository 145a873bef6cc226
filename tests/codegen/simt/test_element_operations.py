"""Thread IR of CPU kernels: emulation and machine code give bit-identical results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.codegen.simt import run_kernel
from tilewright.ir.dtype import (
    DTYPES,
    bf16,
    bool_,
    dtype,
    f16,
    f32,
    f64,
    from_numpy,
    i8,
    i32,
    i64,
    u8,
    u32,
    u64,
)
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import For, PrimFunc, Stmt
from tilewright.ir.loop.visit import transform
from tilewright.ir.packing import storage_of, unpack
from tilewright.ir.symbolic import evaluate
from tilewright.ir.thread.function import LaunchGrid
from tilewright.target.target import Target

from tests.codegen.functions import SPECIAL, UNARY, several
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
    rows = [from_numpy(a.dtype) for a in arrays]
    memory = [
        storage_of(a, row) if row.is_packed else a.view(row.part.numpy)
        for a, row in zip(arrays, rows, strict=True)
    ]
    report = run_kernel(kernel, (1, 1, 1), (1, 1, 1), [table, *memory, *values, *scratch])
    assert report.findings == (), str(report)
    for array, data, row in zip(arrays, memory, rows, strict=True):
        if row.is_packed:
            array[...] = unpack(data, array.shape, row)


def _same(ops, of, arrays) -> None:
    kernel = several(tuple(ops), of, BEST, len(arrays))
    results = [b.dtype.numpy for b in kernel.source.buffer_params[len(arrays) :]]
    native, emulated = ([np.zeros(arrays[0].shape, t) for t in results] for _ in range(2))
    assert kernel(*arrays, *native) == 0
    (count,) = kernel.artifact.symbols
    execute(kernel.artifact, [*arrays, *emulated], {count: len(arrays[0])})
    for (op, out), found, wanted in zip(ops, native, emulated, strict=True):
        x, y = (a.view(from_numpy(a.dtype).part.numpy) for a in (found, wanted))
        with np.errstate(invalid="ignore"):
            both_nan = np.isnan(x) & np.isnan(y)
            zeros = (x == 0) & (y == 0) if op in ("min", "max") else np.False_  # of any sign
        same = (x.view(f"u{x.itemsize}") == y.view(f"u{y.itemsize}")) | both_nan
        shown = [a for a in (*arrays, x, y) if a.shape == same.shape]
        assert (same | zeros).all(), (op, out.name, *(a[~same][:3] for a in shown))


def _numbers(of, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if of.kind == "bool":
        return rng.integers(0, 2, 203).astype(bool)
    if of.is_complex:
        return np.stack([_numbers(of.part), _numbers(of.part, 1)], -1).view(of.numpy)[:, 0]
    if of.is_float:
        bits = rng.integers(0, 1 << of.bits, 181, np.uint64, endpoint=False)
        random = bits.astype(f"u{of.bits // 8}").view(of.numpy)
        with np.errstate(all="ignore"):
            return np.concatenate([random, SPECIAL.astype(of.numpy)])
    low, high, wide = of.lowest, of.highest, of.register.numpy
    edges = [low, high, 0, 1, high // 2, low + 1]
    random = rng.integers(low, high, 180, wide, endpoint=True)
    small = rng.integers(0, 20, 17).astype(wide)
    return np.concatenate([random, small, np.array(edges, wide)]).astype(of.numpy)


@pytest.mark.parametrize("of", [f16, bf16, f32, f64, i8, u8, i32, i64], ids=str)
def test_operations_on_two_operands(of):
    ops = [(op, of) for op in (ARITHMETIC if of.is_float else INTEGER)]
    ops += [(op, bool_) for op in ORDER]
    _same(ops, of, [_numbers(of), _numbers(of, 1)[::-1].copy()])


@pytest.mark.parametrize("of", [f16, bf16, f32, f64], ids=str)
def test_operations_on_one_operand(of):
    ops = [(op, of) for op in ("neg", "abs", "sqrt", "floor", "ceil", "round", "trunc")]
    _same([*ops, ("isnan", bool_)], of, [_numbers(of)])


@pytest.mark.parametrize("of", [f32, f64], ids=str)
def test_functions_that_are_polynomials(of):
    """Chains of fused multiply-adds, where a double rounding changes the last bit."""
    rng = np.random.default_rng(5)
    x = np.concatenate([SPECIAL, rng.normal(size=600, scale=4)]).astype(of.numpy)
    _same([(op, of) for op in UNARY], of, [x])


@pytest.mark.parametrize("of", [f16, bf16, f32, f64], ids=str)
def test_functions_of_several_floats(of):
    x, y = _numbers(of), _numbers(of, 1)[::-1].copy()
    _same([(op, of) for op in ("atan2", "hypot", "fmod", "copysign", "nextafter")], of, [x, y])
    _same([("ldexp", of)], of, [x, np.arange(x.size, dtype=np.int32) - 100])
    _same([("fma", of)], of, [x, y, np.roll(x, 3)])


@pytest.mark.parametrize("of", [i8, u8, i32, u32, i64, u64], ids=str)
def test_functions_of_bits(of):
    _same([(op, of) for op in ("popcount", "clz", "ctz")], of, [_numbers(of)])
    _same([(op, of) for op in ("fmod", "pow")], of, [_numbers(of), _numbers(of, 1)])
    if of in (u32, u64):
        _same([("random_bits", of)], of, [_numbers(of), _numbers(of, 1)])


@pytest.mark.parametrize("source", [t for t in DTYPES if t != "bool"])
def test_conversions(source):
    of = dtype(source)
    targets = [t for t in DTYPES.values() if t is not of and (t.is_complex or not of.is_complex)]
    _same([("cast", to) for to in targets], of, [_numbers(of)])


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
