"""Elements and programs on AArch64, RISC-V, and WebAssembly equal the interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import DTYPES, DType, bool_, f16, f32, f64, u32, u64
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.target.target import Target

from tests.amounts import amount
from tests.codegen.functions import (
    SPECIAL,
    UNARY,
    apply,
    elementwise,
    error_in_ulps,
    program,
    reference,
    sample,
)
from tests.codegen.kernels import LEVELS
from tests.codegen.lower.elsewhere import Arrays, Kernels
from tests.codegen.lower.programs_elsewhere import PROGRAMS, RUNS, SIZES, check, inputs
from tests.codegen.lower.to_thread.test_element_values import (
    BY_NAME,
    FLOATS,
    INTEGERS,
    all_pairs,
    edges,
)

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc

pytestmark = pytest.mark.slow

ROUNDING = ("floor", "ceil", "round", "trunc", "isnan", "isinf", "neg", "abs", "sign")
PAIRS = ("fmod", "copysign", "nextafter")
FLOAT_BINARY = ("add", "sub", "mul", "div", "min", "max", "lt", "le", "eq", "ne", "mod", "floordiv")


def _with_extremes(dtype: DType) -> np.ndarray:
    x = edges(dtype)
    if not dtype.is_float:
        return x
    more = np.array([-129.5, 127.5, 255.9, 2e9, -3e9, 1e19, 0.5, 1.5, -0.5])
    with np.errstate(all="ignore"):
        return np.concatenate([x, more.astype(dtype.numpy)])


def _cases() -> dict[str, tuple[tuple[tuple[str, DType], ...], DType, Arrays]]:
    """Return functions by name: operations, dtype of the operands, and operands."""
    found = {}
    real = [t for t in DTYPES.values() if not t.is_complex]
    for t in INTEGERS:
        ops = (*BY_NAME, "div", "pow", "fmod")
        found[f"integers_{t}"] = (tuple((op, t) for op in ops), t, [*all_pairs(t)])
        bits = [op for op in ("bitnot", "popcount", "clz", "ctz") if FUNCTIONS[op].accepts(t)]
        found[f"bits_{t}"] = (tuple((op, t) for op in bits), t, [edges(t)])
    for t in FLOATS:
        found[f"floats_{t}"] = (tuple((op, t) for op in FLOAT_BINARY), t, [*all_pairs(t)])
        x, y = all_pairs(t)
        found[f"pairs_{t}"] = (tuple((op, t) for op in PAIRS), t, [x, y])
        found[f"ldexp_{t}"] = ((("ldexp", t),), t, [x, np.arange(x.size, dtype=np.int32) * 7 - 900])
        if t is not f64:  # WebAssembly has no fused multiply-add
            found[f"fma_{t}"] = ((("fma", t),), t, [x, y, np.roll(x, 7)])
        found[f"rounding_{t}"] = (tuple((op, t) for op in ROUNDING), t, [_with_extremes(t)])
    for t in (u32, u64):
        found[f"random_{t}"] = ((("random_bits", t),), t, [*all_pairs(t)])
    truth = ("and", "or", "xor", "add", "mul", "min", "max", "eq", "ne")
    found["truth"] = (tuple((op, bool_) for op in truth), bool_, [*all_pairs(bool_)])
    for t in real:
        casts = tuple(("cast", to) for to in real)
        found[f"cast_{t}"] = (casts, t, [_with_extremes(t)])
    return found


CASES = _cases()
VECTOR_BITS = 128
"""The width of a vector of operands; results of other dtypes require several, or a part of one."""


def _lanes(dtype: DType) -> int:
    return 4 if dtype.is_packed else VECTOR_BITS // dtype.compute.bits


ANGLES = (np.arange(-6366, 6367) * (np.pi / 2)).astype(np.float32)
ANGLES = ANGLES[np.abs(ANGLES) <= 1e4][:: amount(16, 1)]
SINGLE = np.concatenate([sample(7, amount(4_000_037, 400_009)), SPECIAL, ANGLES])
DOUBLE = np.concatenate([np.random.default_rng(3).uniform(-8, 8, 800), np.linspace(-1, 1, 201)])
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def _beside_ties() -> np.ndarray:
    """Return singles halfway between any two halves, and their neighbors."""
    finite = np.unique(HALVES[np.isfinite(HALVES)].astype(np.float32))
    ties = np.append((finite[1:] + finite[:-1]) / 2, np.float32([65520, -65520, 1e-8, -3e38]))
    return np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])


CONVERSIONS = {
    "every_half": ((("cast", f32),), f16, [HALVES]),
    "beside_ties": ((("cast", f16),), f32, [_beside_ties().astype(np.float32)]),
}
MATH = {
    f"{op}_{of}": (((op, of),), of, [x]) for op in UNARY for of, x in ((f32, SINGLE), (f64, DOUBLE))
}


@pytest.fixture(scope="module", params=["aarch64", "riscv64", "wasm32"])
def results(request, tmp_path_factory) -> dict[str, Arrays]:
    """The results of all cases, from one program, because linking takes seconds."""
    every = CASES | CONVERSIONS | MATH
    functions = [
        program(o, t, len(arrays), name, _lanes(t)) for name, (o, t, arrays) in every.items()
    ]
    kernels = Kernels.lowered(functions, Target("cpu", arch=request.param))
    run = kernels.link(tmp_path_factory.mktemp(request.param))
    return run({name: arrays for name, (_, _, arrays) in every.items()})


@pytest.mark.parametrize("name", CASES)
def test_edges(name: str, results: dict[str, Arrays]) -> None:
    ops, dtype, arrays = CASES[name]
    function = program(ops, dtype, len(arrays), name)
    expected = [np.empty_like(a) for a in results[name]]
    with np.errstate(all="ignore"):
        run_prim(function, [*arrays, *expected])
        for (op, to), found, wanted in zip(ops, results[name], expected, strict=True):
            wide = (found.astype(np.float64), wanted.astype(np.float64))
            np.testing.assert_array_equal(*wide, f"{op} {to}")


@pytest.mark.parametrize("name", CONVERSIONS)
def test_halves_are_converted_and_rounded(name: str, results: dict[str, Arrays]) -> None:
    ((_, to),), _, (x,) = CONVERSIONS[name]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(results[name][0], x.astype(to.numpy))


@pytest.mark.parametrize("op", UNARY)
def test_math_within_two_units(op: str, results: dict[str, Arrays]) -> None:
    x, found = SINGLE, results[f"{op}_f32"][0]
    error = error_in_ulps(found, reference(op, x))
    assert error.max() <= FUNCTIONS[op].ulps(f32), x[np.argmax(error)]


@pytest.mark.parametrize("op", UNARY)
def test_math_in_double_precision(op: str, results: dict[str, Arrays]) -> None:
    found = results[f"{op}_f64"][0]
    expected = apply(elementwise(op, f64), DOUBLE)
    root = 4e-15 if op in ("lgamma", "digamma") else 0
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=root)


@pytest.mark.parametrize("kind", [*LEVELS, "simt"])
@pytest.mark.parametrize("function", PROGRAMS.prims, ids=lambda f: f.name)
def test_programs_in_this_process(function: PrimFunc, kind: str) -> None:
    target = tw.Target("simt") if kind == "simt" else tw.Target("cpu", features=(kind,))
    run = tw.compile(tw.parse(str(function)), target)
    for size in SIZES:
        check(function.name, size, run(*inputs(function, size)))


@pytest.fixture(scope="module", params=["aarch64", "riscv64", "wasm32"])
def programs(request, tmp_path_factory):
    """The results of all cases on another processor, from one program."""
    made = [replace(PROGRAMS.prim(name), name=f"{name}_{size}") for name, size in RUNS]
    kernels = Kernels.lowered(made, tw.Target("cpu", arch=request.param))
    run = kernels.link(tmp_path_factory.mktemp(request.param))
    return run({f"{n}_{size}": inputs(PROGRAMS.prim(n), size) for n, size in RUNS})


@pytest.mark.parametrize(("name", "size"), RUNS)
def test_programs_on_other_processors(name: str, size: int, programs) -> None:
    check(name, size, programs[f"{name}_{size}"])
