"""Traces: recording, text in both forms, replay elsewhere, editing in the middle."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.ir.script import parse, to_text
from tilewright.schedules import (
    PrefixMemo,
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
    notes_from_json,
    replay,
    to_json,
    to_python,
)
from tilewright.schedules.handles import LoopRef
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.suggest_names import NotFoundError
from tilewright.schedules.trace import DROPPED, Written
from tilewright.target.target import Target

from tests.schedules.helpers import CHAIN, MATMUL, schedule
from tests.static_html import check_static

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
        "step 11 (transform_layout) decided {'padded': True}, recorded {'padded': False}",
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
        (
            '{"trace": "tilewright", "schema": 1}\n{"op": "f(); g", "args": {}}',
            "'f\\(\\); g' is not the name of a step",
        ),
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
        "matmul = sch.get_function(name='matmul')",
        "mm = sch.get_block(name='mm', function=matmul)",
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


def grouped() -> Schedule:
    """A schedule with the group ``tile``."""
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    i0, j0, i1, j1 = sch.tile(i, j, sizes=(4, 8))
    sch.reorder((i0, j0, k, i1, j1))
    sch.vectorize(j1)
    return sch


def groups_of(trace: Trace) -> list[tuple[str, int, int]]:
    return [(g.op, g.first, g.stop) for g in trace.groups]


NOTE = TraceStep("annotate", (("target", ResultOf(1, 2)), ("key", "note"), ("value", 1)))


@pytest.mark.parametrize(("index", "group"), [(2, (3, 6)), (3, (2, 6)), (5, (2, 5))])
def test_an_inserted_step_extends_a_group_around_it(index, group):
    trace = grouped().trace.inserted(index, NOTE)
    trace.check_groups()
    assert groups_of(trace) == [("tile", *group)]
    assert trace.groups[0].edited == (index == 3)
    sch = schedule(MATMUL)
    assert sch.replay(trace).error is None
    assert groups_of(sch.trace) == [("tile", *group)]
    assert sch.trace.groups[0].edited == (index == 3)
    assert from_json(to_json(sch.trace)) == sch.trace
    again = schedule(MATMUL)
    again.replay(from_python(to_python(sch.trace))).completed()
    assert again.head.id == sch.head.id


def test_notes_are_fields_of_lines_that_older_versions_ignore():
    """The trace with notes is the same, and has the note of a group on the line of the group."""
    trace = grouped().trace
    notes = {0: "as written", 2: "loops", 5: 'tile "4 x 8"\n\u00e9', len(trace): "vectors"}
    text = to_json(trace, notes)
    assert from_json(text) == trace
    assert notes_from_json(text) == notes
    lines = [json.loads(line) for line in text.splitlines()]
    noted = [line.get("op", line.get("group", "")) for line in lines if "note" in line]
    assert noted == ["", "get_loops", "tile", "vectorize"]
    assert [{k: v for k, v in line.items() if k != "note"} for line in lines] == [
        json.loads(line) for line in to_json(trace).splitlines()
    ]


def test_a_trace_without_notes_has_none():
    assert notes_from_json(to_json(tiled().trace)) == {}
    assert to_json(tiled().trace, {}) == to_json(tiled().trace)


def test_notes_inside_a_group_are_those_of_the_state_after_it():
    lines = [json.loads(line) for line in to_json(grouped().trace).splitlines()]
    assert lines[3]["group"] == "tile"
    for line, note in zip(lines[3:7], ("group", "first", "second", "third"), strict=True):
        line["note"] = note
    text = "\n\n".join(map(json.dumps, lines))
    assert notes_from_json(text) == {5: "group\nfirst\nsecond\nthird"}


@pytest.mark.parametrize("note", [3, None, ["x"], {"text": "x"}, False])
def test_a_note_that_is_not_a_text_is_an_error(note):
    trace = Trace((TraceStep("get_block", (("name", "mm"),)),))
    header, line = to_json(trace).splitlines()
    text = "\n".join([header, json.dumps({**json.loads(line), "note": note})])
    with pytest.raises(TraceError, match='line 2: "note" must be a string'):
        notes_from_json(text)
    assert from_json(text) == trace


def test_states_become_versions_on_request():
    """Their ids are those of the versions of the schedule that recorded the trace."""
    sch = grouped()
    wanted = [n for n in sch.history if len(n.state.trace) in (2, 5)]
    again = schedule(MATMUL)
    outcome = again.replay(sch.trace, versions={5, 2, 3})
    assert [count for count, _ in outcome.versions] == [2, 5]  # 3 is inside the group
    assert [n.id for n in again.history][1:] == [*(n.id for n in wanted), sch.head.id]
    assert again.undo().id == wanted[1].id


def test_versions_of_a_trace_that_stops_are_those_of_applied_steps():
    trace = grouped().trace.changed(6, loop=7)
    again = schedule(MATMUL)
    outcome = again.replay(trace, versions=range(20))
    assert outcome.error is not None
    assert [count for count, _ in outcome.versions] == [1, 2, 5, 6]
    assert len(again.history) == 5
    skipped = schedule(MATMUL).replay(trace, skip=True, versions={7})
    assert [count for count, _ in skipped.versions] == [7]


def test_a_memo_returns_the_same_versions():
    sch, memo = grouped(), PrefixMemo()
    root = sch.history[0].state
    first, second = (replay(root, sch.trace, memo=memo, versions={2, 5, 7}) for _ in range(2))
    assert [c for c, _ in first.versions] == [c for c, _ in second.versions] == [2, 5, 7]
    assert all(a is b for (_, a), (_, b) in zip(first.versions, second.versions, strict=True))


def test_an_edited_group_is_not_folded():
    trace = grouped().trace.changed(2, factors=(None, 2))
    assert trace.groups[0].edited
    assert trace.folded() == trace
    assert "with sch.composite('tile', 'edited', i=i" in to_python(trace, fold=True)
    sch = schedule(MATMUL)
    sch.replay(trace).completed()
    assert sch.head.step.op == "vectorize"
    assert "i_0 * 2 + i_1" in str(sch)


def test_the_last_step_of_a_group_takes_the_group_with_it():
    sch = schedule(MATMUL)
    sch.interchange("i", "j")
    position = sch.trace.groups[0].first
    trace = sch.trace.without(position)
    assert (len(trace), trace.groups) == (len(sch.trace) - 1, ())


def test_a_removed_step_leaves_its_result_dropped():
    trace = grouped().trace
    for index in (6, 5, 4, 3):
        trace = trace.without(index)
    (group,) = trace.groups
    assert (group.first, group.stop, group.edited) == (2, 3, True)
    assert group.results == (ResultOf(2, 0), DROPPED, ResultOf(2, 1), DROPPED)
    assert "sch.returns(i_0, None, i_1, None)" in to_python(trace)
    assert from_python(to_python(trace)).groups[0].results == group.results
    sch = schedule(MATMUL)
    sch.replay(trace).completed()
    assert sch.trace.groups[0].results == group.results
    again = schedule(MATMUL)
    exec(to_python(sch.trace), {"sch": again})
    assert again.head.id == sch.head.id


def test_other_arguments_of_a_group_change_its_results():
    trace = grouped().trace.changed_group(0, sizes=(2, 4))
    assert (trace[2].op, trace.groups) == ("tile", ())
    assert trace[3].operands()[0] == ResultOf(2, 0)
    sch = schedule(MATMUL)
    sch.replay(trace).completed()
    assert groups_of(sch.trace) == [("tile", 2, 5)]
    assert {"i_0 * 2 + i_1", "j_0 * 4 + j_1"} <= {
        str(v.binding) for b in sch.state.tree("matmul").blocks.values() for v in b.iters
    }
    with pytest.raises(TraceError, match="no argument 'size'"):
        grouped().trace.changed_group(0, size=3)


def test_a_folded_step_that_changes_nothing_replays():
    text = "sch.default_schedule()"
    sch = Schedule(parse(ELEMENTWISE), Target("cpu"))
    sch.replay(from_python(text)).completed()
    done = Schedule(sch.module, Target("cpu"))
    assert done.replay(from_python(text)).error is None
    assert len(done.trace) == 0


def test_a_later_use_of_an_internal_result_stops_a_fold():
    trace = grouped().trace
    used = trace.appended(TraceStep("unroll", (("loop", ResultOf(2, 1)),)))
    groups = (replace(trace.groups[0], results=()),)
    trace = Trace(used.steps, groups)
    with pytest.raises(TraceError, match=r"step 5 uses result 0 of step 2 \(split\), which tile"):
        trace.fold(0)
    with pytest.raises(TraceError, match="which tile applied and does not return"):
        trace.changed_group(0, sizes=(2, 4))
    assert trace.folded() == trace
    assert groups_of(trace.ungrouped(0)) == []


def test_inner_groups_are_edited_on_their_own():
    sch = Schedule(parse(ELEMENTWISE), Target("cpu", features=("avx512",)))
    sch.schedule_kernel("f")
    trace = sch.trace
    names = ["schedule_kernel", "schedule_elementwise", "vectorize_nest", "vectorize_inner"]
    assert [g.op for g in trace.groups] == names
    changed = trace.changed_group(3, lanes=4)
    changed.check_groups()
    assert [(g.op, g.edited) for g in changed.groups] == [(n, True) for n in names[:3]]
    again = Schedule(parse(ELEMENTWISE), Target("cpu", features=("avx512",)))
    again.replay(changed).completed()
    assert [(g.op, g.edited) for g in again.trace.groups] == [
        *((n, True) for n in names[:3]), (names[3], False),
    ]  # fmt: skip
    assert "vectorized(4)" in str(again)
    folded = to_python(again.trace, fold=True)
    assert "sch.vectorize_inner(loop=j, lanes=4)" in folded
    assert folded.count("with sch.composite(") == 3


def test_a_replay_that_stops_inside_a_group_keeps_its_steps():
    outcome = schedule(CHAIN.replace("chain", "matmul")).replay(grouped().trace)
    assert outcome.done == 0
    trace = grouped().trace.changed(3, factors=(None, 0))
    outcome = schedule(MATMUL).replay(trace)
    (group,) = outcome.state.trace.groups
    assert (outcome.done, len(outcome.state.trace)) == (3, 3)
    assert (group.op, group.first, group.stop) == ("tile", 2, 3)
    assert group.names == ("i_0", "", "i_1", "")


HEADER = '{"trace": "tilewright", "schema": 1}\n'
NESTED = '{"group": "g", "args": {}, "steps": 1}\n{"group": "h", "args": {}, "steps": 2}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"group": "g", "args": {}, "steps": 1}', "group g has 1 steps from step 0"),
        ('{"group": "g", "args": {}, "steps": "x"}', '"steps" must be an integer'),
        ('{"group": 3, "args": {}, "steps": 1}', '"op" must be a string'),
        ('{"group": "g", "args": {}, "steps": -1}', "group g has -1 steps"),
        (f'{{"group": "g", "args": {{}}, "steps": {10**30}}}', "group g has 10+ steps"),
        ('{"group": "g", "args": {}, "steps": true}', '"steps" must be an integer'),
        ('{"group": "g", "args": {"class": 1}, "steps": 1}', "'class' is not the name"),
        ('{"op": "x", "args": {"a": {"ref": [0, -1]}}}', "is not a valid argument"),
        (f'{{"op": "x", "args": {{"a": {"[" * 500}{"]" * 500}}}}}', "nested too deeply"),
        (
            '{"group": "g", "args": {"a": {"ref": [0, 0]}}, "steps": 1}\n{"op": "x", "args": {}}',
            "group g uses a result of step 0",
        ),
        (
            '{"group": "g", "args": {}, "steps": 1, "results": [[4, 0]]}\n{"op": "x", "args": {}}',
            "group g returns a result of step 4",
        ),
        (
            NESTED + '{"op": "x", "args": {}}\n{"op": "y", "args": {}}',
            "group h has 2 steps from step 0; expected 1 to 1",
        ),
    ],
)
def test_malformed_groups(text, message):
    with pytest.raises(TraceError, match=message):
        from_json(HEADER + text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("with open('x'): sch.f()", "is not a group"),
        ("with sch.composite(name): sch.f()", "is not a group"),
        ("with sch.composite('g', 3): sch.f()", "arguments without a name"),
        ("with sch.composite('g', a=open('x')): sch.f()", "neither a literal nor"),
        ("with sch.composite('g') as g: sch.f()", "is not a group"),
        ("with sch.composite('g'): sch.returns()", "group g has 0 steps"),
        ("with sch.composite('g', a=1, a=2): sch.f()", "line 1: .* has two values of 'a'"),
        ("with sch.composite('g', **{}): sch.f()", r"arguments without a name: \*\*"),
        ("x = sch.f(" + "-" * 20_000 + "1)", "is not valid Python"),
        ("x = sch" + ".f" * 20_000 + "()", "is not valid Python"),
        ("x = sch.f('\ud800')", "is not valid Python"),
        ("with sch.composite('g'):\n  sch.f()\n  sch.returns(3)", "not the result of a step"),
    ],
)
def test_malformed_python_groups(text, message):
    with pytest.raises(TraceError, match=message):
        from_python(text)


ELEMENTWISE = """
@prim_func
def f(x: Buffer[(4, 64), f32], y: Out[(4, 64), f32]):
    for i in range(4):
        for j in range(64):
            with block("add"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + 1.0
"""


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').remove('x')",
        "lambda i: __import__('os').remove('x')",
        "lambda i=open('x'): (i,)",
        "lambda i: (i,))\nimport os\n(",
        "lambda i: i ** 10 ** 10",
    ],
)
def test_the_python_text_of_an_index_map_contains_no_other_code(text):
    trace = from_json(f'{HEADER}{{"op": "x", "args": {{"a": {{"map": {json.dumps(text)}}}}}}}')
    assert to_python(trace) == f"sch.x(a={text!r})"


@pytest.mark.parametrize("body", ["(i // 4, i % 4)", "(max(i, 1), select(i < 4 and i != 2, i, 0))"])
def test_the_python_text_of_an_index_map_is_a_lambda(body):
    trace = Trace((TraceStep("x", (("a", Written("map", f"lambda i: {body}")),)),))
    assert to_python(trace) == f"sch.x(a=lambda i: {body})"
    assert from_python(to_python(trace)) == trace


def test_names_that_python_identifies_are_different_variables():
    steps = (TraceStep("f", (), ("\ufb01", "fi")), TraceStep("g", (("x", ResultOf(0, 0)),)))
    assert from_python(to_python(Trace(steps)))[1].operands() == (ResultOf(0, 0),)


def test_a_trace_has_html():
    trace = Trace((TraceStep("get_block", (("name", "</pre>"),), ("mm",)),))
    assert "sch.get_block(name='</pre>')" in check_static(trace._repr_html_())


def test_a_replay_needs_a_state_and_a_trace():
    sch = tiled()
    with pytest.raises(TraceError, match="expected a State, got Module"):
        replay(sch.module, sch.trace)
    with pytest.raises(TraceError, match="expected a Trace, got str"):
        sch.replay("trace")


@pytest.mark.parametrize("read", [from_json, from_python, notes_from_json])
@pytest.mark.parametrize(
    "text",
    [None, 5, b"x", "", "[" * 100_000, '{"a":' * 20_000, "9" * 100_000, "\ud800", "\0", "(" * 5000],
    ids=lambda value: ascii(value)[:12],
)
def test_hostile_texts_of_traces_are_named_errors(read, text):
    if read is from_python and text == "":
        assert len(read(text)) == 0
        return
    with pytest.raises(TraceError):
        read(text)


JUNK = (
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "i",
    "C",
    "\ud800",
    "a" * 5000,
    [],
    {},
    [[]],
    {"ref": [0, 0]},
)


def mutated(value, rng):
    """Return JSON data with one random part replaced, removed, or repeated."""
    if rng.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return rng.choice(JUNK)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: mutated(value[key], rng)}
    position = rng.randrange(len(value))
    if rng.random() < 0.1:
        return [*value, value[position]]
    return [mutated(v, rng) if k == position else v for k, v in enumerate(value)]


def test_mutated_traces_raise_only_named_errors(fuzz_factor):
    rng, source = random.Random(0), tiled()
    source.default_schedule()
    lines = [json.loads(line) for line in to_json(source.trace).splitlines()]
    outcomes = {"read": 0, "rejected": 0}
    for _ in range(50 * fuzz_factor):
        position = rng.randrange(len(lines))
        changed = [mutated(v, rng) if k == position else v for k, v in enumerate(lines)]
        try:
            trace = from_json("\n".join(map(json.dumps, changed)))
        except TraceError:
            outcomes["rejected"] += 1
            continue
        outcomes["read"] += 1
        found = Schedule(parse(MATMUL)).replay(trace)
        assert found.error is None or isinstance(found.error, TilewrightError)
        to_json(trace)
        str(trace)
    assert min(outcomes.values()) > 5
