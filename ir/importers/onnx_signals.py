"""Import handlers of ONNX operators of signal processing: DFT, STFT, and mel weights."""

from __future__ import annotations

import math

from ..dtype import f32, f64, i64
from ..symbolic import Expr, as_expr, const_value, minimum
from .formulas import Formula, number, positions, size_of, sizes_of, stacked
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .onnx_given_sizes import axes_last, axes_restored, front_axes, read_size, scalar, vector
from .onnx_schema import malformed
from .shaping import axis_of
from .tensors import Imported

_Pair = tuple[Formula, Formula | None]


def _parts(c: OnnxContext, x: Formula) -> _Pair:
    """Return the real part and the imaginary part, which are next to each other; in f64."""
    count = const_value(x.shape[-1])
    if count not in (1, 2):
        raise malformed(c.node, f"expected a last dimension of 1 or 2, got {x.shape[-1]}")
    last = x.rank - 1
    return x.at(last, 0).to(f64), x.at(last, 1).to(f64) if count == 2 else None


def _waves(c: OnnxContext, rows: Expr, columns: Expr, length: Expr) -> tuple[Formula, Formula]:
    """Return cosines and sines of ``2 * pi * row * column / length``.

    The product is reduced modulo the length before it is rounded to a float.
    """
    whole = size_of(c, length)
    turn = (positions(c, rows).unsqueeze(1) * positions(c, columns).unsqueeze(0)) % whole
    angle = turn.to(f64) * (2 * math.pi) / whole.to(f64)
    return angle.apply("cos"), angle.apply("sin")


def _transformed(c: OnnxContext, x: _Pair, length: Expr, columns: Expr, *, inverse: bool) -> _Pair:
    """Return the transform of the last dimension, as a product with a matrix."""
    real, imaginary = x
    rows = minimum(real.shape[-1], length)
    last = real.rank - 1
    real = real.cut(last, 0, rows)
    cos, sin = _waves(c, rows, columns, length)
    sin = sin if inverse else -sin
    first, second = real @ cos, real @ sin
    if imaginary is not None:
        imaginary = imaginary.cut(last, 0, rows)
        first, second = first - imaginary @ sin, second + imaginary @ cos
    if inverse:
        scale = size_of(c, length).to(f64)
        first, second = first / scale, second / scale
    return first, second


def _real_inverse(c: OnnxContext, x: _Pair, length: Expr) -> Formula:
    """Return the real signal whose one-sided spectrum is the last dimension."""
    real, imaginary = x
    half = length // 2 + 1
    rows = minimum(real.shape[-1], half)
    last = real.rank - 1
    cos, sin = _waves(c, rows, length, length)
    whole, at = size_of(c, length), positions(c, rows)
    single = at.equal(0) | (at * 2).equal(whole)
    weight = (single.choose(1.0, 2.0, f64) / whole.to(f64)).unsqueeze(1)
    found = real.cut(last, 0, rows) @ (cos * weight)
    if imaginary is not None:
        found = found - imaginary.cut(last, 0, rows) @ (sin * weight)
    return found


def _dft_by_data(c: OnnxContext, x: Formula) -> Formula:
    """Return a transform along an axis that depends on data, which is moved to the end before."""
    axis = front_axes(vector(c, c.input(2)), x.rank)
    moved = [p and axes_last(c, p, axis, 1) for p in _parts(c, x)]
    real, imaginary = moved
    if real is None:
        raise malformed(c.node, "the operand has no real part")
    pair = real.x, None if imaginary is None else imaginary.x
    made = _spectrum(c, pair, c.optional(1))
    dims = size_of(c, made[0].shape[-1])
    shape = c.read(real.mask.choose(dims, sizes_of(c, x.shape[:-1]), i64).x)
    found = [axes_restored(c, real, p, shape) for p in made]
    return stacked(found, x.rank - 1).to(x.dtype)


def _spectrum(c: OnnxContext, pair: _Pair, given: Imported | None) -> list[Formula]:
    """Return the real part of the transform of the last dimension, and the imaginary one."""
    inverse, onesided = bool(c.integer("inverse", 0)), bool(c.integer("onesided", 0))
    size = pair[0].shape[-1]
    default = (size - 1) * 2 if inverse and onesided else size
    length = default if given is None else read_size(c, scalar(c, given).to(i64))
    if inverse and onesided:
        return [_real_inverse(c, pair, length)]
    columns = length // 2 + 1 if onesided else length
    return [p for p in _transformed(c, pair, length, columns, inverse=inverse) if p is not None]


@onnx_op("DFT")
def dft(c: OnnxContext) -> Imported:
    """Import the discrete Fourier transform along an axis, in f64 by a product with a matrix."""
    x = Formula(c, c.input(0))
    known = (-2,)
    if c.opset < 20:
        known = (c.integer("axis", 1),)
    elif c.optional(2) is not None:
        known = c.known(2)
    if known is None:
        return _dft_by_data(c, x).x
    axis = axis_of(known[0], x.rank)
    order = [k for k in range(x.rank - 1) if k != axis] + [axis]
    back = [order.index(k) for k in range(x.rank - 1)]
    real, imaginary = _parts(c, x)
    pair = real.permute(*order), None if imaginary is None else imaginary.permute(*order)
    made = _spectrum(c, pair, c.optional(1))
    return stacked([p.permute(*back) for p in made], x.rank - 1).to(x.dtype).x


@onnx_op("STFT")
def stft(c: OnnxContext) -> Imported:
    """Import the transforms of windows of a signal."""
    signal = Formula(c, c.input(0))
    window, given = c.optional(2), c.optional(3)
    step = read_size(c, scalar(c, c.input(1)).to(i64))
    if given is None and window is None:
        raise malformed(c.node, "a window or a length of frames is required")
    length = read_size(c, scalar(c, given).to(i64)) if given is not None else (
        Formula(c, c.input(2)).shape[0]
    )  # fmt: skip
    real, imaginary = _parts(c, signal)
    frames = size_of(c, (signal.shape[1] - length)) // size_of(c, step).maximum(1) + 1
    known = const_value(step)
    count = (signal.shape[1] - length) // known + 1 if known else read_size(c, frames)
    at = positions(c, count).unsqueeze(1) * size_of(c, step) + positions(c, length)
    weights = number(c, 1.0, f64) if window is None else Formula(c, window).to(f64)
    pair = (
        real.take(at, 1) * weights,
        None if imaginary is None else imaginary.take(at, 1) * weights,
    )
    columns = length // 2 + 1 if c.integer("onesided", 1) else length
    parts = _transformed(c, pair, length, as_expr(columns), inverse=False)
    return stacked([p for p in parts if p is not None], 3).to(signal.dtype).x


@onnx_op("MelWeightMatrix")
def mel_weights(c: OnnxContext) -> Imported:
    """Import the weights that map a spectrum to mel bins."""
    dtype = onnx_dtype(c.integer("output_datatype", 1), "MelWeightMatrix")
    bins = read_size(c, scalar(c, c.input(0)).to(i64))
    length, rate, low, high = (scalar(c, c.input(k)).to(f64) for k in range(1, 5))
    rows = read_size(c, scalar(c, c.input(1)).to(i64) // 2 + 1)
    first, last = ((v / 700.0).apply("log1p") * (2595 / math.log(10)) for v in (low, high))
    count = size_of(c, bins).to(f64) + 2.0
    steps = positions(c, bins + 2).to(f64) * ((last - first) / count) + first
    hertz = (steps * (math.log(10) / 2595)).apply("expm1") * 700.0
    edges = ((length + 1.0) * hertz / rate).apply("floor").to(i64)
    left, middle, right = (edges.cut(0, k, bins + k).unsqueeze(0) for k in range(3))
    at = positions(c, rows).unsqueeze(1)

    def share(part: Formula, whole: Formula) -> Formula:
        return part.to(f64) / whole.maximum(1).to(f64)

    rising = ((at >= left) & (at <= middle)).choose(share(at - left, middle - left), 0.0, f64)
    peak = at.equal(middle).choose(1.0, 0.0, f64)
    rising = middle.equal(left).choose(peak, rising, f64)
    falls = (right > middle) & (at >= middle) & (at < right)
    return falls.choose(share(right - at, right - middle), rising, f64).to(dtype).x


@onnx_op("AffineGrid")
def affine_grid(c: OnnxContext) -> Imported:
    """Import the positions of an affine map, for GridSample."""
    theta, given = Formula(c, c.input(0)), c.input(1)
    sizes = c.sizes(given)[2:]
    wide = f64 if theta.dtype is f64 else f32
    corners = bool(c.integer("align_corners", 0))
    columns: list[Formula] = []
    for k, size in enumerate(sizes):
        at, count = positions(c, size).to(f64), size_of(c, size).to(f64)
        if corners:
            at_unit = at * 2.0 / (count - 1.0).maximum(1.0) - 1.0
        else:
            at_unit = (at * 2.0 + 1.0) / count - 1.0
        after = tuple(range(1, len(sizes) - k))
        columns.insert(0, at_unit.unsqueeze(*after).expand(*sizes))
    ones = Formula(c, c.uniform(1.0, sizes, f64))
    grid = stacked([*columns, ones], len(sizes)).to(wide)
    flat = grid.reshape(1, -1, len(sizes) + 1)
    found = flat @ theta.to(wide).permute(0, 2, 1)
    return found.reshape(theta.shape[0], *sizes, len(sizes)).to(theta.dtype).x
