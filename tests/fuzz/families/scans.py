"""Programs with scans: by declared reducers, and recurrences that no reducer describes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.fuzz.program import Maker, Program, alloc, block, buffer, lowest, nest, zero

if TYPE_CHECKING:
    import random


def scans(rng: random.Random) -> Program:
    """Draw a scan of rows or columns by a declared reducer, forward or backward."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 5), m.extent("k", 1, 3, 8, 20), m.dtype("f32", "f64", "i32", "i8")
    op = m.pick("add", "max", "min")
    at = m.pick("vj", "vj", f"{k} - 1 - vj")
    term = m.value(t, f"x[vi, {at}]")
    if m.chance(0.2):
        term = f"where(vj >= 1, x[vi, {at.replace('vj', '(vj - 1)')}], {zero(t)})"
    first, made = m.pick("s[vi]", "s[vi]", "w"), m.chance(0.3)
    start = f", start={m.pick(zero(t), lowest(t), f'{t}(2)', first)}" if m.chance(0.5) else ""
    lines = [f"q = {term}", f"y[vi, {at}] = scan({op}, q{start})"]
    if m.chance(0.6):
        lines = [lines[1].replace("q", term, 1)]
    if start.endswith("w"):
        lines = [f"w = {m.value(t, 's[vi]', f'x[vi, {at}]')}", *lines]
    elif made:
        lines = [line.replace("s[vi]", "g[vi]") for line in lines]
    iters = [("i", n, "spatial"), ("j", k, "ordered")]
    body = block(m, "scan", iters if m.chance(0.6) else iters[::-1], lines)
    params, local = [buffer("x", [n, k], t), buffer("s", [n], t)], list[str]()
    if made:
        body = _made(m, n, k, t) + re.sub(r"\bx\[", "u[", body)
        local = [alloc("u", [n, k], t), alloc("g", [n], t)]
    if m.chance(0.5):
        return Program("scans", m.text([*params, buffer("y", [n, k], t, "Out")], body, local))
    body += block(m, "use", [("a", n, "spatial"), ("b", k, "spatial")],
                  ["z[va, vb] = y[va, vb] + x[va, vb]"])  # fmt: skip
    local = [*local, alloc("y", [n, k], t)]
    return Program("scans", m.text([*params, buffer("z", [n, k], t, "Out")], body, local))


def _made(m: Maker, n: str, k: str, t: str) -> str:
    """Draw blocks that bind a value and store the elements and the starts of a scan."""
    elements, starts = m.value(t, "b"), m.value(t, "b")
    rows = block(m, "elements", [("c", n, "spatial"), ("d", k, "spatial")],
                 ["b = x[vc, vd]", f"u[vc, vd] = {elements}"])  # fmt: skip
    return rows + block(m, "starts", [("e", n, "spatial")], ["b = s[ve]", f"g[ve] = {starts}"])


def pair_scans(rng: random.Random) -> Program:
    """Draw a scan of two values by a reducer whose order matters, exact in any grouping."""
    m = Maker(rng)
    n, k, t = m.extent("n", 1, 4), m.extent("k", 3, 8, 20), m.dtype("i32", "i64", "u8")
    lines = [
        f"@reducer(identity=({t}(1), {t}(0)), commutative=False)",
        f"def linear(a: {t}, b: {t}, c: {t}, d: {t}):",
        "    return a * c, b * c + d",
        "p[vi, vj], h[vi, vj] = scan(linear, x[vi, vj], x[vi, vj] + x[vi, vj])",
    ]
    body = block(m, "scan", [("i", n, "spatial"), ("j", k, "ordered")], lines)
    params = [buffer(name, [n, k], t, *mode) for name, mode in
              (("x", ()), ("p", ("Out",)), ("h", ("Out",)))]  # fmt: skip
    return Program("pair_scans", m.text(params, body))


def recurrences(rng: random.Random) -> Program:
    """Draw a recurrence in place, whose dependence has a distance per index."""
    m = Maker(rng)
    n, k, t = m.extent("n", 2, 5), m.extent("k", 3, 8, 20), m.dtype("f32", "i32")
    rows, columns = rng.choice([(0, 1), (1, 0), (0, 2), (2, 0), (1, 1), (1, -1)])
    left = f"i + {rows}" if rows else "i"
    right, read = ("j", "j + 1") if columns < 0 else (f"j + {columns}" if columns else "j", "j")
    lines = [f"y[{left}, {right}] = max(y[i, {read}], x[i, j])"]
    body = nest([("i", n), ("j", k)], lines)
    sizes = [f"{n} + {rows}", f"{k} + {abs(columns)}"]
    params = [buffer("x", [n, k], t), buffer("y", sizes, t, "InOut")]
    return Program("recurrences", m.text(params, body))
