"""The text and HTML forms of tables and code."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace

from hypothesis import given, strategies as st

from tilewright.display import FOLD_AFTER, FOLDED, Table, code_html, present
from tilewright.errors import Mark

TIMES = Table(
    ("kernel", "calls", "time (µs)"),
    (("matmul", 6, 12.5), ("softmax", 12, 3.25), ("copy", 1, None)),
    title="Kernels",
    notes=("medians of 9 calls",),
)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> _Tags:
    found = _Tags()
    found.feed(text)
    found.close()
    assert not found.open
    return found


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
    assert parsed(Table(("a", "b"), ())._repr_html_()).text == "ab"


def test_a_table_as_html_contains_each_cell() -> None:
    found = parsed(TIMES._repr_html_())
    assert (
        found.text == "Kernelskernelcallstime (µs)matmul612.5softmax123.25copy1medians of 9 calls"
    )


@given(st.text(), st.integers(1, 30))
def test_hostile_text_is_escaped(text: str, column: int) -> None:
    marks = [Mark(1, column, column + 2)]
    code = parsed(code_html(text, highlight=marks, title=text))
    assert code.seen <= {"div", "strong", "pre", "span", "mark"}
    table = parsed(Table((text,), ((text,),), title=text, notes=(text,))._repr_html_())
    assert "script" not in table.seen


def test_code_has_numbers_colors_and_marks() -> None:
    html = code_html("def f():\n    return 1", highlight=[Mark(2, 5, 11)])
    assert parsed(html).text.split() == ["1", "def", "f():", "2", "return", "1"]
    assert html.count("<mark ") == 1
    assert "color:#b04fc4" in html


def test_languages_are_highlighted() -> None:
    assert "color:" in code_html("define i32 @f() {\n  ret i32 0\n}", language="llvm")
    assert parsed(code_html("mov eax, 1\nret", language="asm")).text.split()[-1] == "ret"
    assert "color:#" not in code_html("def f(): 1", language="text")


def test_long_code_is_folded_and_bounded() -> None:
    count = 10_000
    html = code_html("\n".join(f"x{k} = {k}" for k in range(count)))
    found = parsed(html)
    assert "details" in found.seen
    assert f"{count - FOLD_AFTER} more lines, {FOLDED} shown" in found.text
    assert f"... {count - FOLD_AFTER - FOLDED} more lines; print() shows all" in found.text
    assert len(html) < 400_000
    assert parsed(code_html("x = 1\n" * FOLD_AFTER)).text.count("=") == FOLD_AFTER
    assert "details" not in parsed(code_html("x = 1\n" * FOLD_AFTER)).seen


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
