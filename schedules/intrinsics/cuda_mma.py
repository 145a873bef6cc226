"""``mma.sync.m16n8k16``: a warp multiplies 16 x 16 by 16 x 8 halves and adds 16 x 8 sums."""

from __future__ import annotations

from ...ir.dtype import DType, f16, f32
from ...ir.script import parse
from ...ir.thread.nodes import Address, Load, Perform, Reg, Stmt, Store
from ...ir.thread.operations import Operation
from ...ir.thread.operations.nvidia import MMA_M16N8K16_F16, MMA_M16N8K16_F32
from ...ir.thread.types import VectorType
from .contract import Expansion, Intrinsic, Operand, Site
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
    """Give the address of one machine register of a fragment."""
    size = of.lanes * of.dtype.bytes
    return Address(operand.base, operand.offset + number * size, size)


def _expand(operation: Operation, of: VectorType) -> Expansion:
    """Take the registers of A, B and C out of their fragments, and put the sums back."""
    half = VectorType(f16, 2)

    def expand(site: Site) -> tuple[Stmt, ...]:
        a, b, c = site.operands
        sums = tuple(Reg(f"sum{r}", of) for r in range(len(operation.results)))
        factors = (
            *(Load(half, part(a, r, half)) for r in range(4)),
            *(Load(half, part(b, r, half)) for r in range(2)),
        )
        old = tuple(Load(of, part(c, r, of)) for r in range(len(sums)))
        stores = (Store(part(c, r, of), reg) for r, reg in enumerate(sums))
        return (Perform(operation, (*factors, *old), sums), *stores)

    return expand


def _mma(dtype: DType, value: str, operation: Operation, of: VectorType) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"cuda.mma.m16n8k16.{dtype}.f16",
            summary=f"A warp adds the product of 16 x 16 and 16 x 8 halves to sums in {dtype}.",
            semantics=parse(_PRODUCT.format(dtype=dtype, value=value)).prims[0],
            needs=("sm_80",),
            expand=_expand(operation, of),
            scope="warp",
            layouts=(layout_a(), layout_b(), layout_c()),
        )
    )


MMA_F32 = _mma(f32, "f32(A[vi, vk]) * f32(B[vk, vj])", MMA_M16N8K16_F32, VectorType(f32))
"""Sums in single precision."""

MMA_F16 = _mma(f16, "A[vi, vk] * B[vk, vj]", MMA_M16N8K16_F16, VectorType(f16, 2))
"""Sums in half precision, two in a register."""
