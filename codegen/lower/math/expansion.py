"""The registry of expansions: element functions of floats as formulas of thread-level values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from ....errors import TilewrightError
from .control import Code
from .number import Num

_F = TypeVar("_F", bound=Callable[..., Num])
Expansion: TypeAlias = Callable[[Code, tuple[Num, ...]], Num]
_EXPANSIONS: dict[str, Expansion] = {}

EXPANSIONS: Mapping[str, Expansion] = MappingProxyType(_EXPANSIONS)
"""The formulas in single and double precision, by the name of the element function."""


class DuplicateExpansionError(TilewrightError):
    """An element function with two expansions."""

    title = "Duplicate expansion"


def expansion(name: str) -> Callable[[_F], _F]:
    """Register a formula of numbers as the expansion of an element function.

    Parameters
    ----------
    name : str
        The name of the element function, as in ``ir.loop.element_functions``.

    Raises
    ------
    DuplicateExpansionError
        If the function has an expansion.
    """
    _require_new(name)

    def register(function: _F) -> _F:
        _EXPANSIONS[name] = lambda _, operands: function(*operands)
        return function

    return register


def branching_expansion(name: str) -> Callable[[_F], _F]:
    """Register a formula with control flow: a function of a :class:`Code` and of numbers.

    Parameters
    ----------
    name : str
        The name of the element function, as in ``ir.loop.element_functions``.

    Raises
    ------
    DuplicateExpansionError
        If the function has an expansion.
    """
    _require_new(name)

    def register(function: _F) -> _F:
        _EXPANSIONS[name] = lambda code, operands: function(code, *operands)
        return function

    return register


def _require_new(name: str) -> None:
    if name in _EXPANSIONS:
        raise DuplicateExpansionError(f"element function {name!r} has an expansion")
