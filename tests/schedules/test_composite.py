"""Composite steps: recorded as one group, applied completely or not at all."""

from __future__ import annotations

import copy
import random
import threading
from collections import Counter
from typing import Literal

import pytest
from hypothesis import given, settings, strategies as st

from tilewright.errors import TilewrightError
from tilewright.ir.loop.nodes import IndexMap
from tilewright.ir.symbolic import SymInt
from tilewright.schedules import (
    STEPS,
    BlockRef,
    CompositeError,
    CompositeFailedError,
    CompositeResultError,
    LoopRef,
    RecursiveCompositeError,
    Schedule,
    StaleEditError,
    StepError,
    composite,
    from_json,
    from_python,
    registry,
    to_json,
    to_python,
)
from tilewright.schedules.composite import (
    MAX_DEPTH,
    BodyRequirement,
    CompositeDepthError,
    SuggestionFailedWarning,
)
from tilewright.schedules.methods import ScheduleMethods
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.problem import RuleNotApplicableError
from tilewright.schedules.requirement import CommonRequirement

from tests.schedules.helpers import CHAIN, MATMUL, schedule
from tests.schedules.random_steps import chains, legal_step, loop_level, loops
from tests.strategies import prim_funcs


@pytest.fixture(autouse=True, scope="module")
def _steps_of_these_tests():
    """Remove the steps that the tests define."""
    before = set(STEPS)
    yield
    for name in set(STEPS) - before:
        del registry._STEPS[name]
        delattr(ScheduleMethods, name)


def strips():
    @composite
    def strip(sch, loop: LoopRef, lanes: int = 8) -> LoopRef:
        """Vectorize a part of a loop.

        Parameters
        ----------
        loop : LoopRef
            The loop.
        lanes : int
            The number of lanes.
        """
        outer, inner = sch.split(loop, factors=(None, lanes))
        sch.vectorize(inner)
        return outer

    return strip


def loop_of(sch, index):
    return sch.get_loops(sch.get_block("mm"))[index]


def test_steps_are_one_group_and_one_version():
    strip = strips()
    sch = schedule(MATMUL)
    j = loop_of(sch, 1)
    before = sch.head
    seen = []
    sch.subscribe(seen.append)
    outer = sch.strip(j, lanes=8)
    assert (sch.state.loop(outer).var.name, len(sch.history)) == ("j_0", 4)
    assert seen == [sch.head]
    (group,) = sch.trace.groups
    assert (group.op, group.first, group.stop, group.names) == ("strip", 2, 4, ("j_0",))
    assert [s.op for s in sch.trace.steps[2:]] == ["split", "vectorize"]
    assert sch.head.step == group
    assert sch.head.parent == before.id
    assert sch.undo() is before
    assert sch.redo().step == group
    sch.undo()
    assert sch.check(strip(j)) == ()
    assert sch.head is before


def test_operands_of_a_click_are_located_before_the_group():
    strips()
    sch = schedule(MATMUL)
    j = next(LoopRef("matmul", x.uid, "j") for x in sch.state.tree("matmul").loops.values()
             if x.var.name == "j")  # fmt: skip
    sch.strip(j)
    ops = ["get_function", "get_block", "get_loops", "split", "vectorize"]
    assert [s.op for s in sch.trace.steps] == ops
    assert sch.trace.groups[0].first == 3


def test_text_of_both_forms_leads_to_the_same_version(golden):
    strips()
    sch = schedule(MATMUL)
    outer = sch.strip(loop_of(sch, 1))
    sch.unroll(outer)
    golden("composite.txt", "\n\n".join(
        [to_python(sch.trace), to_python(sch.trace, fold=True), to_json(sch.trace)]
    ))  # fmt: skip
    for text, parse in ((to_python(sch.trace), from_python), (to_json(sch.trace), from_json)):
        again = schedule(MATMUL)
        assert again.replay(parse(text)).error is None
        assert again.head.id == sch.head.id
        assert again.trace == sch.trace
    folded = schedule(MATMUL)
    assert folded.replay(from_python(to_python(sch.trace, fold=True))).error is None
    assert folded.head.id == sch.head.id


def test_exact_python_text_is_executable():
    strips()
    sch = schedule(MATMUL)
    sch.unroll(sch.strip(loop_of(sch, 1)))
    again = schedule(MATMUL)
    exec(to_python(sch.trace), {"sch": again})
    assert (again.head.id, again.trace) == (sch.head.id, sch.trace)


def test_a_failure_in_the_middle_applies_nothing(golden):
    strip = strips()

    @composite
    def both(sch, block: BlockRef) -> None:
        _, j, k = sch.get_loops(block)
        sch.strip(sch.strip(j, 8), 0)
        sch.parallel(k)

    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    head, steps = sch.head, sch.trace
    with pytest.raises(CompositeError) as caught:
        sch.both(mm)
    assert isinstance(caught.value, StepError)
    assert (caught.value.position, sch.head, sch.trace) == (4, head, steps)
    assert [p.requirement for p in caught.value.problems] == [Split.Requires.POSITIVE_FACTORS]
    assert caught.value.problems[0].fixes == ()
    golden("composite_error.txt", str(caught.value))
    (problem,) = sch.check(STEPS["both"](mm))
    assert problem.requirement is Split.Requires.POSITIVE_FACTORS
    assert problem.message.startswith("step 4, strip(loop=j_0, lanes=0)")
    (missing,) = sch.check(strip(LoopRef("matmul", 10**9, "q")))
    assert missing.requirement is CommonRequirement.TARGETS_EXIST


def test_a_body_may_handle_the_failure_of_a_step():
    @composite
    def attempt(sch, loop: LoopRef) -> None:
        try:
            sch.split(loop, factors=(None, 0))
        except StepError:
            sch.split(loop, factors=(None, 4))

    sch = schedule(MATMUL)
    sch.attempt(loop_of(sch, 1))
    assert len(sch.trace.groups[0]) == 1


def test_other_errors_name_the_group():
    @composite
    def lost(sch, loop: LoopRef) -> None:
        sch.split(loop, factors=(None, 4))
        sch.get_block("nothing")

    @composite
    def unsupported(sch, loop: LoopRef) -> None:
        raise RuleNotApplicableError("the loop is not a nice one")

    @composite
    def bug(sch, loop: LoopRef) -> None:
        sch.split(loop, factors=(None, 4))
        raise ZeroDivisionError

    sch = schedule(MATMUL)
    j = loop_of(sch, 1)
    head = sch.head
    with pytest.raises(
        CompositeFailedError, match=r"lost\(loop=j\) failed at its step 2: no block"
    ):
        sch.lost(j)
    (problem,) = sch.check(STEPS["lost"](j))
    assert problem.requirement is BodyRequirement.BODY_RUNS
    with pytest.raises(StepError, match=r"unsupported\(loop=j\) does not apply"):
        sch.unsupported(j)
    (problem,) = sch.check(STEPS["unsupported"](j))
    assert problem.requirement is BodyRequirement.BODY_SUPPORTS_PROGRAM
    with pytest.raises(ZeroDivisionError):
        sch.bug(j)
    assert sch.head is head


def test_recursion_names_the_cycle():
    @composite
    def first(sch, loop: LoopRef) -> None:
        sch.second(loop)

    @composite
    def second(sch, loop: LoopRef) -> None:
        sch.first(loop)

    @composite
    def itself(sch) -> None:
        sch.itself()

    sch = schedule(MATMUL)
    with pytest.raises(RecursiveCompositeError, match="first -> second -> first"):
        sch.first(loop_of(sch, 0))
    with pytest.raises(RecursiveCompositeError, match="itself -> itself"):
        sch.itself()
    assert sch.trace.groups == ()


def test_the_depth_is_limited():
    def made(name, inner):
        def body(sch, loop: LoopRef) -> None:
            getattr(sch, inner)(loop)

        body.__name__ = name
        composite(body)

    made("level_0", "unroll")
    for level in range(1, MAX_DEPTH + 1):
        made(f"level_{level}", f"level_{level - 1}")
    sch = schedule(MATMUL)
    with pytest.raises(CompositeDepthError, match="'level_0' is nested in 32 others"):
        getattr(sch, f"level_{MAX_DEPTH}")(loop_of(sch, 1))
    assert sch.trace.groups == ()
    getattr(sch, f"level_{MAX_DEPTH - 1}")(loop_of(sch, 1))
    assert len(sch.trace.groups) == MAX_DEPTH
    assert str(from_python(str(sch.trace))) == str(sch.trace)


def test_suggestions_that_fail_are_left_out_with_a_warning():
    def broken(state, selection):
        raise KeyError("typo")

    @composite(suggest=broken)
    def with_broken_menu(sch, loop: LoopRef) -> None:
        sch.unroll(loop)

    sch = schedule(MATMUL)
    with pytest.warns(SuggestionFailedWarning, match="with_broken_menu failed: KeyError: 'typo'"):
        found = sch.suggest(loop_of(sch, 1))
    assert any(suggestion.step.verb() == "unroll" for suggestion in found)
    del registry._STEPS["with_broken_menu"]
    delattr(ScheduleMethods, "with_broken_menu")


def test_nothing_is_recorded_without_a_step():
    @composite
    def idle(sch, loop: LoopRef) -> LoopRef:
        return loop

    sch = schedule(MATMUL)
    i = loop_of(sch, 0)
    head = sch.head
    assert sch.idle(i) == i
    assert sch.head is head
    fresh = schedule(MATMUL)
    fresh.idle("i")
    assert len(fresh.trace) == 0


def test_results_must_be_declared():
    @composite
    def undeclared(sch, loop: LoopRef):
        return sch.split(loop, factors=(None, 4))

    @composite
    def stale(sch, loop: LoopRef) -> LoopRef:
        sch.split(loop, factors=(None, 4))
        return loop

    sch = schedule(MATMUL)
    j = loop_of(sch, 1)
    with pytest.raises(
        CompositeResultError, match=r"returned \(LoopRef, LoopRef\); it declares None"
    ):
        sch.undeclared(j)
    with pytest.raises(CompositeResultError, match="returned 'j': loop 'j' no longer exists"):
        sch.stale(j)
    assert len(sch.trace) == 2


def test_results_inside_a_group_are_looked_up_again():
    @composite
    def halves(sch, loop: LoopRef) -> None:
        sch.split(loop, factors=(None, 4))

    sch = schedule(MATMUL)
    sch.halves(loop_of(sch, 1))
    sch.unroll("j_1")
    folded = sch.trace.folded()
    assert [s.op for s in folded.steps][2:] == ["halves", "get_loops", "unroll"]
    again = schedule(MATMUL)
    assert again.replay(folded).error is None
    assert again.head.id == sch.head.id


def test_a_cell_may_define_a_step_again():
    source = """
import tilewright as tw
from tilewright.schedules import LoopRef

@tw.composite
def chop(sch, loop: LoopRef, size: int = {size}) -> tuple[LoopRef, LoopRef]:
    return sch.split(loop, factors=(None, size))
"""
    for size in (4, 8):
        cell: dict[str, object] = {"__name__": "__main__"}
        exec(source.format(size=size), cell)
        sch = schedule(MATMUL)
        _, inner = sch.chop(loop_of(sch, 1))
        assert str(sch.state.loop(inner).extent) == str(size)
        assert STEPS["chop"] is cell["chop"]
    assert STEPS["chop"].family == "user"
    assert STEPS["chop"].summary() == "Apply the steps of ``chop``."


def test_decorator_options():
    def suggested(state, selection):
        if isinstance(selection, LoopRef):
            yield STEPS["halve"](selection)

    @composite(returns=tuple[LoopRef, ...], suggest=suggested)
    def halve(sch, loop: LoopRef, mode: Literal["x"] = "x"):
        return sch.split(loop, factors=(None, 2))

    sch = schedule(MATMUL)
    found = [s for s in sch.suggest(loop_of(sch, 1)) if s.step.verb() == "halve"]
    assert [s.applicable for s in found] == [True]
    assert len(sch.halve("j")) == 2


def test_a_moved_head_rejects_the_whole_step():
    strip = strips()
    sch = schedule(MATMUL)
    j = loop_of(sch, 1)
    expected = sch.head.id
    sch.parallel("i")
    head = sch.head
    with pytest.raises(StaleEditError, match="strip"):
        sch.apply(strip(j), expected=expected)
    assert sch.head is head


def test_concurrent_edits_leave_one_winner():
    barrier = threading.Barrier(2, timeout=20)

    @composite
    def slow(sch, loop: LoopRef, size: int) -> None:
        sch.split(loop, factors=(None, size))
        barrier.wait()

    sch = schedule(MATMUL)
    j = loop_of(sch, 1)
    seen, errors = [], []
    sch.subscribe(lambda node: seen.append(len(node.state.trace)))

    def edit(size):
        try:
            sch.slow(j, size)
        except TilewrightError as error:
            errors.append(error)

    threads = [threading.Thread(target=edit, args=(size,)) for size in (4, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [type(e) for e in errors] == [StaleEditError]
    assert seen == [3]
    assert len(sch.trace.groups) == 1


def test_branches_share_groups():
    strips()
    sch = schedule(MATMUL)
    j = loop_of(sch, 1)
    branch = sch.branch()
    branch.strip(j)
    assert len(sch.trace.groups) == 0
    sch.goto(branch.head.id)
    assert sch.trace.groups == branch.trace.groups


def test_nested_groups_and_an_unknown_step_replay():
    strips()

    @composite
    def outer(sch, loop: LoopRef) -> LoopRef:
        return sch.strip(loop)

    sch = schedule(MATMUL)
    sch.unroll(sch.outer(loop_of(sch, 1)))
    text = to_python(sch.trace).replace("'outer'", "'forgotten'")
    assert [(g.op, g.first, g.stop) for g in sch.trace.groups] == [("outer", 2, 4), ("strip", 2, 4)]
    again = schedule(MATMUL)
    again.replay(from_python(text)).completed()
    assert str(again) == str(sch)
    assert [g.op for g in again.trace.groups] == ["forgotten", "strip"]
    assert again.trace == from_json(to_json(again.trace))
    folded = again.trace.folded()
    assert [s.op for s in folded.steps] == ["get_block", "get_loops", "forgotten", "unroll"]
    outcome = schedule(MATMUL).replay(folded)
    assert outcome.done == 2
    assert outcome.error is not None
    assert "no step 'forgotten'" in outcome.error.message


def test_a_replay_that_stops_inside_groups_keeps_the_groups_of_the_applied_steps():
    strips()

    @composite
    def outer(sch, loop: LoopRef) -> LoopRef:
        return sch.strip(loop)

    sch = schedule(MATMUL)
    sch.unroll(sch.outer(loop_of(sch, 1)))
    text = to_python(sch.trace).replace("sch.vectorize(", "sch.unknown(")
    again = schedule(MATMUL)
    outcome = again.replay(from_python(text))
    assert (outcome.done, outcome.pending[0].op) == (3, "unknown")
    trace = outcome.state.trace
    found = [(g.op, g.first, g.stop, g.names) for g in trace.groups]
    assert found == [("outer", 2, 3, ("j_0",)), ("strip", 2, 3, ("j_0",))]
    assert trace == from_json(to_json(trace))
    assert schedule(MATMUL).replay(trace).completed().trace == trace


def test_a_chain_of_kernels_is_not_changed_by_a_check():
    strip = strips()
    sch = schedule(CHAIN)
    before = sch.module
    assert sch.check(strip(sch.get_loop("i"))) == ()
    assert sch.module is before


def _walk(sch: Schedule, seed: int, inner: str) -> tuple[LoopRef, ...]:
    """Apply random legal steps and random composite steps, and return random loops."""
    rng = random.Random(seed)
    for _ in range(rng.randint(0, 3)):
        if inner and rng.random() < 0.5:
            getattr(sch, inner)(seed=rng.randint(0, 10**6))
        else:
            step = legal_step(rng, sch.state, rng.choice(loop_level()), tries=2)
            if step is not None:
                sch.apply(step)
    found = loops(sch.state)
    return tuple(rng.sample(found, rng.randint(0, len(found))))


def _check_round_trip(func, seed):
    rng = random.Random(seed)
    sch = Schedule(func)
    for _ in range(3):
        for loop in getattr(sch, rng.choice(["walk_1", "walk_2"]))(seed=rng.randint(0, 10**6)):
            if not sch.check(Split(loop, (None, 2))):
                sch.split(loop, factors=(None, 2))
                break
    trace = sch.trace
    trace.check_groups()
    assert from_json(to_json(trace)) == trace
    texts = [to_json(trace), to_python(trace), to_python(trace, fold=True)]
    for text, parse in zip(texts, (from_json, from_python, from_python), strict=True):
        again = Schedule(func)
        assert again.replay(parse(text)).error is None
        assert again.head.id == sch.head.id
        assert again.trace == trace
    executed = Schedule(func)
    exec(to_python(trace), {"sch": executed})
    assert executed.head.id == sch.head.id
    return trace


def test_random_groups_round_trip_and_replay_to_the_same_version():
    @composite
    def walk_0(sch, seed: int) -> tuple[LoopRef, ...]:
        return _walk(sch, seed, "")

    @composite
    def walk_1(sch, seed: int) -> tuple[LoopRef, ...]:
        return _walk(sch, seed, "walk_0")

    @composite
    def walk_2(sch, seed: int) -> tuple[LoopRef, ...]:
        return _walk(sch, seed, "walk_1")

    groups: Counter[str] = Counter()

    @settings(max_examples=60)
    @given(prim_funcs() | chains(), st.integers(0, 2**32))
    def run(func, seed):
        groups.update(group.op for group in _check_round_trip(func, seed).groups)

    run()
    assert min(groups[f"walk_{k}"] for k in range(3)) >= 20


def test_values_of_all_types_round_trip():
    @composite
    def valued(
        sch,
        loop: LoopRef,
        sizes: tuple[SymInt, ...],
        *,
        term: SymInt | None = None,
        index_map: IndexMap | None = None,
        text: str = "",
        number: float = 0.0,
    ) -> LoopRef:
        return sch.split(loop, factors=(None, *sizes))[0]

    sch = schedule(SYMBOLIC)
    sch.valued(
        "i",
        ("n", 4),
        term="n+1",
        index_map="lambda a, b: (b, a)",
        text='x"\n',
        number=float("-inf"),
    )
    for trace in (from_python(to_python(sch.trace)), from_json(to_json(sch.trace))):
        again = schedule(SYMBOLIC)
        assert again.replay(trace).error is None
        assert (again.trace, again.head.id) == (sch.trace, sch.head.id)


SYMBOLIC = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
"""


def test_a_group_of_a_changed_step_keeps_its_arguments():
    def changing(sch, loop: LoopRef, size: SymInt = 4) -> None:
        sch.split(loop, factors=(None, size))

    composite(changing)
    sch = schedule(MATMUL)
    sch.changing("j")
    changing.__annotations__["size"] = "BlockRef"
    changing.__defaults__ = None
    composite(changing)

    again = schedule(MATMUL)
    assert again.replay(from_python(to_python(sch.trace))).error is None
    assert (again.trace, again.head.id) == (sch.trace, sch.head.id)


def test_a_step_that_changes_nothing_is_not_a_group():
    @composite
    def nothing(sch, loop: LoopRef) -> None:
        sch.get_blocks(loop.function)

    sch = schedule(MATMUL)
    outcome = sch.replay(from_python(
        "j = sch.get_loop('j')\nwith sch.composite('g'):\n    sch.nothing(j)\nsch.unroll(j)"
    ))  # fmt: skip
    assert outcome.error is None
    assert (sch.trace.groups, [s.op for s in sch.trace.steps]) == ((), ["get_loop", "unroll"])


def test_recursion_in_a_thread_is_an_error():
    calls = []

    @composite
    def threaded(sch, loop: LoopRef) -> None:
        calls.append(loop)
        assert len(calls) < 10
        errors = []

        def run():
            try:
                sch.threaded(loop)
            except TilewrightError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        raise errors[0]

    sch = schedule(MATMUL)
    with pytest.raises(RecursiveCompositeError, match="threaded -> threaded"):
        sch.threaded("j")
    assert len(calls) == 1


def test_a_check_reports_an_error_of_the_function():
    @composite
    def broken(sch, loop: LoopRef) -> None:
        raise ZeroDivisionError("by zero")

    sch = schedule(MATMUL)
    (problem,) = sch.check(broken(sch.get_loop("j")))
    assert problem.requirement is BodyRequirement.BODY_RUNS
    assert problem.message == "broken(loop=j) raises ZeroDivisionError: by zero"


def test_steps_traces_and_errors_are_copied():
    sch = schedule(MATMUL)
    step = STEPS["tile"](sch.get_loop("i"), sch.get_loop("j"), (0, 8))
    assert copy.copy(step) == copy.deepcopy(step) == step
    with pytest.raises(CompositeError) as caught:
        sch.apply(step)
    restored = copy.deepcopy(caught.value)
    assert (str(restored), restored.problems) == (str(caught.value), caught.value.problems)
    sch.tile("i", "j", (4, 8))
    assert copy.deepcopy(sch.trace) == sch.trace
