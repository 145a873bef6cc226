"""Programs with bound values and with several stores of one iteration."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program
from tests.fuzz.program import Indices


def chain(count: int, margin: str) -> str:
    """Return bound values, each of the one before."""
    lines = ["q0 = x[vi]"]
    lines += [f"q{k + 1} = q{k} + q{k} - x[vi]" for k in range(count)]
    return f"\n{margin}".join(lines)


for _count in (1, 30, 200):

    @program(
        "n",
        f"""
def chain_of_{_count}_bindings(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            {chain(_count, " " * 12)}
            y[vi] = q{_count} * q0
""",
    )
    def _(x, y):
        y[:] = x * x


def _blocks(count: int) -> tuple[str, str]:
    """Return temporaries and blocks, each of which uses the element before it three times."""
    local = "\n    ".join(f"t{k} = alloc((n,), i32)" for k in range(count))
    lines = []
    for k in range(count + 1):
        source = "x" if k == 0 else f"t{k - 1}"
        target = "y" if k == count else f"t{k}"
        lines.append(f"""
    for i{k} in range(n):
        with block("b{k}"):
            v{k} = spatial(i{k})
            q{k} = {source}[v{k}]
            {target}[v{k}] = (q{k} ^ (q{k} * 5)) - q{k}""")
    return local, "".join(lines)


_local, _lines = _blocks(30)


@program(
    "n", f"def chain_of_30_blocks(x: Buffer[(n,), i32], y: Out[(n,), i32]):\n    {_local}{_lines}\n"
)
def _(x, y):
    for _ in range(31):
        x = (x ^ (x * np.int32(5))) - x
    y[:] = x


@program(
    "n m",
    """
def bound_before_a_store_in_place(x: InOut[(n, m), i32], y: Out[(n, m), i32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj]
                x[vi, vj] = q * 3 + 1
                r = x[vi, vj]
                y[vi, vj] = r - q
""",
)
def _(x, y):
    y[:] = x * 2 + 1
    x[:] = x * 3 + 1


@program(
    "n",
    """
def exchange_by_bindings(x: InOut[(n,), f32], y: InOut[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            p = x[vi]
            q = y[vi]
            x[vi] = q
            y[vi] = p
""",
)
def _(x, y):
    x[:], y[:] = y.copy(), x.copy()


@program(
    "n",
    """
def rotation_of_three_arrays(x: InOut[(n,), i32], y: InOut[(n,), i32], z: InOut[(n,), i32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            p = x[vi]
            x[vi] = y[vi]
            y[vi] = z[vi]
            z[vi] = p
""",
)
def _(x, y, z):
    x[:], y[:], z[:] = y.copy(), z.copy(), x.copy()


@program(
    "n",
    """
def state_of_a_recurrence(x: Buffer[(n,), i32], s: InOut[(1,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            q = s[0]
            s[0] = q * 3 + x[vi]
            y[vi] = q
""",
)
def _(x, s, y):
    for i in range(len(x)):
        y[i] = s[0]
        s[0] = s[0] * np.int32(3) + x[i]


@program(
    "n",
    """
def neighbors_bound_in_place(x: InOut[(n + 2,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            p = x[vi]
            q = x[vi + 2]
            x[vi + 1] = p - q
            y[vi] = p + q
""",
)
def _(x, y, n):
    for i in range(n):
        p, q = x[i], x[i + 2]
        x[i + 1], y[i] = p - q, p + q


@program(
    "n r",
    """
def bound_gather(x: Buffer[(r + 1, 4), f32], at: Buffer[(n,), i32], y: Out[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                with clamped(at[vi], 0, r + 1) as p:
                    q = x[p, vj]
                    s = x[p, 3 - vj]
                    y[vi, vj] = q * s + q
""",
)
def _(x, at, y, r):
    rows = x[np.clip(at, 0, r)]
    y[:] = rows * rows[:, ::-1] + rows


@program(
    "n r",
    """
def bound_scatter(x: Buffer[(n,), i32], at: Buffer[(n,), i32], y: InOut[(r + 1,), i32]):
    for i in range(n):
        with block("y"):
            vi = reduce(i)
            q = x[vi] * 2
            with clamped(at[vi], 0, r + 1) as p:
                s = q + 1
                y[p] += s * s - q
""",
)
def _(x, at, y, r):
    q = x * 2
    np.add.at(y, np.clip(at, 0, r), (q + 1) ** 2 - q)


@program(
    "n r",
    """
def scatter_of_a_maximum(x: Buffer[(n, 3), f32], at: Buffer[(n,), i32], y: InOut[(r + 1, 3), f32]):
    for i in range(n):
        for j in range(3):
            with block("y"):
                vi, vj = reduce(i), spatial(j)
                with clamped(at[vi], 0, r + 1) as p:
                    y[p, vj] = max(y[p, vj], x[vi, vj])
""",
)
def _(x, at, y, r):
    np.maximum.at(y, np.clip(at, 0, r), x)


@program(
    "n r",
    """
def moves_at_loaded_indices(x: InOut[(r + 1,), i32], at: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            with clamped(at[vi], 0, r + 1) as p:
                q = x[p]
                y[vi] = q
                x[p] = q + 1
""",
)
def _(x, at, y, r):
    for i, p in enumerate(np.clip(at, 0, r)):
        y[i] = x[p]
        x[p] += 1


@program(
    "n",
    """
def two_levels_of_indices(x: Buffer[(9,), f32], a: Buffer[(7,), i32], b: Buffer[(n,), i32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            with clamped(b[vi], 0, 7) as p:
                w = a[p]
                with clamped(a[p], 0, 9) as r:
                    y[vi] = x[r] + f32(w)
""",
)
def _(x, a, b, y):
    w = a[np.clip(b, 0, 6)]
    y[:] = x[np.clip(w, 0, 8)] + w


@program(
    "n m",
    """
def real_and_imaginary_parts(a: Buffer[(n, m), f32], b: Buffer[(n, m), f32], r: Out[(n, m), f32], c: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                p = a[vi, vj]
                q = b[vi, vj]
                r[vi, vj] = p * p - q * q
                c[vi, vj] = 2.0 * p * q
""",
)
def _(a, b, r, c):
    r[:], c[:] = a * a - b * b, 2 * a * b


@program(
    "n m",
    """
def rotary_pairs(x: Buffer[(n, 2 * m), f32], u: Buffer[(m,), f32], w: Buffer[(m,), f32], y: Out[(n, 2 * m), f32]):
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                p = x[vi, 2 * vj]
                q = x[vi, 2 * vj + 1]
                y[vi, 2 * vj] = p * u[vj] - q * w[vj]
                y[vi, 2 * vj + 1] = p * w[vj] + q * u[vj]
""",
)
def _(x, u, w, y):
    p, q = x[:, ::2], x[:, 1::2]
    y[:, ::2], y[:, 1::2] = p * u - q * w, p * w + q * u


@program(
    "n m",
    """
def rotary_halves_in_place(x: InOut[(n, 2 * m), f32], u: Buffer[(m,), f32]):
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                p = x[vi, vj]
                q = x[vi, vj + m]
                x[vi, vj] = p * u[vj] - q
                x[vi, vj + m] = p + q * u[vj]
""",
)
def _(x, u, m):
    p, q = x[:, :m].copy(), x[:, m:].copy()
    x[:, :m], x[:, m:] = p * u - q, p + q * u


@program(
    "n m",
    """
def three_stores_of_three_dtypes(x: Buffer[(n, m), i32], a: Out[(n, m), i8], b: Out[(m, n), f64], c: Out[(n, m), bool]):
    for i in range(n):
        for j in range(m):
            with block("all"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj] * 3
                a[vi, vj] = i8(q)
                b[vj, vi] = f64(q)
                c[vi, vj] = q > 10
""",
)
def _(x, a, b, c):
    q = x * 3
    a[:], b[:], c[:] = q.astype(np.int8), q.T, q > 10


@program(
    "n",
    """
def stores_under_a_guard(x: Buffer[(n,), i32], y: InOut[(n,), i32], z: InOut[(n + 1,), i32]):
    for i in range(n):
        with block("both"):
            vi = spatial(i)
            guard(i % 3 != 1)
            q = x[vi] + 1
            y[vi] = q
            z[vi + 1] = q * q
""",
)
def _(x, y, z):
    for i, v in enumerate(x + 1):
        if i % 3 != 1:
            y[i], z[i + 1] = v, v * v


@program(
    "n m",
    """
def consumers_of_two_results(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    s = alloc((n, m), f32)
    d = alloc((n, m), f32)
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj] * 2.0
                s[vi, vj] = q + 1.0
                d[vi, vj] = q - 1.0
    for a in range(n):
        for b in range(m):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = s[va, vb] * d[va, vb] + s[va, m - 1 - vb]
""",
)
def _(x, y):
    q = 2 * x
    y[:] = (q + 1) * (q - 1) + (q + 1)[:, ::-1]


@program(
    "n m",
    """
def one_of_two_results_unused(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    s = alloc((n, m), f32)
    d = alloc((n, m), f32)
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj] * 2.0
                s[vi, vj] = q + 1.0
                d[vi, vj] = q - 1.0
    for a in range(n):
        for b in range(m):
            with block("y"):
                va, vb = spatial(a), reduce(b)
                with init(): y[va] = 0.0
                y[va] += s[va, vb]
""",
)
def _(x, y):
    y[:] = (2 * x + 1).sum(axis=1)


@program(
    "n m",
    """
def bound_value_of_a_sum(x: Buffer[(n, m), f32], w: Buffer[(m,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 2.0
                q = x[vi, vk]
                r = q * w[vk]
                y[vi] += r * r - q
""",
)
def _(x, w, y):
    y[:] = 2 + ((x * w) ** 2 - x).sum(axis=1)


@program(
    "n m",
    """
def bound_product_of_matrices(a: Buffer[(n, 5), f32], b: Buffer[(5, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            for k in range(5):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    p = a[vi, vk]
                    q = b[vk, vj]
                    y[vi, vj] += p * q
""",
)
def _(a, b, y):
    y[:] = a @ b


@program(
    "n m",
    """
def bound_product_with_an_epilogue(a: Buffer[(n, 4), f32], b: Buffer[(4, m), f32], y: Out[(n, m), f32], z: Out[(n, m), f32]):
    t = alloc((n, m), f32)
    for i in range(n):
        for j in range(m):
            for k in range(4):
                with block("t"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): t[vi, vj] = 0.0
                    t[vi, vj] += a[vi, vk] * b[vk, vj]
    for c in range(n):
        for d in range(m):
            with block("y"):
                vc, vd = spatial(c), spatial(d)
                q = t[vc, vd]
                y[vc, vd] = max(q, 0.0)
                z[vc, vd] = where(q > 0.0, q, q * 2.0)
""",
)
def _(a, b, y, z):
    t = a @ b
    y[:], z[:] = np.maximum(t, 0), np.where(t > 0, t, 2 * t)


@program(
    "n",
    """
def conditions_as_bindings(x: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(n,), bool]):
    for i in range(n):
        with block("both"):
            vi = spatial(i)
            q = x[vi]
            big = q > 1.0
            odd = condition(vi % 2 == 1)
            both = big and odd
            z[vi] = both or not big
            y[vi] = where(both, q, -q)
""",
)
def _(x, y, z, n):
    big, odd = x > 1, np.arange(n) % 2 == 1
    z[:], y[:] = (big & odd) | ~big, np.where(big & odd, x, -x)


@program(
    "n",
    """
def bindings_that_are_not_used(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            q = x[vi]
            r = q * q
            y[vi] = q
            s = y[vi] + 1
""",
)
def _(x, y):
    y[:] = x


@program(
    "n m",
    """
def windows_of_two_results(x: Buffer[(n + 2, m), i32], y: Out[(n, m), i32]):
    s = alloc((n + 2, m), i32)
    d = alloc((n + 2, m), i32)
    for i in range(n + 2):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj]
                s[vi, vj] = q + 1
                d[vi, vj] = q * q
    for a in range(n):
        for b in range(m):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = s[va, vb] + d[va + 1, vb] + s[va + 2, vb]
""",
)
def _(x, y):
    y[:] = x[:-2] + 1 + x[1:-1] ** 2 + x[2:] + 1


@program(
    "n l",
    """
def ragged_rows_of_two_stores(off: Buffer[(n + 1,), i32], x: Buffer[(l,), i32], y: InOut[(l,), i32], z: InOut[(l,), i32]):
    for i in range(n):
        with checked(off[i], 0, l + 1) as lo:
            with checked(off[i + 1], lo, l + 1) as hi:
                for j in range(hi - lo):
                    with block("both"):
                        vi, vl, vj = spatial(i), spatial(l + 1, lo), spatial(l, j)
                        q = x[vl + vj]
                        y[vl + vj] = q + 1
                        z[vl + vj] = q - index(vi, i32)
""",
    indices={"off": Indices("0", "l + 1", "sorted")},
)
def _(off, x, y, z):
    for i in range(len(off) - 1):
        row = slice(off[i], off[i + 1])
        y[row], z[row] = x[row] + 1, x[row] - i


@program(
    "n",
    """
def triangle_of_two_stores(x: Buffer[(n, n), i32], y: InOut[(n, n), i32], z: InOut[(n, n), i32]):
    for i in range(n):
        for j in range(i + 1):
            with block("both"):
                vi, vj = spatial(i), spatial(n, j)
                q = x[vi, vj] * x[vj, vi]
                y[vi, vj] = q
                z[vj, vi] = -q
""",
)
def _(x, y, z, n):
    low = np.tril_indices(n)
    q = (x * x.T)[low]
    y[low] = q
    z.T[low] = -q


@program(
    "n m",
    """
def values_of_loops_as_bindings(y: Out[(n, m), i64], z: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                q = index(vi * m + vj, i64)
                y[vi, vj] = q * q
                z[vi, vj] = f32(q // 3)
""",
)
def _(y, z):
    q = np.arange(y.size).reshape(y.shape)
    y[:], z[:] = q * q, q // 3


@program(
    "n m",
    """
def sums_beside_their_terms(x: Buffer[(n, m), i32], y: Out[(n,), i32], z: Out[(n, m), i32]):
    for i in range(n):
        for k in range(m):
            with block("both"):
                vi, vk = ordered(i), ordered(k)
                q = x[vi, vk] * 2
                s = where(vk == 0, 0, y[vi]) + q
                y[vi] = s
                z[vi, vk] = s
""",
    sizes=[{"n": n, "m": m} for n in (0, 1, 5, 17) for m in (1, 2, 7, 33)],
)
def _(x, y, z):
    z[:] = np.cumsum(2 * x, axis=1)
    y[:] = z[:, -1]
