"""The register tile of a convolution: the one of the least estimated time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...ir.symbolic import const_value, product
from ..convolutions import Convolution
from ..machine import Machine

RESERVED: Final = 4
"""The registers for strips of the image, an element of the weights, and intermediate values."""

MAX_VECTORS: Final = 7
"""The most vectors of a strip."""

CHAINS: Final = 8
"""The independent sums that hide the latency of multiply-adds: two units, of four cycles each."""

MAX_UNROLLED: Final = 320
"""The most multiply-adds of an unrolled window."""

WIDE_BITS: Final = 512
"""The width of a vector as long as a cache line, of which an unaligned load reads two."""


@dataclass(frozen=True, slots=True)
class ConvolutionTile:
    """A register tile of a convolution.

    Parameters
    ----------
    rows, channels, columns : int
        The number of rows, channels, and columns of the result.
    lanes : int
        The number of elements of a vector register.
    masked : bool
        Whether columns are whole vectors, of which a part may be unused.
    weights_first : bool
        Whether the weights of a tile of channels are used for all rows before those of the next.
    unrolled : bool
        Whether the loops over a window are unrolled.
    """

    rows: int
    channels: int
    columns: int
    lanes: int
    masked: bool
    weights_first: bool
    unrolled: bool


def tile_of(pattern: Convolution, machine: Machine) -> ConvolutionTile:
    """Return the tile of the least estimated time for the sizes that are known."""
    dtype = pattern.block.writes[0].buffer.dtype
    lanes, sums = machine.lanes(dtype), machine.registers - RESERVED
    width = const_value(pattern.column.extent)
    wide = machine.vector_bits >= WIDE_BITS
    options = list(_options(pattern, lanes, sums))
    channels, vectors = min(options, key=lambda o: _time(pattern, o, lanes, wide=wide))
    whole = width is not None and _is_whole(width, lanes) and -(-width // lanes) == vectors
    rows = _rows(pattern, sums // (channels * vectors)) if channels * vectors < CHAINS else 1
    columns = width if whole and width is not None else vectors * lanes
    window = const_value(product(v.extent for v in pattern.terms))
    unrolled = window is not None and window * rows * channels * vectors <= MAX_UNROLLED
    return ConvolutionTile(
        rows, channels, columns, lanes, not whole, _weights_first(pattern), unrolled
    )


def _options(pattern: Convolution, lanes: int, sums: int) -> Iterator[tuple[int, int]]:
    """Yield numbers of channels, and of vectors of columns, whose sums fit the registers."""
    extent = const_value(pattern.channel.extent)
    known = [size for size in (extent, pattern.shared) if size is not None]
    most = min(known, default=sums)
    width = const_value(pattern.column.extent)
    for vectors in range(1, MAX_VECTORS + 1):
        if vectors > 1 and width is not None and (vectors - 1) * lanes >= width:
            return
        if vectors > sums or (width is None and vectors > 2):
            return
        for channels in range(1, min(most, sums // vectors) + 1):
            if pattern.shared is None or pattern.shared % channels == 0:
                yield channels, vectors


def _time(
    pattern: Convolution, option: tuple[int, int], lanes: int, *, wide: bool
) -> tuple[float, int]:
    """Return the estimated time of a multiply-add of the result, and the code size."""
    channels, vectors = option
    products, reads = channels * vectors, channels + vectors * (2 if wide else 1)
    time = max(products, reads, CHAINS if pattern.shared != 1 else 1) / products
    extent, width = const_value(pattern.channel.extent), const_value(pattern.column.extent)
    if extent is not None:
        time *= -(-extent // channels) * channels / extent
        time *= 1 if extent % channels == 0 else 1.05  # the partial tile has its own code
    if width is not None:
        time *= -(-width // (vectors * lanes)) * vectors * lanes / width
    return time, -products


def _is_whole(width: int, lanes: int) -> bool:
    """Return whether the last vector of a row has a power of two of elements."""
    rest = width % lanes
    return rest & (rest - 1) == 0


def _rows(pattern: Convolution, most: int) -> int:
    """Return the number of rows of a tile, a divisor of their number if it is known."""
    if not pattern.rows:
        return 1
    extent = const_value(pattern.rows[-1].extent)
    limit = max(1, min(most, CHAINS // 2))
    if extent is None:
        return limit
    return max(k for k in range(1, limit + 1) if extent % k == 0)


def _weights_first(pattern: Convolution) -> bool:
    """Return whether the weights are larger than an image of the batch."""
    sizes = [const_value(product(load.buffer.shape)) for load in (pattern.weight, pattern.image)]
    weights, image = sizes
    return weights is not None and image is not None and weights > image
