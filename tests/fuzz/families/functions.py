"""Programs with element functions: exact ones, and elementary functions within their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.program import INTEGERS, Maker, Program, alloc, block, buffer, zero

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

FLOATS = ("f32", "f32", "f64", "f16", "bf16")
OF_INTEGERS = (
    "popcount({x})", "clz({x})", "ctz({x})", "~{x}", "fmod({x}, {z})", "{x} << ({z} & {t}(7))",
    "{x} >> ({z} & {t}(15))", "clz({x} - {z})", "popcount({x} ^ {z})",
)  # fmt: skip
OF_FLOATS = (
    "copysign({x}, {z})", "fmod({x}, {z})", "nextafter({x}, {z})", "ldexp({x}, {k})",
    "fma({x}, {z}, {x})", "trunc({x} * {t}(0.5))", "floor({x} * {t}(0.25))",
    "round({x} * {t}(0.5))", "ceil({x} * {t}(0.25))", "sqrt({x} * {x})", "sign({x})",
)  # fmt: skip
ANY = (
    "exp2", "tan", "atan", "asinh", "erf", "erfc", "tanh", "sin", "cos", "cosh", "sinh", "expm1",
    "sigmoid",
)  # fmt: skip
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh", "lgamma", "digamma")
INSIDE = ("asin", "acos", "atanh", "erfinv")
PAIRS = ("hypot({x}, {z})", "atan2({x}, abs({z}) + {t}(1))", "pow(abs({x}) + {t}(1), {z})")


def exact_functions(rng: random.Random) -> Program:
    """Draw functions whose results are exact, through a temporary or summed."""
    m = Maker(rng)
    t = m.dtype(*INTEGERS, *FLOATS)
    n, k = m.extent("n", 1, 3, 16), m.extent("k", 1, 7, 16, 33)
    options = OF_FLOATS if t in FLOATS else OF_INTEGERS
    axes = [("i", n, "spatial"), ("j", k, "spatial")]
    value = _drawn(m, options, t=t, x=m.pick("x[vi, vj]", "x[vi, 0]"), z="z[vj]", k="e[vj]")
    params = [buffer("x", [n, k], t), buffer("z", [k], t), buffer("e", [k], "i32")]
    if "e[vj]" not in value:
        params.pop()
    kind, local, shape = m.pick("map", "twice", "sum"), [], [n, k]
    if kind == "map" or (kind == "sum" and t in FLOATS):
        body = block(m, "y", axes, [f"y[vi, vj] = {value}"])
    elif kind == "sum":
        sums = [("i", n, "spatial"), ("j", k, "reduce")]
        body = block(m, "y", sums, [f"with init(): y[vi] = {zero(t)}", f"y[vi] += {value}"])
        shape = [n]
    else:
        local = [alloc("t", [n, k], t)]
        body = block(m, "t", axes, [f"t[vi, vj] = {value}"])
        back = [("a", n, "spatial"), ("b", k, "spatial")]
        plain = [o for o in options if "{k}" not in o]
        again = _drawn(m, plain, t=t, x="t[va, vb]", z="z[vb]")
        body += block(m, "y", back, [f"y[va, vb] = {again}"])
    params.append(buffer("y", shape, t, "Out"))
    return Program("exact_functions", m.text(params, body, local))


def elementary_functions(rng: random.Random) -> Program:
    """Draw elementary functions of numbers in their domain, sometimes one of another's result."""
    m = Maker(rng)
    t = m.dtype(*FLOATS)
    n, k = m.extent("n", 1, 3, 16), m.extent("k", 1, 7, 16, 33)
    axes = [("i", n, "spatial"), ("j", k, "spatial")]
    value = _elementary(m, t, "x[vi, vj]", "z[vj]")
    params = [buffer("x", [n, k], t), buffer("z", [k], t)]
    local, shape = [], [n, k]
    if m.chance(0.4):
        local = [alloc("t", [n, k], t)]
        body = block(m, "t", axes, [f"t[vi, vj] = {value}"])
        back = [("a", n, "spatial"), ("b", k, "spatial")]
        outer = m.pick("atan", "tanh", "asinh", "erf", "sigmoid")
        body += block(m, "y", back, [f"y[va, vb] = {outer}(t[va, vb]) + z[vb]"])
    elif m.chance(0.4):
        sums = [("i", n, "spatial"), ("j", k, "reduce")]
        body = block(m, "y", sums, [f"with init(): y[vi] = {zero(t)}", f"y[vi] += {value}"])
        shape = [n]
    else:
        body = block(m, "y", axes, [f"y[vi, vj] = {value}"])
    params.append(buffer("y", shape, t, "Out"))
    return Program("elementary_functions", m.text(params, body, local), exact=False)


def _drawn(m: Maker, options: Sequence[str], **words: str) -> str:
    """Return one of several formulas of elements."""
    return m.pick(*options).format(**words)


def _elementary(m: Maker, t: str, x: str, z: str) -> str:
    """Return a function of a small number in its domain."""
    kind = m.pick("any", "any", "positive", "inside", "pair")
    if kind == "any":
        return f"{m.pick(*ANY)}({x})"
    if kind == "positive":
        return f"{m.pick(*POSITIVE)}(abs({x}) + {t}(1.5))"
    if kind == "inside":
        return f"{m.pick(*INSIDE)}({x} / (abs({x}) + {t}(1)))"
    return _drawn(m, PAIRS, t=t, x=x, z=z)
