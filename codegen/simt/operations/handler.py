"""What performs one operation: operands of all threads in, results of all threads out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..access import read_rows
from ..frame import WARP, Frame
from ..sites import Site


@dataclass(frozen=True, slots=True)
class Group:
    """The threads that perform an operation now, and the statement they do it for.

    Operands are as values are: a vector ``(lanes, threads)``, a scalar ``(threads,)``, or one for
    all threads.
    """

    frame: Frame
    site: Site

    def by_warp(self, operand: Any) -> NDArray[Any]:
        """Give a scalar operand as ``(warps, 32)``, a vector as ``(lanes, warps, 32)``."""
        warps = self.frame.count // WARP
        if np.ndim(operand) == 2:
            lanes = operand.shape[0]
            return np.broadcast_to(operand, (lanes, self.frame.count)).reshape(lanes, warps, WARP)
        return np.broadcast_to(operand, (self.frame.count,)).reshape(warps, WARP)

    def rows(
        self, addresses: Any, lanes: NDArray[np.bool_], receivers: NDArray[np.int64]
    ) -> NDArray[np.uint16]:
        """Read eight 16-bit elements at the addresses of some lanes: ``(threads, 8)``.

        The reading is checked; each element counts as read by the lane that receives it, which
        ``receivers``, ``(8, 32)``, tells.
        """
        return read_rows(self.frame, self.site, addresses, lanes, receivers)


Handler: TypeAlias = Callable[[Group, Sequence[Any]], Sequence[Any]]
"""Handed the group and the operands; gives the results."""
