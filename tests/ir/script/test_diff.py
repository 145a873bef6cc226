from __future__ import annotations

import difflib

from hypothesis import given, strategies as st

from tilewright.ir.script import parse
from tilewright.ir.script.diff import MAX_LINES, Diff, diff

from tests.cpu_time import relative_ms, timed
from tests.static_html import check_static, names

ZERO = """@prim_func
def f(y: Out[(8,), f32]):
    for i in range(8):
        y[i] = 0.0"""


def test_a_diff_of_programs():
    found = diff(parse(ZERO), parse(ZERO.replace("range", "parallel")), ("start", "head"))
    assert found
    assert found.counts == (1, 1)
    assert repr(found) == "<Diff of start and head: 1 added, 1 removed>"
    assert "-    for i in range(8):\n+    for i in parallel(8):" in str(found)


def test_equal_programs_have_no_difference():
    found = diff(parse(ZERO), parse(ZERO))
    assert not found
    assert str(found) == "no difference between before and after"
    check_static(found._repr_html_())


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_the_lines_of_a_diff_are_those_of_difflib(before, after):
    found = Diff("\n".join(before), "\n".join(after))
    expected = list(
        difflib.unified_diff(found.before.split("\n"), found.after.split("\n"), lineterm="")
    )
    wanted = [line for line in expected[2:] if not line.startswith("@@")]
    assert [line for line in str(found).split("\n")[2:] if not line.startswith("@@")] == wanted


@given(names(), names())
def test_texts_are_escaped(before, after):
    check_static(Diff(before, after, (before, after))._repr_html_())


def test_a_long_diff_is_cut():
    html = Diff("", "x\n" * 10_000)._repr_html_()
    assert html.count("\n") == MAX_LINES
    assert "more lines; print() shows all" in check_static(html)


@timed
def test_long_texts_are_compared_quickly():
    before = [f"x{k}" if k % 10 == 0 else "    y[i] = x[i]" for k in range(10_000)]
    after = [*before[:5000], "changed", *before[5001:7005], "new", *before[7005:]]
    found = Diff("\n".join(before), "\n".join(after))
    assert relative_ms(lambda: str(found)) < 1000
    assert found.counts == (2, 1)
