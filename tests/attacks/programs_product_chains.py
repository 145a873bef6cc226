"""Products in chains, in place, over triangles, and in another loop order."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program
from tests.attacks.programs_products import S3


@program(
    "n m k",
    """
def mm_accumulate(A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: InOut[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            for r in range(k):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
""",
    sizes=S3,
)
def _(A, B, C):
    C += A @ B


@program(
    "n m k",
    """
def mm_twice(A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            for r in range(k):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
    for i2 in range(n):
        for j2 in range(m):
            for r2 in range(k):
                with block("D"):
                    wi, wj, wk = spatial(i2), spatial(j2), reduce(r2)
                    C[wi, wj] += A[wi, wk] * B[wk, wj]
""",
    sizes=[s for s in S3 if s["k"]],
)
def _(A, B, C):
    C[:] = 2 * (A @ B)


@program(
    "n m k",
    """
def mm_chain_in_place(A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], W: Buffer[(m, k), f32], C: Out[(n, k), f32]):
    T = alloc((n, m), f32)
    for i in range(n):
        for j in range(m):
            for r in range(k):
                with block("T"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init(): T[vi, vj] = 0.0
                    T[vi, vj] += A[vi, vk] * B[vk, vj]
    for i in range(n):
        for j in range(m):
            with block("relu"):
                ui, uj = spatial(i), spatial(j)
                T[ui, uj] = max(T[ui, uj], 0.0)
    for i in range(n):
        for j in range(k):
            for r in range(m):
                with block("C"):
                    wi, wj, wk = spatial(i), spatial(j), reduce(r)
                    with init(): C[wi, wj] = 0.0
                    C[wi, wj] += T[wi, wk] * W[wk, wj]
""",
    sizes=[s for s in S3 if s["k"]],
)
def _(A, B, W, C):
    C[:] = np.maximum(A @ B, 0) @ W


@program(
    "n m k",
    """
def mm_epilogue_transposed(A: Buffer[(n, k), f32], B: Buffer[(k, n), f32], C: Out[(n, n), f32]):
    T = alloc((n, n), f32)
    for i in range(n):
        for j in range(n):
            for r in range(k):
                with block("T"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init(): T[vi, vj] = 0.0
                    T[vi, vj] += A[vi, vk] * B[vk, vj]
    for i in range(n):
        for j in range(n):
            with block("C"):
                wi, wj = spatial(i), spatial(j)
                C[wi, wj] = T[wi, wj] + T[wj, wi]
""",
    sizes=[s for s in S3 if s["k"]],
)
def _(A, B, C):
    C[:] = A @ B + (A @ B).T


@program(
    "n m k",
    """
def mm_epilogue_overwrites_input(A: InOut[(n, k), f32], B: Buffer[(k, k), f32]):
    T = alloc((n, k), f32)
    for i in range(n):
        for j in range(k):
            for r in range(k):
                with block("T"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init(): T[vi, vj] = 0.0
                    T[vi, vj] += A[vi, vk] * B[vk, vj]
    for i in range(n):
        for j in range(k):
            with block("A"):
                wi, wj = spatial(i), spatial(j)
                A[wi, wj] = T[wi, wj] - A[wi, wj]
""",
    sizes=[s for s in S3 if s["k"]],
)
def _(A, B):
    A[:] = A @ B - A


@program(
    "n m k",
    """
def mm_prologue_partial(A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n, m), f32]):
    P = alloc((n, k), f32)
    for i in range(n):
        for r in range(k):
            if r > i:
                P[i, r] = 0.0
            else:
                P[i, r] = A[i, r] * 2.0
    for i in range(n):
        for j in range(m):
            for r in range(k):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += P[vi, vk] * B[vk, vj]
""",
    sizes=S3,
)
def _(A, B, C):
    C[:] = 2 * np.tril(A) @ B


@program(
    "b n m k",
    """
def mm_batch_shared_temp(A: Buffer[(b, n, k), f32], B: Buffer[(b, k, m), f32], C: Out[(b, n, m), f32]):
    T = alloc((n, m), f32)
    for q in range(b):
        for i in range(n):
            for j in range(m):
                for r in range(k):
                    with block("T"):
                        vq, vi, vj, vk = ordered(q), spatial(i), spatial(j), reduce(r)
                        with init(): T[vi, vj] = 0.0
                        T[vi, vj] += A[vq, vi, vk] * B[vq, vk, vj]
        for i in range(n):
            for j in range(m):
                with block("C"):
                    wq, wi, wj = spatial(q), spatial(i), spatial(j)
                    C[wq, wi, wj] = T[wi, wj] + 1.0
""",
    sizes=[
        {"b": b, "n": n, "m": m, "k": k}
        for b, n, m, k in ((0, 3, 3, 3), (1, 1, 1, 1), (2, 3, 7, 5), (3, 16, 17, 2), (2, 7, 33, 16))
    ],
)
def _(A, B, C):
    C[:] = A @ B + 1


@program(
    "n m k",
    """
def mm_split_k(A: Buffer[(n, k), f32], B: Buffer[(k, m), f32], C: Out[(n, m), f32]):
    P = alloc((4, n, m), f32)
    for s in range(4):
        for i in range(n):
            for j in range(m):
                for r in range(ceildiv(k, 4)):
                    with block("P"):
                        vs, vi, vj, vk = spatial(s), spatial(i), spatial(j), reduce(r)
                        with init(): P[vs, vi, vj] = 0.0
                        P[vs, vi, vj] += where(vs * ceildiv(k, 4) + vk < k, A[vi, min(vs * ceildiv(k, 4) + vk, k - 1)] * B[min(vs * ceildiv(k, 4) + vk, k - 1), vj], 0.0)
    for i in range(n):
        for j in range(m):
            for s in range(4):
                with block("C"):
                    wi, wj, ws = spatial(i), spatial(j), reduce(s)
                    with init(): C[wi, wj] = 0.0
                    C[wi, wj] += P[ws, wi, wj]
""",
    sizes=[s for s in S3 if s["k"]],
)
def _(A, B, C):
    C[:] = A @ B


@program(
    "n m",
    """
def outer_product(x: Buffer[(n,), f32], y: Buffer[(m,), f32], C: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            for r in range(1):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(r)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += x[vi] * y[vj]
""",
)
def _(x, y, C):
    C[:] = np.outer(x, y)


@program(
    "n m",
    """
def gemv_transposed(A: Buffer[(n, m), f32], x: Buffer[(n,), f32], y: Out[(m,), f32]):
    for j in range(m):
        y[j] = 0.0
    for i in range(n):
        for j in range(m):
            y[j] += A[i, j] * x[i]
""",
)
def _(A, x, y):
    y[:] = x @ A


@program(
    "n m",
    """
def rank_updates(A: Buffer[(n, m), f32], C: InOut[(m, m), f32]):
    for k in range(n):
        for i in range(m):
            for j in range(m):
                C[i, j] += A[k, i] * A[k, j]
""",
)
def _(A, C):
    C += A.T @ A


@program(
    "n m",
    """
def syrk_lower(A: Buffer[(n, m), f32], C: InOut[(n, n), f32]):
    for i in range(n):
        for j in range(i + 1):
            for k in range(m):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(n, j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * A[vj, vk]
""",
    sizes=[
        {"n": n, "m": m} for n, m in ((0, 1), (1, 1), (2, 3), (7, 16), (17, 7), (33, 17), (67, 3))
    ],
)
def _(A, C, n):
    C[:] = np.where(np.tril(np.ones((n, n), bool)), A @ A.T, C)


@program(
    "n",
    """
def trsyl_both_triangular(A: Buffer[(n, n), f32], B: Buffer[(n, n), f32], C: InOut[(n, n), f32]):
    for i in range(n):
        for j in range(i + 1):
            for k in range(i - j + 1):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(n, j), reduce(n, j + k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
""",
)
def _(A, B, C, n):
    C[:] = np.where(np.tril(np.ones((n, n), bool)), np.tril(A) @ np.tril(B), C)
