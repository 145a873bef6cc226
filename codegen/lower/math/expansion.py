"""The registry of expansions: element functions of floats as formulas of thread-level values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from ....errors import TilewrightError
from .number import Num

_F = TypeVar("_F", bound=Callable[..., Num])
_EXPANSIONS: dict[str, Callable[..., Num]] = {}

EXPANSIONS: Mapping[str, Callable[..., Num]] = MappingProxyType(_EXPANSIONS)
"""The formulas in single and double precision, by the name of the element function."""


class DuplicateExpansionError(TilewrightError):
    """An element function with two expansions."""

    title = "Duplicate expansion"


def expansion(name: str) -> Callable[[_F], _F]:
    """Register a formula as the expansion of an element function.

    Parameters
    ----------
    name : str
        The name of the element function, as in ``ir.loop.element_functions``.

    Raises
    ------
    DuplicateExpansionError
        If the function has an expansion.
    """
    if name in _EXPANSIONS:
        raise DuplicateExpansionError(f"element function {name!r} has an expansion")

    def register(function: _F) -> _F:
        _EXPANSIONS[name] = function
        return function

    return register
