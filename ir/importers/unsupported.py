"""What a source model uses that cannot be imported, told all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import TilewrightError, UnsupportedOperatorsError


class UnsupportedFormError(TilewrightError):
    """An operator is supported, but not used like this."""

    title = "Unsupported form of an operator"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One use of an operator that cannot be imported.

    Parameters
    ----------
    operator : str
        Its name in the source model.
    reason : str
        What is special about this use; empty where the operator is not known at all.
    place : str
        Where the source model uses it.

    Examples
    --------
    >>> str(Unsupported("aten.svd.default", "", "encoder (model.py:7)"))
    'aten.svd.default at encoder (model.py:7)'
    """

    operator: str
    reason: str
    place: str

    def __str__(self) -> str:
        """Print operator, reason and place."""
        return f"{self.operator}{f' ({self.reason})' if self.reason else ''} at {self.place}"


def unsupported_error(found: Sequence[Unsupported]) -> UnsupportedOperatorsError:
    """Make one error of all that was found.

    Examples
    --------
    >>> print(unsupported_error([Unsupported("Hardmax", "", "node 3")]).message)
    1 operator of the model is not supported: Hardmax
    """
    names = sorted({u.operator for u in found})
    count = "1 operator of the model is" if len(names) == 1 else f"{len(names)} operators are"
    return UnsupportedOperatorsError(
        f"{count} not supported: {', '.join(names)}",
        where="\n     ".join(str(u) for u in found),
        hint="replace them in the model, or open an issue naming them",
        details={
            "operators": [
                {"operator": u.operator, "reason": u.reason, "place": u.place} for u in found
            ]
        },
    )
