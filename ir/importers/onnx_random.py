"""Import handlers of random ONNX operators, by a counter-based generator of 32-bit integers."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from typing import Final

from ..dtype import DType, bool_, f32, f64, u32
from ..symbolic import Expr, as_expr, product
from .formulas import Formula, number, positions
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .onnx_given_sizes import scalar
from .tensors import Imported

_ROUNDS: Final = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1))
"""Shifts and factors that mix the bits of an integer."""
_STEP: Final = 0x9E3779B9


def _key(c: OnnxContext) -> int:
    """Return the key of a node: from its seed, or else from the name of its result."""
    seed = c.attributes.get("seed")
    if seed is None:
        return zlib.crc32(c.node.output[0].encode())
    return zlib.crc32(struct.pack("<d", float(seed)))


def uniform_numbers(c: OnnxContext, shape: Sequence[Expr], stream: int = 0) -> Formula:
    """Return numbers of [0, 1) in f32; each call of the program has the same numbers.

    Element k is a mix of the bits of k and of a key, so the numbers do not depend on the order of
    computation.
    """
    key = (_key(c) + stream * _STEP) % (1 << 32)
    bits = positions(c, product(shape)).to(u32) * _STEP + key
    for _ in range(2):
        for shift, factor in _ROUNDS:
            bits = bits.apply("bitwise_xor", bits.apply("right_shift", shift)) * factor
        bits = bits + key
    fraction = bits.apply("right_shift", 8).to(f32) * 2.0**-24
    return fraction.reshape(*shape)


def normal_numbers(c: OnnxContext, shape: Sequence[Expr]) -> Formula:
    """Return numbers of the normal distribution in f32, by the method of Box and Muller."""
    first, second = (uniform_numbers(c, shape, k) for k in range(2))
    radius = ((1.0 - first).apply("log") * -2.0).apply("sqrt")
    return radius * (second * (2 * math.pi)).apply("cos")


def _dtype(c: OnnxContext, default: DType) -> DType:
    code = c.attributes.get("dtype")
    return default if code is None else onnx_dtype(code, c.node.op_type)


@onnx_op("RandomUniform", "RandomUniformLike")
def random_uniform(c: OnnxContext) -> Imported:
    """Import numbers of an interval."""
    shape, dtype = _shape(c)
    low, high = (float(c.attributes.get(k, d)) for k, d in (("low", 0.0), ("high", 1.0)))
    return (uniform_numbers(c, shape) * (high - low) + low).to(dtype).x


@onnx_op("RandomNormal", "RandomNormalLike")
def random_normal(c: OnnxContext) -> Imported:
    """Import numbers of a normal distribution."""
    shape, dtype = _shape(c)
    mean, scale = (float(c.attributes.get(k, d)) for k, d in (("mean", 0.0), ("scale", 1.0)))
    return (normal_numbers(c, shape) * scale + mean).to(dtype).x


def _shape(c: OnnxContext) -> tuple[tuple[Expr, ...], DType]:
    if c.node.op_type.endswith("Like"):
        x = c.input(0)
        return x.shape, _dtype(c, x.dtype)
    return tuple(as_expr(n) for n in c.attributes["shape"]), _dtype(c, f32)


@onnx_op("Bernoulli")
def bernoulli(c: OnnxContext) -> Imported:
    """Import ones with given probabilities, else zeros."""
    x = Formula(c, c.input(0))
    return (uniform_numbers(c, x.shape) < x.to(f32)).to(_dtype(c, x.dtype)).x


@onnx_op("Multinomial")
def multinomial(c: OnnxContext) -> Imported:
    """Import indices drawn with the probabilities of logits."""
    x = Formula(c, c.input(0)).to(f32)
    count = as_expr(c.integer("sample_size", 1))
    noise = uniform_numbers(c, (x.shape[0], count, x.shape[1]))
    gumbel = -(-(noise.maximum(2.0**-25)).apply("log")).apply("log")
    found = Formula(c, c.apply("argmax", c.plain((x.unsqueeze(1) + gumbel).x), axis=2))
    return found.to(onnx_dtype(c.integer("dtype", 6), "Multinomial")).x


@onnx_op("Dropout")
def dropout(c: OnnxContext) -> list[Imported]:
    """Import dropout: in training, elements are zero with a probability, and others are scaled."""
    x, training = Formula(c, c.input(0)), c.optional(2)
    known = (0,) if training is None else c.known(2)
    whole = c.uniform(value=True, shape=x.shape, dtype=bool_)
    if known == (0,):
        return [x.x, whole]
    active = scalar(c, c.input(2))
    ratio = number(c, 0.5, f64) if c.optional(1) is None else scalar(c, c.input(1)).to(f64)
    ratio = active.choose(ratio, 0.0, f64)
    kept = uniform_numbers(c, x.shape).to(f64) >= ratio
    wide = f64 if x.dtype is f64 else f32
    scaled = (x.to(wide) / (1.0 - ratio).to(wide)).to(x.dtype)
    return [kept.choose(scaled, 0.0, x.dtype).x, kept.x]
