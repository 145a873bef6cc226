"""The state of writing one LLVM function: lines, names, and what is in scope."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...ir.errors import TilewrightError
from ...ir.symbolic import Bool, Expr, Var
from ...ir.thread.nodes import Data, Reg, Source, ThreadFunc, Value
from .locations import Locations
from .types import type_name


class UnboundVariableError(TilewrightError):
    """Thread-level code uses a symbol or register that nothing has bound."""

    title = "Unbound variable"


class ModuleState:
    """What the functions of one module share: declarations, data, outlined functions."""

    def __init__(self, locations: Locations | None = None) -> None:
        """Start an empty module, with debug locations where ``locations`` collects them."""
        self.locations = locations
        self.declarations: dict[str, str] = {}
        self.data: dict[str, Data] = {}
        self.globals: dict[str, str] = {}
        self.outlined: list[str] = []
        self.defined: set[str] = set()
        self.arch = ""
        self.fused = True
        self.halves = True

    def declare(self, name: str, signature: str) -> None:
        """Declare a function that is not defined here, once."""
        self.declarations.setdefault(name, signature)


class Emitter:
    """Writes one function. Parts of the generator are functions that take an emitter first."""

    def __init__(self, module: ModuleState, function: ThreadFunc) -> None:
        """Start at the entry block."""
        self.module = module
        self.function = function
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.slots: dict[Reg, str] = {}
        self.fixed: dict[Reg, str] = {}
        self.memo: dict[Value, str] = {}
        self.integers: dict[Expr, str] = {}
        self.conditions: dict[Bool, str] = {}
        self.ranks: dict[Var, int] = {}
        self._trail: list[Expr | Bool] = []
        self._scope = module.locations.function(function.name) if module.locations else 0
        self.place = ""
        self.block = "entry"
        self.outlined = 0
        self._count = 0

    # ------------------------------------------------------------ text

    def name(self) -> str:
        """Give a fresh local name."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Write an instruction that gives nothing."""
        self.lines.append(text + self.place)

    def op(self, text: str) -> str:
        """Write an instruction and give the name of its result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {text}{self.place}")
        return name

    def locate(self, source: Source) -> None:
        """Let the instructions from here on tell where they came from."""
        if self.module.locations is not None:
            self.place = f", !dbg !{self.module.locations.place(source, self._scope)}"

    def label(self, hint: str) -> str:
        """Give a fresh name of a block."""
        self._count += 1
        return f"{hint}{self._count}"

    def begin(self, block: str) -> None:
        """Start a block."""
        self.lines.append(f"{block}:")
        self.block = block

    def call(self, name: str, result: str, args: tuple[tuple[str, str], ...]) -> str:
        """Call a declared function for its result; ``args`` are (type, operand) pairs."""
        self.module.declare(name, f"{result} @{name}({', '.join(t for t, _ in args)})")
        return self.op(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})")

    # ------------------------------------------------------------ scope

    @contextmanager
    def scope(self) -> Generator[None]:
        """Forget, at the end, the terms that were computed inside."""
        mark = len(self._trail)
        yield
        for term in self._trail[mark:]:
            if isinstance(term, Expr):
                self.integers.pop(term, None)
            else:
                self.conditions.pop(term, None)
        del self._trail[mark:]

    def bind(self, var: Var, operand: str) -> None:
        """Bind a symbolic variable until the scope ends."""
        self.ranks.setdefault(var, len(self.ranks))
        self.remember(var, operand)

    def remember(self, term: Expr, operand: str) -> None:
        """Keep the operand of a term until the scope ends."""
        self.integers[term] = operand
        self._trail.append(term)

    def remember_condition(self, condition: Bool, operand: str) -> None:
        """Keep the operand of a condition until the scope ends."""
        self.conditions[condition] = operand
        self._trail.append(condition)

    def slot(self, reg: Reg) -> str:
        """Give the stack slot of a register, which LLVM promotes to a real one."""
        if reg not in self.slots:
            self._count += 1
            name = f"%r{self._count}"
            self.slots[reg] = name
            self.entry.append(f"{name} = alloca {type_name(reg.type)}")
        return self.slots[reg]

    def finish(self, header: str, attributes: str = "#0") -> str:
        """Give the function's text. The last line written has to end a block."""
        lines = ("entry:", *self.entry, *self.lines)
        body = "\n".join([t if t.endswith(":") else f"  {t}" for t in lines])
        self.module.defined.add(self.function.name)
        scope = f" !dbg !{self._scope}" if self._scope else ""
        return f"{header} {attributes}{scope} {{\n{body}\n}}\n"
