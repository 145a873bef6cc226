"""Prose, messages and identifiers are found in every language of the repository."""

from __future__ import annotations

import json

import pytest
from language import python_source
from language.fragments import Domain, Fragment, words_of
from language.other_sources import PARSERS

PYTHON = '''\
"""Module text with `code_span`.

>>> shown(1)
"""

import os as operating_system

# A comment
# of two lines.
class RowView:
    def method(self, first_arg):
        """Return it."""
        other = f"a {first_arg} message " "in two parts"
        return os.getcwd(), other, "one_word", 1  # trailing
'''


def of(suffix: str, text: str, domain: Domain) -> list[tuple[int, str]]:
    return [(f.line, f.text) for f in PARSERS[suffix](text) if f.domain is domain]


def test_prose_of_python_has_docstrings_and_comments_without_code() -> None:
    found = of(".py", PYTHON, Domain.PROSE)
    assert [line for line, _ in found] == [1, 12, 8, 14]
    assert "Module text with ···········." in found[0][1]
    assert "shown" not in found[0][1]
    assert found[2][1] == " A comment\n of two lines."


def test_messages_of_python_join_their_parts() -> None:
    assert of(".py", PYTHON, Domain.MESSAGE) == [(13, "a {} message in two parts")]


def test_identifiers_are_those_that_a_file_defines() -> None:
    found = {text for _, text in of(".py", PYTHON, Domain.IDENTIFIER)}
    assert {"row view", "method", "first arg", "other", "operating system", "one word"} <= found
    assert "code span" in found
    assert "getcwd" not in found


@pytest.mark.parametrize(
    ("name", "words"),
    [("HostIRView", "host ir view"), ("__init__", "init"), ("maxRow2", "max row2")],
)
def test_identifiers_are_split_into_words(name: str, words: str) -> None:
    assert words_of(name) == words


def test_typescript_has_comments_strings_names_and_element_text() -> None:
    text = (
        "/** Doc\n * text. */\n// one\n// two\n"
        'const rowView = `a ${x} text`;\nreturn <b title="some title">Shown text<i/></b>;\n'
    )
    assert [t.split() for _, t in of(".tsx", text, Domain.PROSE)] == [
        ["Doc", "text."],
        ["one", "two"],
    ]
    messages = [t for _, t in of(".tsx", text, Domain.MESSAGE)]
    assert messages == ["a {} text", "some title", "Shown text"]
    assert "row view" in [t for _, t in of(".tsx", text, Domain.IDENTIFIER)]


def test_style_sheets_have_comments_and_classes() -> None:
    text = "/* a comment */\n.tw-row > .is-open { color: var(--accent); }\n"
    assert of(".css", text, Domain.PROSE) == [(1, "   a comment   ")]
    assert [t for _, t in of(".css", text, Domain.IDENTIFIER)] == ["tw row", "is open", "accent"]


@pytest.mark.parametrize("suffix", [".toml", ""])
def test_hash_comments_are_prose(suffix: str) -> None:
    text = '# first\n# second\nkey = "a value # not a comment"  # third\n'
    assert [(line, t.split()) for line, t in of(suffix, text, Domain.PROSE)] == [
        (1, ["first", "second"]),
        (3, ["third"]),
    ]
    assert of(suffix, text, Domain.MESSAGE) == [(3, "a value # not a comment")]


def test_c_has_comments_strings_and_names() -> None:
    text = '/* why */\nint row_count; // here\nfail("no such name");\n'
    assert [t.split() for _, t in of(".c", text, Domain.PROSE)] == [["why"], ["here"]]
    assert of(".c", text, Domain.MESSAGE) == [(3, "no such name")]


def test_markdown_has_prose_code_names_and_comments_of_code() -> None:
    text = "Text with `a_name` and [a link](other/page.md).\n\n```py\nx = 1  # reason\n```\nEnd.\n"
    first, comment = of(".md", text, Domain.PROSE)[-1], of(".md", text, Domain.PROSE)[0]
    assert "other" not in first[1]
    assert "End." in first[1]
    assert (comment[0], comment[1].split()) == (4, ["reason"])
    assert (1, "a name") in of(".md", text, Domain.IDENTIFIER)


def test_notebooks_have_cells_and_no_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Some text."]},
        {"cell_type": "code", "source": ["%magic\n", "row = 1  # reason"], "outputs": ["a b c"]},
    ]
    text = json.dumps({"cells": cells}, indent=1)
    prose = of(".ipynb", text, Domain.PROSE)
    lines = text.splitlines()
    assert "Some text." in prose[0][1]
    assert "Title" in lines[prose[0][0] - 1]
    assert prose[1][1] == " reason"
    assert "row" in lines[prose[1][0] - 1]
    assert of(".ipynb", text, Domain.MESSAGE) == []


def test_comment_marks_inside_strings_are_not_comments() -> None:
    text = "x = \"# not one\"\ny = '''# nor\n# this'''\nz = \"\\\"#\"  # one\n"
    assert list(python_source.comments(text)) == [(4, " one")]


def test_pragmas_are_not_prose() -> None:
    assert list(python_source.comments("x = 1  # noqa: F401\n")) == []


def test_a_fragment_has_a_domain_a_line_and_a_text() -> None:
    (piece,) = python_source.fragments(python_source.parse("row = 1\n"))
    assert piece == Fragment(Domain.IDENTIFIER, 1, "row")
