"""The numerical oracle: exact results of a function and the error that rounding permits."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, from_numpy
from ..graph.nodes import GraphFunc
from ..loop.nodes import BufferParam, PrimFunc
from ..module import Function, Module
from .graph import run_graph
from .loops import call_prim
from .rounding import Rounding, unit

Array = NDArray[Any]

MANY, FEW = 4, 2
"""The number of randomly rounded runs; `FEW` if one run takes longer than :data:`LONG`."""

LONG = 1.0
"""The duration of a run, in seconds, above which only `FEW` runs are made."""

SPREADS = {MANY: 16.0, FEW: 48.0}
"""The allowed error in standard deviations, by the number of runs used for the estimate.

Compiled code differs from the runs in the order of sums and in contraction, so its error is
another sample. A standard deviation estimated from 4 samples is too small by a factor of 16 for
fewer than one element in 10,000, even if the error were as large as that of the runs. It is
smaller, because a real rounding changes a value by less than a unit.
"""

_ALWAYS_ALLOWED = 4
"""The error that is always allowed, in units of the dtype of the result."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact results and the allowed error of each element.

    Parameters
    ----------
    values : tuple of arrays
        The results: floats in float64, integers in their dtype.
    allowed : tuple of arrays
        The largest allowed absolute error of each element.
    text : str
        The derivation of the allowed errors.
    """

    values: tuple[Array, ...]
    allowed: tuple[Array, ...]
    text: str

    @property
    def arrays(self) -> list[Array]:
        """The values, then the allowed errors."""
        return [*self.values, *self.allowed]

    @classmethod
    def of(cls, arrays: Sequence[Array], text: str) -> Exact:
        """Return the exact results with these :attr:`arrays`."""
        half = len(arrays) // 2
        return cls(tuple(arrays[:half]), tuple(arrays[half:]), text)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A comparison of results with the exact ones.

    Parameters
    ----------
    agrees : bool
        Whether the error of every element is allowed.
    error, allowed : float
        The absolute error and the allowed error of the element with the largest ratio of the two.
    result : int
        The position of the result that contains this element; -1 if there are no elements.
    index : tuple of int
        The index of this element.
    got, expected : float
        The actual and the exact value of this element.
    derivation : str
        The derivation of the allowed errors.
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
        """Return the compared element, its error, and the allowed error as text."""
        if self.result < 0:
            return "the results have no elements to compare"
        if math.isnan(self.expected) and math.isinf(self.error) and not self.index:
            return f"the shape of result {self.result} differs from the expected shape"
        element = f"result {self.result}[{', '.join(map(str, self.index))}]"
        return (
            f"{element} is {self.got:.9g}, exact value {self.expected:.9g}: "
            f"error {self.error:.2e}, allowed {self.allowed:.2e}"
        )


def interpreted(
    module: Module,
    name: str,
    inputs: Sequence[Array | int],
    *,
    rounded: bool = True,
    symbols: Mapping[str, int] | None = None,
) -> Exact:
    """Run a function in the interpreter, first exactly, then with random rounding.

    The values of state parameters are not among the results.

    Parameters
    ----------
    module : Module
        The program.
    name : str
        The name of the function.
    inputs : sequence of arrays and integers
        Its arguments; they are not modified.
    rounded : bool
        Whether to estimate the allowed errors; if not, they are 0.
    symbols : mapping, optional
        The values of symbols of a loop-level function that its arguments do not determine.

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
    result 0[1] is 0.7, exact value 0.666666667: error 3.33e-02, allowed 7.95e-07
    """
    function = module.functions[name]
    started = time.monotonic()
    values = _run(module, function, inputs, symbols, None)
    taken = time.monotonic() - started
    types = _types(function, values)
    if not rounded:
        return Exact(values, tuple(np.zeros_like(_parts(v), np.float64) for v in values), "")
    count = FEW if taken > LONG else MANY
    runs = [_run(module, function, inputs, symbols, Rounding(seed)) for seed in range(count)]
    allowed = tuple(_allowance(v, [run[k] for run in runs], types[k]) for k, v in enumerate(values))
    text = (
        f"{SPREADS[count]:g} standard deviations of {count} runs in which every operation rounds "
        f"randomly by the unit roundoff of its dtype ({_units(types)})"
    )
    return Exact(values, allowed, text)


def _units(types: Sequence[DType]) -> str:
    floats = dict.fromkeys(t for t in types if t.is_inexact)
    return ", ".join(f"{t} {unit(t):.1e}" for t in floats) or "integers are exact"


def _run(
    module: Module,
    function: Function,
    inputs: Sequence[Array | int],
    symbols: Mapping[str, int] | None,
    rounding: Rounding | None,
) -> tuple[Array, ...]:
    if isinstance(function, GraphFunc):
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
        results = run_graph(module, given, function=function.name, precise=True, rounding=rounding)
        return tuple(np.asarray(r) for r in cast("tuple[Array, ...]", results))
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    scalars = {**_scalars(function, inputs), **(symbols or {})}
    found = call_prim(function, arrays, scalars, precise=True, rounding=rounding)
    access = [p.access for p in function.params if isinstance(p, BufferParam)]
    written = (mode for mode in access if mode != "in")
    return tuple(a for mode, a in zip(written, found, strict=True) if mode != "state")


def _scalars(function: PrimFunc, inputs: Sequence[Array | int]) -> dict[str, int]:
    integers = [int(x) for x in inputs if not isinstance(x, np.ndarray)]
    return {v.name: x for v, x in zip(function.scalar_params, integers, strict=True)}


def _types(function: Function, values: Sequence[Array]) -> list[DType]:
    """Return the dtypes that the program declares for its results."""
    if isinstance(function, PrimFunc):
        return [
            p.buffer.dtype
            for p in function.params
            if isinstance(p, BufferParam) and p.access in ("out", "inout")
        ]
    infos = [getattr(r, "info", None) for r in function.results]
    found = [getattr(info, "dtype", None) for info in infos]
    return [
        t if isinstance(t, DType) else from_numpy(v.dtype)
        for t, v in zip(found, values, strict=True)
    ]


def _allowance(exact: Array, runs: Sequence[Array], dtype: DType) -> Array:
    """Return the allowed error of each element, estimated from randomly rounded runs.

    The last dimension of that of complex elements is 2: one for each part.
    """
    size = np.abs(exact)[..., None] if dtype.is_complex else np.abs(exact)
    exact, runs = _parts(exact), [_parts(run) for run in runs]
    errors = np.stack([_distance(run, exact) for run in runs])
    with np.errstate(invalid="ignore", over="ignore"):
        spread = np.sqrt((errors**2).mean(axis=0))
    seen = spread[(spread > 0) & np.isfinite(spread)]
    usual = float(np.median(seen)) if seen.size else 0.0
    allowed = SPREADS[len(runs)] * np.maximum(spread, usual)
    if dtype.is_inexact and dtype != dtype.wide:
        with np.errstate(invalid="ignore"):
            own = np.where(np.isfinite(exact), size, 0.0) * unit(dtype) * _ALWAYS_ALLOWED
        allowed = allowed + own + _tiny(dtype)
    return np.asarray(np.nan_to_num(allowed, nan=np.inf))


def _parts(array: Array) -> Array:
    """Return complex numbers as pairs in the last dimension; real arrays are returned as is."""
    dtype = from_numpy(array.dtype)
    if not dtype.is_complex:
        return array
    return np.array(array, order="C").view(dtype.part.numpy).reshape((*array.shape, 2))


def _tiny(dtype: DType) -> float:
    """Return the smallest normal number; a processor may flush smaller results to zero."""
    return 2.0**-14 if dtype.name == "f16" else 2.0**-126


def _distance(got: Array, exact: Array) -> Array:
    """Return absolute errors; NaN equals NaN, and an infinity equals the same infinity."""
    a, b = got.astype(np.float64), exact.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # `same` already covers inf - inf
        distance = np.where(same, 0.0, np.abs(a - b))
    return np.where(np.isnan(distance), np.inf, distance)


def compare(got: Sequence[Array], exact: Exact) -> Verdict:
    """Compare results element by element with the exact ones.

    Examples
    --------
    >>> exact = Exact((np.array([1, 2]),), (np.zeros(2),), "")
    >>> compare([np.array([1, 2])], exact).agrees
    True
    >>> print(compare([np.array([1, 3])], exact))
    result 0[1] is 3, exact value 2: error 1.00e+00, allowed 0.00e+00
    """
    worst = Verdict(True, 0.0, 0.0, -1, (), 0.0, 0.0, exact.text)
    most = 0.0
    for k, (a, b, limit) in enumerate(zip(got, exact.values, exact.allowed, strict=True)):
        if a.shape != b.shape:
            return Verdict(False, math.inf, 0.0, k, (), math.nan, math.nan, exact.text)
        if not b.size:
            continue
        a, b = _parts(a), _parts(b)  # noqa: PLW2901  # the arrays to compare
        error = _distance(a, b)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(error == 0, 0.0, np.where(np.isinf(limit), 0.0, error / limit))
        at = np.unravel_index(int(np.argmax(share)), b.shape)
        if share[at] > most or worst.result < 0:
            most = max(most, float(share[at]))
            worst = Verdict(
                most <= 1, float(error[at]), float(limit[at]), k, tuple(int(i) for i in at),
                float(a[at]), float(b[at]), exact.text,
            )  # fmt: skip
    return worst
