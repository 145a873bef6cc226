from __future__ import annotations

import itertools
import re

import pytest

import tilewright as tw
from tilewright.schedules import Schedule
from tilewright.schedules.listing import listing
from tilewright.schedules.problem import ParameterError
from tilewright.schedules.suggest_names import NotFoundError

from tests.static_html import check_static

PROGRAM = """
@prim_func
def scale(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    for i in range(32):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0


@prim_func
def zero(y: Out[(8,), f32]):
    for k in range(8):
        with block("zero"):
            vk = spatial(k)
            y[vk] = 0.0
"""


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(tw.parse(PROGRAM))


def carets(shown: str) -> list[str]:
    """Return the underlined words in order."""
    words: list[str] = []
    for line, below in itertools.pairwise(shown.split("\n")):
        if below.strip(" |^") == "":
            words += [line[m.start() : m.end()] for m in re.finditer(r"\^+", below)]
    return words


def test_without_highlight_it_is_the_program(schedule):
    assert str(listing(schedule.state)) == str(schedule)
    assert str(listing(schedule.state, "zero")) == str(schedule.module.prim("zero"))


def test_a_handle_is_underlined(schedule):
    (i,) = schedule.get_loops(schedule.get_block("y"))
    found = listing(schedule.state, highlight=i)
    assert carets(str(found)) == ["i", "i"]
    assert str(found).endswith("# 1 function is not shown, without highlighted parts")
    assert found._repr_html_().count("<mark") == 2
    check_static(found._repr_html_())


def test_a_replaced_handle_is_followed(schedule):
    (i,) = schedule.get_loops(schedule.get_block("y"))
    schedule.split(i, factors=(None, 8))
    assert set(carets(str(listing(schedule.state, highlight=[i])))) == {"i_0", "i_1"}


def test_names_and_functions_are_found(schedule):
    assert carets(str(listing(schedule.state, highlight=["k", "scale"]))) == ["scale", "k", "k"]
    assert carets(str(listing(schedule.state, "zero", highlight="k"))) == ["k", "k"]


def test_unknown_names_are_errors(schedule):
    with pytest.raises(NotFoundError, match="no name 'q'; names of the shown program are"):
        listing(schedule.state, highlight="q")
    with pytest.raises(NotFoundError, match="no function 'q'; functions of the module are"):
        listing(schedule.state, "q")
    (i,) = schedule.get_loops(schedule.get_block("y"))
    with pytest.raises(NotFoundError, match="loop 'i' is not a part of the shown program"):
        listing(schedule.state, "zero", highlight=i)


@pytest.mark.parametrize("wrong", [3, None, ["i", 3]])
def test_parts_that_are_neither_handles_nor_names_are_errors(schedule, wrong):
    with pytest.raises(ParameterError, match="expected a handle or a name, got "):
        listing(schedule.state, highlight=wrong)


def test_highlighted_lines_that_are_folded_are_shown_above_the_program():
    stores = "\n".join(f"    y[{k}] = 0.0" for k in range(600))
    loop = "    for late in range(9): y[late] = 1.0"
    text = f"@prim_func\ndef many(y: Out[(900,), f32]):\n{stores}\n{loop}"
    shown = listing(Schedule(tw.parse(text)).state, highlight="late")._repr_html_()
    assert "<mark" in shown[: shown.index("<details>")]
    check_static(shown)
