"""Convolutions and poolings with borders, strides, dilation and groups."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program

for nm, st, dil, pad in (
    ("plain", 1, 1, 1),
    ("stride2", 2, 1, 1),
    ("dilated", 1, 2, 2),
    ("both", 3, 2, 3),
):

    def f(nm=nm, st=st, dil=dil, pad=pad):
        @program(
            "n c",
            f"""
def conv_where_{nm}(x: Buffer[(c, n, n), f32], w: Buffer[(5, c, 3, 3), f32], y: Out[(5, (n + {2 * pad - 2 * dil - 1}) // {st} + 1, (n + {2 * pad - 2 * dil - 1}) // {st} + 1), f32]):
    for o in range(5):
        for a in range((n + {2 * pad - 2 * dil - 1}) // {st} + 1):
            for b in range((n + {2 * pad - 2 * dil - 1}) // {st} + 1):
                y[o, a, b] = 0.0
                for k in range(c):
                    for r in range(3):
                        for s in range(3):
                            if a * {st} + r * {dil} >= {pad} and a * {st} + r * {dil} < n + {pad} and b * {st} + s * {dil} >= {pad} and b * {st} + s * {dil} < n + {pad}:
                                y[o, a, b] += x[k, a * {st} + r * {dil} - {pad}, b * {st} + s * {dil} - {pad}] * w[o, k, r, s]
""",
            sizes=[
                {"n": n, "c": c}
                for n, c in ((1, 1), (2, 3), (3, 2), (7, 1), (16, 2), (17, 3), (7, 0))
            ],
        )
        def _(x, w, y, n, c):
            p = np.zeros((c, n + 2 * pad, n + 2 * pad), "f4")
            p[:, pad : pad + n, pad : pad + n] = x
            y[:] = 0
            for a in range(y.shape[1]):
                for b in range(y.shape[2]):
                    y[:, a, b] = np.einsum(
                        "krs,okrs->o",
                        p[
                            :,
                            a * st : a * st + 2 * dil + 1 : dil,
                            b * st : b * st + 2 * dil + 1 : dil,
                        ],
                        w,
                    )

        @program(
            "n c",
            f"""
def conv_guard_{nm}(x: Buffer[(c, n), i32], w: Buffer[(5, c, 3), i32], y: Out[(5, (n + {2 * pad - 2 * dil - 1}) // {st} + 1), i32]):
    for o in range(5):
        for a in range((n + {2 * pad - 2 * dil - 1}) // {st} + 1):
            for k in range(c):
                for r in range(3):
                    with block("y"):
                        vo, va, vk, vr = spatial(o), spatial(a), reduce(k), reduce(r)
                        guard(a * {st} + r * {dil} >= {pad} and a * {st} + r * {dil} < n + {pad})
                        with init(): y[vo, va] = 0
                        y[vo, va] += x[vk, va * {st} + vr * {dil} - {pad}] * w[vo, vk, vr]
""",
            sizes=[
                {"n": n, "c": c}
                for n, c in ((3, 1), (5, 3), (6, 2), (7, 1), (16, 2), (33, 3), (67, 17), (130, 1))
            ],
        )
        def _(x, w, y, n, c):
            p = np.zeros((c, n + 2 * pad), "i4")
            p[:, pad : pad + n] = x
            for a in range(y.shape[1]):
                y[:, a] = np.einsum("kr,okr->o", p[:, a * st : a * st + 2 * dil + 1 : dil], w)

    f()


@program(
    "n g",
    """
def conv_groups(x: Buffer[(g * 4, n + 2), f32], w: Buffer[(g * 3, 4, 3), f32], y: Out[(g * 3, n), f32]):
    for o in range(g * 3):
        for a in range(n):
            for k in range(4):
                for r in range(3):
                    with block("y"):
                        vo, va, vk, vr = spatial(o), spatial(a), reduce(k), reduce(r)
                        with init(): y[vo, va] = 0.0
                        y[vo, va] += x[vo // 3 * 4 + vk, va + vr] * w[vo, vk, vr]
""",
)
def _(x, w, y, n, g):
    for o in range(3 * g):
        y[o] = sum(x[o // 3 * 4 + k, r : r + n] * w[o, k, r] for k in range(4) for r in range(3))


@program(
    "n c",
    """
def conv_depthwise_where(x: Buffer[(c, n), f32], w: Buffer[(c, 3), f32], y: Out[(c, n), f32]):
    p = alloc((c, n + 2), f32)
    for k in range(c):
        for a in range(n + 2):
            if a >= 1 and a < n + 1:
                p[k, a] = x[k, a - 1]
            else:
                p[k, a] = 0.0
    for k in range(c):
        for a in range(n):
            for r in range(3):
                with block("y"):
                    vk, va, vr = spatial(k), spatial(a), reduce(r)
                    with init(): y[vk, va] = 0.0
                    y[vk, va] += p[vk, va + vr] * w[vk, vr]
""",
)
def _(x, w, y, n):
    p = np.pad(x, ((0, 0), (1, 1)))
    y[:] = sum(p[:, r : r + n] * w[:, r : r + 1] for r in range(3))


@program(
    "n c",
    """
def conv_transposed_scatter(x: Buffer[(c, n), f32], w: Buffer[(c, 5, 3), f32], y: Out[(5, n * 2 + 1), f32]):
    for o in range(5):
        for a in range(n * 2 + 1):
            y[o, a] = 0.0
    for k in range(c):
        for i in range(n):
            for o in range(5):
                for r in range(3):
                    y[o, i * 2 + r] += x[k, i] * w[k, o, r]
""",
)
def _(x, w, y, n):
    y[:] = 0
    for i in range(n):
        for r in range(3):
            y[:, i * 2 + r] += x[:, i] @ w[:, :, r]


@program(
    "n c",
    """
def conv_transposed_gather(x: Buffer[(c, n), f32], w: Buffer[(c, 5, 3), f32], y: Out[(5, n * 2 + 1), f32]):
    for o in range(5):
        for a in range(n * 2 + 1):
            for k in range(c):
                for r in range(3):
                    with block("y"):
                        vo, va, vk, vr = spatial(o), spatial(a), reduce(k), reduce(r)
                        guard((a - r) % 2 == 0 and a >= r and a - r < 2 * n)
                        with init(): y[vo, va] = 0.0
                        y[vo, va] += x[vk, (va - vr) // 2] * w[vk, vo, vr]
""",
    sizes=[
        {"n": n, "c": c}
        for n, c in ((1, 1), (2, 3), (3, 2), (7, 1), (16, 2), (17, 3), (33, 7), (67, 2))
    ],
)
def _(x, w, y, n):
    y[:] = 0
    for i in range(n):
        for r in range(3):
            y[:, i * 2 + r] += x[:, i] @ w[:, :, r]


@program(
    "n c",
    """
def max_pool_ragged(x: Buffer[(c, n), f32], y: Out[(c, ceildiv(n, 3)), f32]):
    for k in range(c):
        for a in range(ceildiv(n, 3)):
            for r in range(min(3, n - a * 3)):
                with block("y"):
                    vk, va, vr = spatial(k), spatial(a), reduce(3, r)
                    with init(): y[vk, va] = -inf
                    y[vk, va] = max(y[vk, va], x[vk, va * 3 + vr])
""",
)
def _(x, y, n):
    for a in range(y.shape[1]):
        y[:, a] = x[:, a * 3 : a * 3 + 3].max(1)


@program(
    "n c",
    """
def avg_pool_count(x: Buffer[(c, n), f32], y: Out[(c, n), f32]):
    for k in range(c):
        for a in range(n):
            y[k, a] = 0.0
            for r in range(min(a + 2, n) - max(a - 1, 0)):
                y[k, a] += x[k, max(a - 1, 0) + r]
            y[k, a] = y[k, a] / index(min(a + 2, n) - max(a - 1, 0), f32)
""",
    exact=False,
)
def _(x, y, n):
    for a in range(n):
        y[:, a] = x[:, max(a - 1, 0) : a + 2].mean(1)
