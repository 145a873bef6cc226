"""Thread-level IR: typed values and structured statements of one thread of execution.

Scheduled loop IR and host IR both lower to it, and one generator turns it into LLVM. Integers that
index memory or count iterations are :mod:`tilewright.ir.symbolic` terms over variables that
:class:`Let`, :class:`Loop`, :class:`Parallel` and parameters bind to 64-bit integers; everything
else is a :class:`Value`.

A value is evaluated where the statement that holds it stands, once, however often the same object
occurs in that statement. All values are evaluated eagerly; what must not run stands under
:class:`If` or a mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dtype import bool_, i64
from ..identity import NO_ORIGIN, Origins, Uid
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
ReduceOp: TypeAlias = Literal["add", "mul", "min", "max", "and", "or", "xor"]
AtomicOp: TypeAlias = Literal["exchange", "add", "sub", "and", "or"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reg:
    """A variable of any type that statements assign; the generator keeps it in registers."""

    name: str
    type: Type


# ---------------------------------------------------------------- values


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A number, the same in all lanes."""

    value: float | int | bool
    type: VectorType


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """The null pointer."""

    @property
    def type(self) -> PointerType:
        """Always an address."""
        return POINTER


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """A symbolic integer as a value: one 64-bit integer, or one a value of ``lane``."""

    expr: Expr
    lane: Var | None = None
    lanes: int = 1

    @property
    def type(self) -> VectorType:
        """64-bit integers."""
        return VectorType(i64, self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A symbolic predicate as a value: one bit, or one a value of ``lane`` (a mask)."""

    condition: Bool
    lane: Var | None = None
    lanes: int = 1

    @property
    def type(self) -> VectorType:
        """Bits."""
        return VectorType(bool_, self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The address of bytes that belong to the module; ``mutable`` ones live as long as it does."""

    name: str
    content: bytes
    mutable: bool = False
    alignment: int = 16

    @property
    def type(self) -> PointerType:
        """An address."""
        return POINTER


@dataclass(frozen=True, slots=True, eq=False)
class FunctionAddress:
    """The address of a function of this module, or of an external symbol."""

    name: str

    @property
    def type(self) -> PointerType:
        """An address."""
        return POINTER


@dataclass(frozen=True, slots=True, eq=False)
class Offset:
    """An address moved by a number of bytes."""

    base: Value
    offset: Expr

    @property
    def type(self) -> Type:
        """An address of the same space."""
        return self.base.type


@dataclass(frozen=True, slots=True, eq=False)
class Address:
    """Where memory is accessed: ``offset`` bytes from ``base``, known to be aligned as said."""

    base: Value
    offset: Expr
    alignment: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """Read elements: contiguous ones, or ``stride`` bytes apart.

    Lanes whose ``mask`` bit is off touch no memory and give zero.
    """

    type: Type
    address: Address
    stride: Expr | None = None
    mask: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """Read elements at ``offsets`` bytes (one 64-bit integer a lane) from ``base``."""

    type: VectorType
    base: Value
    offsets: Value
    mask: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """A function of one operand, in every lane."""

    op: UnaryOp
    operand: Value

    @property
    def type(self) -> Type:
        """Bits for the tests, else the operand's."""
        inner = self.operand.type
        if self.op == "isnan" and isinstance(inner, VectorType):
            return VectorType(bool_, inner.lanes)
        return inner


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """A function of two operands of one type, in every lane.

    Integers wrap. ``div`` truncates, ``floordiv`` and ``mod`` floor; by zero all three give 0.
    Shifts by the width or more give 0 (or the sign), negative ones too. Float
    ``min`` and ``max`` propagate NaN.
    """

    op: BinaryOp
    left: Value
    right: Value

    @property
    def type(self) -> Type:
        """The operands' type."""
        return self.left.type


@dataclass(frozen=True, slots=True, eq=False)
class Fma:
    """``a * b + c``, rounded once."""

    a: Value
    b: Value
    c: Value

    @property
    def type(self) -> Type:
        """The operands' type."""
        return self.c.type


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """A comparison in every lane; comparisons with NaN are false but ``ne``."""

    op: CompareOp
    left: Value
    right: Value

    @property
    def type(self) -> VectorType:
        """Bits."""
        inner = self.left.type
        return VectorType(bool_, inner.lanes if isinstance(inner, VectorType) else 1)


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """``then`` in the lanes where the condition holds, else ``otherwise``. Both are evaluated."""

    condition: Value
    then: Value
    otherwise: Value

    @property
    def type(self) -> Type:
        """The type of both sides."""
        return self.then.type


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """A conversion of numbers: floats to integers saturate, NaN becomes 0, integers wrap."""

    type: VectorType
    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Bitcast:
    """The same bits as another type of the same size; addresses are 64-bit integers."""

    type: Type
    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast:
    """A scalar in every lane."""

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
    """Lanes picked from two vectors put side by side."""

    left: Value
    right: Value
    lanes: tuple[int, ...]

    @property
    def type(self) -> VectorType:
        """As many lanes as were picked."""
        inner = self.left.type
        return VectorType(inner.dtype if isinstance(inner, VectorType) else i64, len(self.lanes))


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """All lanes of a vector combined into a scalar, in any order."""

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


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Source:
    """What a statement was lowered from: a loop-level node and operations of the model."""

    uid: Uid | None = None
    name: str = ""
    origins: Origins = NO_ORIGIN


NO_SOURCE = Source()


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """Bind a symbolic variable, for the rest of the list it stands in, to a 64-bit integer."""

    var: Var
    value: Value
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """Give a register a value."""

    reg: Reg
    value: Value
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Allocate:
    """Bind a register to fresh memory, ``size`` bytes, until the function returns.

    Memory of the thread: accesses at constant offsets become registers, the others live on the
    stack. Where the register is a pointer of space ``shared`` it is memory of the thread block,
    one for all its threads, with undefined content at first.
    """

    reg: Reg
    size: int
    alignment: int = 64
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Write elements: contiguous ones, or ``stride`` bytes apart; only the masked lanes."""

    address: Address
    value: Value
    stride: Expr | None = None
    mask: Value | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Write elements at ``offsets`` bytes from ``base``; of equal offsets the last lane wins."""

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
    """Repeat while the condition, evaluated before every round, holds."""

    condition: Value
    body: Body
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """A branch on one bit."""

    condition: Value
    then: Body
    otherwise: Body = ()
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Parallel:
    """``for var in range(stop)``, shared out among threads where ``work`` is worth it.

    ``work`` estimates all iterations together, in elementary operations. ``table`` is the runtime
    table. The body may not assign registers from outside nor return a value; a failing
    :class:`Return` inside makes the whole region return that code. ``worker`` is bound to the
    number of the running thread.
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
    """Call a symbol by name or a function by address; ``result`` takes what it returns."""

    callee: str | Value
    args: tuple[Value, ...]
    result: Reg | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    """Leave the function."""

    value: Value | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """Wait until every thread of the scope is here and sees what the others wrote."""

    scope: ExecutionScope
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Rest for some cycles, in a loop that waits for another thread: host code only."""

    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class Perform:
    """Do an operation that only some machines have (:mod:`tilewright.ir.thread.operations`).

    All threads of the operation's scope are here together. ``args`` are evaluated first;
    ``results`` then take what the operation gives.
    """

    operation: Operation
    args: tuple[Value, ...]
    results: tuple[Reg, ...] = ()
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class AtomicUpdate:
    """Change an integer in memory at once (sequentially consistent); ``result`` takes the old."""

    op: AtomicOp
    address: Address
    value: Value
    result: Reg | None = None
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class CompareExchange:
    """Write ``desired`` where memory holds ``expected``; ``result`` takes what it held."""

    address: Address
    expected: Value
    desired: Value
    result: Reg
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class AtomicLoad:
    """Read an integer so that all that was written before it was stored is seen."""

    address: Address
    result: Reg
    source: Source = NO_SOURCE


@dataclass(frozen=True, slots=True, eq=False)
class AtomicStore:
    """Write an integer so that who loads it sees all that was written before."""

    address: Address
    value: Value
    source: Source = NO_SOURCE


Stmt: TypeAlias = (
    Let | Assign | Allocate | Store | Scatter | Loop | While | If | Parallel | Call | Return
    | Barrier | Pause | Perform | AtomicUpdate | CompareExchange | AtomicLoad | AtomicStore
)  # fmt: skip
Body: TypeAlias = tuple[Stmt, ...]


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """One axis of a launch: its tag (``blockIdx.x``), its index in the body, how many there are.

    ``extent`` is a term over the kernel's integer parameters; that of a ``threadIdx`` axis is a
    constant.
    """

    tag: str
    var: Var
    extent: Expr


@dataclass(frozen=True, slots=True)
class Launch:
    """The grid that a GPU kernel runs in; axes that are absent have one index."""

    axes: tuple[ThreadAxis, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ThreadFunc:
    """A function of one thread. A ``Var`` parameter is a 64-bit integer.

    ``distinct`` pointers are parameters that alias nothing else in the function. Only exported
    functions are visible outside the module. With a ``launch`` it is the kernel of a GPU: every
    thread of the grid runs the body, and it returns nothing.
    """

    name: str
    params: tuple[Var | Reg, ...]
    body: Body
    result: Type | None = None
    exported: bool = True
    distinct: tuple[Reg, ...] = ()
    launch: Launch | None = None
