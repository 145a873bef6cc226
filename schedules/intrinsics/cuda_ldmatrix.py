"""Loads of fragments from shared memory: ``cuda.ldmatrix.{a,b}.{rows}x{columns}[.columns]``.

Each lane supplies the address of one row of 16 bytes: lanes ``8m .. 8m+7`` those of the 8 x 8
matrix ``m``. The elements are distributed over the lanes as ``mma.sync`` requires.

Semantics
---------
``F[i, j] = S[i, j]``; for ``.columns``, ``F[i, j] = S[j, i]``.

Operands
--------
S : f16, shape ``(rows, columns)``, or ``(columns, rows)`` for ``.columns``; shared memory, row
    stride any, column stride 1
F : f16, shape ``(rows, columns)``, fragment; written

Requires
--------
``sm_75``. The 32 threads of a warp execute the intrinsic together.

Instruction
-----------
``ldmatrix.sync.aligned.m8n8.{x2,x4}[.trans].shared.b16``.

References
----------
PTX ISA, "Warp-level matrix load instruction: ldmatrix".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...ir.dtype import f16
from ...ir.loop.nodes import IndexMap
from ...ir.script import parse
from ...ir.symbolic import Expr, as_expr
from ...ir.thread.nodes import MachineOp, Offset, Reg, Stmt, Store
from ...ir.thread.operations import Operation
from ...ir.thread.operations.nvidia import (
    LDMATRIX_X2,
    LDMATRIX_X2_TRANSPOSED,
    LDMATRIX_X4,
    LDMATRIX_X4_TRANSPOSED,
)
from ...ir.thread.types import VectorType
from .contract import Expansion, ExpansionSite, Intrinsic
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
"""A function of a lane to the row and column of shared memory that it addresses."""


def _expand(operation: Operation, row_of: Row) -> Expansion:
    half = VectorType(f16, 2)

    def expand(site: ExpansionSite) -> tuple[Stmt, ...]:
        source, fragment = site.operands
        lane = as_expr(0) if site.lane is None else site.lane
        row, column = row_of(lane)
        offset = source.offset + row * source.strides[0] + column * source.strides[1]
        made = tuple(Reg(f"part{r}", half) for r in range(len(operation.results)))
        stores = (Store(part(fragment, r, half), reg) for r, reg in enumerate(made))
        return (MachineOp(operation, (Offset(source.base, offset),), made), *stores)

    return expand


def _load(
    name: str, shape: tuple[int, int], operation: Operation, row_of: Row, layout: IndexMap
) -> Intrinsic:
    rows, columns = shape
    swapped = name.endswith("columns")
    s0, s1 = (columns, rows) if swapped else (rows, columns)
    text = _COPY.format(
        s0=s0, s1=s1, rows=rows, columns=columns, index="vj, vi" if swapped else "vi, vj"
    )
    order = "column-major" if swapped else "row-major"
    return register(
        Intrinsic(
            name=f"cuda.ldmatrix.{name}",
            summary=f"Load {rows} x {columns} {order} f16 elements from shared memory, per warp.",
            semantics=parse(text).prims[0],
            needs=("sm_75",),
            expand=_expand(operation, row_of),
            scope="warp",
            layouts=(None, layout),
        )
    )


LDMATRIX_A = _load(
    "a.16x16", (16, 16), LDMATRIX_X4, lambda lane: (lane % 16, lane // 16 * 8), layout_a()
)
"""Row-major A; the 8 x 8 matrices are upper left, lower left, upper right, lower right."""

LDMATRIX_B = _load(
    "b.16x8", (16, 8), LDMATRIX_X2_TRANSPOSED, lambda lane: (lane % 16, as_expr(0)), layout_b()
)
"""Row-major B; the upper and the lower half, transposed by the instruction."""

LDMATRIX_B_PAIR = _load(
    "b.16x16",
    (16, 16),
    LDMATRIX_X4_TRANSPOSED,
    lambda lane: (lane % 16, lane // 16 * 8),
    layout_b(),
)
"""Two adjacent tiles of row-major B."""

LDMATRIX_B_COLUMNS = _load(
    "b.16x8.columns",
    (16, 8),
    LDMATRIX_X2,
    lambda lane: (lane % 8, lane // 8 % 2 * 8),
    layout_b(),
)
"""Column-major B, for example a transposed weight."""
