"""Programs with temporaries that are allocated in loops, branches, blocks, and lets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Indices, Maker, Program, buffer, zero

if TYPE_CHECKING:
    import random


def _memory(m: Maker) -> str:
    """Draw a memory scope for a temporary, as an argument."""
    return m.pick("", "", ', scope="local"')


def scoped_rows(rng: random.Random) -> Program:
    """Draw a pipeline of temporaries per row, with lengths that may depend on the row."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    length = m.pick(k, k, f"{k} + 1", "i + 1")
    least = k if length != "i + 1" else f"min({k}, i + 1)"
    stages = rng.randint(1, 3)
    lines = [f"for i in range({n}):"]
    source = "x[{i}, {j}]"
    for number in range(stages):
        name = f"t{number}"
        lines += [
            f"    {name} = alloc(({length},), {t}{_memory(m)})",
            f"    for j{number} in range({least}):",
            f'        with block("{name}"):',
            f"            i{number}_, v{number} = spatial({n}, i), spatial({k}, j{number})",
            f"            {name}[v{number}] = "
            + m.value(t, source.format(i=f"i{number}_", j=f"v{number}"), f"x[i{number}_, 0]"),
        ]
        source = name + "[{j}]"
    at = m.pick("vz", f"{k} - 1 - vz") if least == k else "vz"
    lines += [
        f"    for z in range({least}):",
        '        with block("y"):',
        f"            vy, vz = spatial({n}, i), spatial({k}, z)",
        f"            y[vy, vz] = {m.value(t, source.format(i='vy', j=at))}",
    ]
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "InOut")]
    return Program("scoped_rows", m.text(params, "\n".join(lines)))


def scoped_depths(rng: random.Random) -> Program:
    """Draw temporaries at several depths, in branches, and in blocks."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    condition = m.pick("i < 3", "i % 2 == 0", "i + j < 5")
    own = m.pick(
        f"s = alloc((2,), {t})\n            s[0] = x[vi, vj]\n            s[1] = s[0]\n"
        f"            b[0] = {m.value(t, 's[0]', 's[1]')}",
        f"b[0] = {m.value(t, 'x[vi, vj]')}",
    )
    body = f"""
for i in range({n}):
    a = alloc(({k},), {t}{_memory(m)})
    for z in range({k}):
        with block("a"):
            vz, va = spatial(z), spatial({n}, i)
            a[vz] = {m.value(t, "x[va, vz]")}
    for j in range({k}):
        b = alloc((1,), {t}{_memory(m)})
        with block("b"):
            vi, vj = spatial({n}, i), spatial({k}, j)
            {own}
        if {condition}:
            c = alloc((), {t})
            with block("c"):
                vc = spatial({k}, j)
                c[()] = {m.value(t, "a[vc]", "b[0]")}
            with block("d"):
                vd, ve = spatial({n}, i), spatial({k}, j)
                y[vd, ve] = {m.value(t, "c[()]")}
        else:
            with block("e"):
                vf, vg = spatial({n}, i), spatial({k}, j)
                y[vf, vg] = {m.value(t, "b[0]", "x[vf, vg]")}
"""
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "Out")]
    return Program("scoped_depths", m.text(params, body))


def scoped_sums(rng: random.Random) -> Program:
    """Draw an accumulator per row, and uses of its result in the same row."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    update = m.pick("s[0] + x[vi, vk]", "max(s[0], x[vi, vk])", "min(x[vi, vk], s[0])")
    body = f"""
for i in range({n}):
    s = alloc((1,), {t}{_memory(m)})
    for k0 in range({k}):
        with block("s"):
            vi, vk = spatial({n}, i), reduce({k}, k0)
            with init(): s[0] = {zero(t)}
            s[0] = {update}
    for j in range({k}):
        with block("y"):
            wi, wj = spatial({n}, i), spatial({k}, j)
            y[wi, wj] = {m.value(t, "s[0]", "x[wi, wj]")}
"""
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "Out")]
    return Program("scoped_sums", m.text(params, body))


def scoped_guards(rng: random.Random) -> Program:
    """Draw a temporary that several guarded writes fill, outside or inside of the loop."""
    m = Maker(rng)
    n, t = m.extent("n", 5, 16, 33), m.dtype(*COMMON)
    inside = m.chance(0.6)
    guard = "i == 0 or r == 2" if not inside else m.pick("i >= 0", "r < 3", "i == 0 or r >= 0")
    allocated = f"s = alloc((3,), {t}{_memory(m)})"
    index = "vr" if inside else "(vi + vr) % 3"
    other = "{r}" if inside else "(vk + {r}) % 3"
    loads = [f"s[{other.format(r=r)}]" for r in range(3)]
    body = f"""
{"" if inside else allocated}
for i in range({n}):
    {allocated if inside else ""}
    for r in range(3):
        with block("p"):
            vi, vr = spatial({n}, i), spatial(3, r)
            guard({guard})
            s[{index}] = {m.value(t, "x[vi + vr]")}
    with block("c"):
        vk = spatial({n}, i)
        y[vk] = {m.value(t, *loads)}
"""
    lines = "\n".join(line for line in body.splitlines() if line.strip())
    params = [buffer("x", [f"{n} + 2"], t), buffer("y", [n], t, "Out")]
    return Program("scoped_guards", m.text(params, lines))


def ragged_scratch(rng: random.Random) -> Program:
    """Draw rows of data-dependent length, each with a scratch of its length."""
    m = Maker(rng)
    n, w, t = m.symbol("n"), m.symbol("m"), m.dtype(*COMMON)
    index = m.pick("wk", "wh - wl - 1 - wk")
    body = f"""
for i in range({n}):
    with checked(p[i], 0, {w} + 1) as lo:
        with checked(p[i + 1], 0, {w} + 1) as hi:
            s = alloc((hi - lo,), {t}{_memory(m)})
            for j in range(hi - lo):
                with block("s"):
                    vl, vj = spatial({w} + 1, lo), spatial({w} + 1, j)
                    s[vj] = {m.value(t, "x[vl + vj]")}
            for k in range(hi - lo):
                with block("y"):
                    wl, wh, wk = spatial({w} + 1, lo), spatial({w} + 1, hi), spatial({w} + 1, k)
                    y[wl + wk] = {m.value(t, f"s[{index}]")}
"""
    params = [buffer("x", [w], t), buffer("p", [f"{n} + 1"], "i32"), buffer("y", [w], t, "InOut")]
    indices = {"p": Indices("0", f"{w} + 1", "sorted")}
    return Program("ragged_scratch", m.text(params, body), indices=indices)
