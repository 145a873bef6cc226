"""Fragment layouts of NVIDIA tensor cores: the matrix elements that each lane of a warp holds.

Source: PTX ISA 9.2, chapter 9.7.14.5 "Matrix multiply-accumulate operation using mma instruction":
"Matrix Fragments for mma.m16n8k16 with floating point type" for the fragments A, B and C/D, and
"Warp-level matrix load instruction: ldmatrix" for the rest. The tables follow the rules of this
chapter element by element. They are independent of the index maps of
:mod:`tilewright.schedules.intrinsics`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

LANES = 32
Rule: TypeAlias = Callable[[int, int, int], int]
"""A map from groupID, threadID_in_group and the number ``i`` of an element to a row or column."""

Table: TypeAlias = NDArray[np.int64]
"""Row and column of every element of every lane, low to high, with shape ``(32, elements, 2)``."""


def _table(elements: int, row: Rule, column: Rule) -> Table:
    cells = [
        [(row(lane >> 2, lane % 4, i), column(lane >> 2, lane % 4, i)) for i in range(elements)]
        for lane in range(LANES)
    ]
    return np.array(cells, np.int64)


def multiplicand_a() -> Table:
    """Return the layout of A, 16x16: four registers of two elements, ``a0`` to ``a7``.

    ``row = groupID`` for ``ai`` where ``0 <= i < 2 || 4 <= i < 6``, else ``groupID + 8``;
    ``col = threadID_in_group * 2 + (i & 1)``, plus 8 where ``i >= 4``.
    """
    return _table(
        8,
        lambda group, _, i: group if 0 <= i < 2 or 4 <= i < 6 else group + 8,
        lambda _, thread, i: thread * 2 + (i & 1) + (8 if i >= 4 else 0),
    )


def multiplicand_b() -> Table:
    """Return the layout of B, 16x8: two registers of two elements, ``b0`` to ``b3``.

    ``row = threadID_in_group * 2 + (i & 1)``, plus 8 where ``i >= 2``; ``col = groupID``.
    """
    return _table(
        4,
        lambda _, thread, i: thread * 2 + (i & 1) + (8 if i >= 2 else 0),
        lambda group, _thread, _i: group,
    )


def accumulator() -> Table:
    """Return the layout of C and D, 16x8: ``c0`` to ``c3``, one per register in f32, two in f16.

    ``row = groupID`` where ``i < 2``, else ``groupID + 8``;
    ``col = threadID_in_group * 2 + (i & 1)``.
    """
    return _table(
        4,
        lambda group, _, i: group if i < 2 else group + 8,
        lambda _, thread, i: thread * 2 + (i & 1),
    )


def loaded(*, transposed: bool) -> Table:
    """Return the elements of one 8x8 matrix that each lane receives from ``ldmatrix``.

    "Each thread receives a fragment of a row": lane ``4r + c`` receives the elements ``2c`` and
    ``2c + 1`` of row ``r``. With ``.trans`` the matrix is read in column-major order: rows and
    columns are exchanged.
    """
    plain = _table(2, lambda group, _, _i: group, lambda _, thread, i: thread * 2 + i)
    return plain[:, :, ::-1].copy() if transposed else plain


def address_lanes(count: int) -> NDArray[np.int64]:
    """Return the lanes that provide the row addresses of each matrix, as ``(matrices, 8)``.

    "Threads 0-7" address the first matrix, "8-15" the second, "16-23" the third, "24-31" the
    fourth.
    """
    return np.arange(count * 8, dtype=np.int64).reshape(count, 8)
