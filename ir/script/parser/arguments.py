"""Access to the arguments of a call in the text; unused arguments are an error."""

from __future__ import annotations

import ast

from ..errors import DuplicateNameError, ParseError, ScriptSyntaxError
from .source import Source, describe


def called_name(node: ast.expr) -> str | None:
    """Return the dotted name of the callee; None if the node is not a call of a name."""
    match node:
        case ast.Call(func=func):
            return dotted_name(func)
        case _:
            return None


def dotted_name(node: ast.expr) -> str | None:
    """Return ``a.b.c`` for names and attributes of names; None otherwise."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


class Arguments:
    """The positional and keyword arguments of a call, and the usage that errors quote."""

    def __init__(self, source: Source, node: ast.Call, usage: str) -> None:
        """Collect the arguments; ``**{"a.b": 1}`` is expanded."""
        self._source = source
        self._usage = usage
        self.node = node
        self.positional = node.args
        self._keywords: dict[str, ast.expr] = {}
        self._order: list[str] = []
        for starred in (a for a in node.args if isinstance(a, ast.Starred)):
            raise self.error("unpacking arguments with * is not supported", starred)
        for word in node.keywords:
            self._spread(word)

    def _spread(self, word: ast.keyword) -> None:
        if word.arg is not None:
            self._enter(word.arg, word.value)
            return
        if not isinstance(word.value, ast.Dict):
            raise self._source.error(
                word,
                f"expected a dictionary after **, got {describe(word.value)}",
                'write **{"a.b": 1}',
            )
        for key, value in zip(word.value.keys, word.value.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                got = "none" if key is None else describe(key)
                raise self.error(f"expected a string as key, got {got}", key or value)
            self._enter(f"{SPREAD}{key.value}", value)

    def _enter(self, key: str, value: ast.expr) -> None:
        if key in self._keywords:
            raise DuplicateNameError(
                f"duplicate keyword argument {key.removeprefix(SPREAD)!r}",
                location=self._source.location(value),
            )
        self._keywords[key] = value
        self._order.append(key)

    def error(self, message: str, node: ast.expr | None = None) -> ParseError:
        """Return a syntax error that quotes the usage."""
        location = self._source.location(node or self.node)
        return ScriptSyntaxError(message, location=location, hint=f"usage: {self._usage}")

    def take(self, least: int, most: int | None = None) -> list[ast.expr]:
        """Return the positional arguments after checking their number."""
        top = least if most is None else most
        count = len(self.positional)
        if not least <= count <= top:
            expected = str(least) if least == top else f"{least} to {top}"
            noun = "argument" if top == 1 else "arguments"
            raise self.error(f"expected {expected} positional {noun}, got {count}")
        return self.positional

    def keyword(self, name: str) -> ast.expr | None:
        """Remove and return a keyword argument; None if it is absent."""
        found = self._keywords.pop(name, None)
        if found is not None:
            self._order.remove(name)
        return found

    def rest(self) -> list[tuple[str, ast.expr]]:
        """Remove and return all remaining keyword arguments in order."""
        left = [(key.removeprefix(SPREAD), self._keywords[key]) for key in self._order]
        self._order = []
        return left

    def finish(self) -> None:
        """Raise an error if a keyword argument is unused."""
        for key in self._order:
            name = key.removeprefix(SPREAD)
            raise self.error(f"unexpected keyword argument {name!r}", self._keywords[key])


SPREAD = "**"
"""The prefix of keys from ``**{...}``; such keys are never keywords of the format itself."""
