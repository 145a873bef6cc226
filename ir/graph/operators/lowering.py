"""Lowering of operator calls to loop-level functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...dtype import DType, i64
from ...loop.builder import Builder
from ...loop.nodes import Binary, Buffer, Cast, Element, Index, Load, Number, PrimFunc
from ...symbolic import (
    Discharge,
    Expr,
    Facts,
    SymInt,
    Var,
    as_expr,
    const_value,
    free_vars,
    product,
)
from ..nodes import Binding, Dims, Info, Operand, ScalarLiteral, TensorInfo, TupleInfo
from .errors import OperandError
from .shape_inference import CallFacts
from .signature import kind_of

_ZERO = as_expr(0)


@dataclass(frozen=True, slots=True)
class LoweredOperator:
    """A loop-level function and the operands of its ``CallTIR``."""

    function: PrimFunc
    args: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]
    scalars: tuple[Expr, ...] = ()
    updates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """Bindings of operators and library calls that compute the fields of the result.

    ``facts`` are those of the caller and of the ``match_cast`` among the bindings.
    """

    bindings: tuple[Binding, ...]
    results: tuple[Operand, ...]
    facts: Facts


@dataclass(frozen=True, slots=True)
class Source:
    """An operand that elements are loaded from: a buffer or a number literal."""

    shape: tuple[Expr, ...]
    dtype: DType
    read: Callable[[tuple[Expr, ...]], Element]

    @property
    def rank(self) -> int:
        """The number of dimensions; 0 for a number."""
        return len(self.shape)

    def __call__(self, *indices: SymInt) -> Element:
        """Return one element."""
        return self.read(tuple(as_expr(i) for i in indices))

    def broadcast(self, indices: Sequence[Expr]) -> Element:
        """Return the element at ``indices`` of the operand broadcast to the result."""
        own = indices[len(indices) - self.rank :]
        return self.read(
            tuple(_ZERO if const_value(d) == 1 else i for d, i in zip(self.shape, own, strict=True))
        )


def literal_number(literal: ScalarLiteral, dtype: DType) -> Number:
    """Convert a literal to an element of a dtype.

    Examples
    --------
    >>> from ...dtype import f32
    >>> literal_number(ScalarLiteral(2, i64), f32).value
    2.0
    """
    if dtype.is_inexact:
        return Number(float(literal.value), dtype)
    if dtype.kind == "bool":
        return Number(bool(literal.value), dtype)
    return Number(int(literal.value), dtype)


def accumulator(dtype: DType) -> DType:
    """Return the accumulator dtype of sums: f32 for narrower floats, else the same dtype."""
    return dtype.compute if dtype.is_float else dtype


def cast_to(dtype: DType, element: Element) -> Element:
    """Return an element converted to a dtype; unchanged if it has this dtype."""
    return element if element.dtype == dtype else Cast(dtype, element)


def extent_as(dtype: DType, extents: Iterable[Expr]) -> Element:
    """Return the product of extents as an element, for example the divisor of a mean."""
    size = product(extents)
    value = const_value(size)
    return (
        Cast(dtype, Index(size, i64))
        if value is None
        else literal_number(ScalarLiteral(value, i64), dtype)
    )


def divided(left: Element, right: Element) -> Element:
    """Return the quotient of two elements."""
    return Binary("div", left, right)


class Lowering:
    """The loop-level function of one call, under construction.

    Tensor operands become ``in`` parameters with the names of the signature, results become ``out``
    parameters, and numbers become literals. Symbols that are not by themselves a dimension of a
    parameter become integer parameters. If the call is ``in_place``, its first operand is an
    ``inout`` parameter, which is also the result.
    """

    def __init__(self, name: str, call: CallFacts, info: Info, *, in_place: bool = False) -> None:
        """Create the parameters."""
        self.call = call
        self.attributes = call.attributes
        self.in_place = in_place
        self.outputs = _outputs(info)
        self._symbols = _symbols(call.args, self.outputs)
        self.builder = Builder(
            name,
            facts=callee_facts(call.facts, self._symbols),
            reserved=(symbol.name for symbol in self._symbols),
        )
        self._changed: tuple[Buffer, ...] = ()
        self.sources = tuple(self._source(k, a) for k, a in enumerate(call.args))
        self.results: tuple[Buffer, ...] = self._changed if in_place else self._result_params()
        self._scalars = self._scalar_params()

    def _source(self, position: int, operand: Operand) -> Source:
        match kind_of(operand):
            case "tensor":
                tensor = self.call.tensor(position)
                changed = self.in_place and not position
                buffer = self.builder.param(
                    self.call.name(position),
                    tensor.shape,
                    tensor.dtype,
                    "inout" if changed else "in",
                )
                self._changed += (buffer,) if changed else ()
                return buffer_source(buffer)
            case "number":
                literal = self.call.literal(position)
                number = Number(literal.value, literal.dtype)
                return Source((), literal.dtype, lambda _: number)
            case "dims":
                return Source((), i64, self._no_elements(position))

    def _no_elements(self, position: int) -> Callable[[tuple[Expr, ...]], Element]:
        def reject(_: tuple[Expr, ...]) -> Element:
            raise self.call.error(
                position, "a tuple of integers has no elements to load; use `call.dims`"
            )

        return reject

    def _result_params(self) -> tuple[Buffer, ...]:
        many = len(self.outputs) > 1
        return tuple(
            self.builder.param(f"out{k}" if many else "out", o.shape or (), o.dtype, "out")
            for k, o in enumerate(self.outputs)
        )

    def _scalar_params(self) -> tuple[Var, ...]:
        shapes = [s.shape for s in self.sources] + [r.shape for r in self.results]
        bound = {d for shape in shapes for d in shape if isinstance(d, Var)}
        return tuple(self.builder.scalar(v) for v in self._symbols if v not in bound)

    @property
    def out(self) -> Buffer:
        """The buffer of the result."""
        return self.results[0]

    def copy_first(self) -> None:
        """Define a block that copies the first operand to the result, unless it is in place."""
        if not self.in_place:
            self.builder.compute(self.out, self.sources[0], name="copy")

    def literal(self, position: int, dtype: DType) -> Element:
        """Return a number operand as an element of a dtype."""
        return literal_number(self.call.literal(position), dtype)

    def load(self, position: int, indices: tuple[Expr, ...]) -> Load:
        """Return a load of an integer that an index is bound to."""
        found = self.sources[position](*indices)
        if not isinstance(found, Load):
            raise self.call.error(position, "expected a tensor")
        return found

    def load_broadcast(self, position: int, indices: tuple[Expr, ...]) -> Load:
        """Return a load of an integer from an operand that broadcasts."""
        found = self.sources[position].broadcast(indices)
        if not isinstance(found, Load):
            raise self.call.error(position, "expected a tensor")
        return found

    def finish(self) -> LoweredOperator:
        """Return the function and the operands of its call."""
        args = tuple(a for a in self.call.args if kind_of(a) == "tensor")
        outputs, updates = ((), (0,)) if self.in_place else (self.outputs, ())
        return LoweredOperator(self.builder.finish(), args, outputs, self._scalars, updates)


def buffer_source(buffer: Buffer) -> Source:
    """Return a source that loads elements of a buffer."""
    return Source(buffer.shape, buffer.dtype, lambda indices: Load(buffer, indices))


def _outputs(info: Info) -> tuple[TensorInfo, ...]:
    match info:
        case TensorInfo():
            return (info,)
        case TupleInfo(fields=fields):
            return tuple(o for f in fields for o in _outputs(f))
        case _:
            raise OperandError(
                f"expected a tensor or a tuple of tensors as the result, got {info!r}"
            )


def _symbols(args: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> tuple[Var, ...]:
    """Return the symbols of a call in order of first occurrence."""
    found: dict[Var, None] = {}
    for operand in args:
        for dim in _dims_of(operand):
            found.update(dict.fromkeys(sorted(free_vars(dim), key=lambda v: v.serial)))
    for output in outputs:
        for dim in output.shape or ():
            found.update(dict.fromkeys(sorted(free_vars(dim), key=lambda v: v.serial)))
    return tuple(found)


def _dims_of(operand: Operand) -> tuple[Expr, ...]:
    match operand:
        case Dims(dims=dims):
            return dims
        case ScalarLiteral():
            return ()
        case _:
            return (operand.info.shape or ()) if isinstance(operand.info, TensorInfo) else ()


def callee_facts(facts: Facts, symbols: Sequence[Var]) -> Facts:
    """Return the facts of the caller about these symbols, discharged by the caller."""
    known = set(symbols)
    kept = Facts()
    for fact in facts:
        if free_vars(fact.predicate) <= known:
            kept = kept.assume(fact.predicate, origin=fact.origin, discharge=Discharge.CALLER)
    return kept
