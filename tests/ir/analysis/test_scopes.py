"""Scopes of statements and elements."""

from __future__ import annotations

from tilewright.ir.analysis.scopes import implied, sites
from tilewright.ir.loop.nodes import Load, Store, Where
from tilewright.ir.symbolic import TRUE

from tests.ir.script.texts import parse

TEXT = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for o in range((n + 3) // 4):
        for k in range(4):
            with block("y"):
                vi = spatial(n, o * 4 + k)
                guard(o * 4 + k < n)
                y[vi] = where(condition(vi > 0) and x[vi] > 0.0, x[vi - 1], 0.0)
"""


def test_the_near_view_isolates_the_block_and_the_far_view_sees_the_loops() -> None:
    store = next(s for s in sites(parse(TEXT).prim("f")) if isinstance(s.node, Store))
    near = {v.name for p in store.scope.near.predicates for v in p.free}
    far = {v.name for p in store.scope.far.predicates for v in p.free}
    assert near == {"vi", "n"}
    assert far == {"o", "k", "n"}
    assert store.scope.contained
    assert [b.var.name for b in store.scope.all_binders()] == ["o", "k"]
    assert [b.var.name for b in store.scope.near_binders()] == ["vi"]
    assert store.uid == store.block.uid


def test_a_binding_outside_of_its_domain_is_not_contained() -> None:
    text = TEXT.replace("guard(o * 4 + k < n)", "guard(o * 4 + k < n + 1)")
    store = next(s for s in sites(parse(text).prim("f")) if isinstance(s.node, Store))
    assert not store.scope.contained


def test_the_condition_of_a_choice_is_in_the_scope_of_its_sides() -> None:
    nodes = list(sites(parse(TEXT).prim("f")))
    choice = next(s for s in nodes if isinstance(s.node, Where))
    condition, shifted = (s for s in nodes if isinstance(s.node, Load))
    assert condition.scope is choice.scope
    assert [str(c) for c in shifted.scope.conditions] == ["vi > 0"]


def test_conditions_that_the_truth_of_an_element_implies() -> None:
    choice = next(s.node for s in sites(parse(TEXT).prim("f")) if isinstance(s.node, Where))
    assert str(implied(choice.condition)) == "vi > 0"
    assert implied(choice.condition, holds=False) is TRUE
