"""Errors of symbolic integers."""

from __future__ import annotations

import ast

from ...errors import Excerpt, Mark, TilewrightError


class SymbolicError(TilewrightError):
    """An invalid operation on symbolic integers."""

    title = "Symbolic integer error"


class UndecidedConditionError(SymbolicError):
    """The use of a symbolic condition as a Python bool although its value is not constant."""

    title = "Undecided condition"


class UnboundSymbolError(SymbolicError):
    """The evaluation of a term without a value for one of its symbols."""

    title = "Unbound symbol"


class ZeroDivisorError(SymbolicError):
    """A divisor that evaluates to zero."""

    title = "Division by zero"


class InvalidSymbolError(SymbolicError):
    """A declaration of a symbol with an empty range, or with a ``multiple_of`` below 1."""

    title = "Invalid symbol"


class NotAnIntegerError(SymbolicError):
    """A value that is neither an integer nor an integer term."""

    title = "Invalid symbolic integer"


class OperandError(NotAnIntegerError, TypeError):
    """An operator of integer terms with a float or a text, or that yields no integer."""

    title = "Invalid operand"


class NotAConditionError(SymbolicError):
    """A value that is not a symbolic condition."""

    title = "Invalid symbolic condition"


class SymbolicSyntaxError(SymbolicError):
    """An invalid text of a term; ``line`` and ``column`` count from 1."""

    title = "Syntax error in a symbolic expression"

    def __init__(
        self,
        message: str,
        *,
        line: int,
        column: int,
        hint: str = "",
        node: ast.expr | None = None,
    ) -> None:
        """Store the message, the position, and the node of the syntax tree if there is one."""
        super().__init__(
            message,
            where=f"line {line}, column {column}",
            hint=hint,
            details={"line": line, "column": column},
        )
        self.node = node
        self.line = line
        self.column = column
        self._text: str | None = None

    def quote(self, text: str) -> None:
        """Add the text of the term, whose part at fault the message underlines."""
        self._text = text

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return the line of the term with the part at fault underlined."""
        if self._text is None:
            return ()
        lines = self._text.splitlines() or [""]
        end = self.node.end_col_offset if self.node is not None else None
        mark = Mark(self.line, self.column, max((end or 0) + 1, self.column + 1))
        return (Excerpt("", ((self.line, lines[min(self.line, len(lines)) - 1]),), (mark,)),)


class UnsolvableEquationError(SymbolicError):
    """An equation without a unique solution for the requested symbol."""

    title = "Unsolvable equation"


class ContradictoryFactsError(SymbolicError):
    """Facts about a program that cannot all be true."""

    title = "Contradictory facts"
