"""Errors of arguments of the builder."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.loop.builder import Builder, BuilderError

WRONG = [
    (lambda b, _x, _y: b.param("z", 32, f32), "expected a tuple of extents as the shape, got 32"),
    (lambda b, _x, _y: b.param("z", (32,), "f32"), "expected a dtype, got 'f32'"),
    (lambda b, _x, y: b.compute(y, 3.0), "expected a function of 1 index variables, got float"),
    (lambda b, _x, y: b.compute(y, lambda i: "a"), "expected an element, got str"),
    (lambda b, _x, y: b.compute(y, lambda i: i), "expected an element, got Var"),
    (lambda b, x, y: b.reduce(y, (8,), lambda i, j: x), "expected an element, got Buffer"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[m for _, m in WRONG])
def test_a_wrong_argument_of_the_builder(call: Any, message: str) -> None:
    builder: Any = Builder("f")
    x, y = builder.param("x", (8,), f32), builder.param("y", (8,), f32, "out")
    with pytest.raises(BuilderError) as caught:
        call(builder, x, y)
    assert caught.value.message == message
    assert caught.value.hint
