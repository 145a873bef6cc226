"""Packed elements: loads extract bits, stores change them, vectors of whole bytes do so at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import call_prim
from tilewright.ir.packing import PackedArray
from tilewright.ir.thread.nodes import Binary, Gather, Load, Store
from tilewright.ir.thread.visit import statement_values, walk, walk_values

from tests.codegen.kernels import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

AVX2 = tw.Target("cpu", features=("avx2",))
HOST, SIMT = tw.Target("cpu"), tw.Target("simt")

COPY = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), {dtype}], y: Out[(n,), {dtype}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = max(x[vi] * x[vi], x[vi]) + {dtype}(1)
"""

ROWS = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(5, n), {dtype}], y: Out[(5, n), {dtype}], z: Out[(n, 5), f32]):
    for i in range(5):
        for j in range(n):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, n - 1 - vj] + x[vi, 0]
    for p in range(n):
        for q in range(5):
            with block("z"):
                vi, vj = spatial(p), spatial(q)
                z[vi, vj] = f32(x[vj, vi])
"""

IN_PLACE = """
n = symbols("n", lower=0)
@prim_func
def f(x: InOut[(n,), i4]):
    for i in range(ceildiv(n, 2)):
        with block("x"):
            vi = spatial(i)
            x[2 * vi] = x[2 * vi] + i4(3)
"""


def data(name: str, *shape: int) -> np.ndarray:
    row = dtype(name)
    rng = np.random.default_rng(sum(shape))
    if row.is_float:
        return rng.integers(-4, 5, shape).astype(row.numpy)
    return rng.integers(row.lowest, row.highest + 1, shape).astype(row.numpy)


def vectors(sch: tw.Schedule, *names: str) -> None:
    for name in names:
        _, inner = sch.split(sch.get_loops(name)[-1], (None, 16))
        sch.vectorize(inner)


def threads(sch: tw.Schedule) -> None:
    outer, inner = sch.split("i", (None, 16))
    outer, middle = sch.split(outer, (None, 4))
    sch.bind(outer, "blockIdx.x")
    sch.bind(middle, "threadIdx.x")
    sch.vectorize(inner)


def check(
    text: str,
    schedule: Callable[[tw.Schedule], object],
    target: tw.Target,
    inputs: list[list[np.ndarray]],
) -> None:
    module = tw.parse(text)
    sch = tw.Schedule(module, target=target)
    schedule(sch)
    run = tw.compile(sch, target)["f"]
    for given in inputs:
        wanted = call_prim(module.prims[0], given)
        found = run(*(a.copy() for a in given))
        for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            assert np.array_equal(got.astype(np.float64), want.astype(np.float64))


SIZES = (0, 1, 2, 3, 7, 16, 17, 33, 64, 131)


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
@pytest.mark.parametrize("target", [AVX2, HOST, SIMT], ids=["avx2", "host", "simt"])
def test_vectors_of_packed_elements_agree_with_the_interpreter(
    name: str, target: tw.Target
) -> None:
    schedule = threads if target.is_gpu else lambda sch: vectors(sch, "y")
    check(COPY.format(dtype=name), schedule, target, [[data(name, n)] for n in SIZES])


@pytest.mark.parametrize("name", ["i4", "u2"])
@pytest.mark.parametrize("names", [(), ("y", "z")], ids=["scalar", "vectors"])
def test_elements_anywhere_in_a_byte_agree_with_the_interpreter(
    name: str, names: tuple[str, ...]
) -> None:
    inputs = [[data(name, 5, n)] for n in SIZES]
    check(ROWS.format(dtype=name), lambda sch: vectors(sch, *names), HOST, inputs)


def test_a_store_keeps_the_other_elements_of_its_byte() -> None:
    check(
        IN_PLACE, lambda sch: vectors(sch, "x"), HOST, [[data("i4", n)] for n in (0, 1, 2, 5, 33)]
    )


def test_whole_bytes_are_loaded_and_stored_at_once() -> None:
    sch = tw.Schedule(tw.parse(COPY.format(dtype="i4")))
    vectors(sch, "y")
    body = lower_kernel(sch.module.prims[0], AVX2).function.body
    found = list(walk(body))
    stores = [s for s in found if isinstance(s, Store)]
    values = [v for s in found for v in walk_values(statement_values(s))]
    loads = [v for v in values if isinstance(v, Load | Gather)]
    wide = [v for v in (*stores, *loads) if _lanes(v) == 8]
    assert any(isinstance(v, Store) for v in wide)
    assert any(isinstance(v, Load) for v in wide)


def _lanes(access: Store | Load | Gather) -> int:
    of = access.value.type if isinstance(access, Store) else access.type
    return of.lanes


def test_packed_arguments_are_read_and_written_without_a_copy() -> None:
    run = tw.compile(tw.parse(IN_PLACE), HOST)["f"]
    x = PackedArray.of(np.array([1, 2, 3, 4, 5]), "i4")
    data_before = x.data
    run(x)
    assert x.data is data_before
    assert x.unpack().astype(int).tolist() == [4, 2, 6, 4, -8]


def test_arrays_with_one_element_per_item_are_written_in_place() -> None:
    run = tw.compile(tw.parse(IN_PLACE), HOST)["f"]
    x = np.array([1, 2, 3], dtype("i4").numpy)
    result = run(x)
    assert x.astype(int).tolist() == [4, 2, 6]
    assert result is x


def test_an_array_of_another_dtype_is_rejected_by_name() -> None:
    run = tw.compile(tw.parse(IN_PLACE), HOST)["f"]
    with pytest.raises(tw.TilewrightError, match="expected dtype i4, got i8"):
        run(np.zeros(4, np.int8))
    with pytest.raises(tw.TilewrightError, match="expected dtype i4, got u4"):
        run(PackedArray.of(np.zeros(4, np.int8), "u4"))
    frozen = np.zeros(4, dtype("i4").numpy)
    frozen.flags.writeable = False
    with pytest.raises(tw.TilewrightError, match="read-only"):
        run(frozen)


INT4 = """
m, g = symbols("m g", lower=0)
n = symbols("n", lower=0, multiple_of=2)
@prim_func
def f(x: Buffer[(m, g * 32), f32], w: Buffer[(g * 32, n), i4], s: Buffer[(g, n), f32],
      y: Out[(m, n), f32]):
    for i in range(m):
        for j in range(n):
            for k in range(g * 32):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init():
                        y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * (f32(w[vk, vj]) * s[vk // 32, vj])
"""

FP8 = """
m, n, k = symbols("m n k", lower=0)
@prim_func
def f(x: Buffer[(m, k), f32], w: Buffer[(k, n), f8_e4m3], s: Buffer[(n,), f32],
      y: Out[(m, n), f32]):
    for i in range(m):
        for j in range(n):
            for r in range(k):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init():
                        y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * (f32(w[vk, vj]) * s[vj])
"""


def columns(sch: tw.Schedule) -> None:
    """Run vectors across the columns, or one thread per pair of columns."""
    i, j, k = sch.get_loops("y")
    if sch.state.target is not None and sch.state.target.is_gpu:
        j, _ = sch.split(j, (None, 2))
        j, lane = sch.split(j, (None, 16))
        sch.bind(i, "blockIdx.y")
        sch.bind(j, "blockIdx.x")
        sch.bind(lane, "threadIdx.x")
        return
    j, inner = sch.split(j, (None, 16))
    sch.reorder(k, inner)
    sch.vectorize(inner)


@pytest.mark.parametrize("target", [AVX2, HOST, SIMT], ids=["avx2", "host", "simt"])
def test_a_product_with_grouped_4_bit_weights_agrees_with_the_interpreter(
    target: tw.Target,
) -> None:
    sizes = ((0, 1, 2), (1, 1, 2), (1, 0, 4), (3, 2, 10), (4, 1, 32), (2, 3, 34))
    inputs = [
        [data("f32", m, g * 32), data("i4", g * 32, n), data("f32", g, n)] for m, g, n in sizes
    ]
    check(INT4, columns, target, inputs)


@pytest.mark.parametrize("target", [AVX2, HOST, SIMT], ids=["avx2", "host", "simt"])
def test_a_product_with_8_bit_floats_agrees_with_the_interpreter(target: tw.Target) -> None:
    sizes = ((0, 1, 1), (1, 1, 1), (1, 0, 5), (3, 7, 4), (4, 33, 9), (2, 16, 17))
    inputs = [[data("f32", m, k), data("f8_e4m3", k, n), data("f32", n)] for m, k, n in sizes]
    check(FP8, columns, target, inputs)


def test_products_with_narrow_weights_have_default_schedules() -> None:
    for text, sizes in ((INT4, (3, 64, 10)), (FP8, (3, 7, 4))):
        m, k, n = sizes
        narrow = data("i4" if text is INT4 else "f8_e4m3", k, n)
        scale = data("f32", k // 32, n) if text is INT4 else data("f32", n)
        given = [data("f32", m, k), narrow, scale]
        module = tw.parse(text)
        (want,) = call_prim(module.prims[0], given)
        assert np.array_equal(tw.compile(module, HOST)["f"](*given), want)


TRANSPOSED = """
m, n = symbols("m n", lower=0)
k = symbols("k", lower=1)
@prim_func
def f(x: Buffer[(m, k), f32], w: Buffer[(n, k), i2], y: Out[(m, n), f32]):
    for i in range(m):
        for j in range(n):
            for r in range(k):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init():
                        y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * f32(w[vj, vk])
"""


def test_the_default_schedule_does_not_copy_packed_weights_in_parallel() -> None:
    """Threads that write columns of packed panels would share bytes; warnings are errors here."""
    run = tw.compile(tw.parse(TRANSPOSED), HOST)["f"]
    for m, n, k in ((0, 2, 1), (2, 5, 11), (17, 35, 9)):
        x, w = data("f32", m, k), data("i2", n, k)
        assert np.array_equal(run(x, w), x @ w.astype(np.float32).T)


PARTS = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n, 16, {per}), {dtype}], y: Out[(n, {per}, 16), f32]):
    for i in range(n):
        for p in range({per}):
            for j in range(16):
                with block("y"):
                    vi, vp, vj = spatial(i), spatial(p), spatial(j)
                    y[vi, vp, vj] = f32(x[vi, vj, vp])
"""


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2"])
@pytest.mark.parametrize("target", [AVX2, HOST, SIMT], ids=["avx2", "host", "simt"])
def test_elements_at_one_bit_of_adjacent_bytes_are_converted_as_a_vector(
    name: str, target: tw.Target
) -> None:
    def parts(sch: tw.Schedule) -> None:
        i, p, j = sch.get_loops("y")
        if target.is_gpu:
            sch.bind(i, "blockIdx.x")
        sch.unroll(p)
        sch.vectorize(j)

    per = dtype(name).per_byte
    text = PARTS.format(dtype=name, per=per)
    check(text, parts, target, [[data(name, n, 16, per)] for n in (0, 1, 5)])
    if target is AVX2:
        sch = tw.Schedule(tw.parse(text), target=target)
        parts(sch)
        found = list(walk(lower_kernel(sch.module.prims[0], target).function.body))
        values = [v for s in found for v in walk_values(statement_values(s))]
        assert not any(isinstance(v, Gather) for v in values)
        assert any(isinstance(v, Load) and _lanes(v) == 16 for v in values)
        assert not any(isinstance(v, Binary) and v.op == "shr" for v in values)


ODD = """
constant("w", ({k}, {n}), {dtype})
constant("s", ({n},), f32)
m = symbols("m", lower=0)

@graph_func
def main(x: Tensor[(m, {k}), f32]):
    d = dequantize_linear(const("w"), const("s"), axis=1)
    y = matmul(x, d)
    return y
"""
TARGETS = (*(tw.Target("cpu", features=(level,)) for level in LEVELS), tw.Target("simt"))


@pytest.mark.parametrize("target", TARGETS, ids=[*LEVELS, "simt"])
@pytest.mark.parametrize("name", ["i4", "u2"])
def test_the_last_byte_of_weights_is_not_full(name: str, target: tw.Target) -> None:
    row = dtype(name)
    for k, n in ((1, 1), (3, 5), (7, 1), (17, 35)):
        rng = np.random.default_rng(k * n)
        w = rng.integers(row.lowest, row.highest + 1, (k, n)).astype(row.numpy)
        s = rng.integers(1, 4, n).astype(np.float32)
        text = ODD.format(k=k, n=n, dtype=name)
        run = tw.compile(tw.parse(text, constants={"w": w, "s": s}), target)
        for m in (0, 1, 3, 15):
            x = rng.integers(-3, 4, (m, k)).astype(np.float32)
            np.testing.assert_array_equal(run(x), x @ (w.astype(np.float32) * s))
