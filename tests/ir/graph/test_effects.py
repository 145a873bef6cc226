"""Effects of bindings: which passes remove, merge, or move the calls of library functions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.graph.effects import has_effect, has_external_effects
from tilewright.ir.graph.nodes import CallDPSLibrary
from tilewright.ir.graph.visit import all_bindings
from tilewright.ir.interpreter import run_graph

X = np.arange(4, dtype=np.float32)
CALLS: list[str] = []
"""The names of the functions of this file that were called."""


def _register(name, effects):
    def reference(x):
        CALLS.append(name)
        return x + np.float32(1)

    tw.library_function(name, reference, operands=["x"], effects=effects)


_register("test.pure", "none")
_register("test.counted", "external")

TEXT = """
constant("w", (4,), f32)
k = symbols("k", lower=0)

@graph_func
def callee(x: Tensor[(4,), f32]):
    a: Tensor[(4,), f32] = call_library("{name}", x)
    return a

@graph_func
def main(x: Tensor[(4,), f32], p: Tensor[(), bool]):
    unused: Tensor[(4,), f32] = call_library("{name}", x)
    a: Tensor[(4,), f32] = call_library("{name}", x)
    b: Tensor[(4,), f32] = call_library("{name}", x)
    c: Tensor[(4,), f32] = call_library("{name}", const("w"))
    if p:
        d: Tensor[(4,), f32] = call_library("{name}", x)
        t = add(a, a)
        e: Tensor[(4,), f32] = t
    else:
        u = subtract(a, b)
        e: Tensor[(4,), f32] = u
    @loop(k, count=3)
    def z(r: Tensor[(4,), f32] = e):
        f: Tensor[(4,), f32] = call_library("{name}", x)
        s = add(r, c)
        return s
    g: Tensor[(4,), f32] = call(callee, x)
    y = add(z, b)
    return y
"""
COUNT = 4 + 1 + 3 + 1
"""The calls of the program if the branch is taken."""


def program(name):
    return tw.parse(TEXT.format(name=name), constants={"w": np.full(4, 2, np.float32)})


def expected(taken):
    a = X + 1
    return (2 * a if taken else a - a) + 9 + a


def called(run, *args):
    """Return the result of a function and the number of calls of library functions."""
    CALLS.clear()
    result = run(*args)
    return np.asarray(result).tolist(), len(CALLS)


@pytest.mark.parametrize("taken", [False, True])
def test_calls_with_effects_are_neither_removed_nor_repeated(taken):
    module = program("test.counted")
    count = COUNT - (not taken)
    wanted = (expected(taken).tolist(), count)
    assert called(lambda *a: run_graph(module, a)[0], X, np.array(taken)) == wanted
    exe = tw.compile(module, "cpu")
    assert called(exe, X, np.array(taken)) == wanted
    assert called(exe, X, np.array(taken)) == wanted


def test_unused_pure_calls_are_removed_and_those_of_weights_run_at_load():
    exe = tw.compile(program("test.pure"), "cpu")
    assert called(exe, X, np.array(False)) == (expected(False).tolist(), 3)  # a, b, and c at load
    assert called(exe, X, np.array(True)) == (expected(True).tolist(), 2)


@pytest.mark.parametrize(("name", "left"), [("test.pure", 3), ("test.counted", 6)])
def test_dead_code(name, left):
    sch = tw.Schedule(program(name))
    sch.dead_code("main")
    found = list(all_bindings(sch.module.graph("main").bindings))
    assert sum(isinstance(b.right, CallDPSLibrary) for b in found) == left
    assert any(b.value.name == "g" for b in found) == (name == "test.counted")


@pytest.mark.parametrize(("name", "merged"), [("test.pure", 7), ("test.counted", 0)])
def test_common_subexpressions(name, merged):
    sch = tw.Schedule(program(name))
    before = len(list(all_bindings(sch.module.graph("main").bindings)))
    sch.common_subexpressions("main")
    after = len(list(all_bindings(sch.module.graph("main").bindings)))
    assert before - after == (4 if merged else 0)
    for taken in (False, True):
        (found,) = run_graph(sch.module, [X, np.array(taken)])
        assert found.tolist() == expected(taken).tolist()


@pytest.mark.parametrize("name", ["test.pure", "test.counted"])
def test_calls_on_weights_move_to_load_time_without_effects(name):
    sch = tw.Schedule(program(name))
    made = sch.lift_transforms("main")
    assert (made.function == "prepare") == (name == "test.pure")
    assert called(lambda *a: run_graph(sch.module, a)[0], X, np.array(True))[0] == (
        expected(True).tolist()
    )


SORTED = """
constant("w", (4,), f32)

@graph_func
def main(x: Tensor[(4,), f32]):
    s = sort(const("w"))
    v = s[0]
    y = add(x, v)
    return y
"""


def test_fields_of_a_tuple_of_a_pure_call_move_to_load_time():
    weights = np.array([3, 1, 2, 0], np.float32)
    sch = tw.Schedule(tw.parse(SORTED, constants={"w": weights}))
    sch.legalize("main")
    sch.lift_transforms("main")
    main = sch.module.graph("main")
    assert not any(isinstance(b.right, CallDPSLibrary) for b in main.bindings)
    assert tw.compile(sch, "cpu")(X).tolist() == (X + np.sort(weights)).tolist()


WHOLE = """
constant("w", (4,), f32)

@graph_func
def main(x: Tensor[(4,), f32]):
    s: Tuple[Tensor[(4,), f32], Tensor[(4,), i64]] = call_library("std.sort", const("w"))
    v = s[0]
    y = add(x, v)
    return y, s
"""


def test_a_call_whose_tuple_is_a_result_is_not_moved():
    sch = tw.Schedule(tw.parse(WHOLE, constants={"w": X[::-1].copy()}))
    sch.lift_transforms("main")
    assert "prepare" not in sch.module.functions


def test_effects_of_bindings():
    module = program("test.counted")
    by_name = {b.value.name: b for b in all_bindings(module.graph("main").bindings)}
    effects = [n for n in ("a", "e", "z", "g", "y", "s") if has_effect(module, by_name[n])]
    assert effects == ["a", "e", "z", "g"]
    assert not has_external_effects("std.nonzero")
    assert has_external_effects("not.registered")
