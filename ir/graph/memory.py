"""Memory-stage operations of the graph: what an ordered function does besides calling kernels.

After ``plan_memory`` a function allocates storage, views tensors in it, launches kernels that
write into those tensors, and frees. Sizes and offsets are symbolic, counted in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..symbolic import Bool, Expr

if TYPE_CHECKING:
    from .nodes import Binding, KernelVersion, Operand, TensorInfo, Value


@dataclass(frozen=True, slots=True, eq=False)
class AllocStorage:
    """Reserve ``size`` bytes; the result is an object that tensors are viewed in."""

    size: Expr
    device: str = "cpu"
    alignment: int = 64


@dataclass(frozen=True, slots=True, eq=False)
class ViewTensor:
    """A tensor at a byte ``offset`` of a storage (or of another tensor: a reshape as view)."""

    storage: Value
    offset: Expr
    info: TensorInfo


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """Run a loop-level function on tensors that exist; writes its out parameters in place.

    ``args`` are all its buffer parameters in order, ``versions`` guarded alternatives.
    """

    function: str
    args: tuple[Operand, ...]
    scalars: tuple[Expr, ...] = ()
    versions: tuple[KernelVersion, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LaunchLibrary:
    """Run a library function on tensors that exist."""

    symbol: str
    args: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Kill:
    """The storage or tensor is not used after this point."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """Stop with a named error unless the predicate holds."""

    predicate: Bool
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class VersionCase:
    """One guarded version: its bindings run where the guard holds and none before did."""

    guard: Bool
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, eq=False)
class VersionSwitch:
    """Run the first case whose guard holds; the last guard is true."""

    cases: tuple[VersionCase, ...]


MemoryOp: TypeAlias = (
    "AllocStorage | ViewTensor | Launch | LaunchLibrary | Kill | Check | VersionSwitch"
)
