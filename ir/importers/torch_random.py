"""Import handlers of random numbers in PyTorch.

The numbers are reproducible: each draw of a program has a stream of its own, and every call of the
program gives the same numbers. They have the distributions of PyTorch, not its values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import DType, f32, f64, i64, u64
from ..symbolic import Expr, SymInt, as_expr
from .elementwise import convert, elementwise
from .formulas import Formula
from .shaping import expand
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten
from .unsupported import UnsupportedFormError

_WORD = 64


def _shape(t: TorchContext) -> tuple[Expr, ...]:
    """Return the shape of the node's result."""
    return t.dims([t.symbols.size(d) for d in t.node.meta["val"].shape])


def _bits(t: TorchContext, shape: Sequence[Expr]) -> Imported:
    """Return the bits of a new stream."""
    t.streams += 1
    return t.apply("random_bits", tuple(shape), seed=t.streams)


def uniform_numbers(t: TorchContext, shape: Sequence[Expr], dtype: DType) -> Imported:
    """Return multiples of the unit roundoff in [0, 1)."""
    wide = f64 if dtype == f64 else f32
    digits = wide.mantissa + 1
    word = elementwise(t, "right_shift", [_bits(t, shape), t.uniform(_WORD - digits, (), u64)])
    number = convert(t, word, wide)
    return elementwise(t, "multiply", [number, t.uniform(math.ldexp(1.0, -digits), (), wide)])


def _normal(t: TorchContext, shape: Sequence[Expr], dtype: DType) -> Imported:
    """Return normally distributed numbers, by the method of Box and Muller."""
    first, second = (uniform_numbers(t, shape, dtype) for _ in range(2))
    above = elementwise(t, "subtract", [t.uniform(1, (), first.dtype), first])
    size = elementwise(
        t, "multiply", [elementwise(t, "log", [above]), t.uniform(-2, (), first.dtype)]
    )
    turn = elementwise(t, "multiply", [second, t.uniform(2 * math.pi, (), second.dtype)])
    return elementwise(
        t, "multiply", [elementwise(t, "sqrt", [size]), elementwise(t, "cos", [turn])]
    )


def _result(t: TorchContext, x: Imported) -> Imported:
    return convert(t, x, t.result_dtype())


def _of_floats(t: TorchContext) -> DType:
    dtype = t.result_dtype()
    if not dtype.is_float:
        raise UnsupportedFormError(f"random numbers of {dtype} are not supported; only floats are")
    return dtype


@aten("rand", "rand_like")
def rand(t: TorchContext, *_: Any, **__: Any) -> Imported:
    """Import uniform random numbers in [0, 1)."""
    return _result(t, uniform_numbers(t, _shape(t), _of_floats(t)))


@aten("randn", "randn_like")
def randn(t: TorchContext, *_: Any, **__: Any) -> Imported:
    """Import random numbers with mean 0 and deviation 1."""
    return _result(t, _normal(t, _shape(t), _of_floats(t)))


@aten("randint", "randint_like")
def randint(t: TorchContext, *args: Any, **_: Any) -> Imported:
    """Import random integers of a range."""
    bounds = [a for a in args if isinstance(a, int | Expr)]
    low, high = (as_expr(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
    size = as_expr(high) - low
    word = elementwise(t, "right_shift", [_bits(t, _shape(t)), t.uniform(1, (), u64)])
    count = convert(t, t.number(size, i64), i64)
    rest = elementwise(t, "mod", [convert(t, word, i64), count])
    return _result(t, elementwise(t, "add", [rest, t.number(as_expr(low), i64)]))


@aten("bernoulli")
def bernoulli(t: TorchContext, x: Imported, p: OperandLike | None = None, **_: Any) -> Imported:
    """Import draws of 1 with a probability: the elements, or one number."""
    chance = x if p is None else t.number(p, x.dtype)
    wide = f64 if chance.dtype == f64 else f32
    drawn = uniform_numbers(t, x.shape, wide)
    hit = elementwise(t, "less", [drawn, convert(t, chance, wide)])
    return _result(t, expand(t, hit, x.shape))


def _moved(t: TorchContext, x: Imported, shift: OperandLike, scale: OperandLike) -> Imported:
    """Return ``x * scale + shift``."""
    parts = [convert(t, t.number(v, x.dtype), x.dtype) for v in (scale, shift)]
    return elementwise(t, "add", [elementwise(t, "multiply", [x, parts[0]]), parts[1]])


@aten("uniform")
def uniform(t: TorchContext, x: Imported, low: float = 0, high: float = 1, **_: Any) -> Imported:
    """Import uniform random numbers of a range."""
    return _result(t, _moved(t, uniform_numbers(t, x.shape, _of_floats(t)), low, high - low))


@aten("normal_functional", "normal")
def normal(
    t: TorchContext, x: OperandLike, mean: OperandLike = 0, std: OperandLike = 1, **_: Any
) -> Imported:
    """Import random numbers with a mean and a deviation, which may be tensors."""
    if str(t.node.target).startswith("aten.normal."):  # normal(mean, std) has no tensor to fill
        mean, std = x, mean if len(t.node.args) > 1 else 1.0
    return _result(t, _moved(t, _normal(t, _shape(t), _of_floats(t)), mean, std))


@aten("log_normal")
def log_normal(t: TorchContext, x: Imported, mean: float = 1, std: float = 2, **_: Any) -> Imported:
    """Import random numbers whose logarithms have a mean and a deviation."""
    drawn = _moved(t, _normal(t, x.shape, _of_floats(t)), mean, std)
    return _result(t, elementwise(t, "exp", [drawn]))


@aten("exponential")
def exponential(t: TorchContext, x: Imported, rate: float = 1, **_: Any) -> Imported:
    """Import random numbers with an exponential distribution."""
    return _result(t, _moved(t, _log_rest(t, x), 0, -1 / rate))


def _log_rest(t: TorchContext, x: Imported) -> Imported:
    """Return ``log(1 - u)`` for uniform random numbers ``u``."""
    drawn = uniform_numbers(t, x.shape, f64 if x.dtype == f64 else f32)
    return elementwise(t, "log1p", [elementwise(t, "negative", [drawn])])


@aten("geometric")
def geometric(t: TorchContext, x: Imported, p: float, **_: Any) -> Imported:
    """Import the numbers of trials until the first success."""
    trials = elementwise(t, "ceil", [_moved(t, _log_rest(t, x), 0, 1 / math.log1p(-p))])
    least = t.uniform(1, (), trials.dtype)
    return _result(t, elementwise(t, "maximum", [trials, least]))


@aten("cauchy")
def cauchy(t: TorchContext, x: Imported, median: float = 0, sigma: float = 1, **_: Any) -> Imported:
    """Import random numbers with a Cauchy distribution."""
    turn = _moved(t, uniform_numbers(t, x.shape, _of_floats(t)), -math.pi / 2, math.pi)
    return _result(t, _moved(t, elementwise(t, "tan", [turn]), median, sigma))


@aten("multinomial")
def multinomial(
    t: TorchContext, weights: Imported, count: SymInt,
    replacement: bool = False, **_: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import positions drawn with weights; without replacement, the first of exponential times."""
    rows = Formula(t, weights)
    if replacement:
        drawn = Formula(t, uniform_numbers(t, (*weights.shape[:-1], as_expr(count)), f64))
        ends = rows.to(f64).call("cumsum", axis=rows.rank - 1)
        top = ends.cut(rows.rank - 1, rows.shape[-1] - 1, rows.shape[-1])
        passed = ends.unsqueeze(rows.rank - 1) <= (drawn * top).unsqueeze(rows.rank)
        return passed.to(i64).sum(rows.rank).x
    rest = Formula(t, uniform_numbers(t, weights.shape, f64))
    times = -(-rest).apply("log1p") / rows.to(f64)
    found = t.emit("topk", t.plain(times.x), (as_expr(count),), axis=-1, largest=False)
    return t.items(found)[1]
