"""Modules: graph-level and loop-level functions, and the constants they refer to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import TilewrightError
from .dtype import DType
from .graph.nodes import GraphFunc
from .loop.nodes import PrimFunc

Function: TypeAlias = "GraphFunc | PrimFunc"
Array: TypeAlias = NDArray[np.generic]


class UnknownFunctionError(TilewrightError):
    """A function name that the module lacks, or that belongs to the other level."""

    title = "Unknown function"


class MissingConstantError(TilewrightError):
    """A reference to a constant whose values were not supplied."""

    title = "Constant not supplied"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Constant:
    """A constant tensor, loaded on demand.

    Parameters
    ----------
    shape : tuple of int
        The shape.
    dtype : DType
        The element type.
    load : callable
        Returns the values: a memory-mapped file or an array in memory.
    digest : str
        The SHA-256 of dtype, shape and bytes if the source provides it, else empty.
    source : str
        The file and key the constant is read from, or empty.
    """

    shape: tuple[int, ...]
    dtype: DType
    load: Callable[[], Array]
    digest: str = ""
    source: str = ""


def _no_functions() -> Mapping[str, Function]:
    return MappingProxyType({})


def _no_constants() -> Mapping[str, Constant]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module:
    """An immutable set of named functions and constants.

    The methods return a new module that shares all unchanged parts. The function named ``main`` is
    the default entry point. ``attributes`` describe the source, such as the name of the model.
    ``print(module)`` shows the program as text.

    Examples
    --------
    >>> from tilewright.ir.script import parse
    >>> parse('''
    ... @prim_func
    ... def halve(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         y[i] = x[i] * 0.5
    ... ''')
    <Module: loops halve>
    """

    functions: Mapping[str, Function] = field(default_factory=_no_functions)
    constants: Mapping[str, Constant] = field(default_factory=_no_constants)
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __iter__(self) -> Iterator[Function]:
        """Yield the functions in order."""
        return iter(self.functions.values())

    def graph(self, name: str = "main") -> GraphFunc:
        """Return the graph-level function with this name.

        Raises
        ------
        UnknownFunctionError
            If there is none; the hint lists the graph-level functions.
        """
        found = self.functions.get(name)
        if not isinstance(found, GraphFunc):
            raise self._unknown(name, "graph", [f.name for f in self.graphs])
        return found

    def prim(self, name: str) -> PrimFunc:
        """Return the loop-level function with this name.

        Raises
        ------
        UnknownFunctionError
            If there is none; the hint lists the loop-level functions.
        """
        found = self.functions.get(name)
        if not isinstance(found, PrimFunc):
            raise self._unknown(name, "loop", [f.name for f in self.prims])
        return found

    @property
    def graphs(self) -> tuple[GraphFunc, ...]:
        """The graph-level functions, in order."""
        return tuple(f for f in self if isinstance(f, GraphFunc))

    @property
    def prims(self) -> tuple[PrimFunc, ...]:
        """The loop-level functions, in order."""
        return tuple(f for f in self if isinstance(f, PrimFunc))

    def with_functions(self, *functions: Function) -> Module:
        """Add functions; a function with an existing name replaces it at the same position."""
        merged = dict(self.functions) | {f.name: f for f in functions}
        return replace(self, functions=MappingProxyType(merged))

    def without(self, *names: str) -> Module:
        """Remove functions by name."""
        kept = {k: f for k, f in self.functions.items() if k not in names}
        return replace(self, functions=MappingProxyType(kept))

    def with_constants(self, constants: Mapping[str, Constant]) -> Module:
        """Add constants; a constant with an existing key replaces it."""
        merged = dict(self.constants) | dict(constants)
        return replace(self, constants=MappingProxyType(merged))

    def __str__(self) -> str:
        """Return the program as text that parses back to the same program."""
        from .script import to_text

        return to_text(self)

    def __repr__(self) -> str:
        """Return one line: the functions of each level and the size of the constants."""
        parts = [
            _listed("graph", [f.name for f in self.graphs]),
            _listed("loops", [f.name for f in self.prims]),
            _weights(self.constants),
        ]
        return f"<Module: {'; '.join(p for p in parts if p) or 'empty'}>"

    @staticmethod
    def _unknown(name: str, level: str, known: list[str]) -> UnknownFunctionError:
        return UnknownFunctionError(
            f"no {level}-level function {name!r}",
            hint=f"{level}-level functions are {', '.join(known) or 'none'}",
        )


_NAMED = 4
"""The number of functions per level that ``repr`` lists."""


def _listed(level: str, names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{level} {', '.join(names[:_NAMED])}{more}" if names else ""


def _weights(constants: Mapping[str, Constant]) -> str:
    if not constants:
        return ""
    bits = sum(math.prod(c.shape) * c.dtype.bits for c in constants.values())
    count = len(constants)
    return f"{count} constant{'s' if count > 1 else ''} of {bits / 8e6:.3g} MB"
