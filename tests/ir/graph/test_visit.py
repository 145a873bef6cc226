"""The roles of the fields of right-hand sides."""

from __future__ import annotations

from typing import get_args

import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.graph import nodes
from tilewright.ir.graph.nodes import (
    CopyTensor,
    GrowTensor,
    LaunchLibrary,
    MakeTuple,
    MatchCast,
    Pure,
    Rhs,
    TensorInfo,
    TupleItem,
    Value,
    ViewTensor,
)
from tilewright.ir.graph.visit import (
    denoted_operand,
    map_operands,
    operands_of,
    roles_of,
    shared_operands,
    written_operands,
)
from tilewright.ir.symbolic import as_expr

INFO = TensorInfo((as_expr(4),), f32)
A, B = (Value(uid, name, INFO) for uid, name in enumerate("ab"))
CASES: list[tuple[Rhs, tuple[Value, ...], tuple[Value, ...]]] = [
    (MatchCast(A, INFO), (A,), ()),
    (MakeTuple((A, B)), (A, B), ()),
    (TupleItem(A, 0), (A,), ()),
    (ViewTensor(A, as_expr(0), INFO), (A,), ()),
    (GrowTensor(A, INFO), (A,), ()),
    (CopyTensor(A, B), (), (B,)),
    (LaunchLibrary("std.sort", (A,), (B,)), (), (B,)),
]


@pytest.mark.parametrize(("right", "shared", "written"), CASES, ids=lambda x: type(x).__name__)
def test_memory_of_operands(right: Rhs, shared: tuple, written: tuple) -> None:
    assert (shared_operands(right), written_operands(right)) == (shared, written)
    assert set(shared) | set(written) <= set(operands_of(right))
    assert denoted_operand(right) is (A if isinstance(right, MatchCast) else None)


def test_a_field_for_a_value_keeps_its_value() -> None:
    def change(operand: nodes.Operand) -> nodes.Operand:
        return nodes.Dims(()) if operand is B else operand

    copy = CopyTensor(B, B)
    new = map_operands(copy, change)
    assert (new.source, new.target) == (nodes.Dims(()), B)


def test_every_field_has_a_role() -> None:
    kinds = (*get_args(Pure), *get_args(nodes.MemoryOp))
    assert all(roles_of(kind) for kind in kinds)
    assert len(kinds) == 18
