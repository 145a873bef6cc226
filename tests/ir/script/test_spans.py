"""Spans of nodes in printed text."""

from __future__ import annotations

from hypothesis import given

from tilewright.ir.loop.nodes import Block, For, PrimFunc
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import render, to_text

from tests.ir.script.texts import GRAPHS, LOOPS, parse
from tests.strategies import prim_funcs

MODULE = parse(LOOPS)


def test_spans_match_the_text() -> None:
    for text in (LOOPS, GRAPHS):
        rendered = render(parse(text))
        lines = rendered.text.split("\n")
        assert rendered.spans
        for span in rendered.spans:
            assert lines[span.line - 1][span.column - 1 : span.end - 1] == span.name
            assert span.last_line >= span.line


def test_spans_are_in_the_order_of_the_text() -> None:
    spans = render(MODULE).spans
    assert sorted(spans, key=lambda s: (s.line, s.column)) == list(spans)


@given(prim_funcs())
def test_every_node_is_defined_once(func: PrimFunc) -> None:
    rendered = render(func)
    assert rendered.text == to_text(func)
    nodes = [s for s in walk(func.body) if isinstance(s, For | Block)]
    uids = [n.uid for n in (*nodes, *func.buffer_params, *func.buffers)]
    defined = [s.uid for s in rendered.spans if s.role == "defined"]
    assert sorted(defined) == sorted(uids)


def test_a_loop_covers_its_body() -> None:
    func = MODULE.prim("matmul")
    rendered = render(func)
    assert isinstance(func.body, For)
    whole = next(s for s in rendered.of("matmul", func.body.uid) if s.role == "defined")
    assert (whole.line, whole.last_line) == (5, len(rendered.text.split("\n")))
    assert rendered.at(5, 9) == whole
    assert str(whole) == "loop i defined at 5:9 to line 11"
    # Outside of any span, the innermost definition is returned.
    found = rendered.at(11, 1)
    assert found is not None
    assert (found.kind, found.name) == ("block", "C")
    assert rendered.at(1, 1) is None


def test_uses_of_loops_buffers_and_values() -> None:
    rendered = render(MODULE)
    used = {(s.function, s.kind, s.name) for s in rendered.spans if s.role == "used"}
    assert ("matmul", "loop", "i") in used
    assert ("matmul", "buffer", "A") in used
    values = render(parse(GRAPHS)).spans
    assert {s.name for s in values if s.role == "used"} >= {"x", "w", "z0", "t"}


def test_words_that_do_not_name_nodes() -> None:
    text = """\
@prim_func(note="i y exp")
def f(exp: Buffer[(4,), f32], y: Out[(4,), f32]):
    for note in range(4, note="note y"):
        with block("y"):
            v = spatial(note)
            y[v] = exp(exp[v])"""
    rendered = render(parse(text).prim("f"))
    assert rendered.text == text
    assert [str(s) for s in rendered.spans] == [
        "buffer exp defined at 2:7",
        "buffer y defined at 2:31",
        "loop note defined at 3:9 to line 6",
        "block y defined at 4:21 to line 6",
        "loop note used at 5:25",
        "buffer y used at 6:13",
        "buffer exp used at 6:24",
    ]


def test_function_text_is_cached() -> None:
    func = MODULE.prim("matmul")
    assert render(func).spans is not None
    first = render(func).spans
    assert [a is b for a, b in zip(first, render(func).spans, strict=True)] == [True] * len(first)
