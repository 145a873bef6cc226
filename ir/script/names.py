"""Text of strings, numbers and tuples."""

from __future__ import annotations

import math


def quote(text: str) -> str:
    """Return a string literal, in double quotes if that needs no escapes.

    Examples
    --------
    >>> print(quote("a.b"), quote('axis "x"'))
    "a.b" 'axis "x"'
    """
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written


def float_text(value: float) -> str:
    """Return a floating-point literal that parses to the same value.

    Examples
    --------
    >>> float_text(0.1), float_text(float("-inf"))
    ('0.1', '-inf')
    """
    if math.isnan(value):
        return "nan"
    return repr(float(value)) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def tuple_text(parts: list[str]) -> str:
    """Return the text of a tuple, with a trailing comma if it has one element.

    Examples
    --------
    >>> tuple_text([]), tuple_text(["n"]), tuple_text(["n", "m"])
    ('()', '(n,)', '(n, m)')
    """
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
