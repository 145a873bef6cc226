"""The arguments of one call in the text, taken one by one; what is left over is an error."""

from __future__ import annotations

import ast

from ..errors import DuplicateNameError, ParseError, ScriptSyntaxError
from .source import Source


def called_name(node: ast.expr) -> str | None:
    """Give the name that a call calls, ``a.b.c`` for attributes; None for anything else."""
    match node:
        case ast.Call(func=func):
            return dotted_name(func)
        case _:
            return None


def dotted_name(node: ast.expr) -> str | None:
    """Give ``a.b.c`` for names and attributes of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


class Arguments:
    """Positional and keyword arguments of a call, with the usage that errors quote."""

    def __init__(self, source: Source, node: ast.Call, usage: str) -> None:
        """Spread the keywords, ``**{"a.b": 1}`` included."""
        self._source = source
        self._usage = usage
        self.node = node
        self.positional = node.args
        self._keywords: dict[str, ast.expr] = {}
        self._order: list[str] = []
        for starred in (a for a in node.args if isinstance(a, ast.Starred)):
            raise self.error("an argument cannot be unpacked here", starred)
        for word in node.keywords:
            self._spread(word)

    def _spread(self, word: ast.keyword) -> None:
        if word.arg is not None:
            self._enter(word.arg, word.value)
            return
        if not isinstance(word.value, ast.Dict):
            raise self._source.error(word, 'after ** stands a dictionary such as {"a.b": 1}')
        for key, value in zip(word.value.keys, word.value.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                raise self.error("a key is a string", key or value)
            self._enter(f"{SPREAD}{key.value}", value)

    def _enter(self, key: str, value: ast.expr) -> None:
        if key in self._keywords:
            raise DuplicateNameError(
                f"{key.removeprefix(SPREAD)!r} is given twice", place=self._source.place(value)
            )
        self._keywords[key] = value
        self._order.append(key)

    def error(self, message: str, node: ast.expr | None = None) -> ParseError:
        """Make an error that quotes the usage."""
        place = self._source.place(node or self.node)
        return ScriptSyntaxError(message, place=place, hint=f"usage: {self._usage}")

    def take(self, least: int, most: int | None = None) -> list[ast.expr]:
        """Give the positional arguments, as many as there may be."""
        top = least if most is None else most
        count = len(self.positional)
        if not least <= count <= top:
            wanted = str(least) if least == top else f"{least} to {top}"
            raise self.error(f"{count} positional arguments where {wanted} are taken")
        return self.positional

    def keyword(self, name: str) -> ast.expr | None:
        """Take one keyword argument, if it is there."""
        found = self._keywords.pop(name, None)
        if found is not None:
            self._order.remove(name)
        return found

    def rest(self) -> list[tuple[str, ast.expr]]:
        """Take all keyword arguments that are left, in order."""
        left = [(key.removeprefix(SPREAD), self._keywords[key]) for key in self._order]
        self._order = []
        return left

    def finish(self) -> None:
        """Refuse what nobody took."""
        for key in self._order:
            raise self.error(f"no argument {key.removeprefix(SPREAD)!r} here", self._keywords[key])


SPREAD = "**"
"""Marks keys from ``**{...}``: those never mean a keyword of the format itself."""
