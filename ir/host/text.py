"""Printer of host functions.

The text is for readers and golden tests; there is no parser. Statements print as follows.

- ``x = value`` assigns a variable, and ``let n = value`` binds a symbol of the shape program.
- ``views[0].data`` is a field of a record that the caller of the printer describes.
- ``load.i64(p[8])`` is a load, and ``p[8]: i64 = value`` a store, at an offset in bytes.
- ``check(condition, a, b)  # note`` returns from the function with an error unless the condition
  holds; the error reports the values ``a`` and ``b``.
- ``launch kernel(x, y, n)`` launches a kernel; a failed launch returns its error code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from ..identity import fresh_name
from ..symbolic import Bool, Expr, Var, free_vars, to_text as term_text
from .nodes import (
    Arithmetic,
    Assign,
    BindSymbol,
    Body,
    Both,
    Claim,
    Comparison,
    Either,
    Exchange,
    FunctionPointer,
    Guard,
    HostFunc,
    HostLaunch,
    Integer,
    Invoke,
    Local,
    Moved,
    Negation,
    NullPointer,
    Numeric,
    Observe,
    Pause,
    Publish,
    Read,
    Reserve,
    Return,
    Statement,
    Static,
    Term,
    Value,
    When,
    While,
    Write,
)

_SIGNS: Final = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
_COMPARISONS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}

_LARGE: Final = 2**32
"""The number from which powers of two are printed as such."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: its name, and for an array the size of an element in bytes."""

    name: str
    element: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of the memory at an address.

    Parameters
    ----------
    fields : Mapping of int to Field
        The fields by offset in bytes; a field without a name is an element of an array of words.
    stride : int
        The distance of the records in bytes; 0 if there is only one record.
    """

    fields: Mapping[int, Field]
    stride: int = 0


WORDS: Final = Layout({0: Field("")}, 8)
"""An array of 8-byte words."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Descriptions of the memory and of the checks of a function.

    Parameters
    ----------
    layouts : Mapping of str to Layout
        Layouts by address. The numeric suffix of a variable and the positions of records are
        omitted: ``views[].shape``.
    sites : Mapping of int to str
        Descriptions of checks by number.
    launches : Mapping of int to str
        Descriptions of launches by number.
    names : Mapping of str to str
        Texts that replace those of fields, such as the names of constants.
    header : Sequence of str
        Comment lines above the function.
    """

    layouts: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    sites: Mapping[int, str] = field(default_factory=dict[int, str])
    launches: Mapping[int, str] = field(default_factory=dict[int, str])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    header: Sequence[str] = ()


def to_text(function: HostFunc, notes: Notes | None = None) -> str:
    """Return a host function as text with one statement per line.

    Parameters
    ----------
    function : HostFunc
        The function.
    notes : Notes, optional
        Descriptions of its memory and checks; without them, offsets are in bytes.

    Examples
    --------
    >>> call = Local("call", "ptr")
    >>> body = (Write("i64", call, Integer(8), Integer(3)), Return(Integer(0)))
    >>> print(to_text(HostFunc("f", (call,), body, "code")), end="")
    def f(call: ptr) -> code:
        call[8]: i64 = 3
        return 0
    """
    return _Printer(notes or Notes()).function(function)


class _Printer:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._taken: set[str] = set()
        self._vars: dict[Var, str] = {}
        self._locals: dict[Local, str] = {}
        self._lines: list[str] = []

    def function(self, function: HostFunc) -> str:
        params = ", ".join(f"{self._local(p)}: {p.kind}" for p in function.params)
        result = "" if function.returns is None else f" -> {function.returns}"
        for line in self._notes.header:
            self._line(0, f"# {line}")
        self._line(0, f"def {function.name}({params}){result}:")
        self._body(function.body, 1)
        return "\n".join(self._lines) + "\n"

    def _line(self, depth: int, text: str, note: str = "") -> None:
        self._lines.append("    " * depth + text + (f"  # {note}" if note else ""))

    def _fresh(self, base: str) -> str:
        chosen = fresh_name(base, self._taken)
        self._taken.add(chosen)
        return chosen

    def _local(self, local: Local) -> str:
        if local not in self._locals:
            self._locals[local] = self._fresh(local.name)
        return self._locals[local]

    def _term(self, term: Expr | Bool) -> str:
        for symbol in sorted(free_vars(term), key=lambda v: v.serial):
            if symbol not in self._vars:
                self._vars[symbol] = self._fresh(symbol.name)
        return term_text(term, self._vars)

    def _body(self, body: Body, depth: int) -> None:
        if not body:
            self._line(depth, "pass")
        for statement in body:
            self._statement(statement, depth)

    def _statement(self, statement: Statement, depth: int) -> None:
        match statement:
            case When():
                self._branch(statement, depth, "if")
            case While(condition=condition, body=body):
                self._line(depth, f"while {self._value(condition)}:")
                self._body(body, depth + 1)
            case Guard(condition=condition, site=site, numbers=numbers):
                note = self._notes.sites.get(site, f"check {site}")
                self._line(depth, f"check({self._list((condition, *numbers))})", note)
            case HostLaunch(kernel=kernel, ordinal=ordinal):
                args = self._list((*statement.buffers, *statement.symbols))
                extra = statement.scratch
                scratch = "" if extra is None else f", scratch={self._value(extra)}"
                note = self._notes.launches.get(ordinal, "")
                self._line(depth, f"launch {kernel}({args}{scratch})", note)
            case _:
                self._line(depth, self._simple(statement))

    def _branch(self, branch: When, depth: int, word: str) -> None:
        """Print a branch; a chain of branches has one level of indentation."""
        self._line(depth, f"{word} {self._value(branch.condition)}:")
        self._body(branch.then, depth + 1)
        match branch.otherwise:
            case ():
                pass
            case (When() as inner,):
                self._branch(inner, depth, "elif")
            case _:
                self._line(depth, "else:")
                self._body(branch.otherwise, depth + 1)

    def _simple(self, statement: Statement) -> str:
        match statement:
            case Assign(target=target, value=value):
                return f"{self._local(target)} = {self._value(value)}"
            case BindSymbol(symbol=symbol, value=value):
                given = self._value(value)
                return f"let {self._term(symbol)} = {given}"
            case Write(width=width, base=base, offset=offset, value=value):
                stored = self._value(value)
                return (
                    f"{self._memory(base, offset) or self._raw(base, offset)}: {width} = {stored}"
                )
            case Invoke(callee=callee, args=args, result=result):
                name = callee if isinstance(callee, str) else self._value(callee)
                call = f"{name}({self._list(args)})"
                return call if result is None else f"{self._local(result)} = {call}"
            case Reserve(target=target, size=size):
                return f"{self._local(target)} = allocate({size})"
            case Exchange(base=base, offset=offset, expected=old, desired=new, result=result):
                args = f"{self._raw(base, offset)}, {self._value(old)}, {self._value(new)}"
                return f"{self._local(result)} = compare_exchange({args})"
            case Publish(base=base, offset=offset, value=value):
                return f"atomic_store({self._raw(base, offset)}, {self._value(value)})"
            case Observe(base=base, offset=offset, result=result):
                return f"{self._local(result)} = atomic_load({self._raw(base, offset)})"
            case Pause():
                return "pause()"
            case Return(value=value):
                return "return" if value is None else f"return {self._value(value)}"
            case When() | While() | Guard() | HostLaunch():
                raise TypeError(f"{type(statement).__name__} is not a simple statement")
            case _:
                assert_never(statement)

    def _list(self, values: Sequence[Value]) -> str:
        return ", ".join(map(self._value, values))

    def _value(self, value: Value) -> str:
        match value:
            case Local():
                return self._local(value)
            case Integer(value=number):
                large = number >= _LARGE and number.bit_count() == 1
                return f"2**{number.bit_length() - 1}" if large else str(number)
            case NullPointer():
                return "null"
            case Term(value=term) | Claim(value=term):
                return self._term(term)
            case Read(width=width, base=base, offset=offset):
                known = self._memory(base, offset)
                return known or f"load.{width}({self._raw(base, offset)})"
            case Moved(base=base, offset=offset):
                return self._moved(base, offset)
            case Numeric(base=base):
                return f"int({self._value(base)})"
            case FunctionPointer(name=name) | Static(name=name):
                return f"@{name}"
            case _:
                return self._computed(value)

    def _computed(self, value: Value) -> str:
        match value:
            case Arithmetic(op=op, left=left, right=right):
                if op in _SIGNS:
                    return f"{self._operand(left)} {_SIGNS[op]} {self._operand(right)}"
                return f"{op}({self._value(left)}, {self._value(right)})"
            case Comparison(op=op, left=left, right=right):
                return f"{self._value(left)} {_COMPARISONS[op]} {self._value(right)}"
            case Both(left=left, right=right):
                return f"({self._value(left)} and {self._value(right)})"
            case Either(left=left, right=right):
                return f"({self._value(left)} or {self._value(right)})"
            case Negation(operand=operand):
                return f"not ({self._value(operand)})"
            case (
                Local() | Integer() | NullPointer() | Term() | Claim() | Read() | Moved()
                | Numeric() | FunctionPointer() | Static()
            ):  # fmt: skip
                return self._value(value)
            case _:
                assert_never(value)

    def _operand(self, value: Value) -> str:
        """Return a value in parentheses if it has an operator."""
        text = self._value(value)
        compound = isinstance(value, Term | Claim | Arithmetic | Comparison | Moved)
        compound = compound and " " in text
        return f"({text})" if compound else text

    def _raw(self, base: Value, offset: Value) -> str:
        known = self._memory(base, offset)
        return known or f"{self._value(base)}[{self._value(offset)}]"

    def _memory(self, base: Value, offset: Value) -> str:
        """Return the field at an address; empty if the layout is not known."""
        if isinstance(base, Moved) and isinstance(base.offset, Integer):
            outer = self._layout(base.base)
            if outer is not None and isinstance(offset, Integer):
                return self._field(base.base, outer, base.offset.value + offset.value)
        layout = self._layout(base)
        if layout is None or not isinstance(offset, Integer):
            return ""
        found = self._field(base, layout, offset.value)
        return self._notes.names.get(found, found)

    def _layout(self, base: Value) -> Layout | None:
        if not isinstance(base, Local | Read | Moved):
            return None
        return self._notes.layouts.get(_key(self._value(base)))

    def _field(self, base: Value, layout: Layout, offset: int) -> str:
        text = self._value(base)
        if layout.stride:
            position, offset = divmod(offset, layout.stride)
            text = f"{text}[{position}]"
        start = max((at for at in layout.fields if at <= offset), default=None)
        if start is None:
            return ""
        found, rest = layout.fields[start], offset - start
        if found.element:
            return f"{text}.{found.name}[{rest // found.element}]"
        if rest:
            return ""
        return f"{text}.{found.name}" if found.name else text

    def _moved(self, base: Value, offset: Value) -> str:
        layout = self._layout(base)
        if layout is not None and isinstance(offset, Integer):
            if layout.stride and offset.value % layout.stride == 0 and layout is not WORDS:
                return f"{self._value(base)}[{offset.value // layout.stride}]"
            known = self._field(base, layout, offset.value)
            if known:
                return f"address({known})"
        return f"{self._value(base)} + {self._operand(offset)}"


def _key(text: str) -> str:
    return re.sub(r"\[[^\]]*\]", "[]", re.sub(r"_\d+$", "", text))
