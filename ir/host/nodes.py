"""Host IR: structured statements of the host code between the caller and the kernels.

Values are 64-bit integers, addresses, and error codes. The shape program remains symbolic: a
:class:`Term` is an expression of :mod:`tilewright.ir.symbolic` over symbols bound by
:class:`BindSymbol`. Memory is accessed at byte offsets from addresses. Logical operators evaluate
both operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..symbolic import Bool, Expr, Var

Kind: TypeAlias = Literal["int", "ptr", "code"]
"""The kind of a value: 64-bit integer, address, or 32-bit error code (0 means success)."""

Width: TypeAlias = Literal["u8", "u16", "i32", "i64", "ptr", "f32", "f64"]
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr"
]
CompareOp: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A mutable variable of the function."""

    name: str
    kind: Kind = "int"


@dataclass(frozen=True, slots=True, eq=False)
class Integer:
    """An integer constant."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class NullPointer:
    """The null pointer."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A symbolic integer over bound symbols."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A symbolic predicate over bound symbols, with the value 0 or 1."""

    value: Bool


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """An arithmetic operation with wrap-around; division by zero returns 0."""

    op: BinaryOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A comparison of two integers or two addresses."""

    op: CompareOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """The logical *and* of two conditions; both are evaluated."""

    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """The logical *or* of two conditions; both are evaluated."""

    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Negation:
    """The logical *not* of a condition."""

    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """The value in memory at ``offset`` bytes from an address."""

    width: Width
    base: Value
    offset: Value


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """An address plus an offset in bytes."""

    base: Value
    offset: Value


@dataclass(frozen=True, slots=True, eq=False)
class Numeric:
    """An address as an integer."""

    base: Value


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPointer:
    """The address of a host function or kernel."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """The address of constant 64-bit words of the program."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """Assign a value to a variable."""

    target: Local
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class BindSymbol:
    """Bind a symbol of the shape program for the rest of the statement list."""

    symbol: Var
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Store a value in memory at ``offset`` bytes from an address."""

    width: Width
    base: Value
    offset: Value
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Invoke:
    """Call a function by name or address; ``result`` receives the returned value."""

    callee: str | Value
    args: tuple[Value, ...]
    result: Local | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HostLaunch:
    """Launch a kernel; if it fails, return its error code from the function.

    Parameters
    ----------
    kernel : str
        The name of the kernel.
    ordinal : int
        The index of the launch in a profile.
    call : Value
        The call record.
    table : Value
        The runtime table of the call.
    sink : Value
        The address where times are accumulated, or null.
    buffers : tuple of Value
        The addresses of the buffer arguments.
    symbols : tuple of Value
        The integer arguments.
    scratch : Value, optional
        The address of the scratch memory, if the kernel needs any.
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
    """Return from the function if the condition is false.

    Before that, the number of the check site and the observed values are written to the call
    record ``call``.
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
    """Repeat the body while the condition is true."""

    condition: Value
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """Allocate ``size`` bytes on the stack and assign their address to a variable."""

    target: Local
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Atomically replace ``expected`` in memory by ``desired``; ``result`` gets the old value."""

    base: Value
    offset: Value
    expected: Value
    desired: Value
    result: Local


@dataclass(frozen=True, slots=True, eq=False)
class Publish:
    """Store an integer atomically with release ordering."""

    base: Value
    offset: Value
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Observe:
    """Load an integer atomically with acquire ordering."""

    base: Value
    offset: Value
    result: Local


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Pause for some cycles in a spin loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    """Return from the function."""

    value: Value | None = None


Statement: TypeAlias = (
    Assign
    | BindSymbol
    | Write
    | Invoke
    | HostLaunch
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HostFunc:
    """A host function; ``returns`` is the kind of its result, or None if it has none."""

    name: str
    params: tuple[Local, ...]
    body: Body
    returns: Kind | None = None
    exported: bool = False

    def __str__(self) -> str:
        """Return the function as text."""
        from .text import to_text  # the printer imports the nodes

        return to_text(self)

    def __repr__(self) -> str:
        """Return the name and the number of parameters."""
        count = len(self.params)
        return f"<HostFunc {self.name}: {count} parameter{'' if count == 1 else 's'}>"
