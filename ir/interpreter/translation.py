"""Translation of loop-level functions to Python loops over NumPy scalars."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NoReturn, assert_never

import numpy as np
from numpy.typing import NDArray

from ...errors import Excerpt, TilewrightError
from ..dtype import DType
from ..identity import Uid
from ..loop.complex_references import ByKind
from ..loop.decompose import decomposed
from ..loop.element_functions import element_function
from ..loop.nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferParam,
    Cast,
    Compare,
    Condition,
    Element,
    For,
    If,
    Index,
    Let,
    Load,
    Local,
    Number,
    PrimFunc,
    Reinterpret,
    Seq,
    Stmt,
    Store,
    Ternary,
    Unary,
    Where,
)
from ..loop.visit import operands, walk
from ..script.excerpt import access_line
from ..sizes import size_problem
from ..symbolic import (
    TRUE,
    Bool,
    Expr,
    Var,
    as_expr,
    free_vars,
    to_text,
)
from .elements import COMPARE, OutOfBoundsError, cast_to, computed, reinterpreted
from .rounding import amplitude, not_exact

Array = NDArray[Any]


class InterpreterInputError(TilewrightError):
    """Arguments of the interpreter that do not match the parameters of the function."""

    title = "Invalid interpreter input"


def storage_of(dtype: DType, *, precise: bool) -> np.dtype[np.generic]:
    """Return the dtype of the array that holds elements; float64 for floats in precise mode."""
    return (dtype.wide if precise else dtype).numpy


_LOOPS_PER_FUNCTION: Final = 16
"""The number of nested loops in one Python function; CPython permits 20 nested statements."""

_LEVELS_PER_FUNCTION: Final = 64
"""The largest indentation in one Python function; CPython permits 100 levels."""


class _Translator:
    """A translator of one function to Python; the text contains only generated names."""

    def __init__(self, func: PrimFunc, *, precise: bool, rounded: bool = False) -> None:
        # A program in the cache of translations must not keep its function alive.
        self.func = weakref.ref(func)
        self.uid: Uid | None = None
        self.precise = precise
        self.rounded = rounded
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.numbers = count()
        self.bound: list[str] = ["rounding"]
        self.scope: dict[str, Any] = {
            "np": np,
            "ceildiv": _ceildiv,
            "select": _select,
            "at": _at,
            "within": _within,
            "checked": _checked,
            "fresh": self.fresh,
        }
        self.vars: dict[Var, str] = {}
        self.buffers: dict[Buffer, str] = {}
        self.values: dict[Local, str] = {}
        self.loops_around = 0

    def fresh(self, label: tuple[str, DType], shape: tuple[int, ...]) -> Array:
        """Return the undefined elements of an allocation."""
        name, dtype = label
        return undefined(tuple(max(n, 0) for n in shape), name, dtype, precise=self.precise)

    def name(self, symbol: Var) -> str:
        return self.vars.setdefault(symbol, f"x{len(self.vars)}")

    def buffer(self, buffer: Buffer) -> str:
        return self.buffers.setdefault(buffer, f"b{len(self.buffers)}")

    def constant(self, value: object) -> str:
        key = f"c{len(self.scope)}"
        self.scope[key] = value
        return key

    def term(self, term: Expr | Bool) -> str:
        return f"({to_text(term, {v: self.name(v) for v in free_vars(term)})})"

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        name = self.buffer(buffer)
        site = _Site(self.func, self.uid, f"buffer {buffer.name!r}", f"{buffer.name}[")
        label = self.constant(site)
        inner = ", ".join(
            f"i if 0 <= (i := {self.term(index)}) < {name}_{k} else at(i, {name}_{k}, {label}, {k})"
            for k, index in enumerate(indices)
        )
        return f"{name}[{inner}]" if indices else f"{name}[()]"

    def sizes(self, buffer: Buffer, depth: int) -> None:
        """Emit the sizes of an array, which are compared with each index."""
        name = self.buffer(buffer)
        self.bound.append(name)
        for k in range(buffer.rank):
            self.emit(depth, f"{name}_{k} = {name}.shape[{k}]")
            self.bound.append(f"{name}_{k}")

    def perturbed(self, text: str, dtype: DType, units: int) -> str:
        """Return the text that rounds a value randomly by a number of units of its dtype."""
        if not (self.rounded and units and dtype.is_inexact):
            return text
        return f"rounding({text}, {amplitude(dtype, units)!r})"

    def function(self, op: str, dtype: DType) -> str:
        """Return the name of the reference of an element function for a dtype."""
        found = element_function(op).reference
        if isinstance(found, ByKind):
            found = found.chosen(is_complex=dtype.is_complex)
        own = dtype.is_machine or dtype.is_complex or (self.precise and dtype.is_float)
        return self.constant(found if own else computed(found, dtype))

    def element(self, element: Element) -> str:
        """Return the text of an element, with random rounding if requested."""
        text = self.exactly(element)
        match element:
            case Unary(op=op) | Binary(op=op) | Ternary(op=op):
                units = element_function(op).rounding_units(operands(element)[0].dtype)
                return self.perturbed(text, element.dtype, units)
            case Number(value=value, dtype=dtype):
                return self.perturbed(text, dtype, int(not_exact(value, dtype)))
            case Index(dtype=dtype):
                return self.perturbed(text, dtype, 1)
            case Cast(dtype=dtype, operand=operand):
                source = operand.dtype
                widens = source.is_inexact and source.is_exact_in(dtype)
                return self.perturbed(text, dtype, int(not widens))
            case _:
                return text

    def exactly(self, element: Element) -> str:
        match element:
            case Number(value=value, dtype=dtype):
                storage = storage_of(dtype, precise=self.precise)
                return self.constant(np.asarray(value).astype(storage)[()])
            case Index(value=value, dtype=dtype):
                cast = self.constant(cast_to(dtype, storage_of(dtype, precise=self.precise)))
                return f"{cast}(np.int64({self.term(value)}))"
            case Condition(value=value):
                return f"np.bool_({self.term(value)})"
            case Load(buffer=buffer, indices=indices):
                return self.address(buffer, indices)
            case Unary(op=op) | Binary(op=op) | Ternary(op=op):
                inner = ", ".join(map(self.element, operands(element)))
                return f"{self.function(op, operands(element)[0].dtype)}({inner})"
            case Compare(op=op, left=left, right=right):
                return f"{self.constant(COMPARE[op])}({self.element(left)}, {self.element(right)})"
            case Cast(dtype=dtype, operand=operand):
                cast = self.constant(cast_to(dtype, storage_of(dtype, precise=self.precise)))
                return f"{cast}({self.element(operand)})"
            case Reinterpret(dtype=dtype, operand=operand):
                view = reinterpreted(operand.dtype, dtype, storage_of(dtype, precise=self.precise))
                return f"{self.constant(view)}({self.element(operand)})"
            case Where(condition=condition, then=then, otherwise=otherwise):
                chosen, other = self.element(then), self.element(otherwise)
                return f"({chosen} if {self.element(condition)} else {other})"
            case Local():
                return self.values[element]
            case _:
                assert_never(element)

    def statement(self, statement: Stmt, depth: int) -> None:
        """Emit a statement; Python limits the nesting of a function, so deep ones get their own."""
        known = len(self.bound)
        full = isinstance(statement, For) and self.loops_around >= _LOOPS_PER_FUNCTION
        if full or depth >= _LEVELS_PER_FUNCTION:
            self.separately(statement, depth)
        else:
            self.nested(statement, depth)
        del self.bound[known:]

    def separately(self, statement: Stmt, depth: int) -> None:
        """Emit a function that executes a statement, and a call of it."""
        signature = f"nest{next(self.numbers)}({', '.join(dict.fromkeys(self.bound))})"
        self.emit(depth, signature)
        outer = self.lines, self.loops_around
        self.lines, self.loops_around = [f"def {signature}:"], 0
        self.nested(statement, 1)
        self.functions += self.lines
        self.lines, self.loops_around = outer

    def nested(self, statement: Stmt, depth: int) -> None:
        match statement:
            case Store(buffer=buffer, indices=indices, value=value):
                self.emit(depth, f"{self.address(buffer, indices)} = {self.element(value)}")
            case For():
                self.loop(statement, depth)
            case Seq(body=parts):
                if not parts:
                    self.emit(depth, "pass")
                for part in parts:
                    self.statement(part, depth)
            case If(condition=condition, then=then, otherwise=otherwise):
                self.emit(depth, f"if {self.term(condition)}:")
                self.statement(then, depth + 1)
                if otherwise is not None:
                    self.emit(depth, "else:")
                    self.statement(otherwise, depth + 1)
            case Let():
                self.let(statement, depth)
            case Block():
                self.block(statement, depth)
            case Alloc(buffer=buffer, body=body):
                label = self.constant((buffer.name, buffer.dtype))
                shape = "".join(f"{self.term(d)}, " for d in buffer.shape)
                self.emit(depth, f"{self.buffer(buffer)} = fresh({label}, ({shape}))")
                self.sizes(buffer, depth)
                self.statement(body, depth)
            case Bind(local=local, value=value, body=body):
                name = self.values.setdefault(local, f"t{len(self.values)}")
                self.emit(depth, f"{name} = {self.element(value)}")
                self.bound.append(name)
                self.statement(body, depth)
            case _:
                assert_never(statement)

    def loop(self, loop: For, depth: int) -> None:
        self.emit(depth, f"for {self.name(loop.var)} in range({self.term(loop.extent)}):")
        self.bound.append(self.name(loop.var))
        outer, self.uid = self.uid, loop.uid
        self.loops_around += 1
        self.statement(loop.body, depth + 1)
        self.loops_around -= 1
        self.uid = outer

    def let(self, let: Let, depth: int) -> None:
        value = f"int({self.element(let.load)})"
        low, high = self.term(let.lower), self.term(let.upper)
        name = self.name(let.var)
        if let.mode == "clamped":
            self.emit(depth, f"{name} = min(max({value}, {low}), {high} - 1)")
        else:
            access = f"{let.mode}({let.load.buffer.name}["
            site = _Site(self.func, self.uid, f"variable {let.var.name!r}", access)
            label = self.constant(site)
            self.emit(depth, f"{name} = checked({value}, {low}, {high}, {label})")
        self.bound.append(name)
        self.statement(let.body, depth)

    def block(self, block: Block, depth: int) -> None:
        outer, self.uid = self.uid, block.uid
        self._block(block, depth)
        self.uid = outer

    def _block(self, block: Block, depth: int) -> None:
        if block.predicate is not TRUE:
            self.emit(depth, f"if {self.term(block.predicate)}:")
            depth += 1
        label = self.constant(_Site(self.func, block.uid, f"block {block.name!r}", "block("))
        for v in block.iters:
            name, extent = self.name(v.var), self.term(v.extent)
            self.emit(depth, f"{name} = {self.term(v.binding)}")
            self.emit(depth, f"if not 0 <= {name} < {extent}:")
            self.emit(depth + 1, f"within({name}, {extent}, {label})")
            self.bound.append(name)
        if block.init is not None:
            first = [f"{self.name(v.var)} == 0" for v in block.iters if v.kind == "reduce"]
            self.emit(depth, f"if {' and '.join(first) or 'True'}:")
            self.statement(block.init, depth + 1)
        self.statement(block.body, depth)


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _select(condition: bool, then: int, otherwise: int) -> int:  # noqa: FBT001  # as in terms
    return then if condition else otherwise


@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """The location of an access: the loop or block around it, a name, and how its text begins."""

    func: weakref.ref[PrimFunc]
    uid: Uid | None
    name: str
    access: str

    def error(self, message: str) -> OutOfBoundsError:
        """Return an error with the line of the access."""
        func = self.func()
        line = access_line(func, self.uid, self.access) if func else None
        excerpts = (Excerpt(func.name, (line,), ()),) if func and line else ()
        return OutOfBoundsError(message, where=self._where(func), excerpts=excerpts)

    def _where(self, func: PrimFunc | None) -> str:
        """Return the names of the function and the block around the access, and its own name."""
        if func is None:
            return self.name
        around = (s for s in walk(func.body) if isinstance(s, Block) and s.uid == self.uid)
        blocks = dict.fromkeys([*(f"block {b.name!r}" for b in around), self.name])
        return ", ".join((f"function {func.name!r}", *blocks))


def _at(index: int, extent: int, site: _Site, axis: int) -> NoReturn:
    raise site.error(f"index {index} of axis {axis} is not in [0, {extent})")


def _within(value: int, extent: int, site: _Site) -> NoReturn:
    raise site.error(f"value {value} of an iteration variable is not in [0, {extent})")


def _checked(value: int, low: int, high: int, site: _Site) -> int:
    if low <= value < high:
        return value
    raise site.error(f"value {value} is not in [{low}, {high})")


@dataclass(frozen=True, slots=True)
class ExecutableLoops:
    """A function in Python.

    Parameters
    ----------
    run : callable
        Called with the random rounding or None, the arrays, and the integers.
    buffers : tuple of Buffer
        The buffers of the arrays, in order.
    symbols : tuple of Var
        The symbols of the integers, in order.
    """

    run: Callable[..., None]
    buffers: tuple[Buffer, ...]
    symbols: tuple[Var, ...]


_programs: weakref.WeakKeyDictionary[PrimFunc, dict[tuple[bool, bool], ExecutableLoops]] = (
    weakref.WeakKeyDictionary()
)


def _translate(func: PrimFunc, *, precise: bool, rounded: bool) -> ExecutableLoops:
    translator = _Translator(func, precise=precise, rounded=rounded)
    buffers = (*func.buffer_params, *func.buffers)
    symbols = tuple(symbols_of(func))
    names = [*map(translator.buffer, buffers), *map(translator.name, symbols)]
    translator.emit(0, f"def run({', '.join(['rounding', *names])}):")
    translator.bound += names
    for buffer in buffers:
        translator.sizes(buffer, 1)
    translator.statement(decomposed(func).body, 1)
    # Safe to execute: the text contains only generated names, numbers, and operators.
    exec("\n".join([*translator.functions, *translator.lines]), translator.scope)  # noqa: S102
    return ExecutableLoops(translator.scope["run"], buffers, symbols)


def program_of(func: PrimFunc, *, precise: bool, rounded: bool) -> ExecutableLoops:
    """Return the translation of a function; it is cached as long as the function exists."""
    cached, key = _programs.setdefault(func, {}), (precise, rounded)
    if key not in cached:
        cached[key] = _translate(func, precise=precise, rounded=rounded)
    return cached[key]


def symbols_of(func: PrimFunc) -> dict[Var, None]:
    """Return all symbols bound by the caller, in order of first use in the parameters."""
    found: dict[Var, None] = {}
    for param in func.params:
        dims = param.buffer.shape if isinstance(param, BufferParam) else (param.var,)
        for dim in dims:
            found.update(dict.fromkeys(sorted(free_vars(dim), key=lambda v: v.serial)))
    return found


def undefined(shape: tuple[int, ...], name: str, dtype: DType, *, precise: bool) -> Array:
    """Return an array whose elements are NaN or a byte pattern.

    Raises
    ------
    InterpreterInputError
        If the array would be too large.
    """
    problem = size_problem(map(as_expr, shape), dtype)
    if problem:
        raise InterpreterInputError(problem, where=f"buffer {name!r}")
    storage = storage_of(dtype, precise=precise)
    return np.full(shape, np.nan if dtype.is_inexact else 0x55, storage)
