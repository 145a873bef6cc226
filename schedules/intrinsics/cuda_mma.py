"""Matrix multiply-add of a warp: ``cuda.mma.m16n8k16.{f32,f16}.f16``.

Semantics
---------
``C[i, j] += sum(A[i, k] * B[k, j] for k in range(16))``, with products and sums in the dtype of C.

Operands
--------
A : f16, shape ``(16, 16)``, fragment
B : f16, shape ``(16, 8)``, fragment
C : f32 or f16, shape ``(16, 8)``, fragment; updated in place

Requires
--------
``sm_80``. The 32 threads of a warp execute the intrinsic together.

Instruction
-----------
``mma.sync.aligned.m16n8k16.row.col.{f32,f16}.f16.f16.{f32,f16}``.

References
----------
PTX ISA, "Multiply-and-Accumulate Instruction: mma".
"""

from __future__ import annotations

from ...ir.dtype import DType, f16, f32
from ...ir.script import parse
from ...ir.thread.nodes import Address, Load, MachineOp, Reg, Stmt, Store
from ...ir.thread.operations import Operation
from ...ir.thread.operations.nvidia import MMA_M16N8K16_F16, MMA_M16N8K16_F32
from ...ir.thread.types import VectorType
from .contract import Expansion, ExpansionSite, Intrinsic, Operand
from .cuda_layouts import layout_a, layout_b, layout_c
from .registry import register

_PRODUCT = """
@prim_func
def mma(
    A: Buffer((16, 16), f16, scope="fragment"),
    B: Buffer((16, 8), f16, scope="fragment"),
    C: InOut((16, 8), {dtype}, scope="fragment"),
):
    for i in unrolled(16):
        for j in unrolled(8):
            for k in unrolled(16):
                with block("mma"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    C[vi, vj] += {value}
"""


def part(operand: Operand, number: int, of: VectorType) -> Address:
    """Return the address of one hardware register of a fragment."""
    size = of.lanes * of.width
    return Address(operand.base, operand.offset + number * size, size)


def _expand(operation: Operation, of: VectorType) -> Expansion:
    """Return the expansion: load the registers of A, B and C, multiply-add, store the sums."""
    half = VectorType(f16, 2)

    def expand(site: ExpansionSite) -> tuple[Stmt, ...]:
        a, b, c = site.operands
        sums = tuple(Reg(f"sum{r}", of) for r in range(len(operation.results)))
        factors = (
            *(Load(half, part(a, r, half)) for r in range(4)),
            *(Load(half, part(b, r, half)) for r in range(2)),
        )
        old = tuple(Load(of, part(c, r, of)) for r in range(len(sums)))
        stores = (Store(part(c, r, of), reg) for r, reg in enumerate(sums))
        return (MachineOp(operation, (*factors, *old), sums), *stores)

    return expand


def _mma(dtype: DType, value: str, operation: Operation, of: VectorType) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"cuda.mma.m16n8k16.{dtype}.f16",
            summary=f"Add the product of 16 x 16 and 16 x 8 f16 tiles to {dtype} sums, per warp.",
            semantics=parse(_PRODUCT.format(dtype=dtype, value=value)).prims[0],
            needs=("sm_80",),
            expand=_expand(operation, of),
            scope="warp",
            layouts=(layout_a(), layout_b(), layout_c()),
        )
    )


MMA_F32 = _mma(f32, "f32(A[vi, vk]) * f32(B[vk, vj])", MMA_M16N8K16_F32, VectorType(f32))
"""The instruction with f32 sums."""

MMA_F16 = _mma(f16, "A[vi, vk] * B[vk, vj]", MMA_M16N8K16_F16, VectorType(f16, 2))
"""The instruction with f16 sums, two per register."""
