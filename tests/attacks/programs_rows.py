"""Reductions of rows and columns whose results other blocks use or update."""

# ruff: noqa: E501, N802  # lines of programs, and their references

from __future__ import annotations

import textwrap

import numpy as np

from tests.attacks.loop_programs import program

S2 = [
    {"n": n, "m": m}
    for n, m in (
        (0, 3),
        (3, 0),
        (1, 1),
        (2, 3),
        (3, 17),
        (7, 16),
        (17, 33),
        (16, 130),
        (130, 7),
        (67, 67),
    )
]
P2 = [s for s in S2 if s["m"]]


def P(name, params, body, ref, **kw):
    kw.setdefault("sizes", S2)
    program(
        "n m",
        f"\ndef {name}({params}):\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        + "\n",
        **kw,
    )(ref)


X = "x: Buffer[(n, m), f32]"
SUM = """
for i in range(n):
    for j in range(m):
        with block("sum"):
            vi, vj = spatial(i), reduce(j)
            with init(): {d}[vi] = 0.0
            {d}[vi] += {e}
"""
MAP = """
for i in range(n):
    for j in range(m):
        with block("{b}"):
            {b}i, {b}j = spatial(i), spatial(j)
            {t}[{b}i, {b}j] = {e}
"""


def mp(b, t, e):
    return MAP.format(b=b, t=t, e=e.replace("I", b + "i").replace("J", b + "j"))


def sm(d, e):
    return SUM.format(d=d, e=e)


def _(x):
    x[:] = x - x.sum(1, keepdims=True)


P(
    "rows_in_place",
    "x: InOut[(n, m), f32]",
    "s = alloc((n,), f32)\n" + sm("s", "x[vi, vj]") + mp("a", "x", "x[I, J] - s[I]"),
    _,
)


def _(x, y):
    y[:] = x - np.roll(x.sum(1), 1)[:, None] * 0
    s = x.sum(1)
    y[:] = x
    y[1:] -= s[:-1, None]


P(
    "rows_previous",
    X + ", y: Out[(n, m), f32]",
    "s = alloc((n,), f32)\n"
    + sm("s", "x[vi, vj]")
    + mp("a", "y", "x[I, J] - where(I > 0, s[max(I - 1, 0)], 0.0)"),
    _,
)


def _(x, y):
    s = x.sum(1)
    y[:] = x - s[::-1, None]


P(
    "rows_reversed",
    X + ", y: Out[(n, m), f32]",
    "s = alloc((n,), f32)\n" + sm("s", "x[vi, vj]") + mp("a", "y", "x[I, J] - s[n - 1 - I]"),
    _,
)


def _(x, y):
    s = x.sum(1)
    y[:] = x - s[0] if len(s) else 0


P(
    "rows_first",
    X + ", y: Out[(n, m), f32]",
    "s = alloc((n,), f32)\n" + sm("s", "x[vi, vj]") + mp("a", "y", "x[I, J] - s[0]"),
    _,
)


def _(x, y):
    s = x.sum(1)
    y[:] = x + s[:, None] + s[None, :]


P(
    "rows_outer",
    "x: Buffer[(n, n), f32], y: Out[(n, n), f32]",
    "s = alloc((n,), f32)\n"
    + sm("s", "x[vi, vj]").replace("range(m)", "range(n)")
    + mp("a", "y", "x[I, J] + s[I] + s[J]").replace("range(m)", "range(n)"),
    _,
)


def _(x, y):
    y[:] = x + 1
    s = y.sum(1)
    y[:] = y - s[:, None]


P(
    "rows_output_updated",
    X + ", y: Out[(n, m), f32]",
    "s = alloc((n,), f32)\n"
    + mp("a", "y", "x[I, J] + 1.0")
    + sm("s", "y[vi, vj]")
    + mp("b", "y", "y[I, J] - s[I]"),
    _,
)


def _(x, y, r):
    y[:] = x * 2
    r[:] = x.sum(1)


P(
    "rows_two_outputs",
    X + ", y: Out[(n, m), f32], r: Out[(n,), f32]",
    sm("r", "x[vi, vj]") + mp("a", "y", "x[I, J] * 2.0"),
    _,
)


def _(x, r):
    r[:] = 2 * x.sum(1)


P(
    "rows_output_then_scaled",
    X + ", r: Out[(n,), f32]",
    sm("r", "x[vi, vj]")
    + "for k in range(n):\n    with block('k'):\n        vk = spatial(k)\n        r[vk] = r[vk] * 2.0\n",
    _,
)


def _(x, r, q):
    r[:] = x.sum(1)
    q[:] = (x - r[:, None]).max(1, initial=-np.inf)


P(
    "rows_two_reductions_outputs",
    X + ", r: Out[(n,), f32], q: Out[(n,), f32]",
    sm("r", "x[vi, vj]")
    + """
for i in range(n):
    for j in range(m):
        with block("q"):
            qi, qj = spatial(i), reduce(j)
            with init(): q[qi] = -inf
            q[qi] = max(q[qi], x[qi, qj] - r[qi])
""",
    _,
)


def _(x, y):
    y[:] = (x - x.mean(1, keepdims=True)) if x.shape[1] else 0


P(
    "rows_mean_symbol",
    X + ", y: Out[(n, m), f32]",
    "s = alloc((n,), f32)\n"
    + sm("s", "x[vi, vj]")
    + mp("a", "y", "x[I, J] - s[I] / index(m, f32)"),
    _,
    exact=False,
)


def _(x, y):
    c = x.sum(0)
    y[:] = x - c


P(
    "columns_then_rows",
    X + ", y: Out[(n, m), f32]",
    """
s = alloc((m,), f32)
for j in range(m):
    for i in range(n):
        with block("sum"):
            vj, vi = spatial(j), reduce(i)
            with init(): s[vj] = 0.0
            s[vj] += x[vi, vj]
"""
    + mp("a", "y", "x[I, J] - s[J]"),
    _,
)


def _(x, y):
    y[:] = x - x.sum()


P(
    "all_then_rows",
    X + ", y: Out[(n, m), f32]",
    """
s = alloc((1,), f32)
for i in range(n):
    for j in range(m):
        with block("sum"):
            vi, vj = reduce(i), reduce(j)
            with init(): s[0] = 0.0
            s[0] += x[vi, vj]
"""
    + mp("a", "y", "x[I, J] - s[0]"),
    _,
    sizes=[s for s in P2 if s["n"]],
)


def _(x, y):
    t = x.sum(1)
    y[()] = (t * t).sum()


P(
    "rows_then_total",
    X + ", y: Out[(), f32]",
    "s = alloc((n,), f32)\n"
    + sm("s", "x[vi, vj]")
    + """
for k in range(n):
    with block("t"):
        vk = reduce(k)
        with init(): y[()] = 0.0
        y[()] += s[vk] * s[vk]
""",
    _,
    sizes=[s for s in P2 if s["n"]],
)


def _(x, y):
    s = x.sum(1)
    y[:] = np.cumsum(s)


P(
    "rows_then_scan",
    X + ", y: Out[(n,), f32]",
    "s = alloc((n,), f32)\n"
    + sm("s", "x[vi, vj]")
    + """
for k in range(n):
    for l in range(k + 1):
        with block("t"):
            vk, vl = spatial(k), reduce(l)
            with init(): y[vk] = 0.0
            y[vk] += s[vl]
""",
    _,
)


def _(x, y):
    y[:] = 3 + x.sum(1)


P("init_from_column", X + ", y: Out[(n,), f32]", sm("y", "x[vi, vj]").replace("= 0.0", "= 3.0"), _)


def _(x, y):
    y[:] = x[:, :1].sum(1) + x.sum(1)


P(
    "init_reads_reduced",
    X + ", y: Out[(n,), f32]",
    sm("y", "x[vi, vj]").replace("= 0.0", "= x[vi, 0]"),
    _,
    sizes=P2,
)


def _(x, y):
    y[:] = y * 0 + np.where(np.arange(len(y)) % 2 == 0, 1, 5) + x.sum(1)


P(
    "init_where_outer",
    X + ", y: Out[(n,), f32]",
    sm("y", "x[vi, vj]").replace("= 0.0", "= where(vi % 2 == 0, 1.0, 5.0)"),
    _,
)


def _(x, y):
    y[:] = (x % 3 + 1).astype("i4").prod(1, dtype="i4")


P(
    "prod_wraps",
    "x: Buffer[(n, m), u8], y: Out[(n,), i32]",
    sm("y", "")
    .replace("= 0.0", "= 1")
    .replace("y[vi] += ", "y[vi] = y[vi] * i32(x[vi, vj] % u8(3) + u8(1))"),
    _,
)


def _(x, y):
    y[:] = np.bitwise_and.reduce(x, 1) if x.shape[1] else -1


P(
    "and_reduce_i16",
    "x: Buffer[(n, m), i16], y: Out[(n,), i16]",
    sm("y", "").replace("= 0.0", "= i16(-1)").replace("y[vi] += ", "y[vi] = y[vi] & x[vi, vj]"),
    _,
)


def _(x, y):
    y[:] = np.bitwise_or.reduce(x, 1) if x.shape[1] else 0


P(
    "or_reduce_u64",
    "x: Buffer[(n, m), u64], y: Out[(n,), u64]",
    sm("y", "").replace("= 0.0", "= u64(0)").replace("y[vi] += ", "y[vi] = y[vi] | x[vi, vj]"),
    _,
)


def _(x, y):
    y[:] = x.min(1, initial=100)


P(
    "min_i64",
    "x: Buffer[(n, m), i64], y: Out[(n,), i64]",
    sm("y", "")
    .replace("= 0.0", "= i64(100)")
    .replace("y[vi] += ", "y[vi] = min(y[vi], x[vi, vj])"),
    _,
)


def _(x, y):
    y[:] = x.max(1, initial=0)


P(
    "max_u16",
    "x: Buffer[(n, m), u16], y: Out[(n,), u16]",
    sm("y", "").replace("= 0.0", "= u16(0)").replace("y[vi] += ", "y[vi] = max(x[vi, vj], y[vi])"),
    _,
)


def _(x, y):
    for i in range(len(y)):
        a = np.float32(0)
        for v in x[i]:
            a = a * np.float32(0.5) + v
        y[i] = a


P(
    "decay",
    X + ", y: Out[(n,), f32]",
    sm("y", "")
    .replace("y[vi] += ", "y[vi] = y[vi] * 0.5 + x[vi, vj]")
    .replace("reduce(j)", "ordered(j)")
    .replace("            with init(): y[vi] = 0.0\n", "")
    .replace("for i in range(n):", "for z in range(n):\n    y[z] = 0.0\nfor i in range(n):", 1),
    _,
    exact=False,
)


def _(x, y):
    y[:] = 0
    y[:] = x.astype("f4").sum(1)


P("f16_acc_f32", "x: Buffer[(n, m), f16], y: Out[(n,), f32]", sm("y", "f32(x[vi, vj])"), _)
P("bf16_acc_f32", "x: Buffer[(n, m), bf16], y: Out[(n,), f32]", sm("y", "f32(x[vi, vj])"), _)


def _(x, y):
    y[:] = (x > 0).sum(1)


P(
    "count_positive",
    X + ", y: Out[(n,), i32]",
    sm("y", "where(x[vi, vj] > 0.0, 1, 0)").replace("= 0.0", "= 0"),
    _,
)
P(
    "count_positive_i64",
    X + ", y: Out[(n,), i64]",
    sm("y", "i64(x[vi, vj] > 0.0)").replace("= 0.0", "= i64(0)"),
    _,
)


def _(x, y, m):
    y[:] = (x * np.arange(m)).sum(1)


P("index_weighted", X + ", y: Out[(n,), f32]", sm("y", "x[vi, vj] * index(vj, f32)"), _)


def _(x, y, n, m):
    y[:] = (x.astype("i8") * np.arange(m) * np.arange(n)[:, None]).sum(1)


P(
    "index_i64",
    "x: Buffer[(n, m), i32], y: Out[(n,), i64]",
    sm("y", "i64(x[vi, vj]) * index(vj * vi, i64)").replace("= 0.0", "= i64(0)"),
    _,
)


def _(x, y, n, m):
    i, j = np.indices((n, m))
    y[:] = np.where((i * 7 + j * 3) % 5 < 2, x, 0).sum(1)


P(
    "masked_modulo",
    X + ", y: Out[(n,), f32]",
    sm("y", "where((vi * 7 + vj * 3) % 5 < 2, x[vi, vj], 0.0)"),
    _,
)


def _(x, mask, y):
    y[:] = np.where(mask, x, -np.inf).max(1, initial=-np.inf)


P(
    "masked_max",
    X + ", mask: Buffer[(n, m), bool], y: Out[(n,), f32]",
    sm("y", "")
    .replace("= 0.0", "= -inf")
    .replace("y[vi] += ", "y[vi] = max(y[vi], where(mask[vi, vj], x[vi, vj], -inf))"),
    _,
)
