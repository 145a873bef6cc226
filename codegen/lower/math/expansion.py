"""The registry of expansions: element functions as formulas of thread-level values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from ....errors import TilewrightError
from .control import Code
from .number import Num

_F = TypeVar("_F", bound=Callable[..., Num])
Formula: TypeAlias = Callable[[Code, tuple[Num, ...]], Num]


@dataclass(frozen=True, slots=True)
class Expansion:
    """The formula of an element function.

    Parameters
    ----------
    formula : callable
        The result as a formula of the operands.
    direct : bool
        Whether the formula is for every width of the operands. Otherwise it is for single and
        double precision, and narrower floats are computed in single precision.
    """

    formula: Formula
    direct: bool = False


_EXPANSIONS: dict[str, Expansion] = {}
_OF_INTEGERS: dict[str, Expansion] = {}

EXPANSIONS: Mapping[str, Expansion] = MappingProxyType(_EXPANSIONS)
"""The formulas of floats, by the name of the element function."""

INTEGER_EXPANSIONS: Mapping[str, Expansion] = MappingProxyType(_OF_INTEGERS)
"""The formulas of integers, by the name of the element function."""


class DuplicateExpansionError(TilewrightError):
    """An element function with two expansions."""

    title = "Duplicate expansion"


def expansion(name: str, *, direct: bool = False) -> Callable[[_F], _F]:
    """Register a formula of numbers as the expansion of an element function of floats.

    Parameters
    ----------
    name : str
        The name of the element function, as in ``ir.loop.element_functions``.
    direct : bool
        Whether the formula is for every width of the operands.

    Raises
    ------
    DuplicateExpansionError
        If the function has an expansion.
    """
    return _registered(_EXPANSIONS, name, direct)


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
    _require_new(_EXPANSIONS, name)

    def register(function: _F) -> _F:
        _EXPANSIONS[name] = Expansion(lambda code, operands: function(code, *operands))
        return function

    return register


def integer_expansion(name: str) -> Callable[[_F], _F]:
    """Register a formula of numbers as the expansion of an element function of integers.

    Parameters
    ----------
    name : str
        The name of the element function, as in ``ir.loop.element_functions``.

    Raises
    ------
    DuplicateExpansionError
        If the function has an expansion of integers.
    """
    return _registered(_OF_INTEGERS, name, direct=True)


def _registered(
    table: dict[str, Expansion],
    name: str,
    direct: bool,  # noqa: FBT001
) -> Callable[[_F], _F]:
    _require_new(table, name)

    def register(function: _F) -> _F:
        table[name] = Expansion(lambda _, operands: function(*operands), direct)
        return function

    return register


def _require_new(table: Mapping[str, Expansion], name: str) -> None:
    if name in table:
        raise DuplicateExpansionError(f"element function {name!r} has an expansion")
