"""Naive programs and the steps that tensorize them.

Each entry is the text of a program, the text of a trace, and the target of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.script import parse
from tilewright.schedules import Schedule, from_python
from tilewright.target.target import Target


@dataclass(frozen=True)
class Example:
    """A program and the steps that tensorize it."""

    program: str
    steps: str
    target: Target

    def naive(self) -> Schedule:
        """The program before the steps."""
        return Schedule(parse(self.program), self.target)

    def scheduled(self) -> Schedule:
        """The program after the steps."""
        schedule = self.naive()
        schedule.replay(from_python(self.steps)).completed()
        return schedule


MATMUL_F32 = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f32], B: Buffer[(K, N), f32], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

FMA_STEPS = """
mm = sch.get_block("mm")
i, j, k = sch.get_loops(mm)
i0, i1 = sch.split(i, (None, {rows}))
j0, j1 = sch.split(j, (None, {columns}))
sch.reorder((j0, i0, k, i1, j1))
sch.parallel(j0)
pack = sch.cache_read(mm, "B", "global")
sch.transform_layout("B_global", "lambda a, b: (b // {columns}, a, b % {columns})")
tile = sch.cache_write(mm, "C", "local")
sch.reverse_compute_at(tile, i0)
init = sch.decompose_reduction(mm, k)
jz, iz, z0, z1 = sch.get_loops(init)
sch.unroll(z0)
sch.vectorize(z1)
jw, iw, w0, w1 = sch.get_loops(tile)
sch.unroll(w0)
sch.vectorize(w1)
p0, p1 = sch.get_loops(pack)
q0, q1 = sch.split(p1, (None, {columns}))
sch.reorder((q0, p0, q1))
sch.parallel(q0)
sch.vectorize(q1)
sch.tensorize(i1, "{intrinsic}")
"""
"""Pack panels of B, keep a tile of C in registers, and update the tile once per k."""

FMA_AVX512 = Example(
    MATMUL_F32,
    FMA_STEPS.format(rows=14, columns=32, intrinsic="avx512.fma.f32.14x32"),
    Target("cpu", features=("avx512",)),
)
FMA_AVX2 = Example(
    MATMUL_F32,
    FMA_STEPS.format(rows=6, columns=16, intrinsic="avx2.fma.f32.6x16"),
    Target("cpu", features=("avx2",)),
)

MATMUL_DOT = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), {left}], B: Buffer[(K, N), {right}], C: Out[(M, N), {out}]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = {out}(0)
                    C[vi, vj] += {out}(A[vi, vk]) * {out}(B[vk, vj])
"""

DOT_STEPS = """
mm = sch.get_block("mm")
pad_a, pad_b = sch.pad_einsum(mm, (1, 1, {group}))
sch.transform_layout(
    "B_pad", "lambda k, j: (j // {columns}, k // {group}, j % {columns}, k % {group})"
)
i, j, k = sch.get_loops(mm)
i0, i1 = sch.split(i, (None, {rows}))
j0, j1 = sch.split(j, (None, {columns}))
k0, k1 = sch.split(k, (None, {group}))
sch.reorder((j0, i0, k0, i1, j1, k1))
sch.parallel(j0)
tile = sch.cache_write(mm, "C", "local")
sch.reverse_compute_at(tile, i0)
init = sch.decompose_reduction(mm, k0)
jz, iz, z0, z1 = sch.get_loops(init)
sch.unroll(z0)
sch.vectorize(z1)
jw, iw, w0, w1 = sch.get_loops(tile)
sch.unroll(w0)
sch.vectorize(w1)
sch.tensorize(i1, "{intrinsic}")
"""
"""Pad K with zeros to whole groups, and pack B so that each group is in one lane."""


def _dot(
    dtypes: tuple[str, str, str], tile: tuple[int, int, int], intrinsic: str, target: Target
) -> Example:
    left, right, out = dtypes
    rows, columns, group = tile
    steps = DOT_STEPS.format(rows=rows, columns=columns, group=group, intrinsic=intrinsic)
    return Example(MATMUL_DOT.format(left=left, right=right, out=out), steps, target)


_U8_I8, _I8_I8 = ("u8", "i8", "i32"), ("i8", "i8", "i32")
_AVX2 = Target("cpu", features=("avx2",))
_VNNI = Target("cpu", features=("avx512", "avx512vnni"))

DOT_AVX512VNNI = _dot(_U8_I8, (14, 32, 4), "avx512vnni.dot.u8i8.14x32", _VNNI)
DOT_AVX512VNNI_SIGNED = _dot(_I8_I8, (12, 32, 4), "avx512vnni.dot.i8i8.12x32", _VNNI)
DOT_AVX2 = _dot(_U8_I8, (6, 16, 2), "avx2.dot.u8i8.6x16", _AVX2)
DOT_AVX2_SIGNED = _dot(_I8_I8, (6, 16, 2), "avx2.dot.i8i8.6x16", _AVX2)
DOT_AVX512BF16 = _dot(
    ("bf16", "bf16", "f32"),
    (14, 32, 2),
    "avx512bf16.dot.14x32",
    Target("cpu", features=("avx512", "avx512bf16")),
)
DOT_AARCH64 = _dot(
    _I8_I8,
    (6, 16, 4),
    "aarch64.sdot.i8.6x16",
    Target("cpu", arch="aarch64", features=("dotprod",)),
)

EXAMPLES = {
    "fma-avx512": FMA_AVX512,
    "fma-avx2": FMA_AVX2,
    "vnni": DOT_AVX512VNNI,
    "vnni-signed": DOT_AVX512VNNI_SIGNED,
    "dot-avx2": DOT_AVX2,
    "dot-avx2-signed": DOT_AVX2_SIGNED,
    "bf16": DOT_AVX512BF16,
    "sdot": DOT_AARCH64,
}
"""Examples by tensor instruction; M, N, and K are symbolic."""
