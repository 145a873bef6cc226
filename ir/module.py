"""Modules: graph-level and loop-level functions, and the constants they refer to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import TilewrightError, visible
from ..nearest import did_you_mean, listed, missing_attribute
from .copies import replace
from .dtype import DType
from .graph.nodes import GraphFunc
from .loop.nodes import PrimFunc

Function: TypeAlias = "GraphFunc | PrimFunc"
Array: TypeAlias = NDArray[np.generic]

CALL_ATTRIBUTE: Final = "torch_call"
"""The attribute with the calling convention of the PyTorch module that a module was imported from.
"""


class UnknownFunctionError(TilewrightError):
    """A function name that the module lacks, or that belongs to the other level."""

    title = "Unknown function"


class MissingConstantError(TilewrightError):
    """A reference to a constant whose values were not supplied."""

    title = "Constant not supplied"


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Constant:
    """A constant tensor, loaded on demand.

    Parameters
    ----------
    shape : tuple of int
        The shape.
    dtype : DType
        The element type.
    load : callable
        Returns the values.
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

    def __repr__(self) -> str:
        """Return dtype, shape, size and source as one line."""
        shape = ", ".join(map(str, self.shape))
        size = math.prod(self.shape) * self.dtype.bits / 8e6
        source = f" from {visible(self.source)}" if self.source else ""
        return f"<Constant {self.dtype}[{shape}]: {size:.3g} MB{source}>"


def _no_functions() -> Mapping[str, Function]:
    return MappingProxyType({})


def _no_constants() -> Mapping[str, Constant]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module:
    """An immutable set of named functions and constants.

    The methods return a new module that shares all unchanged parts. The function named ``main`` is
    the default entry point. ``attributes`` describe the source, such as the name of the model.
    ``print(module)`` shows the program as text. ``module["name"]`` is a function,
    ``"name" in module`` tests whether it exists, iteration yields the functions in order, and
    ``len(module)`` is their number.

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
    >>> module = _
    >>> module["halve"].name, "halve" in module, len(module), [f.name for f in module]
    ('halve', True, 1, ['halve'])
    """

    functions: Mapping[str, Function] = field(default_factory=_no_functions)
    constants: Mapping[str, Constant] = field(default_factory=_no_constants)
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __copy__(self) -> Module:
        """Return the module itself, because it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Module:
        """Return the module itself, because it is immutable."""
        return self

    def __reduce__(self) -> tuple[Callable[..., Module], tuple[object, ...]]:
        """Pickle the text of the program, and the constants with their values."""
        from .script import to_text

        arrays = {key: np.asarray(constant.load()) for key, constant in self.constants.items()}
        return _restored, (to_text(self, provenance=True), arrays)

    def __iter__(self) -> Iterator[Function]:
        """Yield the functions in order."""
        return iter(self.functions.values())

    def __len__(self) -> int:
        """Return the number of functions."""
        return len(self.functions)

    def __contains__(self, item: object) -> bool:
        """Return whether a function with this name, or this function, is in the module."""
        if isinstance(item, str):
            return item in self.functions
        return any(item is function for function in self.functions.values())

    def __getitem__(self, name: str) -> Function:
        """Return the function of either level with this name.

        Raises
        ------
        UnknownFunctionError
            If there is none; the message contains a similar name, the hint lists all.
        """
        found = self.functions.get(name)
        if found is None:
            raise unknown_function(name, self.functions)
        return found

    if not TYPE_CHECKING:  # a type checker reports unknown attributes itself

        def __getattr__(self, name: str) -> NoReturn:
            """Report an unknown attribute, with a similar name."""
            own = not name.startswith("_") and name in self.functions
            hint = f"module[{name!r}] is the function of this name" if own else ""
            if name in ("show", "script"):
                hint = "`print(module)` shows the program, `str(module)` is its text"
            missing_attribute(self, name, hint=hint)

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
        """Return the program as text that parses back to the same program.

        If a name in it is not valid in the text format, the first line is a comment that names it.
        """
        from .script.node_text import program_text

        return program_text(self)

    def _repr_html_(self) -> str:
        """Return the program as static HTML."""
        from .script.html import program_html

        return program_html(self, title=repr(self)[1:-1])

    def __repr__(self) -> str:
        """Return one line: the functions of each level and the size of the constants."""
        parts = [
            _listed("graph", [f.name for f in self.graphs]),
            _listed("loops", [f.name for f in self.prims]),
            _weights(self.constants),
        ]
        text = " ".join(visible("; ".join(p for p in parts if p)).split())
        return f"<Module: {text or 'empty'}>"

    @staticmethod
    def _unknown(name: str, level: str, known: list[str]) -> UnknownFunctionError:
        return unknown_function(name, known, kind=f"{level}-level function")


def _restored(text: str, arrays: Mapping[str, Array]) -> Module:
    """Return the module of a pickle."""
    from .script import parse

    return parse(text, constants=arrays)


def unknown_function(
    name: object, known: Iterable[str], *, kind: str = "function"
) -> UnknownFunctionError:
    """Return the error for a function that does not exist, with a similar name.

    Examples
    --------
    >>> print(unknown_function("matmull", ["relu", "matmul"]))
    no function 'matmull'; did you mean 'matmul'?
      functions are matmul, relu
    """
    names = list(known)
    question = did_you_mean(name, names) if isinstance(name, str) else ""
    return UnknownFunctionError(
        f"no {kind} {name!r}" + (f"; {question}" if question else ""),
        hint=f"{kind}s are {listed(str(name), names)}",
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
