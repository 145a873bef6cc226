"""Programs on packed integers and 8-bit floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import Maker, Program, alloc, block, buffer

if TYPE_CHECKING:
    import random

PACKED = ("i4", "i4", "u4", "i2", "u2")
FLOATS = ("f8_e4m3", "f8_e5m2")


def narrow_product(rng: random.Random) -> Program:
    """Draw a product with narrow weights, converted in the loop, sometimes scaled per group."""
    m = Maker(rng)
    t = m.pick(*PACKED, *FLOATS)
    rows, columns = m.extent("M", 1, 3, 4), m.extent("N", 2, 8, 16, 15)
    depth, group = m.extent("K", 2, 6, 16), m.pick("1", "2", "4")
    sizes = [("i", rows, "spatial"), ("j", columns, "spatial"), ("k", depth, "reduce")]
    across = m.chance(0.5)
    shape, weight = ([depth, columns], "w[vk, vj]") if across else ([columns, depth], "w[vj, vk]")
    scaled = m.chance(0.6)
    factor = f"f32({weight})"
    params = [buffer("x", [rows, depth], "f32"), buffer("w", shape, t)]
    if scaled:
        factor = f"({factor} * s[vk // {group}, vj])"
        params.append(buffer("s", [depth, columns], "f32"))
    lines = ["with init(): y[vi, vj] = 0.0", f"y[vi, vj] += x[vi, vk] * {factor}"]
    body = block(m, "y", sizes, lines)
    if m.chance(0.3):
        u = m.pick("i4", "f8_e5m2")
        body += block(
            m,
            "z",
            [("a", rows, "spatial"), ("b", columns, "spatial")],
            [f"z[va, vb] = {u}(y[va, vb])"],
        )
        params.append(buffer("z", [rows, columns], u, "Out"))
    params.append(buffer("y", [rows, columns], "f32", "Out"))
    return Program("narrow_product", m.text(params, body))


def packed_map(rng: random.Random) -> Program:
    """Draw functions of packed elements in several positions, stored in packed elements."""
    m = Maker(rng)
    t, u = m.pick(*PACKED), m.pick(*PACKED)
    rows, columns = m.extent("n", 1, 3, 4), m.extent("k", 1, 2, 7, 8, 16, 32)
    at = m.pick("vj", "vj", f"{columns} - 1 - vj", "vj // 2", f"min(vj + 1, {columns} - 1)")
    value = m.pick(
        f"x[vi, {at}] + z[vi, vj]", f"max(x[vi, {at}], z[vi, vj])", f"x[vi, {at}] * z[vi, vj]",
        f"(x[vi, {at}] ^ z[vi, vj]) - x[vi, 0]",
        f"where(x[vi, {at}] > z[vi, vj], x[vi, vj], z[vi, vj])",
    )  # fmt: skip
    store = "y[vi, vj]" if m.chance(0.7) else "y[vj, vi]"
    out = [rows, columns] if store == "y[vi, vj]" else [columns, rows]
    axes = [("i", rows, "spatial"), ("j", columns, "spatial")]
    body, local = block(m, "y", axes, [f"{store} = {u}({value})"]), []
    if m.chance(0.5):
        local = [alloc("t", [rows, columns], u)]
        body = block(m, "t", axes, [f"t[vi, vj] = {u}({value})"])
        back = "vb" if m.chance(0.6) else f"{columns} - 1 - vb"
        body += block(
            m, "y", [("a", rows, "spatial"), ("b", columns, "spatial")],
            [f"y[va, vb] = t[va, {back}] + {u}(1)"],
        )  # fmt: skip
        out = [rows, columns]
    params = [buffer(b, [rows, columns], t) for b in ("x", "z")]
    return Program("packed_map", m.text([*params, buffer("y", out, u, "Out")], body, local))


def narrow_chain(rng: random.Random) -> Program:
    """Draw conversions between narrow dtypes, by value or by bits, through temporaries."""
    m = Maker(rng)
    n = m.extent("n", 1, 5, 16, 33)
    kinds = [m.pick(*PACKED[:3], *FLOATS, "i8", "f32") for _ in range(rng.randint(2, 4))]
    body, source, t = "", "x", kinds[0]
    for k, u in enumerate(kinds[1:]):
        last = k == len(kinds) - 2
        target, v = "y" if last else f"t{k}", f"v{'abc'[k]}"
        load = f"{source}[{v}]"
        value = m.pick(
            f"{u}({load})", f"{u}(f32({load}) * 2.0)", f"{u}(max({load}, {t}(1)))",
            f"{u}(min({load} + {load}, {t}(2)))",
        )  # fmt: skip
        if t in FLOATS and m.chance(0.5):
            value = f"{u}(reinterpret(reinterpret({load}, u8) ^ u8(128), {t}))"
        if t == "i4" and m.chance(0.4):
            value = f"{u}(reinterpret({load}, u4))"
        body += block(m, f"b{k}", [("abc"[k], n, "spatial")], [f"{target}[{v}] = {value}"])
        source, t = target, u
    local = [alloc(f"t{k}", [n], u) for k, u in enumerate(kinds[1:-1])]
    params = [buffer("x", [n], kinds[0]), buffer("y", [n], kinds[-1], "Out")]
    return Program("narrow_chain", m.text(params, body, local))
