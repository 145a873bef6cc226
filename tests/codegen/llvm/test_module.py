"""The LLVM generator: text, control flow, calls, atomics, and errors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from llvmlite import binding

from tilewright.codegen.llvm import (
    CodeGenerationError,
    assembly,
    compile_text,
    emit_located,
    emit_module,
    instructions,
)
from tilewright.codegen.llvm.emitter import UnboundVariableError
from tilewright.codegen.llvm.processor import resolve
from tilewright.codegen.llvm.statements import UnsupportedScopeError
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import f32, i32, i64
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, minimum, select, var
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Compare,
    CompareExchange,
    Const,
    Data,
    Extract,
    FunctionAddress,
    If,
    Index,
    Let,
    Load,
    Loop,
    Null,
    Offset,
    Parallel,
    Predicate,
    Reduce,
    Reg,
    Return,
    Select,
    Shuffle,
    Store,
    Unary,
    While,
)
from tilewright.ir.thread.types import INDEX, POINTER, VectorType
from tilewright.target.features import UnsupportedPlatformError
from tilewright.target.target import Target

from tests.codegen.kernels import Runtime, load

TARGET = Target("cpu", features=("avx2",))
ENGINES = []


def call(function: ThreadFunc, *args: int, others: tuple[ThreadFunc, ...] = ()) -> int:
    """Compile functions and call the first on integers and addresses."""
    engine, address = load(function.name, emit_module([function, *others], TARGET), TARGET)
    ENGINES.append(engine)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(address)(*args)


def returning(value, *params) -> ThreadFunc:
    return ThreadFunc("f", params, (Return(value),), INDEX)


A, B = var("a"), var("b")


def test_index_arithmetic_floors_as_python_does() -> None:
    numbers = [-9, -8, -1, 0, 1, 7, 8, 9]
    quotient, rest = returning(Index(A // B), A, B), returning(Index(A % B), A, B)
    for a in numbers:
        for b in (n for n in numbers if n):
            assert call(quotient, a, b) == a // b
            assert call(rest, a, b) == a % b


@pytest.mark.parametrize("divisor", [1, 3, 8, -3])
def test_index_arithmetic_by_constants(divisor: int) -> None:
    both = returning(Index((A // divisor) * 1000 + A % divisor), A)
    for a in (-17, -16, -1, 0, 1, 15, 16, 17):
        assert call(both, a) == (a // divisor) * 1000 + a % divisor


def test_a_division_that_is_not_chosen_does_not_trap() -> None:
    value = returning(Index(select(B > 0, A // B, as_expr(-1))), A, B)
    assert call(value, 7, 2) == 3
    assert call(value, 7, 0) == -1


def test_minimum_and_predicates() -> None:
    value = Select(Predicate((A < B) & (A > 0)), Index(minimum(A, B, 5)), Const(-1, INDEX))
    f = returning(value, A, B)
    assert [call(f, a, b) for a, b in [(3, 9), (7, 9), (0, 9), (9, 3)]] == [3, 5, -1, -1]


def test_loops_and_registers() -> None:
    total, i = Reg("total", INDEX), var("i")
    body = (
        Assign(total, Const(0, INDEX)),
        Loop(i, as_expr(0), A, (Assign(total, Binary("add", total, Index(i))),), 2),
        Return(total),
    )
    assert call(ThreadFunc("f", (A,), body, INDEX), 10) == 20
    assert call(ThreadFunc("f", (A,), body, INDEX), -3) == 0


def test_while_and_if() -> None:
    """Collatz steps."""
    n, steps = Reg("n", INDEX), Reg("steps", INDEX)
    one = Const(1, INDEX)
    odd = Compare("ne", Binary("and", n, one), Const(0, INDEX))
    up = Assign(n, Binary("add", Binary("mul", n, Const(3, INDEX)), one))
    body = (
        Assign(n, Index(A)),
        Assign(steps, Const(0, INDEX)),
        While(
            Compare("gt", n, one),
            (
                If(odd, (up,), (Assign(n, Binary("shr", n, one)),)),
                Assign(steps, Binary("add", steps, one)),
            ),
        ),
        Return(steps),
    )
    assert call(ThreadFunc("f", (A,), body, INDEX), 27) == 111


def test_calls_direct_and_through_a_table() -> None:
    result, pointer = Reg("result", INDEX), Reg("pointer", POINTER)
    table, x = Reg("table", POINTER), var("x")
    square = ThreadFunc("square", (x,), (Return(Index(x * x)),), INDEX, exported=False)
    direct = ThreadFunc("f", (A,), (Call("square", (Index(A),), result), Return(result)), INDEX)
    assert call(direct, 12, others=(square,)) == 144
    body = (
        Allocate(table, 16),
        Store(Address(table, as_expr(8), 8), FunctionAddress("square")),
        Assign(pointer, Load(POINTER, Address(table, as_expr(8), 8))),
        Call(pointer, (Index(A),), result),
        Return(result),
    )
    assert call(ThreadFunc("f", (A,), body, INDEX), 13, others=(square,)) == 169


def test_atomics() -> None:
    cell, old, held, now = (
        Reg(n, t) for n, t in [("cell", POINTER), ("o", INDEX), ("h", INDEX), ("n", INDEX)]
    )
    address = Address(cell, as_expr(0), 8)
    body = (
        Allocate(cell, 8),
        AtomicStore(address, Index(A)),
        AtomicUpdate("add", address, Const(5, INDEX), old),
        CompareExchange(address, Index(A + 5), Const(100, INDEX), held),
        AtomicLoad(address, now),
        Return(Binary("add", now, Binary("add", old, held))),
    )
    assert call(ThreadFunc("f", (A,), body, INDEX), 7) == 100 + 7 + 12


def test_data_pointers_and_bits() -> None:
    text = Data("greeting", b'Hi "there"\\\n\0')
    counter = Data("counter", bytes(8), mutable=True)
    seen = Reg("seen", INDEX)
    body = (
        AtomicUpdate("add", Address(counter, as_expr(0), 8), Const(1, INDEX), seen),
        If(Compare("eq", text, Null()), (Return(Const(-1, INDEX)),)),
        Let(B, Cast(INDEX, Load(VectorType(i32), Address(Offset(text, A), as_expr(0), 1)))),
        Return(Binary("add", Index(B * 2), Bitcast(INDEX, Null()))),
    )
    f = ThreadFunc("f", (A,), body, INDEX)
    assert call(f, 1) == 2 * int.from_bytes(b'i "t', "little")


def test_leading_zeros_and_shifts() -> None:
    f = returning(Unary("clz", Index(A)), A)
    assert [call(f, v) for v in (0, 1, 255, -1)] == [64, 63, 56, 0]


def test_vectors_are_composed_and_decomposed() -> None:
    lanes = VectorType(i64, 4)
    base = Index(A + B * 10, B, 4)
    swapped = Shuffle(base, Broadcast(Const(7, INDEX), 4), (3, 2, 1, 4))
    value = Binary("add", Reduce("add", swapped), Extract(base, 2))
    assert value.type == INDEX
    assert base.type == lanes
    assert call(returning(value, A), 1) == (31 + 21 + 11 + 7) + 21


def test_two_constructions_give_the_same_text() -> None:
    source = """
n, m = symbols("n m", lower=1)

@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(m, n), f32]):
    for i in parallel(n):
        for j in vectorized(m):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                y[vj, vi] = exp(x[vi, vj])
"""
    texts = set()
    for extra in range(3):
        [var("unrelated") for _ in range(extra)]
        func = parse(source).functions["f"]
        texts.add(emit_module([lower_kernel(func, TARGET).function], TARGET))
    assert len(texts) == 1
    (text,) = texts
    assert compile_text(text, TARGET) == compile_text(text, TARGET)


def test_golden_text(golden) -> None:
    x, y, n, i, lane = Reg("x", POINTER), Reg("y", POINTER), var("n"), var("i"), var("lane")
    lanes, offset = VectorType(f32, 8), i * 32
    mask = Predicate(i * 8 + lane < n, lane, 8)
    value = Binary("add", Load(lanes, Address(x, offset, 4), None, mask), Const(1.5, lanes))
    loop = Loop(i, as_expr(0), (n + 7) // 8, (Store(Address(y, offset, 4), value, None, mask),))
    done = Return(Const(0, VectorType(i32)))
    f = ThreadFunc("add", (x, y, n), (loop, done), VectorType(i32), distinct=(x, y))
    golden("masked_add.ll", emit_module([f], TARGET))


def test_unbound_symbols_are_rejected() -> None:
    with pytest.raises(UnboundVariableError, match="symbol b is used but not bound"):
        emit_module([returning(Index(A + B), A)], TARGET)
    with pytest.raises(UnboundVariableError, match="'r' is read but never assigned"):
        emit_module([returning(Reg("r", INDEX))], TARGET)


def test_barriers_of_several_threads_are_rejected_on_a_cpu() -> None:
    body = (Barrier("thread"), Barrier("block"))
    with pytest.raises(UnsupportedScopeError, match="'block'"):
        emit_module([ThreadFunc("f", (), body)], TARGET)


def test_invalid_llvm_text_is_a_named_error() -> None:
    with pytest.raises(CodeGenerationError, match="expected"):
        compile_text("define i32 @f() { ret banana }", TARGET)


@pytest.mark.parametrize(("level", "register"), [("avx2", "%ymm"), ("avx512", "%zmm")])
@pytest.mark.usefixtures("every_level")
def test_targets_use_their_registers(level: str, register: str) -> None:
    source = """
@prim_func
def f(x: Buffer[(64,), f32]):
    for i in vectorized(64):
        with block("t"):
            vi = spatial(i)
            x[vi] = x[vi] + 1.0
"""
    target = Target("cpu", features=(level,))
    func = parse(source.replace("x: Buffer", "x: InOut")).functions["f"]
    text = assembly(emit_module([lower_kernel(func, target).function], target), target)
    assert register in text
    assert ("%zmm" in text) == (level == "avx512")


def test_unknown_features_are_rejected() -> None:
    with pytest.raises(UnsupportedPlatformError, match="no feature 'teleport'"):
        resolve(Target("cpu", features=("teleport",)))


def test_host_features_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_HOST_FEATURES", raising=False)
    cpu = resolve(Target("cpu"))
    assert cpu.name == binding.get_host_cpu_name()
    assert cpu.lanes(32) == cpu.vector_bits // 32
    assert np.all([f[0] in "+-" for f in cpu.features.split(",")])


def test_instructions_know_their_statements() -> None:
    source = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(n,), f32]):
    for i in parallel(n):
        with block("first"):
            vi = spatial(i)
            y[vi] = exp(x[vi])
    for j in vectorized(n):
        with block("second"):
            vj = spatial(j)
            z[vj] = y[vj] + 1.0
"""
    function = lower_kernel(parse(source).functions["f"], TARGET).function
    text, sources = emit_located([function], TARGET)
    found = instructions(assembly(text, TARGET), sources)
    names = [i.source.name for i in found if i.source is not None]
    assert {"first", "second"} <= set(names)
    assert len(names) >= 0.7 * len(found)
    plain = assembly(emit_module([function], TARGET), TARGET)
    assert len(instructions(plain, ())) == len(found)


def test_a_region_captures_wide_registers_and_integers() -> None:
    table, wide, after = Reg("table", POINTER), Reg("wide", VectorType(f32, 64)), Reg("x", INDEX)
    out, i, worker = Reg("out", POINTER), var("i"), var("worker")
    store = Store(Address(out, i * 256, 4), wide)
    tail = Store(Address(out, i * 8 + A * 256, 8), Binary("add", after, Index(worker + i)))
    region = Parallel(table, i, A, A, worker, (store, tail))
    body = (
        Assign(wide, Cast(VectorType(f32, 64), Index(B, B, 64))),
        Assign(after, Const(9, INDEX)),
        region,
        Return(Const(0, VectorType(i32))),
    )
    f = ThreadFunc("f", (table, out, A), body, VectorType(i32))
    engine, address = load("f", emit_module([f], TARGET), TARGET)
    runtime, memory = Runtime(), np.zeros(3 * 256 + 24, np.uint8)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    code = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(address)(
        ctypes.addressof(runtime.table), memory.ctypes.data, 3
    )
    ENGINES.append(engine)
    assert code == 0
    rows = memory[: 3 * 256].view(np.float32).reshape(3, 64)
    np.testing.assert_array_equal(rows, np.tile(np.arange(64, dtype=np.float32), (3, 1)))
    np.testing.assert_array_equal(memory[3 * 256 :].view(np.int64), [9, 10, 11])
