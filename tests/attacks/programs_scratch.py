"""Programs with temporaries of loops, whose sizes depend on iterations and on loaded integers."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program


@program(
    "n m",
    """
def scratch_of_a_loaded_size(x: Buffer[(m,), f32], p: Buffer[(n,), i32], y: Out[(n,), f32]):
    for i in range(n):
        with clamped(p[i], 0, m + 1) as k:
            t = alloc((k,), f32)
            s = alloc((), f32)
            for j in range(k):
                t[j] = x[k - 1 - j]
            s[()] = 0.0
            for j in range(k):
                s[()] = t[j] - s[()]
            y[i] = s[()]
""",
)
def _(x, p, y, m):
    for i, k in enumerate(np.clip(p, 0, m)):
        s = np.float32(0)
        for value in x[:k][::-1]:
            s = value - s
        y[i] = s


@program(
    "n",
    """
def scratch_of_a_product_of_iterations(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        t = alloc((i % 3 * (n - i) + 1,), i32)
        for j in range(i % 3 * (n - i) + 1):
            t[j] = x[(i + j) % n]
        y[i] = 0
        for k in range(i % 3 * (n - i) + 1):
            y[i] = y[i] + t[i % 3 * (n - i) - k] * index(k % 3 + 1, i32)
""",
)
def _(x, y, n):
    for i in range(n):
        last = i % 3 * (n - i)
        y[i] = sum(int(x[(i + last - k) % n]) * (k % 3 + 1) for k in range(last + 1))


@program(
    "n m",
    """
def rolling_rows_of_an_edit_distance(a: Buffer[(n,), i32], b: Buffer[(m,), i32], y: Out[(1,), i32]):
    r = alloc((2, m + 1), i32)
    for j in range(m + 1):
        r[0, j] = index(j, i32)
    for i in range(n):
        r[(i + 1) % 2, 0] = index(i + 1, i32)
        for j in range(m):
            r[(i + 1) % 2, j + 1] = min(min(r[i % 2, j + 1] + 1, r[(i + 1) % 2, j] + 1), r[i % 2, j] + where(a[i] == b[j], 0, 1))
    y[0] = r[n % 2, m]
""",
)
def _(a, b, y):
    row = np.arange(len(b) + 1)
    for i, value in enumerate(a):
        old, row = row, np.full_like(row, i + 1)
        for j, other in enumerate(b):
            row[j + 1] = min(old[j + 1] + 1, row[j] + 1, old[j] + (value != other))
    y[0] = row[-1]


@program(
    "n",
    """
def median_of_three(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        a = alloc((3,), i32)
        for k in range(3):
            a[k] = x[min(max(i + k - 1, 0), n - 1)]
        for p in range(2):
            for q in range(2):
                s = alloc((2,), i32)
                s[0] = min(a[q], a[q + 1])
                s[1] = max(a[q], a[q + 1])
                a[q] = s[0]
                a[q + 1] = s[1]
        y[i] = a[1]
""",
)
def _(x, y):
    if x.size:
        wide = np.concatenate([x[:1], x, x[-1:]])
        y[:] = np.median(np.stack([wide[:-2], wide[1:-1], wide[2:]]), axis=0)


@program(
    "n",
    """
def double_buffer_with_a_prologue(x: Buffer[(n, 8), i32], y: Out[(n, 8), i32]):
    b = alloc((2, 8), i32)
    for p in range(min(n, 1)):
        for j in range(8):
            b[p, j] = x[p, j] * 3
    for i in range(n):
        if i + 1 < n:
            for j in range(8):
                b[(i + 1) % 2, j] = x[i + 1, j] * 3
        for j in range(8):
            y[i, j] = b[i % 2, 7 - j] + 1
""",
)
def _(x, y):
    y[:] = 3 * x[:, ::-1] + 1


@program(
    "n m",
    """
def temporaries_of_two_branches(x: Buffer[(n, m), i32], y: Out[(m, n), i32]):
    if n > m:
        t = alloc((m, n), i32)
        for i in range(n):
            for j in range(m):
                t[j, i] = x[i, j]
        for j in range(m):
            for i in range(n):
                y[j, i] = t[j, n - 1 - i]
    else:
        u = alloc((n * m,), i32)
        for i in range(n):
            for j in range(m):
                u[i * m + j] = x[i, j] + 1
        for j in range(m):
            for i in range(n):
                y[j, i] = u[i * m + j]
""",
)
def _(x, y, n, m):
    y[:] = x.T[:, ::-1] if n > m else x.T + 1


@program(
    "n m",
    """
def sum_of_squares_in_scratch(x: Buffer[(n, m), i32], y: Out[(n,), i32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 1
                t = alloc((2,), i32)
                t[0] = x[vi, vj] + 1
                t[1] = t[0] * t[0]
                y[vi] += t[1]
""",
)
def _(x, y):
    y[:] = 1 + ((x + 1) ** 2).sum(axis=1)
