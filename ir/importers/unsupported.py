"""Errors for operators of a source model that cannot be imported; one error lists all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import TilewrightError, UnsupportedOperatorsError


class UnsupportedFormError(TilewrightError):
    """A use of a supported operator with unsupported attributes or operands."""

    title = "Unsupported operator variant"

    @property
    def reason(self) -> str:
        """The message, with the hint if there is one."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


def operand_reason(error: TilewrightError) -> str:
    """Return why an operator rejects an operand, with the operand, in one line."""
    return f"{error.message} at {error.where}" if error.where else error.message


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One use of an operator that cannot be imported.

    Parameters
    ----------
    operator : str
        The name of the operator in the source model.
    reason : str
        Why this use is not supported; empty if no use of the operator is supported.
    location : str
        The node of the source model, with its module or source line if the model has one.

    Examples
    --------
    >>> str(Unsupported("aten.svd.default", "", "encoder (model.py:7)"))
    'aten.svd.default at encoder (model.py:7)'
    """

    operator: str
    reason: str
    location: str

    def __str__(self) -> str:
        """Return operator, reason, and location as text."""
        return f"{self.operator}{f' ({self.reason})' if self.reason else ''} at {self.location}"


def unsupported_error(source: str, found: Sequence[Unsupported]) -> UnsupportedOperatorsError:
    """Return one error that lists all unsupported uses.

    Parameters
    ----------
    source : str
        The kind of the source model, such as ``ONNX model``.
    found : sequence of Unsupported
        The uses, in the order of the model.

    Examples
    --------
    >>> print(unsupported_error("ONNX model", [Unsupported("Hardmax", "", "node 3")]).message)
    1 operator of the ONNX model is not supported: Hardmax
    """
    names = sorted({u.operator for u in found})
    count = "1 operator" if len(names) == 1 else f"{len(names)} operators"
    verb = "is" if len(names) == 1 else "are"
    return UnsupportedOperatorsError(
        f"{count} of the {source} {verb} not supported: {', '.join(names)}",
        where="\n     ".join(str(u) for u in found),
        hint="replace these operators in the model, or request support for them by name",
        details={
            "operators": [
                {"operator": u.operator, "reason": u.reason, "location": u.location} for u in found
            ]
        },
    )
