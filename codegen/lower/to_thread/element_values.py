"""Lowering of loop-level elements to values: scalars outside of vectors, else one per lane."""

from __future__ import annotations

from typing import Final, TypeGuard, assert_never

from ....ir.dtype import DType, i64
from ....ir.loop import nodes as loop
from ....ir.loop.visit import operands as loop_operands, walk_element
from ....ir.symbolic import Bool, Expr, all_of
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
from ..math import Code, binary_function, unary_function
from .bounds_checks import AccessChecks
from .buffer_addresses import BufferAddresses, ElementAddress
from .context import LoweringContext

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
    ) -> None:
        """Initialize for one statement.

        ``guard`` is an additional mask of loads, in a side of a ``Where``. ``checks`` are
        the accesses whose indices are checked, if any.
        """
        self.memory = memory
        self.context = context
        self.before = before
        self.guard = guard
        self.checks = checks
        self._values: dict[loop.Element, Value] = {}
        self._depths: dict[Value, int] = {}

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
                return Const(value, VectorType(dtype))
            case loop.Index(value=term, dtype=dtype):
                found = index(context.term(term), context)
                return self.cast(found, dtype)
            case loop.Condition(value=claim):
                return predicate(context.assumptions.decide(context.term(claim)), context)
            case loop.Load(buffer=buffer, indices=indices):
                self.check(buffer, indices)
                return self.load(self.memory.access(buffer, indices, context))
            case loop.Unary(op=op, operand=operand):
                return unary_function(op, self.value(operand), self._code())
            case loop.Binary():
                return self._binary(element)
            case loop.Compare(op=op, left=left, right=right):
                return Compare(op, *self._pair(left, right))
            case loop.Cast(dtype=dtype, operand=operand):
                return self.cast(self.value(operand), dtype)
            case loop.Where():
                return self._where(element)
            case _:
                assert_never(element)

    @staticmethod
    def cast(value: Value, dtype: DType) -> Value:
        """Convert to another dtype, keeping the lanes."""
        of = VectorType(dtype, lanes_of(value))
        return value if value.type == of else Cast(of, value)

    def _pair(self, left: loop.Element, right: loop.Element) -> tuple[Value, Value]:
        x, y = self.value(left), self.value(right)
        lanes = max(lanes_of(x), lanes_of(y))
        return widen(x, lanes), widen(y, lanes)

    def _binary(self, element: loop.Binary) -> Value:
        if _may_contract(element):
            fused = self._contracted(element)
            if fused is not None:
                return fused
        x, y = self._pair(element.left, element.right)
        return binary_function(element.op, x, y, self._code())

    def _code(self) -> Code:
        return Code(self.before, self.context.source)

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
        result = Reg("chosen", VectorType(element.dtype, lanes))
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
        return Elements(self.memory, self.context, before, guard=guard, checks=self.checks)

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
        dtype = access.buffer.dtype
        if access.uniform:
            return self._load_uniform(access)
        of = VectorType(dtype, self.context.count)
        if access.step is None:
            return Gather(of, access.base, index(access.offset, self.context), self.mask())
        address = Address(access.base, access.offset, access.alignment)
        stride = None if access.contiguous else access.step
        free = access.private(self.context.count)
        return Load(of, address, stride, None if free else self.mask())

    def _load_uniform(self, access: ElementAddress) -> Value:
        dtype = access.buffer.dtype
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
