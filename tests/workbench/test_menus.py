"""Menus that follow an answer, and those that are part of it because they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tilewright.workbench import menus, step_menu
from tilewright.workbench.menus import MAX_MENUS, Menus

from tests.waiting import wait_until
from tests.workbench.conftest import data_of

if TYPE_CHECKING:
    from tilewright.schedules import State
    from tilewright.schedules.handles import Handle
    from tilewright.workbench.protocol import Update
    from tilewright.workbench.protocol_steps import Menu

    from tests.workbench.conftest import Client


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Handle]:
    """The selections whose menus are computed."""
    found: list[Handle] = []

    def menu_view(state: State, head: str, selection: Handle) -> Menu:
        found.append(selection)
        return step_menu.menu_view(state, head, selection)

    monkeypatch.setattr(menus, "menu_view", menu_view)
    return found


def selected_in(update: Update) -> str:
    """Return the name of the part that the menu of an update belongs to, empty without a menu."""
    return "" if update.menu is None else update.menu.selection.name


def menus_since(client: Client, before: int) -> list[Menu]:
    """Return the menus that a client received; other updates may arrive at any time."""
    return [update.menu for update, _ in client.received[before:] if update.menu is not None]


def test_a_new_menu_follows_the_answer_and_a_known_one_is_part_of_it(matmul: Client) -> None:
    before = len(matmul.received)
    first = matmul.select_loop("i")
    assert first.menu is None
    assert [menu.selection.name for menu in menus_since(matmul, before)] == ["i"]
    matmul.select_loop("j")
    before = len(matmul.received)
    assert selected_in(matmul.select_loop("i")) == "i"
    assert len(menus_since(matmul, before)) == 1


def test_an_undo_is_answered_with_the_menu_of_the_earlier_state(matmul: Client) -> None:
    matmul.select_loop("j")
    root = matmul.session.schedule.head.id
    data, before = data_of(matmul.suggestion("split", "(None, 8)")), len(matmul.received)
    split = matmul.send("apply", step=data, head=root)
    assert split.menu is None
    head = matmul.session.schedule.head.id
    assert [menu.state for menu in menus_since(matmul, before)] == [head]
    matmul.send("navigate", action="jump", node=root, head=head)
    update = matmul.select_loop("j")
    assert update.menu is not None
    assert update.menu.state == root


def test_an_answer_about_the_same_selection_has_no_menu(
    matmul: Client, computed: list[Handle]
) -> None:
    matmul.select_loop("i")
    before = len(matmul.received)
    matmul.send("save", format="json")
    matmul.send("select", kind="", function="", uid=0)
    assert menus_since(matmul, before) == []
    assert [handle.name for handle in computed] == ["i"]


def test_a_request_sends_a_menu_again_without_computing_it(
    matmul: Client, computed: list[Handle]
) -> None:
    matmul.select_loop("i")
    for _ in range(2):
        assert selected_in(matmul.send("suggest")) == "i"
    assert len(computed) == 1


def test_a_move_by_a_cell_is_not_followed_by_a_menu(matmul: Client, computed: list[Handle]) -> None:
    matmul.select_loop("i")
    computed.clear()
    schedule = matmul.session.schedule
    schedule.split(schedule.get_loop("j"), (None, 8))
    wait_until(lambda: "for j_1 in range(8):" in matmul.latest("matmul"))
    assert computed == []
    assert selected_in(matmul.send("suggest")) == "i"
    assert len(computed) == 1


def test_a_menu_that_fails_is_a_problem_and_is_not_tried_again(
    matmul: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Menu:
        raise ValueError("no menu")

    monkeypatch.setattr(menus, "menu_view", fail)
    update = matmul.select_loop("i")
    assert update.problems is None
    following = [u.problems for u, _ in matmul.received if u.problems]
    assert [[problem.message for problem in problems] for problems in following] == [["no menu"]]
    matmul.send("save", format="json")
    assert len([u for u, _ in matmul.received if u.problems]) == 1


def test_a_reloaded_page_gets_its_menu_again(matmul: Client) -> None:
    matmul.select_loop("i")
    assert selected_in(matmul.hello()) == "i"


def test_menus_are_computed_again_after_a_registration(
    matmul: Client, computed: list[Handle], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = matmul.session.schedule
    state, loop, kept = schedule.state, schedule.get_loop("i"), Menus()
    first = kept.menu(state, "head", loop)
    assert kept.menu(state, "head", loop) is first
    monkeypatch.setattr(menus, "LIBRARY_FUNCTIONS", {"another": object()})
    assert kept.known(state, loop) is None
    assert kept.menu(state, "head", loop) == first
    assert len(computed) == 2


def test_the_oldest_menus_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(menus, "menu_view", lambda _state, _head, selection: selection)
    kept: Any = Menus()
    parts = [f"part {k}" for k in range(MAX_MENUS + 1)]
    for part in parts:
        kept.menu(None, "head", part)
        kept.menu(None, "head", parts[0])
    assert kept.known(None, parts[0]) is not None
    assert kept.known(None, parts[1]) is None
