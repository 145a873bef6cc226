"""Annotations and attributes that carry results of lowering passes to later passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ...ir.identity import Uid
from ...ir.loop.nodes import Block, For, PrimFunc
from ...ir.loop.visit import walk
from ...ir.script.printer.loop import NOTES

DISJOINT: Final = "disjoint"
"""Function attribute: uids of the blocks whose writes are disjoint across threads."""


IN_PLACE: Final = "in_place"
"""Function attribute: uids of those blocks that only read the elements that they write."""

REPEATED: Final = "repeated"
"""Function attribute: uids of blocks of which several threads execute the same iteration."""

OWN_PARTS: Final = "own_parts"
"""Function attribute: names of the buffers of which each thread accesses only its own part."""

OWN_AXES: Final = "own_axes"
"""Function attribute: the name of each allocated buffer, and the axes around its allocation."""

OWN_ITERATIONS: Final = "own_iterations"
"""Function attribute: names of temporaries, and the uids of the loops each iteration of which has
its own elements."""


def marked_buffers(func: PrimFunc) -> frozenset[str]:
    """Return the names that the pass ``mark_disjoint_writes`` recorded in ``own_parts``."""
    names = dict(func.attributes).get(OWN_PARTS, ())
    return frozenset(map(str, names)) if isinstance(names, tuple) else frozenset()


def marked_blocks(func: PrimFunc, attribute: str) -> frozenset[Uid]:
    """Return the uids of blocks that a pass recorded in an attribute."""
    uids = dict(func.attributes).get(attribute, ())
    return (
        frozenset(u for u in uids if isinstance(u, int)) if isinstance(uids, tuple) else frozenset()
    )


def with_own_iterations(func: PrimFunc, loops: Mapping[str, tuple[Uid, ...]]) -> PrimFunc:
    """Return a function with the loops whose iterations have their own elements of temporaries."""
    entries = tuple((name, *uids) for name, uids in loops.items() if uids)
    if not entries:
        return func
    return replace(func, attributes=(*func.attributes, (OWN_ITERATIONS, entries)))


def own_iterations(func: PrimFunc) -> dict[str, frozenset[Uid]]:
    """Return the uids of the loops that :func:`with_own_iterations` recorded, by name."""
    listed = dict(func.attributes).get(OWN_ITERATIONS, ())
    entries = listed if isinstance(listed, tuple) else ()
    return {
        str(entry[0]): frozenset(uid for uid in entry[1:] if isinstance(uid, int))
        for entry in entries
        if isinstance(entry, tuple)
    }


def with_notes(func: PrimFunc, notes: Mapping[str, str]) -> PrimFunc:
    """Return a function with comments about temporaries, by their names."""
    kept = tuple(a for a in func.attributes if a[0] != NOTES)
    known = tuple((name, text) for name, text in notes.items() if text)
    return replace(func, attributes=(*kept, (NOTES, known)) if known else kept)


def with_block_names(func: PrimFunc) -> PrimFunc:
    """Return a function for printing, whose attributes name blocks instead of their uids."""
    kept = dict(func.attributes)
    if OWN_ITERATIONS in kept:
        names = {s.uid: s.var.name for s in walk(func.body) if isinstance(s, For)}
        kept[OWN_ITERATIONS] = tuple(
            (name, *(names[uid] for uid in sorted(uids) if uid in names))
            for name, uids in own_iterations(func).items()
        )
    for key in (DISJOINT, IN_PLACE, REPEATED):
        uids = marked_blocks(func, key)
        if uids:
            found = (s for s in walk(func.body) if isinstance(s, Block) and s.uid in uids)
            kept[key] = tuple(dict.fromkeys(block.name for block in found))
    return replace(func, attributes=tuple(kept.items()))
