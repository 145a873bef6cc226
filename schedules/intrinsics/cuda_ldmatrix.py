"""``ldmatrix``: a warp loads fragments of A and B from shared memory, a row of 16 bytes a lane.

Lanes ``8m .. 8m+7`` give the addresses of the rows of the 8 x 8 matrix ``m``; which lane gets
which elements is what ``mma.sync`` wants (PTX ISA, ``ldmatrix``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...ir.dtype import f16
from ...ir.loop.nodes import IndexMap
from ...ir.script import parse
from ...ir.symbolic import Expr, as_expr
from ...ir.thread.nodes import Offset, Perform, Reg, Stmt, Store
from ...ir.thread.operations import Operation
from ...ir.thread.operations.nvidia import (
    LDMATRIX_X2,
    LDMATRIX_X2_TRANSPOSED,
    LDMATRIX_X4,
    LDMATRIX_X4_TRANSPOSED,
)
from ...ir.thread.types import VectorType
from .contract import Expansion, Intrinsic, Site
from .cuda_layouts import layout_a, layout_b
from .cuda_mma import part
from .registry import register

_COPY = """
s = symbols("s")

@prim_func
def ldmatrix(
    S: Buffer(({s0}, {s1}), f16, scope="shared", strides=(s, 1)),
    F: Out(({rows}, {columns}), f16, scope="fragment"),
):
    for i in unrolled({rows}):
        for j in unrolled({columns}):
            with block("ldmatrix"):
                vi, vj = spatial(i), spatial(j)
                F[vi, vj] = S[{index}]
"""

Row: TypeAlias = Callable[[Expr], tuple[Expr, Expr]]
"""Which row and column of shared memory a lane addresses."""


def _expand(operation: Operation, place: Row) -> Expansion:
    half = VectorType(f16, 2)

    def expand(site: Site) -> tuple[Stmt, ...]:
        source, fragment = site.operands
        lane = as_expr(0) if site.lane is None else site.lane
        row, column = place(lane)
        offset = source.offset + row * source.strides[0] + column * source.strides[1]
        made = tuple(Reg(f"part{r}", half) for r in range(len(operation.results)))
        stores = (Store(part(fragment, r, half), reg) for r, reg in enumerate(made))
        return (Perform(operation, (Offset(source.base, offset),), made), *stores)

    return expand


def _load(
    name: str, shape: tuple[int, int], operation: Operation, place: Row, layout: IndexMap
) -> Intrinsic:
    rows, columns = shape
    swapped = name.endswith("columns")
    s0, s1 = (columns, rows) if swapped else (rows, columns)
    text = _COPY.format(
        s0=s0, s1=s1, rows=rows, columns=columns, index="vj, vi" if swapped else "vi, vj"
    )
    how = ", which lie column by column," if swapped else ""
    return register(
        Intrinsic(
            name=f"cuda.ldmatrix.{name}",
            summary=f"A warp loads {rows} x {columns} halves{how} from shared memory.",
            semantics=parse(text).prims[0],
            needs=("sm_75",),
            expand=_expand(operation, place),
            scope="warp",
            layouts=(None, layout),
        )
    )


LDMATRIX_A = _load(
    "a.16x16", (16, 16), LDMATRIX_X4, lambda lane: (lane % 16, lane // 16 * 8), layout_a()
)
"""A, row by row: upper left, lower left, upper right, lower right."""

LDMATRIX_B = _load(
    "b.16x8", (16, 8), LDMATRIX_X2_TRANSPOSED, lambda lane: (lane % 16, as_expr(0)), layout_b()
)
"""B, row by row: its upper and its lower half, transposed on the way."""

LDMATRIX_B_PAIR = _load(
    "b.16x16",
    (16, 16),
    LDMATRIX_X4_TRANSPOSED,
    lambda lane: (lane % 16, lane // 16 * 8),
    layout_b(),
)
"""Two tiles of B side by side."""

LDMATRIX_B_COLUMNS = _load(
    "b.16x8.columns",
    (16, 8),
    LDMATRIX_X2,
    lambda lane: (lane % 8, lane // 8 % 2 * 8),
    layout_b(),
)
"""B, column by column, as the transpose of a weight lies."""
