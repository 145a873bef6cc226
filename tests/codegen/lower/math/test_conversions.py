"""Conversions of dtypes that no machine register holds, on every vector width and emulated."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import DTYPES, DType, bf16, dtype
from tilewright.ir.interpreter import call_prim
from tilewright.ir.narrowing import narrowed

FLOATS = [row for row in DTYPES.values() if row.is_float and not row.is_machine]
PACKED = [row for row in DTYPES.values() if row.is_packed]
TARGETS = {
    "avx2": tw.Target("cpu", features=("avx2",)),
    "host": tw.Target("cpu"),
    "simt": tw.Target("simt"),
}
OTHERS = ("f64", "f16", "bf16", "i8", "u32", "i64", "bool")


def program(expression: str, source: str, target: str) -> tw.ir.module.Module:
    return tw.parse(f"""
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), {source}], y: Out[(n,), {target}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = {expression}
""")


def compiled(module: tw.ir.module.Module, name: str):
    target = TARGETS[name]
    sch = tw.Schedule(module, target=target)
    outer, inner = sch.split("i", (None, 32))
    if target.is_gpu:
        sch.bind(outer, "blockIdx.x")
        inner, lanes = sch.split(inner, (None, 4))
        sch.bind(inner, "threadIdx.x")
        inner = lanes
    sch.vectorize(inner)
    return tw.compile(sch, target)["f"]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):
        left, right = (x.astype(np.float64) for x in (a, b))
    signs = np.signbit(left) == np.signbit(right)
    return np.array_equal(left, right, equal_nan=True) and bool((signs | np.isnan(left)).all())


def singles() -> np.ndarray:
    """Return singles of every exponent, with every rounding of the first bits of the fraction."""
    high = np.arange(0, 1 << 32, 1 << 16, dtype=np.uint64)
    bits = [high + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    return np.concatenate(bits).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("row", FLOATS, ids=str)
@pytest.mark.parametrize("target", ["avx2", "host"])
def test_singles_are_rounded_to_nearest_even(row: DType, target: str) -> None:
    x = singles()
    got = compiled(program(f"{row}(x[vi])", "f32", row.name), target)(x)
    with np.errstate(all="ignore"):
        assert same(got, x.astype(row.numpy))


@pytest.mark.parametrize("row", FLOATS, ids=str)
@pytest.mark.parametrize("target", list(TARGETS))
def test_every_value_is_converted_to_single_precision(row: DType, target: str) -> None:
    values = np.arange(1 << row.bits, dtype=row.register.numpy).view(row.numpy)
    got = compiled(program("f32(x[vi])", row.name, "f32"), target)(values)
    with np.errstate(invalid="ignore"):
        assert same(got, values.astype(np.float32))


@pytest.mark.parametrize("row", FLOATS, ids=str)
def test_doubles_are_rounded_once(row: DType) -> None:
    codes = np.arange(1 << (row.bits - 1), dtype=row.register.numpy).view(row.numpy)
    with np.errstate(invalid="ignore"):
        values = codes.astype(np.float64)
    ties = (values[:-1] + values[1:]) / 2
    x = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, 0), [1e300, -1e300]])
    got = compiled(program(f"{row}(x[vi])", "f64", row.name), "host")(x)
    assert same(got, narrowed(x, row))


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("source", ["i32", "u32", "i64", "u64"])
def test_integers_are_rounded_once(source: str, target: str) -> None:
    row, bits = dtype(source), dtype(source).bits
    powers = [1 << p for p in range(9, bits - 1)]
    ties = [low + odd * (low >> 7) + (low >> 8) for low in powers for odd in (0, 1)]
    x = np.array([t + step for t in ties for step in (-1, 0, 1)], row.numpy)
    x = np.concatenate([x, np.array([row.lowest, row.highest, 0, 1], row.numpy)])
    if row.kind == "int":
        x = np.concatenate([x, -x])
    got = compiled(program("bf16(x[vi])", source, "bf16"), target)(x)
    assert same(got, narrowed(x, bf16))


@pytest.mark.parametrize(
    ("row", "target"),
    [(row, "host") for row in (*FLOATS, *PACKED)]
    + [(row, name) for row in (*FLOATS[:1], *PACKED[:1]) for name in ("avx2", "simt")],
    ids=str,
)
def test_conversions_agree_with_the_interpreter(row: DType, target: str) -> None:
    rng = np.random.default_rng(7)
    body = [f"y{k}[vi] = {row}(x{k}[vi])" for k in range(len(OTHERS))]
    back = [f"z{k}[vi] = {other}(x[vi])" for k, other in enumerate(OTHERS)]
    params = [f"x{k}: Buffer[(n,), {o}], y{k}: Out[(n,), {row}]" for k, o in enumerate(OTHERS)]
    params += [f"z{k}: Out[(n,), {o}]" for k, o in enumerate(OTHERS)]
    lines = "".join(
        f"    for i{k} in range(n):\n        with block('b{k}'):\n"
        f"            vi = spatial(i{k})\n            {line}\n"
        for k, line in enumerate([*body, *back])
    )
    module = tw.parse(
        f'n = symbols("n", lower=0)\n@prim_func\ndef f(x: Buffer[(n,), {row}], '
        f"{', '.join(params)}):\n{lines}"
    )
    sch = tw.Schedule(module, target=TARGETS[target])
    for k in range(2 * len(OTHERS)):
        outer, inner = sch.split(f"i{k}", (None, 8))
        sch.vectorize(inner)
        if TARGETS[target].is_gpu:
            sch.bind(outer, "blockIdx.x")
    run = tw.compile(sch, TARGETS[target])["f"]
    codes = np.arange(1 << min(row.bits, 8), dtype=np.uint8)
    own = codes.view(row.numpy) if row.is_float else codes.astype(np.int8).astype(row.numpy)
    size = len(own)
    given = [own]
    for name in OTHERS:
        other = dtype(name)
        spread = rng.integers(-(2**20), 2**20, size) >> rng.integers(0, 20, size)
        values = spread * (rng.standard_normal(size) if other.is_float else 1)
        with np.errstate(all="ignore"):
            given.append(values.astype(other.numpy))
    wanted = call_prim(module.prims[0], given)
    for k, (got, want) in enumerate(zip(run(*given), wanted, strict=True)):
        assert same(got, want), (k, got, want)


@pytest.mark.parametrize("row", FLOATS, ids=str)
def test_constants_are_rounded_by_the_compiler(row: DType) -> None:
    run = compiled(program(f"{row}(0.3) + x[vi]", row.name, row.name), "host")
    zero = np.zeros(3, row.numpy)
    assert same(run(zero), narrowed(np.full(3, 0.3), row))


@pytest.mark.parametrize("target", ["host", "simt"])
def test_bits_of_an_element_are_reinterpreted(target: str) -> None:
    cases = [("f32", "i32"), ("f32", "u32"), ("i64", "f64"), ("f16", "u16"), ("bf16", "i16")]
    cases += [("i4", "u4"), ("u2", "i2"), ("f8_e4m3", "u8"), ("i8", "f8_e5m2")]
    cases += [("f8_e4m3", "f8_e5m2")]
    for source, to in cases:
        module = program(f"reinterpret(x[vi], {to})", source, to)
        row = dtype(source)
        raw = np.random.default_rng(3).integers(0, 256, 48 * row.alignment, dtype=np.uint8)
        x = raw.astype(np.int8).astype(row.numpy) if row.is_packed else raw.view(row.numpy)
        (want,) = call_prim(module.prims[0], [x])
        got = compiled(module, target)(x)
        assert got.tobytes() == want.tobytes(), (source, to)
