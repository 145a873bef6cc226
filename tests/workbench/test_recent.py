"""Results that are kept for the last traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.workbench import trace_view, view_diff
from tilewright.workbench.recent import SIZE, Recent

if TYPE_CHECKING:
    import pytest

    from tests.workbench.conftest import Client


def test_objects_are_compared_by_identity_and_details_by_value() -> None:
    recent: Recent[int] = Recent()
    first, equal = [1], [1]
    assert recent.get(first, {"a": 1}, lambda: 1) == 1
    assert recent.get(first, {"a": 1}, lambda: 2) == 1
    assert recent.get(first, {"a": 2}, lambda: 3) == 3
    assert recent.get(equal, {"a": 1}, lambda: 4) == 4


def test_the_oldest_result_is_forgotten() -> None:
    recent: Recent[int] = Recent()
    subjects = [object() for _ in range(SIZE + 1)]
    for number, subject in enumerate(subjects):
        recent.get(subject, None, lambda number=number: number)
    assert recent.get(subjects[1], None, lambda: -1) == 1
    assert recent.get(subjects[0], None, lambda: -1) == -1


def test_an_undo_does_not_write_a_trace_again(
    matmul: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    for module, name in ((trace_view, "to_python"), (view_diff, "to_json")):
        original = getattr(module, name)

        def write(*args: object, name: str = name, original=original) -> str:
            written.append(name)
            return original(*args)

        monkeypatch.setattr(module, name, write)
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    matmul.send("navigate", action="undo", node="", head=matmul.session.schedule.head.id)
    assert sorted(written) == ["to_json", "to_python"]
    update = matmul.send("navigate", action="redo", node="", head=matmul.session.schedule.head.id)
    assert update.trace is not None
    assert update.copy is not None
    assert update.trace.lines[-1].step == "split"
    assert sorted(written) == ["to_json", "to_python"]
