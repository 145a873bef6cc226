"""Lowering of loop-level elements to values: scalars outside of vectors, else one per lane."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeGuard, assert_never

import numpy as np

from ....ir.dtype import DType, f32, f64, i64, u8
from ....ir.loop import nodes as loop
from ....ir.loop.visit import operands as loop_operands, walk_element
from ....ir.narrowing import narrowed
from ....ir.symbolic import Bool, Expr, all_of, substitute
from ....ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Fma,
    Gather,
    If,
    Index,
    Load,
    Predicate,
    Reduce,
    Reg,
    Select,
    Stmt,
    Unary,
    Value,
)
from ....ir.thread.types import VectorType
from ....ir.thread.visit import operands
from ..math import Code, apply_function, converted, reinterpreted
from . import packed
from .bounds_checks import AccessChecks
from .buffer_addresses import BufferAddresses, ElementAddress
from .context import LoweringContext

_NO_VALUES: Final[Mapping[loop.Local, Value]] = MappingProxyType({})

DEEPEST: Final = 80
"""The depth of a value above which it is assigned to a register."""


def lanes_of(value: Value) -> int:
    """Return the number of lanes of a value."""
    return value.type.lanes if isinstance(value.type, VectorType) else 1


def widen(value: Value, lanes: int) -> Value:
    """Broadcast a scalar to all lanes; return a vector unchanged."""
    if lanes == 1 or lanes_of(value) == lanes:
        return value
    if isinstance(value, Const):
        return Const(value.value, VectorType(value.type.dtype, lanes))
    return Broadcast(value, lanes)


def constant(value: float, dtype: DType) -> Const:
    """Return a number in the register type of its dtype."""
    if dtype.is_float and not dtype.is_machine:
        value = int(narrowed(np.asarray(value, np.float64), dtype).view(dtype.register.numpy))
    return Const(value, VectorType(dtype.register))


def predicate(claim: Bool, context: LoweringContext) -> Value:
    """Return the value of a symbolic predicate, a mask if it differs per lane."""
    if context.lanes is not None and context.varies(claim):
        return Predicate(claim, context.lanes.var, context.lanes.count)
    return Predicate(claim)


def index(term: Expr, context: LoweringContext) -> Value:
    """Return the value of a symbolic integer, a vector if it differs per lane."""
    if context.lanes is not None and context.varies(term):
        return Index(term, context.lanes.var, context.lanes.count)
    return Index(term)


class Elements:
    """The lowering of the elements of one statement; ``before`` collects preceding statements."""

    def __init__(
        self,
        memory: BufferAddresses,
        context: LoweringContext,
        before: list[Stmt],
        *,
        guard: Value | None = None,
        checks: AccessChecks | None = None,
        bound: Mapping[loop.Local, Value] = _NO_VALUES,
    ) -> None:
        """Initialize for one statement.

        ``guard`` is an additional mask of loads, in a side of a ``Where``. ``checks`` are
        the accesses whose indices are checked, if any. ``bound`` are the values with a name.
        """
        self.memory = memory
        self.context = context
        self.before = before
        self.guard = guard
        self.checks = checks
        self.bound = bound
        self._values: dict[loop.Element, Value] = {}
        self._depths: dict[Value, int] = {}
        self._fields: dict[Value, tuple[Value, int]] = {}

    def value(self, element: loop.Element) -> Value:
        """Lower an element, operands first; equal elements become one value."""
        stack = [element]
        while stack:
            top = stack[-1]
            waiting = [e for e in _evaluated(top) if e not in self._values]
            if top not in self._values and waiting:
                stack.extend(reversed(waiting))
                continue
            if top not in self._values:
                self._values[top] = self._named(self._lower(top))
            stack.pop()
        return self._values[element]

    def _named(self, value: Value) -> Value:
        """Assign a deeply nested value to a register, so that recursion over values is bounded."""
        if self._depth(value) <= DEEPEST:
            return value
        reg = Reg("part", value.type)
        self.before.append(Assign(reg, value, self.context.source))
        return reg

    def _depth(self, value: Value) -> int:
        stack, depths = [value], self._depths
        while stack:
            top = stack[-1]
            deepest, known = 0, len(stack)
            for x in operands(top):
                depth = depths.get(x)
                if depth is None:
                    stack.append(x)
                elif depth > deepest:
                    deepest = depth
            if len(stack) == known:
                depths[top] = 1 + deepest
                stack.pop()
        return depths[value]

    def _lower(self, element: loop.Element) -> Value:
        context = self.context
        match element:
            case loop.Number(value=value, dtype=dtype):
                return constant(value, dtype)
            case loop.Index(value=term, dtype=dtype):
                return converted(index(context.term(term), context), i64, dtype)
            case loop.Condition(value=claim):
                return predicate(context.assumptions.decide(context.term(claim)), context)
            case loop.Load(buffer=buffer, indices=indices):
                self.check(buffer, indices)
                return self.load(self.memory.access(buffer, indices, context))
            case loop.Unary(op=op, operand=operand):
                return self._function(element, operand.dtype, op, operand)
            case loop.Binary():
                return self._binary(element)
            case loop.Ternary(op=op, first=first, second=second, third=third):
                return self._function(element, first.dtype, op, first, second, third)
            case loop.Compare(op=op, left=left, right=right):
                return Compare(op, *self._computed(left.dtype, *self._pair(left, right)))
            case loop.Cast(dtype=dtype, operand=operand):
                found = self.value(operand)
                if dtype is f32 and found in self._fields:
                    return packed.as_single(*self._fields[found], operand.dtype)
                return converted(found, operand.dtype, dtype)
            case loop.Reinterpret(dtype=dtype, operand=operand):
                return reinterpreted(self.value(operand), operand.dtype, dtype)
            case loop.Where():
                return self._where(element)
            case loop.Local():
                return self.bound[element]
            case _:
                assert_never(element)

    def typed(self, element: loop.Element, dtype: DType) -> Value:
        """Lower an element, and convert it to another dtype."""
        return converted(self.value(element), element.dtype, dtype)

    @staticmethod
    def _computed(dtype: DType, *values: Value) -> tuple[Value, ...]:
        """Return the values of elements in the machine dtype that computes with them."""
        if dtype.is_machine:
            return values
        return tuple(converted(v, dtype, dtype.compute) for v in values)

    def _function(
        self, element: loop.Element, dtype: DType, op: str, *operands: loop.Element
    ) -> Value:
        """Apply an element function, in the machine dtype that computes with its operands."""
        values = [self.value(x) for x in operands]
        lanes = max(map(lanes_of, values))
        computed = [
            self._computed(x.dtype, widen(v, lanes))[0]
            for x, v in zip(operands, values, strict=True)
        ]
        if element.dtype is not dtype or dtype.is_machine:
            return apply_function(op, tuple(computed), self._code())
        wide = dtype.compute
        if op == "fma":  # exact in double precision, where single precision rounds
            computed, wide = [converted(v, dtype.compute, f64) for v in computed], f64
        return converted(apply_function(op, tuple(computed), self._code()), wide, dtype)

    def _pair(self, left: loop.Element, right: loop.Element) -> tuple[Value, Value]:
        x, y = self.value(left), self.value(right)
        lanes = max(lanes_of(x), lanes_of(y))
        return widen(x, lanes), widen(y, lanes)

    def _binary(self, element: loop.Binary) -> Value:
        if _may_contract(element):
            fused = self._contracted(element)
            if fused is not None:
                return fused
        return self._function(element, element.dtype, element.op, element.left, element.right)

    def _code(self) -> Code:
        return Code(self.before, self.context.source, self.context.native)

    def _contracted(self, element: loop.Binary) -> Value | None:
        """Contract a product and a sum to a fused multiply-add."""
        left, right = element.left, element.right
        if _is_product(right):
            return self._fma(right, left, negate_product=element.op == "sub", negate_sum=False)
        if _is_product(left):
            return self._fma(left, right, negate_product=False, negate_sum=element.op == "sub")
        return None

    def _fma(
        self, factors: loop.Binary, term: loop.Element, *, negate_product: bool, negate_sum: bool
    ) -> Value:
        a, b, c = self.value(factors.left), self.value(factors.right), self.value(term)
        lanes = max(lanes_of(a), lanes_of(b), lanes_of(c))
        a = Unary("neg", a) if negate_product else a
        c = Unary("neg", c) if negate_sum else c
        return Fma(widen(a, lanes), widen(b, lanes), widen(c, lanes))

    def _where(self, element: loop.Where) -> Value:
        chosen = self._decided(element)
        if chosen is not None:
            return self.value(chosen)
        bit = self.value(element.condition)
        if lanes_of(bit) == 1:
            return self._branch(element, bit)
        then = self._side(element.then, bit)
        otherwise = self._side(element.otherwise, Unary("not", bit))
        lanes = lanes_of(bit)
        return Select(bit, widen(then, lanes), widen(otherwise, lanes))

    def _decided(self, element: loop.Where) -> loop.Element | None:
        if not isinstance(element.condition, loop.Condition):
            return None
        claim = self.context.assumptions.decide(self.context.term(element.condition.value))
        if claim is _TRUE:
            return element.then
        return element.otherwise if claim is _FALSE else None

    def _branch(self, element: loop.Where, bit: Value) -> Value:
        """Branch to evaluate one side only; select if both sides are cheap and load nothing."""
        if _is_cheap(element.then) and _is_cheap(element.otherwise):
            x, y = self._pair(element.then, element.otherwise)
            return Select(widen(bit, lanes_of(x)), x, y)
        sides: list[tuple[Value, list[Stmt]]] = []
        for side in (element.then, element.otherwise):
            inner: list[Stmt] = []
            part = self._inside(inner, self.guard)
            sides.append((part.value(side), inner))
        lanes = max(lanes_of(value) for value, _ in sides)
        result = Reg("chosen", VectorType(element.dtype.register, lanes))
        source = self.context.source
        then, otherwise = (
            (*inner, Assign(result, widen(value, lanes), source)) for value, inner in sides
        )
        self.before.append(If(bit, then, otherwise, source))
        return result

    def _side(self, side: loop.Element, bit: Value) -> Value:
        guard = bit if self.guard is None else Binary("and", self.guard, bit)
        return self._inside(self.before, guard).value(side)

    def _inside(self, before: list[Stmt], guard: Value | None) -> Elements:
        return Elements(
            self.memory, self.context, before, guard=guard, checks=self.checks, bound=self.bound
        )

    def load_byte(self, access: ElementAddress) -> Value:
        """Load the byte of a packed element; its other bits may be uninitialized."""
        address = Address(access.base, access.offset, 1)
        return Load(VectorType(u8), address, mask=self.mask(), partial=True)

    def check(self, buffer: loop.Buffer, indices: tuple[Expr, ...]) -> None:
        """Check an access against the shape of its buffer, if it is to be checked."""
        if self.checks is not None and self.checks.covers(buffer, indices):
            mask = self.mask()
            self.before.extend(self.checks.before(buffer, indices, self.context, mask))

    def mask(self) -> Value | None:
        """Return the mask of the lanes that may access memory, or None if all may."""
        claim = self.context.mask
        own = None if claim is _TRUE else widen(predicate(claim, self.context), self.context.count)
        if own is None or self.guard is None:
            return own if self.guard is None else self.guard
        return Binary("and", own, self.guard)

    def load(self, access: ElementAddress) -> Value:
        """Load an element, or one element per lane."""
        dtype = access.buffer.dtype.register
        if access.buffer.dtype.is_packed:
            return self._load_packed(access)
        if access.uniform:
            return self._load_uniform(access, dtype)
        of = VectorType(dtype, self.context.count)
        if access.step is None:
            return Gather(of, access.base, index(access.offset, self.context), self.mask())
        address = Address(access.base, access.offset, access.alignment)
        stride = None if access.contiguous else access.step
        free = access.private(self.context.count)
        return Load(of, address, stride, None if free else self.mask())

    def _load_packed(self, access: ElementAddress) -> Value:
        """Load the bytes of packed elements, and extract the elements."""
        dtype = access.buffer.dtype
        if access.uniform:
            byte = self._load_uniform(access, u8)
            return packed.field(byte, index(access.shift, self.context), dtype)
        count, mask = self.context.count, self.mask()
        if mask is None and packed.fills_bytes(access, self.context):
            of = VectorType(u8, count // dtype.per_byte)
            start = substitute(access.offset, {self.context.lane_var: 0})
            return packed.unpacked(Load(of, Address(access.base, start, 1)), dtype)
        bits = packed.strided_bits(access, self.context) if mask is None else None
        if bits is not None:
            start = substitute(access.offset, {self.context.lane_var: 0})
            words = Load(VectorType(u8, count), Address(access.base, start, 1))
            value = packed.field(words, Const(bits, VectorType(u8, count)), dtype)
            self._fields[value] = words, bits
            return value
        offsets = widen(index(access.offset, self.context), count)
        shifts = widen(index(access.shift, self.context), count)
        found = Gather(VectorType(u8, count), access.base, offsets, mask)
        return packed.field(found, shifts, dtype)

    def _load_uniform(self, access: ElementAddress, dtype: DType) -> Value:
        plain = Load(VectorType(dtype), Address(access.base, access.offset, access.alignment))
        if self.guard is None:
            return plain
        # In a side that no lane takes, the address may be outside of the buffer.
        mask = self.mask()
        result = Reg("guarded", VectorType(dtype))
        source = self.context.source
        self.before.append(Assign(result, Const(0, VectorType(dtype)), source))
        some = Reduce("or", mask or self.guard)
        self.before.append(If(some, (Assign(result, plain, source),), (), source))
        return result


def _may_contract(element: loop.Binary) -> bool:
    return element.op in ("add", "sub") and element.dtype.name in ("f32", "f64")


def _is_product(element: loop.Element) -> TypeGuard[loop.Binary]:
    return isinstance(element, loop.Binary) and element.op == "mul"


def _evaluated(element: loop.Element) -> tuple[loop.Element, ...]:
    """Return the operands that are always evaluated to compute an element, in order."""
    if isinstance(element, loop.Where):
        # A condition of a symbolic predicate may be decided; the sides are lowered under a guard.
        return () if isinstance(element.condition, loop.Condition) else (element.condition,)
    if isinstance(element, loop.Binary) and _may_contract(element):
        for factors, term in ((element.right, element.left), (element.left, element.right)):
            if _is_product(factors):
                return (factors.left, factors.right, term)
    return loop_operands(element)


_TRUE = all_of()
_FALSE = ~_TRUE


def _is_cheap(element: loop.Element) -> bool:
    inner = tuple(walk_element(element))
    return len(inner) <= 8 and not any(isinstance(e, loop.Load) for e in inner)


def as_index(value: Value) -> Value:
    """Convert an integer element to the 64 bits of an index."""
    return value if value.type == VectorType(i64) else Cast(VectorType(i64), value)
