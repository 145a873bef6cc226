"""Errors about bound values and reducers in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.nesting import MOST_NAMES, MOST_NESTED
from tilewright.ir.script import ParseError, TextTooLargeError, parse
from tilewright.ir.verify import violations

HEAD = """n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n, n), f32], at: Buffer[(n,), i32], y: Out[(n,), f32], p: Out[(n,), i32]):
    for i in range(n):
        for k in range(n):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
"""
BOTH = """@reducer(identity=(0.0, 0))
def both({}):
    return a + c, b + d
y[vi], p[vi] = both(x[vi, vk], 1)"""


def text_of(lines: str) -> str:
    return HEAD + "\n".join(f"                {line}" for line in lines.splitlines())


ERRORS = {
    "q = at[vi]\ny[vi] = x[vi, q]": ("the value of an element", "with checked"),
    "y[vi] = argmax(x[vi, vk], vk)": ("argmax has several results", "e[i], p[i] = argmax"),
    "y[vi], p[vi] = argmx(x[vi, vk], vk)": ("several results of 'argmx'", "mean 'argmax'"),
    "q, r = x[vi, vk], 1.0\ny[vi] = q + r": ("expected spatial", "t = x[v]"),
    BOTH.format("a: f32, b: i32, a: f32, d: i32"): ("duplicate parameter 'a'", "rename"),
    BOTH.format("a: f32, b: i32, c: f32, d: i32 = 1"): ("have a name and a dtype", "def pair"),
    BOTH.format("a: f32, b: i32, c: f32, *d"): ("have a name and a dtype", "def pair"),
    BOTH.format("a: f32, b: i32, *, c: f32, d: i32"): ("have a name and a dtype", "def pair"),
    "y[vi] = scan(add, x[vi, vk]) + 1.0": ("a scan is a statement", "y[i, j] = scan"),
    "y[vi] += scan(add, x[vi, vk])": ("a scan is a statement", "y[i, j] = scan"),
}  # fmt: skip


@pytest.mark.parametrize("lines", ERRORS)
def test_errors_state_legal_forms(lines: str) -> None:
    message, hint = ERRORS[lines]
    with pytest.raises(ParseError) as caught:
        parse(text_of(lines))
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("names", ["n b c d", "a k c d", "z vi vk y", "at b x p"])
def test_an_operand_hides_a_variable_of_the_same_name(names: str) -> None:
    a, b, c, d = names.split()
    reducer = f"""@reducer(identity=(0.0, 0))
def both({a}: f32, {b}: i32, {c}: f32, {d}: i32):
    i = {b} + {d}
    n = {a} + {c}
    return n, i
with init(): y[vi], p[vi] = 0.0, 0
y[vi], p[vi] = both(x[vi, vk], at[vk])"""
    module = parse(text_of(reducer))
    for text in (module, parse(str(module))):
        x = np.arange(9, dtype=np.float32).reshape(3, 3)
        y, p = call_prim(text.prim("f"), [x, np.arange(3, dtype=np.int32)])
        assert y.tolist() == x.sum(1).tolist()
        assert p.tolist() == [3, 3, 3]


def test_a_body_that_is_not_a_reduction_is_reported_alone() -> None:
    """The names of the operands of a reducer are not in the text, such as ``i``."""
    init = "with init(): y[vi], p[vi] = -inf, 0\n"
    module = parse(text_of(f"{init}y[vi], p[vi] = argmax(x[vi, vk] + y[vi], vk)"), check=False)
    assert [str(v)[:14] for v in violations(module)] == ["[L26 reducers]"]


def chain(count: int) -> str:
    lines = ["q0 = x[vi, vk]", *(f"q{k + 1} = q{k} + 1.0" for k in range(count - 1))]
    return text_of("\n".join([*lines, f"y[vi] += q{count - 1}", "p[vi] += 1"]))


def test_the_bound_values_of_a_block_are_limited() -> None:
    parse(chain(MOST_NAMES))
    with pytest.raises(TextTooLargeError, match=f"more than {MOST_NAMES} allocations and bound"):
        parse(chain(MOST_NAMES + 1))
    with pytest.raises(TextTooLargeError):
        parse(chain(5000))


def scopes(*counts: int) -> str:
    """Return nested loops with allocations in each of them."""
    lines = ["@prim_func", "def f(x: Buffer[(1,), i32], y: Out[(1,), i32]):"]
    for level, count in enumerate(counts):
        lines.append("    " * (level + 1) + f"for i{level} in range(1):")
        lines += ["    " * (level + 2) + f"a{level}_{k} = alloc((1,), i32)" for k in range(count)]
    inner = "    " * (len(counts) + 1)
    lines += [f"{inner}a{v}_{k}[0] = x[i0]" for v, n in enumerate(counts) for k in range(n)]
    return "\n".join([*lines, f"{inner}y[0] = a0_0[0]"]) + "\n"


def test_nested_allocations_are_limited() -> None:
    """Passes visit the scopes of all lists of statements nested; they raised RecursionError."""
    half = MOST_NESTED // 2
    parse(scopes(half, half))
    for counts in ((half, half + 1), (200,) * 5):
        with pytest.raises(TextTooLargeError, match=f"more than {MOST_NESTED} allocations and"):
            parse(scopes(*counts))
