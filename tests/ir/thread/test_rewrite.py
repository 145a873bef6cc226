"""Replacement of values: operands first, each object once."""

from __future__ import annotations

from tilewright.ir.dtype import bool_, f32, i64
from tilewright.ir.symbolic import as_expr
from tilewright.ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Fma,
    Gather,
    Load,
    Offset,
    Reg,
    Scatter,
    Select,
    Store,
    Unary,
)
from tilewright.ir.thread.rewrite import ValueRewriter
from tilewright.ir.thread.types import POINTER, VectorType
from tilewright.ir.thread.visit import statement_values, walk_values

A, B, P = Reg("a", VectorType(f32)), Reg("b", VectorType(f32)), Reg("p", POINTER)
BIT, OFFSETS = Reg("bit", VectorType(bool_)), Reg("offsets", VectorType(i64))


def renamed(value, rebuilt):
    return B if value is A else rebuilt


def registers(statement):
    return {v for v in walk_values(statement_values(statement)) if isinstance(v, Reg)}


def test_all_operands_are_replaced():
    address = Address(Offset(P, as_expr(4)), as_expr(0), 4)
    values = [
        Unary("neg", A),
        Binary("add", A, A),
        Fma(A, A, A),
        Select(Compare("lt", A, A), A, A),
        Cast(VectorType(f32), A),
        Broadcast(A, 4),
        Load(VectorType(f32), address, None, Compare("lt", A, A)),
        Gather(VectorType(f32), P, Cast(VectorType(i64), A), Compare("lt", A, A)),
    ]
    for value in values:
        made = ValueRewriter(renamed).statement(Assign(Reg("r", value.type), value))
        assert A not in registers(made)
        assert B in registers(made)


def test_values_and_masks_of_stores_are_replaced():
    bit = Compare("lt", A, A)
    for statement in (
        Store(Address(P, as_expr(0), 4), A, None, bit),
        Scatter(P, Cast(VectorType(i64), A), A, bit),
        Scatter(P, OFFSETS, A),
    ):
        made = ValueRewriter(renamed).statement(statement)
        assert type(made) is type(statement)
        assert A not in registers(made)


def test_a_shared_operand_is_replaced_once():
    shared = Unary("neg", A)
    made = ValueRewriter(renamed).value(Binary("mul", shared, shared))
    assert made.left is made.right


def test_the_change_gets_the_value_and_its_rewritten_form():
    seen = []
    inner = Unary("neg", A)
    ValueRewriter(lambda v, new: seen.append((v, new)) or renamed(v, new)).value(inner)
    assert [v for v, _ in seen] == [A, inner]
    assert seen[-1][1].operand is B
    assert ValueRewriter(renamed).value(Const(1.0, VectorType(f32))).value == 1.0
