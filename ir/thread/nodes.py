"""Thread-level IR: typed values and structured statements of one thread of execution.

Scheduled loop IR and host IR are lowered to thread IR, from which one generator emits LLVM IR.

- *Terms.* Integers that index memory or count iterations are :mod:`tilewright.ir.symbolic` terms.
  Their variables are 64-bit integers bound by :class:`Let`, :class:`Loop`, :class:`Parallel`, or a
  parameter. All other data are a :class:`Value`.
- *Values.* A value has a scalar, vector, or pointer type. A statement evaluates its values eagerly,
  each object once, even if it occurs several times in the statement. Code that must not execute is
  guarded by :class:`If` or by a mask.
- *Registers.* A :class:`Reg` is a mutable variable of one thread. It is the only value that
  statements assign, and it carries data between statements and iterations.
- *Vectors, lanes, and masks.* A vector has a constant number of lanes of one dtype; a scalar is a
  vector of one lane. Operations apply to each lane separately, except :class:`Reduce`,
  :class:`Shuffle`, and :class:`Extract`. A mask is a vector of booleans. A masked-off lane accesses
  no memory; a masked-off lane of a load is zero.
- *Memory.* An address is a pointer plus an offset in bytes, with a guaranteed alignment. Only
  loads, stores, atomics, calls, and machine operations access memory.
- *Effects and barriers.* The effects of a machine operation declare its memory accesses. Every
  thread of a GPU grid executes the same function. A :class:`Barrier` waits for all threads of its
  scope and makes their earlier writes visible to each other, so control flow around a barrier must
  be uniform in its scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dtype import bool_, i64
from ..identity import NO_ORIGIN, Origins, Uid
from ..loop.combiners import Combiner
from ..symbolic import Bool, Expr, Var
from .operations.operation import Operation
from .types import POINTER, ExecutionScope, PointerType, Type, VectorType

UnaryOp: TypeAlias = Literal[
    "neg", "abs", "not", "sqrt", "floor", "ceil", "round", "trunc", "isnan", "clz"
]
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr"
]
CompareOp: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]
ReduceOp: TypeAlias = Combiner
AtomicOp: TypeAlias = Literal["exchange", "add", "sub", "mul", "min", "max", "and", "or", "xor"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reg:
    """A mutable variable of one thread, of any type; the generator keeps it in registers."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant with the same value in all lanes."""

    value: float | int | bool
    type: VectorType


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """The null pointer."""

    @property
    def type(self) -> PointerType:
        """The pointer type."""
        return POINTER


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """A symbolic term as a 64-bit integer.

    With ``lane``, a vector of ``lanes`` integers: lane ``k`` is the term for ``lane = k``.
    """

    expr: Expr
    lane: Var | None = None
    lanes: int = 1

    @property
    def type(self) -> VectorType:
        """A scalar or vector of 64-bit integers."""
        return VectorType(i64, self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A symbolic predicate as a boolean.

    With ``lane``, a mask of ``lanes`` booleans: lane ``k`` is the predicate for ``lane = k``.
    """

    condition: Bool
    lane: Var | None = None
    lanes: int = 1

    @property
    def type(self) -> VectorType:
        """A boolean or a mask."""
        return VectorType(bool_, self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The address of static data of the module, which is read-only unless ``mutable``."""

    name: str
    content: bytes
    mutable: bool = False
    alignment: int = 16

    @property
    def type(self) -> PointerType:
        """The pointer type."""
        return POINTER


@dataclass(frozen=True, slots=True, eq=False)
class FunctionAddress:
    """The address of a function of this module or of an external symbol."""

    name: str

    @property
    def type(self) -> PointerType:
        """The pointer type."""
        return POINTER


@dataclass(frozen=True, slots=True, eq=False)
class Offset:
    """A pointer plus an offset in bytes."""

    base: Value
    offset: Expr

    @property
    def type(self) -> Type:
        """The pointer type of the base."""
        return self.base.type


@dataclass(frozen=True, slots=True, eq=False)
class Address:
    """The address of a memory access: ``base`` plus ``offset`` bytes.

    The address is guaranteed to be a multiple of ``alignment`` bytes.
    """

    base: Value
    offset: Expr
    alignment: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A load of one element per lane, contiguous or with a distance of ``stride`` bytes.

    Masked-off lanes access no memory and are zero. A ``partial`` load may read uninitialized bits.
    """

    type: Type
    address: Address
    stride: Expr | None = None
    mask: Value | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """A load of one element per lane at ``offsets``, 64-bit integers, in bytes from ``base``."""

    type: VectorType
    base: Value
    offsets: Value
    mask: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """An operation on one operand, applied to each lane."""

    op: UnaryOp
    operand: Value

    @property
    def type(self) -> Type:
        """Booleans for ``isnan``, else the type of the operand."""
        inner = self.operand.type
        if self.op == "isnan" and isinstance(inner, VectorType):
            return VectorType(bool_, inner.lanes)
        return inner


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """An operation on two operands of one type, applied to each lane.

    Integer arithmetic wraps around. ``div`` truncates; ``floordiv`` and ``mod`` floor. Integer
    division by zero returns 0. Shifts by a negative amount, or by the bit width or more, return 0,
    or the sign for ``shr`` of signed integers. ``min`` and ``max`` of floats propagate NaN.
    """

    op: BinaryOp
    left: Value
    right: Value

    @property
    def type(self) -> Type:
        """The type of the operands."""
        return self.left.type


@dataclass(frozen=True, slots=True, eq=False)
class Fma:
    """A fused multiply-add ``a * b + c``; machines without it may round twice unless ``exact``."""

    a: Value
    b: Value
    c: Value
    exact: bool = False

    @property
    def type(self) -> Type:
        """The type of the operands."""
        return self.c.type


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """A comparison of each lane; comparisons with NaN are false, except ``ne``."""

    op: CompareOp
    left: Value
    right: Value

    @property
    def type(self) -> VectorType:
        """A boolean or a mask."""
        inner = self.left.type
        return VectorType(bool_, inner.lanes if isinstance(inner, VectorType) else 1)


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """A selection per lane: ``then`` if the condition is true, else ``otherwise``.

    Both operands are evaluated.
    """

    condition: Value
    then: Value
    otherwise: Value

    @property
    def type(self) -> Type:
        """The type of both operands."""
        return self.then.type


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """A conversion of numbers: float to integer saturates, NaN becomes 0, integers wrap around."""

    type: VectorType
    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Bitcast:
    """A reinterpretation of bits as another type of the same size; pointers have 64 bits."""

    type: Type
    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast:
    """A vector whose lanes all equal one scalar."""

    operand: Value
    lanes: int

    @property
    def type(self) -> VectorType:
        """A vector of the operand's dtype."""
        inner = self.operand.type
        return VectorType(inner.dtype if isinstance(inner, VectorType) else i64, self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Extract:
    """One lane of a vector."""

    operand: Value
    lane: int

    @property
    def type(self) -> VectorType:
        """A scalar of the operand's dtype."""
        inner = self.operand.type
        return VectorType(inner.dtype if isinstance(inner, VectorType) else i64)


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle:
    """Lanes selected from the concatenation of two vectors."""

    left: Value
    right: Value
    lanes: tuple[int, ...]

    @property
    def type(self) -> VectorType:
        """A vector with one lane per selected lane."""
        inner = self.left.type
        return VectorType(inner.dtype if isinstance(inner, VectorType) else i64, len(self.lanes))


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """The reduction of all lanes of a vector to a scalar, in unspecified order."""

    op: ReduceOp
    operand: Value

    @property
    def type(self) -> VectorType:
        """A scalar of the operand's dtype."""
        inner = self.operand.type
        return VectorType(inner.dtype if isinstance(inner, VectorType) else i64)


Value: TypeAlias = (
    Reg
    | Const
    | Null
    | Index
    | Predicate
    | Data
    | FunctionAddress
    | Offset
    | Load
    | Gather
    | Unary
    | Binary
    | Fma
    | Compare
    | Select
    | Cast
    | Bitcast
    | Broadcast
    | Extract
    | Shuffle
    | Reduce
)


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a statement, and the error it reports in the emulator if it ends a kernel."""

    uid: Uid | None = None
    name: str = ""
    origins: Origins = NO_ORIGIN
    note: str = ""


NO_SOURCE = Source()


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """Bind a symbolic variable to a 64-bit integer for the rest of the statement list."""

    var: Var
    value: Value
    source: Source = NO_SOURCE
    limits: tuple[Expr, Expr] | None = None  # limits[0] <= value < limits[1], if known


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """Assign a value to a register."""

    reg: Reg
    value: Value
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Allocate:
    """Allocate ``size`` bytes until the function returns, and assign their address to a register.

    The memory is private to the thread: accesses at constant offsets become registers, and other
    accesses use the stack. If the register is a pointer of space ``shared``, all threads of the
    thread block share one allocation. The initial content is undefined.
    """

    reg: Reg
    size: int
    alignment: int = 64
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Store one element per lane, contiguous or with a distance of ``stride`` bytes.

    Masked-off lanes access no memory.
    """

    address: Address
    value: Value
    stride: Expr | None = None
    mask: Value | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Store one element per lane at ``offsets`` in bytes from ``base``.

    If offsets are equal, the element of the last lane is stored. Masked-off lanes access no
    memory.
    """

    base: Value
    offsets: Value
    value: Value
    mask: Value | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """``for var in range(start, stop, step)``, with a positive step."""

    var: Var
    start: Expr
    stop: Expr
    body: Body
    step: int = 1
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """Repeat the body while the condition, evaluated before each iteration, is true."""

    condition: Value
    body: Body
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """A branch on a scalar boolean."""

    condition: Value
    then: Body
    otherwise: Body = ()
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Parallel:
    """``for var in range(stop)``, distributed among threads if ``work`` justifies it.

    Parameters
    ----------
    table : Value
        The runtime table, whose ``PARALLEL`` function starts the threads.
    var : Var
        The loop variable.
    stop : Expr
        The number of iterations.
    work : Expr
        The estimated cost of all iterations, in elementary operations.
    worker : Var
        Bound to the number of the executing thread.
    body : Body
        The body. It must not assign registers defined outside of it. A :class:`Return` with a
        nonzero error code makes the whole region return that code.
    source : Source
        The origin of the statement.
    """

    table: Value
    var: Var
    stop: Expr
    work: Expr
    worker: Var
    body: Body
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Call a symbol by name or a function by address; ``result`` receives the returned value."""

    callee: str | Value
    args: tuple[Value, ...]
    result: Reg | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    """Return from the function."""

    value: Value | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """Wait for all threads of the scope, and make their earlier writes visible to each other."""

    scope: ExecutionScope
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Pause for some cycles in a spin loop; only in host code."""

    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class MachineOp:
    """Execute an operation of :mod:`tilewright.ir.thread.operations`, which only some targets have.

    All threads of the operation's scope execute it together. ``args`` are evaluated first; then
    ``results`` receive the results.
    """

    operation: Operation
    args: tuple[Value, ...]
    results: tuple[Reg, ...] = ()
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class AtomicUpdate:
    """Update an element in memory atomically: ``memory = op(memory, value)``.

    ``result`` receives the old value. The update is sequentially consistent; a ``relaxed`` one is
    atomic, but does not order other accesses. The order of updates by several threads is not
    defined, so sums of floats are not reproducible bit for bit.
    """

    op: AtomicOp
    address: Address
    value: Value
    result: Reg | None = None
    source: Source = NO_SOURCE
    relaxed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CompareExchange:
    """Atomically replace ``expected`` in memory by ``desired``; ``result`` gets the old value."""

    address: Address
    expected: Value
    desired: Value
    result: Reg
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class AtomicLoad:
    """Load an integer atomically with acquire ordering."""

    address: Address
    result: Reg
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class AtomicStore:
    """Store an integer atomically with release ordering."""

    address: Address
    value: Value
    source: Source = NO_SOURCE


Stmt: TypeAlias = (
    Let | Assign | Allocate | Store | Scatter | Loop | While | If | Parallel | Call | Return
    | Barrier | Pause | MachineOp | AtomicUpdate | CompareExchange | AtomicLoad | AtomicStore
)  # fmt: skip
Body: TypeAlias = tuple[Stmt, ...]
