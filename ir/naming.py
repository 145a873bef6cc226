"""Valid names: identifiers that survive a round trip through the text format."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Iterable
from typing import Final

RESERVED = frozenset({"inf", "nan"})
"""Names that the text format parses as numbers."""

LONGEST_NAME: Final = 40
"""The largest length of a name derived from other names, without the suffix of a fresh name."""


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


def bounded_name(name: str) -> str:
    """Return a derived name whose length repeated derivation does not increase without limit.

    Parameters
    ----------
    name : str
        A valid name. One of at most 40 characters is returned unchanged; of a longer one, numbers
        and repeated words are dropped, then the characters at the end.

    Examples
    --------
    >>> bounded_name("i_0"), bounded_name("row" + 20 * "_0_tail"), len(bounded_name(90 * "a"))
    ('i_0', 'row_tail', 40)
    """
    if len(name) <= LONGEST_NAME:
        return name
    words = _words((name,))[:LONGEST_NAME].rstrip("_")
    return words if is_valid_name(words) else name[:LONGEST_NAME]


def joined_name(names: tuple[str, ...]) -> str:
    """Return the name of a node that replaces several named nodes.

    Parameters
    ----------
    names : tuple of str
        Valid names. They are joined; if the result is longer than 20 characters, numbers and
        repeated words are dropped.

    Examples
    --------
    >>> joined_name(("i", "j")), joined_name(("i_0_j_0_0", "i_0_j_0_1", "k_1_0"))
    ('i_j', 'i_j_k')
    """
    joined = "_".join(names)
    if len(joined) <= LONGEST_NAME // 2:
        return joined
    words = _words(names)
    return bounded_name(words if is_valid_name(words) else joined)


def _words(names: Iterable[str]) -> str:
    """Return the different words of names in order, without numbers."""
    words = (word for name in names for word in name.split("_") if not word.isdecimal())
    return "_".join(dict.fromkeys(words))
