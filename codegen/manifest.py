"""What an executable tells about its native functions: enough to call them and explain errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from ..ir.errors import Json

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
    """A parameter: ``annotation`` as a person reads it; ``rank`` of -1 is any."""

    name: str
    annotation: str
    form: Literal["tensor", "integer"]
    dtype: str
    rank: int
    access: Literal["in", "out", "inout", "state"]


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """A result; ``param`` is the position of the parameter that it is, or -1."""

    name: str
    dtype: str
    rank: int
    param: int = -1


@dataclass(frozen=True, slots=True)
class Site:
    """A check: what it compares, where, and the names of the numbers noted when it fails."""

    kind: SiteKind
    text: str = ""
    param: int = -1
    dim: int = -1
    other: int = -1
    names: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One launch: its kernel, the binding it comes from and the model's operations."""

    kernel: str
    binding: str
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """A storage of the arena: its size in bytes, and the moments it lives from and to."""

    name: str
    size: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """How a kernel of a GPU is launched: its parameters in order, its grid, its blocks.

    Parameters are the addresses of ``buffers``, then the ``symbols`` as 64-bit integers. ``grid``
    are the blocks along x, y and z as terms over the symbols, ``block`` the threads of a block,
    ``shared`` the bytes of shared memory that the launch has to ask for. Where the kernel needs
    ``scratch``, so many bytes of the GPU's memory, its address is the last parameter. ``types``
    are the elements and the shape of each buffer, ``access`` what the kernel does to it.
    ``requires`` are the conditions on the symbols that who launches it has to see to.
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
    """A callable function of an executable; ``slot`` and ``plan`` are sizes in bytes.

    ``kernels`` are those that run on a device, in the order in which the function's instance keeps
    their handles; kernels of a CPU are called by name. Tensors lie on ``device``.
    """

    name: str
    params: tuple[ParamSpec, ...]
    results: tuple[ResultSpec, ...]
    sites: tuple[Site, ...]
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
        """Print parameters with their annotations, and the results' element types."""
        params = ", ".join(f"{p.name}: {p.annotation}" for p in self.params)
        results = ", ".join(r.dtype for r in self.results) or "None"
        return f"{name}({params}) -> {results}"


def to_json(value: Any) -> Json:
    """Turn a specification into plain data."""
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
    """Read a specification back."""
    hints = _hints(cls)
    return cls(**{name: _read(hints[name], value) for name, value in data.items()})
