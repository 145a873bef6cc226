"""Structural equality and hash: names and creation order are ignored, all else is compared."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tilewright.ir.dtype import DTYPES, f32
from tilewright.ir.loop.nodes import Block, For, PrimFunc, Store
from tilewright.ir.loop.visit import transform
from tilewright.ir.module import Constant, Module
from tilewright.ir.script import to_text
from tilewright.ir.structural_hash import (
    content_digest,
    explain_difference,
    find_difference,
    structural_equal,
    structural_hash,
)

from tests.ir.script.texts import GRAPHS, LOOPS, parse
from tests.strategies import prim_funcs

KEPT = {"nan", "inf", "min", "max", *DTYPES}


def renamed(text: str) -> str:
    """Rename every symbol, loop, variable, buffer and value of a random function."""
    names = set(re.findall(r"\b(?:[nm]|v?[ijr]\w*\d(?:_[oi])?|[xyt](?:_\d+)?)\b", text)) - KEPT
    # Reversed order, so that no result depends on the alphabetical order of names.
    new = {name: f"z{len(names) - k}" for k, name in enumerate(sorted(names))}
    words = re.compile(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})\b")
    return words.sub(lambda m: new[m[0]], text)


@given(prim_funcs(exact=False))
def test_names_are_ignored(func: PrimFunc) -> None:
    text = to_text(func)
    other = parse(renamed(text).replace("def random", "def other")).prim("other")
    assert to_text(other) != text
    assert explain_difference(func, other) == ""
    assert structural_hash(func) == structural_hash(other)


@given(prim_funcs())
def test_uids_and_provenance_are_ignored(func: PrimFunc) -> None:
    def change(statement):
        if isinstance(statement, For | Block):
            return replace(statement, uid=statement.uid + 1000, origins=frozenset({"a"}))
        if isinstance(statement, Store):
            return replace(statement, origins=frozenset({"b"}))
        return statement

    other = replace(func, body=transform(func.body, change), origins=frozenset({"c"}), name="g")
    assert structural_equal(func, other)


@given(prim_funcs(), prim_funcs())
def test_equal_programs_print_equally_up_to_names(left: PrimFunc, right: PrimFunc) -> None:
    same = structural_equal(left, right)
    assert same == (explain_difference(left, right) == "")
    assert not same or len(to_text(left).split("\n")) == len(to_text(right).split("\n"))


# The two programs of a pair differ only in the text between the braces.
SYMBOLS = 'n, m = symbols("n m", lower=1)\n'
DIFFERENT = [
    ("symbol range", 'n, m = symbols("n m", lower={0|1})\n'),
    ("symbol multiple", 'n, m = symbols("n m", lower=8, multiple_of={1|8})\n'),
    ("dtype", "x: Buffer[(n, m), {f32|f16}]"),
    ("shape", "x: Buffer[({n, m|m, n}), f32]"),
    ("access", "x: {Buffer|InOut}[(n, m), f32]"),
    ("strides", "x: Buffer((n, m), f32, strides=({m, 1|1, n}))"),
    ("alignment", "x: Buffer((n, m), f32, alignment={16|32})"),
    ("layout", "x: Buffer((n, m), f32, layout=lambda a, b: ({a, b|b, a}))"),
    ("scalar", "x: Buffer[(n, m), f32]{|, k: Int}"),
    ("scope", 't = alloc((4,), f32, scope="{local|shared}")'),
    ("temporaries", "{|t = alloc((4,), f32)}"),
    ("fact", "fact(n < {8|9})"),
    ("discharge", 'fact(n < 8, by="{caller|entry_check}")'),
    ("loop kind", "for i in {range|parallel}(n): y[i] = 0.0"),
    ("extent", "for i in range({n|m}): y[i] = 0.0"),
    ("thread", 'for i in thread(n, "{x|y}"): y[i] = 0.0'),
    ("annotation", "for i in range(n, note={1|2}): y[i] = 0.0"),
    ("annotation kind", "for i in range(n, note={1|1.0}): y[i] = 0.0"),
    ("annotation truth", "for i in range(n, note={1|True}): y[i] = 0.0"),
    ("annotation text", 'for i in range(n, note={1|"1"}): y[i] = 0.0'),
    ("value", "y[0] = {0.0|1.0}"),
    ("sign of zero", "y[0] = {0.0|-0.0}"),
    ("index", "y[{0|1}] = 0.0"),
    ("operation", "y[0] = x[0, 0] {+|-} x[0, 1]"),
    ("order of operands", "y[0] = x[0, {0|1}] - x[0, {1|0}]"),
    ("cast", "y[0] = f32({f16|bf16}(x[0, 0]))"),
    ("comparison", "y[0] = where(x[0, 0] {<|<=} 1.0, 1.0, 2.0)"),
    ("condition", "y[0] = where(n < {7|8}, 1.0, 2.0)"),
    ("function", "y[0] = {exp|tanh}(x[0, 0])"),
    ("iteration kind", 'with block("b"):\n        v = {spatial|ordered}(4, 1)\n        y[v] = 0.0'),
    ("binding", 'with block("b"):\n        v = spatial(4, {1|2})\n        y[v] = 0.0'),
    ("guard", 'with block("b"):\n        guard(n < {7|8})\n        y[0] = 0.0'),
    ("reads", 'with block("b"):\n        reads({|x[0, 0:2]})\n        y[0] = 0.0'),
    ("writes", 'with block("b"):\n        writes(y[0:{2|3}])\n        y[0] = 0.0'),
    ("init", 'with block("b"):\n        with init(): y[0] = {1.0|0.0}\n        y[0] = 0.0'),
    ("block annotation", 'with block("b", note={1|2}): y[0] = 0.0'),
    ("branch", "if n < 8: y[0] = 0.0{|\n    else: y[0] = 1.0}"),
    ("range of a let", "for i in range(n):\n        with checked(w[i], 0, {n|m}) as v: y[v] = 0.0"),
    ("mode of a let", "with {checked|clamped}(w[0], 0, n) as v: y[v] = 0.0"),
    ("target", '@prim_func(target=Target("cpu", threads={1|2}))'),
    ("attribute", "@prim_func(note={1|2})"),
]  # fmt: skip


def program(part: str) -> Module:
    symbols = part if part.startswith("n, m") else SYMBOLS
    decorator = part if part.startswith("@") else "@prim_func"
    x = part if part.startswith("x:") else "x: Buffer[(n, m), f32]"
    body = part if not part.startswith(("n, m", "@", "x:")) else "y[0] = 0.0"
    head = f"{symbols}{decorator}\ndef f({x}, y: Out[(n,), f32], w: Buffer[(n,), i64]):\n"
    return parse(f"{head}    {body or 'pass'}\n")


def variants(template: str) -> list[str]:
    """Fill every `{a|b}` with its first, then its second choice."""
    pattern = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")
    return [pattern.sub(lambda m, k=k: m[k], template) for k in (1, 2)]


@pytest.mark.parametrize("template", [d[1] for d in DIFFERENT], ids=[d[0] for d in DIFFERENT])
def test_everything_else_is_compared(template: str) -> None:
    left, right = (program(v) for v in variants(template))
    assert not structural_equal(left, right)
    assert explain_difference(left, right) != ""
    assert structural_equal(left, program(variants(template)[0]))


def test_origins_of_facts_and_order_of_keys_are_ignored() -> None:
    pairs = [
        ('fact(n < 8, "one")', 'fact(n < 8, "two", at="there")'),
        ("fact(n < 8)\n    fact(m < 8)", "fact(m < 8)\n    fact(n < 8)"),
        ("for i in range(n, a=1, b=2): y[i] = 0.0", "for i in range(n, b=2, a=1): y[i] = 0.0"),
    ]
    for left, right in pairs:
        assert structural_equal(program(left), program(right))


def test_functions_of_graphs() -> None:
    def changed(old: str, new: str) -> Module:
        assert old in GRAPHS
        return parse(GRAPHS.replace(old, new))

    whole = parse(GRAPHS)
    assert structural_equal(whole, parse(GRAPHS))
    assert structural_equal(
        whole, parse(re.sub(r"\bz0\b", "zz", GRAPHS).replace("seq", "sequence"))
    )
    for old, new in (
        ('"seq", 32', '"seq", 33'),
        ("axis=-1", "axis=1"),
        ("State[Tensor[(n, 16), f32]]", "InOut[Tensor[(n, 16), f32]]"),
        ('device="cuda:1"', 'device="cuda:2"'),
        ("when(n == 1, gemv)", "when(n == 2, gemv)"),
        ("z[0]", "z[1]"),
        ("stream=1", "stream=2"),
        ("offset", "offset") if "offset" in GRAPHS else ("n * 2, Tensor", "n * 4, Tensor"),
        ("alignment=128", "alignment=64"),
        ("too long", "too short"),
        ("n < 32", "n < 33"),
        ('digest="ab"', 'digest="cd"'),
        ('model="tiny"', 'model="big"'),
        ('"a": q', '"c": q'),
        ("exp(e)", "tanh(e)"),
        ("scalars=(n,), updates=(0,)", "scalars=(n,)"),
        ("u0, updates=(0,))", "u0)"),
        ("cache=u4", "cache=u0"),
        (", total=u3)", ")"),
        (', const("scale")]', "]"),
        ("the operand is used later", "the operand is a constant"),
    ):  # fmt: skip
        assert (old == new) or not structural_equal(whole, changed(old, new)), old


def test_functions_that_share_symbols_are_compared_one_by_one() -> None:
    func, other = (parse(LOOPS).prim("matmul") for _ in range(2))
    shared = Module().with_functions(func, replace(func, name="again"))
    separate = Module().with_functions(func, replace(other, name="again"))
    assert structural_equal(shared, separate)
    assert explain_difference(shared, separate) == ""


def test_a_difference_has_a_location() -> None:
    left, right = (program(v) for v in variants("for i in range(n, note={1|2}): y[i] = 0.0"))
    found = find_difference(left, right)
    assert found is not None
    assert found.location == "function 'f', loop 'i'"
    assert (found.left, found.right) == ("annotation note=1", "annotation note=2")
    shorter, longer = (program(v) for v in variants("{|t = alloc((4,), f32)}"))
    assert "buffer 't'" in explain_difference(shorter, longer)


def test_the_hash_is_the_same_in_another_process() -> None:
    code = (
        "import json; from tests.ir.script.texts import *;"
        "from tilewright.ir.structural_hash import structural_hash;"
        "print(json.dumps([structural_hash(parse(t)) for t in (GRAPHS, LOOPS)]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": "."},
    )  # fmt: skip
    assert json.loads(run.stdout) == [structural_hash(parse(t)) for t in (GRAPHS, LOOPS)]


def test_statements_have_a_hash() -> None:
    left, right = (parse(LOOPS).prim("matmul").body for _ in range(2))
    assert structural_equal(left, right)
    assert len(structural_hash(left)) == 64


@given(st.sampled_from((0, 1)), st.sampled_from(("", "ab")))
def test_constants_are_compared_by_content(value: int, digest: str) -> None:
    array = np.full(4, value, np.float32)
    constants = {"w": Constant((4,), f32, lambda: array, digest)}
    zeros = {"w": Constant((4,), f32, lambda: np.zeros(4, np.float32))}
    same = structural_equal(Module().with_constants(constants), Module().with_constants(zeros))
    assert same == (value == 0 and digest == "")
    assert content_digest(constants["w"]) == (digest or content_digest(constants["w"]))


def test_names_may_contain_surrogates() -> None:
    zero = parse("@prim_func\ndef zero(y: Out[(8,), f32]):\n    y[0] = 0.0").prims[0]
    one, two = (Module().with_functions(replace(zero, name=n)) for n in ("a\ud800", "a\ud801"))
    assert structural_hash(one) != structural_hash(two)
    assert structural_hash(one) == structural_hash(one)
