"""Distribution-free statistics of samples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

MIN_NARROW, RELATIVE_WIDTH = 50, 0.005
"""The number of samples and the relative width of the interval at which sampling may stop."""


def confidence(taken: Sequence[float]) -> tuple[float, float]:
    """Return a 95 % confidence interval of the median, from order statistics.

    Examples
    --------
    >>> confidence(range(1, 101))
    (40, 61)
    """
    ordered = sorted(taken)
    count = len(ordered)
    half = 0.98 * math.sqrt(count)
    low = max(0, math.floor(count / 2 - half) - 1)
    high = min(count - 1, math.ceil(count / 2 + half))
    return ordered[low], ordered[high]


def narrow(taken: Sequence[float]) -> bool:
    """Return whether the confidence interval of the median is narrow enough to stop sampling.

    Examples
    --------
    >>> narrow([100.0] * 20), narrow([100.0] * 60), narrow([100.0, 200.0] * 30)
    (False, True, False)
    """
    if len(taken) < MIN_NARROW:
        return False
    low, high = confidence(taken)
    return high - low <= RELATIVE_WIDTH * statistics.median(taken)


def ratios(taken: Sequence[float], reference: Sequence[float]) -> list[float]:
    """Return the quotients of interleaved samples, per round.

    Effects that slow down an entire round, such as other programs or lower clocks, cancel out.

    Examples
    --------
    >>> ratios([10.0, 30.0], [20.0, 60.0])
    [0.5, 0.5]
    """
    return [a / b for a, b in zip(taken, reference, strict=True)]
