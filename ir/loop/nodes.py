"""Loop-level IR: functions of loops and blocks over buffers (TensorIR §3).

Index arithmetic is :mod:`tilewright.ir.symbolic`; the arithmetic of elements is the small
expression type :data:`Element` below. Nodes are immutable. Elements compare by value, statements,
buffers and functions by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ..dtype import DType, bool_
from ..identity import NO_ORIGIN, Origins, Uid
from ..symbolic import TRUE, Bool, Expr, Facts, Var
from ..target import Target

Scope: TypeAlias = str
"""Where a buffer lives: ``global``, ``local`` (registers or thread-private), ``shared``."""

LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled", "thread"]
IterKind: TypeAlias = Literal["spatial", "reduce", "ordered"]
Access: TypeAlias = Literal["in", "out", "inout", "state"]
INTRINSIC: Final = "intrinsic"
"""The annotation of a tensorized block; its value is the name of the instruction."""

LetMode: TypeAlias = Literal["proved", "checked", "clamped"]
Attribute: TypeAlias = "bool | int | float | str | Expr | tuple[Attribute, ...]"
Attributes: TypeAlias = "tuple[tuple[str, Attribute], ...]"

UnaryOp: TypeAlias = Literal[
    "neg", "abs", "not", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sigmoid", "tanh", "erf",
    "sin", "cos", "floor", "ceil", "round", "trunc", "isnan", "isinf", "sign", "bitnot",
]  # fmt: skip
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "pow", "and", "or", "xor",
    "shl", "shr", "atan2",
]  # fmt: skip
CompareOp: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]


@dataclass(frozen=True, slots=True, eq=False)
class IndexMap:
    """A map from logical indices to physical ones: ``inputs -> outputs``."""

    inputs: tuple[Var, ...]
    outputs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Buffer:
    """A named tensor in memory. ``strides`` (in elements) of None mean compact row-major."""

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
        """Number of dimensions."""
        return len(self.shape)


# ---------------------------------------------------------------- elements


@dataclass(frozen=True, slots=True)
class Number:
    """A number written in the program."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True, slots=True)
class Index:
    """A symbolic integer used as an element, such as a position in a mask."""

    value: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Condition:
    """A symbolic predicate used as a truth value."""

    value: Bool

    @property
    def dtype(self) -> DType:
        """Always bool."""
        return bool_


@dataclass(frozen=True, slots=True)
class Load:
    """One element of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        """The buffer's dtype."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class Unary:
    """A function of one element. Total: see DESIGN, element semantics."""

    op: UnaryOp
    operand: Element

    @property
    def dtype(self) -> DType:
        """Bool for the tests, else the operand's."""
        return bool_ if self.op in ("isnan", "isinf", "not") else self.operand.dtype


@dataclass(frozen=True, slots=True)
class Binary:
    """A function of two elements of one dtype. ``min`` and ``max`` propagate NaN."""

    op: BinaryOp
    left: Element
    right: Element

    @property
    def dtype(self) -> DType:
        """The operands' dtype."""
        return self.left.dtype


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two elements of one dtype."""

    op: CompareOp
    left: Element
    right: Element

    @property
    def dtype(self) -> DType:
        """Always bool."""
        return bool_


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion. Floats become integers saturating, NaN becomes 0; integers wrap."""

    dtype: DType
    operand: Element


@dataclass(frozen=True, slots=True)
class Where:
    """``then`` where the condition holds, else ``otherwise``.

    Only the chosen side is evaluated, so the other one may be out of bounds.
    """

    condition: Element
    then: Element
    otherwise: Element

    @property
    def dtype(self) -> DType:
        """The dtype of both sides."""
        return self.then.dtype


Element: TypeAlias = "Number | Index | Condition | Load | Unary | Binary | Compare | Cast | Where"


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Write one element."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Element
    origins: Origins = NO_ORIGIN


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class For:
    """``for var in range(extent)``. ``thread`` is the tag of a thread-bound loop."""

    uid: Uid
    var: Var
    extent: Expr
    body: Stmt
    kind: LoopKind = "serial"
    thread: str = ""
    annotations: Attributes = ()
    origins: Origins = NO_ORIGIN


@dataclass(frozen=True, slots=True)
class Range:
    """The half-open interval ``[start, start + extent)``."""

    start: Expr
    extent: Expr


@dataclass(frozen=True, slots=True)
class Region:
    """A box of a buffer."""

    buffer: Buffer
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IterVar:
    """An iteration variable of a block: ``0 <= var < extent``, bound to an outer expression."""

    var: Var
    extent: Expr
    kind: IterKind
    binding: Expr


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Block:
    """A unit of computation, isolated from the loops around it by its iteration variables.

    ``body`` and ``init`` mention only the iteration variables and the function's symbols, never a
    loop variable. ``predicate`` and the bindings mention loop variables. ``init`` runs before the
    body at the first iteration of every reduction variable.
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


@dataclass(frozen=True, slots=True, eq=False)
class Seq:
    """Statements one after the other."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """A branch on a symbolic predicate."""

    condition: Bool
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """``let var: int in [lower, upper) = buffer[indices]``: an integer read from memory.

    ``mode`` tells how the range is known: proved, checked at run time (a named error), or clamped.
    """

    var: Var
    lower: Expr
    upper: Expr
    load: Load
    mode: LetMode
    body: Stmt


Stmt: TypeAlias = "Store | For | Block | Seq | If | Let"


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True, eq=False)
class BufferParam:
    """A buffer that the caller passes, with how the function uses it."""

    buffer: Buffer
    access: Access


@dataclass(frozen=True, slots=True, eq=False)
class ScalarParam:
    """An integer that the caller passes; needed only where no buffer shape determines it."""

    var: Var


Param: TypeAlias = "BufferParam | ScalarParam"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PrimFunc:
    """A loop-level function in destination-passing style.

    Symbols that occur in the parameters' shapes are bound by them; ``buffers`` are temporaries,
    live during the call. ``facts`` hold at entry.
    """

    name: str
    params: tuple[Param, ...]
    body: Stmt
    buffers: tuple[Buffer, ...] = ()
    facts: Facts = field(default_factory=Facts)
    target: Target | None = None
    attributes: Attributes = ()
    origins: Origins = NO_ORIGIN

    @property
    def buffer_params(self) -> tuple[Buffer, ...]:
        """The parameters that are buffers, in order."""
        return tuple(p.buffer for p in self.params if isinstance(p, BufferParam))

    @property
    def scalar_params(self) -> tuple[Var, ...]:
        """The parameters that are integers, in order."""
        return tuple(p.var for p in self.params if isinstance(p, ScalarParam))
