"""Hostile input: any string parses or raises a named error, in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, strategies as st

from tilewright.errors import MalformedProgramError
from tilewright.ir.script import ParseError, TextTooLargeError
from tilewright.ir.script.parser import source

from tests.ir.script.texts import GRAPHS, LOOPS, parse

DEEP = {
    "brackets": "(" * 1000,
    "minus": "-" * 100_000 + "1",
    "not": "not " * 50_000 + "x",
    "sum": "+".join(["1"] * 100_000),
    "attributes": "x" + ".x" * 100_000,
    "calls": "f" + "()" * 100_000,
    "subscripts": "x" + "[0]" * 50_000,
    "lambdas": "lambda:" * 20_000 + "1",
    "choices": "x if y else " * 20_000 + "1",
    "comparison": "a<" * 10_000 + "a",
    "power": "**".join(["1"] * 100_000),
    "blocks": "".join(" " * k + "if x:\n" for k in range(150)) + " " * 150 + "pass",
    "below the limit of Python": "x = " + "-" * 300 + "1",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_depth(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)
    inside = "@prim_func\ndef f(y: Out[(1,), f32]):\n    y[0] = " + text.replace("\n", " ")
    with pytest.raises(ParseError):
        parse(inside)


def test_too_deep_nesting_is_reported() -> None:
    with pytest.raises(TextTooLargeError, match=f"more than {source.MAX_DEPTH} levels deep"):
        parse("x = " + "-" * 300 + "1")


def test_size() -> None:
    with pytest.raises(TextTooLargeError, match=r"expected at most \d+ characters"):
        parse("#" * (source.MAX_CHARACTERS + 1))


def test_products_do_not_explode() -> None:
    names = [f"n{k}" for k in range(40)]
    symbols = f'{", ".join(names)} = symbols("{" ".join(names)}")\n'
    sums = ["(" + " + ".join(names) + ")"] * 20
    text = f"{symbols}@prim_func\ndef f(y: Out[({' * '.join(sums)},), f32]):\n    pass"
    start = time.perf_counter()
    parse(text)
    assert time.perf_counter() - start < 5


def test_nothing_runs(tmp_path) -> None:
    target = tmp_path / "ran"
    for text in (
        f"open({str(target)!r}, 'w')",
        f"@prim_func\ndef f(x: open({str(target)!r}, 'w')): pass",
        f"@prim_func(target=open({str(target)!r}, 'w'))\ndef f(): pass",
        f"@prim_func\ndef f(y: Out[(open({str(target)!r}, 'w'),), f32]): pass",
    ):
        with pytest.raises(ParseError):
            parse(text)
    assert not target.exists()


def assert_safe(text: str) -> None:
    """Check that parsing returns a program or raises a located error.

    A file name has an error of its own: random text includes the strings of the sources.
    """
    error = None
    try:
        parse(text)
    except (ParseError, MalformedProgramError) as caught:
        error = caught
    if isinstance(error, ParseError):
        assert error.location.text in ("", *text.split("\n"))
    else:
        assert error is None or f"got the file name {text.strip()!r}" in str(error)


@given(st.text())
@example(" trace.json\n")
def test_random_text(text: str) -> None:
    assert_safe(text)


WORDS = sorted(set(LOOPS.split() + GRAPHS.split()))


@given(st.data())
def test_damaged_programs(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from((LOOPS, GRAPHS)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 12))
        new = data.draw(
            st.sampled_from(WORDS) | st.sampled_from("()[]{}:,.=\"' \n*-1") | st.just("")
        )
        text = text[:at] + new + text[at + size :]
    assert_safe(text)
