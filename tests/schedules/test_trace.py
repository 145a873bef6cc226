"""Traces: recording, text in both forms, replay elsewhere, editing in the middle."""

import json
from pathlib import Path

import pytest

from tilewright.ir.script import to_text
from tilewright.schedules import (
    ResultOf,
    Schedule,
    State,
    StepError,
    Trace,
    TraceError,
    TraceMismatchError,
    TraceStep,
    UnknownStepError,
    from_json,
    from_python,
    replay,
    to_json,
    to_python,
)
from tilewright.schedules.handles import LoopRef
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.suggest_names import NotFoundError

from tests.schedules.helpers import CHAIN, MATMUL, schedule

FLOAT_MATMUL = MATMUL.replace("i32", "f32").replace("= 0", "= 0.0")


def tiled(text: str = MATMUL) -> Schedule:
    sch = schedule(text)
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    i0, i1 = sch.split(i, factors=(None, 14))
    j0, j1 = sch.split(j, factors=(None, 8))
    sch.reorder((i0, j0, k, i1, j1))
    copy = sch.cache_write(mm, "C")
    sch.reverse_compute_at(copy, j0)
    sch.decompose_reduction(mm, k)
    packed = sch.cache_read(mm, "B", "global")
    sch.transform_layout("B_global", lambda a, b: (b // 8, a, b % 8))
    sch.compute_at(packed, i0)
    sch.vectorize(j1)
    sch.annotate(k, "prefetch", 4)
    return sch


def test_both_forms(golden):
    sch = tiled()
    golden("trace.json.txt", to_json(sch.trace))
    golden("trace.py.txt", to_python(sch.trace))


def test_json_round_trip_replays_to_the_same_program():
    sch = tiled()
    trace = from_json(to_json(sch.trace))
    assert trace == sch.trace
    other = schedule(MATMUL)
    outcome = other.replay(trace)
    assert (outcome.done, outcome.pending, outcome.error) == (len(trace), (), None)
    assert str(other) == str(sch)


def test_python_round_trip_replays_to_the_same_program():
    sch = tiled()
    other = schedule(MATMUL)
    other.replay(from_python(to_python(sch.trace))).completed()
    assert str(other) == str(sch)
    assert to_python(other.trace) == to_python(sch.trace)


def test_on_another_shape_different_decisions_are_reported():
    sch = tiled()
    other = schedule(MATMUL.replace("24", "20"))
    outcome = other.replay(sch.trace)
    assert outcome.error is None
    assert [str(c) for c in outcome.changes] == [
        "step 3 (split) decided {'guard': 'predicate'}, recorded {'guard': 'none'}",
        "step 12 (transform_layout) decided {'padded': True}, recorded {'padded': False}",
    ]
    assert other.verify().ok


def test_on_another_module_the_step_is_named():
    sch = tiled()
    outcome = schedule(CHAIN).replay(sch.trace)
    assert outcome.done == 0
    assert isinstance(outcome.error, NotFoundError)
    expected = f"Replay(0 of {len(sch.trace)} steps applied; then get_block: no block 'mm'"
    assert repr(outcome).startswith(expected)
    with pytest.raises(TraceMismatchError, match=r"step 0 \(get_block\).*no block 'mm'"):
        outcome.completed()


def test_editing_in_the_middle_replays_the_rest():
    sch = tiled()
    edited = sch.trace.changed(2, factors=(None, 6))
    outcome = replay(State.start(schedule(MATMUL).module), edited)
    assert outcome.error is None
    bindings = {
        str(v.binding) for b in outcome.state.tree("matmul").blocks.values() for v in b.iters
    }
    assert "i_0 * 6 + i_1" in bindings


def test_an_edit_that_breaks_a_later_step_keeps_the_rest_as_pending():
    sch = tiled()
    edited = sch.trace.changed(2, factors=(None, 0))
    other = schedule(MATMUL)
    outcome = other.replay(edited)
    assert outcome.done == 2
    assert isinstance(outcome.error, StepError)
    assert [s.op for s in outcome.pending[:3]] == ["split", "split", "reorder"]
    assert len(other.trace) == 2


def test_a_dropped_step_leaves_its_users_dangling():
    sch = tiled()
    outcome = schedule(MATMUL).replay(sch.trace.without(2))
    assert outcome.pending[0].op == "reorder"
    assert isinstance(outcome.error, TraceError)
    assert "was dropped" in outcome.error.message


def test_an_inserted_step_shifts_later_steps():
    sch = tiled()
    note = TraceStep("annotate", (("target", ResultOf(1, 2)), ("key", "note"), ("value", 1)))
    outcome = schedule(MATMUL).replay(sch.trace.inserted(2, note))
    assert outcome.error is None
    assert "note" in str(Schedule(outcome.state.module))


def test_an_argument_that_is_not_there():
    with pytest.raises(TraceError, match="no argument 'factor'"):
        tiled().trace.changed(2, factor=3)


def test_an_unknown_step_is_opaque_until_replayed():
    sch = tiled()
    lines = to_json(sch.trace).splitlines()
    lines.insert(
        3, json.dumps({"op": "teleport", "args": {"loop": {"ref": [1, 0]}, "n": [1, None]}})
    )
    trace = Trace(from_json("\n".join(lines[:4])).steps)
    assert trace[2].op == "teleport"
    assert from_json(to_json(trace)) == trace
    assert "sch.teleport(loop=i, n=(1, None))" in to_python(trace)
    outcome = schedule(MATMUL).replay(trace)
    assert outcome.done == 2
    assert isinstance(outcome.error, UnknownStepError)
    assert "no step 'teleport'" in outcome.error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("[]", "not a JSON object"),
        ('{"trace": "other"}', "not the header"),
        ('{"trace": "tilewright", "schema": 99}', "not the header"),
        ('{"trace": "tilewright", "schema": 1}\n{', "line 2 is not valid JSON"),
        ('{"trace": "tilewright", "schema": 1}\n{"op": 3}', '"op" must be a string'),
        ('{"trace": "tilewright", "schema": 1}\n{"op": "x", "args": {}, "names": 3}', '"names"'),
        (
            '{"trace": "tilewright", "schema": 1}\n{"op": "x", "args": {"a": {"b": 1}}}',
            "not a valid argument",
        ),
        (
            '{"trace": "tilewright", "schema": 1}\n{"op": "x", "args": {"a": {"ref": [0, 0]}}}',
            "uses a result of step 0",
        ),
    ],
)
def test_malformed_json(text, message):
    with pytest.raises(TraceError, match=message):
        from_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "line 1 is not valid Python"),
        ("a = sch.get_block('mm')\nimport os", "line 2: import os is not a step"),
        ("a = get_block('mm')", "not a call of a schedule's method"),
        ("a = sch.get_block(open('x'))", "neither a literal nor"),
        ("a = sch.get_block('x', None, 3)", "passes 3 arguments to get_block, which has 2"),
        ("sch.unroll(loop=i)", "neither a literal nor the result"),
    ],
)
def test_malformed_python_is_located_and_never_run(text, message):
    with pytest.raises(TraceError, match=message):
        from_python(text)


def test_wrong_arguments_are_named():
    step = TraceStep("split", (("loop", 3), ("factors", (None, 2))))
    assert "invalid value 3" in str(schedule(MATMUL).replay(Trace((step,))).error)
    step = TraceStep("split", (("loops", 3),))
    assert "no parameter 'loops'" in str(schedule(MATMUL).replay(Trace((step,))).error)
    step = TraceStep("get_block", ())
    assert "lacks parameter 'name'" in str(schedule(MATMUL).replay(Trace((step,))).error)


def test_a_click_is_recorded_as_queries():
    sch = schedule(MATMUL)
    uid = next(u for u, x in sch.state.tree("matmul").loops.items() if x.var.name == "j")
    sch.apply(Split(LoopRef("matmul", uid), (None, 8)))
    assert to_python(sch.trace).splitlines() == [
        "mm = sch.get_block(name='mm', function='matmul')",
        "i, j, k = sch.get_loops(block=mm)",
        "j_0, j_1 = sch.split(loop=j, factors=(None, 8))",
    ]
    other = schedule(FLOAT_MATMUL)
    assert other.replay(sch.trace).error is None


def test_symbolic_factors_are_written_as_text():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    sch.split(i, factors=(4, "ceildiv(M, 4)"))
    assert '{"expr": "ceildiv(M, 4)"}' in to_json(sch.trace)
    other = schedule(FLOAT_MATMUL)
    assert other.replay(from_json(to_json(sch.trace))).error is None


def test_a_trace_with_former_step_names_replays_to_the_same_program():
    # Written by version 0.1.0 before `specialise` was renamed to `specialize`.
    folder = Path(__file__).with_name("traces")
    text = (folder / "former_names.json.txt").read_text()
    assert '"op": "specialise"' in text
    trace = from_json(text)
    sch = schedule((folder / "former_names_before.txt").read_text())
    sch.replay(trace).completed()
    assert to_text(sch.module) + "\n" == (folder / "former_names_after.txt").read_text()
    assert "specialise" not in to_json(sch.trace)
    assert "specialize" in {step.op for step in from_python("sch.specialise('f', 'n')").steps}
