"""Contiguous accesses and shuffles in place of strided accesses: results, bounds, and counts."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.thread_passes.widen_strided_accesses import WidenStridedAccesses
from tilewright.ir.dtype import dtype as dtype_of, f32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import (
    Address,
    Assign,
    Gather,
    If,
    Index,
    Load,
    Predicate,
    Reg,
    Return,
    Scatter,
    Store,
    Unary,
)
from tilewright.ir.thread.text import to_text
from tilewright.ir.thread.types import POINTER, VectorType
from tilewright.ir.thread.visit import statement_values, walk, walk_values
from tilewright.target.target import Target

from tests.codegen.guarded_memory import GuardedMemory
from tests.codegen.kernels import LEVELS, build

AVX2, AVX512 = (Target("cpu", arch="x86_64", features=(x,)) for x in ("avx2", "avx512"))
SIZES = (0, 1, 2, 13, 64, 67)

PICKED = """
m = symbols("m", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(m,), {d}], y: Out[(ceildiv(m, {s}),), {d}]):
    for i in vectorized(ceildiv(m, {s})):
        with block("y"):
            v = spatial(ceildiv(m, {s}), i)
            y[v] = x[{index}]
"""
PERMUTED = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n, {s}), {d}], y: Out[(n, {s}), {d}]):
    for i in vectorized(n):
        with block("y"):
            v = spatial(n, i)
{stores}
"""
CONSTANT = """
@prim_func(scheduled=True)
def f(x: Buffer[({n}, {s}), {d}], y: Out[({n}, {s}), {d}]):
    for i in vectorized({n}):
        with block("y"):
            v = spatial({n}, i)
{stores}
"""
IN_PLACE = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: InOut[(n, 2), f32], w: Buffer[(n, 2), f32]):
    for i in vectorized(n):
        with block("x"):
            v = spatial(n, i)
            x[v, 0] = x[v, 1] - w[v, 0]
            x[v, 1] = x[v, 0] * w[v, 1]
"""
GUARDED = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in vectorized(n):
        with block("y"):
            v = spatial(n, i)
            y[v] = where(condition(v * 2 + 1 < n), x[v * 2] - x[v * 2 + 1], x[v])
"""
MASKED = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n, 2), f32], c: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in vectorized(n):
        with block("y"):
            v = spatial(n, i)
            y[v] = where(c[v] > 0.0, x[v, 0] * x[v, 1], 1.0)
"""


@pytest.fixture
def memory():
    """Memory with pages without access."""
    made = GuardedMemory()
    yield made
    made.close()


def stores(step, targets, sources):
    """Return stores of some columns of x to some columns of y."""
    pairs = zip(targets, sources, strict=True)
    return "\n".join(f"{'':12}y[v, {t}] = x[v, {s % step}]" for t, s in pairs)


def numbers(dtype, shape):
    return np.random.default_rng(1).integers(0, 100, shape).astype(dtype_of(dtype).numpy)


def check(kernel, memory, *arrays):
    """Check a kernel against the interpreter, with its arrays at both ends of the memory."""
    wanted = [a.copy() for a in arrays]
    symbols = kernel.symbols(arrays, {})
    run_prim(kernel.source, wanted, {v.name: n for v, n in symbols.items()})
    for at_end in (False, True):
        found = [memory.copy(a, at_end=at_end) for a in arrays]
        assert kernel(*found) == 0
        for have, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(have, want)
        memory.close()


def accesses(text, target=AVX512):
    """Return the number of gathers and scatters of a program."""
    function = lower_kernel(parse(text).prims[0], target).function
    found = [0, 0]
    for statement in walk(function.body):
        found[1] += isinstance(statement, Scatter) or (
            isinstance(statement, Store) and statement.stride is not None
        )
        for value in walk_values(statement_values(statement)):
            strided = isinstance(value, Load) and value.stride is not None
            found[0] += strided or isinstance(value, Gather)
    return tuple(found)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("dtype", "step"), [("f32", 2), ("f32", 3), ("f64", 4), ("u8", 3), ("f16", 2), ("f32", 5)]
)
def test_loads_at_a_distance_read_no_byte_beyond_the_buffer(memory, step, dtype, level):
    text = PICKED.format(d=dtype, s=step, index=f"v * {step}")
    assert (accesses(text) == (0, 0)) == (step < 5)
    kernel = build(parse(text).prims[0], level)
    for size in SIZES:
        count = -(-size // step)
        check(kernel, memory, numbers(dtype, size), np.zeros(count, numbers(dtype, 0).dtype))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("step", [1, 3])
def test_loads_in_reverse_order_read_no_byte_beyond_the_buffer(memory, step, level):
    text = PICKED.format(d="f32", s=step, index=f"m - 1 - v * {step}")
    assert accesses(text) == (0, 0)
    kernel = build(parse(text).prims[0], level)
    for size in SIZES:
        check(kernel, memory, numbers("f32", size), np.zeros(-(-size // step), np.float32))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("dtype", "step"), [("f64", 2), ("f32", 3), ("u8", 4)])
def test_all_elements_of_a_period_are_stored_together(memory, step, dtype, level):
    order = list(range(step))
    text = PERMUTED.format(d=dtype, s=step, stores=stores(step, order, order[::-1]))
    assert accesses(text) == (0, 0)
    kernel = build(parse(text).prims[0], level)
    for size in SIZES[:-1]:
        x = numbers(dtype, (size, step))
        check(kernel, memory, x, np.zeros_like(x))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("step", [2, 3])
def test_other_elements_of_a_period_keep_their_values(memory, step, level):
    order = [0, step - 1] if step > 2 else [1]
    text = PERMUTED.format(d="f32", s=step, stores=stores(step, order, order[::-1]))
    assert accesses(text, AVX512) == (0, 0)
    assert accesses(text, AVX2)[0] == 0 < accesses(text, AVX2)[1]
    kernel = build(parse(text).prims[0], level)
    for size in SIZES[:-1]:
        x = numbers("f32", (size, step))
        check(kernel, memory, x, np.full_like(x, 7))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("columns", [(0,), (1,), (3,), (0, 1), (2, 3), (0, 3), (1, 2, 3)])
@pytest.mark.parametrize("count", [2, 4])
def test_a_period_may_be_longer_than_the_vector(memory, count, columns, level):
    """Vectors of 2 and 4 lanes at a distance of 4 elements."""
    text = CONSTANT.format(n=count, d="f32", s=4, stores=stores(4, columns, columns[::-1]))
    assert accesses(text) == (0, 0)
    x = numbers("f32", (count, 4))
    check(build(parse(text).prims[0], level), memory, x, np.full_like(x, 7))


@pytest.mark.parametrize("dtype", ["f64", "i64", "c128", "f32"])
def test_a_target_whose_registers_contain_one_element(dtype):
    """A register of RISC-V without vectors contains 64 bits."""
    text = CONSTANT.format(n=4, d=dtype, s=2, stores=stores(2, (0, 1), (1, 0)))
    target = Target("cpu", arch="riscv64")
    function = lower_kernel(parse(text).prims[0], target).function
    assert compile_text(emit_module([function], target), target)[:4] == b"\x7fELF"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("count", [64, 73])
def test_vectors_of_several_registers(memory, count, level):
    text = CONSTANT.format(n=count, d="f32", s=3, stores=stores(3, (2, 1, 0), (0, 1, 2)))
    assert accesses(text) == (0, 0)
    x = numbers("f32", (count, 3))
    check(build(parse(text).prims[0], level), memory, x, np.zeros_like(x))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", [GUARDED, MASKED], ids=["guarded", "masked"])
def test_masked_loads(memory, text, level):
    assert accesses(text)[0] == 0
    kernel = build(parse(text).prims[0], level)
    for size in SIZES:
        x = numbers("f32", size) if text is GUARDED else numbers("f32", (size, 2))
        others = [] if text is GUARDED else [numbers("f32", size) - 50]
        check(kernel, memory, x, *others, np.zeros(size, np.float32))


@pytest.mark.parametrize("level", LEVELS)
def test_a_store_reads_the_result_of_an_earlier_store(memory, level):
    kernel = build(parse(IN_PLACE).prims[0], level)
    for size in SIZES:
        check(kernel, memory, numbers("f32", (size, 2)), numbers("f32", (size, 2)))


X, Y = Reg("x", POINTER), Reg("y", POINTER)
I = var("i", lower=0)
EIGHT = VectorType(f32, 8)
EIGHT_BYTES = as_expr(8)


def element(offset, base=X):
    """Return a load of every second element from an offset in bytes."""
    return Load(EIGHT, Address(base, I * 64 + offset, 4), EIGHT_BYTES)


def run(*body, distinct=(X, Y), target=AVX512):
    """Return the kernel with a body after the pass."""
    func = ThreadFunc("k", (X, Y, I), body, distinct=distinct)
    return WidenStridedAccesses().run(func, target)


def farthest(func):
    """Return the end of the last contiguous load in bytes."""
    values = [v for s in walk(func.body) for v in walk_values(statement_values(s))]
    loads = [v for v in values if isinstance(v, Load)]
    assert all(v.stride is None for v in loads)
    return max((v.address.offset - I * 64).value + v.type.width * v.type.lanes for v in loads)


def test_elements_that_may_not_exist_are_not_read():
    first, second = Assign(Reg("a", EIGHT), element(0)), Assign(Reg("b", EIGHT), element(4))
    leave = If(Predicate(I < 3), (Return(None),), ())
    assert farthest(run(first)) == 60
    assert farthest(run(first, second)) == 64
    assert farthest(run(first, If(Predicate(I < 3), (second,), ()))) == 64
    before_leaving = run(first, leave, second).body[0]
    assert farthest(run(before_leaving)) == 60


def test_a_guarded_access_is_not_executed_with_those_around():
    first, second = Assign(Reg("a", EIGHT), element(0)), Assign(Reg("b", EIGHT), element(4))
    around = run(first, If(Predicate(I < 3), (second,), ())).body[0]
    assert farthest(run(around)) == 60


def test_stores_that_may_conflict_remain_in_order():
    def pair(value):
        first = Store(Address(Y, I * 64, 4), Reg("a", EIGHT), EIGHT_BYTES)
        return first, Store(Address(Y, I * 64 + 4, 4), value, EIGHT_BYTES)

    def strided(func):
        return sum(isinstance(s, Store) and s.stride is not None for s in walk(func.body))

    gather = Gather(EIGHT, Y, Index(I + var("lane"), var("lane"), 8))
    assert strided(run(*pair(element(4, Y)), target=AVX2)) == 0
    assert strided(run(*pair(element(0, Y)), target=AVX2)) == 2
    assert strided(run(*pair(Unary("neg", gather)), target=AVX2)) == 2
    assert strided(run(*pair(element(0, X)), target=AVX2)) == 0
    assert strided(run(*pair(element(0, X)), distinct=(), target=AVX2)) == 2


def test_a_kernel_without_strided_accesses_is_unchanged():
    func = ThreadFunc("k", (X, I), (Assign(Reg("a", EIGHT), Load(EIGHT, Address(X, I * 32, 4))),))
    assert WidenStridedAccesses().run(func, AVX512) is func


def test_golden(golden):
    """The two stores of a rotation of pairs become contiguous ones."""
    text = PERMUTED.format(d="f32", s=2, stores=stores(2, (0, 1), (1, 0))).replace("n,", "8,")
    text = text.replace('n = symbols("n", lower=0)\n', "").replace("(n)", "(8)")
    func = lower_kernel(parse(text).prims[0], AVX2).function
    golden(
        "widen_strided_accesses.txt",
        f"{text}\n-- after widen_strided_accesses --\n\n{to_text(func)}\n",
    )
