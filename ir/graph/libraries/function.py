"""Library functions: reference, signature, addresses, workspace and effects in one record."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from ....errors import TilewrightError
from ....nearest import nearest
from ...loop.nodes import Attribute, Attributes, PrimFunc
from ...symbolic import Expr, Facts
from ..nodes import Call, Operand, TensorInfo, operand_info
from ..operators.errors import OperandError
from ..operators.shape_inference import CallFacts
from ..operators.signature import AttributeSpec, OperandSpec, Signature


class UnknownLibraryFunctionError(TilewrightError):
    """A library function that is not registered."""

    title = "Unknown library function"


class LibraryDefinitionError(TilewrightError):
    """An invalid definition of a library function."""

    title = "Invalid library function"


@dataclass(frozen=True, slots=True)
class RunTimeFunction:
    """The address of a function of the run-time library, which is a part of every executable.

    Parameters
    ----------
    symbol : str
        The symbol, such as ``tw_sort_rows``.
    """

    symbol: str


@dataclass(frozen=True, slots=True)
class SharedSymbol:
    """The address of a function in a shared library.

    Parameters
    ----------
    paths : tuple of str, or callable
        The libraries to search, in order, or a function that returns them.
    symbols : tuple of str
        The alternative names of the function; the first one that a library defines is called.
    adapter : str
        A function of the run-time library that is called instead, with the address of the function
        as its first argument; empty if the function itself takes the operands.
    """

    paths: tuple[str, ...] | Callable[[], tuple[str, ...]]
    symbols: tuple[str, ...]
    adapter: str = ""

    def candidates(self) -> tuple[str, ...]:
        """Return the paths to search."""
        return self.paths() if callable(self.paths) else self.paths


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """The address of a Python function, which is called with the GIL held.

    Parameters
    ----------
    function : callable
        Called as ``function(*inputs, **attributes)`` with arrays; it returns an array, or a tuple.
    """

    function: Callable[..., Any]


Address: TypeAlias = "RunTimeFunction | SharedSymbol | PythonFunction"

Effects: TypeAlias = Literal["none", "external"]
"""The effects of a call besides its outputs; calls with effects are never removed or repeated."""

_ANY: Final = Signature((OperandSpec("x", variadic=True, optional=True),))


@dataclass(frozen=True, slots=True, eq=False)
class LibraryFunction:
    """A function outside of the program that a graph can call.

    Parameters
    ----------
    name : str
        The name in programs, such as ``blas.sgemm``.
    reference : callable or PrimFunc
        The semantics, used by the interpreter: a function ``reference(*inputs, **attributes)`` that
        returns an array or a tuple of arrays, or a loop-level function whose integer parameters
        have the names of attributes.
    signature : Signature
        The operands and attributes. The values of attributes are booleans, integers, floats, and
        strings with declared choices.
    addresses : mapping of str to Address
        The native function for each kind of target; a target that is not listed has none.
    outputs : callable, optional
        The annotations of the outputs of a call, for checks of programs.
    workspace : callable, optional
        The bytes of workspace that a call needs, from the annotations of its operands. The
        workspace is passed to the native function as an additional output.
    effects : str
        ``"external"`` if a call has effects besides its outputs.
    implements : callable, optional
        The operands and attributes of the call that replaces a call of an operator, or None; used
        by ``dispatch_to_library``.
    """

    name: str
    reference: Callable[..., Any] | PrimFunc
    signature: Signature = _ANY
    addresses: Mapping[str, Address] = field(default_factory=dict[str, Address])
    outputs: Callable[[CallFacts], tuple[TensorInfo, ...]] | None = None
    workspace: Callable[[Sequence[TensorInfo]], Expr] | None = None
    effects: Effects = "none"
    implements: Callable[[Call], tuple[tuple[Operand, ...], Attributes] | None] | None = None

    def __post_init__(self) -> None:
        """Check the types of the attributes."""
        for spec in self.signature.attributes:
            if spec.type not in _ENCODED or (spec.type == "str" and not spec.choices):
                raise LibraryDefinitionError(
                    f"attribute {spec.name!r} of type {spec.type} cannot be passed to a library",
                    where=f"library function {self.name!r}",
                    hint="use a bool, an int, a float, or a string with choices",
                )

    def call(
        self, args: tuple[Operand, ...], attributes: Attributes, facts: Facts | None = None
    ) -> CallFacts:
        """Check the operands and attributes of a call.

        Raises
        ------
        OperandError, OperatorAttributeError
            If an operand or an attribute is invalid.
        """
        known = Facts() if facts is None else facts
        checked = CallFacts(self.name, self.signature, args, attributes, known)
        for position, operand in enumerate(args):
            info = operand_info(operand)
            if isinstance(info, TensorInfo) and info.dtype.is_packed:
                raise OperandError(
                    f"elements of dtype {info.dtype} are packed, and cannot be passed to a library",
                    where=f"operand {self.signature.operand_name(position)!r} of {self.name}",
                    hint="cast the operand to i8 or u8",
                )
        return checked

    def deduced(
        self, args: tuple[Operand, ...], attributes: Attributes, facts: Facts | None = None
    ) -> tuple[TensorInfo, ...] | None:
        """Check a call and return the annotations of its outputs; None if any are accepted."""
        checked = self.call(args, attributes, facts)
        return None if self.outputs is None else self.outputs(checked)

    def encoded(self, attributes: Mapping[str, Attribute]) -> tuple[int, ...]:
        """Return the values of all attributes in the order of the signature, as 64-bit words.

        Floats are the bits of float64, strings are positions in the choices.

        Examples
        --------
        >>> gemm = LIBRARY_FUNCTIONS["blas.sgemm"]
        >>> [hex(word) for word in gemm.encoded({"alpha": 2.0})]
        ['0x4000000000000000', '0x0']
        """
        values = self.values(attributes)
        return tuple(_encoded(spec, values[spec.name]) for spec in self.signature.attributes)

    def described(self, infos: Sequence[TensorInfo]) -> str:
        """Return the facts that the code of a call depends on: types, address, workspace."""
        size = "" if self.workspace is None else str(self.workspace(infos))
        compiled = [a for a in self.addresses.values() if isinstance(a, RunTimeFunction)]
        return f"{self.name} {self.signature} {compiled} {size}"

    def decoded(self, words: Sequence[int]) -> dict[str, Any]:
        """Return the values of all attributes by name from their words."""
        specs = self.signature.attributes
        return {s.name: _decoded(s, word) for s, word in zip(specs, words, strict=True)}

    def values(self, attributes: Mapping[str, Attribute]) -> dict[str, Any]:
        """Return the values of all attributes by name, including defaults."""
        return {
            spec.name: attributes.get(spec.name, spec.default) for spec in self.signature.attributes
        }


_ENCODED: Final = ("bool", "int", "float", "str")


def _encoded(spec: AttributeSpec, value: Any) -> int:
    if spec.type == "float":
        (word,) = struct.unpack("<q", struct.pack("<d", float(value)))
        return int(word)
    return spec.choices.index(value) if spec.type == "str" else int(value)


def _decoded(spec: AttributeSpec, word: int) -> bool | float | str:
    match spec.type:
        case "float":
            (value,) = struct.unpack("<d", struct.pack("<q", word))
            return float(value)
        case "str":
            return spec.choices[word]
        case "bool":
            return bool(word)
        case _:
            return word


_FUNCTIONS: dict[str, LibraryFunction] = {}

LIBRARY_FUNCTIONS: Mapping[str, LibraryFunction] = MappingProxyType(_FUNCTIONS)
"""Every registered library function, by name."""


def register_library_function(function: LibraryFunction) -> LibraryFunction:
    """Register a library function under its name; it replaces an earlier one of this name."""
    _FUNCTIONS[function.name] = function
    return function


def get_library_function(name: str) -> LibraryFunction:
    """Return the library function with this name.

    Raises
    ------
    UnknownLibraryFunctionError
        If the name is not registered; the hint lists the registered ones.
    """
    found = _FUNCTIONS.get(name)
    if found is None:
        near = nearest(name, _FUNCTIONS, count=5)
        kind, names = ("similar", near) if near else ("registered", sorted(_FUNCTIONS))
        raise UnknownLibraryFunctionError(
            f"no library function {name!r}",
            hint=f"{kind} library functions are {', '.join(map(repr, names))}; "
            "tw.library_function registers others in this process",
        )
    return found


def library_function(
    name: str,
    reference: Callable[..., Any] | PrimFunc,
    *,
    operands: Sequence[str | OperandSpec] = (),
    attributes: Mapping[str, bool | float] | Sequence[AttributeSpec] = (),
    path: str = "",
    symbol: str = "",
    outputs: Callable[[CallFacts], tuple[TensorInfo, ...]] | None = None,
    workspace: Callable[[Sequence[TensorInfo]], Expr] | None = None,
    effects: Effects = "none",
    implements: Callable[[Call], tuple[tuple[Operand, ...], Attributes] | None] | None = None,
) -> LibraryFunction:
    """Register a function from Python or from a shared library, to be called by programs.

    Parameters
    ----------
    name : str
        The name in programs.
    reference : callable or PrimFunc
        The semantics: ``reference(*inputs, **attributes)`` returns an array or a tuple of arrays.
        Without `path`, compiled programs call it too.
    operands : sequence of str or OperandSpec
        The operands; empty if the number is not fixed.
    attributes : mapping of str to number, or sequence of AttributeSpec
        The attributes with their default values.
    path : str
        A shared library that defines the native function.
    symbol : str
        The name of the native function in the library; by default, the last part of `name`.
    outputs, workspace, effects, implements
        See :class:`LibraryFunction`.

    Returns
    -------
    LibraryFunction
        The registered record; an earlier function of this name is replaced.

    Raises
    ------
    LibraryDefinitionError
        If the definition is invalid.

    Notes
    -----
    The native function is ``int32_t f(void *user, const struct operand *operands, int64_t count)``;
    docs/libraries.md describes it.

    Examples
    --------
    >>> import numpy as np
    >>> import tilewright as tw
    >>> scale = tw.library_function(
    ...     "example.scale",
    ...     lambda x, *, by: x * np.float32(by),
    ...     operands=["x"],
    ...     attributes={"by": 2.0},
    ... )
    >>> program = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(3,), f32]):
    ...     y: Tensor[(3,), f32] = call_library("example.scale", x, by=3.0)
    ...     return y
    ... ''')
    >>> tw.compile(program)(np.ones(3, np.float32)).tolist()
    [3.0, 3.0, 3.0]
    """
    if not isinstance(reference, PrimFunc) and not callable(reference):
        raise LibraryDefinitionError(
            f"expected a function or a PrimFunc as reference, got {type(reference).__name__}",
            where=f"library function {name!r}",
        )
    if symbol and not path:
        raise LibraryDefinitionError(
            f"symbol {symbol!r} needs the path of its shared library",
            where=f"library function {name!r}",
        )
    if path:
        address: Address = SharedSymbol((path,), (symbol or name.rsplit(".", 1)[-1],))
    elif isinstance(reference, PrimFunc):
        raise LibraryDefinitionError(
            "a function whose reference is a program needs the path of a shared library",
            where=f"library function {name!r}",
            hint="call the program itself with call_tir",
        )
    else:
        address = PythonFunction(reference)
    specs = tuple(OperandSpec(o) if isinstance(o, str) else o for o in operands)
    signature = Signature(specs or _ANY.operands, _attribute_specs(name, attributes))
    return register_library_function(
        LibraryFunction(
            name, reference, signature, {"cpu": address}, outputs, workspace, effects, implements
        )
    )


def _attribute_specs(
    name: str, attributes: Mapping[str, bool | float] | Sequence[AttributeSpec]
) -> tuple[AttributeSpec, ...]:
    if not isinstance(attributes, Mapping):
        return tuple(attributes)
    specs: list[AttributeSpec] = []
    for key, value in attributes.items():
        kind = _TYPES.get(type(value))
        if kind is None:
            raise LibraryDefinitionError(
                f"attribute {key!r} has the default value {value!r}; expected a number",
                where=f"library function {name!r}",
            )
        specs.append(AttributeSpec(key, kind, value))
    return tuple(specs)


_TYPES: Final[dict[type, Literal["bool", "int", "float"]]] = {
    bool: "bool",
    int: "int",
    float: "float",
}
