"""Programs whose later blocks update or read at other rows the results of earlier blocks."""

from __future__ import annotations

import re
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
    zero,
)

if TYPE_CHECKING:
    import random


def _fold(m: Maker, target: str, value: str, t: str) -> list[str]:
    """Draw the init and the update of a reduction."""
    start, combined = m.rng.choice([
        (zero(t), f"{target} + {value}"), (zero(t), f"{target} + {value}"),
        (lowest(t), f"max({target}, {value})"), (highest(t), f"min({value}, {target})"),
    ])  # fmt: skip
    return [f"with init(): {target} = {start}", f"{target} = {combined}"]


def rows_updated(rng: random.Random) -> Program:
    """Draw reductions of rows whose input or result a later block updates in place."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 4, 16), m.extent("k", 1, 5, 17), m.dtype(*COMMON)
    x, y, r = buffer("x", [n, k], t), buffer("y", [n, k], t, "Out"), buffer("r", [n], t, "Out")
    local = [alloc("s", [n], t)]
    rows = [("i", n, "spatial"), ("j", k, "reduce")]
    cells, line = [("a", n, "spatial"), ("b", k, "spatial")], [("c", n, "spatial")]

    def fold(target: str, value: str) -> str:
        return block(m, "fold", rows, _fold(m, f"{target}[vi]", value, t))

    scaled = block(m, "scale", line, [f"r[vc] = {m.value(t, 'r[vc]')}"])
    kind = m.pick("input", "output", "result", "two", "more")
    if kind == "input":
        body = fold("s", "x[vi, vj]") + block(
            m, "use", cells, [f"x[va, vb] = {m.value(t, 'x[va, vb]', 's[va]')}"])  # fmt: skip
        return Program("rows_updated", m.text([buffer("x", [n, k], t, "InOut")], body, local))
    if kind == "output":
        first = [("e", n, "spatial"), ("f", k, "spatial")]
        body = block(m, "first", first, [f"y[ve, vf] = {m.value(t, 'x[ve, vf]')}"])
        body += fold("s", "y[vi, vj]")
        body += block(m, "use", cells, [f"y[va, vb] = {m.value(t, 'y[va, vb]', 's[va]')}"])
        return Program("rows_updated", m.text([x, y], body, local))
    body, params = fold("r", "x[vi, vj]"), [x, r]
    if kind == "result":
        body += scaled
    elif kind == "two":
        body += scaled if m.chance(0.5) else ""
        again = [("a", n, "spatial"), ("b", k, "reduce")]
        body += block(m, "again", again, _fold(m, "q[va]", "x[va, vb] - r[va]", t))
        body += scaled if m.chance(0.3) and "scale" not in body else ""
        params.append(buffer("q", [n], t, "Out"))
    else:
        more = [("a", n, "spatial"), ("b", k, "reduce")]
        body += block(m, "more", more, [f"r[va] += {m.pick('x[va, vb]', 'z[va, vb]')}"])
        params.insert(1, buffer("z", [n, k], t))
    return Program("rows_updated", m.text(params, body))


CROSSED = (
    "where(va > 0, s[max(va - 1, 0)], ZERO)", "where(va > 0, s[va - 1], ZERO)",
    "s[N - 1 - va]", "s[0]", "s[min(va + 1, N - 1)]", "s[N - 1]", "s[(va + 1) % N]",
    "s[va // 2]", "where(va + 1 < N, s[va + 1], s[0])", "s[va] + s[N - 1 - va]",
)  # fmt: skip
"""Results of other rows than row ``va`` of ``N``."""


def rows_crossed(rng: random.Random) -> Program:
    """Draw a temporary of row results that a later block reads at other rows."""
    m = Maker(rng)
    n, t = m.extent("n", 1, 4, 16), m.dtype(*COMMON)
    k = n if m.chance(0.3) else m.extent("k", 1, 5, 17)
    params, local = [buffer("x", [n, k], t)], [alloc("s", [n], t)]
    rows = [("i", n, "spatial"), ("j", k, "reduce")]
    body = block(m, "fold", rows, _fold(m, "s[vi]", "x[vi, vj]", t))
    kind = m.pick("cells", "cells", "cells", "scan", "total", "pairs")
    if kind == "cells":
        other = "s[va] + s[vb]" if n == k and m.chance(0.6) else m.pick(*CROSSED)
        other = re.sub(r"\bN\b", n, other).replace("ZERO", zero(t))
        value = m.value(t, "x[va, vb]", other)
        cells = [("a", n, "spatial"), ("b", k, "spatial")]
        body += block(m, "use", cells, [f"y[va, vb] = {value}"])
        params.append(buffer("y", [n, k], t, "Out"))
    elif kind == "scan":
        extent = m.pick("a + 1", f"{n} - a", "min(a + 1, 3)")
        place = "va - vb" if extent == "a + 1" else "va + vb" if "-" in extent else "vb"
        scan = [("a", n, "spatial"), ("b", extent, "reduce")]
        body += block(m, "use", scan, _fold(m, "y[va]", f"s[{m.pick('vb', place)}]", t))
        params.append(buffer("y", [n], t, "InOut"))
    elif kind == "total":
        body += block(m, "use", [("a", n, "reduce")], _fold(m, "y[()]", "s[va]", t))
        params.append(buffer("y", [], t, "InOut"))
    else:
        pairs = [("a", n, "spatial"), ("b", n, "spatial")]
        value = m.value(t, "s[va]", "s[vb]")
        body += block(m, "use", pairs, [f"y[va, vb] = {value}"])
        params.append(buffer("y", [n, n], t, "Out"))
    return Program("rows_crossed", m.text(params, body, local))


def product_epilogue(rng: random.Random) -> Program:
    """Draw a product that a later block reads transposed, updates, or puts into an operand."""
    m = Maker(rng)
    t = m.dtype("f32", "f32", "f32", "i32", "f64", "i8")
    n, k = m.extent("n", 1, 6, 16), m.extent("k", 1, 5, 8)
    kind = m.pick("transposed", "operand", "updated", "temporary", "offset", "twice", "chain")
    j = {"transposed": n, "operand": k}.get(kind) or m.extent("m", 1, 8, 16)
    params = [buffer("A", [n, k], t, "InOut" if kind == "operand" else "Buffer"),
              buffer("B", [k, j], t)]  # fmt: skip
    target = "C" if kind in ("updated", "twice") else "T"
    axes = [("i", n, "spatial"), ("j", j, "spatial"), ("r", k, "reduce")]
    update = [f"with init(): {target}[vi, vj] = {zero(t)}",
              f"{target}[vi, vj] += A[vi, vr] * B[vr, vj]"]  # fmt: skip
    body, local = block(m, "mm", axes, update), [alloc("T", [n, j], t)]
    cells = [("a", n, "spatial"), ("b", j, "spatial")]
    relu = block(m, "relu", [("e", n, "spatial"), ("f", j, "spatial")],
                 [f"{target}[ve, vf] = {m.value(t, f'{target}[ve, vf]')}"])  # fmt: skip
    if kind == "transposed":
        body += block(m, "use", cells, [f"C[va, vb] = {m.value(t, 'T[va, vb]', 'T[vb, va]')}"])
    elif kind == "operand":
        body += block(m, "use", cells, [f"A[va, vb] = {m.value(t, 'T[va, vb]', 'A[va, vb]')}"])
        return Program("product_epilogue", m.text(params, body, local))
    elif kind == "updated":
        body, local = body + relu, []
    elif kind == "temporary":
        body += relu
        body += block(m, "use", cells, [f"C[va, vb] = {m.value(t, 'T[va, vb]')}"])
    elif kind == "twice":
        again = [("a", n, "spatial"), ("b", j, "spatial"), ("c", k, "reduce")]
        body += block(m, "again", again, ["C[va, vb] += A[va, vc] * B[vc, vb]"])
        local = []
    elif kind == "chain":
        body += relu if m.chance(0.7) else ""
        last = [("a", n, "spatial"), ("b", k, "spatial"), ("c", j, "reduce")]
        body += block(m, "last", last, [f"with init(): C[va, vb] = {zero(t)}",
                                        "C[va, vb] += T[va, vc] * W[vc, vb]"])  # fmt: skip
        params.append(buffer("W", [j, k], t))
    else:
        body, local = _into_offset(m, axes, (n, j), t), []
        params.append(buffer("C", [f"{n} + 2", f"{j} + 3"], t, "Out"))
        return Program("product_epilogue", m.text(params, body, local))
    params.append(buffer("C", [n, k if kind == "chain" else j], t, "Out"))
    return Program("product_epilogue", m.text(params, body, local))


def _into_offset(m: Maker, axes: list, dims: tuple[str, str], t: str) -> str:
    """Return a product into a part of a cleared buffer."""
    low = m.rng.randint(0, 2), m.rng.randint(0, 3)
    cleared = [("a", f"{dims[0]} + 2", "spatial"), ("b", f"{dims[1]} + 3", "spatial")]
    target = f"C[vi + {low[0]}, vj + {low[1]}]"
    update = [f"{target} += A[vi, vr] * B[vr, vj]"]
    if m.chance(0.4):
        update.insert(0, f"with init(): {target} = {zero(t)}")
    clear = block(m, "clear", cleared, [f"C[va, vb] = {zero(t)}"])
    return clear + block(m, "mm", axes, update)
