"""Tests of kernels: equal functions are added once."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.loop.nodes import Block, For, Store
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, kernels
from tilewright.schedules.kernels import (
    KernelTable,
    add_origins,
)

COPY = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("copy"):
            vi = spatial(i)
            y[vi] = x[vi]
"""


def test_equal_functions_are_added_once_with_the_origins_of_all():
    function = parse(COPY).prim("f")
    table = KernelTable(Module())
    names = [table.add(add_origins(function, frozenset({f"layer{k}"}))) for k in range(3)]
    other = parse(COPY.replace("x[vi]\n", "x[vi] + 1.0\n")).prim("f")
    assert names == ["f"] * 3
    assert table.add(other) == "f_1"
    module = table.module()
    assert list(module.functions) == ["f", "f_1"]
    expected = {"layer0", "layer1", "layer2"}
    assert module.prim("f").origins == expected
    for statement in walk(module.prim("f").body):
        if isinstance(statement, For | Block | Store):
            assert statement.origins == expected


def test_functions_of_the_module_get_the_origins_of_equal_ones():
    function = parse(COPY).prim("f")
    table = KernelTable(Module().with_functions(function))
    assert table.add(add_origins(replace(function, name="g"), frozenset({"layer"}))) == "f"
    assert table.module().prim("f").origins == {"layer"}


def test_without_new_origins_the_function_is_kept():
    function = parse(COPY).prim("f")
    table = KernelTable(Module().with_functions(function))
    table.add(replace(function, name="g"))
    assert table.module().prim("f") is function


def test_origins_are_united_once_per_kernel(monkeypatch):
    calls: list[int] = []
    merge = kernels.merge_origins
    monkeypatch.setattr(
        kernels, "merge_origins", lambda parts: (calls.append(len(parts)), merge(parts))[1]
    )
    function = parse(COPY).prim("f")
    table = KernelTable(Module())
    for k in range(200):
        table.add(add_origins(function, frozenset({f"layer{k}"})))
    table.module()
    assert sum(calls) <= 200 * 4


def test_a_new_symbol_does_not_have_the_name_of_a_loop():
    sch = Schedule(
        parse("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 1, 4), f32], w: Tensor[(1, 1, 2), f32]):
    a = pad(x, (1, 0, 0), (0, 0, 0))
    b = conv(a, w)
    return b
""")
    )
    sch.legalize()
    assert "n_1" in {s.var.name for s in walk(sch.module.prim("conv").body) if isinstance(s, For)}
    assert violations(sch.module) == ()
    assert to_text(parse(to_text(sch.module))) == to_text(sch.module)
