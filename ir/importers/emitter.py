"""The graph emitter of the importers; it shares equal calls and omits unneeded ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ...errors import TilewrightError
from ..dtype import DType
from ..graph.builder import Argument, AttributeArgument, GraphBuilder, operand
from ..graph.nodes import Binding, ConstantRef, Operand, TensorInfo, TupleInfo, Value
from ..graph.operators import Requirement
from ..graph.visit import info_terms
from ..identity import NO_ORIGIN, Names, Origins, fresh_name
from ..loop.nodes import PrimFunc
from ..module import Array, Constant
from ..symbolic import (
    Bool,
    Expr,
    Min,
    Var,
    all_of,
    as_expr,
    const_value,
    eq,
    free_vars,
    is_proved,
    negate,
    to_text,
    var,
)
from .constants import known_elements, small_elements
from .tensors import Imported, Iota, Stacked, Uniform

_ONE = as_expr(1)


class ImportMismatchError(TilewrightError):
    """A contradiction between the source model and its own annotations."""

    title = "Inconsistent source model"


class Emitter:
    """An emitter of operators into one function that shares equal calls."""

    def __init__(self, builder: GraphBuilder) -> None:
        """Create an emitter that writes into a builder."""
        self.builder = builder
        self.origins: Origins = NO_ORIGIN
        self.constants: dict[str, Constant] = {}
        self._done: dict[tuple[object, ...], Value] = {}
        self.functions: dict[str, PrimFunc] = {}
        self.symbol_names = Names()
        self._permuted: dict[Operand, tuple[Operand, tuple[int, ...]]] = {}

    def emit(
        self, op: str, *args: Argument, name: str | None = None, **attributes: AttributeArgument
    ) -> Value:
        """Apply an operator, or return the value of an earlier equal call."""
        operands = tuple(operand(a) for a in args)
        if op == "permute_dims" and operands[0] in self._permuted:
            return self._permute_again(
                self._permuted[operands[0]], integers(attributes["axes"]), name
            )
        key = (op, tuple(map(_key, operands)), repr(sorted(attributes.items())))
        if key not in self._done:
            self._done[key] = self.builder.emit(
                op, *operands, name=name, origins=self.origins, **attributes
            )
        found = self._done[key]
        if op == "permute_dims":
            self._permuted[found] = operands[0], integers(attributes["axes"])
        return found

    @contextmanager
    def region(self) -> Generator[list[Binding]]:
        """Collect the bindings of a branch or loop, whose values are not used outside of it."""
        done, permuted = dict(self._done), dict(self._permuted)
        with self.builder.region() as bindings:
            yield bindings
        self._done, self._permuted = done, permuted

    def symbol(self, name: str, *, lower: int | None = 0) -> Var:
        """Return a new symbol of a size or an index."""
        infos = (p.info for p in self.builder.params)
        self.symbol_names.update(v.name for i in infos for t in info_terms(i) for v in free_vars(t))
        return var(self.symbol_names.fresh(name), lower=lower)

    def _permute_again(
        self, before: tuple[Operand, tuple[int, ...]], axes: tuple[int, ...], name: str | None
    ) -> Value:
        """Compose two consecutive permutations into one."""
        source, first = before
        return self.emit("permute_dims", source, name=name, axes=tuple(first[a] for a in axes))

    def add_function(self, function: PrimFunc) -> str:
        """Add a loop-level function to the module; return its name, which no other one has."""
        name = fresh_name(function.name, {"main", *self.functions})
        self.functions[name] = replace(function, name=name)
        return name

    def tensor(self, value: Value | ConstantRef) -> Imported:
        """Wrap a value of known shape."""
        info = value.info
        if not isinstance(info, TensorInfo) or info.shape is None:
            raise ImportMismatchError(f"expected a tensor of known shape, got {info}")
        return Imported(info.shape, info.dtype, value)

    def constant(
        self,
        key: str,
        sizes: tuple[int, ...],
        dtype: DType,
        load: Callable[[], Array],
        source: str = "",
    ) -> Imported:
        """Register a constant and return a reference to it; small constants are inspected."""
        shape = tuple(as_expr(d) for d in sizes)
        self.constants.setdefault(key, Constant(sizes, dtype, load, source=source))
        info = TensorInfo(shape, dtype, elements=small_elements(sizes, dtype, load))
        known = known_elements(sizes, dtype, load)
        return Imported(shape, dtype, self.builder.constant(key, info), known)

    def apply(
        self, op: str, *args: Argument, name: str | None = None, **attributes: AttributeArgument
    ) -> Imported:
        """Apply an operator and wrap its result."""
        return self.tensor(self.emit(op, *args, name=name, **attributes))

    def items(self, value: Value) -> list[Imported]:
        """Return the fields of a tuple."""
        count = len(value.info.fields) if isinstance(value.info, TupleInfo) else 0
        return [self.tensor(self.builder.item(value, k)) for k in range(count)]

    def compact(self, x: Imported) -> Value | ConstantRef:
        """Return a tensor that broadcasts to the shape of the value."""
        if x.operand is not None:
            return x.operand
        match x.known:
            case Uniform(value=value):
                return self.emit("full", (1,) * x.rank, value, dtype=x.dtype.name)
            case Iota(axis=axis, start=start):
                return self._counted(x, axis, start)
            case Stacked(parts=parts):
                return self._stacked(parts)
            case None:
                raise ImportMismatchError("a value of the source model has unknown elements")

    def _counted(self, x: Imported, axis: int, start: Expr) -> Value:
        found = self.emit("arange", (start, start + x.shape[axis], 1), dtype=x.dtype.name)
        others = tuple(k for k in range(x.rank) if k != axis)
        return self.emit("expand_dims", found, axes=others) if others else found

    def _stacked(self, parts: Sequence[Imported]) -> Value:
        shape = self.broadcast_shapes([p.shape for p in parts])
        columns = [Imported((*shape, _ONE), p.dtype, self._column(p)) for p in parts]
        return self.emit("concat", *(self.plain(c) for c in columns), axis=len(shape))

    def _column(self, x: Imported) -> Value:
        return self.emit("expand_dims", self.compact(x), axes=(x.rank,))

    def plain(self, x: Imported) -> Value | ConstantRef:
        """Return a tensor that has exactly the shape of the value."""
        if x.operand is None and isinstance(x.known, Uniform):
            return self.emit("full", x.shape, x.known.value, dtype=x.dtype.name)
        found = self.compact(x)
        have = found.info.shape if isinstance(found.info, TensorInfo) else None
        if have == x.shape:
            return found
        return self.emit("broadcast_to", found, x.shape)

    def factor(self, x: Imported) -> Operand | float | int | bool:
        """Return an operand of an element-wise operator: a number if all elements are equal."""
        if isinstance(x.known, Uniform):
            return x.known.value
        return self.compact(x)

    def elements(self, x: Imported) -> tuple[Expr, ...] | None:
        """Return the symbolic values of a small integer tensor, or None if they are unknown."""
        found = self.plain(x)
        return found.info.elements if isinstance(found.info, TensorInfo) else None

    def same_size(self, left: Expr, right: Expr, reason: str) -> Expr:
        """Require that two sizes are equal, by proof or with a run-time check."""
        predicate = equal_sizes(left, right)
        if left is right or is_proved(predicate, self.builder.facts):
            return right if isinstance(left, Min) else left
        a, b = to_text(left), to_text(right)
        if is_proved(negate(predicate), self.builder.facts):
            where = ", ".join(sorted(self.origins))
            raise ImportMismatchError(f"{reason}: {a} != {b}", where=where)
        origin = f"{reason} unless {a} == {b}"
        self.builder.check(Requirement(predicate, origin), self.origins)
        return right if isinstance(left, Min) else left

    def broadcast_shapes(self, shapes: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
        """Return the common shape of right-aligned shapes; sizes other than 1 must be equal."""
        rank = max((len(s) for s in shapes), default=0)
        result = [_ONE] * rank
        for shape in shapes:
            for k, dim in enumerate(shape, start=rank - len(shape)):
                if const_value(result[k]) == 1:
                    result[k] = dim
                elif const_value(dim) != 1:
                    result[k] = self.same_size(result[k], dim, "cannot broadcast dimensions")
        return tuple(result)

    def uniform(self, value: float, shape: Sequence[Expr], dtype: DType) -> Imported:
        """Return a tensor filled with one number, which is materialized on demand.

        A number that is not a value of an integer dtype is converted as by ``cast``: integers wrap,
        and floating-point numbers saturate.
        """
        if dtype.is_integer:
            return Imported(tuple(shape), dtype, known=Uniform(_wrapped(value, dtype)))
        kind = bool if dtype.kind == "bool" else float
        return Imported(tuple(shape), dtype, known=Uniform(kind(value)))


def _wrapped(value: float, dtype: DType) -> int:
    """Return a number as a value of an integer dtype."""
    if isinstance(value, int):
        return (value - dtype.lowest) % (1 << dtype.bits) + dtype.lowest
    if math.isnan(value):
        return 0
    return int(max(dtype.lowest, min(value, dtype.highest)))


def equal_sizes(left: Expr, right: Expr) -> Bool:
    """Return the claim that two sizes are equal; ``min(a, b) == a`` becomes ``a <= b``."""
    for least, size in ((left, right), (right, left)):
        if isinstance(least, Min) and size in least.args:
            return all_of(*(size <= other for other in least.args))
    return eq(left, right)


def integers(value: AttributeArgument) -> tuple[int, ...]:
    """Return the integers of an attribute."""
    items = value if isinstance(value, Sequence) else ()
    return tuple(v for v in items if isinstance(v, int))


def _key(value: Operand) -> object:
    match value:
        case Value():
            return value
        case _:
            return repr(value)
