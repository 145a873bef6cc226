"""Signatures of composite steps: which functions the decorator accepts."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.schedules import (
    STEPS,
    CompositeDefinitionError,
    LoopRef,
    registry,
)
from tilewright.schedules.methods import ScheduleMethods
from tilewright.schedules.problem import ParameterError

from tests.schedules.helpers import MATMUL, schedule


@pytest.fixture(autouse=True, scope="module")
def _steps_of_these_tests():
    """Remove the steps that the tests define."""
    before = set(STEPS)
    yield
    for name in set(STEPS) - before:
        del registry._STEPS[name]
        delattr(ScheduleMethods, name)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def split(sch, loop: LoopRef): ...", "'split' is built in"),
        ("def tile(sch, loop: LoopRef): ...", "'tile' is built in"),
        ("def undo(sch): ...", "'undo' is a member of Schedule"),
        ("def f(sch, loop): ...", "parameter 'loop' without a type"),
        ("def f(sch, loop: dict[str, int]): ...", "type dict\\[str, int\\]"),
        ("def f(sch, *loops: LoopRef): ...", "variadic parameter 'loops'"),
        ("def f(sch, values: int): ...", "parameter named 'values'"),
        ("def f(sch, x: int = {}): ...", "mutable default"),
        ("def f(): ...", "no parameter for the schedule"),
        ("def f(*, sch): ...", "no parameter for the schedule"),
        ("def f(*steps): ...", "no parameter for the schedule"),
        ("def f(loop: LoopRef): ...", "no parameter for the schedule"),
        ("def f(sch, loop: LoopRef, /): ...", "positional-only parameter 'loop'"),
        ("def f(sch, self: LoopRef): ...", "parameter named 'self'"),
        ("def f(sch, loops: tuple[()]): ...", "type tuple"),
        ("def f(sch, loops: tuple[LoopRef, ..., ...]): ...", "which no form"),
        ("def _f(sch): ...", "leading underscore"),
        ("def __len__(sch): ...", "leading underscore"),
        ("def f(sch) -> str: ...", "returns str"),
        ("async def f(sch): ...", "coroutine"),
    ],
)
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_invalid_definitions(source, message, future):
    cell = {"LoopRef": LoopRef, "tw": tw, "__name__": "__main__"}
    with pytest.raises(CompositeDefinitionError, match=message):
        exec(f"{future}@tw.composite\n{source}", cell)
    assert "f" not in STEPS


def test_an_unknown_name_in_a_quoted_annotation_lists_the_types():
    cell = {"tw": tw, "__name__": "__main__"}
    with pytest.raises(CompositeDefinitionError, match="not defined: name 'Nowhere'") as caught:
        exec("@tw.composite\ndef f(sch, loop: 'Nowhere'): ...", cell)
    assert "LoopRef" in caught.value.hint


@pytest.mark.parametrize("annotation", ["LoopRef[", "LoopRef.x", "1/0", "LoopRef | 3"])
def test_an_annotation_that_raises(annotation):
    cell = {"tw": tw, "__name__": "__main__"}
    with pytest.raises(CompositeDefinitionError, match="an annotation that raises"):
        exec(f"@tw.composite\ndef f(sch, loop: '{annotation}'): ...", cell)


def test_code_without_a_module_may_define_a_step():
    cell = {"tw": tw}
    exec("@tw.composite\ndef f(sch, loop: 'LoopRef'):\n  sch.unroll(loop)", cell)
    sch = schedule(MATMUL)
    sch.f("j")
    assert STEPS["f"].family == "user"


def test_annotations_in_quotes_need_no_import():
    cell = {"tw": tw, "__name__": "__main__"}
    exec(
        "from __future__ import annotations\n"
        "@tw.composite\n"
        "def f(sch, loop: LoopRef, sizes: tuple[SymInt, ...] = (8,), *, kind: "
        "Literal['a', 'b'] = 'a') -> None:\n"
        "    sch.split(loop, (None, *sizes))\n",
        cell,
    )
    sch = schedule(MATMUL)
    sch.f("j", sizes=[4], kind="b")
    assert [p.name for p in STEPS["f"].parameters()] == ["loop", "sizes", "kind"]
    with pytest.raises(ParameterError):
        sch.f("k", kind="c")
