"""Names of the entry functions of kernels and of the symbols of native functions."""

from __future__ import annotations

INTO = "__into"
"""The suffix of the function that takes all buffers, including those that are written."""

CALL = "__call"
"""The suffix of the function that takes the inputs and returns the outputs."""


def public_name(name: str) -> str:
    """Return the function name without the suffix of an entry function.

    Examples
    --------
    >>> public_name("matmul__call"), public_name("main")
    ('matmul', 'main')
    """
    return name.removesuffix(INTO).removesuffix(CALL)


def entry_symbol(name: str) -> str:
    """Return the symbol of the entry of a function.

    Examples
    --------
    >>> entry_symbol("main")
    'main__entry'
    """
    return f"{name}__entry"
