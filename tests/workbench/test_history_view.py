"""Notes on states of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.workbench.history_view import MAX_NOTE
from tilewright.workbench.snapshot import snapshot_html

from tests.workbench.conftest import MATMUL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client


def notes(client: Client) -> list[str]:
    history = client.session.history_view.history(client.session.schedule, "")
    return [node.note for node in history.nodes]


def test_a_note_is_written_replaced_and_removed(matmul: Client) -> None:
    root = matmul.session.schedule.head.id
    update = matmul.send("set_note", node=root, text=" as written\n")
    assert update.history is not None
    assert [node.note for node in update.history.nodes] == ["as written"]
    assert update.copy is not None
    assert update.copy.notes == {root: "as written"}
    assert "State 1, start: as written" in snapshot_html(matmul.session)
    matmul.select_loop("i")
    matmul.apply("split")
    matmul.send("set_note", node=matmul.session.schedule.head.id, text="<b>twice</b>")
    assert notes(matmul) == ["as written", "<b>twice</b>"]
    assert "State 2, split: &lt;b&gt;twice" in snapshot_html(matmul.session)
    matmul.send("set_note", node=root, text="")
    assert notes(matmul) == ["", "<b>twice</b>"]


def test_a_note_on_an_unknown_state_or_one_too_long_is_an_error(matmul: Client) -> None:
    matmul.send("set_note", node="nowhere", text="lost")
    assert "no state 'nowhere'" in matmul.session.document.problems[0].message
    root = matmul.session.schedule.head.id
    matmul.send("set_note", node=root, text="x" * (MAX_NOTE + 1))
    assert "the note has 2001 characters" in matmul.session.document.problems[0].message
    assert notes(matmul) == [""]


def test_notes_return_with_the_steps_in_another_session(connect: Callable[..., Client]) -> None:
    first = connect(MATMUL)
    first.select_loop("i")
    update = first.apply("split")
    head = first.session.schedule.head.id
    first.send("set_note", node=head, text="a tile of rows")
    assert update.copy is not None
    second = connect(MATMUL)
    update = first.hello()
    assert update.copy is not None
    text = "\n".join(update.copy.lines) + "\n"
    second.send("load", text=text, notes=update.copy.notes)
    assert second.session.schedule.head.id == head
    assert notes(second)[-1] == "a tile of rows"
