"""Complex elements as pairs of real elements.

An element of complex dtype becomes a :class:`Pair`. A part that a formula uses several times is
bound to a name, so the expressions of a program grow linearly. Products are bound, too: they are
not contracted, so the results have the same bits on all targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, inf, nan
from typing import Final, TypeAlias, assert_never

from ...ir.dtype import (
    DType,
    bool_,
)
from ...ir.loop.nodes import (
    Binary,
    Bind,
    Cast,
    Compare,
    Condition,
    Element,
    Index,
    Load,
    Local,
    Number,
    Reinterpret,
    Seq,
    Ternary,
    Unary,
    Where,
)
from ...ir.loop.visit import walk_element
from .complex_functions import (
    FUNCTIONS_OF_PARTS,
    SCALES,
    Function,
    elements_of,
    leaf,
    logarithm,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """The real and the imaginary part of a complex element."""

    real: Element
    imag: Element
    dtype: DType
    """The dtype of the parts."""

    def each(self, make: Callable[[Element], Element]) -> Pair:
        """Return the pair of the results of a function of each part."""
        return Pair(make(self.real), make(self.imag), self.dtype)

    def number(self, value: float) -> Number:
        """Return a number of the dtype of the parts."""
        return Number(value, self.dtype)


Parts: TypeAlias = "Element | Pair"
Loads: TypeAlias = Callable[[Load], Parts]

_SHIFTS: Final = {"f32": (80.0, 64.0), "f64": (700.0, 512.0)}
"""The exponent above which, and the number by which, the operand of exp is reduced."""


MAX_FACTORS: Final = 100
"""The absolute value of the largest constant exponent of a power that is a product."""


class _Guard:
    """The condition under which a side of a selection is evaluated."""

    def __init__(self, values: ComplexValues, outer: _Guard | None, condition: Element) -> None:
        self._values = values
        self._outer = outer
        self._condition = condition
        self.bound: Element | None = None

    def value(self) -> Element:
        """Return the condition as a bool that may be evaluated anywhere."""
        if self.bound is None:
            condition = self._condition
            if self._outer is not None:
                condition = Where(self._outer.value(), condition, Number(value=False, dtype=bool_))
            self.bound = self._values.bound_before(condition, bool_)
        return self.bound


class ComplexValues:
    """Splits the complex elements of one statement; :attr:`binds` are the values they share.

    Parameters
    ----------
    load : callable
        Returns the parts of a load.
    locals_ : mapping of Local to Parts
        The parts of bound values.
    fresh : callable
        Returns a new name.
    """

    def __init__(
        self, load: Loads, locals_: Mapping[Local, Parts], fresh: Callable[[str], str]
    ) -> None:
        """Start without bound values."""
        self.binds: list[Bind] = []
        self._load = load
        self._locals = locals_
        self._fresh = fresh
        self._guard: _Guard | None = None

    def bound_before(self, value: Element, dtype: DType, name: str = "part") -> Element:
        """Return a name for a value, bound before the statement; a leaf needs none."""
        if isinstance(value, Number | Index | Condition | Local):
            return value
        local = Local(self._fresh(name), dtype)
        self.binds.append(Bind(local, value, Seq(())))
        return local

    def bind(self, value: Element, dtype: DType) -> Element:
        """Bind a value; loads below a condition are executed only if it holds."""
        if self._guard is not None and any(isinstance(e, Load) for e in walk_element(value)):
            value = Where(self._guard.value(), value, Number(dtype.number(0), dtype))
        return self.bound_before(value, dtype)

    def _shared(self, pair: Pair) -> Pair:
        """Return a pair whose parts are leaves, so they may be used twice."""
        return pair.each(lambda e: e if isinstance(e, Load) else self.bind(e, pair.dtype))

    def _held(self, pair: Pair) -> Pair:
        """Return a pair whose parts are loaded once."""
        return pair.each(lambda e: self.bind(e, pair.dtype))

    def real(self, element: Element) -> Element:
        """Split an element of real dtype."""
        found = self.split(element)
        if isinstance(found, Pair):
            raise TypeError(f"expected a real element, got dtype {element.dtype}")
        return found

    def pair(self, element: Element) -> Pair:
        """Split an element of complex dtype."""
        found = self.split(element)
        if isinstance(found, Pair):
            return found
        raise TypeError(f"expected a complex element, got dtype {element.dtype}")

    def split(self, element: Element) -> Parts:
        """Return an element without complex parts, or the pair of a complex element."""
        match element:
            case Number(value=value, dtype=dtype) if dtype.is_complex:
                return _real(Number(value, dtype.part))
            case Index(value=term, dtype=dtype) if dtype.is_complex:
                return _real(Index(term, dtype.part))
            case Number() | Index() | Condition():
                return element
            case Load():
                return self._load(element)
            case Local():
                return self._locals.get(element, element)
            case Unary(op=op, operand=operand):
                return self._unary(op, self.split(operand))
            case Binary(op=op, left=left, right=right):
                return self._binary(op, self.split(left), self.split(right))
            case Ternary(op=op, first=first, second=second, third=third):
                return Ternary(op, *(self.real(e) for e in (first, second, third)))
            case Compare(op=op, left=left, right=right):
                return _compared(element, self.split(left), self.split(right))
            case Cast(dtype=dtype, operand=operand):
                return _converted(self.split(operand), operand, dtype)
            case Reinterpret(dtype=dtype, operand=operand):
                return Reinterpret(dtype, self.real(operand))
            case Where():
                return self._where(element)
            case _:
                assert_never(element)

    def _where(self, element: Where) -> Parts:
        condition, outer = self.real(element.condition), self._guard
        sides: list[Parts] = []
        chosen = _Guard(self, outer, condition)
        for guard, side in (
            (chosen, element.then),
            (_Otherwise(self, outer, chosen), element.otherwise),
        ):
            self._guard = guard
            sides.append(self.split(side))
        self._guard = outer
        match sides:
            case [Pair() as then, Pair() as otherwise]:
                bit = chosen.value()
                return Pair(
                    Where(bit, then.real, otherwise.real),
                    Where(bit, then.imag, otherwise.imag),
                    then.dtype,
                )
            case [then, otherwise] if not isinstance(then, Pair) and not isinstance(
                otherwise, Pair
            ):
                return Where(chosen.bound or condition, then, otherwise)
            case _:
                raise TypeError("the two values of where have different dtypes")

    def _unary(self, op: str, x: Parts) -> Parts:
        if not isinstance(x, Pair):
            return Unary(op, x)
        match op:
            case "real":
                return x.real
            case "imag":
                return x.imag
            case "conj":
                return Pair(x.real, Unary("neg", x.imag), x.dtype)
            case "neg":
                return x.each(lambda e: Unary("neg", e))
            case "abs":
                return Binary("hypot", x.real, x.imag)
            case "angle":
                return Binary("atan2", x.imag, x.real)
            case "exp":
                return self._exp(self._held(x))
            case _ if op in FUNCTIONS_OF_PARTS:
                return self._of_parts(FUNCTIONS_OF_PARTS[op], self._held(x))
            case _:
                raise TypeError(f"function {op!r} of a complex element")

    def _binary(self, op: str, x: Parts, y: Parts) -> Parts:
        if not isinstance(x, Pair) or not isinstance(y, Pair):
            if isinstance(x, Pair) or isinstance(y, Pair):
                raise TypeError(f"function {op!r} of a real and a complex element")
            return Pair(x, y, x.dtype) if op == "complex" else Binary(op, x, y)
        match op:
            case "add" | "sub":
                return Pair(Binary(op, x.real, y.real), Binary(op, x.imag, y.imag), x.dtype)
            case "mul":
                return self._product(self._shared(x), self._shared(y))
            case "div":
                return self._quotient(self._held(x), self._held(y))
            case "pow":
                return self._power(self._held(x), self._held(y))
            case _:
                raise TypeError(f"function {op!r} of complex elements")

    def _product(self, x: Pair, y: Pair) -> Pair:
        def times(a: Element, b: Element) -> Element:
            return self.bind(Binary("mul", a, b), x.dtype)

        real = Binary("sub", times(x.real, y.real), times(x.imag, y.imag))
        return Pair(real, Binary("add", times(x.real, y.imag), times(x.imag, y.real)), x.dtype)

    def _scale(self, x: Pair) -> Element:
        """Return a power of two that brings a number into the range without overflow."""
        limit, factor = SCALES[x.dtype.name]
        size = self.bind(Binary("max", Unary("abs", x.real), Unary("abs", x.imag)), x.dtype)
        small = Compare("lt", size, x.number(1 / limit))
        usual = Where(small, x.number(factor), x.number(1.0))
        large = Compare("gt", size, x.number(limit))
        return self.bind(Where(large, x.number(1 / factor), usual), x.dtype)

    def _quotient(self, x: Pair, y: Pair) -> Pair:
        """Divide by the formula of Smith, as `complex_references.divide`."""
        of = x.dtype

        def bound(op: str, a: Element, b: Element) -> Element:
            return self.bind(Binary(op, a, b), of)

        def selected(bit: Element, a: Element, b: Element) -> Element:
            return self.bind(Where(bit, a, b), of)

        zero, one = x.number(0.0), x.number(1.0)
        top, bottom = self._scale(x), self._scale(y)
        a, b = bound("mul", x.real, top), bound("mul", x.imag, top)
        c, d = bound("mul", y.real, bottom), bound("mul", y.imag, bottom)
        swap = self.bind(Compare("lt", Unary("abs", c), Unary("abs", d)), bool_)
        large, small = selected(swap, d, c), selected(swap, c, d)
        is_zero = Binary("and", Compare("eq", large, zero), Compare("eq", small, zero))
        null = self.bind(is_zero, bool_)
        ratio = bound("div", small, large)
        sum_ = Binary("add", large, bound("mul", small, ratio))
        inverse = bound("div", one, Where(null, Unary("abs", large), sum_))
        first, second = selected(swap, b, a), selected(swap, a, b)
        forward = selected(null, zero, bound("mul", second, ratio))
        across = selected(null, zero, bound("mul", first, ratio))
        equal = self.bind(Compare("eq", top, bottom), bool_)
        up = selected(equal, one, Binary("div", one, top))
        down = selected(equal, one, bottom)
        difference = Where(swap, Binary("sub", across, second), Binary("sub", second, across))
        parts = Pair(Binary("add", first, forward), difference, of)

        def scaled(part: Element) -> Element:
            for factor in (inverse, up, down):
                part = Binary("mul", part, factor)
            return part

        return parts.each(scaled)

    def _of_parts(self, function: Function, x: Pair) -> Pair:
        """Apply a formula to the parts, which are leaves."""
        parts = function(leaf(x.real, x.dtype), leaf(x.imag, x.dtype))
        real, imag = elements_of(parts, self.bind)
        return Pair(real, imag, x.dtype)

    def _power(self, x: Pair, y: Pair) -> Pair:
        """Return ``exp(y * log(x))``; a product for constant integers."""
        match y:
            case Pair(real=Number(value=count), imag=Number(value=0.0)):
                if float(count).is_integer() and abs(count) <= MAX_FACTORS:
                    return self._repeated(x, int(count))
            case _:
                pass
        zero, one, missing = x.number(0.0), x.number(1.0), x.number(nan)
        product = self._product(y, self._held(self._of_parts(logarithm, x)))
        found = self._exp(self._held(product))
        base, exponent = (self.bind(_is_zero(of), bool_) for of in (x, y))
        grows = self.bind(Compare("gt", y.real, zero), bool_)
        limit = self.bind(Where(grows, zero, missing), x.dtype)

        def chosen(part: Element, unit: Number) -> Element:
            return Where(exponent, unit, Where(base, limit, part))

        return Pair(chosen(found.real, one), chosen(found.imag, zero), x.dtype)

    def _repeated(self, x: Pair, count: int) -> Pair:
        """Return the power with a constant integer exponent by repeated squaring."""
        unit = _real(x.number(1.0))
        made: Pair | None = None
        factor, rest = x, abs(count)
        while rest:
            if rest % 2:
                made = factor if made is None else self._held(self._product(made, factor))
            rest //= 2
            if rest:
                factor = self._held(self._product(factor, factor))
        if made is None or count >= 0:
            return made or unit
        return self._quotient(unit, made)

    def _exp(self, x: Pair) -> Pair:
        """Return ``exp(re) * (cos(im), sin(im))``, which overflows only if the result does."""
        of = x.dtype
        limit, shift = _SHIFTS[of.name]
        zero, one = x.number(0.0), x.number(1.0)
        large = self.bind(Compare("gt", x.real, x.number(limit)), bool_)
        reduced = Binary("sub", x.real, Where(large, x.number(shift), zero))
        size = self.bind(Unary("exp", reduced), of)
        factor = self.bind(Where(large, x.number(exp(shift)), one), of)
        finite = Compare("eq", Binary("sub", x.imag, x.imag), zero)
        undefined = self.bind(Unary("not", finite), bool_)
        vanishes = Binary("and", undefined, Compare("eq", x.real, x.number(-inf)))
        grows = Binary("and", undefined, Compare("eq", x.real, x.number(inf)))
        none = self.bind(vanishes, bool_)
        is_real = self.bind(Compare("eq", x.imag, zero), bool_)

        def part(op: str) -> Element:
            return Binary("mul", Binary("mul", size, Unary(op, x.imag)), factor)

        real = Where(grows, x.number(inf), Where(is_real, Binary("mul", size, factor), part("cos")))
        imag = Where(is_real, x.imag, part("sin"))
        return Pair(Where(none, zero, real), Where(none, zero, imag), of)


class _Otherwise(_Guard):
    """The condition under which the other side of a selection is evaluated."""

    def __init__(self, values: ComplexValues, outer: _Guard | None, chosen: _Guard) -> None:
        super().__init__(values, outer, Number(value=True, dtype=bool_))
        self._chosen = chosen

    def value(self) -> Element:
        """Return the condition as a bool that may be evaluated anywhere."""
        if self.bound is None:
            condition: Element = Unary("not", self._chosen.value())
            if self._outer is not None:
                condition = Binary("and", self._outer.value(), condition)
            self.bound = self._values.bound_before(condition, bool_)
        return self.bound


def _is_zero(x: Pair) -> Element:
    zero = x.number(0.0)
    return Binary("and", Compare("eq", x.real, zero), Compare("eq", x.imag, zero))


def _real(element: Element) -> Pair:
    """Return a real element as a complex one."""
    return Pair(element, Number(0.0, element.dtype), element.dtype)


def _compared(element: Compare, x: Parts, y: Parts) -> Element:
    if isinstance(x, Pair) and isinstance(y, Pair):
        join = "and" if element.op == "eq" else "or"
        real, imag = (Compare(element.op, x.real, y.real), Compare(element.op, x.imag, y.imag))
        return Binary(join, real, imag)
    if isinstance(x, Pair) or isinstance(y, Pair):
        raise TypeError("comparison of a real and a complex element")
    return Compare(element.op, x, y)


def _converted(x: Parts, operand: Element, dtype: DType) -> Parts:
    of = dtype.part
    if isinstance(x, Pair):
        return x if x.dtype == of else Pair(Cast(of, x.real), Cast(of, x.imag), of)
    if not dtype.is_complex:
        return Cast(dtype, x)
    return _real(x if operand.dtype == of else Cast(of, x))
