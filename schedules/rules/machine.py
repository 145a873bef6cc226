"""The few facts about a processor that shape a default schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...ir.dtype import DType
from ...ir.symbolic import const_value
from ...ir.target import Target, provides
from ..intrinsics.contract import Intrinsic
from ..intrinsics.registry import intrinsics_for

FAMILIES: Final = {"aarch64": (128, 32), "riscv64": (64, 32), "wasm32": (128, 16)}
"""Vector bits and registers of the least processor of other families; without vectors, those of
the floating-point unit."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile of a matmul: rows, columns, and the elements of k that one lane takes.

    ``intrinsic`` is the instruction that does it, empty where multiplies and adds do.
    """

    rows: int
    columns: int
    group: int = 1
    intrinsic: str = ""

    @property
    def work(self) -> int:
        """Products of one tile."""
        return self.rows * self.columns * self.group


@dataclass(frozen=True, slots=True)
class Machine:
    """Vector width in bits, how many vector registers there are, and whose they are."""

    vector_bits: int
    registers: int
    target: Target | None = None

    def lanes(self, dtype: DType) -> int:
        """Elements of a dtype in one vector register."""
        return max(1, self.vector_bits // dtype.bits)

    def tile(self, dtype: DType) -> Tile:
        """Give the register tile of a matmul by multiplies and adds.

        Two vectors a row; accumulators, one row of B and one broadcast fill the registers.
        """
        return Tile((self.registers - 4) // 2, 2 * self.lanes(dtype))

    def tile_of(self, left: DType, right: DType, output: DType) -> Tile:
        """Give the register tile of a matmul: the instruction that does most, if there is one."""
        found = list(self._instructions((left, right, output)))
        return max(found, key=lambda tile: tile.work) if found else self.tile(output)

    def packing(self, dtype: DType, tile: Tile) -> str:
        """Name the instruction that packs the right side for a tile; empty where there is none."""
        shapes = [[tile.group, tile.columns], [tile.columns, tile.group]]
        for intrinsic in self._certain():
            buffers = intrinsic.semantics.buffer_params
            if _shapes(intrinsic) == shapes and {b.dtype for b in buffers} == {dtype}:
                return intrinsic.name
        return ""

    def _certain(self) -> Iterator[Intrinsic]:
        """Iterate the instructions that the machine surely has."""
        if self.target is not None:
            for intrinsic in intrinsics_for(self.target):
                if all(provides(self.target, need) for need in intrinsic.needs):
                    yield intrinsic

    def _instructions(self, dtypes: tuple[DType, DType, DType]) -> Iterator[Tile]:
        """Iterate the tiles of the machine's instructions."""
        for intrinsic in self._certain():
            tile = _tile_of(intrinsic)
            buffers = intrinsic.semantics.buffer_params
            if tile is not None and tuple(b.dtype for b in buffers) == dtypes:
                yield tile


def _tile_of(intrinsic: Intrinsic) -> Tile | None:
    """Read an instruction as a tile ``C[i, j] += A[i, k] * B[j, k]``, if it is one."""
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
    """Give the facts of a target; without one, those of a processor with 512-bit vectors.

    Examples
    --------
    >>> machine_of(Target("cpu", features=("avx2", "fma"))).vector_bits
    256
    >>> machine_of(Target("cpu", arch="aarch64")).vector_bits
    128
    """
    if target is not None and target.arch in FAMILIES:
        return Machine(*FAMILIES[target.arch], target)
    features = target.features if target else ()
    if features and not any(f.startswith("avx512") for f in features):
        return Machine(256, 16, target)
    return Machine(512, 32, target)
