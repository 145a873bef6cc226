"""Errors of symbolic integers."""

from __future__ import annotations

from ...errors import TilewrightError


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


class NotAConditionError(SymbolicError):
    """A value that is not a symbolic condition."""

    title = "Invalid symbolic condition"


class SymbolicSyntaxError(SymbolicError):
    """An invalid text of a term; ``line`` and ``column`` count from 1."""

    title = "Syntax error in a symbolic expression"

    def __init__(self, message: str, *, line: int, column: int, hint: str = "") -> None:
        """Store the message and the position."""
        super().__init__(
            message,
            where=f"line {line}, column {column}",
            hint=hint,
            details={"line": line, "column": column},
        )
        self.line = line
        self.column = column


class UnsolvableEquationError(SymbolicError):
    """An equation without a unique solution for the requested symbol."""

    title = "Unsolvable equation"


class ContradictoryFactsError(SymbolicError):
    """Facts about a program that cannot all be true."""

    title = "Contradictory facts"
