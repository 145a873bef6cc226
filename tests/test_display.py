"""The text and HTML forms of tables and code."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from hypothesis import given, strategies as st

from tilewright.display import FOLD_AFTER, FOLDED, Table, code_html, present
from tilewright.errors import Mark

from tests.static_html import check_static

TIMES = Table(
    ("kernel", "calls", "time (µs)"),
    (("matmul", 6, 12.5), ("softmax", 12, 3.25), ("copy", 1, None)),
    title="Kernels",
    notes=("medians of 9 calls",),
)


def test_numbers_are_aligned_to_the_right() -> None:
    assert str(TIMES).splitlines() == [
        "Kernels",
        "kernel      calls    time (µs)",
        "--------  -------  -----------",
        "matmul          6         12.5",
        "softmax        12         3.25",
        "copy            1",
        "medians of 9 calls",
    ]


def test_a_table_without_rows_shows_its_columns() -> None:
    assert str(Table(("a", "b"), ())).splitlines()[0].split() == ["a", "b"]
    assert check_static(Table(("a", "b"), ())._repr_html_()) == "ab"


def test_a_table_as_html_contains_each_cell() -> None:
    found = check_static(TIMES._repr_html_())
    assert found == "Kernelskernelcallstime (µs)matmul612.5softmax123.25copy1medians of 9 calls"


@given(st.text(), st.integers(1, 30))
def test_hostile_text_is_escaped(text: str, column: int) -> None:
    marks = [Mark(1, column, column + 2)]
    check_static(code_html(text, highlight=marks, title=text))
    check_static(Table((text,), ((text,),), title=text, notes=(text,))._repr_html_())


def test_code_has_numbers_colors_and_marks() -> None:
    html = code_html("def f():\n    return 1", highlight=[Mark(2, 5, 11)])
    assert check_static(html).split() == ["1", "def", "f():", "2", "return", "1"]
    assert html.count("<mark ") == 1
    assert "color:#b04fc4" in html


def test_languages_are_highlighted() -> None:
    assert "color:" in code_html("define i32 @f() {\n  ret i32 0\n}", language="llvm")
    assert check_static(code_html("mov eax, 1\nret", language="asm")).split()[-1] == "ret"
    assert "color:#" not in code_html("def f(): 1", language="text")


def test_long_code_is_folded_and_bounded() -> None:
    count = 10_000
    html = code_html("\n".join(f"x{k} = {k}" for k in range(count)))
    found = check_static(html)
    assert "<details>" in html
    assert f"{count - FOLD_AFTER} more lines, {FOLDED} shown" in found
    assert f"... {count - FOLD_AFTER - FOLDED} more lines; print() shows all" in found
    assert len(html) < 400_000
    assert check_static(code_html("x = 1\n" * FOLD_AFTER)).count("=") == FOLD_AFTER
    assert "<details>" not in code_html("x = 1\n" * FOLD_AFTER)


def test_present_prints_without_a_notebook(capsys) -> None:
    present(TIMES)
    assert capsys.readouterr().out == f"{TIMES}\n"


def test_present_displays_in_a_notebook(monkeypatch, capsys) -> None:
    shown: list[object] = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    present(TIMES)
    assert shown == [TIMES]
    assert capsys.readouterr().out == ""
