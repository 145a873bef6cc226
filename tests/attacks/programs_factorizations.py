"""Triangular products and solves, and factorizations in place."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program

for nm, ext, val, mk in (
    ("upper", "n - i", "j + i", np.triu),
    ("strict_lower", "i", "j", lambda x: np.tril(x, -1)),
    ("strict_upper", "n - i - 1", "j + i + 1", lambda x: np.triu(x, 1)),
):

    def f(nm=nm, ext=ext, val=val, mk=mk):
        @program(
            "n m",
            f"""
def trmm_{nm}(L: Buffer[(n, n), f32], B: Buffer[(n, m), f32], C: InOut[(n, m), f32]):
    for i in range(n):
        for c in range(m):
            C[i, c] = 0.0
            for j in range({ext}):
                C[i, c] += L[i, {val}] * B[{val}, c]
""",
        )
        def _(L, B, C):
            C[:] = mk(L) @ B

    f()


@program(
    "n m",
    """
def trmm_in_place(L: Buffer[(n, n), f32], B: InOut[(n, m), f32]):
    t = alloc((), f32)
    for c in range(m):
        for r in range(n):
            t[()] = 0.0
            for j in range(n - r):
                t[()] += L[n - 1 - r, j] * B[j, c]
            B[n - 1 - r, c] = t[()]
""",
)
def _(L, B):
    B[:] = np.tril(L) @ B


@program(
    "n m",
    """
def trmm_transposed(L: Buffer[(n, n), i32], B: Buffer[(n, m), i32], C: Out[(n, m), i32]):
    for i in range(n):
        for c in range(m):
            for j in range(n):
                with block("C"):
                    vi, vc, vj = spatial(i), spatial(c), reduce(j)
                    with init(): C[vi, vc] = 0
                    C[vi, vc] += where(vj >= vi, L[vj, vi], 0) * B[vj, vc]
""",
)
def _(L, B, C):
    C[:] = np.tril(L).T @ B


def well(L, n):
    L[:] = np.where(np.eye(n, dtype=bool), 1, np.clip(L, -1, 1))


@program(
    "n m",
    """
def trsm_forward(L: Buffer[(n, n), i32], B: InOut[(n, m), i32]):
    for i in range(n):
        for j in range(i):
            for c in range(m):
                B[i, c] = B[i, c] - L[i, j] * B[j, c]
""",
)
def _(L, B, n):
    for i in range(n):
        B[i] -= (L[i, :i, None] * B[:i]).sum(0, dtype="i4")


@program(
    "n m",
    """
def trsm_backward(U: Buffer[(n, n), i32], B: InOut[(n, m), i32]):
    for r in range(n):
        for c in range(m):
            for j in range(r):
                B[n - 1 - r, c] = B[n - 1 - r, c] - U[n - 1 - r, n - 1 - j] * B[n - 1 - j, c]
""",
)
def _(U, B, n):
    for i in range(n - 1, -1, -1):
        B[i] -= (U[i, i + 1 :, None] * B[i + 1 :]).sum(0, dtype="i4")


@program(
    "n m",
    """
def trsm_blocks(L: Buffer[(n, n), i32], B: Buffer[(n, m), i32], X: Out[(n, m), i32]):
    t = alloc((n, m), i32)
    for i in range(n):
        for c in range(m):
            for j in range(i):
                with block("t"):
                    vi, vc, vj = ordered(i), spatial(c), reduce(n, j)
                    with init(): t[vi, vc] = 0
                    t[vi, vc] += L[vi, vj] * X[vj, vc]
        for c2 in range(m):
            with block("x"):
                wi, wc = ordered(i), spatial(c2)
                X[wi, wc] = B[wi, wc] - where(wi > 0, t[wi, wc], 0)
""",
)
def _(L, B, X, n):
    X[:] = B
    for i in range(n):
        X[i] -= (L[i, :i, None] * X[:i]).sum(0, dtype="i4")


def spd(A, n):
    A[:] = (A.astype("f8") @ A.T.astype("f8") / 16 + n * np.eye(n)).astype("f4")


@program(
    "n",
    """
def cholesky(A: InOut[(n, n), f32]):
    for j in range(n):
        for k in range(j):
            A[j, j] = A[j, j] - A[j, k] * A[j, k]
        A[j, j] = sqrt(A[j, j])
        for i in range(n - j - 1):
            for k in range(j):
                A[i + j + 1, j] = A[i + j + 1, j] - A[i + j + 1, k] * A[j, k]
            A[i + j + 1, j] = A[i + j + 1, j] / A[j, j]
""",
    exact=False,
    prepare=spd,
    tolerance=2e-3,
)
def _(A, n):
    if n:
        L = np.linalg.cholesky(A.astype("f8"))
        A[:] = np.where(np.tril(np.ones((n, n), bool)), L, A)


@program(
    "n",
    """
def cholesky_right(A: InOut[(n, n), f32]):
    for k in range(n):
        A[k, k] = sqrt(A[k, k])
        for i in range(n - k - 1):
            A[i + k + 1, k] = A[i + k + 1, k] / A[k, k]
        for j in range(n - k - 1):
            for i in range(n - k - 1 - j):
                A[i + j + k + 1, j + k + 1] = A[i + j + k + 1, j + k + 1] - A[i + j + k + 1, k] * A[j + k + 1, k]
""",
    exact=False,
    prepare=spd,
    tolerance=2e-3,
)
def _(A, n):
    if n:
        L = np.linalg.cholesky(A.astype("f8"))
        A[:] = np.where(np.tril(np.ones((n, n), bool)), L, A)


def dom(A, n):
    A[:] = A / 8 + n * np.eye(n, dtype="f4")


@program(
    "n",
    """
def lu(A: InOut[(n, n), f32]):
    for k in range(n):
        for i in range(n - k - 1):
            A[k + 1 + i, k] = A[k + 1 + i, k] / A[k, k]
            for j in range(n - k - 1):
                A[k + 1 + i, k + 1 + j] = A[k + 1 + i, k + 1 + j] - A[k + 1 + i, k] * A[k, k + 1 + j]
""",
    exact=False,
    prepare=dom,
    tolerance=1e-3,
)
def _(A, n):
    B = A.astype("f8")
    for k in range(n):
        B[k + 1 :, k] /= B[k, k]
        B[k + 1 :, k + 1 :] -= np.outer(B[k + 1 :, k], B[k, k + 1 :])
    A[:] = B


@program(
    "n",
    """
def lu_if(A: InOut[(n, n), f32]):
    for k in range(n):
        for i in range(n):
            if i > k:
                A[i, k] = A[i, k] / A[k, k]
                for j in range(n):
                    if j > k:
                        A[i, j] = A[i, j] - A[i, k] * A[k, j]
""",
    exact=False,
    prepare=dom,
    tolerance=1e-3,
)
def _(A, n):
    B = A.astype("f8")
    for k in range(n):
        B[k + 1 :, k] /= B[k, k]
        B[k + 1 :, k + 1 :] -= np.outer(B[k + 1 :, k], B[k, k + 1 :])
    A[:] = B


@program(
    "n m",
    """
def gram_schmidt(A: InOut[(n, m), f32], R: Out[(m, m), f32]):
    for k in range(m):
        for z in range(m):
            R[k, z] = 0.0
        for i in range(n):
            R[k, k] += A[i, k] * A[i, k]
        R[k, k] = sqrt(R[k, k])
        for i in range(n):
            A[i, k] = A[i, k] / R[k, k]
        for j in range(m - k - 1):
            for i in range(n):
                R[k, j + k + 1] += A[i, k] * A[i, j + k + 1]
            for i in range(n):
                A[i, j + k + 1] = A[i, j + k + 1] - A[i, k] * R[k, j + k + 1]
""",
    exact=False,
    tolerance=5e-2,
    prepare=lambda A, n, m: A.__setitem__(slice(None), A + 8 * np.eye(n, m, dtype="f4")),
    sizes=[
        {"n": n, "m": m}
        for n, m in ((1, 1), (2, 1), (3, 2), (7, 3), (16, 7), (33, 17), (67, 33), (0, 0))
    ],
)
def _(A, R, n, m):
    B = A.astype("f8")
    R[:] = 0
    for k in range(m):
        R[k, k] = np.sqrt((B[:, k] ** 2).sum())
        B[:, k] /= R[k, k]
        for j in range(k + 1, m):
            R[k, j] = B[:, k] @ B[:, j]
            B[:, j] -= B[:, k] * R[k, j]
    A[:] = B
