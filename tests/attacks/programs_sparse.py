"""Sparse, ragged and paged data, scatters, rolling buffers."""

# ruff: noqa: E501, PLR0917  # lines of programs, and their references

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program
from tests.fuzz.program import Indices


def off(o, nnz):
    o[0] = 0
    o[-1] = nnz


@program(
    "n m z d",
    """
def csr_spmm(off: Buffer[(n + 1,), i32], col: Buffer[(z,), i32], val: Buffer[(z,), f32], X: Buffer[(m, d), f32], Y: Out[(n, d), f32]):
    for i in range(n):
        with checked(off[i], 0, z + 1) as lo:
            with checked(off[i + 1], lo, z + 1) as hi:
                for c in range(d):
                    Y[i, c] = 0.0
                for p in range(hi - lo):
                    with checked(col[lo + p], 0, m) as j:
                        for c in range(d):
                            Y[i, c] += val[lo + p] * X[j, c]
""",
    indices={"off": Indices("0", "z + 1", "sorted"), "col": Indices("0", "m")},
    sizes=[
        {"n": n, "m": m, "z": z, "d": d}
        for n, m, z, d in (
            (0, 1, 0, 3),
            (1, 1, 1, 1),
            (3, 2, 7, 16),
            (7, 5, 0, 3),
            (7, 16, 33, 17),
            (33, 17, 130, 7),
            (67, 33, 67, 33),
        )
    ],
)
def _(off, col, val, X, Y, n):
    Y[:] = 0
    for i in range(n):
        for p in range(off[i], off[i + 1]):
            Y[i] += val[p] * X[col[p]]


@program(
    "n m z",
    """
def csc_spmv_scatter(off: Buffer[(m + 1,), i64], row: Buffer[(z,), i32], val: Buffer[(z,), i32], x: Buffer[(m,), i32], y: Out[(n,), i32]):
    for i in range(n):
        y[i] = 0
    for j in range(m):
        with checked(off[j], 0, z + 1) as lo:
            with checked(off[j + 1], lo, z + 1) as hi:
                for p in range(hi - lo):
                    with checked(row[lo + p], 0, n) as i2:
                        y[i2] += val[lo + p] * x[j]
""",
    indices={"off": Indices("0", "z + 1", "sorted"), "row": Indices("0", "n")},
    sizes=[
        {"n": n, "m": m, "z": z}
        for n, m, z in (
            (1, 1, 1),
            (3, 2, 7),
            (7, 5, 0),
            (7, 16, 33),
            (33, 17, 130),
            (67, 33, 67),
            (1, 0, 0),
        )
    ],
)
def _(off, row, val, x, y, m):
    y[:] = 0
    for j in range(m):
        for p in range(off[j], off[j + 1]):
            y[row[p]] += val[p] * x[j]


@program(
    "n m z",
    """
def coo_spmv(r: Buffer[(z,), i32], c: Buffer[(z,), i32], v: Buffer[(z,), f32], x: Buffer[(m,), f32], y: InOut[(n,), f32]):
    for p in range(z):
        with block("y"):
            vp = reduce(p)
            with checked(r[vp], 0, n) as i:
                with checked(c[vp], 0, m) as j:
                    y[i] += v[vp] * x[j]
""",
    indices={"r": Indices("0", "n"), "c": Indices("0", "m")},
    sizes=[
        {"n": n, "m": m, "z": z}
        for n, m, z in ((1, 1, 1), (3, 2, 7), (7, 5, 0), (7, 16, 33), (33, 17, 130))
    ],
)
def _(r, c, v, x, y, z):
    for p in range(z):
        y[r[p]] += v[p] * x[c[p]]


@program(
    "n m z",
    """
def coo_transposed_in_place(r: Buffer[(z,), i32], c: Buffer[(z,), i32], x: InOut[(n,), i32]):
    for p in range(z):
        with checked(r[p], 0, n) as i:
            with checked(c[p], 0, n) as j:
                x[i] = x[i] + x[j]
""",
    indices={"r": Indices("0", "n"), "c": Indices("0", "n")},
    sizes=[{"n": n, "m": 1, "z": z} for n, z in ((1, 1), (3, 7), (7, 0), (7, 33), (33, 130))],
)
def _(r, c, x, z):
    for p in range(z):
        x[r[p]] += x[c[p]]


@program(
    "n m",
    """
def ell_spmv(col: Buffer[(n, 5), i32], val: Buffer[(n, 5), f32], x: Buffer[(m,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(5):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                with clamped(col[vi, vk], 0, m) as j:
                    y[vi] += where(col[vi, vk] < 0, 0.0, val[vi, vk] * x[j])
""",
    lower=1,
    prepare=lambda col, m: col.__setitem__(
        slice(None), np.random.default_rng(1).integers(-1, m, col.shape)
    ),
)
def _(col, val, x, y):
    y[:] = (np.where(col < 0, 0, val * x[np.maximum(col, 0)])).sum(1)


@program(
    "n m z d",
    """
def bsr_spmm(off: Buffer[(n + 1,), i32], col: Buffer[(z,), i32], val: Buffer[(z, 4, 4), f32], X: Buffer[(m * 4, d), f32], Y: Out[(n * 4, d), f32]):
    for i in range(n):
        for r in range(4):
            for c in range(d):
                Y[i * 4 + r, c] = 0.0
        with checked(off[i], 0, z + 1) as lo:
            with checked(off[i + 1], lo, z + 1) as hi:
                for p in range(hi - lo):
                    with checked(col[lo + p], 0, m) as j:
                        for r in range(4):
                            for s in range(4):
                                for c in range(d):
                                    Y[i * 4 + r, c] += val[lo + p, r, s] * X[j * 4 + s, c]
""",
    indices={"off": Indices("0", "z + 1", "sorted"), "col": Indices("0", "m")},
    sizes=[
        {"n": n, "m": m, "z": z, "d": d}
        for n, m, z, d in ((0, 1, 0, 3), (1, 1, 1, 1), (3, 2, 7, 16), (7, 16, 33, 17), (7, 5, 0, 3))
    ],
)
def _(off, col, val, X, Y, n):
    Y[:] = 0
    for i in range(n):
        for p in range(off[i], off[i + 1]):
            Y[i * 4 : i * 4 + 4] += val[p] @ X[col[p] * 4 : col[p] * 4 + 4]


@program(
    "n m z",
    """
def sddmm(r: Buffer[(z,), i32], c: Buffer[(z,), i32], A: Buffer[(n, 8), f32], B: Buffer[(m, 8), f32], y: Out[(z,), f32]):
    for p in range(z):
        for k in range(8):
            with block("y"):
                vp, vk = spatial(p), reduce(k)
                with init(): y[vp] = 0.0
                with checked(r[vp], 0, n) as i:
                    with checked(c[vp], 0, m) as j:
                        y[vp] += A[i, vk] * B[j, vk]
""",
    indices={"r": Indices("0", "n"), "c": Indices("0", "m")},
    lower=1,
)
def _(r, c, A, B, y):
    y[:] = (A[r] * B[c]).sum(1)


@program(
    "n z",
    """
def ragged_softmax(off: Buffer[(n + 1,), i32], x: Buffer[(z,), f32], y: InOut[(z,), f32]):
    top = alloc((n,), f32)
    den = alloc((n,), f32)
    for i in range(n):
        with checked(off[i], 0, z + 1) as lo:
            with checked(off[i + 1], lo, z + 1) as hi:
                top[i] = -inf
                for p in range(hi - lo):
                    top[i] = max(top[i], x[lo + p])
                den[i] = 0.0
                for p in range(hi - lo):
                    den[i] += exp(x[lo + p] - top[i])
                for p in range(hi - lo):
                    y[lo + p] = exp(x[lo + p] - top[i]) / den[i]
""",
    indices={"off": Indices("0", "z + 1", "sorted")},
    exact=False,
)
def _(off, x, y, n):
    for i in range(n):
        s = x[off[i] : off[i + 1]].astype("f8")
        if s.size:
            e = np.exp(s - s.max())
            y[off[i] : off[i + 1]] = e / e.sum()


@program(
    "n z d",
    """
def ragged_mean_lengths(lengths: Buffer[(n,), i32], x: Buffer[(n, z, d), f32], y: Out[(n, d), f32]):
    for i in range(n):
        for c in range(d):
            y[i, c] = 0.0
        with checked(lengths[i], 0, z + 1) as l:
            for p in range(l):
                for c in range(d):
                    y[i, c] += x[i, p, c]
            for c in range(d):
                if l > 0:
                    y[i, c] = y[i, c] / index(l, f32)
""",
    indices={"lengths": Indices("0", "z + 1")},
    exact=False,
    sizes=[
        {"n": n, "z": z, "d": d}
        for n, z, d in ((0, 1, 1), (1, 1, 1), (2, 7, 3), (7, 16, 17), (3, 33, 16))
    ],
)
def _(lengths, x, y, n):
    for i in range(n):
        y[i] = x[i, : lengths[i]].mean(0) if lengths[i] else 0


@program(
    "b t p d",
    """
def paged_attention(table: Buffer[(b, t), i32], lengths: Buffer[(b,), i32], K: Buffer[(p, 4, d), f32], V: Buffer[(p, 4, d), f32], q: Buffer[(b, d), f32], y: Out[(b, d), f32]):
    s = alloc((b, t * 4), f32)
    den = alloc((b,), f32)
    for i in range(b):
        with checked(lengths[i], 1, t * 4 + 1) as l:
            for k in range(l):
                s[i, k] = 0.0
                with checked(table[i, k // 4], 0, p) as page:
                    for c in range(d):
                        s[i, k] += q[i, c] * K[page, k % 4, c]
            den[i] = 0.0
            for k in range(l):
                s[i, k] = exp(s[i, k] * 0.125)
                den[i] += s[i, k]
            for c in range(d):
                y[i, c] = 0.0
            for k in range(l):
                with checked(table[i, k // 4], 0, p) as page2:
                    for c in range(d):
                        y[i, c] += s[i, k] / den[i] * V[page2, k % 4, c]
""",
    indices={"lengths": Indices("1", "t * 4 + 1")},
    lower=1,
    exact=False,
    prepare=lambda table, p: table.__setitem__(
        slice(None), np.random.default_rng(1).integers(0, p, table.shape)
    ),
    sizes=[
        {"b": b, "t": t, "p": p, "d": d}
        for b, t, p, d in ((1, 1, 1, 1), (2, 3, 5, 7), (3, 7, 16, 16), (7, 2, 3, 33))
    ],
)
def _(table, lengths, K, V, q, y, b):
    for i in range(b):
        k = np.concatenate([K[j] for j in table[i]])[: lengths[i]]
        v = np.concatenate([V[j] for j in table[i]])[: lengths[i]]
        e = np.exp(k.astype("f8") @ q[i] * 0.125)
        y[i] = e / e.sum() @ v


@program(
    "b n d",
    """
def kv_cache_append(pos: Buffer[(b,), i32], new: Buffer[(b, d), f32], cache: InOut[(b, n, d), f32], y: Out[(b, d), f32]):
    for i in range(b):
        with checked(pos[i], 0, n) as p:
            for c in range(d):
                cache[i, p, c] = new[i, c]
            for c in range(d):
                y[i, c] = 0.0
            for k in range(p + 1):
                for c in range(d):
                    y[i, c] += cache[i, k, c]
""",
    indices={"pos": Indices("0", "n")},
    lower=1,
    sizes=[
        {"b": b, "n": n, "d": d} for b, n, d in ((1, 1, 1), (2, 3, 7), (3, 17, 16), (7, 16, 33))
    ],
)
def _(pos, new, cache, y, b):
    for i in range(b):
        cache[i, pos[i]] = new[i]
        y[i] = cache[i, : pos[i] + 1].sum(0)


@program(
    "n m",
    """
def histogram_u8(x: Buffer[(n,), u8], h: Out[(256,), i32]):
    for b in range(256):
        h[b] = 0
    for i in range(n):
        with proved(x[i], 0, 256, by="dtype") as v:
            h[v] += 1
""",
)
def _(x, h):
    h[:] = np.bincount(x, minlength=256)


@program(
    "n m",
    """
def histogram_2d(x: Buffer[(n,), i32], y: Buffer[(n,), i32], h: Out[(m, m), i32]):
    for a in range(m):
        for b in range(m):
            h[a, b] = 0
    for i in range(n):
        with checked(x[i], 0, m) as p:
            with checked(y[i], 0, m) as q:
                h[p, q] += 1
""",
    indices={"x": Indices("0", "m"), "y": Indices("0", "m")},
    lower=1,
)
def _(x, y, h):
    h[:] = 0
    np.add.at(h, (x, y), 1)


@program(
    "n m",
    """
def counting_sort(x: Buffer[(n,), u8], y: Out[(n,), u8]):
    h = alloc((257,), i32)
    for b in range(257):
        h[b] = 0
    for i in range(n):
        with proved(x[i], 0, 256, by="dtype") as v:
            h[v + 1] += 1
    for b in range(256):
        h[b + 1] += h[b]
    for i in range(n):
        with proved(x[i], 0, 256, by="dtype") as w:
            with checked(h[w], 0, n) as p:
                y[p] = x[i]
                h[w] += 1
""",
    sizes=[{"n": n, "m": 1} for n in (0, 1, 2, 3, 17, 67, 130)],
)
def _(x, y):
    y[:] = np.sort(x)


@program(
    "n m",
    """
def scatter_last_wins(at: Buffer[(n,), i32], x: Buffer[(n,), f32], y: InOut[(m,), f32]):
    for i in range(n):
        with checked(at[i], 0, m) as p:
            y[p] = x[i]
""",
    indices={"at": Indices("0", "m")},
    lower=1,
)
def _(at, x, y, n):
    for i in range(n):
        y[at[i]] = x[i]


@program(
    "n m",
    """
def scatter_chain(at: Buffer[(n,), i32], y: InOut[(m,), i32], z: Out[(n,), i32]):
    for i in range(n):
        with checked(at[i], 0, m) as p:
            y[p] = y[p] * 3 + 1
            z[i] = y[p]
""",
    indices={"at": Indices("0", "m")},
    lower=1,
)
def _(at, y, z, n):
    with np.errstate(all="ignore"):
        for i in range(n):
            y[at[i]] = y[at[i]] * np.int32(3) + np.int32(1)
            z[i] = y[at[i]]


@program(
    "n m",
    """
def argmax_rows(x: Buffer[(n, m), f32], y: Out[(n,), i32]):
    best = alloc((n,), f32)
    for i in range(n):
        best[i] = -inf
        y[i] = 0
        for j in range(m):
            if True:
                y[i] = where(x[i, j] > best[i], index(j, i32), y[i])
                best[i] = max(best[i], x[i, j])
""",
    sizes=[{"n": n, "m": m} for n, m in ((0, 3), (3, 0), (1, 1), (2, 17), (17, 33), (33, 7))],
)
def _(x, y, m):
    y[:] = x.argmax(1) if m else 0


@program(
    "n m",
    """
def top2(x: Buffer[(n, m), i32], a: Out[(n,), i32], b: Out[(n,), i32]):
    for i in range(n):
        a[i] = -1000
        b[i] = -1000
        for j in range(m):
            b[i] = max(b[i], min(a[i], x[i, j]))
            a[i] = max(a[i], x[i, j])
""",
    sizes=[{"n": n, "m": m} for n, m in ((0, 3), (3, 2), (1, 3), (2, 17), (17, 33), (33, 7))],
)
def _(x, a, b):
    s = np.sort(x, 1)
    a[:] = s[:, -1]
    b[:] = s[:, -2]


@program(
    "n m",
    """
def welford(x: Buffer[(n, m), f32], mean: Out[(n,), f32], m2: Out[(n,), f32]):
    d = alloc((), f32)
    for i in range(n):
        mean[i] = 0.0
        m2[i] = 0.0
        for j in range(m):
            d[()] = x[i, j] - mean[i]
            mean[i] = mean[i] + d[()] / index(j + 1, f32)
            m2[i] = m2[i] + d[()] * (x[i, j] - mean[i])
""",
    exact=False,
)
def _(x, mean, m2, m):
    if m:
        mean[:] = x.mean(1)
        m2[:] = x.astype("f8").var(1) * m
    else:
        mean[:] = 0
        m2[:] = 0


@program(
    "n m",
    """
def horner(c: Buffer[(m,), i32], x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        y[i] = 0
        for k in range(m):
            y[i] = y[i] * x[i] + c[m - 1 - k]
""",
)
def _(c, x, y, m):
    y[:] = 0
    with np.errstate(all="ignore"):
        for k in range(m):
            y[:] = y * x + c[m - 1 - k]


@program(
    "n m",
    """
def polynomial_product(a: Buffer[(n,), i32], b: Buffer[(m,), i32], c: Out[(n + m,), i32]):
    for s in range(n + m):
        c[s] = 0
    for i in range(n):
        for j in range(m):
            c[i + j] += a[i] * b[j]
""",
)
def _(a, b, c):
    c[:] = 0
    if a.size and b.size:
        c[:-1] = np.convolve(a, b)


@program(
    "n w",
    """
def rolling_buffer(w: Int, x: Buffer[(n,), i32], y: Out[(n,), i32]):
    r = alloc((8,), i32)
    for z in range(8):
        r[z] = 0
    for i in range(n):
        r[i % 8] = x[i]
        y[i] = 0
        for k in range(8):
            y[i] += r[k]
""",
)
def _(x, y, n):
    for i in range(n):
        y[i] = x[max(0, i - 7) : i + 1].sum()


@program(
    "n w",
    """
def rolling_symbolic(x: Buffer[(n,), i32], r: InOut[(w,), i32], y: Out[(n,), i32]):
    for i in range(n):
        y[i] = r[i % w]
        r[i % w] = x[i]
""",
    lower=1,
)
def _(x, r, y, n, w):
    for i in range(n):
        y[i] = r[i % w]
        r[i % w] = x[i]


@program(
    "n w",
    """
def fold_modulo(w: Int, x: Buffer[(n,), i32], y: Out[(4,), i32]):
    for z in range(4):
        y[z] = 0
    for i in range(n):
        y[i % 4] += x[i]
""",
)
def _(x, y):
    for z in range(4):
        y[z] = x[z::4].sum()


@program(
    "n m",
    """
def double_buffer_rows(x: Buffer[(n, m), i32], y: Out[(n, m), i32]):
    b = alloc((2, m), i32)
    for j in range(m):
        b[0, j] = 0
    for i in range(n):
        for j in range(m):
            b[(i + 1) % 2, j] = x[i, j] - b[i % 2, m - 1 - j]
        for j in range(m):
            y[i, j] = b[(i + 1) % 2, j]
""",
)
def _(x, y, n, m):
    b = np.zeros(m, "i4")
    for i in range(n):
        b = x[i] - b[::-1]
        y[i] = b
