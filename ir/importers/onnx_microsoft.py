"""Import handlers of the operators of ONNX Runtime that exporters and optimizers emit."""

from __future__ import annotations

from typing import Final

from ..dtype import bool_, f32, f64, i64, u8
from ..symbolic import as_expr, const_value
from .formulas import Formula, joined, number, positions, size_of, stacked
from .onnx_context import OnnxContext, onnx_op
from .onnx_schema import malformed
from .shaping import permute
from .tensors import Imported
from .unsupported import UnsupportedFormError

_MASKED: Final = -1e30


def _wide(x: Formula) -> Formula:
    return x.to(f64 if x.dtype is f64 else f32)


def _optional(c: OnnxContext, position: int) -> Formula | None:
    x = c.optional(position)
    return None if x is None else Formula(c, x)


def _reject(c: OnnxContext, positions_: dict[int, str]) -> None:
    """Reject operands that are not supported, by name."""
    for position, name in positions_.items():
        if c.optional(position) is not None:
            raise UnsupportedFormError(f"operand {name} is not supported")


def _normalized(x: Formula, epsilon: float, *, centered: bool = True) -> Formula:
    last = x.rank - 1
    center = x - x.reduce("mean", last, keepdims=True) if centered else x
    variance = (center * center).reduce("mean", last, keepdims=True)
    return center * (variance + epsilon).apply("rsqrt")


@onnx_op("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def skip_layer_norm(c: OnnxContext) -> list[Imported]:
    """Import the normalization of a sum, and the sum itself if it is used."""
    simplified = "Simplified" in c.node.op_type
    x, skip, scale = (_wide(Formula(c, c.input(k))) for k in range(3))
    shift = None if simplified else _optional(c, 3)
    bias = _optional(c, 3 if simplified else 4)
    total = x + skip
    if bias is not None:
        total = total + bias.to(total.dtype)
    epsilon = float(c.attributes.get("epsilon", 1e-12 if not simplified else 1e-5))
    found = _normalized(total, epsilon, centered=not simplified) * scale
    if shift is not None:
        found = found + shift.to(found.dtype)
    dtype = c.input(0).dtype
    results = [found.to(dtype).x]
    if any(c.node.output[1:3]):
        raise UnsupportedFormError("the outputs mean and inv_std_var are not supported")
    return results if len(c.node.output) < 4 else [*results, results[0], results[0],
                                                   total.to(dtype).x]  # fmt: skip


@onnx_op("com.microsoft.EmbedLayerNormalization")
def embed_layer_norm(c: OnnxContext) -> list[Imported]:
    """Import the normalized sum of the embeddings of words, positions, and segments."""
    ids, segments = c.input(0), c.optional(1)
    words, ordinals, kinds = (_optional(c, k) for k in (2, 3, 4))
    if words is None or ordinals is None:
        raise malformed(c.node, "the embeddings of words and positions are required")
    length = ids.shape[1]
    given = c.optional(8)
    at = positions(c, length).unsqueeze(0) if given is None else Formula(c, given).to(i64)
    total = words.take(Formula(c, ids), 0) + ordinals.take(at, 0)
    if segments is not None and kinds is not None:
        total = total + kinds.take(Formula(c, segments), 0)
    epsilon = float(c.attributes.get("epsilon", 1e-12))
    scale, shift = (Formula(c, c.input(k)) for k in (5, 6))
    wide = _wide(total)
    found = _normalized(wide, epsilon) * scale.to(wide.dtype) + shift.to(wide.dtype)
    mask = c.optional(7)
    count = Formula(c, c.uniform(0, (ids.shape[0],), ids.dtype))
    if mask is not None:
        count = Formula(c, mask).sum(1)
    return [found.to(total.dtype).x, count.x, total.x]


@onnx_op("com.microsoft.Gelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu",
         "com.microsoft.QuickGelu")  # fmt: skip
def gelu(c: OnnxContext) -> Imported:
    """Import a Gaussian error linear unit, perhaps of a sum, or an approximation of it."""
    x, bias = Formula(c, c.input(0)), _optional(c, 1)
    x = x if bias is None else x + bias
    if c.node.op_type == "QuickGelu":
        wide = _wide(x)
        gate = (wide * float(c.attributes.get("alpha", 1.702))).apply("sigmoid")
        return (wide * gate).to(x.dtype).x
    kind = "tanh" if c.node.op_type == "FastGelu" else "none"
    return x.call("gelu", approximate=kind).x


@onnx_op("com.microsoft.FusedMatMul")
def fused_matmul(c: OnnxContext) -> Imported:
    """Import a scaled product of matrices that may be transposed."""
    sides: list[Imported] = []
    for k, side in enumerate("AB"):
        x = c.input(k)
        if c.integer(f"transBatch{side}", 0):
            x = permute(c, x, (*range(1, x.rank - 1), 0, x.rank - 1))
        if c.integer(f"trans{side}", 0):
            x = permute(c, x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))
        sides.append(x)
    found = Formula(c, c.apply("matmul", *map(c.plain, sides), name=c.leaf(*sides)))
    alpha = float(c.attributes.get("alpha", 1.0))
    return found.x if alpha == 1 else (_wide(found) * alpha).to(found.dtype).x


@onnx_op("com.microsoft.RotaryEmbedding")
def rotary_embedding(c: OnnxContext) -> Imported:
    """Import the rotation of pairs of elements of each head by angles of their positions."""
    source = Formula(c, c.input(0))
    x, at = source, Formula(c, c.input(1)).to(i64)
    cos, sin = (Formula(c, c.input(k)) for k in (2, 3))
    heads = c.integer("num_heads", 0)
    part = c.integer("rotary_embedding_dim", 0)
    if x.rank == 3:
        size = as_expr(part) if part and not heads else cos.shape[1] * 2
        count = as_expr(heads) if heads else x.shape[2] // size
        x = x.reshape(x.shape[0], x.shape[1], count, x.shape[2] // count).permute(0, 2, 1, 3)
    if at.rank == 1:
        at = at + positions(c, x.shape[2])
        at = at.unsqueeze(0).expand(x.shape[0], x.shape[2])
    width = as_expr(part) if part else x.shape[3]
    half = width // 2
    cos, sin = (t.take(at, 0).cut(2, 0, half).unsqueeze(1) for t in (cos, sin))
    turned, rest = x.cut(3, 0, width), x.cut(3, width, x.shape[3])
    paired = bool(c.integer("interleaved", 0))
    if paired:
        pairs = turned.reshape(*x.shape[:3], half, 2)
        first, second = pairs.at(4, 0), pairs.at(4, 1)
    else:
        first, second = turned.cut(3, 0, half), turned.cut(3, half, width)
    made = [first * cos - second * sin, second * cos + first * sin]
    found = stacked(made, 4).reshape(*x.shape[:3], width) if paired else joined(made, 3)
    found = joined([found, rest], 3) if const_value(rest.shape[3]) != 0 else found
    if source.rank == 3:
        found = found.permute(0, 2, 1, 3).reshape(*source.shape)
    return found.x


@onnx_op("com.microsoft.MatMulNBits")
def matmul_bits(c: OnnxContext) -> Imported:
    """Import a product with a matrix of blocks of 2-, 4-, or 8-bit integers with scales."""
    x, packed, scales = (Formula(c, c.input(k)) for k in range(3))
    _reject(c, {4: "g_idx"})
    bits, block = c.integer("bits", 4), c.integer("block_size")
    rows, depth = c.integer("N"), c.integer("K")
    if bits not in (2, 4, 8):
        raise UnsupportedFormError(f"MatMulNBits of {bits} bits is not supported; 2, 4, and 8 are")
    blocks = -(-depth // block)
    weights = _unpacked(packed.reshape(rows, -1), bits, blocks * block)
    weights = weights.reshape(rows, blocks, block).to(f32)
    zero = _optional(c, 3)
    if zero is None:
        offset = number(c, float(1 << (bits - 1)), f32)
    elif zero.dtype is u8:
        offset = _unpacked(zero.reshape(rows, -1), bits, blocks).to(f32).unsqueeze(2)
    else:
        offset = zero.reshape(rows, blocks, 1).to(f32)
    wide = (weights - offset) * scales.reshape(rows, blocks, 1).to(f32)
    matrix = wide.reshape(rows, blocks * block).cut(1, 0, depth).permute(1, 0).to(x.dtype)
    found = x @ matrix
    bias = _optional(c, 5)
    return (found if bias is None else found + bias).x


def _unpacked(x: Formula, bits: int, count: int) -> Formula:
    """Return integers of a row of bytes, the lowest bits first."""
    if bits == 8:
        return x.cut(1, 0, count)
    parts = [
        x.apply("right_shift", k * bits).apply("bitwise_and", (1 << bits) - 1)
        for k in range(8 // bits)
    ]
    return stacked(parts, 2).reshape(x.shape[0], -1).cut(1, 0, count)


@onnx_op("com.microsoft.Attention")
def attention(c: OnnxContext) -> Imported:
    """Import attention with one product for queries, keys, and values."""
    _reject(c, {4: "past", 6: "past_sequence_length"})
    if len([o for o in c.node.output if o]) > 1 or "qkv_hidden_sizes" in c.attributes:
        raise UnsupportedFormError("present keys and values, and own sizes, are not supported")
    x, weights = Formula(c, c.input(0)), Formula(c, c.input(1))
    heads = c.integer("num_heads")
    every = x @ weights
    bias = _optional(c, 2)
    every = _wide(every if bias is None else every + bias)
    batch, length = x.shape[:2]
    hidden = weights.shape[1] // 3
    size = hidden // heads
    q, k, v = (
        every.cut(2, hidden * n, hidden * (n + 1))
        .reshape(batch, length, heads, size)
        .permute(0, 2, 1, 3)
        for n in range(3)
    )
    scale = float(c.attributes.get("scale", 0.0))
    factor = number(c, scale, every.dtype) if scale else (
        1.0 / size_of(c, size).to(every.dtype).apply("sqrt"))  # fmt: skip
    scores = (q @ k.permute(0, 1, 3, 2)) * factor
    mask = _mask(c)
    if mask is not None:
        scores = mask.choose(scores, _MASKED, scores.dtype)
    more = _optional(c, 5)
    scores = scores if more is None else scores + more.to(scores.dtype)
    found = scores.call("softmax", axis=3) @ v
    return found.permute(0, 2, 1, 3).reshape(batch, length, hidden).to(x.dtype).x


def _mask(c: OnnxContext) -> Formula | None:
    """Return whether each query uses each key, from the mask of a node and its order."""
    x = Formula(c, c.input(0))
    size = x.shape[1]
    at = positions(c, size)
    found = None
    if c.integer("unidirectional", 0):
        found = (at.unsqueeze(0) <= at.unsqueeze(1)).unsqueeze(0, 1)
    given = _optional(c, 3)
    if given is None:
        return found
    if given.rank == 1:
        if c.broadcast_shapes([given.shape, (x.shape[0],)]) != (x.shape[0],):
            raise UnsupportedFormError("a mask of starts and ends is not supported")
        mask = (at.unsqueeze(0) < given.to(i64).unsqueeze(1)).unsqueeze(1, 2)
    else:
        mask = ~given.equal(0) if given.dtype is not bool_ else given
        mask = mask.unsqueeze(1, 2) if given.rank == 2 else (
            mask.unsqueeze(1) if given.rank == 3 else mask)  # fmt: skip
    return mask if found is None else found & mask
