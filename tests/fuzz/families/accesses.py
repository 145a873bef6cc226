"""Programs whose indices are computed: flattened, divided, reversed, strided, diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Indices, Maker, Program, alloc, block, buffer, zero

if TYPE_CHECKING:
    import random


def flattened(rng: random.Random) -> Program:
    """Draw matrices as flat buffers with symbolic row lengths, and back."""
    m = Maker(rng)
    n, k, t = m.extent("n", 3, 4, 16), m.extent("k", 3, 4, 16, least=1), m.dtype(*COMMON)
    matrix, flat = [n, k], [f"{n} * {k}"]
    cells, line = [("i", n, "spatial"), ("j", k, "spatial")], [("p", flat[0], "spatial")]
    kind = m.pick("pack", "pack", "unpack", "turned", "cube", "both", "sum")
    local = []
    if kind == "pack":
        body = block(m, "y", cells, [f"y[vi * {k} + vj] = {m.value(t, 'x[vi, vj]')}"])
        shapes = matrix, flat
    elif kind == "unpack":
        body = block(m, "y", line, [f"y[vp // {k}, vp % {k}] = {m.value(t, 'x[vp]')}"])
        shapes = flat, matrix
    elif kind == "turned":
        m.symbols.setdefault("n", 1)
        body = block(m, "y", line, [f"y[vp % {k}, vp // {k}] = {m.value(t, 'x[vp]')}"])
        shapes = flat, [k, n]
    elif kind == "cube":
        d = m.extent("d", 2, 4)
        cells.append(("h", d, "spatial"))
        flat_index = f"(vi * {k} + vj) * {d} + vh"
        body = block(m, "y", cells, [f"y[{flat_index}] = {m.value(t, 'x[vi, vj, vh]')}"])
        shapes = [n, k, d], [f"{n} * {k} * {d}"]
    elif kind == "both":
        local = [alloc("s", flat, t)]
        body = block(m, "s", cells, [f"s[vi * {k} + vj] = {m.value(t, 'x[vi, vj]')}"])
        back = [("a", n, "spatial"), ("b", k, "spatial")]
        body += block(m, "y", back, [f"y[va, vb] = {m.value(t, f's[va * {k} + vb]')}"])
        shapes = matrix, matrix
    else:
        cells[1] = ("j", k, "reduce")
        update = [f"with init(): y[vi] = {zero(t)}", f"y[vi] += x[vi * {k} + vj]"]
        body, shapes = block(m, "y", cells, update), (flat, [n])
    params = [buffer("x", shapes[0], t), buffer("y", shapes[1], t, "Out")]
    return Program("flattened", m.text(params, body, local))


def both_triangular(rng: random.Random) -> Program:
    """Draw loops with two dependent extents: copies, sums, and reductions of both."""
    m = Maker(rng)
    m.symbol("n")
    t = m.dtype(*COMMON)
    outer = m.pick("i + 1", "n - i", "i")
    inner = {"i + 1": ("i - j + 1", "j + 1"), "n - i": ("n - i - j", "j + 1"), "i": ("i - j", "j")}
    extent = m.pick(*inner[outer])
    kind = m.pick("sum", "sum", "both", "cells", "recurrence")
    params = [buffer("x", ["n", "n"], t), buffer("w", ["n", "n"], t)]
    second = "spatial(n, j)" if m.chance(0.5) else "spatial"
    value = m.pick("x[vi, vj] * w[vj, vr]", "x[vj, vr]", "w[vr, vi]", "x[vi, vr]")
    axes = [("i", "n", "spatial"), ("j", outer, second), ("r", extent, "reduce(n, r)")]
    if kind == "sum":
        lines = [f"with init(): y[vi, vj] = {zero(t)}", f"y[vi, vj] += {value}"]
        params.append(buffer("y", ["n", "n"], t, "InOut"))
    elif kind == "both":
        axes[1] = ("j", outer, "reduce(n, j)")
        lines = [f"with init(): y[vi] = {zero(t)}", f"y[vi] += {value}"]
        params.append(buffer("y", ["n"], t, "InOut"))
    elif kind == "cells":
        axes[2] = ("r", extent, "spatial(n, r)")
        lines = [f"y[vi, vj, vr] = {m.value(t, value)}"]
        params.append(buffer("y", ["n", "n", "n"], t, "InOut"))
    else:
        axes = [(loop, e, f"ordered(n, {loop})") for loop, e, _ in axes]
        t = m.dtype("i32", "i8")
        params = [buffer("x", ["n", "n"], t), buffer("y", ["n", "n"], t, "InOut")]
        lines = [f"y[vi, vj] = y[vi, vj] - {m.pick('y[vj, vr]', 'y[vr, vj]')} * x[vi, vr]"]
    return Program("both_triangular", m.text(params, block(m, "y", axes, lines)))


def anti_diagonal(rng: random.Random) -> Program:
    """Draw sums and copies along the diagonals of a matrix on which ``i + j`` is constant."""
    m = Maker(rng)
    n, k, t = m.extent("n", 3, 5, least=1), m.extent("k", 3, 4, least=1), m.dtype(*COMMON)
    low, count = f"max(s - {k} + 1, 0)", f"{n} + {k} - 1"
    extent = f"min(s + 1, {n}) - {low}"
    if m.chance(0.5):
        extent = f"max({extent}, 0)"
    domain = f"{n}, r + {low}"
    kind = m.pick("sum", "sum", "product", "copy", "skew")
    axes = [("s", count, "spatial"), ("r", extent, f"reduce({domain})")]
    params = [buffer("x", [n, k], t)]
    if kind == "product":
        params = [buffer("a", [n], t), buffer("b", [k], t)]
    if kind in ("sum", "product"):
        value = "x[vr, vs - vr]" if kind == "sum" else "a[vr] * b[vs - vr]"
        lines = [f"with init(): y[vs] = {zero(t)}", f"y[vs] += {value}"]
        params.append(buffer("y", [count], t, "Out"))
    else:
        axes[1] = ("r", extent, f"spatial({domain})")
        target = "y[vr, vs - vr]" if kind == "copy" else "y[vs, vr]"
        lines = [f"{target} = {m.value(t, 'x[vr, vs - vr]')}"]
        shape = [n, k] if kind == "copy" else [count, n]
        params.append(buffer("y", shape, t, "InOut"))
    return Program("anti_diagonal", m.text(params, block(m, "y", axes, lines)))


def strided(rng: random.Random) -> Program:
    """Draw accesses of every second element, reversed axes, and broadcasts."""
    m = Maker(rng)
    n, k, t = m.extent("n", 3, 7, 16), m.extent("k", 1, 4, 16), m.dtype(*COMMON, "bf16", "i64")
    step, low = rng.choice([(2, 0), (2, 1), (3, 1), (3, 2)])
    cells = [("i", n, "spatial"), ("j", k, "spatial")]
    kind = m.pick("read", "write", "interleave", "reversed", "broadcast", "folded")
    row, shapes = f"{step} * vi + {low}", ([n, k], [f"{step} * {n}", k])
    if kind == "read":
        lines, shapes = [f"y[vi, vj] = {m.value(t, f'x[{row}, vj]')}"], shapes[::-1]
    elif kind == "write":
        lines = [f"y[{row}, vj] = {m.value(t, 'x[vi, vj]', f'y[{row}, vj]')}"]
    elif kind == "interleave":
        lines = [f"y[2 * vi, vj] = {m.value(t, 'x[vi, vj]')}"]
        lines.append(f"y[2 * vi + 1, vj] = {m.value(t, 'x[vi, vj]')}")
        shapes = [n, k], [f"2 * {n}", k]
    elif kind == "reversed":
        first, second = m.pick("vi", f"{n} - 1 - vi"), m.pick("vj", f"{k} - 1 - vj")
        value = m.value(t, f"x[{n} - 1 - vi, {k} - 1 - vj]", "x[vi, vj]")
        lines, shapes = [f"y[{first}, {second}] = {value}"], ([n, k], [n, k])
    elif kind == "broadcast":
        lines = [f"y[vi, vj] = {m.value(t, 'x[vi, 0]', 'z[0, vj]')}"]
        shapes = [n, "1"], [n, k]
    else:
        cells[1] = ("j", k, "reduce")
        lines = [f"with init(): y[vi] = {zero(t)}", f"y[vi] += x[{row}, {k} - 1 - vj]"]
        shapes = [f"{step} * {n}", k], [n]
    params = [buffer("x", shapes[0], t), buffer("y", shapes[1], t, "InOut")]
    if kind == "broadcast":
        params.insert(1, buffer("z", ["1", k], t))
    return Program("strided", m.text(params, block(m, "y", cells, lines)))


def joined(rng: random.Random) -> Program:
    """Draw results that several blocks write in parts, and reads that ``where`` protects."""
    m = Maker(rng)
    n, q, k = m.extent("n", 3, 5, 16), m.extent("q", 1, 4, 8), m.extent("k", 1, 4, 16)
    t, down = m.dtype(*COMMON), m.chance(0.7)
    whole = [f"{n} + {q}", k] if down else [k, f"{n} + {q}"]

    def put(row: str, column: str) -> str:
        return f"{row}, {column}" if down else f"{column}, {row}"

    first = [("i", n, "spatial"), ("j", k, "spatial")]
    second = [("a", q, "spatial"), ("b", k, "spatial")]
    body = block(m, "one", first, [f"s[{put('vi', 'vj')}] = {m.value(t, 'x[vi, vj]')}"])
    body += block(m, "two", second, [f"s[{put(f'va + {n}', 'vb')}] = {m.value(t, 'z[va, vb]')}"])
    params, local = [buffer("x", [n, k], t), buffer("z", [q, k], t)], []
    if m.chance(0.3):
        params.append(buffer("s", whole, t, "Out"))
        return Program("joined", m.text(params, body))
    low, fill = rng.randint(1, 2), zero(t)
    here = m.pick("s[{}]", f"where(ve >= {low}, s[{{}}], {fill})".replace("{}", "<>"))
    indices = put("ve", "vf")
    if "<>" in here:
        indices = put(f"ve - {low}", "vf")
    value = m.value(t, here.replace("{}", indices).replace("<>", indices))
    last = [("e", f"{n} + {q}", "spatial"), ("f", k, "spatial")]
    body += block(m, "use", last, [f"y[ve, vf] = {value}"])
    params.append(buffer("y", [f"{n} + {q}", k], t, "Out"))
    local = [alloc("s", whole, t)]
    return Program("joined", m.text(params, body, local))


def pages(rng: random.Random) -> Program:
    """Draw a cache of pages whose places are ``k // 4`` and ``k % 4``, with or without a table."""
    m = Maker(rng)
    n, d, size = m.extent("n", 3, 5), m.extent("d", 1, 4, 8), rng.choice([2, 4])
    t, length = m.dtype(*COMMON), f"{n} * {size}"
    kind = m.pick("write", "tail", "scores", "values", "temporary")
    line, local, indices = [("k", length, "spatial"), ("c", d, "spatial")], [], {}
    cell = f"vk // {size}, vk % {size}, vc"
    whole, rows = [n, str(size), d], [length, d]
    if kind == "write":
        body = block(m, "y", line, [f"y[{cell}] = {m.value(t, 'x[vk, vc]')}"])
        params = [buffer("x", rows, t), buffer("y", whole, t, "Out")]
    elif kind == "tail":
        line[0] = ("k", "l", "spatial")
        m.symbol("l")
        whole[0] = f"ceildiv(l, {size})"
        body = block(m, "y", line, [f"y[vk, vc] = {m.value(t, f'x[{cell}]')}"])
        params = [buffer("x", whole, t), buffer("y", ["l", d], t, "Out")]
    elif kind == "temporary":
        local = [alloc("s", whole, t)]
        back = [("a", n, "spatial"), ("b", str(size), "spatial"), ("e", d, "spatial")]
        body = block(m, "s", line, [f"s[{cell}] = {m.value(t, 'x[vk, vc]')}"])
        body += block(m, "y", back, [f"y[va, vb, ve] = {m.value(t, 's[va, vb, ve]')}"])
        params = [buffer("x", rows, t), buffer("y", whole, t, "Out")]
    else:
        scores = kind == "scores"
        line = [("k", length, "spatial" if scores else "reduce"),
                ("c", d, "reduce" if scores else "spatial")]  # fmt: skip
        target, other = ("y[vk]", "q[vc]") if scores else ("y[vc]", "q[vk]")
        page = m.symbol("r", 1)
        read = f"x[p, vk % {size}, vc]"
        lines = [f"with init(): {target} = {zero(t)}",
                 f"with checked(table[vk // {size}], 0, {page}) as p:",
                 f"    {target} += {read} * {other}"]  # fmt: skip
        body, own = block(m, "y", line, lines), length if scores else d
        indices = {"table": Indices("0", page)}
        params = [
            buffer("table", [n], m.pick("i32", "i64")),
            buffer("x", [page, *whole[1:]], t),
            buffer("q", [d if scores else length], t),
            buffer("y", [own], t, "Out"),
        ]
    return Program("pages", m.text(params, body, local), indices=indices)


def butterfly(rng: random.Random) -> Program:
    """Draw stages that combine elements at a distance, with two stores, in place or not."""
    m = Maker(rng)
    n, e = m.extent("n", 2, 4), rng.choice([1, 2, 4])
    t, width, kind = (
        m.dtype("i32", "f32", "i8", "f64"),
        2 * e,
        m.pick("separate", "grid", "in_place"),
    )
    line = [("i", f"{n} * {e}", "spatial")]
    low = f"vi // {e} * {width} + vi % {e}" if e > 1 else "vi * 2"
    length = f"{n} * {width}"
    if kind == "grid":
        line = [("i", n, "spatial"), ("j", str(e), "spatial")]
        low = f"vi * {width} + vj"
    lines = [f"y[{low}] = x[{low}] + x[{low} + {e}]",
             f"y[{low} + {e}] = x[{low}] - x[{low} + {e}]"]  # fmt: skip
    params = [buffer("x", [length], t), buffer("y", [length], t, "Out")]
    if kind == "in_place":
        params = [buffer("x", [length], t, "InOut")]
        lines = [line.replace("y[", "x[") for line in lines]
    return Program("butterfly", m.text(params, block(m, "y", line, lines)))
