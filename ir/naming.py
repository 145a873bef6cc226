"""Valid names: identifiers that survive a round trip through the text format."""

from __future__ import annotations

import keyword
import unicodedata

RESERVED = frozenset({"inf", "nan"})
"""Names that the text format parses as numbers."""


def is_valid_name(name: str) -> bool:
    """Return whether a name survives a round trip through the text format.

    Examples
    --------
    >>> [is_valid_name(name) for name in ("x_1", "lambda", "x.1", "inf")]
    [True, False, False, False]
    """
    if name.isascii():
        return name.isidentifier() and not keyword.iskeyword(name) and name not in RESERVED
    # The Python parser converts identifiers to NFKC.
    return name.isidentifier() and unicodedata.normalize("NFKC", name) == name


def to_valid_name(name: str) -> str:
    """Convert a name of the source model to a valid name.

    Examples
    --------
    >>> to_valid_name("encoder.layer.0/Add"), to_valid_name("lambda"), to_valid_name("1x")
    ('encoder_layer_0_Add', 'lambda_', '_1x')
    """
    kept = "".join(
        c if c.isalnum() or c == "_" else "_" for c in unicodedata.normalize("NFKC", name)
    )
    if not kept or not (kept[0].isalpha() or kept[0] == "_"):
        kept = f"_{kept}"
    return kept if is_valid_name(kept) else f"{kept}_"
