"""Errors of operator calls."""

from __future__ import annotations

from ....errors import TilewrightError


class UnknownOperatorError(TilewrightError):
    """An operator name that is not registered."""

    title = "Unknown operator"


class DuplicateOperatorError(TilewrightError):
    """A second operator with the name of a registered one."""

    title = "Duplicate operator"


class OperatorDefinitionError(TilewrightError):
    """An invalid definition of an operator."""

    title = "Invalid operator"


class OperandError(TilewrightError):
    """A missing or extra operand, or an operand of the wrong kind, rank or dtype."""

    title = "Invalid operand"


class OperatorAttributeError(TilewrightError):
    """A missing or unknown attribute, or an illegal attribute value."""

    title = "Invalid attribute"


class NotDifferentiableError(TilewrightError):
    """A gradient of a value, a parameter, or a function that has none."""

    title = "Nondifferentiable function"


class MissingGradientError(NotDifferentiableError):
    """Operations without a gradient between the parameters and the result."""

    title = "Missing gradient"
