"""The printer of thread-level functions."""

from __future__ import annotations

import pytest

from tilewright.ir.dtype import bool_, f32, i32, i64
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread import nodes as t
from tilewright.ir.thread.function import LaunchGrid, ThreadAxis, ThreadFunc
from tilewright.ir.thread.operations.nvidia import LDMATRIX_X2, TRAP
from tilewright.ir.thread.text import to_text
from tilewright.ir.thread.types import (
    GLOBAL_POINTER,
    POINTER,
    SHARED_POINTER,
    VectorType,
)

N, I, LANE = var("n", lower=1), var("i", lower=0), var("lane", lower=0, upper=3)
P, Q = t.Reg("p", POINTER), t.Reg("q", POINTER)
F, FOUR, WORD, LONG = VectorType(f32), VectorType(f32, 4), VectorType(i32), VectorType(i64)
ONE, REG = t.Const(1.0, F), t.Reg("r", F)
AT = t.Address(P, I * 4, 4)
LOAD = t.Load(F, AT)
VECTOR = t.Load(FOUR, AT)
MASK = t.Predicate(LANE < N, LANE, 4)
NUMBER = t.Const(3, LONG)
TRUE = t.Const(value=True, type=VectorType(bool_))

STATEMENTS = {
    "let j = i": t.Let(var("j"), t.Index(I)),
    "r = load.f32(p[i * 4])": t.Assign(REG, LOAD),
    "r: f32 = allocate(8, align=64)": t.Allocate(REG, 8),
    "p[i * 4]: f32 = 1.0": t.Store(AT, ONE),
    "p[0, align=1]: f32 = r": t.Store(t.Address(P, as_expr(0)), REG),
    "p[i * 4, step=n]: f32x4 = load.f32x4(p[i * 4])": t.Store(AT, VECTOR, N),
    "(p + n)[i * 4]: f32 = r": t.Store(t.Address(t.Offset(P, N), I * 4, 4), REG),
    "p[<i + lane for lane in 4>]: f32x4 = 1.0": t.Scatter(
        P, t.Index(I + LANE, LANE, 4), t.Const(1.0, FOUR)
    ),
    "p[i * 4, where=<lane < n for lane in 4>]: f32x4 = 1.0": t.Store(
        AT, t.Const(1.0, FOUR), None, MASK
    ),
    "barrier(block)": t.Barrier("block"),
    "pause()": t.Pause(),
    "nvidia.trap(i64(3), i64(3))": t.MachineOp(TRAP, (NUMBER, NUMBER)),
    "a, b = nvidia.ldmatrix.x2.f16(q + i)": t.MachineOp(
        LDMATRIX_X2, (t.Offset(Q, I),), (t.Reg("a", WORD), t.Reg("b", WORD))
    ),
    "return": t.Return(),
    "return f32(1.0)": t.Return(ONE),
    "sqrt(f32(1.0))": t.Call("sqrt", (ONE,)),
    "r = sqrt(f32(1.0))": t.Call("sqrt", (ONE,), REG),
    "atomic_add(p[i * 4, align=4], i64(3))": t.AtomicUpdate("add", AT, NUMBER),
    "r = atomic_add(p[i * 4, align=4], i64(3))": t.AtomicUpdate("add", AT, NUMBER, REG),
    "r = compare_exchange(p[i * 4, align=4], i64(3), i64(3))": t.CompareExchange(
        AT, NUMBER, NUMBER, REG
    ),
    "r = atomic_load(p[i * 4])": t.AtomicLoad(AT, REG),
    "atomic_store(p[i * 4, align=4], i64(3))": t.AtomicStore(AT, NUMBER),
}

VALUES = {
    "null": t.Null(),
    "@table": t.Data("table", b""),
    "@f": t.FunctionAddress("f"),
    "r + 1.0": t.Binary("add", REG, ONE),
    "f32(1.0) + f32(1.0)": t.Binary("add", ONE, ONE),
    "(r + r) * 2.0": t.Binary("mul", t.Binary("add", REG, REG), t.Const(2, F)),
    "min(r, 1.0)": t.Binary("min", REG, ONE),
    "r < 1.0": t.Compare("lt", REG, ONE),
    "neg(r)": t.Unary("neg", REG),
    "fma(r, 1.0, r)": t.Fma(REG, ONE, REG),
    "select(n < 4, r, 1.0)": t.Select(t.Predicate(N < 4), REG, ONE),
    "select(bool(True), r, 1.0)": t.Select(TRUE, REG, ONE),
    "i32(r)": t.Cast(WORD, REG),
    "bits.i32(r)": t.Bitcast(WORD, REG),
    "broadcast(r, 4)": t.Broadcast(REG, 4),
    "load.f32x4(p[i * 4])[2]": t.Extract(VECTOR, 2),
    "shuffle(r, f32(1.0), [1, 0])": t.Shuffle(REG, ONE, (1, 0)),
    "reduce_add(load.f32x4(p[i * 4]))": t.Reduce("add", VECTOR),
    "gather.f32x4(p[<i for lane in 4>, where=<lane < n for lane in 4>])": t.Gather(
        FOUR, P, t.Index(I, LANE, 4), MASK
    ),
    "bool(True)": TRUE,
}


def lines(*body: t.Stmt) -> list[str]:
    """Return the printed statements of a function, without the signature."""
    return [x.strip() for x in to_text(ThreadFunc("f", (P,), body)).splitlines()[1:]]


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement(text):
    assert lines(STATEMENTS[text]) == [text]


@pytest.mark.parametrize("text", VALUES)
def test_value(text):
    assert lines(t.Return(VALUES[text])) == [f"return {text}"]


def test_lists_of_statements():
    store = t.Store(AT, ONE)
    loop = t.Loop(I, as_expr(0), N, (store,), 2)
    other = t.If(t.Predicate(N < 4), (), (t.While(t.Predicate(N > 1), (store,)),))
    region = t.Parallel(Q, I, N, N * 3, var("worker"), (store,))
    text = to_text(ThreadFunc("f", (P, N), (loop, other, region), WORD))
    assert text == (
        "def f(p: ptr, n) -> i32:\n"
        "    for i in range(0, n, 2):\n"
        "        p[i * 4]: f32 = 1.0\n"
        "    if n < 4:\n"
        "        pass\n"
        "    else:\n"
        "        while n >= 2:\n"
        "            p[i * 4]: f32 = 1.0\n"
        "    # worker: number of the executing thread\n"
        "    # estimated work: n * 3 operations\n"
        "    for i in parallel(n):\n"
        "        p[i * 4]: f32 = 1.0\n"
    )


def test_values_used_twice_are_named():
    square = t.Binary("mul", LOAD, LOAD)
    assert lines(t.Store(AT, t.Binary("add", square, square))) == [
        "v = load.f32(p[i * 4])",
        "v_1 = v * v",
        "p[i * 4]: f32 = v_1 + v_1",
    ]


def test_equal_masks_are_named_once():
    first, second = (t.Predicate(LANE < N, LANE, 4) for _ in range(2))
    load = t.Load(FOUR, AT, None, first)
    assert lines(t.Store(AT, load, None, second)) == [
        "mask = <lane < n for lane in 4>",
        "p[i * 4, where=mask]: f32x4 = load.f32x4(p[i * 4, where=mask])",
    ]


def test_text_of_nested_values_is_printed_in_linear_time():
    value: t.Value = REG
    for _ in range(200):
        value = t.Binary("add", value, t.Unary("neg", value))
    assert len(lines(t.Return(value))) == 200


def test_the_origin_of_statements_is_printed_where_it_changes():
    first, second = t.Source(1, "init"), t.Source(2, "matmul")
    body = (
        t.Store(AT, ONE, source=first),
        t.Loop(I, as_expr(0), N, (t.Store(AT, ONE, source=second),), source=t.Source(3, "i")),
        t.Store(AT, REG, source=second),
        t.Store(AT, ONE, source=second),
    )
    assert lines(*body) == [
        "# init",
        "p[i * 4]: f32 = 1.0",
        "for i in range(n):",
        "# matmul",
        "p[i * 4]: f32 = 1.0",
        "p[i * 4]: f32 = r",
        "p[i * 4]: f32 = 1.0",
    ]


def test_equal_names_are_made_unique():
    first, second = t.Reg("r", F), t.Reg("r", F)
    assert lines(t.Assign(first, ONE), t.Assign(second, first)) == ["r = f32(1.0)", "r_1 = r"]


def test_launch_axes_are_printed_above_the_signature():
    axis = ThreadAxis("blockIdx.x", I, N)
    kernel = ThreadFunc(
        "k", (t.Reg("g", GLOBAL_POINTER), N), (t.Allocate(t.Reg("s", SHARED_POINTER), 4),),
        launch=LaunchGrid((axis,)),
    )  # fmt: skip
    assert to_text(kernel).splitlines() == [
        "# blockIdx.x: i in range(n)",
        "def k(g: ptr.global, n):",
        "    s: ptr.shared = allocate(4, align=64)",
    ]
