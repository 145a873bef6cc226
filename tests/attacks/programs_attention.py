"""Causal and banded attention: masks by a condition, a guard, a branch, or the loop bound."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

import numpy as np

from tests.attacks.loop_programs import program


def softmax(s):
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


@program(
    "n d",
    """
def causal_where(q: Buffer[(n, d), f32], k: Buffer[(n, d), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    s = alloc((n, n), f32)
    top = alloc((n,), f32)
    den = alloc((n,), f32)
    for i in range(n):
        for j in range(n):
            for c in range(d):
                with block("s"):
                    vi, vj, vc = spatial(i), spatial(j), reduce(c)
                    with init(): s[vi, vj] = 0.0
                    s[vi, vj] += q[vi, vc] * k[vj, vc]
    for i1 in range(n):
        for j1 in range(n):
            with block("top"):
                ti, tj = spatial(i1), reduce(j1)
                with init(): top[ti] = -inf
                top[ti] = max(top[ti], where(tj <= ti, s[ti, tj], -inf))
    for i2 in range(n):
        for j2 in range(n):
            with block("den"):
                di, dj = spatial(i2), reduce(j2)
                with init(): den[di] = 0.0
                den[di] += where(dj <= di, exp(s[di, dj] - top[di]), 0.0)
    for i3 in range(n):
        for c3 in range(d):
            for j3 in range(n):
                with block("y"):
                    yi, yc, yj = spatial(i3), spatial(c3), reduce(j3)
                    with init(): y[yi, yc] = 0.0
                    y[yi, yc] += where(yj <= yi, exp(s[yi, yj] - top[yi]) / den[yi], 0.0) * v[yj, yc]
""",
    exact=False,
)
def _(q, k, v, y, n):
    if n:
        s = (q @ k.T).astype("f8")
        s[np.triu_indices(n, 1)] = -np.inf
        y[:] = softmax(s) @ v


@program(
    "n d",
    """
def causal_guard(q: Buffer[(n, d), f32], k: Buffer[(n, d), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    s = alloc((n, n), f32)
    top = alloc((n,), f32)
    den = alloc((n,), f32)
    for i in range(n):
        for j in range(n):
            for c in range(d):
                with block("s"):
                    vi, vj, vc = spatial(i), spatial(j), reduce(c)
                    guard(j <= i)
                    with init(): s[vi, vj] = 0.0
                    s[vi, vj] += q[vi, vc] * k[vj, vc]
    for i1 in range(n):
        for j1 in range(n):
            with block("top"):
                ti, tj = spatial(i1), reduce(j1)
                guard(j1 <= i1)
                with init(): top[ti] = -inf
                top[ti] = max(top[ti], s[ti, tj])
    for i2 in range(n):
        for j2 in range(n):
            with block("den"):
                di, dj = spatial(i2), reduce(j2)
                guard(j2 <= i2)
                with init(): den[di] = 0.0
                den[di] += exp(s[di, dj] - top[di])
    for i3 in range(n):
        for c3 in range(d):
            for j3 in range(n):
                with block("y"):
                    yi, yc, yj = spatial(i3), spatial(c3), reduce(j3)
                    guard(j3 <= i3)
                    with init(): y[yi, yc] = 0.0
                    y[yi, yc] += exp(s[yi, yj] - top[yi]) / den[yi] * v[yj, yc]
""",
    exact=False,
)
def _(q, k, v, y, n):
    if n:
        s = (q @ k.T).astype("f8")
        s[np.triu_indices(n, 1)] = -np.inf
        y[:] = softmax(s) @ v


@program(
    "n d",
    """
def causal_if(q: Buffer[(n, d), f32], k: Buffer[(n, d), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    s = alloc((n, n), f32)
    top = alloc((n,), f32)
    den = alloc((n,), f32)
    for i in range(n):
        for j in range(n):
            if j <= i:
                for c in range(d):
                    with block("s"):
                        vi, vj, vc = spatial(i), spatial(j), reduce(c)
                        with init(): s[vi, vj] = 0.0
                        s[vi, vj] += q[vi, vc] * k[vj, vc]
            else:
                with block("masked"):
                    mi, mj = spatial(i), spatial(j)
                    s[mi, mj] = -inf
    for i1 in range(n):
        for j1 in range(n):
            with block("top"):
                ti, tj = spatial(i1), reduce(j1)
                with init(): top[ti] = -inf
                top[ti] = max(top[ti], s[ti, tj])
    for i2 in range(n):
        for j2 in range(n):
            with block("den"):
                di, dj = spatial(i2), reduce(j2)
                with init(): den[di] = 0.0
                den[di] += exp(s[di, dj] - top[di])
    for i3 in range(n):
        for c3 in range(d):
            for j3 in range(n):
                with block("y"):
                    yi, yc, yj = spatial(i3), spatial(c3), reduce(j3)
                    with init(): y[yi, yc] = 0.0
                    y[yi, yc] += exp(s[yi, yj] - top[yi]) / den[yi] * v[yj, yc]
""",
    exact=False,
    sizes=[{"n": n, "d": max(1, n // 2)} for n in (0, 1, 2, 3, 7, 16, 17, 33, 67)],
)
def _(q, k, v, y, n):
    if n:
        s = (q @ k.T).astype("f8")
        s[np.triu_indices(n, 1)] = -np.inf
        y[:] = softmax(s) @ v


@program(
    "n d",
    """
def causal_raw(q: Buffer[(n, d), f32], k: Buffer[(n, d), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    s = alloc((n,), f32)
    top = alloc((), f32)
    den = alloc((), f32)
    for i in range(n):
        top[()] = -inf
        for j in range(i + 1):
            s[j] = 0.0
            for c in range(d):
                s[j] += q[i, c] * k[j, c]
            top[()] = max(top[()], s[j])
        den[()] = 0.0
        for j in range(i + 1):
            s[j] = exp(s[j] - top[()])
            den[()] += s[j]
        for c in range(d):
            y[i, c] = 0.0
            for j in range(i + 1):
                y[i, c] += s[j] / den[()] * v[j, c]
""",
    exact=False,
)
def _(q, k, v, y, n):
    if n:
        s = (q @ k.T).astype("f8")
        s[np.triu_indices(n, 1)] = -np.inf
        y[:] = softmax(s) @ v


@program(
    "n d",
    """
def online_softmax(q: Buffer[(n, d), f32], k: Buffer[(n, d), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    m = alloc((), f32)
    l = alloc((), f32)
    p = alloc((), f32)
    t = alloc((), f32)
    old = alloc((), f32)
    for i in range(n):
        m[()] = -inf
        l[()] = 0.0
        for c in range(d):
            y[i, c] = 0.0
        for j in range(i + 1):
            t[()] = 0.0
            for c in range(d):
                t[()] += q[i, c] * k[j, c]
            old[()] = m[()]
            m[()] = max(m[()], t[()])
            p[()] = exp(t[()] - m[()])
            l[()] = l[()] * exp(old[()] - m[()]) + p[()]
            for c in range(d):
                y[i, c] = y[i, c] * exp(old[()] - m[()]) + p[()] * v[j, c]
        for c in range(d):
            y[i, c] = y[i, c] / l[()]
""",
    exact=False,
)
def _(q, k, v, y, n):
    if n:
        s = (q @ k.T).astype("f8")
        s[np.triu_indices(n, 1)] = -np.inf
        y[:] = softmax(s) @ v


@program(
    "n d w",
    """
def band_attention(w: Int, s: Buffer[(n, n), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    den = alloc((n,), f32)
    for i in range(n):
        for j in range(min(i + w + 1, n) - max(i - w, 0)):
            with block("den"):
                di, dj = spatial(i), reduce(n, j + max(i - w, 0))
                with init(): den[di] = 0.0
                den[di] += exp(s[di, dj])
    for i2 in range(n):
        for c in range(d):
            for j2 in range(min(i2 + w + 1, n) - max(i2 - w, 0)):
                with block("y"):
                    yi, yc, yj = spatial(i2), spatial(c), reduce(n, j2 + max(i2 - w, 0))
                    with init(): y[yi, yc] = 0.0
                    y[yi, yc] += exp(s[yi, yj]) / den[yi] * v[yj, yc]
""",
    exact=False,
)
def _(s, v, y, n, w):
    i, j = np.indices((n, n))
    e = np.where(abs(i - j) <= w, np.exp(s.astype("f8")), 0)
    if n:
        y[:] = e / e.sum(1, keepdims=True) @ v


@program(
    "n d",
    """
def blocked_causal(s: Buffer[(n, n), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    for ib in range(ceildiv(n, 16)):
        for c in range(d):
            for ii in range(min(16, n - ib * 16)):
                for jb in range(ib + 1):
                    for jj in range(min(16, n - jb * 16)):
                        with block("y"):
                            vi, vc, vj = spatial(n, ib * 16 + ii), spatial(d, c), reduce(n, jb * 16 + jj)
                            guard(jb * 16 + jj <= ib * 16 + ii)
                            with init(): y[vi, vc] = 0.0
                            y[vi, vc] += s[vi, vj] * v[vj, vc]
""",
)
def _(s, v, y):
    y[:] = np.tril(s) @ v
