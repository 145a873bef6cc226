"""Lookups by name: errors with the names, a similar one, and the lines that define them."""

from __future__ import annotations

import pytest

from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.suggest_names import NotFoundError

COPY = """
@prim_func
def {name}(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for outer in range(8):
        with block("copy"):
            v = spatial(outer)
            y[v] = x[v]
"""


def schedule(*names: str) -> Schedule:
    return Schedule(parse("\n".join(COPY.format(name=name) for name in names or ("f",))))


def test_the_existing_loops_are_underlined() -> None:
    with pytest.raises(NotFoundError) as caught:
        schedule().get_loop("q")
    assert "    for outer in range(8):\n      |         ^^^^^" in str(caught.value)
    assert caught.value.where == "the module"


def test_a_similar_name() -> None:
    with pytest.raises(NotFoundError) as caught:
        schedule().get_loop("outter")
    assert caught.value.hint == "did you mean 'outer'?"


def test_the_name_of_another_kind() -> None:
    with pytest.raises(NotFoundError) as caught:
        schedule().get_block("outer")
    assert caught.value.hint == "'outer' is the name of a loop"
    with pytest.raises(NotFoundError) as caught:
        schedule().get_block("f")
    assert caught.value.hint == "'f' is the name of a function"


def test_a_name_in_several_functions() -> None:
    with pytest.raises(NotFoundError) as caught:
        schedule("f", "g").get_block("copy")
    assert caught.value.hint == 'choose one with function="f"'
    assert len(caught.value.excerpts()) == 2


def test_many_parts_are_not_underlined() -> None:
    with pytest.raises(NotFoundError) as caught:
        schedule(*"abcdefgh").get_loop("q")
    assert caught.value.excerpts() == ()
