"""Programs with positions of extreme values."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.amounts import IS_LONG
from tests.attacks.loop_programs import program
from tests.fuzz.program import Indices

I32 = 2**31 - 1
I64 = 2**63 - 1


def first(x: np.ndarray, *, low: bool = False) -> int:
    """Return the position of the first extreme value, or of the first NaN."""
    return int(np.argmin(x) if low else np.argmax(x))


def extreme_rows(e, p, rows, *, low: bool = False, start=None, last: int = I64) -> None:
    """Assign the extreme value and its position of each row; the start of an empty row."""
    for i, row in enumerate(rows):
        if len(row):
            p[i] = first(np.asarray(row), low=low)
            e[i] = row[p[i]]
        else:
            e[i], p[i] = start, last


DTYPES = {
    "f64": "-inf", "f16": "-inf", "i8": "i8(-128)", "u8": "u8(0)", "i64": "i64(-9223372036854775808)",
    "i4": "i4(-8)", "u4": "u4(0)", "f8_e5m2": "-inf",
}  # fmt: skip

for _t in DTYPES if IS_LONG else ("f64", "u8", "i4", "f8_e5m2"):
    _low = DTYPES[_t]

    @program(
        "n m",
        f"""
def argmax_of_{_t}(x: Buffer[(n, m), {_t}], e: Out[(n,), {_t}], p: Out[(n,), i64]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = {_low}, {I64}
                e[vi], p[vi] = argmax(x[vi, vk], vk)
""",
    )
    def _(x, e, p):
        low = {"i": -(2**63), "u": 0}.get(x.dtype.kind)
        if x.dtype.name in ("int8", "int4"):
            low = -128 if x.dtype.name == "int8" else -8
        if x.dtype.name == "uint4":
            low = 0
        kind = np.int64 if low is not None else np.float64
        wide = np.full(len(x), 0, kind)
        extreme_rows(wide, p, x.astype(kind), start=-np.inf if low is None else low)
        e[:] = wide.astype(e.dtype)


@program(
    "n m",
    f"""
def argmin_of_nan(x: Buffer[(n, m), f32], e: Out[(n,), f32], p: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = inf, {I32}
                q = x[vi, vk] - 2.0
                e[vi], p[vi] = argmin(q / q, vk)
""",
)
def _(x, e, p):
    q = (x - 2) / (x - 2)
    extreme_rows(e, p, q, low=True, start=np.inf, last=I32)


@program(
    "n m",
    f"""
def last_position_of_the_maximum(x: Buffer[(n, m), i32], e: Out[(n,), i32], p: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = -2147483648, {I32}
                e[vi], p[vi] = argmax(x[vi, vk], -vk)
""",
)
def _(x, e, p, m):
    for i, row in enumerate(x):
        e[i], p[i] = (row.max(), -(m - 1 - np.argmax(row[::-1]))) if m else (-(2**31), I32)


@program(
    "n m",
    f"""
def position_in_a_matrix(x: Buffer[(n, m), i32], e: Out[(), i32], p: Out[(), i64]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = reduce(i), reduce(k)
                with init(): e[()], p[()] = 2147483647, {I64}
                e[()], p[()] = argmin(x[vi, vk], vi * m + vk)
""",
)
def _(x, e, p):
    e[()], p[()] = (x.min(), np.argmin(x)) if x.size else (I32, I64)


@program(
    "n",
    f"""
def argmax_of_a_triangle(x: Buffer[(n, n), f32], e: Out[(n,), f32], p: Out[(n,), i64]):
    for i in range(n):
        for k in range(i + 1):
            with block("e"):
                vi, vk = spatial(i), reduce(n, k)
                with init(): e[vi], p[vi] = -inf, {I64}
                e[vi], p[vi] = argmax(x[vi, vk], vk)
""",
)
def _(x, e, p):
    extreme_rows(e, p, [row[: i + 1] for i, row in enumerate(x)])


@program(
    "n m",
    f"""
def argmax_under_a_guard(x: Buffer[(n, m), f32], e: Out[(n,), f32], p: Out[(n,), i64]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                guard(k % 2 == 1 and k < i)
                with init(): e[vi], p[vi] = -inf, {I64}
                e[vi], p[vi] = argmax(x[vi, vk], vk)
""",
)
def _(x, e, p):
    for i, row in enumerate(x):
        chosen = [k for k in range(len(row)) if k % 2 and k < i]
        best = max(chosen, key=lambda k: (row[k], -k), default=None)
        e[i], p[i] = (-np.inf, I64) if best is None else (row[best], best)


@program(
    "n m",
    """
def argmax_that_continues(x: Buffer[(n, m), f32], e: InOut[(n,), f32], p: InOut[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                e[vi], p[vi] = argmax(x[vi, vk], vk)
""",
)
def _(x, e, p):
    for i, row in enumerate(x):
        pairs = [(e[i], -p[i]), *((v, -k) for k, v in enumerate(row))]
        e[i], best = max(pairs)
        p[i] = -best


@program(
    "n m",
    """
def argmax_from_another_start(x: Buffer[(n, m), f32], b: Buffer[(n,), f32], e: Out[(n,), f32], p: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = b[vi], -1
                e[vi], p[vi] = argmax(x[vi, vk], vk)
""",
)
def _(x, b, e, p):
    for i, row in enumerate(x):
        e[i], best = max([(b[i], 1), *((v, -k) for k, v in enumerate(row))])
        p[i] = -best


@program(
    "n m",
    f"""
def argmax_of_windows(x: Buffer[(n + 4,), i32], w: Buffer[(m, 5), i32], e: Out[(n, m), i32], p: Out[(n, m), i32]):
    for i in range(n):
        for c in range(m):
            for r in range(5):
                with block("e"):
                    vi, vc, vr = spatial(i), spatial(c), reduce(r)
                    with init(): e[vi, vc], p[vi, vc] = -2147483648, {I32}
                    e[vi, vc], p[vi, vc] = argmax(x[vi + vr] * w[vc, vr], vr)
""",
)
def _(x, w, e, p):
    for i in range(e.shape[0]):
        for c in range(e.shape[1]):
            v = x[i : i + 5] * w[c]
            p[i, c] = np.argmax(v)
            e[i, c] = v[p[i, c]]


@program(
    "n m",
    f"""
def argmax_in_transposed_results(x: Buffer[(m, n, 3), f32], e: Out[(3, n), f32], p: Out[(3, n), i64]):
    for k in range(m):
        for i in range(n):
            for c in range(3):
                with block("e"):
                    vk, vi, vc = reduce(k), spatial(i), spatial(c)
                    with init(): e[vc, vi], p[vc, vi] = -inf, {I64}
                    e[vc, vi], p[vc, vi] = argmax(x[vk, vi, vc], vk)
""",
)
def _(x, e, p):
    for c in range(3):
        extreme_rows(e[c], p[c], x[:, :, c].T, start=-np.inf)


@program(
    "n m",
    f"""
def nearest_center(x: Buffer[(n, 3), i32], c: Buffer[(m, 3), i32], p: Out[(n,), i32], d: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("d"):
                vi, vk = spatial(i), reduce(k)
                with init(): d[vi], p[vi] = 2147483647, {I32}
                a = x[vi, 0] - c[vk, 0]
                b = x[vi, 1] - c[vk, 1]
                h = x[vi, 2] - c[vk, 2]
                d[vi], p[vi] = argmin(a * a + b * b + h * h, vk)
""",
)
def _(x, c, p, d):
    for i, point in enumerate(x):
        all_ = ((point - c) ** 2).sum(axis=1)
        p[i], d[i] = (np.argmin(all_), all_.min()) if len(c) else (I32, I32)


@program(
    "n l",
    f"""
def argmax_of_ragged_rows(off: Buffer[(n + 1,), i32], x: Buffer[(l,), i32], e: Out[(n,), i32], p: Out[(n,), i32]):
    for z in range(n):
        with block("clear"):
            vz = spatial(z)
            e[vz] = -2147483648
            p[vz] = -7
    for i in range(n):
        with checked(off[i], 0, l + 1) as lo:
            with checked(off[i + 1], lo, l + 1) as hi:
                for j in range(hi - lo):
                    with block("e"):
                        vi, vl, vj = spatial(i), spatial(l + 1, lo), reduce(l, j)
                        with init(): e[vi], p[vi] = -2147483648, {I32}
                        e[vi], p[vi] = argmax(x[vl + vj], vj)
""",
    indices={"off": Indices("0", "l + 1", "sorted")},
)
def _(off, x, e, p):
    for i in range(len(e)):
        row = x[off[i] : off[i + 1]]
        e[i], p[i] = (row.max(), np.argmax(row)) if len(row) else (-(2**31), I32)


@program(
    "n",
    f"""
def argmax_of_gathered_values(x: Buffer[(9,), f32], at: Buffer[(n, 4), i32], e: Out[(n,), f32], p: Out[(n,), i32]):
    t = alloc((n, 4), f32)
    for i in range(n):
        for k in range(4):
            with block("t"):
                vi, vk = spatial(i), spatial(k)
                with clamped(at[vi, vk], 0, 9) as a:
                    q = x[a]
                    t[vi, vk] = q * q
    for b in range(n):
        for c in range(4):
            with block("e"):
                vb, vc = spatial(b), reduce(c)
                with init(): e[vb], p[vb] = -inf, {I32}
                e[vb], p[vb] = argmax(t[vb, vc], vc)
""",
)
def _(x, at, e, p):
    extreme_rows(e, p, x[np.clip(at, 0, 8)] ** 2)


@program(
    "n m",
    f"""
def one_hot_of_argmax(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    e = alloc((n,), f32)
    p = alloc((n,), i64)
    for i in range(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = -inf, {I64}
                e[vi], p[vi] = argmax(x[vi, vk], vk)
    for a in range(n):
        for b in range(m):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = where(p[va] == vb, e[va], 0.0)
""",
)
def _(x, y):
    y[:] = 0
    for i in range(len(x) if x.size else 0):
        y[i, np.argmax(x[i])] = x[i].max()


@program(
    "n m",
    f"""
def sorted_by_selection(x: Buffer[(n, m), i32], y: Out[(n, m), i32]):
    u = alloc((n, m), i32)
    for a in range(n):
        for b in range(m):
            u[a, b] = x[a, b]
    for i in range(n):
        for s in range(m):
            e = alloc((1,), i32)
            p = alloc((1,), i32)
            for k in range(m):
                with block("e"):
                    vi, vs, vk = ordered(i), ordered(s), reduce(k)
                    with init(): e[0], p[0] = 2147483647, {I32}
                    e[0], p[0] = argmin(u[vi, vk], vk)
            y[i, s] = e[0]
            with checked(p[0], 0, m) as q:
                u[i, q] = 2147483647
""",
    sizes=[{"n": n, "m": m} for n in (0, 1, 3) for m in (0, 1, 2, 5, 9)],
)
def _(x, y):
    y[:] = np.sort(x, axis=1)


@program(
    "n",
    f"""
def two_reductions_in_turn(x: Buffer[(n, 6), f32], e: Out[(n,), f32], p: Out[(n,), i64], f: Out[(n,), f32], r: Out[(n,), i64]):
    for i in range(n):
        for k in range(6):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = -inf, {I64}
                e[vi], p[vi] = argmax(x[vi, vk], vk)
        for k in range(6):
            with block("f"):
                wi, wk = spatial(i), reduce(k)
                with init(): f[wi], r[wi] = -inf, {I64}
                h = where(p[wi] == wk, -inf, x[wi, wk])
                f[wi], r[wi] = argmax(h, wk)
""",
)
def _(x, e, p, f, r):
    extreme_rows(e, p, x)
    rest = np.array(x)
    rest[np.arange(len(x)), p] = -np.inf
    extreme_rows(f, r, rest)


@program(
    "n m",
    f"""
def columns_by_parallel_rows(x: Buffer[(m, n), f32], e: Out[(n,), f32], p: Out[(n,), i64]):
    for i in parallel(n):
        for k in range(m):
            with block("e"):
                vi, vk = spatial(i), reduce(k)
                with init(): e[vi], p[vi] = -inf, {I64}
                e[vi], p[vi] = argmax(x[vk, vi], vk)
""",
)
def _(x, e, p):
    extreme_rows(e, p, x.T, start=-np.inf)
