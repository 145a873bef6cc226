"""What samples say: intervals of a median that assume no distribution."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

ENOUGH, WIDTH = 50, 0.005
"""Measuring stops after so many samples where the interval of the median is so narrow."""


def confidence(taken: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the median, from order statistics; it assumes no distribution.

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
    """Whether the interval of the median is narrow enough to stop.

    Examples
    --------
    >>> narrow([100.0] * 20), narrow([100.0] * 60), narrow([100.0, 200.0] * 30)
    (False, True, False)
    """
    if len(taken) < ENOUGH:
        return False
    low, high = confidence(taken)
    return high - low <= WIDTH * statistics.median(taken)


def ratios(taken: Sequence[float], reference: Sequence[float]) -> list[float]:
    """Quotients of samples that were taken in turns, round by round.

    What slows a whole round down, such as another program or a lower clock, cancels out.

    Examples
    --------
    >>> ratios([10.0, 30.0], [20.0, 60.0])
    [0.5, 0.5]
    """
    return [a / b for a, b in zip(taken, reference, strict=True)]
