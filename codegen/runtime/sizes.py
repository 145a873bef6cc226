"""Values of symbols that callers pass, and sizes as text."""

from __future__ import annotations

import operator
from typing import Any, Final, cast

from ...errors import TilewrightError
from ..manifest import CheckSite

SIZE_LIMIT: Final = 1 << 62
"""Sizes must be less than this number of bytes."""


class SymbolValueError(TilewrightError):
    """A value of a symbol that is not a size, or a value for an unknown symbol."""

    title = "Invalid value of a symbol"


def symbol_value(name: str, value: object, where: str) -> int:
    """Return the value of a symbol, which is a size.

    Raises
    ------
    SymbolValueError
        If it is not an integer of at least 0.
    """
    try:
        size = operator.index(cast("Any", value))
    except TypeError:
        size = -1
    if not 0 <= size < SIZE_LIMIT or isinstance(value, bool):
        raise SymbolValueError(
            f"the value of symbol {name!r} must be an integer of at least 0 and less than 2**62, "
            f"got {value!r}",
            where=where,
            hint="pass the number of elements of the dimension",
            details={"symbol": name, "value": str(value)},
        )
    return size


def in_range(site: CheckSite, value: int) -> bool:
    """Return whether a value satisfies the check of the declared range of a symbol.

    Examples
    --------
    >>> [in_range(CheckSite("bound", "n <= 8", names=("n",)), n) for n in (8, 9)]
    [True, False]
    """
    match site.text.removeprefix(site.names[0]).split():
        case [">=", limit]:
            return value >= int(limit)
        case ["<=", limit]:
            return value <= int(limit)
        case ["is", "a", "multiple", "of", step]:
            return value % int(step) == 0
        case _:
            raise ValueError(f"expected the check of a range, got {site.text!r}")


def bytes_text(count: int) -> str:
    """Return a number of bytes with a unit.

    Examples
    --------
    >>> bytes_text(999), bytes_text(1500)
    ('999 bytes', '1.5 kB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
