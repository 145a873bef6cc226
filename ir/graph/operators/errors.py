"""What can be wrong with a call of an operator."""

from __future__ import annotations

from ...errors import TilewrightError


class UnknownOperatorError(TilewrightError):
    """No operator is registered under that name."""

    title = "Unknown operator"


class OperandError(TilewrightError):
    """An operand is missing, is one too many, or is of the wrong kind, rank or dtype."""

    title = "Bad operand"


class OperatorAttributeError(TilewrightError):
    """An attribute is missing, unknown, or has a value that the operator does not allow."""

    title = "Bad attribute"


class ShapeMismatchError(TilewrightError):
    """Dimensions that have to agree cannot, whatever the symbols are."""

    title = "Shape mismatch"
