"""Tests for graph-level loops: rules, symbols that vary, text, and nested bindings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tilewright import Schedule
from tilewright.ir.graph.in_place_updates import InPlaceUpdates
from tilewright.ir.graph.live_ranges import LiveRanges
from tilewright.ir.graph.loops import loop_info, varying_symbols
from tilewright.ir.graph.nodes import AllocStorage, CopyTensor, Loop
from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.graph.regions import binding_of, regions
from tilewright.ir.graph.visit import all_bindings, all_values
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import ParseError, parse
from tilewright.ir.script.text import to_text
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.verify import violations

from tests.ir.script.texts import unverified

HEAD = """\
n, t, u, v, j, k = symbols("n t u v j k", lower=0)

"""
SCAN = f"""{HEAD}@graph_func
def main(x: Tensor[(n, 4), f32], h0: Tensor[(4,), f32], m: Tensor[(), i64], i0: Tensor[(), i64]):
    @loop(k, count=n)
    def y(h: Tensor[(4,), f32] = h0, e: Tensor[(4,), f32] = each(x)):
        a = add(h, e)
        b = relu(a)
        return a, b
    @loop(j)
    def z(
        i: Tensor[(), i64] = i0, c: Tensor[(t, 4), f32] = x
    ) -> Tuple[Tensor[(), i64], Tensor[(u, 4), f32], Tensor[(v,), i64]]:
        more = less(i, m)
        while more:
            d = concat(c, c, axis=0)
            s = add(i, 1)
            return s, d, i
    last = y[0]
    sums = y[1]
    grown = z[1]
    steps = z[2]
    return last, sums, grown, steps
"""


def expected(x: np.ndarray, h: np.ndarray, m: int) -> list[np.ndarray]:
    sums = np.empty_like(x)
    for k, row in enumerate(x):
        h = h + row
        sums[k] = np.maximum(h, 0)
    grown = np.concatenate([x] * 2 ** max(m, 0)) if len(x) else x
    return [h, sums, grown, np.arange(max(m, 0))]


@pytest.mark.parametrize("stage", ["dataflow", "memory"])
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("m", [-1, 0, 1, 3])
def test_the_interpreter_runs_scans_and_while_loops(n: int, m: int, stage: str) -> None:
    module = parse(SCAN)
    if stage == "memory":
        sch = Schedule(module)
        sch.legalize()
        sch.plan_memory()
        module = sch.module
        assert violations(module) == ()
        assert to_text(parse(to_text(module))) == to_text(module)
    x = np.arange(4 * n, dtype=np.float32).reshape(n, 4) - 5
    h = np.array([1, -20, 3, 0], np.float32)
    found = run_graph(module, [x, h, np.array(m), np.array(0)])
    for a, b in zip(found, expected(x, h, m), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_text_of_loops_is_exact() -> None:
    module = parse(SCAN)
    again = parse(to_text(module))
    assert to_text(again) == to_text(module)
    assert structural_hash(again) == structural_hash(module)
    assert violations(module) == ()


def test_renamed_loops_have_equal_hashes_and_changed_ones_do_not() -> None:
    module = parse(SCAN)
    renamed = parse(SCAN.replace("e: Tensor", "elem: Tensor").replace("(h, e)", "(h, elem)"))
    assert structural_hash(renamed) == structural_hash(module)
    texts = [
        SCAN.replace("each(x)", "each(w)").replace(
            "x: Tensor", "w: Tensor[(n, 4), f32], x: Tensor"
        ),
        SCAN.replace("return a, b", "return b, a"),
        SCAN.replace("return s, d, i", "return i, d, s"),
        SCAN.replace("= each(x)", "= h0").replace("return a, b", "return a, e, b"),
    ]
    hashes = {structural_hash(parse(t)) for t in texts}
    assert len(hashes | {structural_hash(module)}) == len(texts) + 1


def test_values_of_loops_have_unique_uids_and_can_be_selected() -> None:
    module = parse(SCAN)
    graph = module.graph()
    values = list(all_values(graph))
    assert len({v.uid for v in values}) == len(values)
    sch = Schedule(module)
    names = {"e": False, "h": False, "b": True, "more": True, "d": True}
    for name, bound in names.items():
        handle = sch.get_binding(name)
        assert handle.name == name
        assert (binding_of(graph, handle.uid) is not None) == bound
        assert name in sch.show(handle).text if hasattr(sch.show(handle), "text") else True


def test_regions_are_the_lists_of_bindings() -> None:
    found = [[b.value.name for b in r.bindings] for r in regions(parse(SCAN).graph())]
    assert found == [["y", "z", "last", "sums", "grown", "steps"], ["a", "b"], ["more"], ["d", "s"]]


PACKED = f"""{HEAD}@graph_func
def main(x: Tensor[(n, 3), i4], h: Tensor[(n,), i4], g: Tensor[(2,), i4]):
    @loop(k, count=n)
    def y(c: Tensor[(2,), i4] = g, e: Tensor[(3,), i4] = each(x)):
        return c, h
    return y
"""
BROKEN = [
    (
        "G23",
        PACKED,
        (
            "slices of 'e' are Tensor[(3,), i4]; expected a known number of whole bytes; cast the "
            "stacked tensor to a dtype of at least 8 bits"
        ),
    ),
    (
        "G23",
        PACKED,
        (
            "the slices of stacked output 'h' are Tensor[(n,), i4]; expected a known number of "
            "whole bytes; cast the stacked tensor to a dtype of at least 8 bits"
        ),
    ),
    (
        "G23",
        SCAN.replace("c: Tensor[(t, 4), f32]", "c: Tensor[(n, 4), f32]"),
        (
            "'c' is annotated Tensor[(n, 4), f32], but its next value is Tensor[(n * 2, 4), f32]: "
            "axis 0: expected n, got n * 2 (different for n = 1); write a symbol for a dimension "
            "that varies"
        ),
    ),
    (
        "G23",
        SCAN.replace("h0: Tensor[(4,), f32]", "h0: Tensor[(4,), f64]"),
        (
            "'h' is annotated Tensor[(4,), f32], but its initial value is Tensor[(4,), f64]: "
            "expected dtype f32, got f64"
        ),
    ),
    (
        "G23",
        SCAN.replace("Tensor[(u, 4), f32], ", "Tensor[(u, 5), f32], "),
        (
            "the last value of 'c' is annotated Tensor[(u, 5), f32], and the carried value "
            "Tensor[(t, 4), f32]: axis 1: expected 5, got 4"
        ),
    ),
    (
        "G23",
        SCAN.replace("return s, d, i", "return s, d, d").replace("(v,), i64", "(v, u, 4), f32"),
        "their shape depends on t, which differs between iterations",
    ),
    (
        "G23",
        SCAN.replace("Tensor[(v,), i64]", "Tensor[(3,), i64]"),
        (
            "stacked output 'i' is annotated Tensor[(3,), i64]; the number of iterations is not "
            "known before the loop, so expected a new symbol as dimension 0"
        ),
    ),
    (
        "G23",
        SCAN.replace("return s, d, i", "return s")
        .replace("= z[1]", "= relu(x)")
        .replace("= z[2]", "= relu(x)"),
        "expected a next value for each of the 2 carried values, got 1",
    ),
    (
        "G23",
        SCAN.replace("count=n", "count=3").replace("(n, 4)", "(2, 4)"),
        "the loop has 3 iterations, but 'e' is a slice of Tensor[(2, 4), f32]",
    ),
    (
        "G21",
        SCAN.replace("more = less(i, m)", "more = add(i, m)"),
        "expected a condition Tensor[(), bool], got more: Tensor[(), i64]",
    ),
    (
        "G21",
        SCAN.replace("more = less(i, m)", "more = less(h0, h0)"),
        "expected a condition Tensor[(), bool], got more: Tensor[(4,), bool]",
    ),
    ("G22", SCAN.replace(", count=n", ""), "neither a count nor a condition"),
    (
        "G22",
        SCAN.replace("@loop(k, count=n)", "@loop(n, count=3)"),
        "index 'n' is already defined outside of the loop",
    ),
    ("G11", SCAN.replace("count=n", "count=t"), "the right-hand side uses symbol 't'"),
    (
        "G9",
        SCAN.replace(
            "Tuple[Tensor[(), i64], Tensor[(u, 4), f32], Tensor[(v,), i64]]",
            "Tuple[Tensor[(), i64], Tensor[(u, 4), f32]]",
        ).replace("steps = z[2]", "steps = relu(x)"),
        "the loop has 3 results, but its annotation is",
    ),
]


@pytest.mark.parametrize(("rule", "text", "message"), BROKEN, ids=[b[2][:40] for b in BROKEN])
def test_malformed_loops_are_reported(rule: str, text: str, message: str) -> None:
    found = violations(unverified(text))
    assert any(message in v.message and v.rule.number == rule for v in found), list(map(str, found))


UNREADABLE = [
    ("h: Tensor[(4,), f32] = h0", "h: Tensor[(4,), f32]", "has no initial value"),
    ("@loop(k, count=n)", "@repeat(k)", "nested function 'y' is not a loop"),
    ("@loop(k, count=n)", "@loop(n + 1)", "expected a symbol as index"),
    ("        return a, b\n", "", "must end with a return statement"),
    (
        " -> Tuple[Tensor[(), i64], Tensor[(u, 4), f32], Tensor[(v,), i64]]",
        "",
        "loop 'z' needs an annotation, because a dimension varies",
    ),
    ("a = add(h, e)", "a = add(h, d)", "'d'"),
    ("grown = z[1]", "grown = relu(d)", "'d'"),
]


@pytest.mark.parametrize(("old", "new", "message"), UNREADABLE, ids=[u[2] for u in UNREADABLE])
def test_unreadable_loops_are_rejected(old: str, new: str, message: str) -> None:
    assert old in SCAN
    with pytest.raises(ParseError, match=message.replace("(", r"\(")):
        parse(SCAN.replace(old, new, 1))


def test_only_symbols_of_the_loop_vary() -> None:
    graph = parse(SCAN).graph()
    (counted, grown) = (b for b in graph.bindings if isinstance(b.right, Loop))
    outer = {d for p in graph.params for d in getattr(p.value.info, "shape", ())}
    assert [s.name for s in varying_symbols(counted.right, outer)] == ["k"]
    assert [s.name for s in varying_symbols(grown.right, outer)] == ["j", "t"]
    made = loop_info(grown.right, outer)
    assert str(made) == "Tuple[Tensor[(), i64], Tensor[(t, 4), f32], Tensor[(j_count,), i64]]"


UPDATED = f"""{HEAD}@prim_func
def put(c: InOut[(8,), f32], x: Buffer[(8,), f32]):
    for a in range(8):
        c[a] = c[a] + x[a]

@prim_func
def double(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for a in range(8):
        y[a] = x[a] * 2.0

@graph_func
def main(s: State[Tensor[(8,), f32]], x: Tensor[(8,), f32]):
    BODY
"""


def planned(body: str) -> list[str]:
    """Return the copies in the plan of a function with a state and a loop."""
    module = parse(UPDATED.replace("BODY", body.strip()))
    assert [str(v) for v in violations(module)] == []
    result = plan_memory(module, module.graph())
    copies = (b.right for b in all_bindings(result.bindings) if isinstance(b.right, CopyTensor))
    x, s = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    before, after = s.copy(), s.copy()
    first = run_graph(module, [before, x])
    second = run_graph(module.with_functions(result), [after, x])
    for a, b in zip((*first, before), (*second, after), strict=True):
        np.testing.assert_array_equal(a, b)
    return [c.reason for c in copies]


def test_a_carried_state_is_updated_in_place() -> None:
    body = """
    @loop(k, count=3)
    def y(c: Tensor[(8,), f32] = s):
        d = call_tir(put, c, x, updates=(0,))
        return d
    return x, updates(s=y)
"""
    assert planned(body) == []


def test_a_value_from_outside_of_a_loop_is_not_updated_in_place() -> None:
    body = """
    a: Tensor[(8,), f32] = call_tir(double, x)
    @loop(k, count=3)
    def y(c: Tensor[(8,), f32] = s):
        b = call_tir(put, a, c, updates=(0,))
        d = call_tir(put, c, b, updates=(0,))
        return d
    return x, updates(s=y)
"""
    assert planned(body) == ["'a' is used later, by the next iteration of 'y'"]


def test_a_state_that_is_used_after_the_loop_is_copied_before_it() -> None:
    body = """
    @loop(k, count=3)
    def y(c: Tensor[(8,), f32] = s):
        d = call_tir(put, c, x, updates=(0,))
        return d
    return y
"""
    reason = "the initial value of 'c': 's' is used later, by the parameter, which keeps its value"
    assert planned(body) == [reason]


def test_exchanged_carried_values_are_copied_as_if_at_the_same_time() -> None:
    body = """
    @loop(k, count=3)
    def y(c: Tensor[(8,), f32] = s, d: Tensor[(8,), f32] = x):
        e = call_tir(put, c, x, updates=(0,))
        return d, e
    p = y[0]
    q = y[1]
    return p, q, updates(s=p)
"""
    assert "values are exchanged" in planned(body)


def test_storages_that_a_loop_uses_live_until_its_end() -> None:
    body = """
    a: Tensor[(8,), f32] = call_tir(double, x)
    @loop(k, count=3)
    def y(c: Tensor[(8,), f32] = s):
        b: Tensor[(8,), f32] = call_tir(double, a)
        d: Tensor[(8,), f32] = call_tir(double, b)
        e = call_tir(put, c, d, updates=(0,))
        return e
    return x, updates(s=y)
"""
    module = parse(UPDATED.replace("BODY", body.strip()))
    result = plan_memory(module, module.graph())
    live = LiveRanges(result)
    (loop,) = (b for b in result.bindings if isinstance(b.right, Loop))
    inside = [live.positions[b] for b in all_bindings(loop.right.body.bindings)]
    ranges = {v.name: r for v, r in live.ranges.items()}
    assert ranges["a_storage"].last > max(inside)
    assert ranges["b_storage"].last < ranges["a_storage"].last
    assert sum(isinstance(b.right, AllocStorage) for b in all_bindings(result.bindings)) == 3
    assert all(a < b for a, b in pairwise(inside))


def test_decisions_about_loops_have_reasons() -> None:
    module = parse(SCAN)
    graph = module.graph()
    decisions = InPlaceUpdates(graph)
    loops = [b for b in graph.bindings if isinstance(b.right, Loop)]
    assert decisions.reason(loops[0].value, 0) == "parameter 'h0' has access mode 'in'"
