"""Execution state of a batch of thread blocks: threads, variables, registers, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ir.thread.nodes import Reg
from .evaluate_terms import Environment
from .findings import Findings, ThreadId
from .memory_model import Segment, SimtMemory
from .provenance import StatementSite
from .race_detector import BarrierOrder
from .traffic import Traffic

Mask: TypeAlias = "NDArray[np.bool_] | None"
"""The active threads; None means all."""

Point: TypeAlias = tuple[int, int, int]
WARP = 32


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of a launch.

    Bounds, alignment and divergence are always checked, because the emulation depends on them.

    Parameters
    ----------
    races : bool
        Check for data races on shared and global memory, including missing barriers.
    definedness : bool
        Check for reads of uninitialized memory.
    traffic : bool
        Count bank conflicts of shared memory and sectors of global memory.
    """

    races: bool = True
    definedness: bool = True
    traffic: bool = True


ALL_CHECKS = Checks()
NO_CHECKS = Checks(races=False, definedness=False, traffic=False)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Grid and block of a launch, and the numbering of threads.

    A warp is 32 consecutive threads in x-fastest order; the last warp of a block is padded.
    """

    grid: Point
    block: Point

    @property
    def blocks(self) -> int:
        """The number of thread blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """The number of threads per block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def padded(self) -> int:
        """The number of threads per block, padded to whole warps."""
        return -(-self.threads // WARP) * WARP

    def thread(self, number: int) -> ThreadId:
        """Return the id of a thread by its number in the grid."""
        block, thread = divmod(int(number), self.padded)
        return ThreadId(_point(block, self.grid), _point(thread, self.block))


def _point(number: int, extent: Point) -> Point:
    rest, x = divmod(number, extent[0])
    z, y = divmod(rest, extent[1])
    return x, y, z


class Frame:
    """The execution state of a batch of thread blocks, on which statements operate.

    Attributes
    ----------
    threads : array of int32
        Number of each thread in the grid.
    thread_index : array of int64
        Index of each thread in the batch.
    block_index : array of int64
        Index of each thread's block in the batch.
    real : mask
        Threads that are not padding.
    active : mask
        Threads that execute the current statement.
    width : int
        Number of active threads.
    returned : mask
        Threads that have returned; None means none.
    registers : dict
        Values of registers by register.
    uninitialized : dict
        The copied uninitialized reads, by the registers that contain their values; the numbers are
        those of `Segment.origins`.
    executed : list of int
        Number of executions of each statement by its ordinal, summed over threads.
    """

    def __init__(
        self,
        geometry: Geometry,
        blocks: NDArray[np.int64],
        memory: SimtMemory,
        environment: Environment,
        *,
        records: tuple[Findings, Traffic],
        checks: Checks,
    ) -> None:
        """Start with all threads active."""
        self.geometry = geometry
        self.blocks = blocks
        self.memory = memory
        self.environment = environment
        self.findings, self.traffic = records
        self.checks = checks
        per_block = geometry.padded
        local = np.arange(per_block, dtype=np.int64)
        self.count = per_block * len(blocks)
        self.threads = (blocks[:, None] * per_block + local).astype(np.int32).reshape(-1)
        self.thread_index = np.arange(self.count, dtype=np.int64)
        self.block_index = self.thread_index // per_block
        real = np.tile(local < geometry.threads, len(blocks))
        self.real: Mask = None if per_block == geometry.threads else real
        self.active: Mask = self.real
        self.returned: Mask = None
        self.registers: dict[Reg, Any] = {}
        self.uninitialized: dict[Reg, NDArray[np.int32]] = {}
        self.memo: dict[Any, Any] = {}
        self.allocated: dict[Any, Segment] = {}
        self.executed: list[int] = []
        self.width = self.count if self.active is None else int(np.count_nonzero(self.active))

    @property
    def order(self) -> BarrierOrder:
        """The happens-before order of the launch."""
        return self.memory.order

    def active_threads(self) -> NDArray[np.bool_]:
        """Return the mask of active threads as an array."""
        return np.ones(self.count, np.bool_) if self.active is None else self.active

    def real_threads(self) -> NDArray[np.bool_]:
        """Return the mask of threads that are not padding as an array."""
        return np.ones(self.count, np.bool_) if self.real is None else self.real

    def narrow(self, bits: NDArray[np.bool_]) -> bool:
        """Restrict the active threads to those whose bit is set; return whether any remains."""
        on = bits if self.active is None else bits & self.active
        self.width = int(np.count_nonzero(on))
        self.active = None if self.width == self.count else on
        return self.width > 0

    def resume(self, active: Mask, width: int) -> None:
        """Restore an earlier set of active threads, without threads that have returned since."""
        self.active, self.width = active, width
        if self.returned is not None:
            self.active = ~self.returned if active is None else active & ~self.returned
            self.width = int(np.count_nonzero(self.active))

    def return_active(self) -> None:
        """Return from the kernel in all active threads."""
        on = self.active_threads()
        self.returned = on.copy() if self.returned is None else self.returned | on
        self.active = np.zeros(self.count, np.bool_)
        self.width = 0

    def thread(self, number: int) -> ThreadId:
        """Return the id of a thread by its number in the grid."""
        return self.geometry.thread(number)

    def barrier(self, site: StatementSite) -> None:
        """Execute a barrier of every block; report blocks with threads that do not reach it."""
        per_block = self.geometry.padded
        arrived = self.active_threads().reshape(-1, per_block)
        expected = self.real_threads().reshape(-1, per_block)
        reached = arrived.any(axis=1)
        divergent = reached & (arrived != expected).any(axis=1)
        if divergent.any():
            self._report_barrier(site, arrived, expected, divergent)
        self.order.pass_block(self.blocks[reached & ~divergent])

    def _report_barrier(
        self,
        site: StatementSite,
        arrived: NDArray[np.bool_],
        expected: NDArray[np.bool_],
        divergent: NDArray[np.bool_],
    ) -> None:
        row = int(np.argmax(divergent))
        missing = expected[row] & ~arrived[row]
        base = int(self.blocks[row]) * self.geometry.padded
        absent = self.thread(base + int(np.argmax(missing)))
        waiting = self.thread(base + int(np.argmax(arrived[row])))
        returned = self.returned is not None and bool(
            self.returned.reshape(arrived.shape)[row][int(np.argmax(missing))]
        )
        message = (
            f"{int(arrived[row].sum())} of {int(expected[row].sum())} threads of a block reach "
            f"the barrier; {absent} does not" + (", because it has returned" if returned else "")
        )
        self.findings.add(
            "divergent barrier",
            site,
            message,
            count=int(divergent.sum()),
            threads=(waiting, absent),
        )

    def warp_barrier(self, site: StatementSite) -> None:
        """Execute a barrier of every warp; report warps with threads that do not reach it."""
        reached = self.check_converged(site, "the warp barrier")
        warps = (self.threads.reshape(-1, WARP)[:, 0][reached] // WARP).astype(np.int64)
        self.order.pass_warp(warps)

    def check_converged(self, site: StatementSite, operation: str) -> NDArray[np.bool_]:
        """Return the warps that execute an operation; report those that do so only partially."""
        active = self.active_threads().reshape(-1, WARP)
        reached: NDArray[np.bool_] = np.any(active, axis=1)
        divergent = reached & ~np.all(active, axis=1)
        if divergent.any():
            row = int(np.argmax(divergent))
            lane = int(np.argmax(~active[row]))
            first = self.thread(int(self.threads[row * WARP + int(np.argmax(active[row]))]))
            message = (
                f"{int(active[row].sum())} of {WARP} threads of a warp execute {operation}: "
                f"{first} does, lane {lane} of its warp does not"
            )
            self.findings.add(
                "divergent operation", site, message, count=int(divergent.sum()), threads=(first,)
            )
        return reached
