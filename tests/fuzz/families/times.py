"""Programs over time: double buffers, wavefronts, factorizations, swaps, and running state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Maker, Program, alloc, block, buffer, nest, zero

if TYPE_CHECKING:
    import random


def double_buffer(rng: random.Random) -> Program:
    """Draw steps of time that read the result of the previous step from the other half."""
    m = Maker(rng)
    n, times, t = m.extent("n", 4, 9, 16), m.extent("T", 2, 3), m.dtype(*COMMON)
    near = m.pick(
        "va", f"{n} - 1 - va", "max(va - 1, 0)", f"min(va + 1, {n} - 1)", f"(va + 1) % {n}"
    )
    two = m.chance(0.5)
    start = "s[0, vi]" if two else "s[vi]"
    body = block(m, "start", [("i", n, "spatial")], [f"{start} = {m.value(t, 'x[vi]')}"])
    local = [alloc("s", ["2", n], t)] if two else [alloc("s", [n], t), alloc("h", [n], t)]
    cell = [("a", n, "spatial")]
    params = [buffer("x", [n], t), buffer("y", [n], t, "Out")]
    limit = f"{t}(3)" if t != "i32" else "100"
    if two:
        value = f"min(max(s[vt % 2, va], s[vt % 2, {near}]), {limit})"
        step = block(m, "step", cell, [f"s[(vt + 1) % 2, va] = {value}"])
        step = step.replace("va = spatial(a)", "vt, va = ordered(t), spatial(a)")
        last = f"s[{times} % 2, ve]"
    else:
        value = f"min(max(s[va], s[{near}]), {limit})"
        step = block(m, "step", cell, [f"h[va] = {value}"])
        step += block(m, "back", [("b", n, "spatial")], ["s[vb] = h[vb]"])
        for v in "ab":
            step = step.replace(f"v{v} = spatial", f"vt{v}, v{v} = ordered(t), spatial")
        last = "s[ve]"
    if m.chance(0.3):
        history = m.pick("max", "min")
        step += f"for g in range({n}):\n    y[g] = {history}(x[g], {last.replace('ve', 'g')})\n"
        step = step.replace(f"{times} % 2", "(t + 1) % 2")
        params[1] = buffer("y", [n], t, "InOut")
        body += nest([("t", times)], step.rstrip("\n").split("\n"))
    else:
        body += nest([("t", times)], step.rstrip("\n").split("\n")) + "\n"
        body += block(m, "end", [("e", n, "spatial")], [f"y[ve] = {m.value(t, last)}"])
    return Program("double_buffer", m.text(params, body, local))


def wavefront(rng: random.Random) -> Program:
    """Draw tables whose elements depend on the ones above and to the left."""
    m = Maker(rng)
    n, k, t = m.extent("n", 3, 6), m.extent("k", 3, 5), m.dtype("i32", "i32", "i8", "f32")
    value = m.pick(
        "max(H[I, J + 1], H[I + 1, J]) - x[I, J]", "min(H[I, J], H[I + 1, J]) + x[I, J]",
        "max(max(H[I, J], H[I, J + 1]), x[I, J])", "max(H[I, J] + x[I, J], H[I, J + 1])",
    )  # fmt: skip
    kind = m.pick("ordered", "raw", "border", "diagonal")
    params = [buffer("x", [n, k], t), buffer("H", [f"{n} + 1", f"{k} + 1"], t, "InOut")]
    if kind == "diagonal":
        m.symbols["n"] = 1
        low = "max(s - n + 1, 0)"
        axes = [("s", "2 * n - 1", "ordered"),
                ("r", f"min(s, n - 1) + 1 - {low}", f"spatial(n, r + {low})")]  # fmt: skip
        update = value.replace("I", "vr").replace("J", "vs - vr")
        body = block(m, "H", axes, [f"H[vr + 1, vs - vr + 1] = {update}"])
        params = [buffer("x", ["n", "n"], t), buffer("H", ["n + 1", "n + 1"], t, "InOut")]
        return Program("wavefront", m.text(params, body))
    if kind == "raw":
        update = f"H[i + 1, j + 1] = {value.replace('I', 'i').replace('J', 'j')}"
        return Program("wavefront", m.text(params, nest([("i", n), ("j", k)], [update])))
    axes = [("i", n, "ordered"), ("j", k, "ordered")]
    update = value.replace("I", "vi").replace("J", "vj")
    body = block(m, "H", axes, [f"H[vi + 1, vj + 1] = {update}"])
    if kind == "border":
        first = block(m, "top", [("a", f"{k} + 1", "spatial")], [f"H[0, va] = {zero(t)}"])
        first += block(m, "left", [("b", f"{n} + 1", "spatial")], [f"H[vb, 0] = {zero(t)}"])
        body = first + body
        params[1] = buffer("H", [f"{n} + 1", f"{k} + 1"], t, "Out")
    return Program("wavefront", m.text(params, body))


def factorization(rng: random.Random) -> Program:
    """Draw eliminations, triangular solutions and shortest paths in place, in whole numbers."""
    m = Maker(rng)
    m.symbol("n")
    t = m.dtype("i32", "i32", "i64", "i8")
    kind = m.pick("rank", "guard", "solve", "paths", "left", "raw")
    x, y = buffer("x", ["n", "n"], t), buffer("y", ["n", "n"], t, "InOut")
    if kind == "rank":
        inner = "n - k - 1"
        place = "ordered(n, {0} + k + 1)"
        axes = [("k", "n", "ordered"), ("i", inner, place.format("i")),
                ("j", inner, place.format("j"))]  # fmt: skip
        lines = ["y[vi, vj] = y[vi, vj] - y[vi, vk] * y[vk, vj]"]
        body = block(m, "y", axes, lines)
    elif kind in ("guard", "paths"):
        axes = [(v, "n", "ordered") for v in "kij"]
        update = "y[vi, vj] - y[vi, vk] * y[vk, vj]"
        if kind == "paths":
            update = "min(y[vi, vj], max(y[vi, vk], y[vk, vj]))"
        condition = m.pick("i > k and j > k", "i > k") if kind == "guard" else ""
        body = block(m, "y", axes, [f"y[vi, vj] = {update}"], condition)
    elif kind == "solve":
        wide = m.extent("d", 1, 3)
        lines = ["y[vi, vc] = y[vi, vc] - x[vi, vj] * y[vj, vc]"]
        axes = [("i", "n", "ordered"), ("j", "i", "ordered(n, j)"), ("c", wide, "spatial")]
        body = block(m, "y", axes, lines)
        y = buffer("y", ["n", wide], t, "InOut")
    elif kind == "left":
        body = """
for i in range(n):
    for j in range(i + 1):
        for k in range(j):
            with block("inner"):
                vi, vj, vk = ordered(i), ordered(n, j), ordered(n, k)
                y[vi, vj] = y[vi, vj] - y[vi, vk] * y[vj, vk]
        with block("last"):
            wi, wj = ordered(i), ordered(n, j)
            y[wi, wj] = y[wi, wj] + x[wi, wj]
"""
    else:
        body = """
for k in range(n):
    for i in range(n):
        if i > k:
            y[i, k] = y[i, k] + x[k, k]
            for j in range(n):
                if j > k:
                    y[i, j] = y[i, j] - y[i, k] * y[k, j]
"""
    return Program("factorization", m.text([x, y], body))


def swap(rng: random.Random) -> Program:
    """Draw elements that change places through a scalar temporary, and simple sorts."""
    m = Maker(rng)
    m.symbol("n")
    t = m.dtype(*COMMON)
    scalar = "s[()]" if m.chance(0.6) else "s[0]"
    local = [alloc("s", [] if scalar == "s[()]" else ["1"], t)]
    kind = m.pick("halves", "turn", "sort", "pairs", "two", "move")
    params = [buffer("x", ["n"], t, "InOut")]
    if kind == "sort":
        loops = [("i", "n"), ("j", "n - i - 1")]
        lines = [f"{scalar} = min(x[j], x[j + 1])", "x[j + 1] = max(x[j], x[j + 1])",
                 f"x[j] = {scalar}"]  # fmt: skip
        return Program("swap", m.text(params, nest(loops, lines), local))
    if kind == "two":
        params.append(buffer("z", ["n"], t, "InOut"))
    loops = [("i", {"halves": "n // 2", "pairs": "n // 2"}.get(kind, "n"))]
    first, second = {
        "halves": ("x[i]", "x[n - 1 - i]"), "pairs": ("x[2 * i]", "x[2 * i + 1]"),
        "two": ("x[i]", "z[i]"), "move": ("x[i]", "x[(i + 1) % n]"), "turn": ("x[i, j]", "x[j, i]"),
    }[kind]  # fmt: skip
    if kind == "turn":
        params, loops = [buffer("x", ["n", "n"], t, "InOut")], [("i", "n"), ("j", "i")]
    if m.chance(0.4):
        first, second = (_axes(access) for access in (first, second))
        names = [loop for loop, _ in loops]
        own = ", ".join(f"ordered(n, {v})" for v in names)
        head = ", ".join(f"v{v}" for v in names)
        lines = ['with block("swap"):', f"    {head} = {own}", f"    {scalar} = {first}",
                 f"    {first} = {second}", f"    {second} = {scalar}"]  # fmt: skip
    else:
        lines = [f"{scalar} = {first}", f"{first} = {second}", f"{second} = {scalar}"]
    return Program("swap", m.text(params, nest(loops, lines), local))


def _axes(access: str) -> str:
    """Return an access with axes instead of loops."""
    name, place = access.split("[", 1)
    return f"{name}[{place.replace('i', 'vi').replace('j', 'vj')}"


def cyclic(rng: random.Random) -> Program:
    """Draw a buffer that is used in turn, with a symbolic or constant period."""
    m = Maker(rng)
    n, w, t = m.extent("n", 5, 16), m.extent("w", 2, 4, 8, least=1), m.dtype(*COMMON)
    kind = m.pick("delay", "delay", "fold", "window", "repeat")
    params = [buffer("x", [n], t), buffer("r", [w], t, "InOut"), buffer("y", [n], t, "Out")]
    if kind == "delay":
        lines = [f"y[vi] = {m.value(t, f'r[vi % {w}]')}", f"r[vi % {w}] = x[vi]"]
        body = block(m, "y", [("i", n, "ordered")], lines)
    elif kind == "fold":
        body = block(m, "y", [("i", n, "ordered")], [f"r[vi % {w}] += x[vi]"])
        params = params[:2]
    elif kind == "repeat":
        body = block(m, "y", [("i", n, "spatial")], [f"y[vi] = {m.value(t, f'r[vi % {w}]')}"])
        params = [buffer("r", [w], t), buffer("y", [n], t, "Out")]
    else:
        body = f"""
for i in range({n}):
    with block("put"):
        vi = ordered(i)
        r[vi % {w}] = x[vi]
    for j in range({w}):
        with block("sum"):
            wi, wj = spatial(i), reduce(j)
            with init(): y[wi] = {zero(t)}
            y[wi] += r[wj]
"""
    return Program("cyclic", m.text(params, body))


def running(rng: random.Random) -> Program:
    """Draw several states that each element of a row updates in turn, outside of blocks."""
    m = Maker(rng)
    n, k, t = m.extent("n", 2, 5), m.extent("k", 4, 9, 16), m.dtype("i32", "f32", "i8", "f64")
    kind = m.pick("place", "two", "horner", "total", "parts")
    params, local = [buffer("x", [n, k], t), buffer("y", [n], t, "Out")], []
    if kind == "place":
        local = [alloc("s", [n], t)]
        params[1] = buffer("y", [n], "i32", "Out")
        body = f"""
for i in range({n}):
    s[i] = {t}(-100)
    y[i] = 0
    for j in range({k}):
        y[i] = where(x[i, j] > s[i], index(j, i32), y[i])
        s[i] = max(s[i], x[i, j])
"""
    elif kind == "two":
        params.append(buffer("z", [n], t, "Out"))
        body = f"""
for i in range({n}):
    y[i] = {t}(-100)
    z[i] = {t}(-100)
    for j in range({k}):
        z[i] = max(z[i], min(y[i], x[i, j]))
        y[i] = max(y[i], x[i, j])
"""
    elif kind == "horner":
        params[0] = buffer("x", [n, k], "i32")
        params[1:] = [buffer("c", [k], "i32"), buffer("y", [n], "i32", "Out")]
        body = f"""
for i in range({n}):
    y[i] = 0
    for j in range({k}):
        y[i] = y[i] * x[i, j] + c[{k} - 1 - j]
"""
    elif kind == "total":
        local = [alloc("s", [], t)]
        params[1] = buffer("y", [n, k], t, "Out")
        body = f"""
for i in range({n}):
    s[()] = {zero(t)}
    for j in range({k}):
        y[i, j] = s[()]
        s[()] += x[i, j]
"""
    else:
        local = [alloc("s", ["1"], t)]
        params = [buffer("x", [n, k], t), buffer("b", [k], "bool"), buffer("y", [n, k], t, "Out")]
        body = f"""
s[0] = {zero(t)}
for i in range({n}):
    for j in range({k}):
        s[0] = where(b[j], x[i, j], s[0] + x[i, j])
        y[i, j] = s[0]
"""
    return Program("running", m.text(params, body, local))
