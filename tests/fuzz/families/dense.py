"""Programs over whole arrays: contractions, windows, reductions, chains and borders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import (
    FLOATS,
    INTEGERS,
    Maker,
    Program,
    alloc,
    at,
    buffer,
    nest,
    strided,
    zero,
)

if TYPE_CHECKING:
    import random


def contraction(rng: random.Random) -> Program:
    """Draw a matrix product: layouts, optional batch, widening and epilogue."""
    m = Maker(rng)
    inputs, total = rng.choice([
        ("f32", "f32"), ("f32", "f32"), ("i32", "i32"), ("i8", "i32"), ("u8", "i32"),
        ("f16", "f32"), ("bf16", "f32"), ("f64", "f64"), ("i64", "i64"), ("f16", "f16"),
    ])  # fmt: skip
    right = "i8" if inputs == "u8" else inputs
    sizes = {"i": m.extent("M", 1, 6, 7), "j": m.extent("N", 1, 8, 16), "k": m.extent("K", 1, 4, 5)}
    batch = rng.random() < 0.3
    if batch:
        sizes["b"] = m.extent("B", 1, 2, 3)

    def operand(label: str, dims: str, dtype: str, kind: str = "Buffer") -> tuple[str, str]:
        own = [*dims]
        if rng.random() < 0.4:
            own.reverse()
        if batch and (kind == "Out" or rng.random() < 0.7):
            own.insert(rng.randint(0, 1), "b")
        shape = [sizes[d] for d in own]
        made = strided(rng, label, shape, dtype) if kind == "Buffer" else buffer(
            label, shape, dtype, kind)  # fmt: skip
        return made, at(label, [f"v{d}" for d in own])

    a, at_a = operand("A", "ik", inputs)
    b, at_b = operand("W", "kj", right)
    c, at_c = operand("C", "ij", total, "Out")
    factors = [f"{total}({x})" if inputs != total else x for x in (at_a, at_b)]
    rng.shuffle(factors)
    axes = ["i", "j", "k"] if rng.random() < 0.6 else rng.sample(["i", "j", "k"], 3)
    order = ["b", *axes] if batch else axes
    bound = ", ".join(f"{'reduce' if d == 'k' else 'spatial'}({d})" for d in order)
    head = f"{', '.join(f'v{d}' for d in order)} = {bound}"
    epilogue = rng.random() < 0.35 and not batch
    target = at_c.replace("C", "S", 1) if epilogue else at_c
    lines = [
        'with block("mm"):',
        f"    {head}",
        f"    with init(): {target} = {zero(total)}",
        f"    {target} += {' * '.join(factors)}",
    ]
    body = nest([(d, sizes[d]) for d in order], lines)
    local = []
    if epilogue:
        local = [f"S = alloc({c.split('[', 1)[1].rsplit(',', 1)[0]}, {total})"]
        own = at_c[2:-1].split(", ")
        renamed = [f"w{d[1]}" for d in own]
        value = rng.choice([
            f"max({at('S', renamed)}, {zero(total)})", f"{at('S', renamed)} + D[{renamed[1]}]",
        ])  # fmt: skip
        after = [
            'with block("epilogue"):',
            f"    {', '.join(renamed)} = {', '.join(f'spatial({d[1]}1)' for d in own)}",
            f"    {at('C', renamed)} = {value}",
        ]
        body += "\n" + nest([(f"{d[1]}1", sizes[d[1]]) for d in own], after)
        c = buffer("D", [sizes[own[1][1]]], total) + ", " + c
    return Program("contraction", m.text([a, b, c], body, local))


def window(rng: random.Random) -> Program:
    """Draw a convolution or a pooling: overlapping windows, strides, dilation."""
    m = Maker(rng)
    dtype = m.dtype("f32", "f32", "i32", "i8", "f16")
    n, o, c = m.extent("n", 5, 9, 16), m.extent("o", 1, 3, 8), m.extent("c", 1, 2, 4)
    step, distance, size = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2]), rng.choice([1, 2, 3])
    scale = f"vx * {step}" if step > 1 else "vx"
    place = f"{scale} + vr * {distance}" if distance > 1 else f"{scale} + vr"
    length = f"{n} * {step} + {(size - 1) * distance}"
    if rng.random() < 0.6:
        out = rng.choice([("o", "x"), ("x", "o")])
        dims = {"o": o, "x": n}
        target = at("y", [f"v{d}" for d in out])
        lines = [
            'with block("conv"):',
            "    vo, vx, vc, vr = spatial(o1), spatial(x1), reduce(c1), reduce(r1)",
            f"    with init(): {target} = {zero(dtype)}",
            f"    {target} += x[vc, {place}] * w[vo, vc, vr]",
        ]
        body = nest([("o1", o), ("x1", n), ("c1", c), ("r1", str(size))], lines)
        params = (
            buffer("x", [c, length], dtype),
            buffer("w", [o, c, str(size)], dtype),
            buffer("y", [dims[d] for d in out], dtype, "Out"),
        )
    else:
        lines = [
            'with block("pool"):',
            "    vo, vx, vr = spatial(o1), spatial(x1), reduce(r1)",
            f"    with init(): y[vo, vx] = {'-inf' if dtype in FLOATS else zero(dtype)}",
            f"    y[vo, vx] = max(y[vo, vx], x[vo, {place}])",
        ]
        body = nest([("o1", o), ("x1", n), ("r1", str(size))], lines)
        params = (buffer("x", [o, length], dtype), buffer("y", [o, n], dtype, "Out"))
    return Program("window", m.text(params, body))


def reduction(rng: random.Random) -> Program:
    """Draw a reduction over rows, columns or all: sum, extremum, product, logic, some guarded."""
    m = Maker(rng)
    n, k = m.extent("n", 1, 5, 16, least=0), m.extent("k", 1, 7, 16)
    kind = rng.choice(["sum", "sum", "max", "min", "any", "all", "xor", "and", "or"])
    dtype = "bool" if kind in ("any", "all") else m.dtype(
        *INTEGERS, *(FLOATS if kind in ("sum", "max", "min") else ()))  # fmt: skip
    start = {"any": "False", "all": "True"}.get(kind, zero(dtype))
    if kind == "and":
        start = f"{dtype}(255)" if dtype == "u8" else f"{dtype}(-1)"
    if kind in ("max", "min") and dtype in FLOATS:
        start = "-inf" if kind == "max" else "inf"
    over = rng.choice(["rows", "columns", "both"])
    kinds = {"rows": ("spatial", "reduce"), "columns": ("reduce", "spatial")}
    first, second = kinds.get(over, ("reduce", "reduce"))
    out = at("y", [v for v, x in (("vi", first), ("vk", second)) if x == "spatial"])
    value = rng.choice(["x[vi, vk]", "x[vi, vk]", "where(vk <= vi, x[vi, vk], ZERO)",
                        "where((vi + vk) % 3 < 2, x[vi, vk], ZERO)"])  # fmt: skip
    value = value.replace("ZERO", start)
    combine = {
        "sum": f"{out} + {value}", "max": f"max({out}, {value})", "min": f"min({out}, {value})",
        "any": f"{out} | {value}", "all": f"{out} & {value}", "and": f"{out} & {value}",
        "or": f"{out} | {value}", "xor": f"{out} ^ {value}",
    }[kind]  # fmt: skip
    tile = rng.choice([0, 0, 3, 8])
    loops, bind, guard = [("i", n), ("k2", k)], "k2", []
    if tile:
        loops = [("i", n), ("k0", f"ceildiv({k}, {tile})"), ("k1", str(tile))]
        bind, guard = f"k0 * {tile} + k1", [f"    guard(k0 * {tile} + k1 < {k})"]
    lines = [
        'with block("fold"):',
        f"    vi, vk = {first}({n}, i), {second}({k}, {bind})",
        *guard,
        f"    with init(): {out} = {start}",
        f"    {out} = {combine}",
    ]
    shape = {"rows": [n], "columns": [k], "both": []}[over]
    params = [strided(rng, "x", [n, k], dtype), buffer("y", shape, dtype, "Out")]
    return Program("reduction", m.text(params, nest(loops, lines)))


def chain(rng: random.Random) -> Program:
    """Draw producers and consumers in several dtypes, in two dimensions, shifted or transposed."""
    m = Maker(rng)
    n, k = m.extent("n", 1, 6, 17, least=0), m.extent("k", 1, 4, 16)
    last, dtype = "x", m.dtype(*INTEGERS, *FLOATS, "bool")
    params = [buffer("x", [n, k], dtype)]
    count, body, local = rng.randint(2, 4), [], []
    for step in range(count):
        name = "y" if step == count - 1 else f"t{step}"
        i, j = f"i{step}", f"j{step}"
        vi, vj = f"vi{step}", f"vj{step}"
        value, made = _link(m, dtype, [vi, vj], last, step, params, (n, k))
        loops = [(i, n), (j, k)]
        if rng.random() < 0.3:
            loops.reverse()
        lines = [
            f'with block("b{step}"):',
            f"    {vi}, {vj} = spatial({i}), spatial({j})",
            f"    {name}[{vi}, {vj}] = {value}",
        ]
        body.append(nest(loops, lines))
        if name != "y":
            local.append(alloc(name, [n, k], made))
        last, dtype = name, made
    params.append(buffer("y", [n, k], dtype, "Out"))
    return Program("chain", m.text(params, "\n".join(body), local))


def _link(  # noqa: PLR0917
    m: Maker, dtype: str, v: list[str], last: str, step: int, params: list[str], dims: tuple
) -> tuple[str, str]:
    """Draw an element, and its dtype."""
    rng, here = m.rng, at(last, v)
    if rng.random() < 0.3:
        made = m.dtype(*INTEGERS, *FLOATS, "bool")
        return f"{made}({here})", made
    options = [f"where({v[0]} + {v[1]} < 5, {here}, {here})"]
    if dtype == "bool":
        options += [f"not {here}", f"{here} & ({v[1]} % 2 < 1)", f"where({here}, {v[0]} < 2, True)"]
        return rng.choice(options), "bool"
    options += [f"max({here}, {zero(dtype)})", f"min({here}, {dtype}(3))", f"abs({here})",
                f"{here} + {here}", f"-{here}",
                f"where({here} > {zero(dtype)}, {here}, {dtype}(2))",
                f"{here} + {dtype}({v[1]})", f"sign({here})"]  # fmt: skip
    if dtype in INTEGERS:
        options += [f"{here} * {here}", f"{here} // {dtype}(3)", f"{here} % {dtype}(3)",
                    f"{here} << {dtype}(2)", f"{here} >> {dtype}(1)", f"~{here}",
                    f"{here} ^ {dtype}(5)"]  # fmt: skip
    else:
        options += [f"floor({here})", f"{here} * {dtype}(0.5)"]
    chosen = rng.choice(options)
    if rng.random() < 0.4:
        other, shape, index = rng.choice([
            (f"p{step}", [dims[1]], [v[1]]), (f"p{step}", [dims[0]], [v[0]]),
            (f"p{step}", [dims[1], dims[0]], [v[1], v[0]]), (f"p{step}", [], []),
            (f"p{step}", [f"{dims[0]} + 1", dims[1]], [f"{v[0]} + 1", v[1]]),
        ])  # fmt: skip
        params.append(buffer(other, shape, dtype))
        chosen = f"{rng.choice(['max', 'min'])}({chosen}, {at(other, index)})"
    return chosen, dtype


def border(rng: random.Random) -> Program:
    """Draw a padded copy, a transposed or tiled view, or a concatenation."""
    m = Maker(rng)
    dtype = m.dtype(*INTEGERS, *FLOATS, "bool")
    n, k = m.extent("n", 1, 6, 16), m.extent("k", 1, 5, 8)
    fill = "False" if dtype == "bool" else zero(dtype)
    kind = rng.choice(["pad", "concat", "flat", "turn"])
    if kind == "pad":
        low, high = rng.randint(0, 3), rng.randint(0, 3)
        extent = f"{n} + {low + high}"
        inside = f"{low} <= vi and vi < {n} + {low}"
        out, value = [extent, k], f"where({inside}, x[vi - {low}, vj], {fill})"
        params = [buffer("x", [n, k], dtype)]
    elif kind == "concat":
        extra = m.extent("q", 1, 4)
        extent = f"{n} + {extra}"
        out, value = [extent, k], f"where(vi < {n}, x[vi, vj], z[vi - {n}, vj])"
        params = [buffer("x", [n, k], dtype), buffer("z", [extra, k], dtype)]
    elif kind == "flat":
        extent, out = n, [n, k]
        value, params = f"x[vi * {k} + vj]", [buffer("x", [f"{n} * {k}"], dtype)]
    else:
        extent, out = n, [k, n]
        value, params = "x[vi, vj]", [buffer("x", [n, k], dtype)]
    target = at("y", ["vj", "vi"] if kind == "turn" else ["vi", "vj"])
    lines = [
        'with block("copy"):',
        f"    vi, vj = spatial({extent}, i), spatial({k}, j)",
        f"    {target} = {value}",
    ]
    params.append(buffer("y", out, dtype, "Out"))
    body = nest([("i", extent), ("j", k)], lines)
    return Program("border", m.text(params, body))
