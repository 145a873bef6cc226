"""Values with names and several stores in the bodies of blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.errors import TilewrightError
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.loop.nodes import Bind, Block, If, Load, Local, PrimFunc, Seq, Store
from tilewright.ir.loop.straight_line import (
    joined,
    last_of,
    own_values,
    single_store,
    statements_of,
    straight_line,
    used_binds,
    with_last,
)
from tilewright.ir.loop.verify import loop_violations
from tilewright.ir.loop.visit import loads, seq, stores, walk
from tilewright.ir.script import parse
from tilewright.ir.structural_hash import structural_hash
from tilewright.schedules import Schedule

TWO = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            t = x[vi] * 2.0
            u = where(t > 3.0, t, f32(vi))
            y[vi] = t * t + u
            z[vi] = u
"""

SIZES = (0, 1, 5, 33, 200)


def block_of(function: PrimFunc) -> Block:
    return next(s for s in walk(function.body) if isinstance(s, Block))


def expected(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    t = x * np.float32(2)
    u = np.where(t > 3, t, np.arange(len(x), dtype=np.float32))
    return t * t + u, u


def test_the_statements_of_a_block_are_listed_and_joined():
    body = block_of(parse(TWO).prim("f")).body
    parts = statements_of(body)
    assert [type(s).__name__ for s in parts] == ["Bind", "Bind", "Store", "Store"]
    assert statements_of(joined(parts))[2:] == parts[2:]
    assert straight_line(body) == (parts[:2], parts[2:])
    assert single_store(body) is None
    assert own_values(parts) == tuple(s.value for s in parts)
    assert [x.buffer.name for x in loads(body)] == ["x"]
    first, second = parts[0], parts[1]
    assert isinstance(first, Bind)
    assert isinstance(second, Bind)
    assert used_binds((first, second), [second.local]) == (first, second)
    assert used_binds((first, second), [first.local]) == (first,)
    assert used_binds((first, second), [first.value]) == ()


def test_a_bind_contains_the_statements_after_it():
    first, second, *rest = statements_of(block_of(parse(TWO).prim("f")).body)
    made = seq(replace(first, body=Seq(())), replace(second, body=Seq(())), *rest)
    assert isinstance(made, Bind)
    assert isinstance(made.body, Bind)
    assert statements_of(made)[2:] == tuple(rest)


def test_bound_values_round_trip_and_run():
    module = parse(TWO)
    assert str(parse(str(module))) == str(module)
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        for got, want in zip(call_prim(module.prim("f"), [x]), expected(x), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_bound_values_compile(target):
    exe = compile(parse(TWO), target)
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        for got, want in zip(exe(x), expected(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_lanes_that_store_to_one_element_use_their_own_values():
    sch = Schedule(
        parse("""
@prim_func
def f(at: Buffer[(16,), i32], x: Buffer[(16,), f32], y: InOut[(4,), f32], z: Out[(16,), f32]):
    for i in range(16):
        with block("y"):
            vi = spatial(i)
            t = x[vi] + 1.0
            z[vi] = t
            y[0] = max(y[0], t)
""")
    )
    x = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    y = np.zeros(4, np.float32)
    made = compile(sch, "cpu")(np.zeros(16, np.int32), x, y)
    np.testing.assert_array_equal(made if isinstance(made, np.ndarray) else made[-1], x + 1)
    assert y[0] == (x + 1).max()


def test_a_later_store_does_not_change_a_bound_value():
    module = parse("""
@prim_func
def f(y: InOut[(8,), f32], z: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            t = y[vi]
            y[vi] = t + 1.0
            z[vi] = t
""")
    x = np.arange(8, dtype=np.float32)
    y, z = call_prim(module.prim("f"), [x])
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(z, x)
    y = x.copy()
    made = compile(module, "cpu")(y)
    np.testing.assert_array_equal(made if isinstance(made, np.ndarray) else made[-1], x)
    np.testing.assert_array_equal(y, x + 1)


def test_the_hash_depends_on_values_and_not_on_names():
    f = parse(TWO).prim("f")
    renamed = TWO.replace("t = x", "first = x").replace("t > 3.0, t,", "first > 3.0, first,")
    renamed = renamed.replace("t * t + u", "first * first + u")
    assert structural_hash(parse(renamed).prim("f")) == structural_hash(f)
    other = TWO.replace("x[vi] * 2.0", "x[vi] * 4.0")
    assert structural_hash(parse(other).prim("f")) != structural_hash(f)


BAD = {
    "a name in scope": (
        "            t = x[vi]\n            t = x[vi]\n            y[vi] = t",
        "already in scope",
    ),
    "a name of a variable": ("            vi = x[vi]\n            y[vi] = 1.0", "already in scope"),
    "a name of a buffer": ("            x = x[vi]\n            y[vi] = 1.0", "already in scope"),
    "no dtype": ("            t = 2.0\n            y[vi] = t", "cannot infer the dtype"),
    "a use before": ("            y[vi] = t\n            t = x[vi]", "no variable 't'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_binds_are_rejected(case):
    lines, message = BAD[case]
    text = (
        "@prim_func\ndef f(x: Buffer[(8,), f32], y: Out[(8,), f32]):\n    for i in range(8):\n"
        f'        with block("y"):\n            vi = spatial(i)\n{lines}\n'
    )
    with pytest.raises(TilewrightError, match=message):
        parse(text)


def test_a_bind_outside_of_blocks_is_rejected():
    text = (
        "@prim_func\ndef f(x: Buffer[(8,), f32], y: Out[(8,), f32]):\n    for i in range(8):\n"
        "        t = x[i]\n        y[i] = t\n"
    )
    with pytest.raises(TilewrightError, match="expected a buffer access"):
        parse(text)


def test_values_out_of_scope_are_violations():
    function = parse(TWO).prim("f")
    block = block_of(function)
    first = statements_of(block.body)[0]
    store = next(stores(block.body))
    lost = replace(block, body=replace(store, value=Local("w", f32)))
    twice = replace(block, body=Bind(first.local, first.value, block.body))
    wrong = replace(block, body=Bind(Local("q", f32), Load(store.buffer, ()), store))
    for bad, message in (
        (lost, "'w' is used outside"),
        (twice, "in its own scope"),
        (wrong, "expected 1 index"),
    ):
        body = replace(function.body, body=bad)
        found = loop_violations(replace(function, body=body))
        assert any(message in v.message for v in found), [v.message for v in found]


def test_a_reduction_of_a_bound_value_is_scheduled():
    sch = Schedule(
        parse("""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], s: Out[(), f32]):
    for k in range(n):
        with block("s"):
            vk = reduce(k)
            with init(): s[()] = 0.0
            t = x[vk] * 2.0
            s[()] += t * t + t
""")
    )
    _, inner = sch.split("k", factors=(None, 16))
    sch.decompose_reduction("s", sch.get_loops("s")[0])
    sch.vectorize(inner)
    exe = compile(sch, "cpu")
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        t = x.astype(np.float64) * 2
        np.testing.assert_allclose(exe(x), (t * t + t).sum(), rtol=1e-4, atol=1e-4)


SCOPES = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            if vi > 2:
                t = alloc((1,), f32)
                t[0] = x[vi]
                if vi > 4:
                    t[0] = 2.0
                u = t[0] * 2.0
                y[vi] = u
"""


def test_the_last_statement_in_scopes() -> None:
    (block,) = (s for s in walk(parse(SCOPES).prim("f").body) if isinstance(s, Block))
    last = last_of(block.body)
    assert isinstance(last, Store)
    assert last.buffer.name == "y"
    same = with_last(block.body, last)
    assert [type(s) for s in walk(same)] == [type(s) for s in walk(block.body)]
    nothing = Seq(())
    assert last_of(with_last(block.body, nothing)) is nothing
    other = If(next(s for s in walk(block.body) if isinstance(s, If)).condition, last, last)
    assert last_of(Seq((last, other))) is other
