"""Convolutions: padding, strides, dilation, groups, and element-wise blocks after them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tests.fuzz.program import Maker, Program, alloc, at, block, buffer, zero

if TYPE_CHECKING:
    import random


def convolution(rng: random.Random) -> Program:
    """Draw a convolution in one or two dimensions, with blocks before and after it."""
    m = Maker(rng)
    dtype = m.dtype("f32", "f32", "f64", "i32", "f16", "i8")
    window, kernel = _windows(m)
    sides = [d for d in ("h", "x") if d in window]
    lead = [("b", m.extent("B", 1, 2))] if m.chance(0.25) else []
    filters = m.extent("F", 1, 3, 9)
    groups = m.pick("all", "all", "depthwise", "shared")
    channels = {"all": m.extent("C", 1, 2, 4), "depthwise": filters}.get(
        groups, f"ceildiv({filters}, 3)"
    )
    at_channel = {"all": "vc", "depthwise": "vo"}.get(groups, "vo // 3")
    sizes = {"h": m.extent("H", 1, 3), "x": m.extent("W", 1, 7, 16, 19)}
    sums = [("c", channels)] if groups == "all" else []
    shape = [*(e for _, e in lead), channels, *(window[d].length(sizes[d]) for d in sides)]
    params, body, local = [buffer("a", shape, dtype)], "", []
    image = "a"
    if m.chance(0.4):
        body, made, local = _padded(m, shape, [d for d, _ in lead], sides, dtype)
        params, image = [made], "p"
    batch = [f"v{d}" for d, _ in lead]
    factors = [
        at(image, [*batch, at_channel, *(window[d].place(d) for d in sides)]),
        at("w", ["vo", *(f"v{d}" for d, _ in sums), *(f"vk{d}" for d in sides)]),
    ]
    rng.shuffle(factors)
    params.append(
        buffer("w", [filters, *(e for _, e in sums), *(str(kernel[d]) for d in sides)], dtype)
    )
    out = [*lead, ("o", filters), *((d, sizes[d]) for d in sides)]
    if m.chance(0.2):
        out = (
            [*out[:-2], out[-1], out[-2]] if len(sides) == 1 else [*lead, out[-2], out[-3], out[-1]]
        )
    after = m.pick("none", "none", "relu", "bias", "both")
    names = {"none": ["y"], "both": ["s", "t", "y"]}.get(after, ["s", "y"])
    result = at(names[0], [f"v{d}" for d, _ in out])
    axes = [(d, e, "spatial") for d, e in out]
    axes += [(d, e, "reduce") for d, e in (*sums, *((f"k{d}", str(kernel[d])) for d in sides))]
    body += block(m, "conv", axes, [
        f"with init(): {result} = {zero(dtype)}", f"{result} += {' * '.join(factors)}",
    ])  # fmt: skip
    if after in {"bias", "both"}:
        params.append(buffer("d", [filters], dtype))
    for k, (source, made) in enumerate(pairwise(names)):
        own = [f"v{d}{k}" for d, _ in out]
        adds = after == "bias" or (after == "both" and k == 0)
        bias = at("d", [own[[d for d, _ in out].index("o")]])
        value = f"{at(source, own)} + {bias}" if adds else f"max({at(source, own)}, {zero(dtype)})"
        later = [(f"{d}{k}", e, "spatial") for d, e in out]
        body += block(m, f"after{k}", later, [f"{at(made, own)} = {value}"])
        local.append(alloc(source, [e for _, e in out], dtype))
    params.append(buffer("y", [e for _, e in out], dtype, "Out"))
    return Program("convolution", m.text(params, body, local))


class _Window:
    """The windows along one dimension of an image."""

    def __init__(self, m: Maker, size: int) -> None:
        self.size = size
        self.stride = m.rng.choice([1, 1, 2, 3])
        self.distance = m.rng.choice([1, 1, 2])

    def length(self, extent: str) -> str:
        """Return the extent of the image for an extent of the result."""
        return f"{extent} * {self.stride} + {(self.size - 1) * self.distance}"

    def place(self, dim: str) -> str:
        """Return the index of an element of a window."""
        return f"v{dim} * {self.stride} + vk{dim} * {self.distance}"


def _windows(m: Maker) -> tuple[dict[str, _Window], dict[str, int]]:
    """Draw the windows of each dimension of an image, and their sizes."""
    sides = ["h", "x"] if m.chance(0.6) else ["x"]
    kernel = {d: m.rng.choice([1, 2, 3]) for d in sides}
    return {d: _Window(m, size) for d, size in kernel.items()}, kernel


def _padded(
    m: Maker, shape: list[str], lead: list[str], sides: list[str], dtype: str
) -> tuple[str, str, list[str]]:
    """Draw a block that pads an image by one element before each row and column."""
    dims = [*lead, "c", *sides]
    outer = [*shape[: -len(sides)], *(f"{e} + 1" for e in shape[-len(sides) :])]
    own = [f"vp{d}" for d in dims]
    inside = " and ".join(f"1 <= vp{d}" for d in sides)
    read = [*own[: -len(sides)], *(f"{v} - 1" for v in own[-len(sides) :])]
    value = f"where({inside}, {at('a', read)}, {zero(dtype)})"
    axes = [(f"p{d}", e, "spatial") for d, e in zip(dims, outer, strict=True)]
    made = block(m, "pad", axes, [f"{at('p', own)} = {value}"])
    return made, buffer("a", shape, dtype), [alloc("p", outer, dtype)]
