"""The table of combiners: the operations by which reductions combine values.

A combiner of one value is an element function, such as ``add``. A combiner of several values is a
:class:`Reducer` for given dtypes, such as ``argmax`` of a value and its index. All are associative
up to rounding and have an identity; all but ``linear_recurrence`` are commutative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from ...errors import TilewrightError
from ..dtype import DType, bool_
from .nodes import Binary, Compare, Element, Local, Number, Reducer, Unary, Where

Combiner: TypeAlias = Literal["add", "mul", "min", "max", "and", "or", "xor"]
COMBINERS: Final[tuple[Combiner, ...]] = get_args(Combiner)
"""The combiners of one value: element functions that are commutative and associative."""


class ReducerDtypeError(TilewrightError):
    """A combiner of the table that is not defined for the dtypes of the results."""

    title = "Dtypes of a reduction"


def identity_of(combiner: Combiner, dtype: DType) -> Number:
    """Return the identity element of a combiner.

    Examples
    --------
    >>> from ..dtype import f32, i8
    >>> identity_of("max", f32).value, identity_of("min", i8).value
    (-inf, 127)
    """
    if combiner in ("add", "or", "xor"):
        return Number(dtype.number(0), dtype)
    if combiner == "mul" or (combiner == "and" and dtype == bool_):
        return Number(dtype.number(1), dtype)
    if combiner == "and":  # bitwise on integers: all bits set
        return Number(-1 if dtype.kind == "int" else (1 << dtype.bits) - 1, dtype)
    lowest = combiner == "max"
    if dtype.is_float:
        most = float("inf") if dtype.special == "ieee" else dtype.largest
        return Number(-most if lowest else most, dtype)
    signed = dtype.kind == "int"
    low = -(1 << (dtype.bits - 1)) if signed else 0
    high = (1 << (dtype.bits - int(signed))) - 1
    return Number(low if lowest else high, dtype)


def reducer_of(combiner: str, dtype: DType) -> Reducer:
    """Return a combiner of one value as a reducer."""
    return _single(combiner, dtype)


@lru_cache(maxsize=256)
def _single(name: str, dtype: DType) -> Reducer:
    combiner: Combiner = next(known for known in COMBINERS if known == name)
    a, b = Local("a", dtype), Local("b", dtype)
    return Reducer(
        combiner, (a,), (b,), (), (Binary(combiner, a, b),), (identity_of(combiner, dtype),)
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """A combiner of several values.

    Parameters
    ----------
    accepts : callable
        Returns whether it is defined for some dtypes.
    expected : str
        The dtypes it is defined for, for messages.
    make : callable
        Returns the reducer for these dtypes.
    """

    accepts: Callable[[tuple[DType, ...]], bool]
    expected: str
    make: Callable[[str, tuple[DType, ...]], Reducer]


def _locals(names: str, dtypes: tuple[DType, ...]) -> tuple[Local, ...]:
    return tuple(Local(name, dtype) for name, dtype in zip(names.split(), dtypes, strict=True))


def _extreme(name: str, dtypes: tuple[DType, ...]) -> Reducer:
    """Return ``argmax`` or ``argmin``: the first NaN, else the first extreme value."""
    value, index = dtypes
    u, i, v, j = _locals("u i v j", (value, index, value, index))
    better: Element = Compare("gt" if name == "argmax" else "lt", u, v)
    equal: Element = Compare("eq", u, v)
    if value.is_float:
        left, right = Unary("isnan", u), Unary("isnan", v)
        better = Binary("or", better, Binary("and", left, Unary("not", right)))
        equal = Binary("or", equal, Binary("and", left, right))
    take, first = Local("take", bool_), Binary("and", equal, Compare("lt", i, j))
    combiner: Combiner = "max" if name == "argmax" else "min"
    return Reducer(
        name,
        (u, i),
        (v, j),
        ((take, Binary("or", better, first)),),
        (Where(take, u, v), Where(take, i, j)),
        (identity_of(combiner, value), identity_of("min", index)),
    )


def _number(value: float, dtype: DType) -> Number:
    return Number(float(value), dtype)


def _welford(name: str, dtypes: tuple[DType, ...]) -> Reducer:
    """Return the combination of count, mean and sum of squared deviations of two samples."""
    (of, *_) = dtypes
    n, mean, square, m, other, rest = _locals("n mean square m other rest", dtypes * 2)
    total, weight = Local("total", of), Local("weight", of)
    delta, step = Local("delta", of), Local("step", of)
    zero, one = _number(0, of), _number(1, of)
    positive = Compare("gt", total, zero)
    binds: tuple[tuple[Local, Element], ...] = (
        (total, Binary("add", n, m)),
        (weight, Binary("div", m, Where(positive, total, one))),
        (delta, Binary("sub", other, mean)),
        (step, Binary("mul", delta, weight)),
    )
    spread = Binary("add", rest, Binary("mul", Binary("mul", delta, n), step))
    some = Compare("gt", m, zero)  # an empty sample changes nothing, also if the mean is infinite
    results = (
        total,
        Where(some, Binary("add", mean, step), mean),
        Where(some, Binary("add", square, spread), square),
    )
    return Reducer(name, (n, mean, square), (m, other, rest), binds, results, (zero,) * 3)


def _softmax(name: str, dtypes: tuple[DType, ...]) -> Reducer:
    """Return the combination of a maximum and of sums that are scaled by its exponential.

    The sums of the smaller maximum are scaled by ``exp`` of the difference, those of the larger one
    by 1, which is also the factor of equal infinities.
    """
    (of, *_) = dtypes
    top, scale = Local("top", of), Local("scale", of)
    sums = len(dtypes) - 1
    names = ["m", *(f"s{k}" for k in range(sums)), "o", *(f"t{k}" for k in range(sums))]
    values = _locals(" ".join(names), dtypes * 2)
    left, right = values[: sums + 1], values[sums + 1 :]
    before, after = Local("before", of), Local("after", of)
    binds: tuple[tuple[Local, Element], ...] = (
        (top, Binary("max", left[0], right[0])),
        (scale, Unary("exp", Unary("neg", Unary("abs", Binary("sub", left[0], right[0]))))),
        (before, Where(Compare("ge", left[0], right[0]), _number(1, of), scale)),
        (after, Where(Compare("ge", right[0], left[0]), _number(1, of), scale)),
    )
    scaled = (
        Binary("add", Binary("mul", a, before), Binary("mul", b, after))
        for a, b in zip(left[1:], right[1:], strict=True)
    )
    zero = _number(0, of)
    return Reducer(
        name,
        left,
        right,
        binds,
        (top, *scaled),
        (identity_of("max", of), *(zero for _ in range(sums))),
    )


def _linear(name: str, dtypes: tuple[DType, ...]) -> Reducer:
    """Return the composition of two functions ``h -> factor * h + value``, the left one first."""
    (of, *_) = dtypes
    a, b, c, d = _locals("a b c d", dtypes * 2)
    results = (Binary("mul", a, c), Binary("add", Binary("mul", b, c), d))
    identities = (_number(1, of), _number(0, of))
    return Reducer(name, (a, b), (c, d), (), results, identities, commutative=False)


def _is_indexed(dtypes: tuple[DType, ...]) -> bool:
    return len(dtypes) == 2 and dtypes[0] != bool_ and dtypes[1].is_integer


def _same_floats(count: int) -> Callable[[tuple[DType, ...]], bool]:
    def accepts(dtypes: tuple[DType, ...]) -> bool:
        return len(dtypes) == count and len(set(dtypes)) == 1 and dtypes[0].is_float

    return accepts


_INDEXED = "a number and an integer"
REDUCERS: Final = MappingProxyType(
    {
        "argmax": _Entry(_is_indexed, _INDEXED, _extreme),
        "argmin": _Entry(_is_indexed, _INDEXED, _extreme),
        "welford": _Entry(_same_floats(3), "three values of one floating-point dtype", _welford),
        "logsumexp": _Entry(_same_floats(2), "two values of one floating-point dtype", _softmax),
        "online_softmax": _Entry(
            _same_floats(3), "three values of one floating-point dtype", _softmax
        ),
        "linear_recurrence": _Entry(
            _same_floats(2), "two values of one floating-point dtype", _linear
        ),
    }
)
"""The combiners of several values, by name.

``argmax(value, index)`` and ``argmin`` choose the first extreme value or NaN. The values of
``welford(count, mean, square)`` are a number of samples, their mean, and the sum of their squared
deviations from it; a sample ``x`` is ``(1, x, 0)``. ``logsumexp(maximum, total)`` keeps a maximum
and the sum of ``exp(x - maximum)``; a term ``x`` is ``(x, 1)``. ``online_softmax`` adds a weighted
sum; a term is ``(x, 1, weight)``. ``linear_recurrence(factor, value)`` composes functions
``h -> factor * h + value`` in order.
"""


def named_reducer(name: str, dtypes: tuple[DType, ...]) -> Reducer:
    """Return a combiner of several values for some dtypes; equal arguments give one object.

    Raises
    ------
    ReducerDtypeError
        If the combiner is not defined for the dtypes.

    Examples
    --------
    >>> from ..dtype import f32, i64
    >>> [str(number.value) for number in named_reducer("argmax", (f32, i64)).identities]
    ['-inf', '9223372036854775807']
    """
    return _named(name, dtypes)


@lru_cache(maxsize=256)
def _named(name: str, dtypes: tuple[DType, ...]) -> Reducer:
    entry = REDUCERS[name]
    if not entry.accepts(dtypes):
        raise ReducerDtypeError(
            f"{name} is not defined for dtypes {', '.join(map(str, dtypes))}",
            where=f"combiner {name!r}",
            hint=f"its values are {entry.expected}",
        )
    return entry.make(name, dtypes)


def is_named(reducer: Reducer) -> bool:
    """Return whether a reducer is an entry of the table."""
    entry = REDUCERS.get(reducer.name)
    if reducer.name in COMBINERS and len(reducer.left) == 1:
        return reducer_of(reducer.name, reducer.left[0].dtype) is reducer
    dtypes = tuple(local.dtype for local in reducer.left)
    return entry is not None and entry.accepts(dtypes) and _named(reducer.name, dtypes) is reducer
