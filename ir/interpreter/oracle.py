"""What a function has to give: exact values, and how far rounding may take a result from them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, f64, from_numpy
from ..graph.nodes import GraphFunc
from ..loop.nodes import BufferParam, PrimFunc
from ..module import Function, Module
from .graph import run_graph
from .loops import call_prim
from .rounding import Rounding, unit

Array = NDArray[Any]

MANY, FEW = 4, 2
"""Runs that round at random; few where one takes longer than :data:`LONG`."""

LONG = 1.0
"""Seconds."""

SPREADS = {MANY: 16.0, FEW: 48.0}
"""How many standard deviations a result may be off, by the runs that they are estimated from.

Compiled code differs from the runs in the order of sums and in contraction, so its error is another
draw. A standard deviation estimated from 4 draws is wrong by the factor 16 less than once in 10,000
elements even if its error were as large as that of the runs; it is smaller, as real roundings move
by less than a unit.
"""

_LAST = 4
"""Units of the result's own type that are always allowed."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Results in float64 (integers as they are), and for every element what it may be off.

    ``text`` says how the allowance was derived.
    """

    values: tuple[Array, ...]
    allowed: tuple[Array, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a result compares with the exact one.

    ``error`` and ``allowed`` are those of the element where the error takes most of what is
    allowed: element ``index`` of result ``result``, which is ``got`` and should be ``expected``.
    """

    agrees: bool
    error: float
    allowed: float
    result: int
    index: tuple[int, ...]
    got: float
    expected: float
    derivation: str

    def __str__(self) -> str:
        """Say what was seen, what was allowed, and where."""
        if self.result < 0:
            return "there are no results to compare"
        if math.isnan(self.expected) and math.isinf(self.error) and not self.index:
            return f"result {self.result} has another shape"
        place = f"result {self.result}[{', '.join(map(str, self.index))}]"
        return (
            f"{place} is {self.got:.9g}, exactly {self.expected:.9g}: "
            f"off by {self.error:.2e}, {self.allowed:.2e} allowed"
        )


def interpreted(
    module: Module, name: str, inputs: Sequence[Array | int], *, rounded: bool = True
) -> Exact:
    """Run a function in the interpreter, exactly and then with random roundings.

    Parameters
    ----------
    module : Module
        The program.
    name : str
        The function.
    inputs : sequence
        Its arrays and integers; they are not changed.
    rounded : bool
        Whether to find out what is allowed; else nothing is.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... @prim_func
    ... def third(x: Buffer[(2,), f32], y: Out[(2,), f32]):
    ...     for i in range(2):
    ...         y[i] = x[i] / 3.0
    ... ''')
    >>> exact = interpreted(module, "third", [np.array([1, 2], np.float32)])
    >>> bool((exact.allowed[0] < 1e-5).all())
    True
    >>> compare([np.array([1, 2], np.float32) / np.float32(3)], exact).agrees
    True
    >>> print(compare([np.array([0.33333, 0.7])], exact))
    result 0[1] is 0.7, exactly 0.666666667: off by 3.33e-02, 7.95e-07 allowed
    """
    function = module.functions[name]
    started = time.monotonic()
    values = _run(module, function, inputs, None)
    taken = time.monotonic() - started
    types = _types(function, values)
    if not rounded:
        return Exact(values, tuple(np.zeros_like(v, np.float64) for v in values), "")
    count = FEW if taken > LONG else MANY
    runs = [_run(module, function, inputs, Rounding(seed)) for seed in range(count)]
    allowed = tuple(_allowance(v, [run[k] for run in runs], types[k]) for k, v in enumerate(values))
    text = (
        f"{SPREADS[count]:g} times the spread of {count} runs in which every operation rounds "
        f"at random by the unit of its type ({_units(types)})"
    )
    return Exact(values, allowed, text)


def _units(types: Sequence[DType]) -> str:
    floats = dict.fromkeys(t for t in types if t.is_float)
    return ", ".join(f"{t} {unit(t):.1e}" for t in floats) or "integers are exact"


def _run(
    module: Module, function: Function, inputs: Sequence[Array | int], rounding: Rounding | None
) -> tuple[Array, ...]:
    if isinstance(function, GraphFunc):
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
        results = run_graph(module, given, function=function.name, precise=True, rounding=rounding)
        return tuple(np.asarray(r) for r in cast("tuple[Array, ...]", results))
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    scalars = _scalars(function, inputs)
    return call_prim(function, arrays, scalars, precise=True, rounding=rounding)


def _scalars(function: PrimFunc, inputs: Sequence[Array | int]) -> dict[str, int]:
    integers = [int(x) for x in inputs if not isinstance(x, np.ndarray)]
    return {v.name: x for v, x in zip(function.scalar_params, integers, strict=True)}


def _types(function: Function, values: Sequence[Array]) -> list[DType]:
    """The types that the program declares for its results."""
    if isinstance(function, PrimFunc):
        return [
            p.buffer.dtype
            for p in function.params
            if isinstance(p, BufferParam) and p.access != "in"
        ]
    infos = [getattr(r, "info", None) for r in function.results]
    found = [getattr(info, "dtype", None) for info in infos]
    return [
        t if isinstance(t, DType) else from_numpy(v.dtype)
        for t, v in zip(found, values, strict=True)
    ]


def _allowance(exact: Array, runs: Sequence[Array], dtype: DType) -> Array:
    """What each element may be off, from how far runs that round at random are."""
    away = np.stack([_apart(run, exact) for run in runs])
    with np.errstate(invalid="ignore", over="ignore"):
        spread = np.sqrt((away**2).mean(axis=0))
    seen = spread[(spread > 0) & np.isfinite(spread)]
    usual = float(np.median(seen)) if seen.size else 0.0
    allowed = SPREADS[len(runs)] * np.maximum(spread, usual)
    if dtype.is_float and dtype != f64:
        with np.errstate(invalid="ignore"):
            own = np.where(np.isfinite(exact), np.abs(exact), 0.0) * unit(dtype) * _LAST
        allowed = allowed + own + _tiny(dtype)
    return np.asarray(np.nan_to_num(allowed, nan=np.inf))


def _tiny(dtype: DType) -> float:
    """The smallest normal number: below it, a processor may give zero."""
    return 2.0**-14 if dtype.name == "f16" else 2.0**-126


def _apart(got: Array, exact: Array) -> Array:
    """Distances of elements; two NaN are the same, and so are two infinities."""
    a, b = got.astype(np.float64), exact.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # inf - inf, which `same` has looked at already
        apart = np.where(same, 0.0, np.abs(a - b))
    return np.where(np.isnan(apart), np.inf, apart)


def compare(got: Sequence[Array], exact: Exact) -> Agreement:
    """Compare results with the exact ones, element by element.

    Examples
    --------
    >>> exact = Exact((np.array([1, 2]),), (np.zeros(2),), "")
    >>> compare([np.array([1, 2])], exact).agrees
    True
    >>> print(compare([np.array([1, 3])], exact))
    result 0[1] is 3, exactly 2: off by 1.00e+00, 0.00e+00 allowed
    """
    worst = Agreement(True, 0.0, 0.0, -1, (), 0.0, 0.0, exact.text)
    most = 0.0
    for k, (a, b, limit) in enumerate(zip(got, exact.values, exact.allowed, strict=True)):
        if a.shape != b.shape:
            return Agreement(False, math.inf, 0.0, k, (), math.nan, math.nan, exact.text)
        if not b.size:
            continue
        error = _apart(a, b)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(error == 0, 0.0, np.where(np.isinf(limit), 0.0, error / limit))
        at = np.unravel_index(int(np.argmax(share)), b.shape)
        if share[at] > most or worst.result < 0:
            most = max(most, float(share[at]))
            worst = Agreement(
                most <= 1, float(error[at]), float(limit[at]), k, tuple(int(i) for i in at),
                float(a[at]), float(b[at]), exact.text,
            )  # fmt: skip
    return worst
