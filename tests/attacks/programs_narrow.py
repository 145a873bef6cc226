"""Programs on packed integers and 8-bit floats, and on the bits of elements."""

# ruff: noqa: E501, PLR0917  # lines of programs, names of their buffers

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.amounts import IS_LONG
from tests.attacks.loop_programs import program
from tests.fuzz.program import Indices

LIMITS = {"i4": (-8, 7), "u4": (0, 15), "i2": (-2, 1), "u2": (0, 3)}
DTYPES = LIMITS if IS_LONG else ("i4", "u2")


def wrapped(x: np.ndarray, dtype: str) -> np.ndarray:
    """Return integers modulo the range of a packed dtype, as wide integers."""
    low, high = LIMITS[dtype]
    return (np.asarray(x, np.int64) - low) % (high - low + 1) + low


def put(y: np.ndarray, x: object) -> None:
    """Assign values that the dtype represents."""
    y[...] = np.asarray(x).astype(y.dtype)


def wide(x: np.ndarray) -> np.ndarray:
    """Return integers of 64 bits."""
    return x.astype(np.int64)


for _t in DTYPES:

    @program(
        "n",
        f"""
def elements_of_{_t}(x: Buffer[(n,), {_t}], z: Buffer[(n,), {_t}], y: Out[(n,), {_t}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * z[vi] + x[vi] - {_t}(1)
""",
    )
    def _(x, z, y, t=_t):
        put(y, wrapped(wide(x) * wide(z) + wide(x) - 1, t))

    @program(
        "n m",
        f"""
def transposed_{_t}(x: Buffer[(n, m), {_t}], y: Out[(m, n), {_t}]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vj, vi] = x[vi, vj]
""",
    )
    def _(x, y):
        y[:] = x.T

    @program(
        "n",
        f"""
def reversed_in_place_{_t}(x: InOut[(n,), {_t}]):
    for i in range(n // 2):
        with block("x"):
            vi = spatial(i)
            p = x[vi]
            q = x[n - 1 - vi]
            x[vi] = q
            x[n - 1 - vi] = p
""",
    )
    def _(x):
        x[:] = x[::-1].copy()

    @program(
        "n m",
        f"""
def sums_in_{_t}(x: Buffer[(n, m), {_t}], y: Out[(n,), {_t}], s: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {_t}(0)
                y[vi] += x[vi, vk]
    for i in range(n):
        for k in range(m):
            with block("s"):
                wi, wk = spatial(i), reduce(k)
                with init(): s[wi] = 0
                s[wi] += i32(x[wi, wk]) * i32(x[wi, wk])
""",
    )
    def _(x, y, s, t=_t):
        put(y, wrapped(wide(x).sum(axis=1), t))
        s[:] = (wide(x) ** 2).sum(axis=1)

    @program(
        "n m",
        f"""
def extremes_in_{_t}(x: Buffer[(n, m), {_t}], y: Out[(n,), {_t}], z: Out[(m,), {_t}]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {_t}({LIMITS[_t][0]})
                y[vi] = max(y[vi], x[vi, vk])
    for i in range(n):
        for k in range(m):
            with block("z"):
                wi, wk = reduce(i), spatial(k)
                with init(): z[wk] = {_t}({LIMITS[_t][1]})
                z[wk] = min(z[wk], x[wi, wk])
""",
    )
    def _(x, y, z, t=_t):
        low, high = LIMITS[t]
        put(y, wide(x).max(axis=1, initial=low))
        put(z, wide(x).min(axis=0, initial=high))

    @program(
        "n m",
        f"""
def shifted_rows_of_{_t}(x: Buffer[(n, m + 3), {_t}], y: Out[(n, m), {_t}], z: InOut[(n, m + 1), {_t}]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj + 3] + x[vi, vj]
                z[vi, vj + 1] = x[vi, vj + 1]
""",
    )
    def _(x, y, z, m, t=_t):
        put(y, wrapped(wide(x[:, 3:]) + wide(x[:, :m]), t))
        z[:, 1:] = x[:, 1 : m + 1]

    @program(
        "n",
        f"""
def conversions_of_{_t}(x: Buffer[(n,), {_t}], f: Buffer[(n,), f32], k: Buffer[(n,), i32], a: Out[(n,), f32], b: Out[(n,), {_t}], c: Out[(n,), {_t}], d: Out[(n,), f8_e4m3]):
    for i in range(n):
        with block("all"):
            vi = spatial(i)
            a[vi] = f32(x[vi]) * 0.5
            b[vi] = {_t}(f[vi] * 7.0)
            c[vi] = {_t}(k[vi])
            d[vi] = f8_e4m3(x[vi])
""",
    )
    def _(x, f, k, a, b, c, d, t=_t):
        low, high = LIMITS[t]
        a[:] = wide(x) * 0.5
        put(b, np.clip(np.trunc(f * 7), low, high))
        put(c, wrapped(k, t))
        put(d, wide(x).astype(np.float32))

    @program(
        "n m",
        f"""
def parallel_rows_of_{_t}(x: Buffer[(n, m * 4), {_t}], y: Out[(n, m * 4), {_t}]):
    for i in parallel(n):
        for j in range(m * 4):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, m * 4 - 1 - vj]
""",
    )
    def _(x, y):
        y[:] = x[:, ::-1]

    @program(
        "n",
        f"""
def gathered_{_t}(x: Buffer[(13,), {_t}], at: Buffer[(n,), i32], y: Out[(n,), {_t}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            with clamped(at[vi], 0, 13) as p:
                y[vi] = x[p] + x[12 - p]
""",
    )
    def _(x, at, y, t=_t):
        p = np.clip(at, 0, 12)
        put(y, wrapped(wide(x[p]) + wide(x[12 - p]), t))

    @program(
        "n",
        f"""
def scattered_{_t}(x: Buffer[(n,), {_t}], at: Buffer[(n,), i32], y: InOut[(13,), {_t}]):
    for i in range(n):
        with block("y"):
            vi = reduce(i)
            with clamped(at[vi], 0, 13) as p:
                y[p] += x[vi]
""",
    )
    def _(x, at, y, t=_t):
        sums = wide(y)
        np.add.at(sums, np.clip(at, 0, 12), wide(x))
        put(y, wrapped(sums, t))

    @program(
        "n m",
        f"""
def temporaries_of_{_t}(x: Buffer[(n, m), {_t}], y: Out[(n, m), i32]):
    t = alloc((m, n), {_t})
    for i in range(n):
        for j in range(m):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[vj, vi] = x[vi, vj] ^ {_t}(1)
    for i in range(n):
        u = alloc((m,), {_t})
        for j in range(m):
            u[j] = t[j, i]
        for j in range(m):
            y[i, j] = i32(u[m - 1 - j]) + 1
""",
    )
    def _(x, y, t=_t):
        y[:] = wrapped(wide(x) ^ 1, t)[:, ::-1] + 1

    @program(
        "n",
        f"""
def recurrence_in_{_t}(x: Buffer[(n,), {_t}], y: InOut[(n + 1,), {_t}]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            y[vi + 1] = y[vi] + x[vi]
""",
    )
    def _(x, y, t=_t):
        put(y, wrapped(np.cumsum([int(y[0]), *wide(x)]), t))


@program(
    "n m",
    """
def grouped_weights(x: Buffer[(n, 12), f32], w: Buffer[(m, 12), i4], s: Buffer[(m, 3), f32], z: Buffer[(m, 3), u4], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            for k in range(12):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    q = f32(i32(w[vj, vk]) - i32(z[vj, vk // 4]))
                    y[vi, vj] += x[vi, vk] * (q * s[vj, vk // 4])
""",
)
def _(x, w, s, z, y):
    q = (wide(w).reshape(-1, 3, 4) - wide(z)[:, :, None]) * s[:, :, None]
    y[:] = x @ q.reshape(-1, 12).T.astype(np.float32)


@program(
    "n m",
    """
def quantized_rows(x: Buffer[(n, m), f32], q: Out[(n, m), i4], s: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                with init(): s[vi] = 0.0
                s[vi] = max(s[vi], abs(x[vi, vk]))
    for i in range(n):
        for j in range(m):
            with block("q"):
                wi, wj = spatial(i), spatial(j)
                t = s[wi] + 1.0
                q[wi, wj] = i4(floor(x[wi, wj] * 8.0 / t))
""",
)
def _(x, q, s):
    s[:] = np.abs(x).max(axis=1, initial=0)
    put(q, np.clip(np.floor(x * np.float32(8) / (s[:, None] + 1)), -8, 7))


@program(
    "n",
    """
def nibbles_of_bytes(x: Buffer[(n,), u8], y: Out[(2 * n,), u4], z: Out[(n,), u8]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            q = x[vi]
            y[2 * vi] = u4(q)
            y[2 * vi + 1] = u4(q >> u8(4))
    for j in range(n):
        with block("z"):
            vj = spatial(j)
            z[vj] = u8(y[2 * vj]) | (u8(y[2 * vj + 1]) << u8(4))
""",
)
def _(x, y, z):
    put(y[::2], wide(x) & 15)
    put(y[1::2], wide(x) >> 4)
    z[:] = x


@program(
    "n",
    """
def signs_by_bits(x: Buffer[(n,), i4], y: Out[(n,), u4], z: Out[(n,), i4], w: Out[(n,), bool]):
    for i in range(n):
        with block("all"):
            vi = spatial(i)
            q = reinterpret(x[vi], u4)
            y[vi] = q
            z[vi] = reinterpret(q ^ u4(8), i4)
            w[vi] = q > u4(7)
""",
)
def _(x, y, z, w):
    q = wide(x) & 15
    put(y, q)
    put(z, wrapped(q ^ 8, "i4"))
    w[:] = q > 7


FLOATS = {"f8_e4m3": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2}

for _t, _kind in FLOATS.items():

    @program(
        "n",
        f"""
def bytes_as_{_t}(x: Buffer[(n,), u8], y: Out[(n,), f32], z: Out[(n,), {_t}], w: Out[(n,), u8]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            q = reinterpret(x[vi], {_t})
            y[vi] = f32(q)
            z[vi] = q
            w[vi] = where(isnan(q), x[vi], reinterpret({_t}(f32(q)), u8))
""",
    )
    def _(x, y, z, w, kind=_kind):
        y[:], z[:], w[:] = x.view(kind).astype(np.float32), x.view(kind), x

    @program(
        "n",
        f"""
def rounding_to_{_t}(k: Buffer[(n,), i32], x: Buffer[(n,), f32], y: Out[(n,), {_t}], z: Out[(n,), {_t}], w: Out[(n,), {_t}]):
    for i in range(n):
        with block("all"):
            vi = spatial(i)
            y[vi] = {_t}(f32(k[vi]) * 1.0625)
            z[vi] = {_t}(f64(k[vi]) * 4.0)
            w[vi] = {_t}(x[vi] * 0.0078125)
""",
    )
    def _(k, x, y, z, w):
        y[:] = (k.astype(np.float32) * np.float32(1.0625)).astype(y.dtype)
        z[:] = (k * 4.0).astype(y.dtype)
        w[:] = (x * np.float32(0.0078125)).astype(y.dtype)

    @program(
        "n m",
        f"""
def product_with_{_t}(x: Buffer[(n, 8), f32], w: Buffer[(8, m), {_t}], y: Out[(n, m), f32], z: Out[(n, m), {_t}]):
    for i in range(n):
        for j in range(m):
            for k in range(8):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * f32(w[vk, vj])
    for i in range(n):
        for j in range(m):
            with block("z"):
                wi, wj = spatial(i), spatial(j)
                z[wi, wj] = {_t}(y[wi, wj])
""",
    )
    def _(x, w, y, z):
        y[:] = x @ w.astype(np.float32)
        z[:] = y.astype(z.dtype)

    @program(
        "n m",
        f"""
def functions_of_{_t}(x: Buffer[(n, m), {_t}], z: Buffer[(m,), {_t}], y: Out[(n, m), {_t}], b: Out[(n, m), bool]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                p = x[vi, vj] * z[vj] + x[vi, vj]
                y[vi, vj] = max(-p, {_t}(1)) / z[vj]
                b[vi, vj] = isnan(y[vi, vj]) or p < z[vj]
""",
    )
    def _(x, z, y, b):
        def rounded(v):
            return v.astype(x.dtype).astype(np.float32)

        u, v = x.astype(np.float32), z.astype(np.float32)
        p = rounded(rounded(u * v) + u)
        y[:] = (np.maximum(-p, 1) / v).astype(y.dtype)
        b[:] = np.isnan(y.astype(np.float32)) | (p < v)

    @program(
        "n m",
        f"""
def extremes_of_{_t}(x: Buffer[(n, m), {_t}], y: Out[(n,), {_t}], s: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {_t}(-5)
                y[vi] = max(y[vi], x[vi, vk])
    for i in range(n):
        for k in range(m):
            with block("s"):
                wi, wk = spatial(i), reduce(k)
                with init(): s[wi] = 1.0
                s[wi] += f32(x[wi, wk])
""",
    )
    def _(x, y, s):
        q = x.astype(np.float32)
        y[:] = q.max(axis=1, initial=-5).astype(y.dtype)
        s[:] = 1 + q.sum(axis=1)

    @program(
        "n",
        f"""
def in_place_{_t}(x: InOut[(n,), {_t}], at: Buffer[(n,), i32]):
    for i in range(n):
        with block("x"):
            vi = ordered(i)
            with clamped(at[vi], 0, max(n, 1)) as p:
                q = x[p]
                x[p] = max(min(q + {_t}(1), {_t}(4)), {_t}(-4))
""",
        lower=1,
    )
    def _(x, at, n):
        for p in np.clip(at, 0, n - 1):
            x[p] = x.dtype.type(np.clip(float(x[p]) + 1, -4, 4))


@program(
    "n m",
    """
def attention_on_an_8_bit_cache(q: Buffer[(n,), f32], c: Buffer[(m, n), f8_e4m3], s: Buffer[(m,), f32], y: Out[(m,), f32]):
    for j in range(m):
        for k in range(n):
            with block("y"):
                vj, vk = spatial(j), reduce(k)
                with init(): y[vj] = 0.0
                y[vj] += q[vk] * (f32(c[vj, vk]) * s[vj])
""",
)
def _(q, c, s, y):
    y[:] = (q * (c.astype(np.float32) * s[:, None])).sum(axis=1)


@program(
    "n",
    """
def appended_to_an_8_bit_cache(c: InOut[(n + 9, 4), f8_e5m2], x: Buffer[(n, 4), f32], at: Buffer[(n,), i32]):
    for i in range(n):
        for j in range(4):
            with block("c"):
                vi, vj = spatial(i), spatial(j)
                with checked(at[vi], 0, n + 9) as p:
                    c[p, vj] = f8_e5m2(x[vi, vj] * 1.5)
""",
    indices={"at": Indices("0", "n + 9", "distinct")},
)
def _(c, x, at):
    c[at] = (x * np.float32(1.5)).astype(c.dtype)


@program(
    "n",
    """
def magnitudes_by_bits(x: Buffer[(n,), f32], h: Buffer[(n,), f16], y: Out[(n,), f32], z: Out[(n,), u16], w: Out[(n,), i32]):
    for i in range(n):
        with block("all"):
            vi = spatial(i)
            b = reinterpret(x[vi], i32)
            y[vi] = reinterpret(b & 2147483647, f32)
            z[vi] = reinterpret(-h[vi], u16)
            w[vi] = (b >> 23) & 255
""",
)
def _(x, h, y, z, w):
    y[:], z[:] = np.abs(x), (-h).view(np.uint16)
    w[:] = (x.view(np.int32) >> 23) & 255


@program(
    "n m",
    """
def masks_of_two_bits(x: Buffer[(n, m), u2], y: Out[(n, m), f32], c: Out[(4, n), i32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj]
                y[vi, vj] = where(q == u2(3), -1.0, where(q > u2(1), 0.5, f32(q)))
    for a in range(4):
        for i in range(n):
            for j in range(m):
                with block("c"):
                    va, wi, wj = spatial(a), spatial(i), reduce(j)
                    with init(): c[va, wi] = 0
                    c[va, wi] += where(i32(x[wi, wj]) == va, 1, 0)
""",
)
def _(x, y, c):
    q = wide(x)
    y[:] = np.where(q == 3, -1, np.where(q > 1, 0.5, q))
    for a in range(4):
        c[a] = (q == a).sum(axis=1)
