"""Element-wise programs in place, with shared temporaries, shifts and strides."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.programs_rows import P2, P, X, mp


def _(x, y):
    y[:] = (x + 1) * 2


P(
    "ew_in_place_twice",
    "x: Buffer[(n, m), f32], y: Out[(n, m), f32]",
    mp("a", "y", "x[I, J] + 1.0") + mp("b", "y", "y[I, J] * 2.0"),
    _,
)


def _(x):
    x[:] = -(x + 1)


P(
    "ew_in_place",
    "x: InOut[(n, m), f32]",
    "t = alloc((n, m), f32)\n" + mp("a", "t", "x[I, J] + 1.0") + mp("b", "x", "-t[I, J]"),
    _,
)


def _(x):
    x[:] = x[::-1].copy() + 1


P(
    "ew_reverse_in_place",
    "x: InOut[(n, m), f32]",
    "t = alloc((n, m), f32)\n" + mp("a", "t", "x[n - 1 - I, J] + 1.0") + mp("b", "x", "t[I, J]"),
    _,
)


def _(x):
    x[:] = x.T.copy() * 2


P(
    "ew_transpose_in_place",
    "x: InOut[(n, n), f32]",
    ("t = alloc((n, n), f32)\n" + mp("a", "t", "x[J, I] * 2.0") + mp("b", "x", "t[I, J]")).replace(
        "range(m)", "range(n)"
    ),
    _,
)


def _(x, y):
    y[:] = x + np.roll(x, -1, 1)


P(
    "ew_shift_wrap",
    "x: Buffer[(n, m), f32], y: Out[(n, m), f32]",
    "t = alloc((n, m), f32)\n"
    + mp("a", "t", "x[I, J] + 0.0")
    + mp("b", "y", "t[I, J] + t[I, (J + 1) % m]"),
    _,
)


def _(x, y, z):
    y[:] = x + 1
    z[:] = x + y


P(
    "ew_two_outputs",
    "x: Buffer[(n, m), f32], y: Out[(n, m), f32], z: Out[(n, m), f32]",
    mp("a", "y", "x[I, J] + 1.0") + mp("b", "z", "x[I, J] + y[I, J]"),
    _,
)


def _(x, y, z):
    z[:] = x - y
    y[:] = x + 1


P(
    "ew_anti",
    "x: Buffer[(n, m), f32], y: InOut[(n, m), f32], z: Out[(n, m), f32]",
    mp("a", "z", "x[I, J] - y[I, J]") + mp("b", "y", "x[I, J] + 1.0"),
    _,
)


def _(x, y):
    x0 = x.copy()
    x[:] = y
    y[:] = x0


P(
    "ew_swap",
    "x: InOut[(n, m), f32], y: InOut[(n, m), f32]",
    "t = alloc((n, m), f32)\n"
    + mp("a", "t", "x[I, J]")
    + mp("b", "x", "y[I, J]")
    + mp("c", "y", "t[I, J]"),
    _,
)


def _(x, y):
    y[:] = 3 * x


P(
    "ew_reused_temporary",
    "x: Buffer[(n, m), f32], y: Out[(n, m), f32]",
    "t = alloc((n, m), f32)\n"
    + mp("a", "t", "x[I, J] * 2.0")
    + mp("b", "y", "t[I, J]")
    + mp("c", "t", "x[I, J]")
    + mp("d", "y", "y[I, J] + t[I, J]"),
    _,
)


def _(x, y):
    y[:] = x.reshape(y.shape)


P(
    "ew_flatten",
    "x: Buffer[(n, m), f32], y: Out[(n * m,), f32]",
    "for i in range(n):\n    for j in range(m):\n        with block('y'):\n            vi, vj = spatial(i), spatial(j)\n            y[vi * m + vj] = x[vi, vj]\n",
    _,
)
P(
    "ew_unflatten",
    "x: Buffer[(n * m,), f32], y: Out[(n, m), f32]",
    "for k in range(n * m):\n    with block('y'):\n        vk = spatial(k)\n        y[vk // m, vk % m] = x[vk]\n",
    _,
    lower=1,
)
P(
    "ew_unflatten_raw",
    "x: Buffer[(n * m,), f32], y: Out[(n, m), f32]",
    "for k in range(n * m):\n    y[k // m, k % m] = x[k]\n",
    _,
    lower=1,
)


def _(x, b, y):
    y[:] = x + b


P(
    "ew_broadcast_1",
    "x: Buffer[(n, m), f32], b: Buffer[(n, 1), f32], y: Out[(n, m), f32]",
    mp("a", "y", "x[I, J] + b[I, 0]"),
    _,
)
P(
    "ew_broadcast_2",
    "x: Buffer[(n, m), f32], b: Buffer[(1, m), f32], y: Out[(n, m), f32]",
    mp("a", "y", "x[I, J] + b[0, J]"),
    _,
)


def _(x, y):
    y[:] = x[:, ::-1]


P("ew_reversed_row", X + ", y: Out[(n, m), f32]", mp("a", "y", "x[I, m - 1 - J]"), _)


def _(x, y):
    y[:, 0::2] = x
    y[:, 1::2] = -x


P(
    "interleave",
    X + ", y: Out[(n, m * 2), f32]",
    mp("a", "y", "x[I, J]").replace("y[ai, aj]", "y[ai, aj * 2]")
    + mp("b", "y", "-x[I, J]").replace("y[bi, bj]", "y[bi, bj * 2 + 1]"),
    _,
)


def _(x, y):
    y[:] = np.concatenate([x, x * 2], 1)


P(
    "concatenate",
    X + ", y: Out[(n, m * 2), f32]",
    mp("a", "y", "x[I, J]") + mp("b", "y", "x[I, J] * 2.0").replace("y[bi, bj]", "y[bi, bj + m]"),
    _,
)


def _(x, y):
    y[:] = np.pad(x, 1)


P(
    "pad_by_where",
    X + ", y: Out[(n + 2, m + 2), f32]",
    "for i in range(n + 2):\n    for j in range(m + 2):\n        with block('y'):\n            vi, vj = spatial(i), spatial(j)\n            y[vi, vj] = where(vi >= 1 and vi < n + 1 and vj >= 1 and vj < m + 1, x[max(min(vi - 1, n - 1), 0), max(min(vj - 1, m - 1), 0)], 0.0)\n",
    _,
    lower=1,
)


def _(x, y, n, m):
    y[:] = np.where(np.tri(n, m, dtype=bool), x, y)


P(
    "tril_guard",
    X + ", y: InOut[(n, m), f32]",
    mp("a", "y", "x[I, J]").replace("            y[", "            guard(j <= i)\n            y["),
    _,
)


def _(x, y, z):
    y[:, 0] = x.sum(1)
    y[:, 1:] = x[:, :1] if False else y[:, 1:]
    z[:] = x


# strided views
def _(x, y):
    y[:] = x * 2


P(
    "strided_input",
    "x: Buffer((n, m), f32, strides=(m * 2 + 3, 1)), y: Out[(n, m), f32]",
    mp("a", "y", "x[I, J] * 2.0"),
    _,
    sizes=P2,
)
P(
    "strided_columns",
    "x: Buffer((n, m), f32, strides=(1, n + 1)), y: Out[(n, m), f32]",
    mp("a", "y", "x[I, J] * 2.0"),
    _,
    sizes=P2,
)
P(
    "strided_output",
    "x: Buffer[(n, m), f32], y: Out((n, m), f32, strides=(m + 5, 1))",
    mp("a", "y", "x[I, J] * 2.0"),
    _,
    sizes=P2,
)
P(
    "strided_every_second",
    "x: Buffer((n, m), f32, strides=(m * 2, 2)), y: Out((n, m), f32, strides=(m * 3, 3))",
    mp("a", "y", "x[I, J] * 2.0"),
    _,
    sizes=P2,
)
