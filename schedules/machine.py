"""Properties of a processor that default schedules depend on: registers, intrinsics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.symbolic import const_value
from ..target.cpus import LEVELS, cpu_of
from ..target.target import Target, provides
from .intrinsics.contract import Intrinsic
from .intrinsics.registry import intrinsics_for


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile of a matmul.

    Parameters
    ----------
    rows : int
        The number of rows of the result.
    columns : int
        The number of columns of the result.
    group : int
        The number of elements of k that one lane multiplies and adds.
    intrinsic : str
        The name of the intrinsic that computes the tile; empty for multiply-add instructions.
    """

    rows: int
    columns: int
    group: int = 1
    intrinsic: str = ""

    @property
    def work(self) -> int:
        """The number of products of one tile."""
        return self.rows * self.columns * self.group


@dataclass(frozen=True, slots=True)
class Machine:
    """The vector registers of a processor.

    Parameters
    ----------
    vector_bits : int
        The width of a vector register in bits.
    registers : int
        The number of vector registers.
    target : Target or None
        The target, whose intrinsics may be used; None for no intrinsics.
    """

    vector_bits: int
    registers: int
    target: Target | None = None

    def lanes(self, dtype: DType) -> int:
        """Return the number of elements of a dtype in one vector register.

        Elements of a dtype without a machine type are computed in a wider dtype.
        """
        of = dtype if dtype.part.is_machine else dtype.compute
        return max(1, self.vector_bits // of.bits)

    def tile(self, dtype: DType) -> Tile:
        """Return the register tile of a matmul that uses multiply-add instructions.

        The tile has two vectors per row. Four registers remain for a row of B, an element of A, and
        intermediate values.
        """
        return Tile((self.registers - 4) // 2, 2 * self.lanes(dtype))

    def panel(self, tile: Tile) -> int:
        """Return the number of columns of a panel of packed weights: one or several tiles.

        Examples
        --------
        >>> from ..ir.dtype import f32
        >>> machine = machine_of(Target("cpu", features=("avx2",), panel_bits=1024))
        >>> tile = machine.tile(f32)
        >>> tile.columns, machine.panel(tile)
        (16, 32)
        """
        if self.target is None or tile.group > 1:
            return tile.columns
        return tile.columns * max(1, self.target.panel_bits // (2 * self.vector_bits))

    def widest(self) -> Machine | None:
        """Return the processor whose registers determine shared panels; None if it is this one."""
        bits = (self.target.panel_bits if self.target is not None else 0) // 2
        if bits <= self.vector_bits:
            return None
        cpu = next(cpu for cpu in LEVELS.values() if cpu.vector_bits == bits)
        return Machine(cpu.vector_bits, cpu.registers)

    def tile_of(self, left: DType, right: DType, output: DType) -> Tile:
        """Return the tile of the intrinsic with the most products, else a multiply-add tile."""
        found = list(self._instructions((left, right, output)))
        return max(found, key=lambda tile: tile.work) if found else self.tile(output)

    def packing(self, dtype: DType, tile: Tile) -> str:
        """Return the intrinsic that packs the right operand for a tile; empty if none does."""
        shapes = [[tile.group, tile.columns], [tile.columns, tile.group]]
        for intrinsic in self._certain():
            buffers = intrinsic.semantics.buffer_params
            if _shapes(intrinsic) == shapes and {b.dtype for b in buffers} == {dtype}:
                return intrinsic.name
        return ""

    def _certain(self) -> Iterator[Intrinsic]:
        """Yield the intrinsics that the target is known to provide."""
        if self.target is not None:
            for intrinsic in intrinsics_for(self.target):
                if all(provides(self.target, need) for need in intrinsic.needs):
                    yield intrinsic

    def _instructions(self, dtypes: tuple[DType, DType, DType]) -> Iterator[Tile]:
        """Yield the tiles of the intrinsics of the target with the given dtypes."""
        for intrinsic in self._certain():
            tile = _tile_of(intrinsic)
            buffers = intrinsic.semantics.buffer_params
            if tile is not None and tuple(b.dtype for b in buffers) == dtypes:
                yield tile


def _tile_of(intrinsic: Intrinsic) -> Tile | None:
    """Return an intrinsic as a tile ``C[i, j] += A[i, k] * B[j, k]``; None if it is not one."""
    match _shapes(intrinsic):
        case [[rows], [columns], [r, c]] if (rows, columns) == (r, c):
            return Tile(rows, columns, 1, intrinsic.name)
        case [[rows, k], [columns, depth], [r, c]] if (rows, columns, k) == (r, c, depth):
            return Tile(rows, columns, k, intrinsic.name)
        case _:
            return None


def _shapes(intrinsic: Intrinsic) -> list[list[int]]:
    return [[const_value(d) or 0 for d in b.shape] for b in intrinsic.semantics.buffer_params]


def machine_of(target: Target | None) -> Machine:
    """Return the properties of a target; without one, those of a CPU with 512-bit vectors.

    Examples
    --------
    >>> machine_of(Target("cpu", features=("avx2", "fma"))).vector_bits
    256
    >>> machine_of(Target("cpu", arch="aarch64")).vector_bits
    128
    """
    cpu = cpu_of(target.arch, target.features) if target is not None else cpu_of("", ())
    return Machine(cpu.vector_bits, cpu.registers, target)
