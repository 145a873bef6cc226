"""Form of docstrings: how the first line begins, by the kind of definition."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .python_source import Documented, PythonSource
from .rules import Form

Problem = tuple[int, str, str, str]

PROPERTIES = frozenset({"property", "cached_property", "setter", "overload"})


def check(source: PythonSource, form: Form, *, tests: bool) -> Iterator[Problem]:
    """Yield line, rule, text and replacement for each docstring and title of the wrong form."""
    for node, doc in source.docstrings:
        yield from of_docstring(node, doc, form, tests=tests)
    for node in source.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="title")], value=ast.Constant(value=str(title))
            ) | (ast.AnnAssign(target=ast.Name(id="title"), value=ast.Constant(value=str(title)))):
                if form.no_title.search(title):
                    yield node.lineno, "title", title, "a noun phrase: 'Stale handle'"
            case _:
                pass


def of_docstring(
    node: Documented, doc: ast.Constant, form: Form, *, tests: bool
) -> Iterator[Problem]:
    """Yield the problem of one docstring, if any. In tests, only its first word matters."""
    first = str(doc.value).strip().split("\n", 1)[0]
    found = re.match(r"[`A-Za-z][A-Za-z'-]*", first)  # a code span is a rewrite rule or formula
    word = found[0].lower() if found else ""
    quoted = first[:50]
    action = is_function(node)
    if word in form.gives:
        yield doc.lineno, "give", quoted, "Return, Yield, or the noun"
    elif word in form.questions or (word == "whether" and (action or not is_property(node))):
        yield doc.lineno, "question", quoted, "a noun phrase, or 'Return whether ...'"
    elif not tests and action and (word in form.not_verbs or third_person(word)):
        use = "one sentence that begins with a verb: 'Return ...'"
        yield doc.lineno, "imperative", quoted, use


def is_property(node: Documented) -> bool:
    """Return whether a definition is read like an attribute."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    names = {ast.unparse(item).split("(")[0].rpartition(".")[2] for item in node.decorator_list}
    return bool(names & PROPERTIES)


def is_function(node: Documented) -> bool:
    """Return whether a docstring describes an action: properties are described by a noun."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node)


def third_person(word: str) -> bool:
    """Return whether a word looks like a plural or the third person of a verb."""
    return (
        word.endswith("s") and not word.endswith("ss") and word not in {"bias", "focus", "canvas"}
    )
