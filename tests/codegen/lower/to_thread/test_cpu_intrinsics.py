"""Tensorized matmuls use the tensor instructions of the CPU in all tails, and are exact."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm import assembly, compile_text, emit_module
from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.codegen.lower.to_thread.cpu_intrinsics import IntrinsicMismatchError
from tilewright.ir.interpreter import run_prim
from tilewright.ir.interpreter.rounding import gamma
from tilewright.ir.kernel_errors import MissingInstructionError
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.thread.nodes import Fma, MachineOp, Select, Stmt
from tilewright.schedules.replay import TraceMismatchError
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.features import UnsupportedPlatformError
from tilewright.target.host import require_runnable
from tilewright.target.target import Target

from tests.codegen.kernels import Kernel, load
from tests.codegen.tensorized import EXAMPLES, Example


def runnable(target: Target) -> bool:
    """Return whether this machine can run code for a target."""
    try:
        require_runnable(target)
    except UnsupportedPlatformError:
        return False
    return True


HERE = [name for name, example in EXAMPLES.items() if runnable(example.target)]
"""The examples that this machine can run; all are compiled."""

INSTRUCTION = {
    "fma-avx512": ("vfmadd",),
    "fma-avx2": ("vfmadd",),
    "vnni": ("vpdpbusd",),
    "vnni-signed": ("vpdpbusd",),
    "dot-avx2": ("vpmaddwd",),
    "dot-avx2-signed": ("vpmaddwd",),
    "bf16": ("vdpbf16ps",),
    "sdot": ("sdot",),
}
BYTES = [n for n in HERE if "dot" in n or "vnni" in n]
DTYPES = {"f32": np.float32, "u8": np.uint8, "i8": np.int8, "i32": np.int32,
          "bf16": ml_dtypes.bfloat16}  # fmt: skip


@cache
def function(name: str):
    return EXAMPLES[name].scheduled().module.prims[0]


def compiled(func: PrimFunc, target: Target, artifact: LoweredKernel | None = None) -> Kernel:
    artifact = artifact or lower_kernel(func, target)
    text = emit_module([artifact.function], target)
    engine, address = load(artifact.name, text, target)
    return Kernel(func, artifact, text, target, engine, address)


@cache
def lowered(name: str) -> LoweredKernel:
    return lower_kernel(function(name), EXAMPLES[name].target)


@cache
def kernel(name: str) -> Kernel:
    return compiled(function(name), EXAMPLES[name].target, lowered(name))


def operands(name: str, shape: tuple[int, int, int], seed: int):
    """Return random operands, and a result array filled with a marker."""
    m, n, k = shape
    rng = np.random.default_rng(seed)
    left, right, out = (DTYPES[b.dtype.name] for b in function(name).buffer_params)
    made = []
    for dtype, size in ((left, (m, k)), (right, (k, n))):
        if np.issubdtype(dtype, np.integer):
            bounds = np.iinfo(dtype)
            made.append(rng.integers(bounds.min, bounds.max, size, dtype, endpoint=True))
        else:
            made.append(rng.standard_normal(size).astype(dtype))
    return *made, np.full((m, n), 77, out)


def check(a, b, c) -> None:
    """Compare sums with exact sums: integers exactly, others within k roundings to f32."""
    if c.dtype == np.int32:
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
        return
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    # Products of bfloat16 are exact in f32, those of f32 inside a fused multiply-add; so each of
    # the k additions rounds once. vdpbf16ps flushes values below 2**-126 to zero.
    k = a.shape[1]
    bound = gamma(k) * (np.abs(wide_a) @ np.abs(wide_b)) + k * 2.0**-126
    assert np.all(np.abs(c - wide_a @ wide_b) <= bound)


def run(name: str, shape: tuple[int, int, int], seed: int = 0) -> None:
    a, b, c = operands(name, shape, seed)
    assert kernel(name)(a, b, c) == 0
    check(a, b, c)


def tile(name: str) -> tuple[int, int]:
    rows, columns = EXAMPLES[name].steps.split(".")[-1].split('"')[0].split("x")
    return int(rows), int(columns)


def instructions(name: str) -> int:
    """Return the instructions of one tile per number of rows, for full and partial columns."""
    rows, columns = tile(name)
    lanes = 4 if name == "sdot" else 8 if "avx2" in name else 16
    return 2 * (columns // lanes) * sum(range(1, rows + 1))


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("every_level")
def test_every_instruction_is_reached_from_the_naive_program(name: str) -> None:
    example = EXAMPLES[name]
    text = emit_module([lowered(name).function], example.target)
    assert compile_text(text, example.target)[:4] == b"\x7fELF"
    names = [x.split()[0] for x in assembly(text, example.target).splitlines() if x.strip()]
    found = sum(n.startswith(INSTRUCTION[name]) for n in names)
    assert found >= instructions(name)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("every_level")
def test_no_tail_falls_back_to_loops(name: str) -> None:
    artifact = lowered(name)
    each = (
        2 if name == "vnni-signed" else 1
    )  # The correction for the offset 128 is an instruction that LLVM shares.
    assert sum(1 for _ in performed(artifact.function.body)) == each * instructions(name)


def performed(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield the statements of the tensor instructions."""
    for statement in body:
        value = getattr(statement, "value", None)
        if isinstance(value, Select):
            value = value.then
        if isinstance(statement, MachineOp) or isinstance(value, Fma):
            yield statement
        for field in ("body", "then", "otherwise"):
            yield from performed(getattr(statement, field, None) or ())


@pytest.mark.parametrize("name", HERE)
def test_all_tails_of_rows_and_columns(name: str) -> None:
    rows, columns = tile(name)
    rng = random.Random(name)
    for m in range(1, 2 * rows + 2):
        run(name, (m, rng.randint(1, 2 * columns + 3), rng.randint(1, 9)), m)
    for n in (*range(1, columns + 2), 2 * columns, 2 * columns + 1):
        run(name, (rng.randint(1, rows + 2), n, rng.randint(1, 9)), n)


@pytest.mark.parametrize("name", HERE)
def test_random_shapes(name: str, fuzz_factor: int) -> None:
    rng = random.Random(f"shapes of {name}")
    for seed in range(12 * fuzz_factor):
        run(name, (rng.randint(1, 70), rng.randint(1, 150), rng.randint(1, 300)), seed)


@pytest.mark.parametrize("name", HERE)
def test_compiled_equals_interpreted(name: str) -> None:
    rows, columns = tile(name)
    for shape in ((rows + 1, columns + 1, 5), (1, 3, 2), (2, columns, 1)):
        a, b, c = operands(name, shape, 5)
        if c.dtype != np.int32:  # Small integers, so that sums are exact in every order.
            a, b = (np.round(x.astype(np.float32) * 4).astype(x.dtype) for x in (a, b))
        expected = np.empty_like(c)
        run_prim(function(name), [a, b, expected])
        assert kernel(name)(a, b, c) == 0
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 257])
def test_extreme_bytes_do_not_saturate(name: str, k: int) -> None:
    a, b, c = operands(name, (rows := tile(name)[0] + 1, 40, k), 0)
    low, high = np.iinfo(a.dtype).min, np.iinfo(a.dtype).max
    for left in (low, high):
        for right in (-128, 127):
            a[:], b[:] = left, right
            assert kernel(name)(a, b, c) == 0
            assert np.all(c == k * left * right), (rows, left, right)


@pytest.mark.parametrize("name", BYTES)
def test_sums_wrap(name: str) -> None:
    k = 70_000  # 255 * 127 * 70000 > 2 ** 31
    a, b, c = operands(name, (2, 3, k), 0)
    a[:], b[:] = np.iinfo(a.dtype).max, 127
    assert kernel(name)(a, b, c) == 0
    exact = k * int(a[0, 0]) * 127
    assert np.all(c == (exact + 2**31) % 2**32 - 2**31)


IN_PLACE = """
@prim_func
def matmul(A: Buffer[(5, 3), f32], B: Buffer[(3, 37), f32], C: Out[(5, 37), f32]):
    for i in range(5):
        for j in range(37):
            for k in range(3):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

IN_PLACE_STEPS = """
mm = sch.get_block("mm")
i, j, k = sch.get_loops(mm)
i0, i1 = sch.split(i, (None, 6))
j0, j1 = sch.split(j, (None, 16))
sch.reorder((i0, j0, k, i1, j1))
init = sch.decompose_reduction(mm, k)
sch.tensorize(i1, "avx2.fma.f32.6x16")
"""


def test_columns_out_of_bounds_are_not_written() -> None:
    target = Target("cpu", features=("avx2",))
    func = Example(IN_PLACE, IN_PLACE_STEPS, target).scheduled().module.prims[0]
    artifact = lower_kernel(func, target)
    assert list(performed(artifact.function.body))
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 9, (5, 3)).astype("f4"), rng.integers(-9, 9, (3, 37)).astype("f4")
    room = np.full(5 * 37 + 32, 77, "f4")
    c = room[: 5 * 37].reshape(5, 37)
    assert compiled(func, target)(a, b, c) == 0
    np.testing.assert_array_equal(c, a @ b)
    assert np.all(room[5 * 37 :] == 77)


PACKED = [("vnni", "avx512.pack.i8.32x4"), ("vnni-signed", "avx512.pack.i8.32x4"),
          ("bf16", "avx512.pack.bf16.32x2"), ("dot-avx2", "avx2.pack.i8.16x2")]  # fmt: skip


@pytest.mark.parametrize(("name", "pack"), [p for p in PACKED if p[0] in HERE])
@pytest.mark.parametrize("columns", [None, 40])
def test_packing_interleaves_rows_in_all_tails(name: str, pack: str, columns: int | None) -> None:
    text = EXAMPLES[name].program.replace("K)", "12)").replace("(K", "(12")
    if columns is not None:
        text = text.replace("N)", f"{columns})")
    declared = "M, N" if columns is None else "M"
    text = text.replace('M, N, K = symbols("M N K"', f'{declared} = symbols("{declared}"')
    func = with_default_schedule(parse(text), EXAMPLES[name].target).prims[0]
    assert f'intrinsic="{pack}"' in to_text(Module().with_functions(func))
    run_it = compiled(func, EXAMPLES[name].target)
    for n in (columns,) if columns else (*range(1, 35), 64, 70):
        a, b, c = operands(name, (3, n, 12), n)
        assert run_it(a, b, c) == 0
        check(a, b, c)


@pytest.mark.parametrize(
    ("name", "target", "lacking"),
    [
        ("vnni", Target("cpu", features=("avx2",)), "avx512vnni"),
        ("bf16", Target("cpu", features=("avx512",)), "avx512bf16"),
        ("fma-avx512", Target("cpu", features=("avx2",)), "avx512f"),
        ("sdot", Target("cpu"), "aarch64, dotprod"),
        ("sdot", Target("cpu", arch="aarch64"), "dotprod"),
        ("fma-avx2", Target("cpu", arch="aarch64"), "fma"),
        ("vnni", Target("simt"), "avx512vnni"),
        ("vnni", Target("cuda"), "avx512vnni"),
    ],
    ids=str,
)
def test_an_instruction_of_another_target_is_refused_when_compiling(name, target, lacking) -> None:
    with pytest.raises(
        MissingInstructionError, match=f"requires {lacking}, which target"
    ) as caught:
        tw.compile(EXAMPLES[name].scheduled().module, target)
    assert "block 'mm_o' of function 'matmul'" in str(caught.value)


@pytest.mark.parametrize(("name", "other"), [("vnni", "dot-avx2"), ("sdot", "vnni-signed")])
def test_an_instruction_of_another_target_is_refused_when_scheduling(name, other) -> None:
    example = Example(EXAMPLES[name].program, EXAMPLES[name].steps, EXAMPLES[other].target)
    with pytest.raises(TraceMismatchError, match="supported_by_target"):
        example.scheduled()


def test_a_block_that_does_not_match_its_instruction_is_rejected() -> None:
    text = to_text(EXAMPLES["vnni"].scheduled().module)
    changed = text.replace("i32(A_pad[vi, vk]) * i32(", "i32(A_pad[vi, vk]) + i32(")
    assert changed != text
    with pytest.raises(
        IntrinsicMismatchError, match=r"'mm_o' no longer matches instruction avx512vnni\.dot"
    ):
        lower_kernel(parse(changed).prims[0], EXAMPLES["vnni"].target)
