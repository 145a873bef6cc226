"""The state of the blocks that run together: their threads, variables, registers, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ir.thread.nodes import Reg
from .findings import Findings, ThreadId
from .memory import Memory, Segment
from .shadow import Order
from .sites import Site
from .terms import Environment
from .traffic import Traffic

Mask: TypeAlias = "NDArray[np.bool_] | None"
"""Which threads are on; None: all of them."""

Point: TypeAlias = tuple[int, int, int]
WARP = 32


@dataclass(frozen=True, slots=True)
class Checks:
    """What a launch is checked for.

    Parameters
    ----------
    races : bool
        Data races on shared and global memory, missing barriers with them.
    definedness : bool
        Reads of memory that nothing has written.
    traffic : bool
        Bank conflicts and sectors, as counters.

    Bounds, alignment and divergence are always checked: without them nothing can be computed.
    """

    races: bool = True
    definedness: bool = True
    traffic: bool = True


ALL_CHECKS = Checks()
NO_CHECKS = Checks(races=False, definedness=False, traffic=False)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Grid and block of a launch, and how threads are numbered.

    Warps are 32 neighbours in x-fastest order; the last warp of a block is padded.
    """

    grid: Point
    block: Point

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def real(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def padded(self) -> int:
        """Threads of a block with the last warp filled up."""
        return -(-self.real // WARP) * WARP

    def thread(self, number: int) -> ThreadId:
        """Name a thread by its number in the grid."""
        block, thread = divmod(int(number), self.padded)
        return ThreadId(_point(block, self.grid), _point(thread, self.block))


def _point(number: int, extent: Point) -> Point:
    rest, x = divmod(number, extent[0])
    z, y = divmod(rest, extent[1])
    return x, y, z


class Frame:
    """What the statements of a kernel run on.

    Attributes
    ----------
    threads : array of int32
        The number of each thread in the grid.
    unit : array of int64
        The block of each thread, counted among those that run together.
    exist : mask
        Threads that are no padding.
    active : mask
        Threads that run the statement at hand.
    left : mask
        Threads that have returned; None: nobody has.
    width : int
        How many those are.
    registers : dict
        Values of registers by register.
    executed : list of int
        How many threads did each statement, by its ordinal, all times together.
    """

    def __init__(
        self,
        geometry: Geometry,
        blocks: NDArray[np.int64],
        memory: Memory,
        environment: Environment,
        *,
        records: tuple[Findings, Traffic],
        checks: Checks,
    ) -> None:
        """Start with every thread at the first statement."""
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
        self.number = np.arange(self.count, dtype=np.int64)
        self.unit = self.number // per_block
        exist = np.tile(local < geometry.real, len(blocks))
        self.exist: Mask = None if per_block == geometry.real else exist
        self.active: Mask = self.exist
        self.left: Mask = None
        self.registers: dict[Reg, Any] = {}
        self.memo: dict[Any, Any] = {}
        self.allocated: dict[Any, Segment] = {}
        self.executed: list[int] = []
        self.width = self.count if self.active is None else int(np.count_nonzero(self.active))

    @property
    def order(self) -> Order:
        """The barriers passed."""
        return self.memory.order

    def on(self) -> NDArray[np.bool_]:
        """Give the active threads as an array."""
        return np.ones(self.count, np.bool_) if self.active is None else self.active

    def present(self) -> NDArray[np.bool_]:
        """Give the threads that exist as an array."""
        return np.ones(self.count, np.bool_) if self.exist is None else self.exist

    # ------------------------------------------------------------ divergence

    def narrow(self, bits: NDArray[np.bool_]) -> bool:
        """Go on with the active threads whose bit is set; tell whether there are any."""
        on = bits if self.active is None else bits & self.active
        self.width = int(np.count_nonzero(on))
        self.active = None if self.width == self.count else on
        return self.width > 0

    def resume(self, active: Mask, width: int) -> None:
        """Go back to threads that were active before, without those that have returned."""
        self.active, self.width = active, width
        if self.left is not None:
            self.active = ~self.left if active is None else active & ~self.left
            self.width = int(np.count_nonzero(self.active))

    def leave(self) -> None:
        """Let the active threads return."""
        on = self.on()
        self.left = on.copy() if self.left is None else self.left | on
        self.active = np.zeros(self.count, np.bool_)
        self.width = 0

    # ------------------------------------------------------------ findings

    def thread(self, number: int) -> ThreadId:
        """Name a thread by its number in the grid."""
        return self.geometry.thread(number)

    def barrier(self, site: Site) -> None:
        """Let every block wait for its threads; those that wait alone are reported."""
        per_block = self.geometry.padded
        here = self.on().reshape(-1, per_block)
        wanted = self.present().reshape(-1, per_block)
        some = here.any(axis=1)
        short = some & (here != wanted).any(axis=1)
        if short.any():
            self._report_barrier(site, here, wanted, short)
        self.order.pass_block(self.blocks[some & ~short])

    def _report_barrier(
        self,
        site: Site,
        here: NDArray[np.bool_],
        wanted: NDArray[np.bool_],
        short: NDArray[np.bool_],
    ) -> None:
        row = int(np.argmax(short))
        missing = wanted[row] & ~here[row]
        base = int(self.blocks[row]) * self.geometry.padded
        absent = self.thread(base + int(np.argmax(missing)))
        waiting = self.thread(base + int(np.argmax(here[row])))
        gone = self.left is not None and bool(
            self.left.reshape(here.shape)[row][int(np.argmax(missing))]
        )
        message = (
            f"{int(here[row].sum())} of {int(wanted[row].sum())} threads wait, "
            f"{absent} does not come" + (": it has returned" if gone else "")
        )
        self.findings.add(
            "divergent barrier", site, message, count=int(short.sum()), threads=(waiting, absent)
        )

    def warp_barrier(self, site: Site) -> None:
        """Let every warp wait for its threads."""
        whole = self.converged(site, "a warp's barrier")
        warps = (self.threads.reshape(-1, WARP)[:, 0][whole] // WARP).astype(np.int64)
        self.order.pass_warp(warps)

    def converged(self, site: Site, what: str) -> NDArray[np.bool_]:
        """Tell which warps are here, reporting those that are not here as a whole."""
        here = self.on().reshape(-1, WARP)
        wanted = np.ones_like(here)
        some: NDArray[np.bool_] = np.any(here, axis=1)
        short = some & ~np.all(here, axis=1)
        if short.any():
            row = int(np.argmax(short))
            lane = int(np.argmax(wanted[row] & ~here[row]))
            first = self.thread(int(self.threads[row * WARP + int(np.argmax(here[row]))]))
            message = (
                f"{int(here[row].sum())} of 32 threads of a warp do {what}, "
                f"lane {lane} does not; {first} does"
            )
            self.findings.add(
                "divergent operation", site, message, count=int(short.sum()), threads=(first,)
            )
        return some
