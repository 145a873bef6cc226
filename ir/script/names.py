"""Which names can be written, and how strings and numbers are."""

from __future__ import annotations

import keyword
import math
import unicodedata

RESERVED = frozenset({"inf", "nan"})
"""Names that are numbers."""


def is_writable(name: str) -> bool:
    """Whether a name reads back as itself.

    Examples
    --------
    >>> [is_writable(name) for name in ("x_1", "lambda", "x.1", "inf")]
    [True, False, False, False]
    """
    if name.isascii():
        return name.isidentifier() and not keyword.iskeyword(name) and name not in RESERVED
    # Python reads identifiers in their compatibility normal form.
    return name.isidentifier() and unicodedata.normalize("NFKC", name) == name


def writable(name: str) -> str:
    """Make a name of the source model one that can be written.

    Examples
    --------
    >>> writable("encoder.layer.0/Add"), writable("lambda"), writable("1x")
    ('encoder_layer_0_Add', 'lambda_', '_1x')
    """
    kept = "".join(
        c if c.isalnum() or c == "_" else "_" for c in unicodedata.normalize("NFKC", name)
    )
    if not kept or not (kept[0].isalpha() or kept[0] == "_"):
        kept = f"_{kept}"
    return kept if is_writable(kept) else f"{kept}_"


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
