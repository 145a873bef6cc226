"""Programs whose loops, branches and guards run a block on a part of its domain, or repeatedly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Maker, Program, alloc, buffer, highest, lowest, nest, zero

if TYPE_CHECKING:
    import random

EXTENTS = (
    "i + 1", "i", "n - i", "n - i - 1", "min(i + 1, 3)", "max(i - 1, 0)", "i // 2 + 1", "i % 3",
)  # fmt: skip
"""The extents of an inner loop, at most ``n``."""


def triangle(rng: random.Random) -> Program:
    """Draw a copy, a row reduction or a product over a triangle."""
    m = Maker(rng)
    m.symbol("n")
    t, extent = m.dtype(*COMMON), m.pick(*EXTENTS)
    bound = m.pick("n, j", "n, j", "j")
    kind = m.pick("copy", "sum", "product", "use")
    x = buffer("x", ["n", "n"], t)
    if kind == "copy":
        lines = ['with block("y"):', f"    vi, vj = spatial(i), spatial({bound})",
                 f"    y[vi, vj] = {m.value(t, 'x[vi, vj]')}"]  # fmt: skip
        body = nest([("i", "n"), ("j", extent)], lines)
        return Program("triangle", m.text([x, buffer("y", ["n", "n"], t, "InOut")], body))
    if kind == "product":
        lines = [
            'with block("y"):',
            f"    vi, vd, vj = spatial(i), spatial(d), reduce({bound})",
            f"    with init(): y[vi, vd] = {zero(t)}",
            "    y[vi, vd] += x[vi, vj] * w[vj, vd]",
        ]
        width = m.extent("k", 1, 4, 16)
        loops = [("i", "n"), ("d", width), ("j", extent)]
        if m.chance(0.4):
            loops = [loops[0], loops[2], loops[1]]
        params = [x, buffer("w", ["n", width], t), buffer("y", ["n", width], t, "InOut")]
        return Program("triangle", m.text(params, nest(loops, lines)))
    first = [
        'with block("row"):',
        f"    vi, vj = spatial(i), reduce({bound})",
        f"    with init(): r[vi] = {zero(t)}",
        f"    r[vi] = {m.pick('r[vi] + x[vi, vj]', 'max(r[vi], x[vi, vj])')}",
    ]
    body = nest([("i", "n"), ("j", extent)], first)
    if kind == "sum":
        return Program("triangle", m.text([x, buffer("r", ["n"], t, "InOut")], body))
    whole = m.chance(0.5) and extent in ("i + 1", "n - i", "min(i + 1, 3)", "i // 2 + 1")
    second = ['with block("y"):', "    va, vb = spatial(a), spatial(n, b)",
              f"    y[va, vb] = {m.value(t, 'x[va, vb]', 'r[va]')}"]  # fmt: skip
    body += "\n" + nest([("a", "n"), ("b", "n" if whole else _renamed(extent))], second)
    params = [x, buffer("y", ["n", "n"], t, "InOut")]
    return Program("triangle", m.text(params, body, [alloc("r", ["n"], t)]))


def _renamed(extent: str) -> str:
    """Return an extent over loop ``a``."""
    return extent.replace("min", "MN").replace("i", "a").replace("MN", "min")


def band(rng: random.Random) -> Program:
    """Draw a banded product or a stencil with a limited neighborhood."""
    m = Maker(rng)
    m.symbol("n")
    t, width = m.dtype(*COMMON), rng.choice([1, 2, 3])
    total = 2 * width + 1
    if m.chance(0.5):
        lines = [
            'with block("y"):',
            f"    vi, vr = spatial(i), reduce({total}, r)",
            f"    guard(i + r >= {width} and i + r < n + {width})",
            f"    with init(): y[vi] = {zero(t)}",
            f"    y[vi] += x[vi + vr - {width}] * w[vr]",
        ]
        body = nest([("i", "n"), ("r", str(total))], lines)
        params = [buffer("x", ["n"], t), buffer("w", [str(total)], t),
                  buffer("y", ["n"], t, "InOut")]  # fmt: skip
        return Program("band", m.text(params, body))
    low = f"max(i - {width}, 0)"
    lines = [
        'with block("y"):',
        f"    vi, vj = spatial(i), reduce(n, j + {low})",
        f"    with init(): y[vi] = {zero(t)}",
        "    y[vi] += x[vi, vj] * w[vj]",
    ]
    body = nest([("i", "n"), ("j", f"min(i + {width + 1}, n) - {low}")], lines)
    params = [buffer("x", ["n", "n"], t), buffer("w", ["n"], t), buffer("y", ["n"], t, "InOut")]
    return Program("band", m.text(params, body))


def agreeing(rng: random.Random) -> Program:
    """Draw a reduction with a condition on which the terms of a part of it may all agree."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 2, 3, 4, 5, 8), m.dtype(*COMMON)
    scale = rng.choice([2, 3, 4])
    condition = m.pick(
        f"i * {scale} + r < a * {scale}", f"i * {scale} + r >= a * {scale}", "i + r >= 1",
        f"r + a < {k}", "r < a", "i < a and r < i + 2", f"i * {scale} + r < a",
    )  # fmt: skip
    lines = [
        'with block("y"):',
        f"    vi, vr = spatial(i), reduce({k}, r)",
        f"    guard({condition})",
        f"    with init(): y[vi] = {zero(t)}",
        f"    y[vi] {m.pick('+= x[vi, vr]', '= max(y[vi], x[vi, vr])')}",
    ]
    params = [buffer("x", [n, k], t), buffer("y", [n], t, "InOut")]
    if "a" in condition.replace("and", ""):
        params.insert(0, "a: Int")
    return Program("agreeing", m.text(params, nest([("i", n), ("r", k)], lines)))


def branch(rng: random.Random) -> Program:
    """Draw blocks under ``if`` and ``else``, with conditions on loops, symbols and arguments."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 5, 16), m.dtype(*COMMON)
    condition = m.pick(
        "j < 3", "i > j", "i % 2 == 0", "i + j < n", "n > 3", "a > i", "i == 0 or j == 2",
        "not i == 1", "j >= 1 and i < n - 1",
    )  # fmt: skip
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "InOut")]
    if "a >" in condition:
        params.insert(0, "a: Int")
    reducing = m.chance(0.4)
    lines = [f"if {condition}:", *_branch_block(m, t, "first", "", reducing=reducing)]
    if m.chance(0.6):
        lines += ["else:", *_branch_block(m, t, "second", "1", reducing=False)]
    body = nest([("i", n), ("j", k)], lines)
    local = []
    if m.chance(0.4):
        local = [alloc("s", [n, k], t)]
        copy = ['with block("copy"):', "    ci, cj = spatial(i2), spatial(j2)",
                f"    s[ci, cj] = {m.value(t, 'x[ci, cj]')}"]  # fmt: skip
        body = nest([("i2", n), ("j2", k)], copy) + "\n" + body.replace("x[", "s[")
    if reducing:
        params.append(buffer("r", [n], t, "InOut"))
    return Program("branch", m.text(params, body, local))


def _branch_block(m: Maker, t: str, name: str, suffix: str, *, reducing: bool) -> list[str]:
    vi, vj = f"vi{suffix}", f"vj{suffix}"
    if not reducing:
        return [
            f'    with block("{name}"):',
            f"        {vi}, {vj} = spatial(i), spatial(j)",
            f"        y[{vi}, {vj}] = {m.value(t, f'x[{vi}, {vj}]', f'y[{vi}, {vj}]')}",
        ]
    return [
        f'    with block("{name}"):',
        f"        {vi}, {vj} = spatial(i), reduce(j)",
        f"        with init(): r[{vi}] = {zero(t)}",
        f"        r[{vi}] += x[{vi}, {vj}]",
    ]


def guard(rng: random.Random) -> Program:
    """Draw blocks with predicates: reductions over a part of their domain, masked copies."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 5, 16), m.extent("k", 1, 5, 16), m.dtype(*COMMON)
    condition = m.pick("i < 3", "j > 0", "i != j", "i + j < 5", "j % 2 == 1", "i * 2 + j < 7")
    if m.chance(0.5):
        lines = [
            'with block("y"):', "    vi, vj = spatial(i), spatial(j)", f"    guard({condition})",
            f"    y[vi, vj] = {m.value(t, 'x[vi, vj]')}",
        ]  # fmt: skip
        out = buffer("y", [n, k], t, "InOut")
    else:
        start, combine = _fold(m, t)
        lines = [
            'with block("y"):', "    vi, vj = spatial(i), reduce(j)", f"    guard({condition})",
            f"    with init(): y[vi] = {start}", f"    y[vi] = {combine('y[vi]', 'x[vi, vj]')}",
        ]  # fmt: skip
        out = buffer("y", [n], t, "InOut")
    body = nest([("i", n), ("j", k)], lines)
    return Program("guard", m.text([buffer("x", [n, k], t), out], body))


def _fold(m: Maker, t: str):
    """Draw the start and the combination of a reduction."""
    return m.rng.choice([
        (zero(t), lambda a, b: f"{a} + {b}"), (lowest(t), lambda a, b: f"max({a}, {b})"),
        (highest(t), lambda a, b: f"min({a}, {b})"), (f"{t}(1)", lambda a, b: f"{a} * {b}"),
    ])  # fmt: skip


def overwide(rng: random.Random) -> Program:
    """Draw blocks whose domain is larger than their loops run."""
    m = Maker(rng)
    k, t = m.extent("k", 5, 16), m.dtype(*COMMON)
    wide = m.pick(f"2 * {k}", f"{k} + 3")
    start, combine = _fold(m, t)
    if m.chance(0.4):
        lines = [
            'with block("y"):',
            f"    vi, vj, vk = spatial(i), spatial(j), reduce({wide}, r)",
            f"    with init(): y[vi, vj] = {zero(t)}",
            "    y[vi, vj] += x[vi, vk] * w[vk, vj]",
        ]
        n = m.extent("n", 3, 6)
        params = [buffer("x", [n, wide], t), buffer("w", [wide, "8"], t),
                  buffer("y", [n, "8"], t, "InOut")]  # fmt: skip
        return Program("overwide", m.text(params, nest([("i", n), ("j", "8"), ("r", k)], lines)))
    n = m.extent("n", 3, 6)
    rows = m.pick(n, f"{n} + 2", f"2 * {n}")
    lines = [
        'with block("y"):',
        f"    vi, vk = spatial({rows}, i), reduce({wide}, r)",
        f"    with init(): y[vi] = {start}",
        f"    y[vi] = {combine('y[vi]', 'x[vi, vk]')}",
    ]
    params = [buffer("x", [rows, wide], t), buffer("y", [rows], t, "InOut")]
    return Program("overwide", m.text(params, nest([("i", n), ("r", k)], lines)))


def polynomial(rng: random.Random) -> Program:
    """Draw a product of polynomials: several iterations add to one element."""
    m = Maker(rng)
    n, k, t = m.extent("n", 3, 5, least=1), m.extent("k", 4, 5, least=1), m.dtype(*COMMON)
    first = [
        'with block("start"):', "    vs = spatial(s)",
        f"    y[vs] = {m.pick(zero(t), f'{t}(1)')}",
    ]  # fmt: skip
    kind = m.pick("spatial", "ordered")
    second = [
        'with block("product"):',
        f"    vo, vk = {kind}({n} + {k} - 1, i + r), {m.pick('reduce', kind)}(r)",
        f"    y[vo] += {m.pick('a[vo - vk] * b[vk]', 'a[vo - vk]', 'b[vk]')}",
    ]
    body = nest([("s", f"{n} + {k} - 1")], first) + "\n" + nest([("i", n), ("r", k)], second)
    params = [buffer("a", [n], t), buffer("b", [k], t)]
    params.append(buffer("y", [f"{n} + {k} - 1"], t, "Out"))
    return Program("polynomial", m.text(params, body))


def repeated(rng: random.Random) -> Program:
    """Draw loops that feed no iteration variable, around blocks that may run repeatedly."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 5, 16), m.extent("k", 1, 5), m.dtype(*COMMON)
    times = m.pick("2", "3", "1", "k2")
    if times == "k2":
        m.symbol("k2")
    update = m.chance(0.5)
    lines = [
        'with block("y"):', "    vi, vj = spatial(i), reduce(j)",
        f"    with init(): y[vi] = {zero(t)}", "    y[vi] += x[vi, vj]",
    ] if update else [
        'with block("y"):', "    vi, vj = spatial(i), spatial(j)",
        f"    y[vi, vj] = {m.value(t, 'x[vi, vj]')}",
    ]  # fmt: skip
    loops = [("i", n), ("j", k)]
    loops.insert(rng.randint(0, 2), ("r", times))
    dims = [n] if update else [n, k]
    params = [buffer("x", [n, k], t), buffer("y", dims, t, "InOut")]
    return Program("repeated", m.text(params, nest(loops, lines)))


def empty(rng: random.Random) -> Program:
    """Draw loops that may be empty, also with a negative extent, before a use of their results."""
    m = Maker(rng)
    m.symbol("n")
    t = m.dtype(*COMMON)
    if m.chance(0.5):
        shift = rng.randint(1, 4)
        lines = ['with block("y"):', "    vi, vj = spatial(i), spatial(j)",
                 f"    y[vi, vj] = {m.value(t, 'x[vi, vj]', f'x[vi + {shift}, vj]')}"]  # fmt: skip
        columns = m.pick("k", f"k - {shift}")
        m.symbol("k")
        body = nest([("i", f"n - {shift}"), ("j", columns)], lines)
        params = [buffer(x, ["n", "k"], t, kind) for x, kind in (("x", "Buffer"), ("y", "InOut"))]
        return Program("empty", m.text(params, body))
    size = m.pick("(2 - i % 3) // 2", "i % 2", "1 - i", "min(i, 1)")
    value = m.value(t, "s[0]", "x[vu]")
    body = f"""
for z in range(1):
    with block("start"):
        vz = spatial(z)
        s[vz] = {t}(3)
for i in range(n):
    for r in range({size}):
        with block("fill"):
            vf, vi = spatial(1, r), spatial(i)
            s[vf] = x[vi]
    with block("use"):
        vu = spatial(i)
        y[vu] = {value}
"""
    params = [buffer("x", ["n"], t), buffer("y", ["n"], t, "Out")]
    return Program("empty", m.text(params, body, [alloc("s", ["1"], t)]))


def product(rng: random.Random) -> Program:
    """Draw buffers whose sizes are products of symbols, and indices with divisions."""
    m = Maker(rng)
    m.symbol("n")
    m.symbol("k")
    t = m.dtype(*COMMON)
    kind = m.pick("flatten", "unflatten", "interleave", "reverse", "diagonal")
    if kind == "flatten":
        m.symbols["k"] = 1
        lines = ["vp = spatial(p)", f"y[vp] = {m.value(t, 'x[vp // k, vp % k]')}"]
        loops, shapes = [("p", "n * k")], (["n", "k"], ["n * k"])
    elif kind == "unflatten":
        lines = ["vi, vj = spatial(i), spatial(j)", f"y[vi, vj] = {m.value(t, 'x[vi * k + vj]')}"]
        loops, shapes = [("i", "n"), ("j", "k")], (["n * k"], ["n", "k"])
    elif kind == "interleave":
        lines = ["vp = spatial(p)", f"y[vp] = {m.value(t, 'x[vp % 2, vp // 2]')}"]
        loops, shapes = [("p", "2 * n")], (["2", "n"], ["2 * n"])
    elif kind == "reverse":
        lines = ["vi, vj = spatial(i), spatial(j)",
                 f"y[vi, k - 1 - vj] = {m.value(t, 'x[n - 1 - vi, vj]')}"]  # fmt: skip
        loops, shapes = [("i", "n"), ("j", "k")], (["n", "k"], ["n", "k"])
    else:
        lines = ["vi = spatial(i)", f"y[vi] = {m.value(t, 'x[vi, vi]', 'x[vi, vi // 2]')}"]
        loops, shapes = [("i", "n")], (["n", "n"], ["n"])
    body = nest(loops, ['with block("y"):', *(f"    {line}" for line in lines)])
    params = [buffer("x", shapes[0], t), buffer("y", shapes[1], t, "Out")]
    return Program("product", m.text(params, body))
