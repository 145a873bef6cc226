"""Butterflies, bit reversal and sorting."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program


@program(
    "n",
    """
def butterfly_stage(x: InOut[(n * 8,), i32]):
    for s in range(n):
        for t in range(3):
            for k in range(4):
                with block("b"):
                    vs, vt, vk = spatial(s), ordered(t), spatial(k)
                    x[vs * 8 + vk] = x[vs * 8 + vk] + x[vs * 8 + vk + 4]
                    x[vs * 8 + vk + 4] = x[vs * 8 + vk] - x[vs * 8 + vk + 4]
""",
)
def _(x, n):
    a = x.reshape(n, 8)
    for _ in range(3):
        a[:, :4] = a[:, :4] + a[:, 4:]
        a[:, 4:] = a[:, :4] - a[:, 4:]


@program(
    "",
    """
def hadamard_64(x: Buffer[(64,), i32], y: Out[(64,), i32]):
    a = alloc((7, 64), i32)
    for i in range(64):
        a[0, i] = x[i]
    for g in range(32):
        for h in range(2):
            a[1, g * 2 + h] = a[0, g * 2] + where(h == 0, a[0, g * 2 + 1], -a[0, g * 2 + 1])
    for i in range(64):
        a[2, i] = where(i // 2 % 2 == 0, a[1, i] + a[1, i + 2 - i // 2 % 2 * 4 ], a[1, i - 2 + (1 - i // 2 % 2) * 4 - (1 - i // 2 % 2) * 2 ] - a[1, i])
    for i in range(64):
        y[i] = a[2, i]
""",
)
def _(x, y):
    a = x.reshape(32, 2)
    b = np.stack([a[:, 0] + a[:, 1], a[:, 0] - a[:, 1]], 1).reshape(64)
    i = np.arange(64)
    bit = i // 2 % 2
    y[:] = np.where(
        bit == 0, b + b[(i + 2 - bit * 4)], b[i - 2 + (1 - bit) * 4 - (1 - bit) * 2] - b
    )


for e in (1, 2, 4, 8):

    def f(e=e):
        @program(
            "n",
            f"""
def fft_stage_{e}(x: Buffer[(n * 16,), f32], y: Out[(n * 16,), f32]):
    for i in range(n * 8):
        with block("y"):
            vi = spatial(i)
            y[vi // {e} * {2 * e} + vi % {e}] = x[vi // {e} * {2 * e} + vi % {e}] + x[vi // {e} * {2 * e} + vi % {e} + {e}]
            y[vi // {e} * {2 * e} + vi % {e} + {e}] = x[vi // {e} * {2 * e} + vi % {e}] - x[vi // {e} * {2 * e} + vi % {e} + {e}]
""",
        )
        def _(x, y):
            a = x.reshape(-1, 2, e)
            b = y.reshape(-1, 2, e)
            b[:, 0] = a[:, 0] + a[:, 1]
            b[:, 1] = a[:, 0] - a[:, 1]

        @program(
            "n",
            f"""
def fft_stage_in_place_{e}(x: InOut[(n * 16,), f32]):
    t = alloc((), f32)
    for i in range(n * 8):
        t[()] = x[i // {e} * {2 * e} + i % {e}]
        x[i // {e} * {2 * e} + i % {e}] = t[()] + x[i // {e} * {2 * e} + i % {e} + {e}]
        x[i // {e} * {2 * e} + i % {e} + {e}] = t[()] - x[i // {e} * {2 * e} + i % {e} + {e}]
""",
        )
        def _(x):
            a = x.reshape(-1, 2, e)
            p, q = a[:, 0].copy(), a[:, 1].copy()
            a[:, 0] = p + q
            a[:, 1] = p - q

    f()


@program(
    "n",
    """
def bit_reversal(x: Buffer[(n, 16), i32], y: Out[(n, 16), i32]):
    for r in range(n):
        for i in range(16):
            y[r, i % 2 * 8 + i // 2 % 2 * 4 + i // 4 % 2 * 2 + i // 8] = x[r, i]
""",
)
def _(x, y):
    p = [int(f"{i:04b}"[::-1], 2) for i in range(16)]
    y[:, p] = x


@program(
    "n",
    """
def bubble_sort(x: InOut[(n,), i32]):
    t = alloc((), i32)
    for i in range(n):
        for j in range(n - i - 1):
            t[()] = min(x[j], x[j + 1])
            x[j + 1] = max(x[j], x[j + 1])
            x[j] = t[()]
""",
)
def _(x):
    x.sort()


@program(
    "n",
    """
def odd_even_sort2(x: InOut[(n,), f32]):
    lo = alloc((n,), f32)
    hi = alloc((n,), f32)
    for s in range(n):
        for p in range(n // 2):
            if p * 2 + s % 2 + 1 < n:
                lo[p] = min(x[p * 2 + s % 2], x[p * 2 + s % 2 + 1])
                hi[p] = max(x[p * 2 + s % 2], x[p * 2 + s % 2 + 1])
        for p in range(n // 2):
            if p * 2 + s % 2 + 1 < n:
                x[p * 2 + s % 2] = lo[p]
                x[p * 2 + s % 2 + 1] = hi[p]
""",
)
def _(x):
    x.sort()


@program(
    "n m",
    """
def insertion_ranks(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    r = alloc((n,), i32)
    for i in range(n):
        for j in range(n):
            with block("r"):
                vi, vj = spatial(i), reduce(j)
                with init(): r[vi] = 0
                r[vi] += where(x[vj] < x[vi] or (x[vj] == x[vi] and vj < vi), 1, 0)
    for k in range(n):
        with block("put"):
            vk = spatial(k)
            with checked(r[vk], 0, n) as p:
                y[p] = x[vk]
""",
)
def _(x, y):
    y[:] = np.sort(x)


@program(
    "n m",
    """
def merge_sorted(a: Buffer[(n,), i32], b: Buffer[(m,), i32], y: Out[(n + m,), i32]):
    ra = alloc((n,), i32)
    rb = alloc((m,), i32)
    for i in range(n):
        ra[i] = 0
        for j in range(m):
            if True:
                ra[i] += where(b[j] < a[i], 1, 0)
    for i in range(m):
        rb[i] = 0
        for j in range(n):
            rb[i] += where(a[j] <= b[i], 1, 0)
    for i in range(n):
        with checked(ra[i], 0, m + 1) as p:
            y[i + p] = a[i]
    for i in range(m):
        with checked(rb[i], 0, n + 1) as q:
            y[i + q] = b[i]
""",
    prepare=lambda a, b: (a.sort(), b.sort()),
)
def _(a, b, y):
    y[:] = np.sort(np.concatenate([a, b]))
