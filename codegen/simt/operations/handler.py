"""Handlers of operations: functions from the operands to the results of all threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..access import read_rows
from ..frame import WARP, Frame
from ..provenance import StatementSite


@dataclass(frozen=True, slots=True)
class Group:
    """The threads that execute an operation, and its statement.

    Operands are vectors ``(lanes, threads)`` or scalars ``(threads,)``, or uniform across threads.
    """

    frame: Frame
    site: StatementSite

    def by_warp(self, operand: Any) -> NDArray[Any]:
        """Return a scalar operand as ``(warps, 32)``, a vector as ``(lanes, warps, 32)``."""
        warps = self.frame.count // WARP
        if np.ndim(operand) == 2:
            lanes = operand.shape[0]
            return np.broadcast_to(operand, (lanes, self.frame.count)).reshape(lanes, warps, WARP)
        return np.broadcast_to(operand, (self.frame.count,)).reshape(warps, WARP)

    def rows(
        self, addresses: Any, lanes: NDArray[np.bool_], receivers: NDArray[np.int64]
    ) -> NDArray[np.uint16]:
        """Read a row of eight 16-bit elements at the addresses of some lanes, as ``(threads, 8)``.

        The access is checked. The reader of each element is the lane that receives it, given by
        ``receivers`` with shape ``(8, 32)``.
        """
        return read_rows(self.frame, self.site, addresses, lanes, receivers)


Handler: TypeAlias = Callable[[Group, Sequence[Any]], Sequence[Any]]
"""A function from the group and the operands to the results."""
