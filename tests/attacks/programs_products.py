"""Programs that resemble a matrix product."""

# ruff: noqa: PLR0917  # lines of programs; a table of variants

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program

S3 = [
    {"n": a, "m": b, "k": c}
    for a, b, c in (
        (0, 3, 3),
        (3, 0, 3),
        (3, 3, 0),
        (1, 1, 1),
        (2, 3, 1),
        (7, 16, 3),
        (16, 7, 17),
        (17, 33, 16),
        (33, 17, 7),
        (1, 67, 33),
        (67, 1, 17),
        (33, 67, 33),
    )
]


# matmul look-alikes
def mm(
    name,
    update,
    ref,
    init="0.0",
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n, m), f32]",
    head="",
    tail="",
    guard="",
    loops="n m k",
    exact=True,
    target="C[vi, vj]",
    sizes=S3,
):
    e = loops.split()
    g = f"                    guard({guard})\n" if guard else ""
    program(
        "n m k",
        f"""
def mm_{name}({sig}):
{head}    for i in range({e[0]}):
        for j in range({e[1]}):
            for r in range({e[2]}):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
{g}                    with init(): {target} = {init}
                    {update}
{tail}""",
        sizes=sizes,
        exact=exact,
    )(ref)


def _(A, B, C):
    C[:] = A @ B + 2


mm("init_two", "C[vi, vj] += A[vi, vk] * B[vk, vj]", _, init="2.0")


def _(A, B, C, k):
    C[:] = A @ B + np.arange(A.shape[0])[:, None]


mm("init_index", "C[vi, vj] += A[vi, vk] * B[vk, vj]", _, init="index(vi, f32)")


def _(A, B, C, b):
    C[:] = A @ B + b


mm(
    "init_bias",
    "C[vi, vj] += A[vi, vk] * B[vk, vj]",
    _,
    init="b[vj]",
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], b: Buffer[(m,), f32], C: Out[(n, m), f32]",
)


def _(A, B, C):
    C[:] = -(A @ B)


mm("minus", "C[vi, vj] = C[vi, vj] - A[vi, vk] * B[vk, vj]", _)


def _(A, B, C):
    C[:] = 0
    for r in range(A.shape[1]):
        C[:] = A[:, r : r + 1] * B[r : r + 1] - C


mm("alternating", "C[vi, vj] = A[vi, vk] * B[vk, vj] - C[vi, vj]", _)


def _(A, B, C):
    C[:] = (A**2) @ B


mm("three", "C[vi, vj] += A[vi, vk] * B[vk, vj] * A[vi, vk]", _)


def _(A, B, C):
    C[:] = A @ B + A.sum(1, keepdims=True)


mm("plus", "C[vi, vj] += A[vi, vk] * B[vk, vj] + A[vi, vk]", _)


def _(A, B, C):
    C[:] = (A[:, None, :] + B.T[None]).sum(2)


mm("tropical_sum", "C[vi, vj] += A[vi, vk] + B[vk, vj]", _)


def _(A, B, C):
    C[:] = (A[:, :, None] + B[None]).min(1, initial=np.inf)


mm("tropical", "C[vi, vj] = min(C[vi, vj], A[vi, vk] + B[vk, vj])", _, init="inf")


def _(A, B, C):
    C[:] = (A[:, :, None] * B[None]).max(1, initial=-np.inf)


mm("maxtimes", "C[vi, vj] = max(C[vi, vj], A[vi, vk] * B[vk, vj])", _, init="-inf")


def _(A, C):
    C[:] = A @ A.T


mm(
    "gram",
    "C[vi, vj] += A[vi, vk] * A[vj, vk]",
    _,
    sig="A: Buffer[(n, k), f32], C: Out[(n, n), f32]",
    loops="n n k",
)


def _(A, C):
    C[:] = A @ A


mm(
    "square",
    "C[vi, vj] += A[vi, vk] * A[vk, vj]",
    _,
    sig="A: Buffer[(n, n), f32], C: Out[(n, n), f32]",
    loops="n n n",
)


def _(A, B, C):
    C[:] = 0
    C[1:, 2:] = A @ B


mm(
    "offset",
    "C[vi + 1, vj + 2] += A[vi, vk] * B[vk, vj]",
    _,
    target="C[vi + 1, vj + 2]",
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n + 1, m + 2), f32]",
    head="    for z in range(n + 1):\n        for w in range(m + 2):\n            C[z, w] = 0.0\n",
)


def _(A, B, C):
    C[:] = (A @ B).T


mm(
    "transposed_out",
    "C[vj, vi] += A[vi, vk] * B[vk, vj]",
    _,
    target="C[vj, vi]",
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(m, n), f32]",
)


def _(A, B, C):
    C[:] = np.tril(A) @ B


mm(
    "guard_causal",
    "C[vi, vj] += A[vi, vk] * B[vk, vj]",
    _,
    sig="A: Buffer[(n, n), f32], B: Buffer[(n, m), f32], C: Out[(n, m), f32]",
    loops="n m n",
    guard="r <= i",
)


def _(A, B, C):
    C[:] = np.where(np.indices(C.shape)[0] >= np.indices(C.shape)[1], A @ B, C)


mm(
    "guard_out",
    "C[vi, vj] += A[vi, vk] * B[vk, vj]",
    _,
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: InOut[(n, m), f32]",
    guard="j <= i",
)


def _(A, B, C):
    C[:] = A[:, :3] @ B[:3] if A.shape[1] else C


mm(
    "guard_k_small",
    "C[vi, vj] += A[vi, vk] * B[vk, vj]",
    _,
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: InOut[(n, m), f32]",
    guard="r < 3",
    sizes=[s for s in S3 if s["k"]],
)


def _(A, B, C):
    C[:] = A[:, ::2] @ B[::2]


mm(
    "guard_even",
    "C[vi, vj] += A[vi, vk] * B[vk, vj]",
    _,
    guard="r % 2 == 0",
    sizes=[s for s in S3 if s["k"]],
)


def _(A, B, C):
    C[:] = A[:, ::-1] @ B


mm("reversed", "C[vi, vj] += A[vi, k - 1 - vk] * B[vk, vj]", _)


def _(A, B, C):
    C[:] = A[np.arange(A.shape[0]) // 2] @ B


mm("repeated_rows", "C[vi, vj] += A[vi // 2, vk] * B[vk, vj]", _)


def _(A, B, C, m):
    C[:] = A @ B[:, np.arange(m) % 5]


mm(
    "repeated_columns",
    "C[vi, vj] += A[vi, vk] * B[vk, vj % 5]",
    _,
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, 5), f32], C: Out[(n, m), f32]",
)


def _(A, B, C):
    C[:] = A @ B


mm(
    "broadcast_one",
    "C[vi, vj] += A[vi, vk] * B[vk, 0]",
    _,
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, 1), f32], C: Out[(n, m), f32]",
)


def _(A, B, C):
    C[:] = (A * B).sum(1, keepdims=True)


mm(
    "column_one",
    "C[vi, 0] += A[vi, vk] * B[0, vk]",
    _,
    target="C[vi, 0]",
    loops="n 1 k",
    sig="A: Buffer[(n, k), f32], B: Buffer[(1, k), f32], C: Out[(n, 1), f32]",
)


def _(A, B, C):
    C[:] = A.astype("i4") @ B.astype("i4")


mm(
    "u8_i8",
    "C[vi, vj] += i32(A[vi, vk]) * i32(B[vk, vj])",
    _,
    init="0",
    sig="A: Buffer[(n, k), u8], B: Buffer[(k, m), i8], C: Out[(n, m), i32]",
)
mm(
    "i8_u8",
    "C[vi, vj] += i32(A[vi, vk]) * i32(B[vk, vj])",
    _,
    init="0",
    sig="A: Buffer[(n, k), i8], B: Buffer[(k, m), u8], C: Out[(n, m), i32]",
)
mm(
    "i16",
    "C[vi, vj] += i32(A[vi, vk]) * i32(B[vk, vj])",
    _,
    init="0",
    sig="A: Buffer[(n, k), i16], B: Buffer[(k, m), i16], C: Out[(n, m), i32]",
)
mm(
    "u16_u8",
    "C[vi, vj] += i32(A[vi, vk]) * i32(B[vk, vj])",
    _,
    init="0",
    sig="A: Buffer[(n, k), u16], B: Buffer[(k, m), u8], C: Out[(n, m), i32]",
)


def _(A, B, C):
    C[:] = A.astype("i4") @ B.astype("i4") + 7


mm(
    "u8_i8_init",
    "C[vi, vj] += i32(A[vi, vk]) * i32(B[vk, vj])",
    _,
    init="7",
    sig="A: Buffer[(n, k), u8], B: Buffer[(k, m), i8], C: Out[(n, m), i32]",
)


def _(A, B, C):
    C[:] = (A.astype("i4") @ B.astype("i4")).astype("i1")


mm(
    "i8_wrap",
    "C[vi, vj] += A[vi, vk] * B[vk, vj]",
    _,
    init="i8(0)",
    sig="A: Buffer[(n, k), i8], B: Buffer[(k, m), i8], C: Out[(n, m), i8]",
)


def _(A, B, C):
    C[:] = A.astype("i4") @ B.astype("i4")


mm(
    "product_wraps_first",
    "C[vi, vj] += i32(A[vi, vk] * B[vk, vj])",
    lambda A, B, C: C.__setitem__(
        slice(None), (A[:, :, None] * B[None]).astype("i4").sum(1, dtype="i4")
    ),
    init="0",
    sig="A: Buffer[(n, k), i8], B: Buffer[(k, m), i8], C: Out[(n, m), i32]",
)
mm(
    "bool_or",
    "C[vi, vj] = C[vi, vj] | A[vi, vk] & B[vk, vj]",
    lambda A, B, C: C.__setitem__(slice(None), (A[:, :, None] & B[None]).any(1)),
    init="False",
    sig="A: Buffer[(n, k), bool], B: Buffer[(k, m), bool], C: Out[(n, m), bool]",
)
mm(
    "bool_and",
    "C[vi, vj] = C[vi, vj] & (A[vi, vk] | B[vk, vj])",
    lambda A, B, C: C.__setitem__(slice(None), (A[:, :, None] | B[None]).all(1)),
    init="True",
    sig="A: Buffer[(n, k), bool], B: Buffer[(k, m), bool], C: Out[(n, m), bool]",
)
mm(
    "xor_popcount",
    "C[vi, vj] += i32(A[vi, vk] ^ B[vk, vj])",
    lambda A, B, C: C.__setitem__(slice(None), (A[:, :, None] ^ B[None]).astype("i4").sum(1)),
    init="0",
    sig="A: Buffer[(n, k), u8], B: Buffer[(k, m), u8], C: Out[(n, m), i32]",
)
mm(
    "f16_f32",
    "C[vi, vj] += f32(A[vi, vk]) * f32(B[vk, vj])",
    lambda A, B, C: C.__setitem__(slice(None), A.astype("f4") @ B.astype("f4")),
    sig="A: Buffer[(n, k), f16], B: Buffer[(k, m), f16], C: Out[(n, m), f32]",
)
mm(
    "bf16_f32",
    "C[vi, vj] += f32(A[vi, vk]) * f32(B[vk, vj])",
    lambda A, B, C: C.__setitem__(slice(None), A.astype("f4") @ B.astype("f4")),
    sig="A: Buffer[(n, k), bf16], B: Buffer[(k, m), bf16], C: Out[(n, m), f32]",
)
mm(
    "bf16_f32_mixed",
    "C[vi, vj] += f32(A[vi, vk]) * B[vk, vj]",
    lambda A, B, C: C.__setitem__(slice(None), A.astype("f4") @ B.astype("f4")),
    sig="A: Buffer[(n, k), bf16], B: Buffer[(k, m), f32], C: Out[(n, m), f32]",
)
mm(
    "f32_f64",
    "C[vi, vj] += f64(A[vi, vk]) * f64(B[vk, vj])",
    lambda A, B, C: C.__setitem__(slice(None), A @ B),
    init="f64(0)",
    sig="A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n, m), f64]",
)
