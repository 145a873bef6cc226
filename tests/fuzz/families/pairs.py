"""Programs on complex numbers, and on elements at a small constant distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import COMMON, Maker, Program, alloc, block, buffer

if TYPE_CHECKING:
    import random

COMPLEX = ("c64", "c64", "c128")
PARTS = {"c64": "f32", "c128": "f64"}
FUNCTIONS = (
    "exp", "sin", "cos", "tanh", "sinh", "cosh", "asinh", "atan", "asin", "acos", "sqrt", "log",
)  # fmt: skip


def complex_maps(rng: random.Random) -> Program:
    """Draw exact functions of complex elements, in several positions, through a temporary."""
    m = Maker(rng)
    t = m.pick(*COMPLEX)
    n, k = m.extent("n", 1, 3, 16), m.extent("k", 1, 2, 7, 16, 33)
    at = m.pick("vj", "vj", f"{k} - 1 - vj", "vj // 2", f"min(vj + 1, {k} - 1)")
    axes = [("i", n, "spatial"), ("j", k, "spatial")]
    value, local = _value(m, t, f"x[vi, {at}]", "z[vj]"), []
    of, shown = (PARTS[t], m.pick("real", "imag")) if m.chance(0.2) else (t, "")
    if m.chance(0.5):
        local = [alloc("t", [n, k], t)]
        body = block(m, "t", axes, [f"t[vi, vj] = {value}"])
        back = m.pick("vb", f"{k} - 1 - vb")
        value = f"{shown}({_value(m, t, f't[va, {back}]', 'z[vb]')})"
        axes, target = [("a", n, "spatial"), ("b", k, "spatial")], "y[va, vb]"
        body += block(m, "y", axes, [f"{target} = {value}"])
    elif m.chance(0.3) and not shown:
        lines = [f"y[vi, vj] = {value}", f"r[vi, vj] = {m.pick('real', 'imag')}({value})"]
        body = block(m, "y", axes, lines)
    else:
        body = block(m, "y", axes, [f"y[vi, vj] = {shown}({value})"])
    params = [buffer("x", [n, k], t), buffer("z", [k], t), buffer("y", [n, k], of, "Out")]
    if "r[vi" in body:
        params.append(buffer("r", [n, k], PARTS[t], "Out"))
    return Program("complex_maps", m.text(params, body, local))


def complex_sums(rng: random.Random) -> Program:
    """Draw a product or a sum of complex numbers, sometimes with a second result or an epilogue."""
    m = Maker(rng)
    t = m.pick(*COMPLEX)
    rows, columns = m.extent("M", 1, 3, 4), m.extent("N", 2, 8, 16, 15)
    depth = m.extent("K", 2, 6, 16, 33)
    weight = m.pick("w[vk, vj]", "conj(w[vk, vj])", "w[vk, vj] * 1j", f"{t}(real(w[vk, vj]))")
    first = m.pick("x[vi, vk]", "x[vi, vk]", "conj(x[vi, vk])", f"x[vi, {depth} - 1 - vk]")
    term = m.pick(f"{first} * {weight}", f"{first} * {weight}", f"{first} + {weight}")
    sizes = [("i", rows, "spatial"), ("j", columns, "spatial"), ("k", depth, "reduce")]
    start = m.pick("0.0", "0.0", "1j", f"{t}(2)")
    params = [buffer("x", [rows, depth], t), buffer("w", [depth, columns], t)]
    params.append(buffer("y", [rows, columns], t, "Out"))
    if m.chance(0.3):
        of, part = m.rng.choice([(t, "conj"), ({"c64": "f32", "c128": "f64"}[t], "imag")])
        lines = [
            "@reducer(identity=(0.0, 0.0))",
            f"def both(a0: {t}, a1: {of}, b0: {t}, b1: {of}):",
            "    return a0 + b0, a1 + b1",
            "with init(): y[vi, vj], p[vi, vj] = 0.0, 0.0",
            f"y[vi, vj], p[vi, vj] = both({term}, {part}({first}))",
        ]
        params.append(buffer("p", [rows, columns], of, "Out"))
    else:
        lines = [f"with init(): y[vi, vj] = {start}", f"y[vi, vj] += {term}"]
    body, local = block(m, "y", sizes, lines), []
    if len(params) == 3 and m.chance(0.4):
        local, params[-1] = [alloc("y", [rows, columns], t)], buffer("z", [rows, columns], t, "Out")
        back = [("a", rows, "spatial"), ("b", columns, "spatial")]
        body += block(m, "z", back, [f"z[va, vb] = {_value(m, t, 'y[va, vb]')}"])
    return Program("complex_sums", m.text(params, body, local))


def complex_scans(rng: random.Random) -> Program:
    """Draw running sums of complex numbers, forward or backward."""
    m = Maker(rng)
    t = m.pick(*COMPLEX)
    n, k = m.extent("n", 1, 5), m.extent("k", 1, 3, 8, 20)
    at = m.pick("vj", "vj", f"{k} - 1 - vj")
    start = m.pick("", "", f", start={t}(2)", ", start=s[vi]")
    lines = [f"y[vi, {at}] = scan(add, {_value(m, t, f'x[vi, {at}]')}{start})"]
    iters = [("i", n, "spatial"), ("j", k, "ordered")]
    body = block(m, "scan", iters if m.chance(0.6) else iters[::-1], lines)
    params = [buffer("x", [n, k], t), buffer("s", [n], t), buffer("y", [n, k], t, "Out")]
    if "s[vi]" not in body:
        params.pop(1)
    return Program("complex_scans", m.text(params, body))


def complex_functions(rng: random.Random) -> Program:
    """Draw functions of complex numbers that round, sometimes of one another or summed."""
    m = Maker(rng)
    t = m.pick(*COMPLEX)
    n, k = m.extent("n", 1, 3, 16), m.extent("k", 1, 7, 16)
    inside = "x[vi, vj] * 0.25 + complex(0.5, 0.125)"
    value = f"{m.pick(*FUNCTIONS)}({inside})"
    if m.chance(0.4):
        value = m.pick(
            f"{value} * z[vj]", f"{value} / (z[vj] + complex(4.5, 0.5))", f"{value} + z[vj]",
            f"where(real(x[vi, vj]) > 0.0, {value}, z[vj])",
        )  # fmt: skip
    of, shape, kind = t, [n, k], m.pick("map", "map", "sum", "size")
    line = [f"y[vi, vj] = {value}"]
    axes = [("i", n, "spatial"), ("j", k, "spatial")]
    if kind == "size":
        of, line = PARTS[t], [f"y[vi, vj] = {m.pick('abs', 'real')}({value})"]
    if kind == "sum":
        axes, shape = [("i", n, "spatial"), ("j", k, "reduce")], [n]
        line = ["with init(): y[vi] = 0.0", f"y[vi] += {value}"]
    params = [buffer("x", [n, k], t), buffer("z", [k], t), buffer("y", shape, of, "Out")]
    if "z[vj]" not in value:
        params.pop(1)
    return Program("complex_functions", m.text(params, block(m, "y", axes, line)), exact=False)


def interleaved(rng: random.Random) -> Program:
    """Draw permutations and sums of elements at a distance of 2 to 4, forward or backward."""
    m = Maker(rng)
    t, step = m.dtype(*COMMON), rng.randint(2, 4)
    n = m.extent("n", 1, 3, 16, 33)
    v = m.pick("vi", "vi", f"({n} - 1 - vi)")
    order = rng.sample(range(step), rng.randint(1, step))
    loads = [f"x[{v} * {step} + {rng.randrange(step)}]" for _ in order]
    if m.chance(0.3):
        loads[0] = m.value(t, loads[0], f"x[{v} * {step}]")
    if m.chance(0.3):
        loads[-1] = f"where(vi * 2 + 1 < {n}, x[vi * 2 + 1], {loads[-1]})"
    lines = [f"y[vi * {step} + {r}] = {x}" for r, x in zip(order, loads, strict=True)]
    body = block(m, "y", [("i", n, "spatial")], lines)
    size = f"{n} * {step}"
    params = [buffer("x", [size], t), buffer("y", [size], t, "InOut")]
    return Program("interleaved", m.text(params, body))


def _value(m: Maker, t: str, *loads: str) -> str:
    """Return an exact function of complex numbers with small integer parts."""
    first, *rest = loads
    for load in rest:
        first = m.pick(
            f"{first} + {load}", f"{first} - {load}", f"{first} * {load}",
            f"complex(real({first}), imag({load}))", f"complex(imag({load}), real({first}))",
            f"where(real({first}) > imag({load}), {first}, {load})",
            f"where({first} == {load}, {first}, conj({load}))",
        )  # fmt: skip
    return m.pick(first, f"-({first})", f"conj({first})", f"({first}) * 1j", f"({first}) + {t}(1)")
