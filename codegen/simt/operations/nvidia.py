"""Operations of NVIDIA GPUs: shuffles, matrix loads, tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....ir.thread.operations import nvidia as ops
from ..arrays import where
from ..findings import TrapError
from . import fragments
from .fragments import LANES, Table
from .handler import Group, Handler


def _butterfly(lane: Any, operand: Any) -> Any:
    return lane ^ (operand & 31)


def _down(lane: Any, operand: Any) -> Any:
    source = lane + (operand & 31)
    return where(source <= 31, source, lane)


def _index(_lane: Any, operand: Any) -> Any:
    return operand & 31


def _shuffle(source: Callable[[Any, Any], Any]) -> Handler:
    """Return the handler of ``shfl.sync`` (PTX ISA 9.7.9.6) with all lanes and the clamp 0x1f."""
    lanes = np.arange(LANES, dtype=np.int64)

    def shuffle(group: Group, operands: Sequence[Any]) -> Sequence[Any]:
        values, operand = (group.by_warp(x) for x in operands)
        selected = source(lanes, operand.astype(np.int64))
        return (np.take_along_axis(values, selected, axis=1).reshape(-1),)

    return shuffle


@dataclass(frozen=True, slots=True, eq=False)
class MatrixLoad:
    """``ldmatrix``: rows are read at the lanes' addresses and distributed by a table.

    Parameters
    ----------
    count : int
        Number of matrices.
    table : Table
        The elements of each matrix that a lane receives.
    """

    count: int
    table: Table

    def __call__(self, group: Group, operands: Sequence[Any]) -> Sequence[Any]:
        """Execute the load."""
        frame = group.frame
        lane = np.arange(frame.count) % LANES
        rows = group.rows(operands[0], lane < 8 * self.count, self._receivers())
        elements = rows.reshape(-1, LANES, 8)
        address_lanes = fragments.address_lanes(self.count)
        results: list[Any] = []
        for matrix in range(self.count):
            # The lane with the address of row r of the matrix, and the column in this row.
            row, column = address_lanes[matrix][self.table[:, :, 0]], self.table[:, :, 1]
            received = elements[:, row, column].view(np.float16)
            results.append(np.ascontiguousarray(received.reshape(-1, 2).T))
        return results

    def _receivers(self) -> NDArray[np.int64]:
        """Return the lane that receives each element at a lane's address, as ``(8, 32)``."""
        receivers = np.zeros((8, LANES), np.int64)
        address_lanes = fragments.address_lanes(self.count)
        for matrix in range(self.count):
            for lane in range(LANES):
                for row, column in self.table[lane]:
                    receivers[column, address_lanes[matrix][row]] = lane
        return receivers


@dataclass(frozen=True, slots=True, eq=False)
class MatrixMultiply:
    """``mma.sync.m16n8k16.row.col``: ``D = A @ B + C`` on fragments.

    Products of f16 are exact in f64. They are summed in f64 and rounded once to the accumulator:
    PTX requires at least single precision of the sum and does not specify its order.

    Parameters
    ----------
    a, b, c, d : Table
        Fragment layouts.
    accumulator : numpy.dtype
        f32, one element per register, or f16, two elements per register.
    """

    a: Table
    b: Table
    c: Table
    d: Table
    accumulator: np.dtype[Any]

    def __call__(self, group: Group, operands: Sequence[Any]) -> Sequence[Any]:
        """Execute the multiplication."""
        left = _assemble(_elements(group, operands[:4]), self.a, (16, 16))
        right = _assemble(_elements(group, operands[4:6]), self.b, (16, 8))
        start = _assemble(_elements(group, operands[6:]), self.c, (16, 8))
        total = (left @ right + start).astype(self.accumulator)
        lanes = total[:, self.d[:, :, 0], self.d[:, :, 1]]
        columns = lanes.reshape(-1, self.d.shape[1]).T
        if self.accumulator == np.float32:
            return [np.ascontiguousarray(column) for column in columns]
        return [np.ascontiguousarray(columns[k : k + 2]) for k in range(0, len(columns), 2)]


def _elements(group: Group, registers: Sequence[Any]) -> NDArray[Any]:
    """Return the elements of registers, low to high, as ``(warps, 32, elements)``."""
    rows = [group.by_warp(r) for r in registers]
    wide = [r if r.ndim == 3 else r[None] for r in rows]
    return np.moveaxis(np.concatenate(wide), 0, 2)


def _assemble(elements: NDArray[Any], table: Table, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the matrix of each warp from the elements of its lanes."""
    matrix = np.zeros((len(elements), *shape), np.float64)
    matrix[:, table[:, :, 0], table[:, :, 1]] = elements
    return matrix


def multiply(accumulator: np.dtype[Any]) -> MatrixMultiply:
    """Return the handler with the fragment layouts of the PTX ISA."""
    sums = fragments.accumulator()
    return MatrixMultiply(
        fragments.multiplicand_a(), fragments.multiplicand_b(), sums, sums, accumulator
    )


def _load(count: int, *, transposed: bool) -> MatrixLoad:
    return MatrixLoad(count, fragments.loaded(transposed=transposed))


def _trap(group: Group, operands: Sequence[Any]) -> Sequence[Any]:
    """Abort the launch, as a GPU does, and report the value and its bound."""
    frame = group.frame
    first = int(np.argmax(frame.active_threads()))
    thread = frame.thread(int(frame.threads[first]))
    value, bound = (int(np.broadcast_to(x, (frame.count,))[first]) for x in operands)
    problem = group.site.note or "an index or an integer read from memory is out of range"
    limit = "exclusive upper bound" if value >= bound else "bound"
    raise TrapError(
        f"{thread} aborted the launch: {problem} (value {value}, {limit} {bound})",
        where=f"{group.site} of kernel {frame.findings.kernel!r}",
        hint="check the index, or the range that the program declares for the integer",
    )


NVIDIA: dict[str, Handler] = {
    ops.SHUFFLE_BUTTERFLY_F32.name: _shuffle(_butterfly),
    ops.SHUFFLE_BUTTERFLY_I32.name: _shuffle(_butterfly),
    ops.SHUFFLE_DOWN_F32.name: _shuffle(_down),
    ops.SHUFFLE_DOWN_I32.name: _shuffle(_down),
    ops.SHUFFLE_INDEX_F32.name: _shuffle(_index),
    ops.SHUFFLE_INDEX_I32.name: _shuffle(_index),
    ops.LDMATRIX_X4.name: _load(4, transposed=False),
    ops.LDMATRIX_X2.name: _load(2, transposed=False),
    ops.LDMATRIX_X4_TRANSPOSED.name: _load(4, transposed=True),
    ops.LDMATRIX_X2_TRANSPOSED.name: _load(2, transposed=True),
    ops.MMA_M16N8K16_F32.name: multiply(np.dtype(np.float32)),
    ops.MMA_M16N8K16_F16.name: multiply(np.dtype(np.float16)),
    ops.TRAP.name: _trap,
}
