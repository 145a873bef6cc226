"""Shortest paths, alignments and scans."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program


@program(
    "n",
    """
def floyd_warshall(D: InOut[(n, n), i32]):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])
""",
    prepare=lambda D: D.__setitem__(slice(None), abs(D)),
)
def _(D, n):
    for k in range(n):
        D[:] = np.minimum(D, D[:, k : k + 1] + D[k : k + 1])


@program(
    "n",
    """
def floyd_warshall_block(D: InOut[(n, n), i32]):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                with block("D"):
                    vk, vi, vj = ordered(k), ordered(i), ordered(j)
                    D[vi, vj] = min(D[vi, vj], D[vi, vk] + D[vk, vj])
""",
)
def _(D, n):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])


@program(
    "n",
    """
def closure(D: InOut[(n, n), bool]):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i, j] = D[i, j] | D[i, k] & D[k, j]
""",
)
def _(D, n):
    for k in range(n):
        D[:] |= D[:, k : k + 1] & D[k : k + 1]


@program(
    "n m",
    """
def smith_waterman(a: Buffer[(n,), i32], b: Buffer[(m,), i32], H: Out[(n + 1, m + 1), i32]):
    for i in range(n + 1):
        H[i, 0] = 0
    for j in range(m + 1):
        H[0, j] = 0
    for i in range(n):
        for j in range(m):
            H[i + 1, j + 1] = max(max(0, H[i, j] + where(a[i] == b[j], 2, -1)), max(H[i, j + 1], H[i + 1, j]) - 1)
""",
    prepare=lambda a, b: (a.__setitem__(slice(None), a & 3), b.__setitem__(slice(None), b & 3)),
)
def _(a, b, H, n, m):
    H[:] = 0
    for i in range(n):
        for j in range(m):
            H[i + 1, j + 1] = max(
                0, H[i, j] + (2 if a[i] == b[j] else -1), max(H[i, j + 1], H[i + 1, j]) - 1
            )


@program(
    "n",
    """
def wavefront_diagonals(a: Buffer[(n, n), i32], H: InOut[(n, n), i32]):
    for s in range(2 * n - 1):
        for t in range(min(s, n - 1) + 1 - max(s - n + 1, 0)):
            with block("H"):
                vs, vi = ordered(s), spatial(n, t + max(s - n + 1, 0))
                guard(t + max(s - n + 1, 0) > 0 and s - (t + max(s - n + 1, 0)) > 0)
                H[vi, vs - vi] = max(H[vi - 1, vs - vi], H[vi, vs - vi - 1]) + a[vi, vs - vi]
""",
)
def _(a, H, n):
    for i in range(1, n):
        for j in range(1, n):
            H[i, j] = max(H[i - 1, j], H[i, j - 1]) + a[i, j]


@program(
    "n m",
    """
def edit_distance_two_rows(a: Buffer[(n,), i32], b: Buffer[(m,), i32], d: Out[(), i32]):
    row = alloc((2, m + 1), i32)
    for j in range(m + 1):
        row[0, j] = index(j, i32)
    for i in range(n):
        row[(i + 1) % 2, 0] = index(i + 1, i32)
        for j in range(m):
            row[(i + 1) % 2, j + 1] = min(min(row[i % 2, j + 1], row[(i + 1) % 2, j]) + 1, row[i % 2, j] + where(a[i] == b[j], 0, 1))
    d[()] = row[n % 2, m]
""",
    prepare=lambda a, b: (a.__setitem__(slice(None), a & 3), b.__setitem__(slice(None), b & 3)),
)
def _(a, b, d, n, m):
    r = list(range(m + 1))
    for i in range(n):
        q = [i + 1]
        for j in range(m):
            q.append(min(r[j + 1] + 1, q[j] + 1, r[j] + (a[i] != b[j])))
        r = q
    d[()] = r[m]


@program(
    "n m",
    """
def lcs_in_place(a: Buffer[(n,), i32], b: Buffer[(m,), i32], row: InOut[(m + 1,), i32]):
    diag = alloc((), i32)
    keep = alloc((), i32)
    for j in range(m + 1):
        row[j] = 0
    for i in range(n):
        diag[()] = 0
        for j in range(m):
            keep[()] = row[j + 1]
            row[j + 1] = where(a[i] == b[j], diag[()] + 1, max(row[j + 1], row[j]))
            diag[()] = keep[()]
""",
    prepare=lambda a, b: (a.__setitem__(slice(None), a & 3), b.__setitem__(slice(None), b & 3)),
)
def _(a, b, row, n, m):
    row[:] = 0
    for i in range(n):
        d = 0
        for j in range(m):
            k = row[j + 1]
            row[j + 1] = d + 1 if a[i] == b[j] else max(row[j + 1], row[j])
            d = k


@program(
    "n",
    """
def prefix_sum(x: Buffer[(n,), i64], y: Out[(n + 1,), i64]):
    y[0] = i64(0)
    for i in range(n):
        y[i + 1] = y[i] + x[i]
""",
)
def _(x, y):
    y[0] = 0
    y[1:] = np.cumsum(x)


@program(
    "n",
    """
def prefix_sum_acc(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    acc = alloc((), f32)
    acc[()] = 0.0
    for i in range(n):
        acc[()] += x[i]
        y[i] = acc[()]
""",
)
def _(x, y):
    y[:] = np.cumsum(x)


@program(
    "n",
    """
def prefix_exclusive_acc(x: Buffer[(n,), f32], y: Out[(n,), f32], total: Out[(), f32]):
    total[()] = 0.0
    for i in range(n):
        y[i] = total[()]
        total[()] += x[i]
""",
)
def _(x, y, total):
    c = np.cumsum(x)
    y[:] = c - x
    total[()] = x.sum()


@program(
    "n",
    """
def prefix_max_in_place(x: InOut[(n,), i8]):
    for i in range(n - 1):
        x[i + 1] = max(x[i + 1], x[i])
""",
)
def _(x, n):
    if n:
        x[:] = np.maximum.accumulate(x)


@program(
    "n",
    """
def suffix_sum(x: Buffer[(n,), i32], y: Out[(n + 1,), i32]):
    y[n] = 0
    for i in range(n):
        y[n - 1 - i] = y[n - i] + x[n - 1 - i]
""",
)
def _(x, y, n):
    y[n] = 0
    y[:n] = np.cumsum(x[::-1])[::-1]


@program(
    "n",
    """
def segmented_sum(flag: Buffer[(n,), bool], x: Buffer[(n,), f32], y: Out[(n,), f32]):
    acc = alloc((1,), f32)
    acc[0] = 0.0
    for i in range(n):
        acc[0] = where(flag[i], x[i], acc[0] + x[i])
        y[i] = acc[0]
""",
)
def _(flag, x, y, n):
    a = 0
    for i in range(n):
        a = x[i] if flag[i] else a + x[i]
        y[i] = a


@program(
    "n",
    """
def segmented_sum_quadratic(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for j in range(i % 5 + 1):
            with block("y"):
                vi, vj = spatial(i), reduce(n, i // 5 * 5 + j)
                with init(): y[vi] = 0.0
                y[vi] += x[vj]
""",
)
def _(x, y, n):
    for i in range(n):
        y[i] = x[i // 5 * 5 : i + 1].sum()


@program(
    "n",
    """
def scan_quadratic(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        for j in range(i + 1):
            with block("y"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 0
                y[vi] += x[vj]
""",
)
def _(x, y):
    y[:] = np.cumsum(x)


@program(
    "n",
    """
def scan_hillis_steele(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((9, n), i32)
    for i in range(n):
        t[0, i] = x[i]
    for s in range(8):
        for i in range(n):
            if i >= 1:
                t[s + 1, i] = t[s, i] + t[s, i - 1]
            else:
                t[s + 1, i] = t[s, i]
    for i in range(n):
        y[i] = t[8, i]
""",
)
def _(x, y):
    t = x.copy()
    for _ in range(8):
        t[1:] = t[1:] + t[:-1]
    y[:] = t


@program(
    "n m",
    """
def cumsum_rows_columns(x: Buffer[(n, m), i32], y: InOut[(n + 1, m + 1), i32]):
    for i in range(n + 1):
        y[i, 0] = 0
    for j in range(m + 1):
        y[0, j] = 0
    for i in range(n):
        for j in range(m):
            y[i + 1, j + 1] = y[i, j + 1] + y[i + 1, j] - y[i, j] + x[i, j]
""",
)
def _(x, y):
    y[:] = 0
    y[1:, 1:] = x.cumsum(0).cumsum(1)
