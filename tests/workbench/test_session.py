"""A session answers every request with what changed, and nothing else."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tilewright.workbench.protocol import SPAN_FIELDS, SPAN_KINDS

from tests.workbench.scenarios import NONSENSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client


def test_hello_is_answered_with_everything(matmul: Client) -> None:
    update, buffers = matmul.heard[0]
    assert update.reply == 1
    assert update.open == "matmul"
    assert update.graph is None
    (pane,) = update.panes or []
    assert "for j in range(24):" in pane.text
    assert [f.name for f in update.functions or []] == ["matmul"]
    assert len(buffers) == 1
    assert update.history is not None
    assert not update.history.can_undo


def test_spans_point_at_what_they_name(matmul: Client) -> None:
    update, buffers = matmul.heard[0]
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


def test_selecting_sends_a_menu_and_no_text(matmul: Client) -> None:
    update = matmul.select_loop("j")
    assert update.panes is None
    assert update.trace is None
    assert update.menu is not None
    assert update.menu.selection is not None
    assert update.menu.selection.name == "j"
    assert [r.name for r in update.menu.path] == ["matmul", "i"]
    assert update.menu.facts["extent"] == "24"
    legal = [c.step for c in update.menu.candidates if not c.issues]
    assert "split" in legal


def test_blocked_steps_come_last(matmul: Client) -> None:
    menu = matmul.select_loop("k").menu
    assert menu is not None
    blocked = [bool(c.issues) for c in menu.candidates]
    assert any(blocked)
    assert blocked == sorted(blocked)


def test_a_blocked_step_says_which_requirement_fails(matmul: Client) -> None:
    matmul.select_loop("k")
    blocked = matmul.candidate("parallel")
    assert blocked.issues[0].requirement > 0
    assert "k" in blocked.issues[0].message


def test_applying_changes_text_trace_history_and_selection(matmul: Client) -> None:
    matmul.select_loop("j")
    update = matmul.apply("split", "(None, 8)")
    assert [p.function for p in update.panes or []] == ["matmul"]
    assert "for j_1 in range(8):" in matmul.latest("matmul")
    assert update.trace is not None
    assert update.trace[-1].text.endswith("sch.split(loop=j, factors=(None, 8))")
    assert update.trace[-1].note == "guard: none"
    assert update.trace[-1].milliseconds is not None
    assert update.history is not None
    assert update.history.can_undo
    assert update.menu is not None
    assert update.menu.selection is not None
    assert update.menu.selection.name == "j_1"
    assert update.applied is not None
    assert update.applied.functions == ["matmul"]


def test_the_form_changes_what_is_applied(matmul: Client) -> None:
    matmul.select_loop("i")
    matmul.apply("split", factors="(None, 5)")
    assert "for i_1 in range(5):" in matmul.latest("matmul")
    assert "guard(" in matmul.latest("matmul")


def test_checking_a_form_tells_the_problem_before_applying(matmul: Client) -> None:
    matmul.select_loop("j")
    key = matmul.candidate("split").key
    update = matmul.send("check", key=key, values={"factors": "(2, 3)"})
    assert update.menu is not None
    (issue,) = next(c for c in update.menu.candidates if c.key == key).issues
    assert issue.numbers == {"product": "6", "extent": "24"}
    (fix,) = issue.fixes
    matmul.send("apply", key=fix.key, values={}, head=matmul.session.schedule.head.id)
    assert "for j_1 in range(3):" in matmul.latest("matmul")


@pytest.mark.parametrize("text", NONSENSE)
def test_what_is_typed_into_a_form_is_answered_beside_it(matmul: Client, text: str) -> None:
    """No entry in Problems for each key, and never *Legal* beside what cannot be read."""
    matmul.select_loop("j")
    key = matmul.candidate("split").key
    update = matmul.send("check", key=key, values={"factors": text})
    assert update.reports is None
    assert update.menu is not None
    issues = next(c for c in update.menu.candidates if c.key == key).issues
    assert issues
    assert "Expr" not in issues[0].message
    better = matmul.send("check", key=key, values={"factors": "(None, 8)"})
    assert better.menu is not None
    assert next(c for c in better.menu.candidates if c.key == key).issues == []


def test_an_unreadable_form_becomes_a_report(matmul: Client) -> None:
    matmul.select_loop("j")
    update = matmul.apply("split", factors="(8,")
    assert update.reports is not None
    assert update.reports[0].title == "Wrong parameter"
    assert "cannot be read" in update.reports[0].message
    assert update.trace is None


def test_undo_redo_and_jump(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    first = matmul.session.schedule.head.id
    matmul.apply("vectorize")
    vectorized = matmul.session.schedule.head.id
    travel = {"to": "", "head": vectorized}
    assert matmul.send("travel", how="undo", **travel).panes is None, "the text is known"
    assert matmul.session.schedule.head.id == first
    matmul.send("travel", how="redo", to="", head=first)
    assert matmul.session.schedule.head.id == vectorized
    start = next(n.id for n in matmul.session.schedule.history if n.parent is None)
    update = matmul.send("travel", how="jump", to=start, head=vectorized)
    assert update.trace == []
    assert update.history is not None
    assert len(update.history.nodes) == 3


def test_a_stale_edit_names_both_heads_and_changes_nothing(matmul: Client) -> None:
    matmul.select_loop("j")
    stale = matmul.session.schedule.head.id
    matmul.apply("split", "(None, 8)")
    head = matmul.session.schedule.head.id
    matmul.select_loop("i")
    key = matmul.candidate("split").key
    update = matmul.send("apply", key=key, values={}, head=stale)
    assert update.reports is not None
    assert stale[:12] in update.reports[0].message
    assert head[:12] in update.reports[0].message
    assert matmul.session.schedule.head.id == head


def test_two_threads_that_edit_one_schedule_lose_nothing(matmul: Client) -> None:
    matmul.select_loop("j")
    key, head = matmul.candidate("split", "(None, 8)").key, matmul.session.schedule.head.id
    request = {"type": "apply", "key": key, "values": {}, "head": head}
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
    assert [r.title for r in matmul.session.shown.reports] in (
        ["Stale edit"],
        ["Wrong parameter"],
    )


def test_a_step_of_a_cell_shows_after_the_cell(matmul: Client) -> None:
    schedule = matmul.session.schedule
    (_, j, _) = schedule.get_loops(schedule.get_block("C"))
    schedule.split(j, factors=(None, 4))
    wait_until(lambda: "for j_1 in range(4):" in matmul.latest("matmul"))
    assert matmul.heard[-1][0].reply == 0


def wait_until(ready: Callable[[], bool]) -> None:
    limit = time.monotonic() + 5
    while not ready() and time.monotonic() < limit:
        time.sleep(0.01)
    assert ready()


def test_two_workbenches_on_one_schedule_show_the_same(
    matmul: Client, connect: Callable[..., Client]
) -> None:
    other = connect(matmul.session.schedule)
    other.select_loop("j")
    other.apply("split", "(None, 8)")
    wait_until(lambda: "for j_1 in range(8):" in matmul.latest("matmul"))
    assert matmul.latest("matmul") == other.latest("matmul")


def test_nothing_changed_means_nothing_is_sent(matmul: Client) -> None:
    matmul.session.refresh()
    update, buffers = matmul.heard[-1]
    assert buffers == []
    assert (update.panes, update.menu, update.trace, update.history) == (None, None, None, None)


def test_a_fault_does_not_silence_the_session(matmul: Client) -> None:
    update = matmul.send("open", function="nothing")
    assert update.reports is not None
    assert "no function 'nothing'" in update.reports[0].message
    dismissed = matmul.send("dismiss", key=update.reports[0].key)
    assert dismissed.reports == []


def test_an_old_page_is_told_to_reload(matmul: Client) -> None:
    update = matmul.send("hello", version=0)
    assert update.reports is not None
    assert update.reports[0].hint == "reload the page"


def test_where_the_selection_is_gone_its_function_is_selected(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    matmul.select_loop("j_1")
    head = matmul.session.schedule.head.id
    menu = matmul.send("travel", how="undo", to="", head=head).menu
    assert menu is not None
    assert menu.selection is not None
    assert (menu.selection.kind, menu.selection.name) == ("function", "matmul")
