"""Annotations and attributes that carry results of lowering passes to later passes."""

from __future__ import annotations

from typing import Final

from ...ir.identity import Uid
from ...ir.loop.nodes import PrimFunc

ACROSS: Final = "across"
"""Block annotation of a cross-thread reduction: the operation, the partial buffer, the axes."""

INIT: Final = "init"
"""Block annotation of the branch that initializes a reduction; the value is True."""

ONCE: Final = "once"
"""Block annotation of a statement outside of some thread axes; the value is their tags."""

DISJOINT: Final = "disjoint"
"""Function attribute: uids of the blocks whose writes are disjoint across threads."""


def disjoint_blocks(func: PrimFunc) -> frozenset[Uid]:
    """Return the uids that the pass ``mark_disjoint_writes`` recorded."""
    uids = dict(func.attributes).get(DISJOINT, ())
    return (
        frozenset(u for u in uids if isinstance(u, int)) if isinstance(uids, tuple) else frozenset()
    )
