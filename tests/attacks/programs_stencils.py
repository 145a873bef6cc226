"""Stencils in place and over time."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program


@program(
    "n t",
    """
def jacobi_1d(t: Int, x: Buffer[(n,), f32], y: Out[(n,), f32]):
    a = alloc((2, n), f32)
    for i in range(n):
        a[0, i] = x[i]
    for s in range(t):
        for i in range(n):
            if i > 0 and i < n - 1:
                a[(s + 1) % 2, i] = a[s % 2, i - 1] + a[s % 2, i + 1] - a[s % 2, i]
            else:
                a[(s + 1) % 2, i] = a[s % 2, i]
    for i in range(n):
        y[i] = a[t % 2, i]
""",
    sizes=[{"n": n, "t": t} for n in (0, 1, 2, 3, 7, 17, 33, 130) for t in (0, 1, 4, 5)],
)
def _(x, y, t):
    a = x.copy()
    for _ in range(t):
        b = a.copy()
        b[1:-1] = a[:-2] + a[2:] - a[1:-1]
        a = b
    y[:] = a


@program(
    "n m t",
    """
def jacobi_2d_blocks(t: Int, A: InOut[(n, m), f32]):
    B = alloc((n, m), f32)
    for s in range(t):
        for i in range(n):
            for j in range(m):
                with block("half"):
                    vs, vi, vj = ordered(s), spatial(i), spatial(j)
                    guard(i > 0 and i < n - 1 and j > 0 and j < m - 1)
                    B[vi, vj] = A[vi - 1, vj] + A[vi + 1, vj] + A[vi, vj - 1] - A[vi, vj + 1]
        for i2 in range(n):
            for j2 in range(m):
                with block("copy"):
                    ws, wi, wj = ordered(s), spatial(i2), spatial(j2)
                    guard(i2 > 0 and i2 < n - 1 and j2 > 0 and j2 < m - 1)
                    A[wi, wj] = B[wi, wj]
""",
    sizes=[
        {"n": n, "m": m, "t": t}
        for n, m in ((0, 3), (1, 1), (2, 2), (3, 3), (3, 17), (7, 16), (17, 3), (33, 33))
        for t in (0, 1, 3)
    ],
)
def _(A, t):
    for _ in range(t):
        B = A.copy()
        B[1:-1, 1:-1] = A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] - A[1:-1, 2:]
        A[:] = B


@program(
    "n m t",
    """
def jacobi_2d_halo_extents(t: Int, A: InOut[(n + 2, m + 2), i32]):
    B = alloc((n, m), i32)
    for s in range(t):
        for i in range(n):
            for j in range(m):
                B[i, j] = A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] - A[i + 1, j + 2]
        for i in range(n):
            for j in range(m):
                A[i + 1, j + 1] = B[i, j]
""",
    sizes=[
        {"n": n, "m": m, "t": t}
        for n, m in ((0, 3), (1, 1), (2, 2), (3, 3), (3, 17), (7, 16), (17, 3), (33, 33))
        for t in (0, 1, 3)
    ],
)
def _(A, t):
    for _ in range(t):
        B = A.copy()
        B[1:-1, 1:-1] = A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] - A[1:-1, 2:]
        A[:] = B


@program(
    "n m t",
    """
def gauss_seidel(t: Int, A: InOut[(n + 2, m + 2), i32]):
    for s in range(t):
        for i in range(n):
            for j in range(m):
                A[i + 1, j + 1] = A[i, j + 1] + A[i + 1, j] - A[i + 1, j + 2] + A[i + 2, j + 1]
""",
    sizes=[
        {"n": n, "m": m, "t": t}
        for n, m in ((0, 3), (1, 1), (2, 2), (3, 17), (7, 16), (17, 3), (33, 33))
        for t in (0, 1, 3)
    ],
)
def _(A, t, n, m):
    for _ in range(t):
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                A[i, j] = A[i - 1, j] + A[i, j - 1] - A[i, j + 1] + A[i + 1, j]


@program(
    "n m t",
    """
def red_black(t: Int, A: InOut[(n + 2, m + 2), i32]):
    for s in range(t):
        for c in range(2):
            for i in range(n):
                for j in range((m + 1) // 2):
                    with block("A"):
                        vs, vc, vi, vj = ordered(s), ordered(c), spatial(i), spatial(j)
                        guard(2 * j + (i + c) % 2 < m)
                        A[vi + 1, 2 * vj + (vi + vc) % 2 + 1] = A[vi, 2 * vj + (vi + vc) % 2 + 1] + A[vi + 2, 2 * vj + (vi + vc) % 2 + 1] - A[vi + 1, 2 * vj + (vi + vc) % 2] - A[vi + 1, 2 * vj + (vi + vc) % 2 + 2]
""",
    sizes=[
        {"n": n, "m": m, "t": t}
        for n, m in ((0, 3), (1, 1), (2, 2), (3, 17), (7, 16), (17, 3), (33, 33))
        for t in (0, 1, 3)
    ],
)
def _(A, t, n, m):
    for _ in range(t):
        for c in range(2):
            for i in range(n):
                for j in range((i + c) % 2, m, 2):
                    A[i + 1, j + 1] = A[i, j + 1] + A[i + 2, j + 1] - A[i + 1, j] - A[i + 1, j + 2]


@program(
    "n m t",
    """
def red_black_if(t: Int, A: InOut[(n, m), i32]):
    for s in range(t):
        for i in range(n):
            for j in range(m):
                if (i + j) % 2 == s % 2 and i > 0 and j > 0 and i + 1 < n and j + 1 < m:
                    A[i, j] = A[i - 1, j] + A[i + 1, j] - A[i, j - 1] - A[i, j + 1]
""",
    sizes=[
        {"n": n, "m": m, "t": t}
        for n, m in ((0, 3), (1, 1), (2, 2), (3, 17), (7, 16), (17, 3), (33, 33))
        for t in (0, 1, 3)
    ],
)
def _(A, t, n, m):
    for s in range(t):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                if (i + j) % 2 == s % 2:
                    A[i, j] = A[i - 1, j] + A[i + 1, j] - A[i, j - 1] - A[i, j + 1]


@program(
    "n",
    """
def in_place_read_ahead(x: InOut[(n + 1,), i32]):
    for i in range(n):
        x[i] = x[i] + x[i + 1]
""",
)
def _(x, n):
    x[:n] += x[1:].copy()


@program(
    "n",
    """
def in_place_read_behind(x: InOut[(n + 3,), i32]):
    for i in range(n):
        x[i + 3] = x[i] + x[i + 3]
""",
)
def _(x, n):
    for i in range(n):
        x[i + 3] += x[i]


@program(
    "n",
    """
def in_place_read_behind_16(x: InOut[(n + 16,), f32]):
    for i in range(n):
        x[i + 16] = x[i] + x[i + 16]
""",
)
def _(x, n):
    for i in range(n):
        x[i + 16] += x[i]


@program(
    "n",
    """
def in_place_both(x: InOut[(n + 2,), i32]):
    for i in range(n):
        x[i + 1] = x[i] + x[i + 2]
""",
)
def _(x, n):
    for i in range(n):
        x[i + 1] = x[i] + x[i + 2]


@program(
    "n",
    """
def in_place_two_steps(x: InOut[(n + 2,), i32], y: InOut[(n + 2,), i32]):
    for i in range(n):
        x[i + 1] = y[i] + x[i + 2]
        y[i + 1] = x[i + 1] - y[i + 2]
""",
)
def _(x, y, n):
    for i in range(n):
        x[i + 1] = y[i] + x[i + 2]
        y[i + 1] = x[i + 1] - y[i + 2]


@program(
    "n",
    """
def reverse_in_place(x: InOut[(n,), i32]):
    t = alloc((), i32)
    for i in range(n // 2):
        t[()] = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = t[()]
""",
)
def _(x):
    x[:] = x[::-1].copy()


@program(
    "n",
    """
def transpose_in_place(x: InOut[(n, n), f32]):
    t = alloc((), f32)
    for i in range(n):
        for j in range(i):
            t[()] = x[i, j]
            x[i, j] = x[j, i]
            x[j, i] = t[()]
""",
)
def _(x):
    x[:] = x.T.copy()


@program(
    "n",
    """
def symmetrize(x: InOut[(n, n), f32]):
    for i in range(n):
        for j in range(i):
            x[i, j] = x[i, j] + x[j, i]
            x[j, i] = x[i, j]
""",
)
def _(x, n):
    for i in range(n):
        for j in range(i):
            x[i, j] += x[j, i]
            x[j, i] = x[i, j]


@program(
    "n",
    """
def rotate_columns(x: InOut[(n, 4), i32]):
    t = alloc((4,), i32)
    for i in range(n):
        for j in range(4):
            t[(j + i) % 4] = x[i, j]
        for j in range(4):
            x[i, j] = t[j]
""",
)
def _(x, n):
    for i in range(n):
        x[i] = np.roll(x[i], i % 4)
