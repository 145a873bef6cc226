"""Programs with element functions in reductions, under guards, at loaded indices, and in place."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import math

import numpy as np

from tilewright.ir.loop.element_functions import random_bits

from tests.attacks.loop_programs import program

GROUPS = {
    "exponentials": ("exp2({}) + log2(abs({}) + 1.0)", lambda x: np.exp2(x) + np.log2(abs(x) + 1)),
    "logarithms": ("log10(abs({}) + 1.0) - log1p(abs({}))", lambda x: np.log10(abs(x) + 1) - np.log1p(abs(x))),
    "angles": ("atan({}) + asin({} * 0.25)", lambda x: np.arctan(x) + np.arcsin(x * 0.25)),
    "cosines": ("acos({} * 0.25) + tan({})", lambda x: np.arccos(x * 0.25) + np.tan(x)),
    "hyperbolic": ("sinh({}) - cosh({})", lambda x: np.sinh(x) - np.cosh(x)),
    "inverses": ("asinh({}) + atanh({} * 0.25)", lambda x: np.arcsinh(x) + np.arctanh(x * 0.25)),
    "acosh": ("acosh(abs({}) + 1.0) + {}", lambda x: np.arccosh(abs(x) + 1) + x),
    "errors": ("erfc({}) + erfinv({} * 0.25)", None),
    "lengths": ("hypot({}, 4.0) + fmod({}, 2.0)", lambda x: np.hypot(x, 4) + np.fmod(x, 2)),
}  # fmt: skip

for _name, (_form, _of) in GROUPS.items():

    @program(
        "n m",
        f"""
def sums_of_{_name}(x: Buffer[(n, m), f32], y: Out[(n,), f32], z: Out[(n, m), f64]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                guard(k != 2)
                with init(): y[vi] = 0.0
                q = x[vi, vk]
                y[vi] += {_form.replace("{}", "q")}
    for i in range(n):
        for j in range(m):
            with block("z"):
                wi, wj = spatial(i), spatial(j)
                w = f64(x[wi, wj])
                z[wi, wj] = where(w > 0.0, {_form.replace("{}", "w")}, w)
""",
        exact=False,
    )
    def _(x, y, z, m, of=_of):
        def erfs(v):
            return np.vectorize(lambda t: math.erfc(t) + _inverse(t / 4), otypes=[float])(v)

        of = of or erfs
        made = of(x.astype(np.float64))
        y[:] = (made * (np.arange(m) != 2)).sum(axis=1)
        z[:] = np.where(x > 0, made, x)


def _inverse(y: float) -> float:
    """Return the inverse of the error function by bisection."""
    low, high = -6.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return low


for _t, _bits in (("i8", 8), ("u8", 8), ("i32", 32), ("i64", 64)):

    @program(
        "n m",
        f"""
def bits_of_{_t}(x: Buffer[(n, m), {_t}], y: Out[(n, m), {_t}], s: Out[(n,), i32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj]
                y[vi, vj] = clz(q) * {_t}(2) - ctz(q)
    for i in range(n):
        for k in range(m):
            with block("s"):
                wi, wk = spatial(i), reduce(k)
                with init(): s[wi] = 0
                s[wi] += i32(popcount(x[wi, wk]))
""",
    )
    def _(x, y, s, bits=_bits):
        for place, value in np.ndenumerate(x):
            text = f"{int(value) % (1 << bits):0{bits}b}"
            leading, trailing = text.find("1"), text[::-1].find("1")
            both = 2 * (leading if leading >= 0 else bits) - (trailing if trailing >= 0 else bits)
            y[place] = np.array(both).astype(y.dtype)
        s[:] = [sum(f"{int(v) % (1 << bits):b}".count("1") for v in row) for row in x]


@program(
    "n m",
    """
def exact_functions(x: Buffer[(n, m), f32], k: Buffer[(m,), i32], y: Out[(n, m), f32], z: Out[(n, m), f32], w: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("all"):
                vi, vj = spatial(i), spatial(j)
                q = x[vi, vj]
                y[vi, vj] = fma(q, q, -q)
                z[vi, vj] = ldexp(q, k[vj] % 8)
                w[vi, vj] = nextafter(copysign(1.0, q), 2.0)
""",
)
def _(x, k, y, z, w):
    y[:], z[:] = x * x - x, np.ldexp(x, k % 8)
    w[:] = np.nextafter(np.copysign(np.float32(1), x), np.float32(2))


@program(
    "n",
    """
def random_rows(key: Buffer[(1,), u64], y: Out[(n, 4), f32], z: Out[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                q = f32(random_bits(u32(index(vi * 4 + vj, i64)), u32(key[0]))) / 4294967296.0
                y[vi, vj] = q
                z[vi, vj] = where(q < 0.5, 0.0, 2.0)
""",
)
def _(key, y, z):
    words = [random_bits.reference(np.uint32(k), key.astype(np.uint32)[0]) for k in range(y.size)]
    y[:] = np.reshape(words, y.shape).astype(np.float32) / np.float32(2**32)
    z[:] = np.where(y < 0.5, 0, 2)


@program(
    "n r",
    """
def softplus_at_loaded_indices(x: InOut[(r + 1,), f32], at: Buffer[(n,), i32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            with clamped(at[vi], 0, r + 1) as p:
                q = log1p(exp(x[p]))
                y[vi] = q
                x[p] = q - 1.0
""",
    exact=False,
)
def _(x, at, y, r):
    for i, p in enumerate(np.clip(at, 0, r)):
        y[i] = np.log1p(np.exp(x[p]))
        x[p] = y[i] - 1


@program(
    "n m",
    """
def functions_of_half_precision(x: Buffer[(n, m), f16], y: Out[(n, m), f16], s: Out[(n,), f16]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                q = tanh(x[vi, vj])
                y[vi, vj] = atan(q) + sinh(q)
    for i in range(n):
        for k in range(m):
            with block("s"):
                wi, wk = spatial(i), reduce(k)
                with init(): s[wi] = -inf
                s[wi] = max(s[wi], exp2(x[wi, wk]))
""",
    exact=False,
    tolerance=4e-3,
)
def _(x, y, s):
    q = np.tanh(x.astype(np.float64))
    y[:], s[:] = np.arctan(q) + np.sinh(q), np.exp2(x).max(axis=1, initial=-np.inf)
