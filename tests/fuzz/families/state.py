"""Programs that read their own results: in-place updates, recurrences, windows, temporaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Maker, Program, alloc, buffer, nest, zero

if TYPE_CHECKING:
    import random


def in_place(rng: random.Random) -> Program:
    """Draw updates of a buffer in place: own elements, swapped halves, several stages."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    kind = m.pick("own", "stages", "shift")
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "InOut")]
    first = ['with block("a"):', "    vi, vj = spatial(i), spatial(j)",
             f"    y[vi, vj] = {m.value(t, 'y[vi, vj]', 'x[vi, vj]')}"]  # fmt: skip
    body = nest([("i", n), ("j", k)], first)
    if kind == "stages":
        second = ['with block("b"):', "    wi, wj = spatial(i1), spatial(j1)",
                  f"    y[wi, wj] = {m.value(t, 'y[wi, wj]')}"]  # fmt: skip
        body += "\n" + nest([("i1", n), ("j1", k)], second)
    elif kind == "shift":
        step = m.pick("y[vi, vj] = y[vi + 1, vj]", "y[vi + 1, vj] = y[vi, vj] + x[vi, vj]",
                      "y[vi, vj] = y[vi + 1, vj] + y[vi, vj]")  # fmt: skip
        ordered = ['with block("a"):', "    vi, vj = ordered(i), spatial(j)", f"    {step}"]
        body = nest([("i", f"{n} - 1"), ("j", k)], ordered)
    return Program("in_place", m.text(params, body))


def recurrence(rng: random.Random) -> Program:
    """Draw prefix sums and recurrences over ordered iterations."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    value = m.pick("y[vi, vj] + x[vi, vj]", "max(y[vi, vj], x[vi, vj])", "x[vi, vj] - y[vi, vj]")
    body = f"""
for z in range({k}):
    with block("start"):
        vz = spatial(z)
        y[0, vz] = {zero(t)}
for i in range({n}):
    for j in range({k}):
        with block("step"):
            vi, vj = ordered(i), spatial(j)
            y[vi + 1, vj] = {value}
"""
    params = [buffer("x", [n, k], t), buffer("y", [f"{n} + 1", k], t, "Out")]
    local = []
    if m.chance(0.4):
        params[1] = buffer("z", [n, k], t, "Out")
        local = [alloc("y", [f"{n} + 1", k], t)]
        body += f"""
for a in range({n}):
    for b in range({k}):
        with block("use"):
            va, vb = spatial(a), spatial(b)
            z[va, vb] = {m.value(t, "y[va + 1, vb]", "x[va, vb]")}
"""
    return Program("recurrence", m.text(params, body, local))


def rolling(rng: random.Random) -> Program:
    """Draw a temporary that holds a few rows, overwritten in turn, and windows over them."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    depth = rng.choice([2, 3])
    if m.chance(0.5):
        body = f"""
for i in range({n}):
    for j in range({k}):
        with block("fill"):
            vi, vj = ordered(i), spatial(j)
            s[vi % {depth}, vj] = {m.value(t, "x[vi, vj]")}
    for j1 in range({k}):
        with block("use"):
            wi, wj = spatial(i), spatial(j1)
            y[wi, wj] = {m.value(t, f"s[wi % {depth}, wj]", "x[wi, wj]")}
"""
        params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "Out")]
        return Program("rolling", m.text(params, body, [alloc("s", [str(depth), k], t)]))
    body = f"""
for i in range({n} + {depth - 1}):
    with block("fill"):
        vi = spatial(i)
        s[vi] = {m.value(t, "x[vi]")}
for a in range({n}):
    for r in range({depth}):
        with block("sum"):
            va, vr = spatial(a), reduce(r)
            with init(): y[va] = {zero(t)}
            y[va] += s[va + vr]
"""
    params = [buffer("x", [f"{n} + {depth - 1}"], t), buffer("y", [n], t, "Out")]
    return Program("rolling", m.text(params, body, [alloc("s", [f"{n} + {depth - 1}"], t)]))


def guarded_window(rng: random.Random) -> Program:
    """Draw a temporary that each iteration fills only in part: earlier ones filled the rest."""
    m = Maker(rng)
    n, t = m.extent("n", 5, 16, 33), m.dtype(*COMMON)
    body = f"""
for i in range({n}):
    for r in range(3):
        with block("p"):
            vi, vr = spatial({n}, i), spatial(3, r)
            guard(i == 0 or r == 2)
            s[vi + vr] = {m.value(t, "x[vi + vr]")}
    with block("c"):
        vk = spatial({n}, i)
        y[vk] = {m.value(t, "s[vk]", "s[vk + 1]", "s[vk + 2]")}
"""
    params = [buffer("x", [f"{n} + 2"], t), buffer("y", [n], t, "Out")]
    return Program("guarded_window", m.text(params, body, [alloc("s", [f"{n} + 2"], t)]))


def masked_temporary(rng: random.Random) -> Program:
    """Draw a temporary that is written where a condition holds, and read there."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 5, 16), m.dtype(*COMMON)
    first, second = m.rng.choice([
        ("j < 3", "b < 3"), ("i + j < 5", "a + b < 5"), ("j % 2 == 0", "b % 2 == 0"),
        ("i > 0", "a > 0"),
    ])  # fmt: skip
    form = m.pick("guard", "if")
    inner = ["vi, vj = spatial(i), spatial(j)", f"guard({first})" if form == "guard" else "",
             f"s[vi, vj] = {m.value(t, 'x[vi, vj]')}"]  # fmt: skip
    other = ["va, vb = spatial(a), spatial(b)", f"guard({second})" if form == "guard" else "",
             f"y[va, vb] = {m.value(t, 's[va, vb]', 'x[va, vb]')}"]  # fmt: skip
    parts = []
    for name, lines, loops, condition in (
        ("fill", inner, ("i", "j"), first),
        ("use", other, ("a", "b"), second),
    ):
        block = [f'with block("{name}"):', *(f"    {line}" for line in lines if line)]
        if form == "if":
            block = [f"if {condition}:", *(f"    {line}" for line in block)]
        parts.append(nest([(loops[0], n), (loops[1], k)], block))
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "InOut")]
    return Program("masked_temporary", m.text(params, "\n".join(parts), [alloc("s", [n, k], t)]))


def several_stores(rng: random.Random) -> Program:
    """Draw blocks with several stores, into one or several buffers."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    second = m.pick("z[vi, vj] = x[vi, vj]", "z[vi, vj] = y[vi, vj]", "y[vi, vj] = -y[vi, vj]",
                    "z[vi, vj] = max(x[vi, vj], y[vi, vj])")  # fmt: skip
    lines = [
        'with block("two"):', "    vi, vj = spatial(i), spatial(j)",
        f"    y[vi, vj] = {m.value(t, 'x[vi, vj]')}", f"    {second}",
    ]  # fmt: skip
    params = [buffer("x", [n, k], t)]
    body = nest([("i", n), ("j", k)], lines)
    local = []
    if m.chance(0.5):
        local = [alloc("y", [n, k], t)]
        use = ['with block("use"):', "    wi, wj = spatial(i1), spatial(j1)",
               f"    w[wi, wj] = {m.value(t, 'y[wi, wj]')}"]  # fmt: skip
        body += "\n" + nest([("i1", n), ("j1", k)], use)
        params.append(buffer("w", [n, k], t, "Out"))
    else:
        params.append(buffer("y", [n, k], t, "Out"))
    if "z[" in body:
        params.append(buffer("z", [n, k], t, "Out"))
    return Program("several_stores", m.text(params, body, local))


def raw(rng: random.Random) -> Program:
    """Draw stores outside of blocks: sums, recurrences, scalars, beside blocks."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    kind = m.pick("copy", "sum", "scan", "scalar", "mixed", "branch")
    params = [buffer("x", [n, k], t)]
    local = []
    if kind == "copy":
        body = f"for i in range({n}):\n    for j in range({k}):\n        y[i, j] = "
        body += m.value(t, "x[i, j]")
        params.append(buffer("y", [n, k], t, "Out"))
    elif kind == "sum":
        body = f"for i in range({n}):\n    y[i] = {zero(t)}\n    for j in range({k}):\n"
        body += f"        y[i] = {m.pick('y[i] + x[i, j]', 'max(y[i], x[i, j])')}"
        params.append(buffer("y", [n], t, "Out"))
    elif kind == "scan":
        body = f"for i in range({n}):\n    for j in range({k}):\n"
        body += "        y[i + 1, j] = y[i, j] + x[i, j]"
        params.append(buffer("y", [f"{n} + 1", k], t, "InOut"))
    elif kind == "scalar":
        body = f"for i in range({n}):\n    for j in range({k}):\n        y[()] = "
        body += m.pick("y[()] + x[i, j]", "max(y[()], x[i, j])", "x[i, j]")
        params.append(buffer("y", [], t, "InOut"))
    elif kind == "mixed":
        lines = ['with block("b"):', "    vi, vj = spatial(i), spatial(j)",
                 f"    s[vi, vj] = {m.value(t, 'x[vi, vj]')}"]  # fmt: skip
        body = nest([("i", n), ("j", k)], lines) + f"\nfor a in range({n}):\n"
        body += f"    for b in range({k}):\n        y[a, b] = {m.value(t, 's[a, b]')}"
        local = [alloc("s", [n, k], t)]
        params.append(buffer("y", [n, k], t, "Out"))
    else:
        body = f"for i in range({n}):\n    for j in range({k}):\n        if i > j:\n"
        body += f"            y[i, j] = {m.value(t, 'x[i, j]')}\n        else:\n"
        body += f"            y[i, j] = {m.value(t, 'y[i, j]')}"
        params.append(buffer("y", [n, k], t, "InOut"))
    return Program("raw", m.text(params, body, local))


def nested(rng: random.Random) -> Program:
    """Draw blocks inside of blocks, as after ``blockize``."""
    m = Maker(rng)
    n, t, size = m.symbol("n"), m.dtype(*COMMON), rng.choice([1, 2, 4])
    if m.chance(0.5):
        body = f"""
for i in range({n}):
    with block("outer"):
        vo = spatial(i)
        for j in range({size}):
            with block("inner"):
                vi = spatial({size} * {n}, vo * {size} + j)
                y[vi] = {m.value(t, "x[vi]")}
"""
        params = [buffer("x", [f"{size} * {n}"], t), buffer("y", [f"{size} * {n}"], t, "Out")]
        return Program("nested", m.text(params, body))
    body = f"""
for i in range({n}):
    for k in range({n}):
        with block("outer"):
            vo, vk = spatial(i), reduce(k)
            with init():
                for j0 in range({size}):
                    with block("inner_init"):
                        vi0 = spatial({size} * {n}, vo * {size} + j0)
                        y[vi0] = {zero(t)}
            for j in range({size}):
                with block("inner"):
                    vi, wk = spatial({size} * {n}, vo * {size} + j), reduce({n}, vk)
                    y[vi] += x[vi, wk]
"""
    params = [buffer("x", [f"{size} * {n}", n], t), buffer("y", [f"{size} * {n}"], t, "InOut")]
    return Program("nested", m.text(params, body))


def biased(rng: random.Random) -> Program:
    """Draw reductions whose init loads a bias, or whose results a temporary holds."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 5, 16), m.extent("k", 1, 5, 16), m.dtype(*COMMON)
    start = m.pick("b[vi]", f"b[vi] + {t}(1)", f"{t}(2)")
    value = m.pick("y[vi] + x[vi, vk]", "x[vi, vk] + y[vi]", "max(y[vi], x[vi, vk])",
                   "min(x[vi, vk], y[vi])", "y[vi] - x[vi, vk]")  # fmt: skip
    body = nest(
        [("i", n), ("k2", k)],
        ['with block("y"):', "    vi, vk = spatial(i), reduce(k2)",
         f"    with init(): y[vi] = {start}", f"    y[vi] = {value}"],
    )  # fmt: skip
    params = [buffer("x", [n, k], t), buffer("b", [n], t), buffer("y", [n], t, "Out")]
    if m.chance(0.3):
        body = body.replace("for i in", "for i in").replace("y[", "s[")
        use = ['with block("use"):', "    wi = spatial(w)", f"    y[wi] = {m.value(t, 's[wi]')}"]
        body += "\n" + nest([("w", n)], use)
        return Program("biased", m.text(params, body, [alloc("s", [n], t)]))
    return Program("biased", m.text(params, body))
