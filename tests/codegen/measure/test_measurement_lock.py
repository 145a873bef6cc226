"""The lock of measurements."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tilewright.codegen.build import private_files
from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.errors import RunCanceledError
from tilewright.codegen.measure import exclusive_measurement
from tilewright.codegen.measure.measurement_lock import lock_path


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Use empty folders of the user."""
    for name in ("run", "cache", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(private_files.tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def test_the_lock_is_in_a_folder_that_no_other_user_can_write(folders: Path) -> None:
    assert lock_path().parent == folders / "run"
    (folders / "run").chmod(0o777)
    assert lock_path().parent == folders / "cache" / "tilewright"
    (folders / "cache" / "tilewright").rmdir()
    (folders / "cache" / "tilewright").write_text("not a folder")
    assert lock_path().parent.parent == folders / "tmp"
    assert lock_path().parent.stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_the_lock_creates_no_file(folders: Path) -> None:
    lock_path().symlink_to(folders / "victim")
    with exclusive_measurement() as exclusive:
        assert not exclusive
    assert not (folders / "victim").exists()


def test_a_lock_file_that_others_can_write_is_not_used(folders: Path) -> None:
    assert lock_path().is_relative_to(folders)
    lock_path().touch()
    lock_path().chmod(0o666)
    with exclusive_measurement() as exclusive:
        assert not exclusive


def test_the_second_measurement_waits_for_the_first() -> None:
    order: list[str] = []
    waits = threading.Event()
    with exclusive_measurement() as first:
        thread = threading.Thread(target=lambda: _second(order, waits))
        thread.start()
        assert waits.wait(5)
        order.append("first")
    thread.join()
    assert first
    assert order == ["first", "second True"]


def _second(order: list[str], waits: threading.Event) -> None:
    with exclusive_measurement(waiting=waits.set) as exclusive:
        order.append(f"second {exclusive}")


def test_waiting_is_canceled() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with exclusive_measurement(), pytest.raises(RunCanceledError), exclusive_measurement(cancel):
        pass
