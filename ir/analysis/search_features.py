"""Features of the stores of a kernel for cost models, from loop IR and given sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log2, prod
from typing import Final, TypeAlias

from ...errors import TilewrightError
from ..loop.nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Buffer,
    Cast,
    Compare,
    Element,
    For,
    If,
    Let,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Ternary,
    Unary,
    Where,
)
from ..loop.visit import walk_element
from ..sizes import storage_bytes
from ..symbolic import Expr, Var, evaluate, linear_form

FLOPS: Final[tuple[str, ...]] = ("add", "multiply", "divide", "special", "select", "integer")
"""Kinds of operations: the first four of floats; ``special`` are functions such as ``exp``."""

KINDS: Final[tuple[str, ...]] = (
    "serial",
    "parallel",
    "vectorized",
    "unrolled",
    "block",
    "thread",
    "virtual",
)
"""Kinds of loops: by kind, and thread-bound loops by the kind of their axis."""

DEPTHS: Final = 8
"""The number of loops, from the innermost one on, whose footprints are in the vector."""

BUFFERS: Final = 4
"""The number of buffers in the vector, those with the most accessed bytes."""

_PER_BUFFER: Final = ("reads", "writes", "bytes", "unique_bytes", "reuse", "stride")
_OPERATIONS: Final = {"add": "add", "sub": "add", "mul": "multiply", "div": "divide"}
_AXES: Final = {"blockIdx": "block", "threadIdx": "thread", "vthread": "virtual"}

NAMES: Final[tuple[str, ...]] = (
    "iterations",
    *(f"flops_{kind}" for kind in FLOPS),
    *(f"loops_{kind}" for kind in KINDS),
    "intensity",
    *(f"intensity_{depth}" for depth in range(DEPTHS)),
    *(f"buffer_{k}_{name}" for k in range(BUFFERS) for name in _PER_BUFFER),
    *(f"buffer_{k}_bytes_{depth}" for k in range(BUFFERS) for depth in range(DEPTHS)),
)
"""The names of the entries of a vector, in order."""


class MissingSizeError(TilewrightError):
    """A symbol of a kernel without a given size."""

    title = "Missing size"


@dataclass(frozen=True, slots=True)
class BufferFeatures:
    """The accesses of a store to one buffer.

    Parameters
    ----------
    name : str
        The name of the buffer.
    reads, writes : int
        The number of loads and stores of one iteration.
    bytes : int
        The bytes of all accesses of all iterations.
    unique_bytes : int
        The bytes of the accessed elements, each counted once.
    stride : int
        The distance in elements between iterations of the innermost loop; 0 if it does not change
        the address.
    by_depth : tuple of int
        The unique bytes of one iteration of each loop, innermost first: the elements of the loops
        inside it, and at the end of the whole nest.
    """

    name: str
    reads: int
    writes: int
    bytes: int
    unique_bytes: int
    stride: int
    by_depth: tuple[int, ...]

    @property
    def reuse(self) -> float:
        """The number of accesses of each element, on average."""
        return self.bytes / self.unique_bytes if self.unique_bytes else 0.0


@dataclass(frozen=True, slots=True)
class StoreFeatures:
    """The features of one store.

    Parameters
    ----------
    block : str
        The name of the block.
    iterations : int
        The number of executions.
    flops : Mapping[str, int]
        The operations of all iterations by kind, for each of :data:`FLOPS`.
    loops : Mapping[str, int]
        The product of the extents of the loops of each of :data:`KINDS`; 1 without any.
    buffers : tuple of BufferFeatures
        The accessed buffers, those with the most accessed bytes first.
    intensities : tuple of float
        Operations per unique byte of one iteration of each loop, innermost first, and at the end of
        the whole nest.
    """

    block: str
    iterations: int
    flops: Mapping[str, int]
    loops: Mapping[str, int]
    buffers: tuple[BufferFeatures, ...]
    intensities: tuple[float, ...]

    @property
    def intensity(self) -> float:
        """The operations per unique byte of the whole nest."""
        return self.intensities[-1]

    def vector(self) -> tuple[float, ...]:
        """Return the features in the order of :data:`NAMES`, each as ``log2(1 + value)``.

        A kernel with fewer loops repeats the value of the whole nest, one with fewer buffers has
        zeros. The names, and so the positions, do not depend on the kernel.
        """
        values: list[float] = [self.iterations, *self.flops.values(), *self.loops.values()]
        values += [self.intensity, *_filled(self.intensities)]
        shown = self.buffers[:BUFFERS]
        rest = BUFFERS - len(shown)
        for b in shown:
            values += [b.reads, b.writes, b.bytes, b.unique_bytes, b.reuse, abs(b.stride)]
        values += [0.0] * (rest * len(_PER_BUFFER))
        for b in shown:
            values += _filled(b.by_depth)
        values += [0.0] * (rest * DEPTHS)
        return tuple(log2(1 + value) for value in values)


def search_features(function: PrimFunc, sizes: Mapping[str, int]) -> tuple[StoreFeatures, ...]:
    """Return the features of each store of a kernel, in program order, without lowering it.

    Footprints are exact for indices that are linear in the loops and whose loops enumerate
    different elements; otherwise they are upper bounds. The extent of a loop that depends on outer
    loops is that of their middle iteration, and an integer read from memory counts as the middle of
    its range. Guards are ignored: a masked iteration counts.

    Parameters
    ----------
    function : PrimFunc
        A loop-level function, with or without a schedule.
    sizes : Mapping[str, int]
        The sizes of its symbols.

    Raises
    ------
    MissingSizeError
        If a symbol has no size.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... n = symbols("n", lower=1)
    ... @prim_func
    ... def f(x: Buffer[(n, 8), f32], w: Buffer[(8,), f32], y: Out[(n, 8), f32]):
    ...     for i in range(n):
    ...         for j in range(8):
    ...             y[i, j] = x[i, j] * w[j]
    ... ''')
    >>> (store,) = search_features(module.prims[0], {"n": 4})
    >>> store.iterations, store.flops["multiply"]
    (32, 32)
    >>> [(b.name, b.unique_bytes, b.reuse, b.stride) for b in store.buffers]
    [('y', 128, 1.0, 1), ('x', 128, 1.0, 1), ('w', 32, 4.0, 1)]
    >>> len(store.vector()) == len(NAMES)
    True
    """
    return tuple(_Visit(function, sizes).statement(function.body, ()))


_Form: TypeAlias = "tuple[dict[Var, int], frozenset[Var]]"
"""The coefficients of a term by loop, and the loops that it depends on in another form."""


def _filled(values: tuple[float, ...]) -> list[float]:
    """Return the values of the innermost loops; the last one is repeated."""
    return [values[min(depth, len(values) - 1)] for depth in range(DEPTHS)]


class _Visit:
    """A visit of a function with the extents and the coefficients of its variables."""

    def __init__(self, function: PrimFunc, sizes: Mapping[str, int]) -> None:
        self._function = function.name
        self._sizes = sizes
        self._values: dict[Var, int] = {}
        self._extents: dict[Var, int] = {}
        self._forms: dict[Var, _Form] = {}
        self._block = ""
        self._bound: list[Element] = []

    def statement(self, statement: Stmt, loops: tuple[For, ...]) -> Iterator[StoreFeatures]:
        match statement:
            case For(var=variable):
                extent = max(self._value(statement.extent), 0)
                self._extents[variable] = extent
                self._values[variable] = max(extent - 1, 0) // 2
                self._forms[variable] = ({variable: 1}, frozenset())
                yield from self.statement(statement.body, (*loops, statement))
            case Block():
                yield from self._inside(statement, loops)
            case Seq(body=parts):
                for part in parts:
                    yield from self.statement(part, loops)
            case If(then=then, otherwise=otherwise):
                yield from self.statement(then, loops)
                if otherwise is not None:
                    yield from self.statement(otherwise, loops)
            case Let(var=variable):
                middle = (self._value(statement.lower) + self._value(statement.upper)) // 2
                self._values[variable] = middle
                around = frozenset(x.var for x in loops)
                self._forms[variable] = ({}, around)
                yield from self.statement(statement.body, loops)
            case Alloc(body=body):
                yield from self.statement(body, loops)
            case Bind():
                self._bound.append(statement.value)
                yield from self.statement(statement.body, loops)
            case Store():
                yield self._features(statement, loops)

    def _inside(self, block: Block, loops: tuple[For, ...]) -> Iterator[StoreFeatures]:
        outer, self._block = self._block, block.name
        for item in block.iters:
            self._forms[item.var] = self._form(item.binding)
            self._values[item.var] = self._value(item.binding)
        if block.init is not None:
            reducing = {
                v for item in block.iters if item.kind == "reduce" for v in self._involved(item.var)
            }
            yield from self.statement(block.init, tuple(x for x in loops if x.var not in reducing))
        yield from self.statement(block.body, loops)
        self._block = outer

    def _involved(self, variable: Var) -> frozenset[Var]:
        linear, others = self._forms[variable]
        return others | linear.keys()

    def _value(self, term: Expr) -> int:
        for variable in term.free:
            if variable not in self._values:
                if variable.name not in self._sizes:
                    raise MissingSizeError(
                        f"symbol {variable.name!r} has no size",
                        where=f"function {self._function!r}",
                        hint=f"pass sizes={{{variable.name!r}: ...}}",
                    )
                self._values[variable] = self._sizes[variable.name]
        return evaluate(term, self._values)

    def _form(self, term: Expr) -> _Form:
        if isinstance(term, Var):
            return self._forms.get(term, ({}, frozenset()))
        variables = [v for v in term.free if v in self._forms]
        found = linear_form(term, variables) if variables else None
        if found is None:
            return {}, frozenset[Var]().union(*map(self._involved, variables))
        linear: dict[Var, int] = {}
        others: frozenset[Var] = frozenset()
        for variable, coefficient in found.coefficients.items():
            factor = self._value(coefficient)
            inner, rest = self._forms[variable]
            others |= rest
            for loop, own in inner.items():
                linear[loop] = linear.get(loop, 0) + factor * own
        return linear, others

    def _features(self, store: Store, loops: tuple[For, ...]) -> StoreFeatures:
        extents = [self._extents[x.var] for x in loops]
        iterations = prod(extents)
        parts = [part for value in (store.value, *self._bound) for part in walk_element(value)]
        self._bound = []  # a bound value counts for the first store that may use it
        counted = _operations(parts)
        found = self._buffers(store, parts, loops)
        buffers = sorted(found, key=lambda b: b.bytes, reverse=True)
        each = sum(counted.values())
        inside = [prod(extents[k:]) for k in range(len(extents), -1, -1)]
        moved = [sum(b.by_depth[d] for b in buffers) for d in range(len(inside))]
        kinds: dict[str, int] = dict.fromkeys(KINDS, 1)
        for loop, extent in zip(loops, extents, strict=True):
            axis = loop.thread.partition(".")[0] if loop.thread else loop.kind
            kinds[_AXES.get(axis, axis)] *= extent
        return StoreFeatures(
            self._block,
            iterations,
            {kind: count * iterations for kind, count in counted.items()},
            kinds,
            tuple(buffers),
            tuple(each * n / m if m else 0.0 for n, m in zip(inside, moved, strict=True)),
        )

    def _buffers(
        self, store: Store, parts: list[Element], loops: tuple[For, ...]
    ) -> Iterator[BufferFeatures]:
        accesses: dict[Buffer, list[tuple[tuple[Expr, ...], bool]]] = {
            store.buffer: [(store.indices, True)]
        }
        for part in parts:
            if isinstance(part, Load):
                accesses.setdefault(part.buffer, []).append((part.indices, False))
        iterations = prod(self._extents[x.var] for x in loops)
        for buffer, found in accesses.items():
            shape = [max(self._value(d), 0) for d in buffer.shape]
            forms = [[self._form(i) for i in indices] for indices, _ in found]
            distinct = list({_key(form): form for form in forms}.values())
            depths = range(len(loops), -1, -1)
            by_depth = tuple(
                storage_bytes(
                    min(sum(self._count(f, shape, loops[d:]) for f in distinct), prod(shape)),
                    buffer.dtype,
                )
                for d in depths
            )
            writes = sum(write for _, write in found)
            yield BufferFeatures(
                buffer.name,
                len(found) - writes,
                writes,
                storage_bytes(iterations * len(found), buffer.dtype),
                by_depth[-1] if iterations else 0,
                self._stride(forms[0], shape, loops),
                by_depth,
            )

    def _count(self, forms: list[_Form], shape: list[int], loops: tuple[For, ...]) -> int:
        """Return the number of elements that an access reaches in some loops."""
        count = 1
        for (linear, others), size in zip(forms, shape, strict=True):
            reach, several = 1, 1
            for loop in loops:
                extent = self._extents[loop.var]
                if loop.var in others:
                    reach, several = size, several * extent
                elif loop.var in linear:
                    reach += abs(linear[loop.var]) * (extent - 1)
                    several *= extent
            count *= max(min(reach, several, size), 0)
        return count

    @staticmethod
    def _stride(forms: list[_Form], shape: list[int], loops: tuple[For, ...]) -> int:
        if not loops:
            return 0
        variable, stride, step = loops[-1].var, 0, 1
        for (linear, _), size in zip(reversed(forms), reversed(shape), strict=True):
            stride += linear.get(variable, 0) * step
            step *= size
        return stride


def _key(forms: list[_Form]) -> tuple[object, ...]:
    return tuple((tuple(sorted((v.serial, c) for v, c in f.items())), rest) for f, rest in forms)


def _operations(parts: list[Element]) -> dict[str, int]:
    """Return the number of operations among elements by kind."""
    found: dict[str, int] = dict.fromkeys(FLOPS, 0)
    for part in parts:
        match part:
            case Compare() | Where() | Cast():
                found["select"] += 1
            case Binary() | Unary() | Ternary() if not part.dtype.is_float:
                found["integer"] += 1
            case Binary(op=op):
                found[_OPERATIONS.get(op, "special")] += 1
            case Unary(op="neg" | "abs"):
                found["add"] += 1
            case Ternary(op="fma"):
                found["add"] += 1
                found["multiply"] += 1
            case Unary() | Ternary():
                found["special"] += 1
            case _:
                pass
    return found
