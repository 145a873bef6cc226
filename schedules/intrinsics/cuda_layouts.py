"""Where the fragments of ``mma.sync.m16n8k16`` keep their elements: lane and register.

Read from the PTX ISA, section "Matrix Fragments for mma.m16n8k16 with floating point type": with
``group = lane >> 2`` and ``member = lane % 4``, register ``i`` of A holds row ``group`` (plus 8
for ``i`` in 2, 3, 6, 7), column ``2 * member + i % 2`` (plus 8 from 4 on); of B row ``2 * member +
i % 2`` (plus 8 from 2 on), column ``group``; of C row ``group`` (plus 8 from 2 on), column
``2 * member + i % 2``. A register here is one element; the machine packs two halves into one.
"""

from __future__ import annotations

from ...ir.loop.nodes import IndexMap
from ...ir.symbolic import Expr, Var, var


def _map(tile: tuple[int, int], at: tuple[Var, Var], lane: Expr, register: Expr) -> IndexMap:
    """Number the tiles, then lane and register in a tile."""
    return IndexMap(at, (at[0] // tile[0], at[1] // tile[1], lane, register))


def _indices() -> tuple[Var, Var]:
    return var("i", lower=0), var("j", lower=0)


def layout_a() -> IndexMap:
    """Give the fragment of A, tiles of 16 x 16: eight halves a lane.

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
    """Give the fragment of B, tiles of 16 x 8: four halves a lane."""
    i, j = _indices()
    return _map((16, 8), (i, j), j % 8 * 4 + i % 8 // 2, i % 16 // 8 * 2 + i % 2)


def layout_c() -> IndexMap:
    """Give the fragment of C and of the result, tiles of 16 x 8: four elements a lane."""
    i, j = _indices()
    return _map((16, 8), (i, j), i % 8 * 4 + j % 8 // 2, i % 16 // 8 * 2 + j % 2)


REGISTERS_A, REGISTERS_B, REGISTERS_C = 8, 4, 4
"""Elements of a tile that each lane holds."""
