"""Safe conversion of a string to Python's syntax tree, and source locations for errors."""

from __future__ import annotations

import ast
from typing import Final, TypeAlias

from ....locks import parse_module
from ..errors import ParseError, ScriptSyntaxError, SourceLocation, TextTooLargeError

MAX_CHARACTERS = 4 << 20
"""Limit of characters per text; an unrolled model of 100 layers needs a tenth of it."""

MAX_DEPTH = 200
"""Limit of nested expressions. Python's own limit is near 1000 on the default stack."""

Located: TypeAlias = "ast.expr | ast.stmt | ast.keyword | ast.arg"

_MAX_QUOTED = 40
_KINDS: Final[dict[type[ast.AST], str]] = {
    ast.Attribute: "an attribute",
    ast.BinOp: "an arithmetic expression",
    ast.BoolOp: "a logical expression",
    ast.Call: "a call",
    ast.Compare: "a comparison",
    ast.Dict: "a dictionary",
    ast.GeneratorExp: "a generator",
    ast.IfExp: "a conditional expression",
    ast.JoinedStr: "a formatted string",
    ast.Lambda: "a lambda",
    ast.List: "a list",
    ast.ListComp: "a list comprehension",
    ast.Slice: "a slice",
    ast.Starred: "an unpacked argument",
    ast.Subscript: "a subscript",
    ast.Tuple: "a tuple",
    ast.UnaryOp: "a unary expression",
}


def describe(node: ast.AST) -> str:
    """Describe a syntax node briefly, for "expected X, got Y".

    Examples
    --------
    >>> [describe(ast.parse(text, mode="eval").body) for text in ("n", "3", "(1, 2)", "exp(x)")]
    ["'n'", '3', 'a tuple', 'exp(...)']
    """
    match node:
        case ast.Name(id=name):
            return repr(name)
        case ast.Call(func=ast.Name(id=name)):
            return f"{name}(...)"
        case ast.Constant(value=int() as value) if value.bit_length() > 3 * _MAX_QUOTED:
            return "a large integer"  # repr() raises ValueError on very large integers
        case ast.Constant(value=value):
            text = repr(value)
            return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}..."
        case _:
            return _KINDS.get(type(node), "another expression")


def text_of(node: ast.expr) -> str:
    """Return the text of an expression; a description of it if the text is long.

    Examples
    --------
    >>> text_of(ast.parse("x[i] * 2.0", mode="eval").body)
    'x[i] * 2.0'
    """
    try:
        text = ast.unparse(node)
    except (ValueError, RecursionError):  # integers beyond the limit of digits
        return describe(node)
    return text if len(text) <= _MAX_QUOTED else describe(node)


class Source:
    """A program text with its lines.

    Examples
    --------
    >>> source = Source("x = 1 +")
    >>> source.tree()
    Traceback (most recent call last):
        ...
    tilewright.ir.script.errors.ScriptSyntaxError: invalid syntax
      at line 1, column 8
        1 | x = 1 +
          |        ^
      programs are written in Python's syntax
    """

    def __init__(self, text: str, *, first_line: int = 1) -> None:
        """Store the text; ``first_line`` is the line number of its first line in its file."""
        self.text = text
        self._first = first_line
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """Return one line of the text, counted from 1; empty beyond the end."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def line_number(self, line: int) -> int:
        """Return the number in the file of a line of this text, both counted from 1."""
        return line + self._first - 1

    def location(self, node: Located) -> SourceLocation:
        """Return the location of a node; columns are converted from bytes to characters."""
        text = self.line(node.lineno)
        raw = text.encode("utf-8", "surrogatepass")
        start = len(raw[: node.col_offset].decode("utf-8", "replace"))
        last = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = len(raw[: node.end_col_offset].decode("utf-8", "replace")) if last else len(text)
        return SourceLocation(node.lineno + self._first - 1, start + 1, max(end - start, 1), text)

    def location_at(self, line: int, column: int) -> SourceLocation:
        """Return the location at a line and column of this text, both counted from 1."""
        return SourceLocation(line + self._first - 1, column, 1, self.line(line))

    def error(self, node: Located, message: str, hint: str = "") -> ParseError:
        """Return a syntax error at a node."""
        return ScriptSyntaxError(message, location=self.location(node), hint=hint)

    def tree(self) -> ast.Module:
        """Parse the text with Python's grammar.

        Raises
        ------
        ScriptSyntaxError
            If the text is not valid Python.
        TextTooLargeError
            If the text is too long or too deeply nested.
        """
        if len(self.text) > MAX_CHARACTERS:
            raise self.too_large(
                f"expected at most {MAX_CHARACTERS} characters, got {len(self.text)}"
            )
        try:
            tree = parse_module(self.text)
        except SyntaxError as error:
            raise self._syntax(error) from None
        except (RecursionError, MemoryError):
            raise self.too_large("expressions are nested too deeply") from None
        except ValueError as error:
            raise ScriptSyntaxError(
                f"invalid source text: {error}",
                location=self.location_at(1, 1),
                hint="remove the invalid character, or save the file as UTF-8",
            ) from None
        self._check_depth(tree)
        return tree

    def _syntax(self, error: SyntaxError) -> ParseError:
        message = error.msg or "invalid Python syntax"
        location = self.location_at(error.lineno or 1, max(error.offset or 1, 1))
        kind = TextTooLargeError if "too many" in message else ScriptSyntaxError
        return kind(message, location=location, hint="programs are written in Python's syntax")

    def too_large(self, message: str, node: Located | None = None) -> ParseError:
        """Return an error about a program that is too long or too deeply nested."""
        location = self.location_at(1, 1) if node is None else self.location(node)
        hint = "split the program into several functions, and long expressions into several lines"
        return TextTooLargeError(message, location=location, hint=hint)

    def _check_depth(self, tree: ast.Module) -> None:
        """Check the depth without recursion, so that later passes can recurse safely."""
        level: list[ast.AST] = [tree]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        deepest = next((n for n in level if isinstance(n, ast.expr | ast.stmt)), None)
        raise self.too_large(f"expressions are nested more than {MAX_DEPTH} levels deep", deepest)
