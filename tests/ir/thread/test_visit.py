"""Nested statements, bindings, and captures of thread-level statements."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from tilewright.ir.dtype import f32, i32
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread import nodes
from tilewright.ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Broadcast,
    Compare,
    Const,
    If,
    Index,
    Let,
    Load,
    Loop,
    Parallel,
    Reg,
    Store,
)
from tilewright.ir.thread.types import INDEX, POINTER, VectorType
from tilewright.ir.thread.visit import assigned, captured, operands, statement_values, walk

N, I, K, W = var("n"), var("i"), var("k"), var("worker")
X, TABLE, SUM = Reg("x", POINTER), Reg("table", POINTER), Reg("sum", VectorType(f32))


def region() -> Parallel:
    load = Load(VectorType(f32), Address(X, I * 4 + K * N, 4))
    inner = Loop(K, as_expr(0), N, (Assign(SUM, Binary("add", SUM, load)),))
    start = Assign(SUM, Const(0.0, VectorType(f32)))
    return Parallel(TABLE, I, N, N * 3, W, (start, inner, Store(Address(X, W * 4, 4), SUM)))


def test_walk_is_in_program_order() -> None:
    kinds = [type(s).__name__ for s in walk((region(),))]
    assert kinds == ["Parallel", "Assign", "Loop", "Assign", "Store"]


def test_free_variables_of_a_region_are_captured() -> None:
    variables, registers = captured(region())
    assert variables == (N,)
    assert registers == (X,)
    assert assigned(region().body) == {SUM}


def test_branches_are_walked() -> None:
    bit = Compare("lt", Index(N), Const(3, INDEX))
    branch = If(bit, (Let(K, Index(N)),), (Let(I, Index(N)),))
    assert [s.var for s in walk((branch,)) if isinstance(s, Let)] == [K, I]
    assert statement_values(branch) == (bit,)
    assert operands(bit) == (bit.left, bit.right)


@pytest.mark.parametrize(
    ("of", "text"), [(VectorType(f32), "f32"), (VectorType(f32, 16), "f32x16"), (POINTER, "ptr")]
)
def test_types_print(of, text: str) -> None:
    assert str(of) == text


def test_types_follow_from_operands() -> None:
    wide = Broadcast(Const(1, VectorType(i32)), 8)
    assert Binary("add", wide, wide).type == VectorType(i32, 8)
    assert Compare("lt", wide, wide).type.lanes == 8


def test_every_statement_has_a_source() -> None:
    for kind in get_args(nodes.Stmt):
        assert "source" in {f.name for f in dataclasses.fields(kind)}
