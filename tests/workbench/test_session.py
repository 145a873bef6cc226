"""Requests, selection, editing and updates of a session."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np
import pytest

from tilewright.schedules import STEPS
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.workbench.protocol import SPAN_FIELDS, SPAN_KINDS
from tilewright.workbench.protocol_steps import Handle, HandleKind, StepData
from tilewright.workbench.requests import Request, Run, Select
from tilewright.workbench.serialization import to_plain, update_to_plain

from tests.waiting import wait_until
from tests.workbench.conftest import data_of
from tests.workbench.scenarios import INVALID_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol import Update
    from tilewright.workbench.session import Session

    from tests.workbench.conftest import Client


def test_answer_to_hello_contains_all_sections(matmul: Client) -> None:
    update, buffers = matmul.received[0]
    assert update.reply == 1
    assert update.open == "matmul"
    assert update.graph is None
    (pane,) = update.panes or []
    assert "for j in range(24):" in pane.text
    assert [f.name for f in (update.functions.items if update.functions else [])] == ["matmul"]
    assert len(buffers) == 1
    assert update.history is not None
    assert not update.history.can_undo


def test_spans_cover_their_parts(matmul: Client) -> None:
    update, buffers = matmul.received[0]
    (pane,) = update.panes or []
    lines = pane.text.split("\n")
    spans = np.frombuffer(buffers[0], "<i4").reshape(-1, SPAN_FIELDS)
    loops = [s for s in spans if SPAN_KINDS[s[0]] == "loop" and s[2]]
    assert [lines[s[3]].strip() for s in loops] == [
        "for i in range(n):",
        "for j in range(24):",
        "for k in range(16):",
    ]
    assert {s[5] for s in loops} == {len(lines) - 1}
    buffers_named = [s for s in spans if SPAN_KINDS[s[0]] == "buffer"]
    assert {lines[s[3]][s[4] : s[6]] for s in buffers_named} == {"A", "B", "C"}


def test_selection_is_answered_before_its_menu_and_without_text(matmul: Client) -> None:
    update = matmul.select_loop("j")
    assert update.panes is None
    assert update.trace is None
    assert update.menu is None
    assert update.selected is not None
    assert update.selected.selection is not None
    assert update.selected.selection.name == "j"
    assert [r.name for r in update.selected.path] == ["matmul", "i"]
    assert update.selected.properties["extent"] == "24"
    following = next(u for u, _ in reversed(matmul.received) if u.menu is not None)
    menu = following.menu
    assert following.reply == 0
    assert menu is not None
    assert menu.state == matmul.session.schedule.head.id
    assert menu.selection == update.selected.selection
    assert "split" in [s.step for s in menu.suggestions if not s.problems]


def test_blocked_steps_are_listed_last(matmul: Client) -> None:
    matmul.select_loop("k")
    blocked = [bool(s.problems) for s in matmul.suggestions()]
    assert any(blocked)
    assert blocked == sorted(blocked)


def test_blocked_step_names_the_violated_requirement(matmul: Client) -> None:
    matmul.select_loop("k")
    blocked = matmul.suggestion("parallel")
    problem = blocked.problems[0]
    assert problem.requirement in Parallel.requirements()
    assert problem.requires == Parallel.requirements()[problem.requirement]
    assert "k" in problem.message


def test_excerpt_of_a_problem_underlines_the_part_at_fault(matmul: Client) -> None:
    matmul.select_loop("k")
    (excerpt,) = matmul.suggestion("parallel").problems[0].excerpts
    lines = matmul.latest("matmul").split("\n")
    assert excerpt.function == "matmul"
    assert all(lines[line.number - 1] == line.text for line in excerpt.lines)
    texts = {line.number: line.text for line in excerpt.lines}
    marked = {texts[mark.line][mark.column - 1 : mark.end - 1] for mark in excerpt.marks}
    assert "k" in " ".join(marked)


def test_applying_changes_text_trace_history_and_selection(matmul: Client) -> None:
    matmul.select_loop("j")
    update = matmul.apply("split", "(None, 8)")
    assert [p.function for p in update.panes or []] == ["matmul"]
    assert "for j_1 in range(8):" in matmul.latest("matmul")
    assert update.trace is not None
    assert update.trace.lines[-1].text.endswith("sch.split(loop=j, factors=(None, 8))")
    assert update.trace.lines[-1].decisions == "guard: none"
    assert update.trace.lines[-1].milliseconds is not None
    assert update.history is not None
    assert update.history.can_undo
    assert update.selected is not None
    assert update.selected.selection is not None
    assert update.selected.selection.name == "j_1"
    assert update.menu is None, "an edit is answered before the menu"
    assert update.applied is not None
    assert update.applied.functions == ["matmul"]


def test_entered_values_are_applied(matmul: Client) -> None:
    matmul.select_loop("i")
    matmul.apply("split", factors="(None, 5)")
    assert "for i_1 in range(5):" in matmul.latest("matmul")
    assert "guard(" in matmul.latest("matmul")


def test_check_reports_problems_before_applying(matmul: Client) -> None:
    matmul.select_loop("j")
    (problem,) = matmul.check(matmul.suggestion("split"), factors="(2, 3)").problems
    assert problem.numbers == {"product": "6", "extent": "24"}
    (fix,) = problem.fixes
    matmul.apply_data(fix.data)
    assert "for j_1 in range(3):" in matmul.latest("matmul")


@pytest.mark.parametrize("text", INVALID_VALUES)
def test_invalid_value_is_a_problem_of_the_suggestion(matmul: Client, text: str) -> None:
    """An invalid value is neither legal nor an entry of the Problems panel."""
    matmul.select_loop("j")
    split = matmul.suggestion("split")
    problems = matmul.check(split, factors=text).problems
    assert problems
    assert "Expr" not in problems[0].message
    assert matmul.session.document.problems == ()
    assert matmul.check(split, factors="(None, 8)").problems == []


def test_applying_an_invalid_value_adds_a_problem(matmul: Client) -> None:
    matmul.select_loop("j")
    update = matmul.apply("split", factors="(8,")
    assert update.problems is not None
    assert update.problems[0].title == "Invalid parameter"
    assert "is not a valid value" in update.problems[0].message
    assert update.trace is None


def test_undo_redo_and_jump(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    first = matmul.session.schedule.head.id
    matmul.apply("vectorize")
    vectorized = matmul.session.schedule.head.id
    undone = matmul.send("navigate", action="undo", node="", head=vectorized)
    assert undone.panes is None, "the browser has the text"
    assert matmul.session.schedule.head.id == first
    matmul.send("navigate", action="redo", node="", head=first)
    assert matmul.session.schedule.head.id == vectorized
    start = next(n.id for n in matmul.session.schedule.history if n.parent is None)
    update = matmul.send("navigate", action="jump", node=start, head=vectorized)
    assert update.trace is not None
    assert update.trace.lines == []
    assert update.history is not None
    assert len(update.history.nodes) == 3


def test_stale_edit_names_both_heads_and_changes_nothing(matmul: Client) -> None:
    matmul.select_loop("j")
    stale = matmul.session.schedule.head.id
    matmul.apply("split", "(None, 8)")
    head = matmul.session.schedule.head.id
    matmul.select_loop("i")
    split = data_of(matmul.suggestion("split"))
    update = matmul.send("apply", step=split, head=stale)
    assert update.problems is not None
    assert stale[:12] in update.problems[0].message
    assert head[:12] in update.problems[0].message
    assert matmul.session.schedule.head.id == head


def test_concurrent_edits_are_serialized(matmul: Client) -> None:
    matmul.select_loop("j")
    split, head = data_of(matmul.suggestion("split", "(None, 8)")), matmul.session.schedule.head.id
    request = {"type": "apply", "step": split, "head": head}
    threads = [
        threading.Thread(target=matmul.session.handle, args=({**request, "id": k},))
        for k in (101, 102)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(matmul.session.schedule.history) == 2
    assert matmul.latest("matmul").count("for j_1") == 1
    assert [r.title for r in matmul.session.document.problems] in (
        ["Stale edit"],
        ["Invalid parameter"],
    )


def test_step_of_a_cell_is_published(matmul: Client) -> None:
    schedule = matmul.session.schedule
    (_, j, _) = schedule.get_loops(schedule.get_block("C"))
    schedule.split(j, factors=(None, 4))
    wait_until(lambda: "for j_1 in range(4):" in matmul.latest("matmul"))
    # Updates with the predicted time of the default rule may precede or follow.
    update = [update for update, _ in matmul.received if update.panes][-1]
    assert update.reply == 0
    assert update.applied is not None
    assert "moved the head: it is split" in update.applied.message


def test_an_earlier_update_announces_the_step_of_a_cell(matmul: Client) -> None:
    schedule = matmul.session.schedule
    schedule.parallel(schedule.get_loops(schedule.get_block("C"))[0])
    matmul.session.refresh()  # as a job does that ends before the delay
    wait_until(lambda: any(update.panes for update, _ in matmul.received[1:]))
    (update,) = (update for update, _ in matmul.received[1:] if update.panes)
    assert update.applied is not None
    assert "moved the head: it is parallel" in update.applied.message


def test_a_step_of_a_cell_during_a_request_is_announced(
    matmul: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread moves the head while a request holds the lock of the session."""
    session = matmul.session
    select = session._select

    def slow(request: Select) -> None:
        cell = threading.Thread(target=lambda: session.schedule.get_block("C"))
        cell.start()
        cell.join()
        select(request)

    monkeypatch.setattr(session, "_select", slow)
    matmul.select("", 0)
    wait_until(lambda: any(announces_move(update) for update, _ in matmul.received))
    assert session.view.selection is not None  # the selection follows as well


def announces_move(update: Update) -> bool:
    return (
        update.applied is not None and "moved the head: it is get_block" in update.applied.message
    )


def test_workbenches_of_one_schedule_are_synchronized(
    matmul: Client, connect: Callable[..., Client]
) -> None:
    other = connect(matmul.session.schedule)
    other.select_loop("j")
    other.apply("split", "(None, 8)")
    wait_until(lambda: "for j_1 in range(8):" in matmul.latest("matmul"))
    assert matmul.latest("matmul") == other.latest("matmul")


def test_unchanged_sections_are_not_sent(matmul: Client) -> None:
    matmul.session.refresh()
    update, buffers = matmul.received[-1]
    assert buffers == []
    assert (update.panes, update.menu, update.trace, update.history) == (None, None, None, None)


def test_failed_request_is_answered_with_a_problem(matmul: Client) -> None:
    update = matmul.send("open", function="missing")
    assert update.problems is not None
    assert "no function 'missing'" in update.problems[0].message
    dismissed = matmul.send("dismiss", key=update.problems[0].key)
    assert dismissed.problems == []


@pytest.mark.parametrize("version", [0, 1])
def test_page_of_an_older_version_must_be_reloaded(matmul: Client, version: int) -> None:
    update = matmul.send("hello", version=version)
    assert update.problems is not None
    assert update.problems[0].hint == "reload the page"


def test_function_is_selected_if_the_selection_no_longer_exists(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    matmul.select_loop("j_1")
    head = matmul.session.schedule.head.id
    selected = matmul.send("navigate", action="undo", node="", head=head).selected
    assert selected is not None
    assert selected.selection is not None
    assert (selected.selection.kind, selected.selection.name) == ("function", "matmul")


HOSTILE: tuple[object, ...] = (
    None, True, -1, 2**70, 10**400, 1.5, float("nan"), "", "\ud800", "<script>", "a" * 5000, [], {},
    ["x"], "matmul", "C", "0", "undo", "json", "loop",
)  # fmt: skip


def field_value(name: str, hint: Any, session: Session, rng: random.Random) -> object:
    """Return a random value of a field, mostly of the right type."""
    options = [o for part in get_args(hint) for o in (get_args(part) or (part,))]
    if rng.random() < 0.2:
        return rng.choice(HOSTILE)
    if name == "head":
        return session.schedule.head.id
    if type(None) in options:
        return rng.choice(["matmul", None])
    if name == "step":
        return step_value(session, rng)
    if isinstance(hint, type):
        return rng.choice([v for v in HOSTILE if isinstance(v, hint)] or [None])
    return rng.choice(options)


def step_value(session: Session, rng: random.Random) -> object:
    """Return the data of a random step, often of the menu, with a text or a uid that is hostile."""
    menu = session.view.menu
    op = rng.choice([*sorted(STEPS), "no_step"])
    data = StepData(op, "matmul", {}, {})
    if menu is not None and rng.random() < 0.7:
        data = rng.choice(menu.suggestions).data
    name = rng.choice([*data.values, *data.handles, "x"])
    if rng.random() < 0.6:
        data = replace(data, values={**data.values, name: str(rng.choice(HOSTILE))})
    else:
        kind = rng.choice(get_args(HandleKind))
        handle = Handle(kind, rng.choice(["matmul", "x"]), rng.randrange(40), "a")
        data = replace(data, handles={**data.handles, name: [handle]})
    return to_plain(data) if rng.random() < 0.9 else rng.choice(HOSTILE)


@pytest.mark.parametrize(
    "message",
    [None, [], "x", 5, {}, {"id": None}, {"type": []}, {"type": "suggest", "client": 5}],
    ids=str,
)
def test_a_message_that_is_not_a_request_is_a_problem(matmul: Client, message: Any) -> None:
    update = matmul.session.handle(message)
    assert update.problems is not None
    assert update.problems[0].title == "Invalid request"


def test_random_messages_are_answered_without_internal_errors(
    matmul: Client, fuzz_factor: int
) -> None:
    rng, session = random.Random(0), matmul.session
    classes = [c for c in get_args(Request) if c is not Run]
    for _ in range(300 * fuzz_factor):
        hints = get_type_hints(rng.choice(classes))
        message = {n: field_value(n, hint, session, rng) for n, hint in hints.items()}
        message["type"] = get_args(hints["type"])[0]
        if rng.random() < 0.1:
            del message[rng.choice(list(message))]
        update = session.handle(message)
        problems = update.problems or []
        assert not any(p.title.startswith("Internal error") for p in problems), message
        json.dumps(update_to_plain(update), allow_nan=False)
