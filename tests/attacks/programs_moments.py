"""Programs with moments, sums of exponentials, and reducers that a block defines."""

# ruff: noqa: E501, PLR0917  # lines of programs, parts of a program

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program
from tests.fuzz.program import Indices

I32 = 2**31 - 1

# ------------------------------------------------------------------ moments and exponentials


def moments(x: np.ndarray) -> tuple[float, float, float]:
    """Return the count, the mean and the sum of squared deviations."""
    x = np.asarray(x, np.float64)
    mean = x.mean() if len(x) else 0.0
    return float(len(x)), float(mean), float(((x - mean) ** 2).sum())


WELFORD = "with init(): c[vi], u[vi], s[vi] = 0.0, 0.0, 0.0"

for _t in ("f32", "f64"):

    @program(
        "n m",
        f"""
def welford_of_{_t}(x: Buffer[(n, m), {_t}], c: Out[(n,), {_t}], u: Out[(n,), {_t}], s: Out[(n,), {_t}]):
    for i in range(n):
        for k in range(m):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                {WELFORD}
                c[vi], u[vi], s[vi] = welford(1.0, x[vi, vk], 0.0)
""",
        exact=False,
    )
    def _(x, c, u, s):
        for i, row in enumerate(x):
            c[i], u[i], s[i] = moments(row)


@program(
    "n",
    f"""
def welford_of_windows(x: Buffer[(n + 6,), f32], c: InOut[(n,), f32], u: Out[(n,), f32], s: Out[(n,), f32]):
    for i in range(n):
        for k in range(7):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                {WELFORD}
                c[vi], u[vi], s[vi] = welford(1.0, x[vi + vk], 0.0)
""",
    exact=False,
)
def _(x, c, u, s):
    for i in range(len(c)):
        c[i], u[i], s[i] = moments(x[i : i + 7])


@program(
    "n m",
    f"""
def welford_with_weights(x: Buffer[(n, m), f32], w: Buffer[(m,), f32], c: Out[(n,), f32], u: Out[(n,), f32], s: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                guard(k > 0)
                {WELFORD}
                c[vi], u[vi], s[vi] = welford(abs(w[vk]), x[vi, vk], 0.0)
""",
    exact=False,
)
def _(x, w, c, u, s):
    w = np.abs(w[1:]).astype(np.float64)
    for i, row in enumerate(x[:, 1:].astype(np.float64)):
        total = w.sum()
        mean = (w * row).sum() / total if total else 0.0
        c[i], u[i], s[i] = total, mean, (w * (row - mean) ** 2).sum()


@program(
    "n l",
    f"""
def welford_of_ragged_rows(off: Buffer[(n + 1,), i32], x: Buffer[(l,), f32], c: InOut[(n,), f32], u: InOut[(n,), f32], s: InOut[(n,), f32]):
    for i in range(n):
        with checked(off[i], 0, l + 1) as lo:
            with checked(off[i + 1], lo, l + 1) as hi:
                for j in range(hi - lo):
                    with block("s"):
                        vi, vl, vj = spatial(i), spatial(l + 1, lo), reduce(l, j)
                        {WELFORD}
                        c[vi], u[vi], s[vi] = welford(1.0, x[vl + vj], 0.0)
""",
    exact=False,
    indices={"off": Indices("0", "l + 1", "sorted")},
)
def _(off, x, c, u, s):
    for i in range(len(c)):
        c[i], u[i], s[i] = moments(x[off[i] : off[i + 1]])


@program(
    "n m",
    f"""
def layer_norm_by_welford(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    c = alloc((n,), f32)
    u = alloc((n,), f32)
    s = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                {WELFORD}
                c[vi], u[vi], s[vi] = welford(1.0, x[vi, vk], 0.0)
    for a in range(n):
        for b in range(m):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                v = s[va] / c[va] + 1.0
                y[va, vb] = (x[va, vb] - u[va]) / sqrt(v)
""",
    exact=False,
)
def _(x, y):
    y[:] = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1)


@program(
    "n",
    f"""
def welford_of_a_triangle(x: Buffer[(n, n), f32], c: Out[(n,), f32], u: Out[(n,), f32], s: Out[(n,), f32]):
    for i in range(n):
        for k in range(n - i):
            with block("s"):
                vi, vk = spatial(i), reduce(n, k + i)
                {WELFORD}
                c[vi], u[vi], s[vi] = welford(1.0, x[vi, vk], 0.0)
""",
    exact=False,
)
def _(x, c, u, s):
    for i, row in enumerate(x):
        c[i], u[i], s[i] = moments(row[i:])


@program(
    "n m",
    """
def log_of_a_sum_of_exponentials(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    t = alloc((n,), f32)
    s = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("t"):
                vi, vk = spatial(i), reduce(k)
                with init(): t[vi], s[vi] = -inf, 0.0
                t[vi], s[vi] = logsumexp(x[vi, vk] * 30.0, 1.0)
    for a in range(n):
        with block("y"):
            va = spatial(a)
            y[va] = t[va] + log(s[va])
""",
    exact=False,
)
def _(x, y):
    y[:] = np.logaddexp.reduce(x.astype(np.float64) * 30, axis=1)


@program(
    "n m",
    """
def sums_of_exponentials_of_infinities(x: Buffer[(n, m), f32], t: Out[(n,), f32], s: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("t"):
                vi, vk = spatial(i), reduce(k)
                with init(): t[vi], s[vi] = -inf, 0.0
                t[vi], s[vi] = logsumexp(where(x[vi, vk] > 1.0, x[vi, vk], -inf), 1.0)
""",
    exact=False,
)
def _(x, t, s):
    for i, row in enumerate(np.where(x > 1, x, -np.inf)):
        t[i] = row.max(initial=-np.inf)
        s[i] = len(row) if t[i] == -np.inf else np.exp(row - t[i]).sum()


@program(
    "n m d",
    """
def attention_by_online_softmax(q: Buffer[(n, m), f32], v: Buffer[(m, d), f32], y: Out[(n, d), f32]):
    t = alloc((n, d), f32)
    s = alloc((n, d), f32)
    a = alloc((n, d), f32)
    for i in range(n):
        for e in range(d):
            for k in range(m):
                with block("t"):
                    vi, ve, vk = spatial(i), spatial(e), reduce(k)
                    with init(): t[vi, ve], s[vi, ve], a[vi, ve] = -inf, 0.0, 0.0
                    t[vi, ve], s[vi, ve], a[vi, ve] = online_softmax(q[vi, vk], 1.0, v[vk, ve])
    for b in range(n):
        for c in range(d):
            with block("y"):
                vb, vc = spatial(b), spatial(c)
                y[vb, vc] = a[vb, vc] / s[vb, vc]
""",
    exact=False,
)
def _(q, v, y):
    e = np.exp(q.astype(np.float64) - (q.max(axis=1, keepdims=True) if q.shape[1] else 0))
    y[:] = (e / e.sum(axis=1, keepdims=True)) @ v if q.shape[1] else np.nan


# ------------------------------------------------------------------ reducers of a block


def declared(name: str, parts: str, identity: str, body: str, lines: str, dtypes: str) -> str:
    """Return a program whose block reduces rows by a reducer of its own."""
    of = dtypes.split()
    names = parts.split()
    count = len(names)
    left = ", ".join(f"a{k}: {t}" for k, t in enumerate(of))
    right = ", ".join(f"b{k}: {t}" for k, t in enumerate(of))
    out = ", ".join(f"{p}: Out[(n,), {t}]" for p, t in zip(names, of, strict=True))
    targets = ", ".join(f"{p}[vi]" for p in names)
    made = "".join(f"                    {line}\n" for line in body.split("\n"))
    own = "".join(f"                {line}\n" for line in lines.split("\n")[:-1])
    terms = lines.rsplit("\n", maxsplit=1)[-1]
    single = "," if count == 1 else ""
    return f"""
def {name}(x: Buffer[(n, m), {of[0] if of[0] != "bool" else "i32"}], z: Buffer[(n, m), i32], {out}):
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=({identity}{single}))
                def fold({left}, {right}):
{made}                with init(): {targets} = {identity}
{own}                {targets} = fold({terms})
"""


@program("n m", declared("sum_and_squares", "s q", "0.0, 0.0", "return a0 + b0, a1 + b1",
                         "t = x[vi, vk] - 1.0\nt, t * t", "f32 f32"))  # fmt: skip
def _(x, s, q):
    s[:], q[:] = (x - 1).sum(axis=1), ((x - 1) ** 2).sum(axis=1)


@program("n m", declared("extremes_and_count", "a_ b_ c_", "2147483647, -2147483648, 0",
                         "return min(a0, b0), max(a1, b1), a2 + b2",
                         "x[vi, vk], x[vi, vk], where(z[vi, vk] > 0, 1, 0)", "i32 i32 i32"))  # fmt: skip
def _(x, z, a_, b_, c_):
    a_[:], b_[:] = x.min(axis=1, initial=I32), x.max(axis=1, initial=-(2**31))
    c_[:] = (z > 0).sum(axis=1)


@program("n m", declared("product_of_complex_numbers", "r_ i_", "1, 0",
                         "p = a0 * b0\nq = a1 * b1\nreturn p - q, a0 * b1 + a1 * b0",
                         "x[vi, vk], z[vi, vk]", "i32 i32"))  # fmt: skip
def _(x, z, r_, i_):
    for i in range(len(r_)):
        a, b = 1, 0
        for u, v in zip(x[i].tolist(), z[i].tolist(), strict=True):
            a, b = a * u - b * v, a * v + b * u
        r_[i], i_[i] = (np.array([a & 0xFFFFFFFF, b & 0xFFFFFFFF], np.uint32)).astype(np.int32)


@program("n m", declared("any_and_all", "s_ t_", "False, True", "return a0 or b0, a1 and b1",
                         "z[vi, vk] > 100, z[vi, vk] > -100", "bool bool"))  # fmt: skip
def _(z, s_, t_):
    s_[:], t_[:] = (z > 100).any(axis=1), (z > -100).all(axis=1)


@program("n m", declared("two_largest", "s_ t_", "-2147483648, -2147483648",
                         "return max(a0, b0), max(min(a0, b0), max(a1, b1))",
                         "x[vi, vk], i32(-2147483648)", "i32 i32"))  # fmt: skip
def _(x, s_, t_):
    for i, row in enumerate(x):
        both = sorted([-(2**31), -(2**31), *row.tolist()])
        s_[i], t_[i] = both[-1], both[-2]


@program("n m", declared("gcd_like_bits", "s_ t_", "0, -1", "return a0 | b0, a1 & b1",
                         "x[vi, vk] ^ z[vi, vk], x[vi, vk]", "i32 i32"))  # fmt: skip
def _(x, z, s_, t_):
    s_[:], t_[:] = np.bitwise_or.reduce(x ^ z, axis=1), np.bitwise_and.reduce(x, axis=1)


@program(
    "n m", declared("one_declared_sum", "s", "0.0", "return a0 + b0", "x[vi, vk] * 2.0", "f32")
)
def _(x, s):
    s[:] = 2 * x.sum(axis=1)


@program("n m", declared("results_of_packed_integers", "s_ t_", "i4(0), i4(-8)",
                         "return a0 + b0, max(a1, b1)", "x[vi, vk], i4(z[vi, vk])", "i4 i4"))  # fmt: skip
def _(x, z, s_, t_):
    def wrapped(v):
        return (v + 8) % 16 - 8

    s_[:] = wrapped(x.astype(np.int64).sum(axis=1)).astype(s_.dtype)
    t_[:] = wrapped(z.astype(np.int64)).max(axis=1, initial=-8).astype(t_.dtype)


@program("n m", declared("sums_of_two_dtypes", "s_ t_", "0, 0.0", "return a0 + b0, a1 + b1",
                         "z[vi, vk], f32(x[vi, vk])", "i32 f32"))  # fmt: skip
def _(x, z, s_, t_):
    s_[:], t_[:] = z.sum(axis=1), x.sum(axis=1)


@program(
    "n m",
    """
def composition_of_affine_functions(x: Buffer[(n, m), i32], z: Buffer[(n, m), i32], a: Out[(n,), i32], b: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(1, 0), commutative=False)
                def after(a0: i32, a1: i32, b0: i32, b1: i32):
                    return a0 * b0, a1 * b0 + b1
                with init(): a[vi], b[vi] = 1, 0
                a[vi], b[vi] = after(x[vi, vk], z[vi, vk])
""",
)
def _(x, z, a, b):
    p, q = np.ones(len(a), np.int32), np.zeros(len(a), np.int32)
    for k in range(x.shape[1]):
        p, q = p * x[:, k], q * x[:, k] + z[:, k]
    a[:], b[:] = p, q


@program(
    "n m",
    """
def last_valid_value(x: Buffer[(n, m), i32], a: Out[(n,), i32], b: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(0, 0), commutative=False)
                def last(a0: i32, a1: i32, b0: i32, b1: i32):
                    valid = b1 > 0
                    return where(valid, b0, a0), max(a1, b1)
                with init(): a[vi], b[vi] = 0, 0
                a[vi], b[vi] = last(x[vi, vk], where(x[vi, vk] > 0, 1, 0))
""",
)
def _(x, a, b):
    for i, row in enumerate(x):
        found = [v for v in row if v > 0]
        a[i], b[i] = (found[-1], 1) if found else (0, 0)


@program(
    "n m",
    """
def products_of_matrices(x: Buffer[(n, m), i32], y: Out[(n, 4), i32]):
    a = alloc((n,), i32)
    b = alloc((n,), i32)
    c = alloc((n,), i32)
    d = alloc((n,), i32)
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(1, 0, 0, 1), commutative=False)
                def times(a0: i32, a1: i32, a2: i32, a3: i32, b0: i32, b1: i32, b2: i32, b3: i32):
                    return a0 * b0 + a1 * b2, a0 * b1 + a1 * b3, a2 * b0 + a3 * b2, a2 * b1 + a3 * b3
                with init(): a[vi], b[vi], c[vi], d[vi] = 1, 0, 0, 1
                a[vi], b[vi], c[vi], d[vi] = times(x[vi, vk], 1, 1, 0)
    for j in range(n):
        with block("y"):
            vj = spatial(j)
            y[vj, 0] = a[vj]
            y[vj, 1] = b[vj]
            y[vj, 2] = c[vj]
            y[vj, 3] = d[vj]
""",
)
def _(x, y):
    for i, row in enumerate(x):
        made = np.eye(2, dtype=np.int32)
        for v in row:
            made = made @ np.array([[v, 1], [1, 0]], np.int32)
        y[i] = made.ravel()


@program(
    "n m",
    """
def sums_over_a_branch(x: Buffer[(n, m), f32], s: InOut[(n,), f32], q: InOut[(n,), f32]):
    for i in range(n):
        if i % 2 == 0:
            for k in range(m):
                with block("fold"):
                    vi, vk = spatial(n, i), reduce(k)
                    @reducer(identity=(0.0, 0.0))
                    def both(a0: f32, a1: f32, b0: f32, b1: f32):
                        return a0 + b0, a1 + b1
                    with init(): s[vi], q[vi] = 0.0, 5.0
                    s[vi], q[vi] = both(x[vi, vk], 1.0)
""",
)
def _(x, s, q, m):
    s[::2], q[::2] = x.sum(axis=1)[::2], 5 + m


@program(
    "n m",
    """
def results_in_one_matrix_of_parts(x: Buffer[(n, m), f32], s: Out[(n,), f32], q: Out[(n, 1), f32]):
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(0.0, 1.0))
                def both(a0: f32, a1: f32, b0: f32, b1: f32):
                    return a0 + b0, min(a1, b1)
                with init(): s[vi], q[vi, 0] = 0.0, 1.0
                s[vi], q[vi, 0] = both(x[vi, vk], x[vi, vk])
""",
)
def _(x, s, q):
    s[:], q[:, 0] = x.sum(axis=1), x.min(axis=1, initial=1)
