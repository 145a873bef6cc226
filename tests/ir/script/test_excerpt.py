"""Excerpts of printed functions with underlined nodes."""

from __future__ import annotations

from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import walk
from tilewright.ir.script.excerpt import MAX_COLUMNS, excerpt

from tests.ir.script.texts import parse

TEXT = """
n = symbols("n", lower=0)

@prim_func
def f(a: Buffer[(n, 8), f32], b: Out[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            b[i, j] = a[i, j] * a[i, 7 - j]
    for k in range(n):
        b[k, 0] = 0.0
"""


def loops() -> dict[str, For]:
    function = parse(TEXT).prim("f")
    return {s.var.name: s for s in walk(function.body) if isinstance(s, For)}


def test_definitions_are_underlined_and_distant_lines_omitted() -> None:
    found = excerpt(parse(TEXT).prim("f"), [loops()["k"].uid])
    assert found is not None
    assert str(found).splitlines() == [
        "4 | def f(a: Buffer[(n, 8), f32], b: Out[(n, 8), f32]):",
        "  | ...",
        "7 |             b[i, j] = a[i, j] * a[i, -j + 7]",
        "8 |     for k in range(n):",
        "  |         ^",
        "9 |         b[k, 0] = 0.0",
    ]


def test_uses_inside_a_scope_are_underlined() -> None:
    function = parse(TEXT).prim("f")
    found = excerpt(function, [function.buffer_params[0].uid], within=loops()["j"].uid)
    assert found is not None
    assert [(m.line, m.column) for m in found.marks] == [(7, 23), (7, 33)]


def test_a_scope_without_uses_underlines_the_definition() -> None:
    function = parse(TEXT).prim("f")
    found = excerpt(function, [function.buffer_params[0].uid], within=loops()["k"].uid)
    assert found is not None
    assert [(m.line, m.column) for m in found.marks] == [(4, 7)]


def test_the_function_itself_is_its_header() -> None:
    found = excerpt(parse(TEXT).prim("f"), [None])
    assert found is not None
    assert [tuple(m) for m in found.marks] == [(4, 5, 6)]


def test_an_unknown_node_has_no_excerpt() -> None:
    assert excerpt(parse(TEXT).prim("f"), [999_999_999]) is None


def test_long_lines_are_clipped() -> None:
    terms = " + ".join(["a[i, 0]"] * 60)
    function = parse(TEXT.replace("a[i, j] * a[i, -j + 7]", terms)).prim("f")
    found = excerpt(function, [loops()["j"].uid])
    assert found is not None
    assert max(len(line) for _, line in found.lines) <= MAX_COLUMNS


def test_bindings_of_a_graph() -> None:
    graph = parse("""
@graph_func
def main(x: Tensor((4,), f32)):
    y = exp(x)
    z = add(y, x)
    return z
""").graph("main")
    found = excerpt(graph, [graph.bindings[1].value.uid])
    assert found is not None
    assert [(m.line, m.column, m.end) for m in found.marks] == [(4, 5, 6)]
