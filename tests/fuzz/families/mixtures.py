"""Programs with several integers from memory, several outputs, dtypes, and dependent sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, NUMBERS, Indices, Maker, Program, block, buffer, zero

if TYPE_CHECKING:
    import random


def several_indices(rng: random.Random) -> Program:
    """Draw accesses with two integers from memory: products, updates, stores of two elements."""
    m = Maker(rng)
    n, t = m.extent("n", 3, 7), m.dtype("f32", "i32", "i8", "f64")
    rows, columns = m.extent("r", 3, 5, least=1), m.extent("c", 2, 6, least=1)
    kind = m.pick("read", "sampled", "update", "count", "both", "chain")
    columns = rows if kind == "chain" else columns
    loaded = [f"with checked(at[vi], 0, {rows}) as p:",
              f"    with checked(to[vi], 0, {columns}) as q:"]  # fmt: skip
    params = [buffer("at", [n], m.pick("i32", "i64")), buffer("to", [n], "i32")]
    indices = {"at": Indices("0", rows), "to": Indices("0", columns)}
    line = [("i", n, "spatial")]
    if kind == "read":
        lines = [*loaded, f"        y[vi] = {m.value(t, 'x[p]', 'z[q]')}"]
        params += [buffer("x", [rows], t), buffer("z", [columns], t), buffer("y", [n], t, "Out")]
    elif kind == "sampled":
        d = m.extent("d", 1, 4)
        line.append(("k", d, "reduce"))
        lines = [f"with init(): y[vi] = {zero(t)}", *loaded,
                 "        y[vi] += x[p, vk] * z[q, vk]"]  # fmt: skip
        params += [buffer("x", [rows, d], t), buffer("z", [columns, d], t),
                   buffer("y", [n], t, "Out")]  # fmt: skip
    elif kind == "update":
        line = [("i", n, "reduce")]
        lines = [*loaded, "        y[p] += w[vi] * x[q]"]
        params += [buffer("w", [n], t), buffer("x", [columns], t), buffer("y", [rows], t, "InOut")]
    elif kind == "count":
        line = [("i", n, "reduce")]
        lines = [*loaded, f"        y[p, q] += {t}(1)"]
        params.append(buffer("y", [rows, columns], t, "InOut"))
    elif kind == "both":
        line = [("i", n, "ordered")]
        lines = [*loaded, "        y[p] = w[vi]", f"        z[q] = {m.pick('w[vi]', 'y[p]')}"]
        params += [buffer("w", [n], t), buffer("y", [rows], t, "InOut"),
                   buffer("z", [columns], t, "InOut")]  # fmt: skip
    else:
        line = [("i", n, "ordered")]
        lines = [*loaded, f"        y[p] = {m.value(t, 'y[p]', 'y[q]')}"]
        params.append(buffer("y", [rows], t, "InOut"))
    text = m.text(params, block(m, "y", line, lines))
    return Program("several_indices", text, indices=indices)


def dependent_sums(rng: random.Random) -> Program:
    """Draw reductions over two loops, of which one limits the other."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 3, 5), m.dtype(*COMMON)
    extent = m.pick("j + 1", f"{n} - j", "min(j + 1, 2)", "j % 3", "j")
    start, combined = m.rng.choice([
        (zero(t), "{} + {}"), (zero(t), "{} + {}"), (f"{t}(-9)", "max({}, {})"),
    ])  # fmt: skip
    target = m.pick("y[vi]", "y[()]")
    axes = [("i", k, "spatial" if target == "y[vi]" else "reduce"), ("j", n, "reduce"),
            ("l", extent, m.pick("reduce(n, l)", "reduce"))]  # fmt: skip
    value = m.pick("x[vi, vj]", "z[vj, vl]", "z[vj, vl] * x[vi, vl]", "x[vi, vl]")
    lines = [f"with init(): {target} = {start}", f"{target} = {combined.format(target, value)}"]
    condition = m.pick("", "", "j > 0", "l != 1")
    body = block(m, "y", axes, lines, condition)
    params = [buffer("x", [k, n], t), buffer("z", [n, n], t),
              buffer("y", [k] if target == "y[vi]" else [], t, "InOut")]  # fmt: skip
    return Program("dependent_sums", m.text(params, body))


def several_outputs(rng: random.Random) -> Program:
    """Draw blocks with outputs of several shapes and dtypes, which later blocks use."""
    m = Maker(rng)
    n, k = m.extent("n", 3, 7), m.extent("k", 1, 4, 16)
    t, u, v = (m.dtype(*NUMBERS) for _ in range(3))
    cells = [("i", n, "spatial"), ("j", k, "spatial")]
    second = m.pick("z[vj, vi]", "z[vi, vj]", "z[vi, vj + 1]", f"z[{n} - 1 - vi, vj]")
    shape = {"z[vj, vi]": [k, n], "z[vi, vj + 1]": [n, f"{k} + 1"]}.get(second, [n, k])
    lines = [f"y[vi, vj] = {m.value(t, 'x[vi, vj]')}",
             f"{second} = {m.pick(f'{u}(x[vi, vj])', f'{u}(y[vi, vj])', f'{u}(2)')}"]  # fmt: skip
    flag = m.chance(0.4)
    params = [buffer("x", [n, k], t), buffer("y", [n, k], t, "Out"), buffer("z", shape, u, "InOut")]
    if flag:
        lines.append("b[vi, vj] = x[vi, vj] > y[vi, vj]")
        params.append(buffer("b", [n, k], "bool", "Out"))
    body = block(m, "all", cells, lines)
    if m.chance(0.6):
        chosen = "where(b[va, vc], y[va, vc], x[va, vc])" if flag else "y[va, vc]"
        last = [("a", n, "spatial"), ("c", k, "spatial")]
        body += block(m, "use", last, [f"w[va, vc] = {v}({chosen})"])
        params.append(buffer("w", [n, k], v, "Out"))
    return Program("several_outputs", m.text(params, body))


def offset_domains(rng: random.Random) -> Program:
    """Draw sizes that are products and quotients of symbols, and blocks of rows with guards."""
    m = Maker(rng)
    n, k, t = m.symbol("n"), m.extent("k", 1, 4), m.dtype(*COMMON)
    size = rng.choice([2, 3, 4])
    blocks = f"ceildiv({n}, {size})"
    kind = m.pick("tiles", "groups", "sums", "shift")
    if kind == "tiles":
        axes = [("b", blocks, "spatial"), ("i", str(size), "spatial"), ("j", k, "spatial")]
        row = f"vb * {size} + vi"
        lines = [f"y[{row}, vj] = {m.value(t, f'x[{row}, vj]')}"]
        body = block(m, "y", axes, lines, f"b * {size} + i < {n}")
        shapes = [n, k], [n, k]
    elif kind == "groups":
        axes = [("i", f"{n} * {size}", "spatial"), ("j", k, "reduce")]
        lines = [f"with init(): y[vi] = {zero(t)}", f"y[vi] += x[vi // {size} * {k} + vj]"]
        body, shapes = block(m, "y", axes, lines), ([f"{n} * {k}"], [f"{n} * {size}"])
    elif kind == "sums":
        axes = [("b", blocks, "spatial"), ("i", str(size), "reduce"), ("j", k, "spatial")]
        lines = [f"with init(): y[vb, vj] = {zero(t)}", f"y[vb, vj] += x[vb * {size} + vi, vj]"]
        body = block(m, "y", axes, lines, f"b * {size} + i < {n}")
        shapes = [n, k], [blocks, k]
    else:
        axes = [("i", n, f"spatial(2 * {n}, i + {n})"), ("j", k, "spatial")]
        lines = [f"y[vi, vj] = {m.value(t, f'x[vi - {n}, vj]')}"]
        body, shapes = block(m, "y", axes, lines), ([n, k], [f"2 * {n}", k])
    params = [buffer("x", shapes[0], t), buffer("y", shapes[1], t, "InOut")]
    return Program("offset_domains", m.text(params, body))
