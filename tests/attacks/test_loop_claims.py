"""Hand-written claims of concurrent loops: all races are rejected, and nothing else is."""

from __future__ import annotations

import re

import pytest

from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError

from tests.attacks.loop_claims import INDEPENDENT, RACES


def whole(text: str) -> str:
    """Return a program with its decorator and the symbols that it uses."""
    names = [n for n in ("n", "m") if re.search(rf"\b{n}\b", text)]
    return "".join(f'{n} = symbols("{n}", lower=0)\n' for n in names) + "\n@prim_func" + text


@pytest.mark.parametrize("text", RACES.values(), ids=RACES)
def test_a_race_is_rejected(text: str) -> None:
    with pytest.raises(IllFormedProgramError, match="independent iterations"):
        parse(whole(text))


@pytest.mark.parametrize("text", INDEPENDENT.values(), ids=INDEPENDENT)
def test_independent_iterations_are_accepted(text: str) -> None:
    assert parse(whole(text)).prims
