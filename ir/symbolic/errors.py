"""What can go wrong with symbolic integers, each with a name."""

from __future__ import annotations

from ..errors import TilewrightError


class SymbolicError(TilewrightError):
    """A symbolic integer was used in a way that has no meaning."""

    title = "Symbolic integer"


class UndecidedConditionError(SymbolicError):
    """A symbolic condition was used as a Python truth value although both outcomes are possible."""

    title = "Undecided condition"


class UnboundSymbolError(SymbolicError):
    """A term was evaluated without a value for one of its symbols."""

    title = "Symbol without a value"


class ZeroDivisorError(SymbolicError):
    """A term divides by a value that is zero."""

    title = "Division by zero"


class InvalidSymbolError(SymbolicError):
    """A symbol was declared with a range that holds no integer, or with a senseless multiple."""

    title = "Invalid symbol"


class NotAnIntegerError(SymbolicError):
    """Something that is neither an integer nor a term stands where a symbolic integer belongs."""

    title = "Not a symbolic integer"


class NotAConditionError(SymbolicError):
    """Something that is no symbolic condition stands where one belongs."""

    title = "Not a symbolic condition"


class SymbolicSyntaxError(SymbolicError):
    """The text of a term cannot be read; ``line`` and ``column`` say where (both from 1)."""

    title = "Syntax error in a symbolic expression"

    def __init__(self, message: str, *, line: int, column: int, hint: str = "") -> None:
        """Keep the position beside the message."""
        super().__init__(
            message,
            where=f"line {line}, column {column}",
            hint=hint,
            details={"line": line, "column": column},
        )
        self.line = line
        self.column = column


class UnsolvableEquationError(SymbolicError):
    """An equation has no integer-valued closed form for the symbol asked for."""

    title = "Cannot solve"


class ContradictoryFactsError(SymbolicError):
    """Two facts about a program cannot both hold."""

    title = "Contradictory facts"
