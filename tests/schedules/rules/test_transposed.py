"""Transposes and blocks with a transposed operand: results at all sizes, and their tiles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import dtype as dtype_of
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.symbolic import evaluate
from tilewright.schedules.rules import with_default_schedule

from tests.codegen.guarded_memory import GuardedMemory
from tests.codegen.kernels import LEVELS, build

SIZES = (0, 1, 13, 16, 17, 65, 131)
SYMBOLS = 'n, m = symbols("n, m", lower=0)\n'
TRANSPOSE = """
@prim_func
def f(x: Buffer[({n}, {m}), {d}], y: Out[({m}, {n}), {d}]):
    for i in range({m}):
        for j in range({n}):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vj, vi]
"""
BODY = """
@prim_func
def f(x: {kind}[{shape}, f32], z: Buffer[(n, m), f32], b: Buffer[(m,), f32], y: Out[(n, m), {d}]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = {value}
"""
OPERANDS = {
    "one transposed operand": ("(m, n)", "x[vj, vi] * 2.0 + z[vi, vj] + b[vj]", "f32"),
    "a padded operand": (
        "(m, n)",
        "where(condition(vi >= 1 and vj + 2 < m), x[vj + 2, vi - 1], b[vj])",
        "f32",
    ),
    "a flattened operand": ("(m * n,)", "x[vj * n + vi] - z[vi, vj]", "f32"),
    "a reversed operand": ("(m, n)", "x[m - 1 - vj, vi] + z[vi, vj]", "f32"),
    "every second row": ("(m * 2, n)", "x[vj * 2 + 1, vi]", "f32"),
    "another dtype": ("(m, n)", "i8(x[vj, vi])", "i8"),
}
UNTILED = {
    "the same loop": ("(n, m)", "x[vi, vj] + b[vj]", "f32"),
    "a broadcast column": ("(1, n)", "x[0, vi] + z[vi, vj]", "f32"),
    "columns backwards": ("(n, m)", "x[vi, m - 1 - vj]", "f32"),
    "a diagonal": ("(1, n + m)", "x[0, vi + vj]", "f32"),
}
PERMUTED = {
    "reversed axes": ((7, 33, 18), (2, 1, 0)),
    "rows of heads": ((2, 19, 3, 20), (0, 2, 3, 1)),
    "heads": ((2, 19, 3, 20), (0, 2, 1, 3)),
    "image to channels": ((9, 10, 3), (2, 0, 1)),
    "channels to image": ((3, 9, 10), (1, 2, 0)),
    "a wide batch": ((5, 40, 70), (0, 2, 1)),
}


@pytest.fixture
def memory():
    """Memory with pages without access."""
    made = GuardedMemory()
    yield made
    made.close()


def cpu(level: str) -> tw.Target:
    return tw.Target("cpu", features=(level,))


def scheduled(text: str, level: str) -> PrimFunc:
    """Return the function of a program with its default schedule."""
    return with_default_schedule(tw.parse(text), cpu(level)).prim("f")


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Return integers that every dtype represents."""
    found = np.random.default_rng(seed).integers(0, 100, shape)
    return found.astype(dtype_of(dtype).numpy)


def mixed(case: tuple[str, str, str], kind: str = "Buffer") -> str:
    """Return a program of several operands."""
    shape, value, dtype = case
    return SYMBOLS + BODY.format(kind=kind, shape=shape, value=value, d=dtype)


def kinds(text: str, level: str = "avx512") -> list[tuple[str, str]]:
    """Return the loops of the block of a program after the rule: kinds and extents."""
    sch = tw.Schedule(tw.parse(text), cpu(level))
    sch.schedule_kernel("f")
    loops = [sch.state.loop(x) for x in sch.get_loops("y")]
    return [(x.kind, str(x.extent)) for x in loops]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["i8", "f16", "f32", "i64", "c64"])
def test_transposes_of_all_sizes(level: str, dtype: str, memory: GuardedMemory) -> None:
    kernel = build(scheduled(SYMBOLS + TRANSPOSE.format(n="n", m="m", d=dtype), level), level)
    for n, m in itertools.product(SIZES, SIZES):
        x = numbers(dtype, (n, m))
        for at_end in (False, True):
            given = memory.copy(x, at_end=at_end)
            made = memory.copy(np.zeros((m, n), x.dtype), at_end=at_end)
            assert kernel(given, made) == 0
            np.testing.assert_array_equal(made, x.T)
            memory.close()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["u8", "f64"])
@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (3, 70), (67, 63), (64, 331)])
def test_transposes_of_constant_size(level: str, dtype: str, shape: tuple[int, int]) -> None:
    n, m = shape
    kernel = build(scheduled(TRANSPOSE.format(n=n, m=m, d=dtype), level), level)
    x, y = numbers(dtype, shape), numbers(dtype, (m, n), 2)
    assert kernel(x, y) == 0
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [*OPERANDS, *UNTILED])
def test_blocks_of_several_operands(level: str, name: str) -> None:
    text = mixed({**OPERANDS, **UNTILED}[name])
    source = tw.parse(text).prim("f")
    kernel = build(scheduled(text, level), level)
    for n, m in ((0, 3), (3, 0), (1, 1), (5, 70), (16, 16), (37, 33), (70, 18)):
        sizes = {"n": n, "m": m}
        values = {v: sizes[v.name] for p in source.buffer_params for d in p.shape for v in d.free}
        shapes = [tuple(evaluate(d, values) for d in p.shape) for p in source.buffer_params]
        x, z, b, y = (numbers("f32", shape, k) for k, shape in enumerate(shapes))
        y = y.astype(dtype_of(source.buffer_params[-1].dtype).numpy)
        wanted = y.copy()
        run_prim(source, [x, z, b, wanted], sizes)
        assert kernel(x, z, b, y) == 0
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", PERMUTED)
def test_permuted_dimensions(name: str, symbolic: bool) -> None:
    shape, axes = PERMUTED[name]
    names = ", ".join(f"d{k}" for k in range(len(shape)))
    head = f'{names} = symbols("{names}", lower=0)\n' if symbolic else ""
    module = tw.parse(f"""{head}
@graph_func
def main(x: Tensor[({names if symbolic else ", ".join(map(str, shape))}), f32]):
    y = permute_dims(x, axes={axes})
    return y
""")
    x = numbers("f32", shape)
    np.testing.assert_array_equal(tw.compile(module)(x), x.transpose(axes))


@pytest.mark.parametrize("name", OPERANDS)
def test_transposed_operands_are_loaded_in_tiles(name: str) -> None:
    found = kinds(mixed(OPERANDS[name]))
    assert [kind for kind, _ in found][-2:] == ["serial", "vectorized"]
    assert [extent for _, extent in found][-2:] == ["16", "16"]
    assert found[0] == ("parallel", "ceildiv(n, 16)")


@pytest.mark.parametrize("name", UNTILED)
def test_other_operands_are_loaded_in_rows(name: str) -> None:
    expected = [("parallel", "n"), ("serial", "ceildiv(m, 16)"), ("vectorized", "16")]
    assert kinds(mixed(UNTILED[name])) == expected


@pytest.mark.parametrize(
    ("n", "m", "dtype", "extents"),
    [
        (128, 768, "f32", (48, 8, 16, 16)),
        (128, 768, "i8", (12, 2, 4, 64, 16)),
        (128, 768, "i16", (24, 4, 2, 32, 16)),
        (128, 768, "f64", (48, 8, 2, 16, 8)),
        (128, 768, "c128", (768, 32, 4)),  # no tiles of elements of 16 bytes
        (128, 64, "f32", (8, 64, 16)),  # short along the loads: all of the loop in a tile
        (128, 3, "f32", (8, 3, 16)),
        (40, 300, "i8", (5, 3, 64, 16)),
        (16, 768, "f32", (768, 16)),  # rows shorter than a tile
        (768, 1, "f32", (1, 48, 16)),
    ],
)
def test_extents_of_tiles(n: int, m: int, dtype: str, extents: tuple[int, ...]) -> None:
    found = kinds(TRANSPOSE.format(n=n, m=m, d=dtype))
    assert tuple(int(extent) for _, extent in found) == extents


def test_vectors_of_narrow_registers() -> None:
    text = TRANSPOSE.format(n=128, m=768, d="f32")
    assert [extent for _, extent in kinds(text, "avx2")] == ["48", "8", "2", "16", "8"]


def test_the_steps_of_a_transpose(golden) -> None:
    sch = tw.Schedule(tw.parse(SYMBOLS + TRANSPOSE.format(n="n", m="m", d="f32")), cpu("avx512"))
    sch.schedule_kernel("f")
    golden("transposed.txt", f"{sch}\n\n{sch.trace}")


def test_stores_along_an_outer_loop_are_vectorized() -> None:
    text = TRANSPOSE.replace("y[vi, vj] = x[vj, vi]", "y[vj, vi] = x[vi, vj]")
    text = text.replace("y: Out[({m}, {n})", "y: Out[({n}, {m})").replace(
        "x: Buffer[({n}, {m})", "x: Buffer[({m}, {n})"
    )
    text = text.format(n=128, m=768, d="f32")
    assert [extent for _, extent in kinds(text)] == ["48", "8", "16", "16"]
    kernel, x = build(scheduled(text, LEVELS[-1]), LEVELS[-1]), numbers("f32", (768, 128))
    y = np.zeros((128, 768), np.float32)
    assert kernel(x, y) == 0
    np.testing.assert_array_equal(y, x.T)


IN_PLACE = {
    "a matrix and its transpose": "x[vi, vj] = x[vj, vi] + 1.0",
    "adjacent rows": "x[vi, vj] = x[max(vi - 1, 0), vj] + z[vj, vi]",
    "its own elements": "x[vi, vj] = x[vi, vj] * 2.0 + z[vj, vi]",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_updates_in_place_keep_their_order(level: str, name: str) -> None:
    text = f"""
n = symbols("n", lower=0)

@prim_func
def f(x: InOut[(n, n), f32], z: Buffer[(n, n), f32]):
    for i in range(n):
        for j in range(n):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                {IN_PLACE[name]}
"""
    source, kernel = tw.parse(text).prim("f"), build(scheduled(text, level), level)
    for n in (0, 1, 2, 17, 40):
        x, z = numbers("f32", (n, n)), numbers("f32", (n, n), 2)
        wanted = x.copy()
        run_prim(source, [wanted, z], {"n": n})
        assert kernel(x, z) == 0
        np.testing.assert_array_equal(x, wanted)
    tiled = [extent for _, extent in kinds(text)][-2:] == ["16", "16"]
    assert tiled == (name == "its own elements")
