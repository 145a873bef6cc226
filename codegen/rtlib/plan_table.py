"""Tables of the storages of a function, which are constant data for the memory planner.

The storages of a function and their live ranges are known when the function is compiled; their
sizes are known when it is called. A table contains everything that does not depend on the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import layout


@dataclass(frozen=True, slots=True)
class PlanLayout:
    """The sizes of the records of a workspace in bytes.

    Parameters
    ----------
    keys : int
        The number of symbols whose values determine the sizes.
    storages : int
        The number of storages.
    """

    keys: int
    storages: int

    @property
    def shape_bytes(self) -> int:
        """The size of the record of a shape."""
        return layout.SHAPE_KEYS + 8 * self.keys

    @property
    def plan_bytes(self) -> int:
        """The size of a plan: its header, then the offsets and the capacities of all storages."""
        return layout.PLAN_OFFSETS + 16 * self.storages

    @property
    def plans(self) -> int:
        """The offset of the plans in a workspace."""
        return layout.SLOT_SHAPES + layout.SHAPE_COUNT * self.shape_bytes

    @property
    def sizes(self) -> int:
        """The offset of the sizes of the storages in a workspace."""
        return self.plans + layout.PLAN_COUNT * self.plan_bytes

    @property
    def scratch(self) -> int:
        """The offset of the temporary memory of :func:`.planner.pack` in a workspace."""
        return self.sizes + 8 * self.storages

    @property
    def slot_bytes(self) -> int:
        """The size of a workspace."""
        small = self.storages <= layout.SMALL_COUNT
        return self.scratch + (16 * self.storages if small else 0)

    @property
    def reserved_bytes(self) -> int:
        """The size of the records that precede the arena in the memory of the caller."""
        small = self.storages <= layout.SMALL_COUNT
        record = -(-self.slot_bytes // layout.ALIGNMENT) * layout.ALIGNMENT
        return record + (0 if small else self.sweep_bytes)

    @property
    def sweep_bytes(self) -> int:
        """The size of the temporary memory of :func:`.sweep.sweep_both`."""
        size = layout.SWEEP_HEADS + (2 * layout.SWEEP_NODE + 32) * (self.storages + 1)
        return -(-size // layout.ALIGNMENT) * layout.ALIGNMENT


def plan_table(keys: int, live_ranges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the words of the table of a function.

    Parameters
    ----------
    keys : int
        The number of symbols whose values determine the sizes.
    live_ranges : sequence of tuple of int
        The first and the last step of each storage, both inclusive.

    Examples
    --------
    >>> words = plan_table(1, [(1, 5), (3, 4)])
    >>> words[layout.TABLE_RANGES // 8 :]
    (1, 5, 3, 4, 0, 1, 1, 0)
    """
    count = len(live_ranges)
    records = PlanLayout(keys, count)
    header = {
        layout.TABLE_KEYS: keys,
        layout.TABLE_STORAGES: count,
        layout.TABLE_SHAPE_BYTES: records.shape_bytes,
        layout.TABLE_PLAN_BYTES: records.plan_bytes,
        layout.TABLE_PLANS: records.plans,
        layout.TABLE_SIZES: records.sizes,
        layout.TABLE_SCRATCH: records.scratch,
        layout.TABLE_SWEEP_BYTES: records.sweep_bytes,
    }
    by_first = sorted(range(count), key=lambda k: live_ranges[k][0])
    by_last = sorted(range(count), key=lambda k: live_ranges[k][1])
    ranges = [step for live in live_ranges for step in live]
    return (*(header[8 * k] for k in range(len(header))), *ranges, *by_first, *by_last)
