"""The state of emitting one LLVM function: lines, names, and the terms in scope."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from ...errors import TilewrightError
from ...ir.symbolic import Bool, Expr, Var
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Data, Reg, Source, Value
from .locations import Locations
from .types import type_name

REPORT: Final = "this is a bug in the code generator; report it with the program"
"""The hint for errors that no program can cause."""


class UnboundVariableError(TilewrightError):
    """A use of a symbol or register that is not bound in thread IR."""

    title = "Unbound variable"


class ModuleState:
    """The shared state of the functions of one module: declarations, data, outlined functions."""

    def __init__(self, locations: Locations | None = None) -> None:
        """Initialize an empty module; ``locations`` collects debug locations."""
        self.locations = locations
        self.declarations: dict[str, str] = {}
        self.data: dict[str, Data] = {}
        self.globals: dict[str, str] = {}
        self.outlined: list[str] = []
        self.defined: set[str] = set()
        self.arch = ""
        self.fused = True
        self.halves = True
        self.vector_bits = 0
        self.sections = False
        self.nodes: list[str] = []
        self._once = -1

    def declare(self, name: str, signature: str) -> None:
        """Declare an external function once."""
        self.declarations.setdefault(name, signature)

    def loop_node(self) -> int:
        """Return the number of a new metadata node of a loop that LLVM does not unroll."""
        if self._once < 0:
            self._once = self._add('!{!"llvm.loop.unroll.disable"}')
        return self._add(f"distinct !{{!{self._next()}, !{self._once}}}")

    def _next(self) -> int:
        return len(self.nodes) if self.locations is None else self.locations.count

    def _add(self, node: str) -> int:
        if self.locations is not None:
            return self.locations.add(node)
        self.nodes.append(f"!{len(self.nodes)} = {node}")
        return len(self.nodes) - 1


class Emitter:
    """The emitter of one function, the first argument of all functions of the generator."""

    def __init__(self, module: ModuleState, function: ThreadFunc) -> None:
        """Initialize at the entry block."""
        self.module = module
        self.function = function
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.slots: dict[Reg, str] = {}
        self.fixed: dict[Reg, str] = {}
        self.memo: dict[Value, str] = {}
        self.integers: dict[Expr, str] = {}
        self.shorts: dict[Expr, str] = {}
        self.conditions: dict[Bool, str] = {}
        self.narrow = function.width.proved
        self.narrow_scalars = function.launch is not None
        self.ranks: dict[Var, int] = {}
        self._trail: list[Callable[[], object]] = []
        self._scope = module.locations.function(function.name) if module.locations else 0
        self.location = ""
        self.block = "entry"
        self.outlined = 0
        self._count = 0

    def name(self) -> str:
        """Return a fresh local name."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Emit an instruction without a result."""
        self.lines.append(text + self.location)

    def op(self, text: str) -> str:
        """Emit an instruction; return the name of its result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {text}{self.location}")
        return name

    def locate(self, source: Source) -> None:
        """Attach the debug location of a statement to the following instructions."""
        if self.module.locations is not None:
            self.location = f", !dbg !{self.module.locations.location(source, self._scope)}"

    def label(self, hint: str) -> str:
        """Return a fresh name of a basic block."""
        self._count += 1
        return f"{hint}{self._count}"

    def begin(self, block: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{block}:")
        self.block = block

    def call(self, name: str, result: str, args: tuple[tuple[str, str], ...]) -> str:
        """Emit a call of a function with (type, operand) pairs ``args``; return its result."""
        self.module.declare(name, f"{result} @{name}({', '.join(t for t, _ in args)})")
        return self.op(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})")

    @contextmanager
    def scope(self) -> Generator[None]:
        """Limit the lifetime of operands remembered inside to the scope."""
        mark = len(self._trail)
        yield
        for forget in self._trail[mark:]:
            forget()
        del self._trail[mark:]

    def bind(self, var: Var, operand: str, *, short: bool = False) -> None:
        """Bind a symbol until the scope ends, to an ``i32`` if it is ``short``, else an ``i64``."""
        self.ranks.setdefault(var, len(self.ranks))
        if short:
            self.remember_short(var, operand)
        else:
            self.remember(var, operand)

    def remember(self, term: Expr, operand: str) -> None:
        """Remember the operand of a term until the scope ends."""
        self.integers[term] = operand
        self._trail.append(lambda: self.integers.pop(term, None))

    def remember_short(self, term: Expr, operand: str) -> None:
        """Remember the 32-bit operand of a term until the scope ends."""
        self.shorts[term] = operand
        self._trail.append(lambda: self.shorts.pop(term, None))

    def remember_condition(self, condition: Bool, operand: str) -> None:
        """Remember the operand of a condition until the scope ends."""
        self.conditions[condition] = operand
        self._trail.append(lambda: self.conditions.pop(condition, None))

    def slot(self, reg: Reg) -> str:
        """Return the stack slot of a register, which LLVM promotes to a register."""
        if reg not in self.slots:
            self._count += 1
            name = f"%r{self._count}"
            self.slots[reg] = name
            self.entry.append(f"{name} = alloca {type_name(reg.type)}")
        return self.slots[reg]

    def finish(self, header: str, attributes: str = "#0") -> str:
        """Return the text of the function; the last line must be a terminator."""
        lines = ("entry:", *self.entry, *self.lines)
        body = "\n".join([t if t.endswith(":") else f"  {t}" for t in lines])
        self.module.defined.add(self.function.name)
        scope = f" !dbg !{self._scope}" if self._scope else ""
        own = f' section ".text.{self.function.name}"' if self.module.sections else ""
        return f"{header} {attributes}{own}{scope} {{\n{body}\n}}\n"
