"""Interpreter of loop-level functions on NumPy arrays.

A function is translated statement by statement into Python loops over NumPy scalars, without
vectorization or reordering. Every index is checked against its buffer, and every iteration
variable against its domain. Temporaries are filled with NaN or a byte pattern, so that a read of
uninitialized memory changes the result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import numpy as np
from numpy.typing import NDArray

from ...errors import Excerpt, TilewrightError
from ..analysis.widths import magnitude, wide_terms
from ..dtype import DType
from ..identity import Uid
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
from ..sizes import SIZE_LIMIT, size_problem
from ..symbolic import (
    TRUE,
    Bool,
    Expr,
    Fact,
    Var,
    as_expr,
    const_value,
    evaluate,
    free_vars,
    to_text,
)
from .elements import COMPARE, OutOfBoundsError, cast_to, computed, reinterpreted
from .rounding import Rounding, amplitude, not_exact

Array = NDArray[Any]


class InterpreterInputError(TilewrightError):
    """Arguments of the interpreter that do not match the parameters of the function."""

    title = "Invalid interpreter input"


def _storage(dtype: DType, *, precise: bool) -> np.dtype[np.generic]:
    return (dtype.wide if precise else dtype).numpy


_LOOPS_PER_FUNCTION: Final = 16
"""The number of nested loops in one Python function; CPython permits 20 nested statements."""


class _Translator:
    """A translator of one function to Python; the text contains only generated names."""

    def __init__(self, func: PrimFunc, *, precise: bool, rounded: bool = False) -> None:
        # A program in the cache of translations must not keep its function alive.
        self.func = weakref.ref(func)
        self.uid: Uid | None = None
        self.precise = precise
        self.rounded = rounded
        self.lines: list[str] = []
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
        return _undefined(tuple(max(n, 0) for n in shape), name, dtype, precise=self.precise)

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
            f"at({self.term(i)}, {name}.shape[{k}], {label}, {k})" for k, i in enumerate(indices)
        )
        return f"{name}[{inner}]" if indices else f"{name}[()]"

    def perturbed(self, text: str, dtype: DType, units: int) -> str:
        """Return the text that rounds a value randomly by a number of units of its dtype."""
        if not (self.rounded and units and dtype.is_inexact):
            return text
        return f"rounding({text}, {amplitude(dtype, units)!r})"

    def function(self, op: str, dtype: DType) -> str:
        """Return the name of the reference of an element function for a dtype."""
        found = element_function(op).reference
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
                storage = _storage(dtype, precise=self.precise)
                return self.constant(np.asarray(value).astype(storage)[()])
            case Index(value=value, dtype=dtype):
                cast = self.constant(cast_to(dtype, _storage(dtype, precise=self.precise)))
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
                cast = self.constant(cast_to(dtype, _storage(dtype, precise=self.precise)))
                return f"{cast}({self.element(operand)})"
            case Reinterpret(dtype=dtype, operand=operand):
                view = reinterpreted(operand.dtype, dtype, _storage(dtype, precise=self.precise))
                return f"{self.constant(view)}({self.element(operand)})"
            case Where(condition=condition, then=then, otherwise=otherwise):
                chosen, other = self.element(then), self.element(otherwise)
                return f"({chosen} if {self.element(condition)} else {other})"
            case Local():
                return self.values[element]
            case _:
                assert_never(element)

    def statement(self, statement: Stmt, depth: int) -> None:
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
                self.statement(body, depth)
            case Bind(local=local, value=value, body=body):
                name = self.values.setdefault(local, f"t{len(self.values)}")
                self.emit(depth, f"{name} = {self.element(value)}")
                self.statement(body, depth)
            case _:
                assert_never(statement)

    def loop(self, loop: For, depth: int) -> None:
        """Emit a loop; Python limits the loops of one function, so deep nests get functions."""
        around = self.loops_around
        if around and around % _LOOPS_PER_FUNCTION == 0:
            name = f"nest{len(self.lines)}"
            self.emit(depth, f"def {name}():")
            self._loop(loop, depth + 1)
            self.emit(depth, f"{name}()")
        else:
            self._loop(loop, depth)

    def _loop(self, loop: For, depth: int) -> None:
        self.emit(depth, f"for {self.name(loop.var)} in range({self.term(loop.extent)}):")
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
            value = f"within({self.term(v.binding)}, {self.term(v.extent)}, {label})"
            self.emit(depth, f"{self.name(v.var)} = {value}")
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


def _at(index: int, extent: int, site: _Site, axis: int) -> int:
    if 0 <= index < extent:
        return index
    raise site.error(f"index {index} of axis {axis} is not in [0, {extent})")


def _within(value: int, extent: int, site: _Site) -> int:
    if 0 <= value < extent:
        return value
    raise site.error(f"value {value} of an iteration variable is not in [0, {extent})")


def _checked(value: int, low: int, high: int, site: _Site) -> int:
    if low <= value < high:
        return value
    raise site.error(f"value {value} is not in [{low}, {high})")


@dataclass(frozen=True, slots=True)
class _ExecutableLoops:
    run: Callable[..., None]
    buffers: tuple[Buffer, ...]
    symbols: tuple[Var, ...]


_programs: weakref.WeakKeyDictionary[PrimFunc, dict[tuple[bool, bool], _ExecutableLoops]] = (
    weakref.WeakKeyDictionary()
)


def _translate(func: PrimFunc, *, precise: bool, rounded: bool) -> _ExecutableLoops:
    translator = _Translator(func, precise=precise, rounded=rounded)
    buffers = (*func.buffer_params, *func.buffers)
    symbols = tuple(_symbols(func))
    names = [*map(translator.buffer, buffers), *map(translator.name, symbols)]
    translator.emit(0, f"def run({', '.join(['rounding', *names])}):")
    translator.statement(decomposed(func).body, 1)
    # Safe to execute: the text contains only generated names, numbers, and operators.
    exec("\n".join(translator.lines), translator.scope)  # noqa: S102
    return _ExecutableLoops(translator.scope["run"], buffers, symbols)


def _program(func: PrimFunc, *, precise: bool, rounded: bool) -> _ExecutableLoops:
    cached, key = _programs.setdefault(func, {}), (precise, rounded)
    if key not in cached:
        cached[key] = _translate(func, precise=precise, rounded=rounded)
    return cached[key]


def _symbols(func: PrimFunc) -> dict[Var, None]:
    """Return all symbols bound by the caller, in order of first use in the parameters."""
    found: dict[Var, None] = {}
    for param in func.params:
        dims = param.buffer.shape if isinstance(param, BufferParam) else (param.var,)
        for dim in dims:
            found.update(dict.fromkeys(sorted(free_vars(dim), key=lambda v: v.serial)))
    return found


def bind_symbols(
    func: PrimFunc, shapes: Mapping[Buffer, tuple[int, ...]], scalars: Mapping[str, int]
) -> dict[Var, int]:
    """Return the values of the function's symbols, bound by array shapes and integer arguments.

    Raises
    ------
    InterpreterInputError
        If a rank, dimension, or fact is violated, or a symbol remains unbound.
    """
    env: dict[Var, int] = {v: scalars[v.name] for v in func.scalar_params if v.name in scalars}
    for buffer, shape in shapes.items():
        _check_rank(func, buffer, shape)
        for dim, size in zip(buffer.shape, shape, strict=True):
            if isinstance(dim, Var):
                env.setdefault(dim, size)
    env |= {v: scalars[v.name] for v in _symbols(func) if v not in env and v.name in scalars}
    missing = [v.name for v in _symbols(func) if v not in env]
    if missing:
        raise InterpreterInputError(
            f"no array shape or integer argument determines {', '.join(missing)}",
            where=f"function {func.name!r}",
            hint="pass the missing values in `scalars`",
        )
    for symbol, value in env.items():
        problem = bound_problem(symbol, value)
        if problem:
            raise InterpreterInputError(problem, where=f"function {func.name!r}")
    _check_dims(func, shapes, env)
    return env


def bound_problem(symbol: Var, value: int) -> str:
    """Describe which declared bound of a symbol a value violates; empty if it violates none.

    Examples
    --------
    >>> from ..symbolic import var
    >>> bound_problem(var("n", lower=0, upper=8), 9)
    'n <= 8 is false for n = 9'
    """
    name, wrong = symbol.name, ""
    if symbol.lower is not None and value < symbol.lower:
        wrong = f"{name} >= {symbol.lower}"
    elif symbol.upper is not None and value > symbol.upper:
        wrong = f"{name} <= {symbol.upper}"
    elif value % symbol.multiple_of:
        wrong = f"{name} % {symbol.multiple_of} == 0"
    return wrong and f"{wrong} is false for {name} = {value}"


def _bound(fact: Fact, env: Mapping[Var, int]) -> str:
    """Return the values of the symbols of a fact as text."""
    symbols = sorted(fact.predicate.free, key=lambda v: v.serial)
    return ", ".join(f"{v.name} = {env[v]}" for v in symbols)


def _check_rank(func: PrimFunc, buffer: Buffer, shape: tuple[int, ...]) -> None:
    if len(shape) != buffer.rank:
        raise InterpreterInputError(
            f"expected rank {buffer.rank}, got rank {len(shape)}",
            where=f"function {func.name!r}, parameter {buffer.name!r}",
        )


def _check_dims(
    func: PrimFunc, shapes: Mapping[Buffer, tuple[int, ...]], env: Mapping[Var, int]
) -> None:
    for buffer, shape in shapes.items():
        for axis, (dim, size) in enumerate(zip(buffer.shape, shape, strict=True)):
            expected = evaluate(dim, env)
            if expected != size:
                wanted = (
                    f"{expected}"
                    if const_value(dim) is not None
                    else f"{to_text(dim)} = {expected}"
                )
                raise InterpreterInputError(
                    f"dimension {axis}: expected {wanted}, got {size}",
                    where=f"function {func.name!r}, parameter {buffer.name!r}",
                )
    for fact in func.facts:
        if not evaluate(fact.predicate, env):
            raise InterpreterInputError(
                f"fact {to_text(fact.predicate)} does not hold for {_bound(fact, env)}",
                where=f"function {func.name!r}",
            )
    for term in wide_terms(func):
        if magnitude(term, env) >= SIZE_LIMIT:
            raise InterpreterInputError(
                f"the integer term {to_text(term)} reaches the limit of 2**60",
                where=f"function {func.name!r}",
            )


def _garbage(buffer: Buffer, env: Mapping[Var, int], *, precise: bool) -> Array:
    shape = tuple(max(int(evaluate(d, env)), 0) for d in buffer.shape)
    return _undefined(shape, buffer.name, buffer.dtype, precise=precise)


def _undefined(shape: tuple[int, ...], name: str, dtype: DType, *, precise: bool) -> Array:
    problem = size_problem(map(as_expr, shape), dtype)
    if problem:
        raise InterpreterInputError(problem, where=f"buffer {name!r}")
    storage = _storage(dtype, precise=precise)
    return np.full(shape, np.nan if dtype.is_inexact else 0x55, storage)


def _run(
    func: PrimFunc,
    arrays: Mapping[Buffer, Array],
    env: Mapping[Var, int],
    *,
    precise: bool,
    rounding: Rounding | None,
) -> None:
    program = _program(func, precise=precise, rounded=rounding is not None)
    temporaries = {b: _garbage(b, env, precise=precise) for b in func.buffers}
    everything = {**arrays, **temporaries}
    with np.errstate(all="ignore"):
        program.run(
            None if rounding is None else rounding.scalar,
            *(everything[b] for b in program.buffers),
            *(env[s] for s in program.symbols),
        )


def run_prim(
    func: PrimFunc,
    arrays: Sequence[Array],
    scalars: Mapping[str, int] | None = None,
    *,
    precise: bool = False,
    rounding: Rounding | None = None,
) -> None:
    """Run a loop-level function in place.

    Parameters
    ----------
    func : PrimFunc
        The function.
    arrays : sequence of arrays
        One array per buffer parameter, in order; outputs are written in place.
    scalars : mapping of str to int, optional
        The values of the integer parameters, by name.
    precise : bool
        Compute all floats in float64; float arrays must have dtype float64.
    rounding : Rounding, optional
        Round every operation on floats randomly, to estimate the effect of rounding.

    Raises
    ------
    InterpreterInputError
        If the arrays or integers do not match the parameters.
    OutOfBoundsError
        If an access is outside of its buffer, or an iteration variable outside of its domain.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> from ..loop.nodes import Binary
    >>> from ..symbolic import var
    >>> b, n = Builder("double"), var("n", lower=0)
    >>> x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    >>> b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(x, i)))
    >>> out = np.empty(3, np.float32)
    >>> run_prim(b.finish(), [np.arange(3, dtype=np.float32), out])
    >>> out
    array([0., 2., 4.], dtype=float32)
    """
    buffers = func.buffer_params
    if len(arrays) != len(buffers):
        raise InterpreterInputError(
            f"number of arrays: expected {len(buffers)}, got {len(arrays)}",
            where=f"function {func.name!r}",
        )
    for buffer, array in zip(buffers, arrays, strict=True):
        storage = _storage(buffer.dtype, precise=precise)
        if array.dtype != storage:
            raise InterpreterInputError(
                f"expected dtype {storage}, got {array.dtype}",
                where=f"function {func.name!r}, parameter {buffer.name!r}",
            )
    bound = dict(zip(buffers, arrays, strict=True))
    env = bind_symbols(func, {b: a.shape for b, a in bound.items()}, scalars or {})
    _run(func, bound, env, precise=precise, rounding=rounding)


def call_prim(
    func: PrimFunc,
    inputs: Sequence[Array],
    scalars: Mapping[str, int] | None = None,
    *,
    precise: bool = False,
    rounding: Rounding | None = None,
) -> tuple[Array, ...]:
    """Run a loop-level function on its inputs and return the arrays it writes.

    ``inputs`` are the arrays of the in, inout, and state parameters in order; they are not
    modified. The result contains the out, inout, and state arrays in the order of the parameters.
    The other parameters are those of `run_prim`.
    """
    params = [p for p in func.params if isinstance(p, BufferParam)]
    given = [p.buffer for p in params if p.access != "out"]
    if len(inputs) != len(given):
        raise InterpreterInputError(
            f"number of arrays: expected {len(given)}, got {len(inputs)}",
            where=f"function {func.name!r}",
        )
    arrays: dict[Buffer, Array] = {
        b: np.array(a, _storage(b.dtype, precise=precise), copy=True)
        for b, a in zip(given, inputs, strict=True)
    }
    env = bind_symbols(func, {b: a.shape for b, a in arrays.items()}, scalars or {})
    for param in params:
        if param.access == "out":
            arrays[param.buffer] = _garbage(param.buffer, env, precise=precise)
    _run(func, arrays, env, precise=precise, rounding=rounding)
    return tuple(arrays[p.buffer] for p in params if p.access != "in")
