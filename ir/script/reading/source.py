"""From a string to Python's syntax tree, whatever the string is; places in it for errors."""

from __future__ import annotations

import ast
from typing import TypeAlias

from ..errors import ParseError, Place, ScriptSyntaxError, TextTooLargeError

MAX_CHARACTERS = 4 << 20
"""Characters of a whole text: an unrolled model of a hundred layers has a tenth of it."""

MAX_DEPTH = 200
"""Levels of nested expressions. Python's own limit is near 1000 on the default stack."""

Located: TypeAlias = "ast.expr | ast.stmt | ast.keyword | ast.arg"


class Source:
    """A text and its lines.

    Examples
    --------
    >>> source = Source("x = 1 +")
    >>> source.tree()
    Traceback (most recent call last):
        ...
    tilewright.ir.script.errors.ScriptSyntaxError: invalid syntax
      at line 1, column 8
        x = 1 +
               ^
    """

    def __init__(self, text: str, *, first_line: int = 1) -> None:
        """Keep the text; ``first_line`` is the number of its first line in its own file."""
        self.text = text
        self._first = first_line
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """Give one line of the text, counted from 1; empty beyond its end."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def place(self, node: Located) -> Place:
        """Find a node in the text. Python counts columns in bytes; a reader counts characters."""
        text = self.line(node.lineno)
        raw = text.encode("utf-8", "surrogatepass")
        start = len(raw[: node.col_offset].decode("utf-8", "replace"))
        last = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = len(raw[: node.end_col_offset].decode("utf-8", "replace")) if last else len(text)
        return Place(node.lineno + self._first - 1, start + 1, max(end - start, 1), text)

    def point(self, line: int, column: int) -> Place:
        """Make a place from numbers counted from 1 in this text."""
        return Place(line + self._first - 1, column, 1, self.line(line))

    def error(self, node: Located, message: str, hint: str = "") -> ParseError:
        """Make a syntax error at a node."""
        return ScriptSyntaxError(message, place=self.place(node), hint=hint)

    def tree(self) -> ast.Module:
        """Parse with Python's grammar, and refuse what is too large to walk.

        Raises
        ------
        ScriptSyntaxError
            If the text is not Python.
        TextTooLargeError
            If it is too long or too deeply nested.
        """
        if len(self.text) > MAX_CHARACTERS:
            raise self._too_large(f"{len(self.text)} characters are more than {MAX_CHARACTERS}")
        try:
            tree = ast.parse(self.text)
        except SyntaxError as error:
            raise self._syntax(error) from None
        except (RecursionError, MemoryError):
            raise self._too_large("expressions are nested too deeply") from None
        except ValueError as error:
            raise ScriptSyntaxError(
                f"the text is not Unicode that Python reads: {error}", place=self.point(1, 1)
            ) from None
        self._check_depth(tree)
        return tree

    def _syntax(self, error: SyntaxError) -> ParseError:
        message = error.msg or "not Python"
        place = self.point(error.lineno or 1, max(error.offset or 1, 1))
        kind = TextTooLargeError if "too many" in message else ScriptSyntaxError
        return kind(message, place=place)

    def _too_large(self, message: str, node: Located | None = None) -> ParseError:
        place = self.point(1, 1) if node is None else self.place(node)
        return TextTooLargeError(message, place=place)

    def _check_depth(self, tree: ast.Module) -> None:
        """Walk without recursion, so that what follows may recurse without care."""
        level: list[ast.AST] = [tree]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        deepest = next((n for n in level if isinstance(n, ast.expr | ast.stmt)), None)
        raise self._too_large(f"expressions are nested more than {MAX_DEPTH} deep", deepest)
