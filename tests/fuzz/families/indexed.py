"""Programs with integers from memory: gathers, scatters, ragged rows, CSR, page tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Indices, Maker, Program, buffer, highest, lowest, nest, zero

if TYPE_CHECKING:
    import random


def gather(rng: random.Random) -> Program:
    """Draw a gather of rows by an array of integers, copied or summed."""
    m = Maker(rng)
    dtype = m.dtype(*COMMON)
    n, k = m.extent("n", 1, 5, 9), m.extent("k", 1, 4, 16)
    rows, index = m.extent("r", 2, 7, least=2), rng.choice(["i32", "i64"])
    mode = rng.choice(["clamped", "checked", "checked"])
    if rng.random() < 0.6:
        lines = [
            'with block("gather"):',
            "    vi, vj = spatial(i), spatial(j)",
            f"    with {mode}(at[vi], 0, {rows}) as row:",
            "        y[vi, vj] = x[row, vj] + x[row, vj]",
        ]
        out = [n, k]
    else:
        lines = [
            'with block("bag"):',
            "    vi, vj = reduce(i), spatial(j)",
            f"    with init(): y[vj] = {zero(dtype)}",
            f"    with {mode}(at[vi], 0, {rows}) as row:",
            "        y[vj] += x[row, vj]",
        ]
        out = [k]
    params = [buffer("x", [rows, k], dtype), buffer("at", [n], index),
              buffer("y", out, dtype, "Out")]  # fmt: skip
    spread = Indices("-3", f"{rows} + 3") if mode == "clamped" else Indices("0", rows)
    body = nest([("i", n), ("j", k)], lines)
    return Program("gather", m.text(params, body), indices={"at": spread})


def shifted_gather(rng: random.Random) -> Program:
    """Draw a gather whose indices have a lower bound other than 0."""
    m = Maker(rng)
    n, t, low = m.symbol("n"), m.dtype(*COMMON), rng.choice([-2, -3, 1])
    size, shift = 8, -low
    mode = m.pick("checked", "clamped")
    wide = Indices(str(low), str(low + size))
    lines = [
        'with block("y"):',
        "    vi = spatial(i)",
        f"    with {mode}(at[vi], {low}, {low + size}) as p:",
        f"        y[vi] = {m.value(t, f'x[p + {shift}]')}",
    ]
    params = [buffer("at", [n], m.pick("i32", "i64")), buffer("x", [str(size)], t),
              buffer("y", [n], t, "Out")]  # fmt: skip
    if mode == "clamped":
        wide = Indices(str(low - 2), str(low + size + 2))
    text = m.text(params, nest([("i", n)], lines))
    return Program("shifted_gather", text, indices={"at": wide})


def scatter(rng: random.Random) -> Program:
    """Draw updates at indices from memory: sums and extrema with duplicates, distinct stores."""
    m = Maker(rng)
    n, rows, t = m.symbol("n"), m.extent("r", 5, 8, least=1), m.dtype(*COMMON)
    kind = m.pick("add", "max", "min", "store", "last")
    column = m.chance(0.5)
    width = m.extent("k", 1, 4, 16) if column else ""
    loops = [("i", n), *([("j", width)] if column else [])]
    if column and m.chance(0.3):
        loops.reverse()
    inner = ", vj" if column else ""
    iters = {"add": "reduce", "max": "reduce", "min": "reduce", "store": "spatial"}
    head = f"vi = {iters.get(kind, 'ordered')}(i)"
    if column:
        head = f"vi, vj = {iters.get(kind, 'ordered')}(i), spatial(j)"
    source = f"x[vi{inner}]"
    value = {
        "add": f"y[p{inner}] + {source}", "max": f"max(y[p{inner}], {source})",
        "min": f"min(y[p{inner}], {source})",
    }.get(kind, source)  # fmt: skip
    lines = ['with block("s"):', f"    {head}", f"    with checked(at[vi], 0, {rows}) as p:",
             f"        y[p{inner}] = {value}"]  # fmt: skip
    columns = [width] if column else []
    params = [buffer("at", [n], m.pick("i32", "i64", "i32")), buffer("x", [n, *columns], t),
              buffer("y", [rows, *columns], t, "InOut")]  # fmt: skip
    order = "distinct" if kind == "store" else "any"
    text = m.text(params, nest(loops, lines))
    relations = (f"n <= {rows}",) if kind == "store" else ()
    return Program("scatter", text, indices={"at": Indices("0", rows, order)}, relations=relations)


def histogram(rng: random.Random) -> Program:
    """Draw counts by index, after a loop that clears them."""
    m = Maker(rng)
    n, rows, t = m.symbol("n"), m.extent("r", 3, 8, least=1), m.dtype("i32", "f32", "i64")
    body = f"""
for z in range({rows}):
    with block("clear"):
        vz = spatial(z)
        y[vz] = {zero(t)}
for i in range({n}):
    with block("count"):
        vi = reduce(i)
        with checked(at[vi], 0, {rows}) as p:
            y[p] += {m.pick(f"{t}(1)", "w[vi]")}
"""
    params = [buffer("at", [n], "i32"), buffer("w", [n], t), buffer("y", [rows], t, "Out")]
    return Program("histogram", m.text(params, body), indices={"at": Indices("0", rows)})


def ragged(rng: random.Random) -> Program:
    """Draw reductions, maps and scans of rows of different lengths, given by their offsets."""
    m = Maker(rng)
    n, total, t = m.symbol("n"), m.symbol("l"), m.dtype(*COMMON)
    start, combine = rng.choice([
        (zero(t), "y[vi] + {}"), (lowest(t), "max(y[vi], {})"), (highest(t), "min(y[vi], {})"),
    ])  # fmt: skip
    body = f"""
for i in range({n}):
    with checked(off[i], 0, {total} + 1) as lo:
        with checked(off[i + 1], lo, {total} + 1) as hi:
            for j in range(hi - lo):
                with block("s"):
                    vi, vl, vj = spatial(i), spatial({total} + 1, lo), reduce({total}, j)
                    with init(): y[vi] = {start}
                    y[vi] = {combine.format("x[vl + vj]")}
"""
    if m.chance(0.6):
        value = m.value(t, "x[vl + vj]", "y[vi]")
        kind, stored = m.rng.choice([
            ("spatial", value), ("spatial", value), ("ordered", f"scan(add, {value})"),
            ("ordered", f"scan(max, {value}, start=y[vi])"),
        ])  # fmt: skip
        again = f"""
            for k in range(hi - lo):
                with block("again"):
                    wl, wk = spatial({total} + 1, lo), spatial({total}, k)
                    z[wl + wk] = {m.value(t, "z[wl + wk]", "x[wl + wk]")}"""
        body = f"""
for i in range({n}):
    with checked(off[i], 0, {total} + 1) as lo:
        with checked(off[i + 1], lo, {total} + 1) as hi:
            for j in range(hi - lo):
                with block("s"):
                    vi, vl, vj = spatial(i), spatial({total} + 1, lo), {kind}({total}, j)
                    z[vl + vj] = {stored}{again if m.chance(0.3) else ""}
"""
        params = [buffer("off", [f"{n} + 1"], "i32"), buffer("x", [total], t),
                  buffer("y", [n], t), buffer("z", [total], t, "InOut")]  # fmt: skip
    else:
        params = [buffer("off", [f"{n} + 1"], "i32"), buffer("x", [total], t),
                  buffer("y", [n], t, "InOut")]  # fmt: skip
    spread = Indices("0", f"{total} + 1", "sorted")
    return Program("ragged", m.text(params, body), indices={"off": spread})


def csr(rng: random.Random) -> Program:
    """Draw the product of a sparse matrix in CSR form with a vector or a matrix."""
    m = Maker(rng)
    n, nnz, t = m.symbol("n"), m.symbol("l"), m.dtype("f32", "f32", "i32", "f64")
    cols = m.extent("r", 4, 7, least=1)
    wide = m.chance(0.5)
    body = f"""
for i in range({n}):
    {"for d in range(k):" if wide else "for d in range(1):"}
        with checked(off[i], 0, {nnz} + 1) as lo:
            with checked(off[i + 1], lo, {nnz} + 1) as hi:
                for j in range(hi - lo):
                    with block("s"):
                        vi, vd = spatial(i), spatial(d)
                        vl, vj = spatial({nnz} + 1, lo), reduce({nnz}, j)
                        with init(): y[vi, vd] = {zero(t)}
                        with checked(col[vl + vj], 0, {cols}) as c:
                            y[vi, vd] += val[vl + vj] * x[c, vd]
"""
    width = m.symbol("k") if wide else "1"
    params = [buffer("off", [f"{n} + 1"], "i32"), buffer("col", [nnz], "i32"),
              buffer("val", [nnz], t), buffer("x", [cols, width], t),
              buffer("y", [n, width], t, "InOut")]  # fmt: skip
    found = {"off": Indices("0", f"{nnz} + 1", "sorted"), "col": Indices("0", cols)}
    return Program("csr", m.text(params, body), indices=found)


def paged(rng: random.Random) -> Program:
    """Draw scores or copies over a cache of pages."""
    m = Maker(rng)
    n, pages, size = m.symbol("n"), m.extent("r", 3, 5, least=1), rng.choice([1, 2, 4])
    d, t = m.extent("k", 1, 4), m.dtype(*COMMON)
    length = f"{n} * {size}"
    if m.chance(0.5):
        lines = [
            'with block("y"):',
            "    vj, vd = spatial(j), reduce(d)",
            f"    with init(): y[vj] = {zero(t)}",
            f"    with checked(page[vj // {size}], 0, {pages}) as p:",
            f"        y[vj] += cache[p, vj % {size}, vd] * q[vd]",
        ]
        out = buffer("y", [length], t, "Out")
    else:
        lines = [
            'with block("y"):',
            "    vj, vd = spatial(j), spatial(d)",
            f"    with checked(page[vj // {size}], 0, {pages}) as p:",
            f"        y[vj, vd] = cache[p, vj % {size}, vd] + q[vd]",
        ]
        out = buffer("y", [length, d], t, "Out")
    params = [buffer("page", [n], m.pick("i32", "i64")), buffer("cache", [pages, str(size), d], t),
              buffer("q", [d], t), out]  # fmt: skip
    text = m.text(params, nest([("j", length), ("d", d)], lines))
    return Program("paged", text, indices={"page": Indices("0", pages)})


def append(rng: random.Random) -> Program:
    """Draw stores of new rows into a cache, at distinct positions from memory."""
    m = Maker(rng)
    n, d, t = m.extent("n", 1, 4), m.extent("k", 1, 4, 8), m.dtype(*COMMON)
    body = f"""
for i in range({n}):
    for j in range({d}):
        with block("w"):
            vi, vj = spatial(i), spatial(j)
            with checked(pos[vi], 0, {n} + 9) as p:
                cache[p, vj] = {m.value(t, "new[vi, vj]")}
"""
    if m.chance(0.4):
        body += f"""
for a in range({n} + 9):
    for b in range({d}):
        with block("use"):
            va, vb = spatial(a), spatial(b)
            y[va, vb] = {m.value(t, "cache[va, vb]")}
"""
    params = [buffer("pos", [n], "i32"), buffer("new", [n, d], t),
              buffer("cache", [f"{n} + 9", d], t, "InOut")]  # fmt: skip
    if "y[va" in body:
        params.append(buffer("y", [f"{n} + 9", d], t, "Out"))
    spread = Indices("0", f"{n} + 9", "distinct")
    return Program("append", m.text(params, body), indices={"pos": spread})
