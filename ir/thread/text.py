"""Printer of thread-level functions.

The text is for readers and golden tests; there is no parser. Statements print as follows.

- ``name(p: ptr, n) -> i32:`` is the signature; comments above it list the axes of a launch.
- ``r = value`` assigns a register, and ``let i = value`` binds a variable of symbolic terms.
- ``p[offset, align=16] = value: type`` is a store; ``offset`` is in bytes. ``step s`` gives the
  distance of the lanes in bytes, and ``where mask`` the active lanes.
- ``load.f32x4 p[offset]`` is a load, and ``gather.f32x4 p[offsets]`` a load with one offset per
  lane.
- ``<term for lane in 4>`` is a vector with the values of the term for ``lane`` in ``range(4)``.
- ``f32(x)`` converts a number, and ``bits.i32(x)`` reinterprets its bits.
- ``for i in parallel(n):`` is a loop distributed among threads, and ``barrier(block)`` a barrier.
- ``v``, ``v_1``, ... name values that the next statement uses more than once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ..identity import fresh_name
from ..symbolic import Bool, Expr, Var, free_vars, to_text as term_text
from .function import ThreadFunc
from .nodes import (
    Address,
    Allocate,
    Assign,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Binary,
    Bitcast,
    Body,
    Broadcast,
    Call,
    Cast,
    Compare,
    CompareExchange,
    Const,
    Data,
    Extract,
    Fma,
    FunctionAddress,
    Gather,
    If,
    Index,
    Let,
    Load,
    Loop,
    MachineOp,
    Null,
    Offset,
    Parallel,
    Pause,
    Predicate,
    Reduce,
    Reg,
    Return,
    Scatter,
    Select,
    Shuffle,
    Stmt,
    Store,
    Unary,
    Value,
    While,
)
from .visit import operands, statement_values, walk_values

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
SIMPLE = (Reg, Const, Null, Index, Predicate, Data, FunctionAddress)


def to_text(function: ThreadFunc) -> str:
    """Return a function as text with one statement per line.

    Parameters
    ----------
    function : ThreadFunc
        A function for a CPU or GPU.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> from .types import GLOBAL_POINTER, VectorType
    >>> y = Reg("y", GLOBAL_POINTER)
    >>> store = Store(Address(y, as_expr(4)), Const(1.0, VectorType(f32)))
    >>> print(to_text(ThreadFunc("one", (y,), (store,))), end="")
    one(y: ptr.global):
        y[4] = 1.0: f32
    """
    return _Printer().function(function)


class _Printer:
    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._vars: dict[Var, str] = {}
        self._regs: dict[Reg, str] = {}
        self._known: dict[int, str] = {}
        self._lines: list[str] = []

    def _fresh(self, base: str) -> str:
        chosen = fresh_name(base, self._taken)
        self._taken.add(chosen)
        return chosen

    def _var(self, variable: Var) -> str:
        if variable not in self._vars:
            self._vars[variable] = self._fresh(variable.name)
        return self._vars[variable]

    def _reg(self, reg: Reg) -> str:
        if reg not in self._regs:
            self._regs[reg] = self._fresh(reg.name)
        return self._regs[reg]

    def _term(self, term: Expr | Bool) -> str:
        free = sorted(free_vars(term), key=lambda v: v.serial)
        return term_text(term, {v: self._var(v) for v in free})

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def function(self, function: ThreadFunc) -> str:
        params = ", ".join(self._param(p) for p in function.params)
        result = "" if function.result is None else f" -> {function.result}"
        for axis in function.launch.axes if function.launch is not None else ():
            self._line(0, f"# {axis.tag}: {self._var(axis.var)} < {self._term(axis.extent)}")
        self._line(0, f"{function.name}({params}){result}:")
        self.body(function.body, 1)
        return "\n".join(self._lines) + "\n"

    def _param(self, param: Var | Reg) -> str:
        if isinstance(param, Var):
            return self._var(param)
        return f"{self._reg(param)}: {param.type}"

    def body(self, body: Body, depth: int) -> None:
        if not body:
            self._line(depth, "pass")
        for statement in body:
            self._statement(statement, depth)

    def _statement(self, statement: Stmt, depth: int) -> None:
        self._share(statement, depth)
        match statement:
            case Loop(var=var, start=start, stop=stop, step=step, body=body):
                bounds = ", ".join(map(self._term, (start, stop)))
                every = "" if step == 1 else f", {step}"
                self._line(depth, f"for {self._var(var)} in range({bounds}{every}):")
                self.body(body, depth + 1)
            case While(condition=condition, body=body):
                self._line(depth, f"while {self.value(condition)}:")
                self.body(body, depth + 1)
            case Parallel(var=var, stop=stop, body=body):
                self._line(depth, f"for {self._var(var)} in parallel({self._term(stop)}):")
                self.body(body, depth + 1)
            case If(condition=condition, then=then, otherwise=otherwise):
                self._line(depth, f"if {self.value(condition)}:")
                self.body(then, depth + 1)
                if otherwise:
                    self._line(depth, "else:")
                    self.body(otherwise, depth + 1)
            case _:
                self._line(depth, self._simple(statement))

    def _simple(self, statement: Stmt) -> str:
        match statement:
            case Let(var=var, value=value):
                return f"let {self._var(var)} = {self.value(value)}"
            case Assign(reg=reg, value=value):
                return f"{self._reg(reg)} = {self.value(value)}"
            case Allocate(reg=reg, size=size, alignment=alignment):
                return f"{self._reg(reg)}: {reg.type} = allocate({size}, align={alignment})"
            case Store(address=address, value=value, stride=stride, mask=mask):
                extra = self._extra(stride, mask)
                return f"{self._address(address)}{extra} = {self._typed(value)}"
            case Scatter(base=base, offsets=offsets, value=value, mask=mask):
                element = f"{self.value(base)}[{self.value(offsets)}]"
                return f"{element}{self._extra(None, mask)} = {self._typed(value)}"
            case Barrier(scope=scope):
                return f"barrier({scope})"
            case Pause():
                return "pause()"
            case MachineOp(operation=operation, args=args, results=results):
                given = ", ".join(map(self.value, args))
                made = ", ".join(map(self._reg, results))
                call = f"{operation.name}({given})"
                return f"{made} = {call}" if made else call
            case Return(value=value):
                return "return" if value is None else f"return {self.value(value)}"
            case Call(callee=callee, args=args, result=result):
                name = callee if isinstance(callee, str) else self.value(callee)
                call = f"{name}({', '.join(map(self.value, args))})"
                return call if result is None else f"{self._reg(result)} = {call}"
            case _:
                return self._atomic(statement)

    def _atomic(self, statement: Stmt) -> str:
        match statement:
            case AtomicUpdate(op=op, address=address, value=value, result=result):
                call = f"atomic_{op}({self._address(address)}, {self.value(value)})"
                return call if result is None else f"{self._reg(result)} = {call}"
            case CompareExchange(address=address, expected=old, desired=new, result=result):
                inner = f"{self._address(address)}, {self.value(old)}, {self.value(new)}"
                return f"{self._reg(result)} = compare_exchange({inner})"
            case AtomicLoad(address=address, result=result):
                return f"{self._reg(result)} = atomic_load({self._address(address)})"
            case AtomicStore(address=address, value=value):
                return f"atomic_store({self._address(address)}, {self.value(value)})"
            case _:
                raise TypeError(f"{type(statement).__name__} is not a simple statement")

    def _share(self, statement: Stmt, depth: int) -> None:
        """Print assignments of names to the values that a statement uses more than once."""
        self._known = {}
        for value in _shared(statement_values(statement)):
            name = self._fresh("v")
            self._line(depth, f"{name} = {self.value(value)}")
            self._known[id(value)] = name

    def value(self, value: Value) -> str:
        """Return a value as text."""
        return self._known.get(id(value)) or self._expression(value)

    def _typed(self, value: Value) -> str:
        text = self.value(value)
        return text if isinstance(value, Const) else f"{text}: {value.type}"

    def _expression(self, value: Value) -> str:
        match value:
            case Reg():
                return self._reg(value)
            case Const(value=number, type=of):
                return f"{number!r}: {of}"
            case Null():
                return "null"
            case (
                Index(expr=term, lane=lane, lanes=lanes)
                | Predicate(condition=term, lane=lane, lanes=lanes)
            ):
                text = self._term(term)
                return text if lane is None else f"<{text} for {self._var(lane)} in {lanes}>"
            case Data(name=name) | FunctionAddress(name=name):
                return f"@{name}"
            case Offset(base=base, offset=offset):
                return f"{self.value(base)} + {self._term(offset)}"
            case Load(type=of, address=address, stride=stride, mask=mask):
                return f"load.{of} {self._address(address)}{self._extra(stride, mask)}"
            case Gather(type=of, base=base, offsets=offsets, mask=mask):
                element = f"{self.value(base)}[{self.value(offsets)}]"
                return f"gather.{of} {element}{self._extra(None, mask)}"
            case _:
                return self._computed(value)

    def _computed(self, value: Value) -> str:
        parts = [self.value(v) for v in operands(value)]
        match value:
            case Binary(op=op) if op in SIGNS:
                return f"({parts[0]} {SIGNS[op]} {parts[1]})"
            case Compare(op=op):
                return f"({parts[0]} {COMPARISONS[op]} {parts[1]})"
            case Binary(op=op) | Unary(op=op):
                return f"{op}({', '.join(parts)})"
            case Fma():
                return f"fma({', '.join(parts)})"
            case Select():
                return f"select({', '.join(parts)})"
            case Cast(type=of):
                return f"{of}({parts[0]})"
            case Bitcast(type=of):
                return f"bits.{of}({parts[0]})"
            case Broadcast(lanes=lanes):
                return f"broadcast({parts[0]}, {lanes})"
            case Extract(lane=lane):
                return f"{parts[0]}[{lane}]"
            case Shuffle(lanes=lanes):
                return f"shuffle({', '.join(parts)}, {list(lanes)})"
            case Reduce(op=op):
                return f"reduce_{op}({parts[0]})"
            case (
                Reg() | Const() | Null() | Index() | Predicate() | Data() | FunctionAddress()
                | Offset() | Load() | Gather()
            ):  # fmt: skip
                return self._expression(value)
            case _:
                assert_never(value)

    def _address(self, address: Address) -> str:
        note = "" if address.alignment == 1 else f", align={address.alignment}"
        return f"{self.value(address.base)}[{self._term(address.offset)}{note}]"

    def _extra(self, stride: Expr | None, mask: Value | None) -> str:
        step = "" if stride is None else f" step {self._term(stride)}"
        return step if mask is None else f"{step} where {self.value(mask)}"


def _shared(roots: tuple[Value, ...]) -> Iterator[Value]:
    """Yield the values that occur more than once, operands before their users."""
    uses: dict[int, int] = {}
    order: list[Value] = []
    for value in walk_values(roots):
        order.append(value)
        for inner in operands(value):
            uses[id(inner)] = uses.get(id(inner), 0) + 1
    for value in roots:
        uses[id(value)] = uses.get(id(value), 0) + 1
    done: set[int] = set()
    for value in order:
        yield from _inner_first(value, uses, done)


def _inner_first(value: Value, uses: dict[int, int], done: set[int]) -> Iterator[Value]:
    if id(value) in done:
        return
    done.add(id(value))
    for inner in operands(value):
        yield from _inner_first(inner, uses, done)
    if uses.get(id(value), 0) > 1 and not isinstance(value, SIMPLE):
        yield value
