"""Host IR: what runs between the caller and the kernels, as structured statements.

Values are 64-bit integers and addresses. The shape program stays symbolic: a :class:`Term` is an
expression of :mod:`tilewright.ir.symbolic` over symbols that :class:`BindSymbol` has bound. Memory
is read and written at byte offsets. ``and`` and ``or`` evaluate both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..symbolic import Bool, Expr, Var

Kind: TypeAlias = Literal["int", "ptr", "code"]
"""64-bit integer, address, or 32-bit error code (0 for success)."""

Width: TypeAlias = Literal["u8", "u16", "i32", "i64", "ptr", "f32", "f64"]
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr"
]
CompareOp: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]


# ---------------------------------------------------------------- values


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A variable of the function, assigned as often as needed."""

    name: str
    kind: Kind = "int"


@dataclass(frozen=True, slots=True, eq=False)
class Integer:
    """A number."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class NullPointer:
    """The address of nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A symbolic integer over bound symbols."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A symbolic predicate over bound symbols, as 0 or 1 in a condition."""

    value: Bool


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """Two integers combined; all wrap, and division by zero gives 0."""

    op: BinaryOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A condition on two integers, or on two addresses."""

    op: CompareOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """Both conditions hold; both are evaluated."""

    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """One of two conditions holds; both are evaluated."""

    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Negation:
    """The condition does not hold."""

    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What memory holds ``offset`` bytes behind an address."""

    width: Width
    base: Value
    offset: Value


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """An address moved by a number of bytes."""

    base: Value
    offset: Value


@dataclass(frozen=True, slots=True, eq=False)
class Numeric:
    """An address as an integer."""

    base: Value


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPointer:
    """The address of a host function or of a kernel."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """The address of numbers that belong to the program."""

    name: str
    words: tuple[int, ...]


Value: TypeAlias = (
    Local
    | Integer
    | NullPointer
    | Term
    | Claim
    | Arithmetic
    | Comparison
    | Both
    | Either
    | Negation
    | Read
    | Moved
    | Numeric
    | FunctionPointer
    | Static
)


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """Give a variable a value."""

    target: Local
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class BindSymbol:
    """Bind a symbol of the shape program for the rest of the list it stands in."""

    symbol: Var
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Put a value into memory ``offset`` bytes behind an address."""

    width: Width
    base: Value
    offset: Value
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Invoke:
    """Call a function by name, or by address; ``result`` takes what it returns."""

    callee: str | Value
    args: tuple[Value, ...]
    result: Local | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """Run a kernel; a failing one ends the function with its code.

    ``ordinal`` is the launch's line in a profile, ``call`` the record of the call, ``table`` its
    runtime table, ``sink`` the profile being taken, or null.
    """

    kernel: str
    ordinal: int
    call: Value
    table: Value
    sink: Value
    buffers: tuple[Value, ...]
    symbols: tuple[Value, ...]
    scratch: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """Unless the condition holds, note site and observed numbers and end the function.

    ``call`` is the record of the call, where the note is written.
    """

    condition: Value
    site: int
    call: Value
    numbers: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class When:
    """A branch."""

    condition: Value
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """Repeat as long as the condition holds."""

    condition: Value
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """Give a variable ``size`` bytes of memory that live until the function returns."""

    target: Local
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Write ``desired`` where memory holds ``expected``, at once; ``result`` is what it held."""

    base: Value
    offset: Value
    expected: Value
    desired: Value
    result: Local


@dataclass(frozen=True, slots=True, eq=False)
class Publish:
    """Write an integer so that another thread which sees it sees all that was written before."""

    base: Value
    offset: Value
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Observe:
    """Read an integer that another thread may have published."""

    base: Value
    offset: Value
    result: Local


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Rest for some cycles, in a loop that waits for another thread."""


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    """Leave the function."""

    value: Value | None = None


Statement: TypeAlias = (
    Assign
    | BindSymbol
    | Write
    | Invoke
    | Launch
    | Guard
    | When
    | While
    | Reserve
    | Exchange
    | Publish
    | Observe
    | Pause
    | Return
)
Body: TypeAlias = tuple[Statement, ...]


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True, eq=False)
class HostFunc:
    """A host function. ``returns`` of ``code`` is a 32-bit error code, 0 for success."""

    name: str
    params: tuple[Local, ...]
    body: Body
    returns: Kind | None = None
    exported: bool = False
