import dataclasses
from dataclasses import dataclass

import pytest

from tilewright.ir.copies import replace
from tilewright.ir.loop.nodes import For
from tilewright.ir.script import parse
from tilewright.schedules import State

TEXT = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[i] + 1.0
"""


def test_a_copy_equals_that_of_the_standard_library() -> None:
    func = parse(TEXT).prim("f")
    loop = func.body
    assert isinstance(loop, For)
    for node, name, value in ((func, "name", "g"), (loop, "kind", "parallel")):
        made, wanted = replace(node, **{name: value}), dataclasses.replace(node, **{name: value})
        assert type(made) is type(wanted)
        for field in dataclasses.fields(node):
            assert getattr(made, field.name) is getattr(wanted, field.name)
        assert getattr(node, name) != value


def test_fields_without_a_parameter_begin_new() -> None:
    state = State.start(parse(TEXT))
    state.memo["key"] = 1
    assert replace(state, seed=3).memo == {}
    assert replace(state, seed=3).seed == 3


def test_classes_that_need_the_standard_function() -> None:
    @dataclass
    class Single:
        x: int

    @dataclass(kw_only=True)
    class Named:
        x: int
        y: int

    for node in (Single(1), Named(x=1, y=2)):
        with pytest.raises(TypeError, match=r"needs dataclasses\.replace"):
            replace(node, x=2)
    with pytest.raises(KeyError, match="unknown"):
        replace(State.start(parse(TEXT)), unknown=1)
