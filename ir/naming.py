"""Which names a program may have: those that its text reads back as themselves."""

from __future__ import annotations

import keyword
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
