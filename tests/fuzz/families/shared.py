"""Programs with bound values, several stores per block, and reductions of several values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import (
    COMMON,
    Maker,
    Program,
    alloc,
    block,
    buffer,
    highest,
    lowest,
    nest,
    zero,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


def bound_chain(rng: random.Random) -> Program:
    """Draw blocks that use the values of the previous one several times, some bound."""
    m = Maker(rng)
    n, t = m.extent("n", 4, 9, 16), m.dtype(*COMMON)
    count = rng.randint(2, 4)
    limit = f"{t}(3)"
    body, source = "", "x"
    for k in range(count):
        v, target = f"v{'abcd'[k]}", f"t{k}" if k + 1 < count else "y"
        at = m.pick(v, v, v, f"{n} - 1 - {v}", f"max({v} - 1, 0)")
        load = f"{source}[{at}]"
        use = m.pick("q * q + q", "max(q, -q) + abs(q)", "where(q > 0, q, q + q)", "q - q * q")
        use = use.replace("> 0", f"> {zero(t)}")
        if m.chance(0.3):
            use = f"where({v} > 0, {use}, {zero(t)})"
        use = f"min(max({use}, -{limit}), {limit})" if t != "u8" else f"min({use}, {limit})"
        lines = [f"q = {load}", f"{target}[{v}] = {use}"]
        if m.chance(0.6):
            lines = [lines[1].replace("q", load)]
        body += block(m, f"b{k}", [("abcd"[k], n, "spatial")], lines)
        source = target
    local = [alloc(f"t{k}", [n], t) for k in range(count - 1)]
    params = [buffer("x", [n], t), buffer("y", [n], t, "Out")]
    return Program("bound_chain", m.text(params, body, local))


def two_stores(rng: random.Random) -> Program:
    """Draw a block with two stores of shared values, and blocks that use both results."""
    m = Maker(rng)
    n, k, t = m.extent("n", 3, 8), m.extent("k", 1, 4, 16), m.dtype(*COMMON)
    lines = [f"q = {m.value(t, 'x[vi, vj]')}", "s[vi, vj] = q"]
    lines.append(f"d[vi, vj] = {m.value(t, 'q', 'x[vi, vj]')}")
    if m.chance(0.4):
        lines[1] = f"w = {m.value(t, 'q')}\ns[vi, vj] = w - q"
    lines = [part for line in lines for part in line.split("\n")]
    body = block(m, "both", [("i", n, "spatial"), ("j", k, "spatial")], lines)
    local = [alloc("s", [n, k], t), alloc("d", [n, k], t)]
    if m.chance(0.4):
        return Program("two_stores", _used_in_part(m, n, k, t, body=body, local=local))
    if m.chance(0.5):
        use = m.value(t, "s[va, vb]", "d[va, vb]", "s[va, vb]")
        body += block(m, "use", [("a", n, "spatial"), ("b", k, "spatial")], [f"y[va, vb] = {use}"])
        params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "Out")]
    else:
        lines = [f"with init(): y[va] = {zero(t)}", "p = s[va, vb]", "y[va] += p + d[va, vb] + p"]
        body += block(m, "use", [("a", n, "spatial"), ("b", k, "reduce")], lines)
        params = [buffer("x", [n, k], t), buffer("y", [n], t, "Out")]
    return Program("two_stores", m.text(params, body, local))


def _used_in_part(m: Maker, n: str, k: str, t: str, *, body: str, local: Sequence[str]) -> str:
    """Return a program whose second block runs in a part of the domain of the first one."""
    read = m.pick("d[va, vb]", "d[va, vb]", f"d[{n} - 1 - va, vb]", "s[va, vb]")
    columns = m.pick(k, f"max({k} - 1, 0)")
    guard = m.pick("", "a != 1", "a + b >= 2")
    kinds = [("a", n, f"spatial({n}, a)"), ("b", columns, f"spatial({k}, b)")]
    line = f"y[va, vb] = {m.value(t, 's[va, vb]', read)}"
    last = [("c", n, "spatial"), ("e", k, "spatial")]
    rest = block(m, "rest", last, [f"z[vc, ve] = {m.value(t, 'd[vc, ve]')}"])
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "InOut")]
    if m.chance(0.7):
        params.append(buffer("z", [n, k], t, "Out"))
        return m.text(params, body + block(m, "use", kinds, [line], guard) + rest, local)
    return m.text(params, body + block(m, "use", kinds, [line], guard), local)


def extremes(rng: random.Random) -> Program:
    """Draw the first extreme element of rows, sometimes of bound values, and a use of both."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 5), m.extent("k", 3, 8, 20), m.dtype("f32", "f32", "i32", "i8")
    name, index = m.pick("argmax", "argmin"), m.pick("i64", "i32")
    start = lowest(t) if name == "argmax" else highest(t)
    most = "2147483647" if index == "i32" else "9223372036854775807"
    lines = [f"with init(): e[vi], p[vi] = {start}, {most}"]
    term = m.value(t, "x[vi, vj]")
    if m.chance(0.4):
        lines.append(f"q = {term}")
        term = "q"
    lines.append(f"e[vi], p[vi] = {name}({term}, vj)")
    body = block(m, "find", [("i", n, "spatial"), ("j", k, "reduce")], lines)
    params = [buffer("x", [n, k], t)]
    if m.chance(0.5):
        params += [buffer("e", [n], t, "Out"), buffer("p", [n], index, "Out")]
        return Program("extremes", m.text(params, body))
    body += block(m, "use", [("a", n, "spatial"), ("b", k, "spatial")],
                  [f"y[va, vb] = where(p[va] == vb, e[va], {zero(t)})"])  # fmt: skip
    local = [alloc("e", [n], t), alloc("p", [n], index)]
    return Program("extremes", m.text([*params, buffer("y", [n, k], t, "Out")], body, local))


def reducers(rng: random.Random) -> Program:
    """Draw a reduction by a reducer that the block defines, exact in any order."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 5), m.extent("k", 3, 8, 20), m.dtype("f32", "f32", "f64", "i32")
    second, identity = m.pick("a1 + b1", "max(a1, b1)"), zero(t)
    if second.startswith("max"):
        identity = lowest(t)
    lines = [
        f"@reducer(identity=({zero(t)}, {identity}))",
        f"def both(a0: {t}, a1: {t}, b0: {t}, b1: {t}):",
        "    d = a0 + b0",
        f"    return d, {second}",
        f"with init(): s[vi], e[vi] = {zero(t)}, {identity}",
        f"s[vi], e[vi] = both({m.value(t, 'x[vi, vj]')}, x[vi, vj])",
    ]
    guard, made = m.pick("", "", "j > 0"), m.chance(0.4)
    if made:
        lines[-1] = lines[-1].replace("x[", "u[")
    body = block(m, "fold", [("i", n, "spatial"), ("j", k, "reduce")], lines, guard)
    params = [buffer("x", [n, k], t), buffer("s", [n], t, "Out"), buffer("e", [n], t, "Out")]
    if not made:
        return Program("reducers", m.text(params, body))
    stored = ["b = x[vc, vd]", f"u[vc, vd] = {m.value(t, 'b', 'b')}"]
    body = block(m, "elements", [("c", n, "spatial"), ("d", k, "spatial")], stored) + body
    return Program("reducers", m.text(params, body, [alloc("u", [n, k], t)]))


def in_order(rng: random.Random) -> Program:
    """Draw reductions whose terms keep their order, of elements that others may surround."""
    m = Maker(rng)
    n, j, k = m.extent("n", 1, 3), m.extent("m", 1, 4, 16), m.extent("k", 1, 3, 8)
    t = m.dtype("i32", "i32", "i64", "u8")
    axes = [("i", n, "spatial"), ("j", j, "spatial"), ("r", k, "reduce")]
    if m.chance(0.5):
        axes = [axes[i] for i in rng.choice([(0, 2, 1), (2, 0, 1), (2, 1, 0)])]
    params = [buffer("x", [n, k], t), buffer("w", [k, j], t), buffer("y", [n, j], t, "InOut")]
    terms = [m.value(t, "x[vi, vr]"), m.value(t, "w[vr, vj]", "x[vi, vr]")]
    bound, guard = m.chance(0.4), m.pick("", "", "r > 0", "i != r")
    lines = ["q = " + terms[0]] if bound else []
    first = "q" if bound else terms[0]
    if m.chance(0.5):
        update = m.pick("{y} * {a} + {b}", "{y} - {a} * {b}", "{b} - {y}", "{y} - {a}")
        lines.append("y[vi, vj] = " + update.format(y="y[vi, vj]", a=f"({first})", b=terms[1]))
        start = f"with init(): y[vi, vj] = {m.pick(zero(t), f'{t}(2)')}"
    else:
        lines = [
            f"@reducer(identity=({t}(1), {zero(t)}), commutative=False)",
            f"def linear(a: {t}, b: {t}, c: {t}, d: {t}):",
            "    return a * c, b * c + d",
            *lines,
            f"p[vi, vj], y[vi, vj] = linear({first}, {terms[1]})",
        ]
        start = f"with init(): p[vi, vj], y[vi, vj] = {t}(1), {zero(t)}"
        params.append(buffer("p", [n, j], t, "InOut"))
    if m.chance(0.7):
        lines.insert(3 if len(params) == 4 else 0, start)
    return Program("in_order", m.text(params, block(m, "y", axes, lines, guard)))


def moments(rng: random.Random) -> Program:
    """Draw means and variances, or sums of exponentials relative to a maximum."""
    m = Maker(rng)
    n, k = m.extent("n", 1, 4), m.extent("k", 3, 8, 20)
    if m.chance(0.5):
        names, start = "c[vi], u[vi], w[vi]", "0.0, 0.0, 0.0"
        update = "welford(1.0, x[vi, vj], 0.0)"
    else:
        names, start = "c[vi], u[vi], w[vi]", "-inf, 0.0, 0.0"
        update = "online_softmax(x[vi, vj], 1.0, x[vi, vj] * 0.5)"
    lines = [f"with init(): {names} = {start}", f"{names} = {update}"]
    body = nest([], block(m, "fold", [("i", n, "spatial"), ("j", k, "reduce")], lines).split("\n"))
    outputs = [buffer(name, [n], "f32", "Out") for name in "cuw"]
    return Program("moments", m.text([buffer("x", [n, k], "f32"), *outputs], body), exact=False)
