"""Manifests of native functions: the specifications to call them and to explain their errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from ..errors import Json

SiteKind: TypeAlias = Literal[
    "argument",
    "dimension",
    "stride",
    "bound",
    "fact",
    "alias",
    "check",
    "negative",
    "overflow",
    "memory",
    "divisor",
    "library",
    "device",
    "grid",
    "launch",
    "stopped",
    "output",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """A parameter; ``annotation`` is its printed type, a ``rank`` of -1 means any rank.

    ``shape`` are the dimensions of a tensor of known shape, as terms over the symbols of the
    function. ``initial`` is the constant with the initial value of a state; empty for zero.
    ``binds`` is whether elements of the tensor are values of symbols.
    """

    name: str
    annotation: str
    form: Literal["tensor", "integer"]
    dtype: str
    rank: int
    access: Literal["in", "out", "inout", "state"]
    shape: tuple[str, ...] = ()
    initial: str = ""
    binds: bool = False


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """A result; ``param`` is the position of the parameter written in place, or -1.

    ``annotation`` is its printed type. ``shape`` are its dimensions as terms over the symbols of
    the function.
    """

    name: str
    dtype: str
    rank: int
    param: int = -1
    annotation: str = ""
    shape: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SymbolSpec:
    """The range of a symbol: its least and greatest value, or None, and a divisor of all values.

    ``known_at_entry`` is whether the arguments determine it; otherwise a call computes it.
    """

    name: str
    lower: int | None
    upper: int | None
    multiple_of: int = 1
    known_at_entry: bool = True

    def __str__(self) -> str:
        """Return the range as text.

        Examples
        --------
        >>> print(SymbolSpec("n", 0, 64, 8))
        0 <= n <= 64, a multiple of 8
        """
        lower = "" if self.lower is None else f"{self.lower} <= "
        upper = "" if self.upper is None else f" <= {self.upper}"
        text = f"{self.name} >= {self.lower}" if lower and not upper else lower + self.name + upper
        divisor = f", a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        return text + divisor + ("" if self.known_at_entry else ", computed by the call")


@dataclass(frozen=True, slots=True)
class CheckSite:
    """A run-time check.

    Parameters
    ----------
    kind : str
        The kind of the check.
    text : str
        The checked condition or term.
    param, dim, other : int
        Positions of the parameter, its dimension, and an aliased parameter, or -1.
    names : tuple of str
        Names of the numbers that a failed check records.
    origin : str
        The origin of a checked fact.
    """

    kind: SiteKind
    text: str = ""
    param: int = -1
    dim: int = -1
    other: int = -1
    names: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """A launch: its kernel, its graph binding, the ids of the imported operators, its results."""

    kernel: str
    binding: str
    origins: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in a storage: its name, and its size in bytes as a term."""

    name: str
    size: str


@dataclass(frozen=True, slots=True)
class UpdateSpec:
    """An update of a tensor, as in :class:`~tilewright.ir.graph.update_report.UpdateReport`."""

    value: str
    kernel: str
    memory: str
    in_place: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """A storage of the arena: its size in bytes as a term, its live range, and its tensors."""

    name: str
    size: str
    first: int
    last: int
    tensors: tuple[TensorSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """The launch specification of a GPU kernel.

    Parameters
    ----------
    name : str
        Name of the kernel.
    buffers : tuple of str
        Buffer parameters, in order; each is passed as an address.
    symbols : tuple of str
        Integer parameters, in order after the buffers; each is a 64-bit integer.
    grid : tuple of str
        Number of thread blocks along x, y and z, as terms over the symbols.
    block : tuple of int
        Threads per thread block along x, y and z.
    shared : int
        Dynamic shared memory of the launch, in bytes.
    scratch : str
        Size of the scratch memory in bytes, as a term; its address is the last parameter. Empty if
        the kernel needs none.
    types : tuple of str
        Dtype and shape of each buffer.
    access : tuple of str
        Access mode of each buffer.
    requires : tuple of str
        Preconditions on the symbols, which the launcher must check.
    narrow : str
        Name of the version with 32-bit indices, which has the same parameters and is in the same
        image; empty if there is none.
    limits : tuple of str
        Conditions under which that version may run.
    """

    name: str
    buffers: tuple[str, ...]
    symbols: tuple[str, ...]
    grid: tuple[str, ...]
    block: tuple[int, ...]
    shared: int = 0
    scratch: str = ""
    types: tuple[str, ...] = ()
    access: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    narrow: str = ""
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactSpec:
    """A condition with its origin, and the mechanism that makes it true."""

    text: str
    origin: str
    discharge: str


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts about a kernel of one function, known when it was compiled.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    function : str
        Name of the function that launches it.
    launches : int
        Number of launches in the function.
    computes : tuple of str
        The operations of the graph that the kernel computes, as text.
    groups : tuple of str
        The composite steps that scheduled the kernel, the outer one first; empty if no default
        rule scheduled it.
    steps : tuple of str
        Names of the steps that scheduled the kernel during compilation, without queries.
    scheduled : bool
        Whether the kernel was scheduled before compilation.
    version_of, guard : str
        The kernel of which this is a version, and the condition under which the version runs;
        empty if it is not a version.
    operations, bytes : str
        The number of arithmetic operations of all launches, and the size in bytes of the accessed
        arguments, as terms over the symbols of the function; empty if they are not known.
    facts : tuple of FactSpec
        The conditions that the kernel relies on.
    indices : tuple of str
        The integers loaded from memory that the kernel uses as indices, with their check.
    limits : tuple of str
        The conditions under which the version of the kernel with 32-bit indices runs, as terms
        over its symbols; empty if there is no such version.
    temporaries : tuple of str
        The temporaries in the scratch memory of a launch, with their sizes and offsets in bytes as
        terms over the symbols of the kernel; those with disjoint live ranges share memory.
    debug : bool
        Whether every access is checked at run time.
    """

    kernel: str
    function: str
    launches: int
    computes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    scheduled: bool = False
    version_of: str = ""
    guard: str = ""
    operations: str = ""
    bytes: str = ""
    facts: tuple[FactSpec, ...] = ()
    indices: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    temporaries: tuple[str, ...] = ()
    debug: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class FunctionSpec:
    """A callable function of an executable.

    Parameters
    ----------
    name : str
        Name of the function.
    params : tuple of ParamSpec
        The parameters.
    results : tuple of ResultSpec
        The results.
    sites : tuple of CheckSite
        The run-time checks, by number.
    launches : tuple of LaunchSpec
        The launches, in program order, and each version of a launch, of which one runs.
    constants, libraries : tuple of str
        Names of the constants and library functions, in the order of the instance's addresses.
    symbols : tuple of str
        Names of the symbols of the storage sizes, which are the keys of memory plans.
    storages : tuple of StorageSpec
        The storages of the arena.
    slot, plan : int
        Sizes of a workspace slot and of a memory plan, in bytes.
    prepares : str
        Name of the function whose constants this function computes; empty if it is not a
        ``prepare`` function.
    kernels : tuple of str
        Kernels that run on a device, in the order of the instance's handles. CPU kernels are not
        listed: they are called by their symbols.
    device : str
        The device of the tensors.
    devices : tuple of str
        The names of the other devices that the function uses.
    streams : int
        The number of streams that the function uses.
    updates : tuple of UpdateSpec
        The updates of tensors, in program order.
    body : tuple of int
        The first and the last run-time check after kernels may have written arguments.
    ranges : tuple of SymbolSpec
        The ranges of the symbols in the shapes of parameters and results.
    late : int
        The number of storages that a call allocates by itself, because their sizes depend on data.
    """

    name: str
    params: tuple[ParamSpec, ...]
    results: tuple[ResultSpec, ...]
    sites: tuple[CheckSite, ...]
    launches: tuple[LaunchSpec, ...]
    constants: tuple[str, ...]
    libraries: tuple[str, ...]
    symbols: tuple[str, ...]
    storages: tuple[StorageSpec, ...]
    slot: int
    plan: int
    prepares: str = ""
    kernels: tuple[str, ...] = ()
    device: str = "cpu"
    updates: tuple[UpdateSpec, ...] = ()
    body: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    streams: int = 1
    ranges: tuple[SymbolSpec, ...] = ()
    late: int = 0

    @property
    def inputs(self) -> tuple[ParamSpec, ...]:
        """The parameters that a caller passes: all but states."""
        return tuple(p for p in self.params if p.access != "state")

    @property
    def states(self) -> tuple[ParamSpec, ...]:
        """The state parameters."""
        return tuple(p for p in self.params if p.access == "state")

    @property
    def launch_count(self) -> int:
        """The number of launches; a launch of which there are several versions counts once."""
        return len({launch.binding for launch in self.launches})

    def __repr__(self) -> str:
        """Return the signature, and the numbers of launches and checks."""
        counts = f"{self.launch_count} launches, {len(self.sites)} checks"
        return f"<FunctionSpec {self.signature(self.name)}: {counts}>"

    def signature(self, name: str) -> str:
        """Return the signature as text: parameters with annotations, and dtypes of results."""
        params = ", ".join(f"{p.name}: {p.annotation}" for p in self.inputs)
        if self.states:
            states = ", ".join(f"{p.name}: {p.annotation}" for p in self.states)
            params = f"{params}{'; ' if params else ''}state {states}"
        results = ", ".join(r.dtype for r in self.results) or "None"
        return f"{name}({params}) -> {results}"


def to_json(value: Any) -> Json:
    """Serialize a specification as JSON data."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {f.name: to_json(getattr(value, f.name)) for f in fields}
    if isinstance(value, tuple):
        return [to_json(v) for v in cast("tuple[Any, ...]", value)]
    return value


@cache
def _hints(cls: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(cls)


def _read(hint: Any, data: Any) -> Any:
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        return tuple(_read(inner, d) for d in data)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, data)
    return data


def from_json(cls: type[_T], data: Mapping[str, Any]) -> _T:
    """Deserialize a specification."""
    hints = _hints(cls)
    return cls(**{name: _read(hints[name], value) for name, value in data.items()})
