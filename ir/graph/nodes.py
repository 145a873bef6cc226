"""Graph-level IR: functions over whole tensors with first-class symbolic shapes (Relax §3).

A function is a list of bindings in A-normal form: operands are values, constants or symbolic
shapes, never nested calls. It is in one of two stages: *dataflow* (pure, order free) or *memory*
(ordered, with storage; see :mod:`.memory`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..dtype import DType
from ..identity import NO_ORIGIN, Origins, Uid
from ..loop.nodes import Access, Attributes
from ..symbolic import Bool, Expr, Facts
from .memory import MemoryOp

# ---------------------------------------------------------------- annotations


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """Anything."""


@dataclass(frozen=True, slots=True)
class PrimInfo:
    """One scalar outside of tensors; ``value`` where it is known symbolically."""

    dtype: DType
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class ShapeInfo:
    """A shape; ``dims`` of None mean unknown, ``rank`` of None not even how many."""

    dims: tuple[Expr, ...] | None
    rank: int | None

    def __post_init__(self) -> None:
        """Let known dimensions decide the rank."""
        if self.dims is not None:
            object.__setattr__(self, "rank", len(self.dims))


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor. ``elements`` are the symbolic values of a small integer tensor, row-major.

    A shape of None with a ``rank`` of None is a tensor of which nothing is known; after a
    ``match_cast`` the shape is known again.
    """

    shape: tuple[Expr, ...] | None
    dtype: DType
    device: str = "cpu"
    elements: tuple[Expr, ...] | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        """Let a known shape decide the rank."""
        if self.shape is not None:
            object.__setattr__(self, "rank", len(self.shape))


@dataclass(frozen=True, slots=True)
class TupleInfo:
    """Several values together."""

    fields: tuple[Info, ...]


@dataclass(frozen=True, slots=True)
class CallableInfo:
    """A function from parameters to a result."""

    params: tuple[Info, ...]
    result: Info


Info: TypeAlias = "ObjectInfo | PrimInfo | ShapeInfo | TensorInfo | TupleInfo | CallableInfo"


# ---------------------------------------------------------------- operands


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Value:
    """The one definition of a name: a parameter or the result of a binding."""

    uid: Uid
    name: str
    info: Info


@dataclass(frozen=True, slots=True)
class ConstantRef:
    """A constant by reference: ``key`` into the module's constants, never inlined in the text."""

    key: str
    info: TensorInfo


@dataclass(frozen=True, slots=True)
class ScalarLiteral:
    """A scalar written in the program; it takes part in promotion as Python's scalars do."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True, slots=True)
class Dims:
    """A tuple of symbolic integers: a shape, or indices and sizes as operands."""

    dims: tuple[Expr, ...]


Operand: TypeAlias = "Value | ConstantRef | ScalarLiteral | Dims"


# ---------------------------------------------------------------- right-hand sides


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Apply a registered operator, by its name: ``matmul(a, b)``, ``softmax(x, axis=-1)``."""

    op: str
    args: tuple[Operand, ...]
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, eq=False)
class CallTIR:
    """Call a loop-level function of the module; it writes newly made tensors ``outputs``.

    ``args`` are the in (and inout, state) parameters in order, ``scalars`` its integers.
    ``versions`` are guarded alternatives of the same meaning, in the caller's symbols: the first
    whose guard holds runs instead of ``function``, with the same arguments.
    """

    function: str
    args: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]
    scalars: tuple[Expr, ...] = ()
    versions: tuple[KernelVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelVersion:
    """``function`` may run where ``guard`` holds; ``scalars`` are its integers."""

    guard: Bool
    function: str
    scalars: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CallDPSLibrary:
    """Call an external function in destination-passing style, by its registered name."""

    symbol: str
    args: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, eq=False)
class CallGraph:
    """Call another graph-level function of the module."""

    function: str
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MatchCast:
    """Refine what is known of a value, checked at run time; may introduce symbols."""

    value: Operand
    info: Info


@dataclass(frozen=True, slots=True, eq=False)
class MakeTuple:
    """Put values together."""

    fields: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TupleItem:
    """Take one field of a tuple."""

    tuple_: Value
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One side of an :class:`IfElse`: bindings that may use all values around it."""

    bindings: tuple[Binding, ...]
    results: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IfElse:
    """Choose by a bool scalar tensor; both branches give results of one annotation."""

    condition: Operand
    then: Branch
    otherwise: Branch


Pure: TypeAlias = (
    "Call | CallTIR | CallDPSLibrary | CallGraph | MatchCast | MakeTuple | TupleItem | IfElse"
)
Right: TypeAlias = "Pure | MemoryOp"


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Binding:
    """``value = right``. The uid of the binding is the uid of its value."""

    value: Value
    right: Right
    origins: Origins = NO_ORIGIN
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, eq=False)
class GraphParam:
    """A parameter with how it is used; ``state`` keeps its content from call to call."""

    value: Value
    access: Access = "in"


Stage: TypeAlias = Literal["dataflow", "memory"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class GraphFunc:
    """A graph-level function. Several ``results`` make a call return a tuple.

    ``symbols`` need no list of their own: every symbol occurs first in a parameter's annotation,
    or in a ``match_cast``. ``facts`` hold of them. ``hints`` are likely values (by name), never
    facts. ``result_names`` keep the source model's names for its outputs.
    """

    name: str
    params: tuple[GraphParam, ...]
    bindings: tuple[Binding, ...]
    results: tuple[Operand, ...]
    facts: Facts = field(default_factory=Facts)
    stage: Stage = "dataflow"
    attributes: Attributes = ()
    hints: tuple[tuple[str, tuple[int, ...]], ...] = ()
    result_names: tuple[str, ...] = ()
