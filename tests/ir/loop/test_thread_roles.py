"""Roles of blocks in a GPU kernel: part of the text and of the structure of a function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.thread_roles import Atomic, Combined, OneThread, Partial
from tilewright.ir.loop.visit import transform
from tilewright.ir.script import parse, to_text
from tilewright.ir.structural_hash import structural_hash

ROLES = {
    "partial()": Partial(),
    'combined("add", "y_part", "threadIdx.x", "threadIdx.y")': Combined(
        "add", ("y_part",), ("threadIdx.x", "threadIdx.y")
    ),
    'combined("", "a", "b", "threadIdx.x")': Combined("", ("a", "b"), ("threadIdx.x",)),
    'one("threadIdx.x")': OneThread(("threadIdx.x",)),
    'atomic("y")': Atomic(("y",)),
}
FUNCTION = parse("""
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]
""").prim("f")


def with_role(role):
    def change(statement):
        return replace(statement, threads=role) if isinstance(statement, Block) else statement

    return replace(FUNCTION, body=transform(FUNCTION.body, change))


@pytest.mark.parametrize("text", ROLES)
def test_text(text) -> None:
    assert f'with block("y", threads={text}):' in to_text(with_role(ROLES[text]))


def test_the_structure_of_a_function_contains_its_roles() -> None:
    functions = [FUNCTION, *map(with_role, ROLES.values())]
    assert len({structural_hash(f) for f in functions}) == len(functions)
