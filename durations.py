"""Durations as text."""

from __future__ import annotations

_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def duration(microseconds: float) -> str:
    """Return a duration with three significant digits, in the unit that the panels show.

    Examples
    --------
    >>> [duration(time) for time in (0.354, 54.4, 999.6, 12_345.0, 2.5e6)]
    ['354 ns', '54.4 µs', '1.00 ms', '12.3 ms', '2.50 s']
    """
    if microseconds < 0.9995:
        return f"{microseconds * 1e3:.0f} ns"
    scale, unit = next(pair for pair in _UNITS if microseconds >= 0.9995 * pair[0])
    value = microseconds / scale
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {unit}"
