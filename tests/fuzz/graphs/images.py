"""Convolutions, pooling, and padding of images with one or two spatial dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.symbolic import as_expr, const_value, product

from tests.fuzz.graphs.maker import FLOATS, UNSIGNED, Tensor, largest, least
from tests.fuzz.graphs.operators import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewright.ir.symbolic import Expr

    from tests.fuzz.graphs.maker import GraphMaker
    from tests.fuzz.graphs.operators import Draw

DTYPES = ("f32", "f32", "f32", "f16", "bf16", "i32", "i8", "f64")
MODES = ("constant", "edge", "reflect", "wrap")


def image(m: GraphMaker, *, real: bool = False) -> Tensor | None:
    """Pick an image with constant channels, or add one as an input."""

    def fits(t: Tensor) -> bool:
        channels = const_value(t.shape[1]) if t.rank in (3, 4) else None
        kind = t.is_float if real else number(t) and t.dtype not in UNSIGNED
        return kind and bool(channels) and t.bound <= 100

    found = m.pick(fits)
    if found is not None and m.chance(0.8):
        return found
    spatial = tuple(extent(m) for _ in range(m.rng.choice([1, 2, 2])))
    batch = m.symbol("n") if m.chance(0.5) else as_expr(m.rng.choice([0, 1, 2]))
    shape = (batch, as_expr(m.rng.choice([1, 2, 3, 4])), *spatial)
    return m.param(shape, m.rng.choice(FLOATS[:4] if real else DTYPES)) or found


def extent(m: GraphMaker) -> object:
    """Draw a spatial dimension: a constant, a symbol, or one with enough elements for windows."""
    if m.chance(0.5):
        return as_expr(m.rng.choice([1, 2, 3, 4, 5, 7]))
    return m.symbol("h", least=m.rng.choice([1, 2, 4])) if m.chance(0.7) else m.symbol("m")


def windows(m: GraphMaker, rank: int, *, limited: bool = False) -> dict[str, object]:
    """Draw strides, padding and dilation; limited padding is less than the extent of a window."""
    made: dict[str, object] = {}
    if m.chance(0.5):
        made["strides"] = tuple(m.rng.choice([1, 2, 3]) for _ in range(rank))
    if m.chance(0.6):
        most = 1 if limited else 2
        made["padding"] = tuple(m.rng.randint(0, most) for _ in range(2 * rank))
    if m.chance(0.25):
        made["dilation"] = tuple(m.rng.choice([1, 2]) for _ in range(rank))
    return made


def worked(m: GraphMaker, made: Tensor | None, terms: Expr | int) -> Tensor | None:
    """Note how many elements a result combines."""
    if made is not None:
        m.work.append(product(made.shape) * terms)
    return made


def conv(m: GraphMaker) -> object:
    """Add a convolution or its transpose, sometimes with a bias and an activation."""
    x = image(m)
    if x is None:
        return None
    channels, rank = const_value(x.shape[1]) or 1, x.rank - 2
    groups = m.rng.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    kernel = tuple(as_expr(m.rng.choice([1, 1, 2, 3])) for _ in range(rank))
    part = m.rng.choice([1, 2, 3])
    attributes = windows(m, rank) | ({"groups": groups} if groups > 1 else {})
    terms = largest(product(kernel)) * channels
    bound = max(1.0, 3 * x.bound * terms)
    if m.chance(0.7):
        shape = (as_expr(part * groups), as_expr(channels // groups), *kernel)
        made = m.emit("conv", x, m.constant(shape, x.dtype), bound=bound, **attributes)
    else:
        shape = (as_expr(channels), as_expr(part), *kernel)
        strides = attributes.get("strides", (1,) * rank)
        if m.chance(0.3):
            extra = tuple(m.rng.randint(0, max(0, s - 1)) for s in strides)  # type: ignore[attr-defined]
            attributes["output_padding"] = extra
        made = m.emit("conv_transpose", x, m.constant(shape, x.dtype), bound=bound, **attributes)
    made = worked(m, made, terms)
    if made is not None and m.chance(0.4):
        bias = m.constant((made.shape[1], *(as_expr(1),) * rank), made.dtype)
        made = m.emit("add", made, bias, bound=made.bound + bias.bound)
        if made is not None and m.chance(0.5):
            made = m.emit("relu", made)
    return made


def pool(m: GraphMaker) -> object:
    """Add maxima or means of windows, or of almost equal parts."""
    means = m.rounding and m.chance(0.5)
    x = image(m, real=means)
    if x is None:
        return None
    rank = x.rank - 2
    if m.chance(0.35):
        sizes = tuple(as_expr(m.rng.choice([1, 1, 2, 3])) for _ in range(rank))
        if any(least(d) == 0 for d in x.shape[2:]):
            return None
        terms = product(x.shape[2:])
        op = "adaptive_avg_pool" if means else "adaptive_max_pool"
        return worked(m, m.emit(op, x, sizes, rounds=means), terms)
    kernel = tuple(m.rng.choice([1, 2, 2, 3]) for _ in range(rank))
    attributes: dict[str, object] = {"kernel": kernel, **windows(m, rank, limited=True)}
    attributes |= {"ceil": True} if m.chance(0.3) else {}
    if means and m.chance(0.4):
        attributes["count_padding"] = False
    terms = max(1, largest(product(map(as_expr, kernel))))
    return worked(m, m.emit("avg_pool" if means else "max_pool", x, rounds=means, **attributes),
                  terms)  # fmt: skip


def pad(m: GraphMaker) -> object:
    """Add elements around a value, by constants, a symbol, or the elements themselves."""
    x = m.pick(lambda t: 0 < t.rank <= 4)
    if x is None:
        return None

    def sizes() -> tuple:
        own = [as_expr(m.rng.choice([0, 0, 1, 2])) for _ in range(x.rank)]
        if m.chance(0.2):
            own[m.rng.randrange(x.rank)] = m.dim()
        return tuple(own)

    mode = m.rng.choice(MODES)
    value = ()
    if mode == "constant" and m.chance(0.5):
        value = (True if x.dtype == "bool" else 2.0 if x.is_float else 1,)
    bound = max(x.bound, 2.0)
    return m.emit("pad", x, sizes(), sizes(), *value, mode=mode, bound=bound)


IMAGES: Mapping[Draw, int] = {conv: 4, pool: 3, pad: 2}
