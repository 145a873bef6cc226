"""Printer of thread-level functions.

The text is for readers and golden tests; there is no parser. Statements print as follows.

- ``def name(p: ptr, n) -> i32:`` is the signature; comments above it list the axes of a launch,
  and the conditions of the version with 32-bit indices.
- ``# matmul`` states the block or loop of the program that the next statements are from.
- ``r = value`` assigns a register, and ``let i = value`` binds a variable of symbolic terms.
- ``p[offset]`` is the memory at an offset in bytes. ``align=16`` is its alignment, if it differs
  from the size of an element, ``step=s`` the distance of the lanes in bytes, and ``where=mask`` the
  active lanes.
- ``load.f32x4(p[offset])`` is a load, and ``p[offset]: f32x4 = value`` a store.
  ``gather.f32x4(p[offsets])`` and ``p[offsets]: f32x4 = value`` have one offset per lane.
- ``<term for lane in 4>`` is a vector with the values of the term for ``lane`` in ``range(4)``.
- ``f32(x)`` converts a number, ``f32x4(1.0)`` is a constant with equal lanes, and ``bits.i32(x)``
  reinterprets bits. A constant operand without a type has the type of the other operands.
- ``for i in parallel(n):`` is a loop distributed among threads, and ``barrier(block)`` a barrier.
- ``mask``, ``v``, ``v_1``, ... name values that the next statement uses more than once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

from ..dtype import bool_
from ..identity import fresh_name
from ..symbolic import Bool, Expr, Var, free_vars, to_text as term_text
from .function import ThreadFunc
from .nodes import (
    NO_SOURCE,
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
from .types import Type, VectorType
from .visit import operands, statement_values, walk_values

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
Key: TypeAlias = "int | tuple[Expr | Bool, Var]"
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
    def one(y: ptr.global):
        y[4, align=1]: f32 = 1.0
    """
    return _Printer().function(function)


class _Printer:
    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._vars: dict[Var, str] = {}
        self._regs: dict[Reg, str] = {}
        self._known: dict[Key, str] = {}
        self._lines: list[str] = []
        self._source = NO_SOURCE

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
            self._line(
                0, f"# {axis.tag}: {self._var(axis.var)} in range({self._term(axis.extent)})"
            )
        if function.width.limits:
            limits = (f"{self._term(limit)} < 2**31" for limit in function.width.limits)
            self._line(0, f"# version with 32-bit indices if {' and '.join(limits)}")
        self._line(0, f"def {function.name}({params}){result}:")
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
        self._origin(statement, depth)
        self._share(statement, depth)
        match statement:
            case Loop(var=var, start=start, stop=stop, step=step, body=body):
                terms = [stop] if start == 0 and step == 1 else [start, stop]
                bounds = [self._term(t) for t in terms] + ([] if step == 1 else [str(step)])
                self._line(depth, f"for {self._var(var)} in range({', '.join(bounds)}):")
                self.body(body, depth + 1)
            case While(condition=condition, body=body):
                self._line(depth, f"while {self._whole(condition)}:")
                self.body(body, depth + 1)
            case Parallel(var=var, stop=stop, worker=worker, work=work, body=body):
                self._line(depth, f"# {self._var(worker)}: number of the executing thread")
                self._line(depth, f"# estimated work: {self._term(work)} operations")
                self._line(depth, f"for {self._var(var)} in parallel({self._term(stop)}):")
                self.body(body, depth + 1)
            case If(condition=condition, then=then, otherwise=otherwise):
                self._line(depth, f"if {self._whole(condition)}:")
                outer = self._source
                self.body(then, depth + 1)
                if otherwise:
                    self._source = outer
                    self._line(depth, "else:")
                    self.body(otherwise, depth + 1)
            case _:
                self._line(depth, self._simple(statement))

    def _origin(self, statement: Stmt, depth: int) -> None:
        """Print the block or loop that a statement is from, if it differs from the previous one.

        Loops have the name of their variable, and branches that of the loop, so they need no
        comment.
        """
        if statement.source == self._source or isinstance(statement, If):
            return
        self._source = statement.source
        if statement.source.name and not isinstance(statement, Loop | Parallel):
            self._line(depth, f"# {statement.source.name}")

    def _simple(self, statement: Stmt) -> str:
        match statement:
            case Let(var=var, value=value):
                return f"let {self._var(var)} = {self._whole(value)}"
            case Assign(reg=reg, value=value):
                return f"{self._reg(reg)} = {self._whole(value)}"
            case Allocate(reg=reg, size=size, alignment=alignment):
                return f"{self._reg(reg)}: {reg.type} = allocate({size}, align={alignment})"
            case Store(address=address, value=value, stride=stride, mask=mask):
                element = self._access(address, value.type, stride, mask)
                return f"{element}: {value.type} = {self._stored(value)}"
            case Scatter(base=base, offsets=offsets, value=value, mask=mask):
                element = f"{self._base(base)}[{self.value(offsets)}{self._where(mask)}]"
                return f"{element}: {value.type} = {self._stored(value)}"
            case Barrier(scope=scope):
                return f"barrier({scope})"
            case Pause():
                return "pause()"
            case MachineOp(operation=operation, args=args, results=results):
                given = ", ".join(map(self._whole, args))
                made = ", ".join(map(self._reg, results))
                call = f"{operation.name}({given})"
                return f"{made} = {call}" if made else call
            case Return(value=value):
                return "return" if value is None else f"return {self._whole(value)}"
            case Call(callee=callee, args=args, result=result):
                name = callee if isinstance(callee, str) else self.value(callee)
                call = f"{name}({', '.join(map(self._whole, args))})"
                return call if result is None else f"{self._reg(result)} = {call}"
            case _:
                return self._atomic(statement)

    def _atomic(self, statement: Stmt) -> str:
        match statement:
            case AtomicUpdate(op=op, address=address, value=value, result=result):
                call = f"atomic_{op}({self._access(address, value.type)}, {self._whole(value)})"
                return call if result is None else f"{self._reg(result)} = {call}"
            case CompareExchange(address=address, expected=old, desired=new, result=result):
                inner = f"{self._access(address, new.type)}, {self._whole(old)}, {self._whole(new)}"
                return f"{self._reg(result)} = compare_exchange({inner})"
            case AtomicLoad(address=address, result=result):
                return f"{self._reg(result)} = atomic_load({self._access(address, result.type)})"
            case AtomicStore(address=address, value=value):
                return f"atomic_store({self._access(address, value.type)}, {self._whole(value)})"
            case _:
                raise TypeError(f"{type(statement).__name__} is not a simple statement")

    def _share(self, statement: Stmt, depth: int) -> None:
        """Print assignments of names to the values that a statement uses more than once."""
        self._known = {}
        for value in _shared(statement_values(statement)):
            masks = isinstance(value.type, VectorType) and value.type.dtype == bool_
            name = self._fresh("mask" if masks else "v")
            self._line(depth, f"{name} = {self._whole(value)}")
            self._known[_key(value)] = name

    def value(self, value: Value) -> str:
        """Return a value as text."""
        return self._known.get(_key(value)) or self._expression(value)

    def _whole(self, value: Value) -> str:
        """Return a value as text without enclosing parentheses."""
        text = self.value(value)
        return text[1:-1] if _sign(value) and _key(value) not in self._known else text

    def _stored(self, value: Value) -> str:
        return _number(value) if isinstance(value, Const) else self._whole(value)

    def _expression(self, value: Value) -> str:
        match value:
            case Reg():
                return self._reg(value)
            case Const(type=of):
                return f"{of}({_number(value)})"
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
                return f"load.{of}({self._access(address, of, stride, mask)})"
            case Gather(type=of, base=base, offsets=offsets, mask=mask):
                element = f"{self._base(base)}[{self.value(offsets)}{self._where(mask)}]"
                return f"gather.{of}({element})"
            case _:
                return self._computed(value)

    def _computed(self, value: Value) -> str:
        match value:
            case Binary() | Compare() | Fma() | Select():
                return self._operation(value, operands(value))
            case Unary(op=op, operand=operand):
                return f"{op}({self._whole(operand)})"
            case Cast(type=of, operand=operand):
                return f"{of}({self._whole(operand)})"
            case Bitcast(type=of, operand=operand):
                return f"bits.{of}({self._whole(operand)})"
            case Broadcast(operand=operand, lanes=lanes):
                return f"broadcast({self._whole(operand)}, {lanes})"
            case Extract(operand=operand, lane=lane):
                return f"{self.value(operand)}[{lane}]"
            case Shuffle(left=left, right=right, lanes=lanes):
                return f"shuffle({self._whole(left)}, {self._whole(right)}, {list(lanes)})"
            case Reduce(op=op, operand=operand):
                return f"reduce_{op}({self._whole(operand)})"
            case (
                Reg() | Const() | Null() | Index() | Predicate() | Data() | FunctionAddress()
                | Offset() | Load() | Gather()
            ):  # fmt: skip
                return self._expression(value)
            case _:
                assert_never(value)

    def _operation(self, value: Binary | Compare | Fma | Select, given: Sequence[Value]) -> str:
        """Return an operation whose operands have one type, which only the first one prints."""
        first, typed = (1, given[1:]) if isinstance(value, Select) else (0, given)
        plain = any(not isinstance(v, Const) for v in typed)
        sign = _sign(value)
        operand = self.value if sign else self._whole
        parts = [
            _number(v) if isinstance(v, Const) and plain and k >= first else operand(v)
            for k, v in enumerate(given)
        ]
        if sign:
            return f"({parts[0]} {sign} {parts[1]})"
        name = value.op if isinstance(value, Binary | Compare) else type(value).__name__.lower()
        return f"{name}({', '.join(parts)})"

    def _base(self, base: Value) -> str:
        text = self.value(base)
        return f"({text})" if isinstance(base, Offset) else text

    def _access(
        self, address: Address, of: Type, stride: Expr | None = None, mask: Value | None = None
    ) -> str:
        """Return the memory of an access, with its alignment if that is not the natural one."""
        natural = of.width if isinstance(of, VectorType) else 8
        align = "" if address.alignment == natural else f", align={address.alignment}"
        step = "" if stride is None else f", step={self._term(stride)}"
        inside = f"{self._term(address.offset)}{align}{step}{self._where(mask)}"
        return f"{self._base(address.base)}[{inside}]"

    def _where(self, mask: Value | None) -> str:
        return "" if mask is None else f", where={self.value(mask)}"


def _sign(value: Value) -> str:
    """Return the sign of an operation; empty if it prints as a call."""
    match value:
        case Compare(op=op):
            return COMPARISONS[op]
        case Binary(op=op):
            return SIGNS.get(op, "")
        case _:
            return ""


def _number(value: Const) -> str:
    """Return the number of a constant in the form of its type."""
    dtype = value.type.dtype
    return repr(float(value.value) if dtype.is_float else value.value)


def _key(value: Value) -> Key:
    """Return the identity of a value in one statement; equal terms per lane are one value."""
    match value:
        case Index(expr=term, lane=Var() as lane) | Predicate(condition=term, lane=Var() as lane):
            return (term, lane)
        case _:
            return id(value)


def _shared(roots: tuple[Value, ...]) -> Iterator[Value]:
    """Yield the values that occur more than once, operands before their users."""
    uses: dict[Key, int] = {}
    order: list[Value] = []
    for value in walk_values(roots):
        order.append(value)
        for inner in operands(value):
            uses[_key(inner)] = uses.get(_key(inner), 0) + 1
    for value in roots:
        uses[_key(value)] = uses.get(_key(value), 0) + 1
    done: set[Key] = set()
    for value in order:
        yield from _inner_first(value, uses, done)


def _inner_first(value: Value, uses: dict[Key, int], done: set[Key]) -> Iterator[Value]:
    key = _key(value)
    if key in done:
        return
    done.add(key)
    for inner in operands(value):
        yield from _inner_first(inner, uses, done)
    if uses.get(key, 0) > 1 and (isinstance(key, tuple) or not isinstance(value, SIMPLE)):
        yield value
