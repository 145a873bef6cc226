"""The renderings of errors and excerpts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from tilewright.errors import Excerpt, Mark, TilewrightError, visible

from tests.static_html import check_static

LINES = ((1, "def f(n):"), (7, "\tfor i in range(n):"), (8, "\t\tg(i, n)"))
EXCERPT = Excerpt("f", LINES, (Mark(7, 6, 7), Mark(7, 17, 18), Mark(8, 5, 6)))


def test_an_excerpt_numbers_lines_and_underlines_parts() -> None:
    assert str(EXCERPT).splitlines() == [
        "1 | def f(n):",
        "  | ...",
        "7 | \tfor i in range(n):",
        "  | \t    ^          ^",
        "8 | \t\tg(i, n)",
        "  | \t\t  ^",
    ]


def test_an_excerpt_as_html_marks_the_same_parts() -> None:
    found = check_static(EXCERPT.to_html())
    assert found.count("range") == 1
    assert EXCERPT.to_html().count("<mark ") == 3


def test_an_excerpt_as_data() -> None:
    data = EXCERPT.to_json()
    assert data["function"] == "f"
    assert data["marks"] == [[7, 6, 7], [7, 17, 18], [8, 5, 6]]


def test_an_error_renders_its_parts_in_order() -> None:
    error = TilewrightError("bad", where="loop 'i'", hint="fix it", excerpts=(EXCERPT,))
    lines = str(error).splitlines()
    assert lines[0] == "bad"
    assert lines[1] == "  at loop 'i'"
    assert lines[2] == "    1 | def f(n):"
    assert lines[-1] == "  fix it"
    assert error.to_json()["excerpts"] == [EXCERPT.to_json()]
    assert check_static(error._repr_html_()).index("bad") == len("Error: ")


@given(st.text(), st.text(), st.integers(1, 9), st.integers(0, 9))
def test_hostile_text_is_escaped(message: str, line: str, column: int, width: int) -> None:
    line = line.replace("\n", " ")
    excerpt = Excerpt("f", ((1, line),), (Mark(1, column, column + width),))
    error = TilewrightError(message, where=message, hint=message, excerpts=(excerpt,))
    check_static(error._repr_html_())
    assert visible(str(excerpt)) == str(excerpt)


SESSION = """
import os, re
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import tilewright as tw", store_history=True)
shell.run_cell("def inner(text):\\n    return tw.parse(text)", store_history=True)
shell.run_cell("x = 1\\ninner('x = 1')", store_history=True)
print("=====")
os.environ["TILEWRIGHT_FULL_TRACEBACK"] = "1"
shell.run_line_magic("tb", "")
"""


def test_a_notebook_shows_the_frames_of_the_user_only() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, check=True
    )
    short, _, full = ran.stdout.partition("=====")
    assert short.splitlines() == [
        "Cell In[3], line 2, in <module>",
        "----> 2 inner('x = 1')",
        "Cell In[2], line 2, in inner",
        "----> 2     return tw.parse(text)",
        "ScriptSyntaxError: unsupported statement in a module",
        "  at line 1, column 1",
        "    1 | x = 1",
        "      | ^^^^^",
        "  statements are symbols, constant, module, and functions under @prim_func or @graph_func",
    ]
    assert "ir/script/text.py" in full
    assert full.count("Cell In[") == 2


def test_a_traceback_without_a_notebook_names_the_file() -> None:
    with pytest.raises(TilewrightError) as caught:
        raise TilewrightError("bad \x1b[31m")
    lines = caught.value._render_traceback_()
    assert lines[0].startswith(f'File "{__file__}", line ')
    assert lines[1].endswith('raise TilewrightError("bad \\x1b[31m")')
    assert lines[-1] == "TilewrightError: bad \\x1b[31m"


def test_invisible_characters_become_escapes() -> None:
    assert visible("\x1b[2J\u202etxt\ta\n") == "\\x1b[2J\\u202etxt\ta\n"
