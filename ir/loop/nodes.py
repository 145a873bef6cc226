"""Loop-level IR: functions of loops and blocks over buffers (TensorIR §3).

Indices are terms of :mod:`tilewright.ir.symbolic`; element values are expressions of type
:data:`Element`. Nodes are immutable. Elements compare by value; statements, buffers and functions
compare by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ...target.target import Target
from ..dtype import DType, bool_
from ..identity import NO_ORIGIN, Origins, Uid
from ..printable import Printable, PrintableFunction
from ..symbolic import TRUE, Bool, Expr, Facts, Var
from .element_functions import element_function
from .thread_roles import ThreadRole

Scope: TypeAlias = str
"""The name of a memory scope: a key of ``memory_scopes.MEMORY_SCOPES``."""

LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled", "thread"]
IterKind: TypeAlias = Literal["spatial", "reduce", "ordered"]
AccessMode: TypeAlias = Literal["in", "out", "inout", "state"]
INTRINSIC: Final = "intrinsic"
"""The annotation key of a tensorized block; its value is the name of the intrinsic."""

STORAGE_ALIGN: Final = "storage_align"
"""The annotation key of blocks that write a padded buffer: ``(axis, factor, offset)``."""

LetMode: TypeAlias = Literal["proved", "checked", "clamped"]
Attribute: TypeAlias = "bool | int | float | str | Expr | tuple[Attribute, ...]"
Attributes: TypeAlias = "tuple[tuple[str, Attribute], ...]"

UnaryOp: TypeAlias = str
BinaryOp: TypeAlias = str
TernaryOp: TypeAlias = str
"""The name of an element function: a key of ``element_functions.FUNCTIONS``."""

CompareOp: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IndexMap(Printable):
    """A map from logical to physical indices: ``inputs -> outputs``."""

    inputs: tuple[Var, ...]
    outputs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class Buffer(Printable):
    """A named tensor in memory.

    ``strides`` are in elements; None means compact row-major. ``alignment`` is in bytes.
    """

    uid: Uid
    name: str
    shape: tuple[Expr, ...]
    dtype: DType
    scope: Scope = "global"
    strides: tuple[Expr, ...] | None = None
    alignment: int = 64
    layout: IndexMap | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclass(frozen=True, slots=True, repr=False)
class Number(Printable):
    """A number literal."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True, slots=True, repr=False)
class Index(Printable):
    """A symbolic integer used as an element, such as an index compared in a mask."""

    value: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, repr=False)
class Condition(Printable):
    """A symbolic predicate used as a bool element."""

    value: Bool

    @property
    def dtype(self) -> DType:
        """The dtype bool."""
        return bool_


@dataclass(frozen=True, slots=True, repr=False)
class Load(Printable):
    """The value of one element of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        """The dtype of the buffer."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True, repr=False)
class Unary(Printable):
    """A function of one element, defined for every value of its dtype."""

    op: UnaryOp
    operand: Element

    @property
    def dtype(self) -> DType:
        """The dtype of the function for that of the operand: bool for ``isnan``."""
        return element_function(self.op).result_dtype(self.operand.dtype)


@dataclass(frozen=True, slots=True, repr=False)
class Binary(Printable):
    """A function of two elements of the same dtype, except the exponent of ``ldexp``.

    It is defined for all values: integers wrap, integer division by zero gives 0, and a shift by
    the width of the dtype or more gives 0, or -1 for the right shift of a negative integer.
    ``min`` and ``max`` propagate NaN.
    """

    op: BinaryOp
    left: Element
    right: Element

    @property
    def dtype(self) -> DType:
        """The dtype of the operands; of ``complex``, the dtype of the pair."""
        dtype = self.left.dtype
        return element_function(self.op).result_dtype(dtype) if self.op == "complex" else dtype


@dataclass(frozen=True, slots=True, repr=False)
class Ternary(Printable):
    """A function of three elements of the same dtype, such as ``fma``."""

    op: TernaryOp
    first: Element
    second: Element
    third: Element

    @property
    def dtype(self) -> DType:
        """The dtype of the operands."""
        return self.first.dtype


@dataclass(frozen=True, slots=True, repr=False)
class Compare(Printable):
    """A comparison of two elements of the same dtype."""

    op: CompareOp
    left: Element
    right: Element

    @property
    def dtype(self) -> DType:
        """The dtype bool."""
        return bool_


@dataclass(frozen=True, slots=True, repr=False)
class Cast(Printable):
    """A conversion to another dtype.

    Float to integer saturates and maps NaN to 0; integer to integer wraps.
    """

    dtype: DType
    operand: Element


@dataclass(frozen=True, slots=True, repr=False)
class Reinterpret(Printable):
    """The bits of an element as an element of another dtype with the same number of bits."""

    dtype: DType
    operand: Element


@dataclass(frozen=True, slots=True, repr=False)
class Where(Printable):
    """A selection: ``then`` if the condition is true, else ``otherwise``.

    Only the selected side is evaluated, so the other one may be out of bounds.
    """

    condition: Element
    then: Element
    otherwise: Element

    @property
    def dtype(self) -> DType:
        """The dtype of both values."""
        return self.then.dtype


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class Local(Printable):
    """The value of a :class:`Bind`; two of them are equal if they are one object."""

    name: str
    dtype: DType


Operation: TypeAlias = "Unary | Binary | Ternary | Compare | Cast | Reinterpret | Where"
Element: TypeAlias = "Number | Index | Condition | Load | Local | Operation"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Store(Printable):
    """A store of one element."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Element
    origins: Origins = NO_ORIGIN


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class For(Printable):
    """A loop ``for var in range(extent)``; ``thread`` is the tag of a thread-bound loop."""

    uid: Uid
    var: Var
    extent: Expr
    body: Stmt
    kind: LoopKind = "serial"
    thread: str = ""
    annotations: Attributes = ()
    origins: Origins = NO_ORIGIN

    @property
    def kind_text(self) -> str:
        """The kind as text for messages; that of a thread-bound loop names the axis."""
        return f"bound to {self.thread}" if self.thread else self.kind


@dataclass(frozen=True, slots=True, repr=False)
class Range(Printable):
    """The half-open interval ``[start, start + extent)``."""

    start: Expr
    extent: Expr


@dataclass(frozen=True, slots=True, repr=False)
class Region(Printable):
    """A box of a buffer, one range per dimension."""

    buffer: Buffer
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IterVar(Printable):
    """An iteration variable of a block: ``0 <= var < extent``, bound to ``binding``."""

    var: Var
    extent: Expr
    kind: IterKind
    binding: Expr


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class Reducer(Printable):
    """An associative operation on tuples of values, by which a block reduces them.

    Parameters
    ----------
    name : str
        The name in program text.
    left, right : tuple of Local
        The values of two operands.
    binds : tuple of tuple
        The values that several results use, in order.
    results : tuple of Element
        The values of the result.
    identities : tuple of Number
        The operand that does not change the other one.
    commutative : bool
        Whether the operands may be exchanged.
    """

    name: str
    left: tuple[Local, ...]
    right: tuple[Local, ...]
    binds: tuple[tuple[Local, Element], ...]
    results: tuple[Element, ...]
    identities: tuple[Number, ...]
    commutative: bool = True


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class Block(Printable):
    """A unit of computation, isolated from the loops around it by its iteration variables.

    ``body`` and ``init`` use only iteration variables and symbols, no variables of enclosing loops.
    ``predicate`` and the bindings use loop variables. ``init`` runs before the body at the first
    iteration of the reduction domain. A ``reducer`` states by which operation the body updates its
    results, see ``reducers.reducing``. ``threads`` states how GPU threads execute the block, if a
    launch pass decided it.
    """

    uid: Uid
    name: str
    iters: tuple[IterVar, ...]
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Bool = TRUE
    annotations: Attributes = ()
    origins: Origins = NO_ORIGIN
    reducer: Reducer | None = None
    threads: ThreadRole | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Seq(Printable):
    """A sequence of statements."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class If(Printable):
    """A branch on a symbolic predicate."""

    condition: Bool
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Let(Printable):
    """An integer loaded from memory: ``let var in [lower, upper) = buffer[indices]``.

    ``mode`` states how the range is ensured: ``checked`` at run time, ``clamped``, or ``proved``,
    which compiled code does not check. A proved range names its ``discharge``: ``"dtype"``, or the
    variable of a checked integer.
    """

    var: Var
    lower: Expr
    upper: Expr
    load: Load
    mode: LetMode
    body: Stmt
    discharge: Var | Literal["dtype"] | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Alloc(Printable):
    """A temporary that exists while ``body`` runs.

    Each execution provides new elements with undefined values. The shape may use every variable in
    scope; a dimension that is negative has no elements. The buffer identifies the statement. An
    allocation is the last statement of its sequence: its scope is the rest of the statements.
    """

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Bind(Printable):
    """A value with a name, computed once before ``body``, in the body of a block.

    Later stores do not change it. Like an allocation, it is the last statement of its sequence:
    its scope is the rest of the statements, without nested blocks.
    """

    local: Local
    value: Element
    body: Stmt


Stmt: TypeAlias = "Store | For | Block | Seq | If | Let | Alloc | Bind"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BufferParam(Printable):
    """A buffer parameter and its access mode."""

    buffer: Buffer
    access: AccessMode


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ScalarParam(Printable):
    """An integer parameter, needed for symbols that no buffer shape binds."""

    var: Var


Param: TypeAlias = "BufferParam | ScalarParam"


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class PrimFunc(PrintableFunction):
    """A loop-level function in destination-passing style.

    A symbol that is by itself a dimension of a parameter is bound by it. ``buffers`` are
    temporaries, allocated for the duration of the call: a body that is an :class:`Alloc` becomes
    its own body, and the buffer the last of ``buffers``. ``facts`` hold at entry.
    """

    name: str
    params: tuple[Param, ...]
    body: Stmt
    buffers: tuple[Buffer, ...] = ()
    facts: Facts = field(default_factory=Facts)
    target: Target | None = None
    attributes: Attributes = ()
    origins: Origins = NO_ORIGIN

    def __post_init__(self) -> None:
        """Move allocations around the whole body to ``buffers``."""
        if isinstance(self.body, Alloc):
            body, buffers = self.body, list(self.buffers)
            while isinstance(body, Alloc):
                buffers.append(body.buffer)
                body = body.body
            object.__setattr__(self, "body", body)
            object.__setattr__(self, "buffers", tuple(buffers))

    @property
    def buffer_params(self) -> tuple[Buffer, ...]:
        """The buffer parameters, in order."""
        return tuple(p.buffer for p in self.params if isinstance(p, BufferParam))

    @property
    def scalar_params(self) -> tuple[Var, ...]:
        """The integer parameters, in order."""
        return tuple(p.var for p in self.params if isinstance(p, ScalarParam))
