"""The estimated time of recorded launches, so that a submission is short enough to be canceled."""

from __future__ import annotations

from typing import Final

SECONDS: Final = 0.05
"""The longest estimated time of a submission of several launches."""

RATES: Final = {"CPU": 1e9, "IntegratedGPU": 5e10}
"""The first estimate of instructions per second, by the kind of the adapter."""

RATE: Final = 5e11
"""The first estimate for other adapters."""

SHARE: Final = 0.5
"""The share of the time since a submission that a wait must take to measure the rate."""


class Pace:
    """The work that is recorded, and that was submitted and has not been waited for.

    Parameters
    ----------
    kind : str
        The kind of the adapter.

    Examples
    --------
    >>> pace = Pace("CPU")
    >>> [pace.is_full(work) for work in (4e7, 2e7)]
    [False, True]
    """

    def __init__(self, kind: str) -> None:
        """Start with the estimated rate of a kind of adapters."""
        self.rate = RATES.get(kind, RATE)
        self.running = 0.0
        self._recorded = 0.0
        self._since = 0.0

    def is_full(self, work: float) -> bool:
        """Add a launch; return whether the earlier ones should be submitted before it."""
        full = self._recorded > 0 and self._recorded + work > SECONDS * self.rate
        self._recorded += work
        return full

    def submitted(self, now: float, last: float) -> None:
        """Note a submission of all launches, except for the last one with its work."""
        if not self.running:
            self._since = now
        self.running += self._recorded - last
        self._recorded = last

    def waited(self, start: float, end: float) -> None:
        """Note a wait for all submissions, and measure the rate if it took most of their time."""
        total = end - self._since
        if self.running and total > 0 and end - start > SHARE * total:
            self.rate += (self.running / total - self.rate) / 2
        self.running = 0.0
