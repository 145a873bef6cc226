"""Initialization and stores of accumulator fragments: ``cuda.fill.*``, ``cuda.store.*``.

Semantics
---------
``cuda.fill.{dtype}.16x8``: ``C[i, j] = 0``.

``cuda.store.{dtype}.16x8.{scope}``: ``D[i, j] = C[i, j]``. Adjacent elements of a lane are
written by one instruction if the address is aligned.

Operands
--------
C : f32 or f16, shape ``(16, 8)``, fragment; written by ``fill``, read by ``store``
D : dtype of C, shape ``(16, 8)``, shared or global memory, row stride any, column stride 1; written

Requires
--------
``sm_75``. The 32 threads of a warp execute the intrinsic together.

Instruction
-----------
Register moves; ``st.shared`` or ``st.global``.

References
----------
PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
"""

from __future__ import annotations

from ...ir.dtype import DType, f16, f32
from ...ir.script import parse
from ...ir.symbolic import as_expr
from ...ir.thread.nodes import Address, Const, Extract, Load, Stmt, Store
from ...ir.thread.types import VectorType
from .contract import Expansion, ExpansionSite, Intrinsic
from .cuda_layouts import layout_c
from .cuda_mma import part
from .registry import register

_FILL = """
@prim_func
def fill(C: Out((16, 8), {dtype}, scope="fragment")):
    for i in unrolled(16):
        for j in unrolled(8):
            with block("fill"):
                vi, vj = spatial(i), spatial(j)
                C[vi, vj] = 0
"""

_STORE = """
s = symbols("s")

@prim_func
def store(
    C: Buffer((16, 8), {dtype}, scope="fragment"),
    D: Out((16, 8), {dtype}, scope="{scope}", strides=(s, 1)),
):
    for i in unrolled(16):
        for j in unrolled(8):
            with block("store"):
                vi, vj = spatial(i), spatial(j)
                D[vi, vj] = C[vi, vj]
"""


def _zeros(of: VectorType) -> Expansion:
    def expand(site: ExpansionSite) -> tuple[Stmt, ...]:
        (fragment,) = site.operands
        return tuple(Store(part(fragment, r, of), Const(0.0, of)) for r in range(2))

    return expand


def _write(of: VectorType) -> Expansion:
    """Return the expansion: each lane stores two pairs, each at once if memory is aligned."""

    def expand(site: ExpansionSite) -> tuple[Stmt, ...]:
        fragment, memory = site.operands
        lane = as_expr(0) if site.lane is None else site.lane
        size = of.width
        made: list[Stmt] = []
        for half in range(2):
            row, column = lane // 4 + half * 8, lane % 4 * 2
            offset = memory.offset + row * memory.strides[0] + column * memory.strides[1]
            pair = Load(of, part(fragment, half, of))
            if memory.alignment % (2 * size) == 0 and memory.strides[0] % (2 * size) == as_expr(0):
                made.append(Store(Address(memory.base, offset, 2 * size), pair))
                continue
            for k in range(2):
                single = Address(memory.base, offset + memory.strides[1] * k, size)
                made.append(Store(single, Extract(pair, k)))
        return tuple(made)

    return expand


def _fill(dtype: DType) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"cuda.fill.{dtype}.16x8",
            summary=f"Set 16 x 8 {dtype} sums to 0, per warp.",
            semantics=parse(_FILL.format(dtype=dtype)).prims[0],
            needs=("sm_75",),
            expand=_zeros(VectorType(dtype, 2)),
            scope="warp",
            layouts=(layout_c(),),
        )
    )


def _store(dtype: DType, scope: str) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"cuda.store.{dtype}.16x8.{scope}",
            summary=f"Store 16 x 8 {dtype} sums to {scope} memory, per warp.",
            semantics=parse(_STORE.format(dtype=dtype, scope=scope)).prims[0],
            needs=("sm_75",),
            expand=_write(VectorType(dtype, 2)),
            scope="warp",
            layouts=(layout_c(), None),
        )
    )


FILL_F32, FILL_F16 = _fill(f32), _fill(f16)
"""Fragments of sums set to zero."""

STORE_F32_SHARED, STORE_F16_SHARED = _store(f32, "shared"), _store(f16, "shared")
"""Stores of a fragment of sums to shared memory, from which threads write complete rows."""

STORE_F32_GLOBAL, STORE_F16_GLOBAL = _store(f32, "global"), _store(f16, "global")
"""Stores of a fragment of sums directly to the result."""
