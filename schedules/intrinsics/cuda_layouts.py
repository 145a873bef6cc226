"""Layouts of the fragments of ``mma.sync.m16n8k16``: maps from indices to (lane, register).

With ``group = lane >> 2`` and ``member = lane % 4``, register ``i`` contains:

- of A: row ``group`` (plus 8 for ``i`` in 2, 3, 6, 7), column ``2 * member + i % 2`` (plus 8 for
  ``i >= 4``);
- of B: row ``2 * member + i % 2`` (plus 8 for ``i >= 2``), column ``group``;
- of C: row ``group`` (plus 8 for ``i >= 2``), column ``2 * member + i % 2``.

A register is one element here; the hardware packs two f16 elements into one 32-bit register.

References
----------
PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
"""

from __future__ import annotations

from ...ir.loop.nodes import IndexMap
from ...ir.symbolic import Expr, Var, var


def _map(tile: tuple[int, int], at: tuple[Var, Var], lane: Expr, register: Expr) -> IndexMap:
    """Return the map to the tile's index, the lane and the register."""
    return IndexMap(at, (at[0] // tile[0], at[1] // tile[1], lane, register))


def _indices() -> tuple[Var, Var]:
    return var("i", lower=0), var("j", lower=0)


def layout_a() -> IndexMap:
    """Return the layout of A: tiles of 16 x 16, eight f16 elements per lane.

    Examples
    --------
    >>> from ...ir.symbolic import evaluate
    >>> layout = layout_a()
    >>> [evaluate(o, dict(zip(layout.inputs, (9, 3)))) for o in layout.outputs]
    [0, 0, 5, 3]
    """
    i, j = _indices()
    lane = i % 8 * 4 + j % 8 // 2
    return _map((16, 16), (i, j), lane, j % 16 // 8 * 4 + i % 16 // 8 * 2 + j % 2)


def layout_b() -> IndexMap:
    """Return the layout of B: tiles of 16 x 8, four f16 elements per lane."""
    i, j = _indices()
    return _map((16, 8), (i, j), j % 8 * 4 + i % 8 // 2, i % 16 // 8 * 2 + i % 2)


def layout_c() -> IndexMap:
    """Return the layout of C and of the result: tiles of 16 x 8, four elements per lane."""
    i, j = _indices()
    return _map((16, 8), (i, j), i % 8 * 4 + j % 8 // 2, i % 16 // 8 * 2 + j % 2)


REGISTERS_A, REGISTERS_B, REGISTERS_C = 8, 4, 4
"""The number of elements of a tile per lane."""
