"""The state of the generation of one shader: lines, names, variables, and registers."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from ...errors import TilewrightError
from ...ir.dtype import DType
from ...ir.symbolic import Expr, Var
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Reg, Source, Value
from ...ir.thread.types import VectorType
from .names import Names
from .types import Literal, type_name

INDENT = "    "

_LOOSER: Final = (" >> ", " << ", " & ", " | ", " ^ ", " < ", " <= ", " == ", " != ", " > ", " >= ")
"""The operators that bind less than sums; WGSL rejects most of them beside sums."""

Lanes = list[str]
"""The expressions of a value, one per lane."""


class UnsupportedShaderError(TilewrightError):
    """A statement or value that has no form in a WebGPU shader."""

    title = "Unsupported statement in a shader"


class Emitter:
    """The lines of the body of a shader, with its variables and registers."""

    def __init__(self, function: ThreadFunc, short: frozenset[Expr]) -> None:
        """Initialize without lines; ``short`` are the terms that fit into 32 bits."""
        self.function = function
        self.short = short
        self.names = Names()
        self.lines: list[str] = []
        self.depth = 1
        self.variables: dict[Var, tuple[str, bool]] = {}
        self.registers: dict[Reg, Lanes] = {}
        self.memo: dict[Value, Lanes] = {}
        self.messages: list[str] = []
        self.leaves_on_failure = True
        self.source = Source()

    def line(self, text: str) -> None:
        """Append a line to the current block."""
        self.lines.append(INDENT * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Write a block in braces."""
        self.line(f"{head} {{")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.line("}")

    def locate(self, source: Source) -> None:
        """Write a comment with the block that the next statements are from, if it changes."""
        if source.name and source.name != self.source.name:
            name = source.name.encode("ascii", "backslashreplace").decode()
            self.line(f"// {' '.join(name.split())}")
        self.source = source

    def keep(self, expression: str, hint: str = "v") -> str:
        """Bind an expression to a name, unless it is a name."""
        if expression.isidentifier() and expression not in ("true", "false"):
            return expression
        name = self.names.make(hint)
        self.line(f"let {name} = {bare(expression)};")
        return name

    def opaque(self, *operands: str) -> tuple[str, ...]:
        """Return operands that are not all literals.

        Compilers evaluate operations on literals, and reject those that overflow.
        """
        if operands and all(isinstance(x, Literal) for x in operands):
            return (self.keep(operands[0]), *operands[1:])
        return operands

    def declare(self, reg: Reg) -> Lanes:
        """Return the variables of a register, created on first use."""
        if reg not in self.registers:
            of = vector(reg)
            lanes = of.lanes
            name = self.names.make(reg.name)
            self.registers[reg] = (
                [name] if lanes == 1 else [self.names.make(f"{name}_{k}") for k in range(lanes)]
            )
        return self.registers[reg]

    def declaration(self, reg: Reg) -> Iterable[str]:
        """Yield the declarations of the variables of a register."""
        of = type_name(vector(reg).dtype)
        for name in self.declare(reg):
            yield f"var {name}: {of};"

    def unsupported(self, part: str, hint: str = "") -> UnsupportedShaderError:
        """Return the error about a part of the kernel that has no form in a shader."""
        return UnsupportedShaderError(
            f"{part} has no form in a WebGPU shader",
            where=f"kernel {self.function.name!r}",
            hint=hint or "compile for another target",
        )


def vector(value: Value) -> VectorType:
    """Return the type of a value that is not an address."""
    if isinstance(value.type, VectorType):
        return value.type
    raise UnsupportedShaderError("an address is used as a number, which shaders cannot")


def dtype_of(value: Value) -> DType:
    """Return the dtype of a value."""
    return vector(value).dtype


def bare(text: str) -> str:
    """Return an expression without parentheses around it.

    Examples
    --------
    >>> bare("(a + (b))"), bare("(a) + (b)")
    ('a + (b)', '(a) + (b)')
    """
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def addend(text: str) -> str:
    """Return an expression as an operand of a sum, in parentheses if its operator needs them.

    Examples
    --------
    >>> addend("(a * b)"), addend("(p >> 1u)"), addend("(f(p >> 1u) + 1i)")
    ('a * b', '(p >> 1u)', 'f(p >> 1u) + 1i')
    """
    inner, depth = bare(text), 0
    for k, c in enumerate(inner):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and inner.startswith(_LOOSER, k):
            return f"({inner})"
    return inner
