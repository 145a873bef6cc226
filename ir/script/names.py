"""How strings, numbers and tuples are written."""

from __future__ import annotations

import math


def quote(text: str) -> str:
    """Write a string in double quotes where that needs no escapes.

    Examples
    --------
    >>> print(quote("a.b"), quote('say "x"'))
    "a.b" 'say "x"'
    """
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written


def float_text(value: float) -> str:
    """Write a floating-point number so that it reads back to the last bit.

    Examples
    --------
    >>> float_text(0.1), float_text(float("-inf"))
    ('0.1', '-inf')
    """
    if math.isnan(value):
        return "nan"
    return repr(float(value)) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def tuple_text(parts: list[str]) -> str:
    """Write a tuple, a comma ending that of one.

    Examples
    --------
    >>> tuple_text([]), tuple_text(["n"]), tuple_text(["n", "m"])
    ('()', '(n,)', '(n, m)')
    """
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
