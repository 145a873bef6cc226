"""Programs of reductions whose results later loops use: softmax, norms, causal attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Maker, Program, alloc, buffer, highest, lowest, zero

if TYPE_CHECKING:
    import random

SOFTMAX = """
for i in range({n}):
    for k1 in range({k}):
        with block("top"):
            vi, vk = spatial(i), reduce(k1)
            with init(): top[vi] = -inf
            top[vi] = max(top[vi], f32(x[vi, vk]))
for i1 in range({n}):
    for k2 in range({k}):
        with block("total"):
            wi, wk = spatial(i1), reduce(k2)
            with init(): total[wi] = 0.0
            total[wi] += exp(f32(x[wi, wk]) - top[wi])
for i2 in range({n}):
    for j in range({k}):
        with block("divided"):
            ui, uj = spatial(i2), spatial(j)
            y[ui, uj] = {t}(exp(f32(x[ui, uj]) - top[ui]) / total[ui])
"""

NORM = """
for i in range({n}):
    for k1 in range({k}):
        with block("mean"):
            vi, vk = spatial(i), reduce(k1)
            with init(): mean[vi] = 0.0
            mean[vi] += f32(x[vi, vk])
for i1 in range({n}):
    for k2 in range({k}):
        with block("square"):
            wi, wk = spatial(i1), reduce(k2)
            with init(): square[wi] = 0.0
            square[wi] += f32(x[wi, wk]) * f32(x[wi, wk])
for i2 in range({n}):
    for j in range({k}):
        with block("scale"):
            ui, uj = spatial(i2), spatial(j)
            y[ui, uj] = {t}({value}) * g[uj]
"""

SCALED = (
    "(f32(x[ui, uj]) - mean[ui]) * rsqrt(square[ui] + 1.0)",
    "f32(x[ui, uj]) - mean[ui]",
    "f32(x[ui, uj]) * mean[ui] + square[ui]",
)


def softmax(rng: random.Random) -> Program:
    """Draw a softmax of rows."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 3, 5), m.extent("k", 1, 8, 17), m.dtype("f32", "f32", "f16", "bf16")
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "Out")]
    local = [alloc("top", [n], "f32"), alloc("total", [n], "f32")]
    return Program("softmax", m.text(params, SOFTMAX.format(n=n, k=k, t=t), local), exact=False)


def norm(rng: random.Random) -> Program:
    """Draw a norm of rows."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 3, 5), m.extent("k", 1, 8, 17), m.dtype("f32", "f32", "f16", "bf16")
    value = rng.choice(SCALED)
    params = [buffer("x", [n, k], t), buffer("g", [k], t), buffer("y", [n, k], t, "Out")]
    local = [alloc("mean", [n], "f32"), alloc("square", [n], "f32")]
    text = m.text(params, NORM.format(n=n, k=k, t=t, value=value), local)
    return Program("norm", text, exact="rsqrt" not in value and t == "f32")


COLUMNS = """
for i in range({b}):
    for j in range({m}):
        for k in range({n}):
            with block("fold"):
                vi, vj, vk = spatial(i), spatial(j), reduce(k)
                with init(): {s}[vi, vj] = {start}
                {s}[vi, vj] = {combine}
"""

DIVIDED = """
for i1 in range({b}):
    for j1 in range({m}):
        with block("end"):
            wi, wj = spatial(i1), spatial(j1)
            y[wi, wj] = {value}
"""


def columns(rng: random.Random) -> Program:
    """Draw a reduction of the columns of matrices, sometimes with a use of the results."""
    m = Maker(rng)
    b, n = m.extent("b", 1, 2), m.extent("n", 1, 5, 40)
    width, t = m.extent("m", 3, 16, 33), m.dtype("f32", "f64", "f16", "i32", "i8")
    name, used = m.pick("add", "max", "min"), m.chance(0.4)
    start = {"add": zero(t), "max": lowest(t), "min": highest(t)}[name]
    s = "s" if used else "y"
    own, term = f"{s}[vi, vj]", m.value(t, "x[vi, vk, vj]")
    combine = f"{own} + {term}" if name == "add" else f"{name}({own}, {term})"
    text = COLUMNS.format(b=b, m=width, n=n, s=s, start=start, combine=combine)
    params = [buffer("x", [b, n, width], t), buffer("y", [b, width], t, "Out")]
    if not used:
        return Program("columns", m.text(params, text))
    text += DIVIDED.format(b=b, m=width, value=m.value(t, "s[wi, wj]"))
    return Program("columns", m.text(params, text, [alloc("s", [b, width], t)]))


ATTENTION = """
for i in range(n):
    for j in range({extent}):
        for k in range(d):
            with block("score"):
                vi, vj, vk = spatial(i), spatial(n, j), reduce(k)
                with init(): s[vi, vj] = 0.0
                s[vi, vj] += q[vi, vk] * w[vj, vk]
for i1 in range(n):
    for j1 in range({extent1}):
        with block("top"):
            ti, tj = spatial(i1), reduce(n, j1)
            with init(): top[ti] = -inf
            top[ti] = max(top[ti], s[ti, tj])
for i2 in range(n):
    for j2 in range({extent2}):
        with block("total"):
            ui, uj = spatial(i2), reduce(n, j2)
            with init(): total[ui] = 0.0
            total[ui] += {shifted}
for i3 in range(n):
    for d3 in range(d):
        for j3 in range({extent3}):
            with block("out"):
                oi, od, oj = spatial(i3), spatial(d3), reduce(n, j3)
                with init(): y[oi, od] = 0.0
                y[oi, od] += {weight} * v[oj, od]
"""


def attention(rng: random.Random) -> Program:
    """Draw causal attention: four triangular loops, with exponentials or integers."""
    m = Maker(rng)
    m.symbol("n")
    m.symbol("d")
    extent = m.pick("{i} + 1", "n - {i}", "min({i} + 1, 3)")
    exact = m.chance(0.5)
    extents = {f"extent{k or ''}": extent.format(i=f"i{k or ''}") for k in range(4)}
    body = ATTENTION.format(
        **extents,
        shifted="s[ui, uj] - top[ui]" if exact else "exp(s[ui, uj] - top[ui])",
        weight="(s[oi, oj] - top[oi])" if exact else "exp(s[oi, oj] - top[oi]) / total[oi]",
    )
    params = [buffer(x, ["n", "d"], "f32") for x in ("q", "w", "v")]
    params += [buffer("y", ["n", "d"], "f32", "Out")]
    local = [alloc("s", ["n", "n"], "f32"), alloc("top", ["n"], "f32")]
    if exact and m.chance(0.5):
        params.append(buffer("total", ["n"], "f32", "Out"))
    else:
        local.append(alloc("total", ["n"], "f32"))
    return Program("attention", m.text(params, body, local), exact=exact)


TOTAL = """
for i in range({n}):
    for j in range({k}):
        with block("total"):
            vi, vj = reduce(i), reduce(j)
            with init(): {total} = {start}
            {total} = {combined}
for i1 in range({n}):
    for j1 in range({k}):
        with block("y"):
            wi, wj = spatial(i1), spatial(j1)
            y[wi, wj] = {value}
"""


def scalar(rng: random.Random) -> Program:
    """Draw buffers without dimensions: a total that every element uses."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 4), m.extent("k", 1, 5, 17), m.dtype("f32", "i32", "u8", "f64")
    params = [buffer("x", [n, k], t), buffer("s", [], t), buffer("y", [n, k], t, "Out")]
    local, total = [], "t[()]"
    if m.chance(0.35):
        local = ["t = alloc((), " + t + ")"]
    elif m.chance(0.25):
        local, total = [alloc("t", ["1"], t)], "t[0]"
    else:
        params.append(buffer("t", [], t, "Out"))
    body = TOTAL.format(
        n=n, k=k, total=total, start=m.pick(zero(t), "s[()]"),
        combined=m.pick(f"{total} + x[vi, vj]", f"max({total}, x[vi, vj])"),
        value=m.value(t, "x[wi, wj]", total),
    )  # fmt: skip
    if m.chance(0.2):
        body += "u[()] = s[()]\n"
        params.append(buffer("u", [], t, "Out"))
    return Program("scalar", m.text(params, body, local))


def pointwise(rng: random.Random) -> Program:
    """Draw one element-wise block of one, two or three dimensions."""
    m = Maker(rng)
    t, rank = m.dtype(*COMMON), rng.randint(1, 3)
    dims = [m.extent(s, 1, 7, 16) for s in ("n", "k", "l")[:rank]]
    v = [f"v{d}" for d in range(rank)]
    loops = [f"i{d}" for d in range(rank)]
    order = rng.sample(range(rank), rank)
    params = [buffer("x", dims, t), buffer("z", dims[-1:], t), buffer("y", dims, t, "Out")]
    lines = [f"{'    ' * p}for {loops[d]} in range({dims[d]}):" for p, d in enumerate(order)]
    pad = "    " * rank
    here = ", ".join(v)
    lines += [
        f'{pad}with block("y"):',
        f"{pad}    {here} = {', '.join(f'spatial({x})' for x in loops)}",
        f"{pad}    y[{here}] = {m.value(t, f'x[{here}]', f'z[{v[-1]}]')}",
    ]
    return Program("pointwise", m.text(params, "\n".join(lines)))
