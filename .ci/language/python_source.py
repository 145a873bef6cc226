"""Fragments of Python: docstrings, comments, string literals and the names it defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .fragments import Domain, Fragment, identifiers, prose

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9-]*")
STRING_OR_COMMENT = re.compile(
    r"\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(#[^\n]*)",
    re.DOTALL,
)
PRAGMA = re.compile(r"#\s*(?:noqa|pyright:|type:|fmt:|ruff:|pragma:)")


@dataclass(frozen=True, slots=True)
class PythonSource:
    """The syntax tree of a file, walked once, and its docstrings."""

    text: str
    nodes: tuple[ast.AST, ...]
    docstrings: tuple[tuple[Documented, ast.Constant], ...]


def parse(text: str) -> PythonSource:
    """Return the parsed file."""
    nodes = tuple(ast.walk(ast.parse(text)))
    documented = [node for node in nodes if isinstance(node, Documented)]
    found = [(node, doc) for node in documented if (doc := docstring(node)) is not None]
    return PythonSource(text, nodes, tuple(found))


def docstring(node: Documented) -> ast.Constant | None:
    """Return the docstring of a module, class or function."""
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str()) as doc), *_]:
            return doc
        case _:
            return None


def fragments(source: PythonSource) -> Iterator[Fragment]:
    """Yield the fragments of a Python file."""
    lines = source.text.splitlines()
    for _, doc in source.docstrings:
        yield from prose("\n".join(lines[doc.lineno - 1 : doc.end_lineno]), doc.lineno)
    for line, comment in comments(source.text):
        yield from prose(comment, line)
    yield from literals(source)
    names = sorted(definitions(source), key=lambda item: item[1])
    yield from identifiers(names)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments; those on consecutive lines of their own are one text."""
    block: list[str] = []
    first = last = line = 1
    position = 0
    for match in STRING_OR_COMMENT.finditer(text):
        if match[1] is None or PRAGMA.match(match[1]):
            continue
        line += text.count("\n", position, match.start())
        position = match.start()
        alone = not text[text.rfind("\n", 0, position) + 1 : position].strip()
        if block and not (alone and line == last + 1):
            yield first, "\n".join(block)
            block = []
        if not block:
            first = line
        block.append(match[1].lstrip("#!"))
        last = line if alone else -1
    if block:
        yield first, "\n".join(block)


def literals(source: PythonSource) -> Iterator[Fragment]:
    """Yield string literals: those of several words as messages, single words as identifiers."""
    skipped: set[ast.expr] = {doc for _, doc in source.docstrings}
    for node in source.nodes:
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
    for node in source.nodes:
        match node:
            case ast.JoinedStr(values=values):
                parts = (
                    str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values
                )
                yield literal("".join(parts), node)
            case ast.Constant(value=str(value)) if node not in skipped:
                yield literal(value, node)
            case _:
                pass


def literal(text: str, node: ast.Constant | ast.JoinedStr) -> Fragment:
    """Return the fragment of one literal."""
    domain = Domain.IDENTIFIER if WORD.fullmatch(text) else Domain.MESSAGE
    if domain is Domain.IDENTIFIER:
        return next(identifiers([(text.replace("-", "_"), node.lineno)]))
    return Fragment(domain, node.lineno, text, node.end_lineno or node.lineno)


def definitions(source: PythonSource) -> Iterator[tuple[str, int]]:
    """Yield the names a file defines, with their lines; names it only uses are not its own."""
    for node in source.nodes:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.alias(asname=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
                | ast.ExceptHandler(name=str(name))
            ):
                yield name, node.lineno
            case _:
                pass
