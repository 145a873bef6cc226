"""The register tile of a convolution: the one of the least estimated time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...ir.symbolic import const_value, linear_form, product
from ..convolutions import Convolution
from ..machine import Machine

RESERVED: Final = 4
"""The registers for strips of the image, an element of the weights, and intermediate values."""

MAX_VECTORS: Final = 7
"""The most vectors of a strip."""

MAX_CHANNEL_VECTORS: Final = 4
"""The most vectors of channels."""

BROADCAST: Final = 2
"""The registers for an element of the image, and for an intermediate value."""

CHAINS: Final = 8
"""The independent sums that hide the latency of multiply-adds: two units, of four cycles each."""

READ: Final = 0.1
"""The time of a load that runs beside multiply-adds."""

MAX_UNROLLED: Final = 320
"""The most multiply-adds of an unrolled window."""

PARTIAL: Final = 1.05
"""The factor of a partial tile, which has its own code."""

STORED: Final = 2.0
"""The time of storing an element of a vector of channels, in multiply-adds of a vector."""

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
    by_channels : bool
        Whether a vector holds channels, instead of columns.
    masked : bool
        Whether tiles are whole vectors, of which a part may be unused.
    weights_first : bool
        Whether the weights of a tile of channels are used for all rows before those of the next.
    unrolled : bool
        Whether the loops over a window are unrolled.
    reuses_rows : bool
        Whether the terms along the rows of the image are innermost, so that a strip of the image is
        loaded once for all rows of the tile.
    """

    rows: int
    channels: int
    columns: int
    lanes: int
    by_channels: bool
    masked: bool
    weights_first: bool
    unrolled: bool
    reuses_rows: bool = False


@dataclass(frozen=True, slots=True)
class _Option:
    """A number of channels and columns, with its estimated time per multiply-add."""

    channels: int
    columns: int
    vectors: int
    by_channels: bool
    time: float
    rows: int = 0
    """The rows of the tile if each channel has its own window; 0 if they are not chosen yet."""

    @property
    def order(self) -> tuple[float, int]:
        """The time, then the size of the code."""
        return self.time, -self.vectors


def tile_of(
    pattern: Convolution, machine: Machine, *, packed: bool, panel: int = 0
) -> ConvolutionTile:
    """Return the tile of the least estimated time for the sizes that are known.

    Parameters
    ----------
    pattern : Convolution
        The convolution.
    machine : Machine
        The vector registers.
    packed : bool
        Whether the weights can be stored by channels ahead of the call.
    panel : int
        The number of channels of a panel of packed weights, which those of a tile must divide; 0 if
        panels are those of the tile.
    """
    dtype = pattern.block.writes[0].buffer.dtype
    lanes, sums = machine.lanes(dtype), machine.registers - RESERVED
    wide = machine.vector_bits >= WIDE_BITS
    if pattern.shared == 1:
        options = list(_by_rows(pattern, lanes, machine.registers, wide=wide))
    else:
        options = list(_by_columns(pattern, lanes, sums, wide=wide))
    if packed:
        options += _by_channels(pattern, lanes, machine.registers)
    if panel:
        options = [option for option in options if panel % option.channels == 0]
    best = min(options, key=lambda option: option.order)
    rows = best.rows
    if not rows:
        rows = _rows(pattern, sums // best.vectors) if best.vectors < CHAINS else 1
    width, columns = const_value(pattern.column.extent), best.columns
    if best.by_channels:
        extent = const_value(pattern.channel.extent)
        masked = extent is None or extent % best.channels != 0
    else:
        count = columns // lanes
        masked = width is None or not _is_whole(width, lanes) or -(-width // lanes) != count
        columns = columns if masked or width is None else width
    reuses = best.rows > 1
    terms = pattern.along_rows if reuses else pattern.terms
    copies = const_value(product(v.extent for v in terms))
    unrolled = copies is not None and copies * rows * best.vectors <= MAX_UNROLLED
    return ConvolutionTile(
        rows, best.channels, columns, lanes, best.by_channels, masked, _weights_first(pattern),
        unrolled, reuses,
    )  # fmt: skip


def panel_of(pattern: Convolution, machine: Machine) -> int:
    """Return the number of channels of a panel that several kinds of processors share, or 0.

    It is that of the tile of the widest registers.
    """
    wide = machine.widest()
    return 0 if wide is None else tile_of(pattern, wide, packed=True).channels


def _by_columns(pattern: Convolution, lanes: int, sums: int, *, wide: bool) -> Iterator[_Option]:
    """Yield the tiles of channels and of vectors of columns whose sums fit the registers."""
    extent, width = const_value(pattern.channel.extent), const_value(pattern.column.extent)
    known = [size for size in (extent, pattern.shared) if size is not None]
    most = min(known, default=sums)
    for vectors in range(1, MAX_VECTORS + 1):
        if vectors > 1 and width is not None and (vectors - 1) * lanes >= width:
            return
        if vectors > sums or (width is None and vectors > 2):
            return
        for channels in range(1, min(most, sums // vectors) + 1):
            if pattern.shared is not None and pattern.shared % channels != 0:
                continue
            products, reads = channels * vectors, channels + vectors * (2 if wide else 1)
            time = max(products, reads, CHAINS) / products * _excess(extent, channels)
            if extent is not None and extent % channels:
                time *= PARTIAL
            time *= _excess(width, vectors * lanes)
            yield _Option(channels, vectors * lanes, products, by_channels=False, time=time)


def _by_rows(pattern: Convolution, lanes: int, registers: int, *, wide: bool) -> Iterator[_Option]:
    """Yield the tiles of rows and of vectors of columns of a channel that has its own window.

    For each column of a window, a strip of the image is loaded once for all rows of the tile that
    it contributes to. Beside the sums, the registers contain as many strips as rows, times the
    distance of windows. Each element of the window is loaded, too.
    """
    width = const_value(pattern.column.extent)
    window = const_value(product(v.extent for v in pattern.along_rows)) or 1
    distance = _distance(pattern)
    for vectors in range(1, MAX_VECTORS + 1):
        if vectors > 1 and width is not None and (vectors - 1) * lanes >= width:
            return
        if width is None and vectors > 2:
            return
        for rows in _divisors(pattern):
            sums = rows * vectors
            live = min(distance, window) if rows > 1 else 0
            if (1 + live) * sums + BROADCAST > registers:
                continue
            strips = ((rows - 1) * distance + window) * vectors
            products, reads = sums * window, strips * (2 if wide else 1) + window
            time = max(products, reads, CHAINS * window) + READ * reads
            time *= _excess(width, vectors * lanes) / products
            yield _Option(1, vectors * lanes, vectors, by_channels=False, time=time, rows=rows)


def _divisors(pattern: Convolution) -> list[int]:
    """Return the numbers of rows of a tile that leave no partial tile, at most ``CHAINS``."""
    extent = const_value(pattern.rows[-1].extent) if pattern.rows else 1
    return [k for k in range(1, CHAINS + 1) if extent is None or extent % k == 0]


def _distance(pattern: Convolution) -> int:
    """Return the distance of the rows of the image that adjacent rows of the result begin at."""
    if not pattern.rows:
        return 1
    row = pattern.rows[-1].var
    forms = [linear_form(i, (row,)) for i in pattern.image.indices if row in i.free]
    found = [const_value(form.coefficients[row]) for form in forms if form is not None]
    return found[0] or 1 if found else 1


def _by_channels(pattern: Convolution, lanes: int, registers: int) -> Iterator[_Option]:
    """Yield the tiles of columns and of vectors of channels whose sums fit the registers.

    Each element of the image is multiplied by vectors of weights, which stay in registers beside
    the sums. The columns of a tile divide a row, so that no column of a tile is unused.
    """
    extent, width = const_value(pattern.channel.extent), const_value(pattern.column.extent)
    terms = const_value(product(v.extent for v in pattern.terms))
    if extent is None or width is None or terms is None or extent < lanes:
        return
    for vectors in range(1, MAX_CHANNEL_VECTORS + 1):
        channels = vectors * lanes
        if pattern.shared is not None and pattern.shared % channels != 0:
            return
        sums = registers - vectors - BROADCAST
        for columns in range(1, min(width, sums // vectors) + 1):
            if width % columns == 0:
                products, reads = columns * vectors, columns + vectors
                time = max(products, reads, CHAINS) / products + STORED * lanes / terms
                time *= _excess(extent, channels) * (1 if extent % channels == 0 else PARTIAL)
                yield _Option(channels, columns, products, by_channels=True, time=time)


def _excess(extent: int | None, size: int) -> float:
    """Return the elements of whole tiles relative to the extent that they cover."""
    return 1.0 if extent is None else -(-extent // size) * size / extent


def _is_whole(width: int, lanes: int) -> bool:
    """Return whether the last vector of a row has a power of two of elements."""
    rest = width % lanes
    return rest & (rest - 1) == 0


def _rows(pattern: Convolution, most: int) -> int:
    """Return the number of rows of a tile, a divisor of their number if it is known."""
    if not pattern.rows:
        return 1
    extent = const_value(pattern.rows[-1].extent)
    limit = max(1, min(most, CHAINS))
    if extent is None:
        return limit
    return max(k for k in range(1, limit + 1) if extent % k == 0)


def _weights_first(pattern: Convolution) -> bool:
    """Return whether the weights are larger than an image of the batch."""
    sizes = [const_value(product(load.buffer.shape)) for load in (pattern.weight, pattern.image)]
    weights, image = sizes
    return weights is not None and image is not None and weights > image
