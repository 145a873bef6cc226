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
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """A parameter; ``annotation`` is its printed type, a ``rank`` of -1 means any rank."""

    name: str
    annotation: str
    form: Literal["tensor", "integer"]
    dtype: str
    rank: int
    access: Literal["in", "out", "inout", "state"]


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """A result; ``param`` is the position of the parameter written in place, or -1."""

    name: str
    dtype: str
    rank: int
    param: int = -1


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
    """A launch: its kernel, its graph binding, and the ids of the imported operators."""

    kernel: str
    binding: str
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """A storage of the arena: its size in bytes as a term, and its live range."""

    name: str
    size: str
    first: int
    last: int


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


@dataclass(frozen=True, slots=True)
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
        The launches, in program order.
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

    def signature(self, name: str) -> str:
        """Return the signature as text: parameters with annotations, and dtypes of results."""
        params = ", ".join(f"{p.name}: {p.annotation}" for p in self.params)
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
