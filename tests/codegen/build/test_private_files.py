"""Files and folders of other users, and files that are not regular."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.codegen.build import private_files
from tilewright.codegen.build.private_files import (
    NotPrivateError,
    check_folder,
    make_folder,
    open_file,
    read_file,
    temporary_folder,
    user_folder,
)


@pytest.fixture
def another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be another user than the owner of all files."""
    monkeypatch.setattr(private_files, "_user", lambda: os.getuid() + 1)
    monkeypatch.setattr(private_files, "_SUPERUSER", os.getuid() + 2)


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    make_folder(folder)


@pytest.mark.usefixtures("another_user")
def test_a_folder_of_another_user_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(NotPrivateError, match=f"belongs to user {os.getuid()}, not to user"):
        check_folder(tmp_path)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_is_rejected(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(NotPrivateError, match=r"other users can write .* `chmod go-w` prevents"):
        check_folder(tmp_path)
    with pytest.raises(NotPrivateError):
        make_folder(tmp_path)


def test_the_folder_of_the_user_becomes_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    user_folder().mkdir()
    user_folder().chmod(0o775)  # as created with umask 002
    check_folder(user_folder())
    assert user_folder().stat().st_mode & 0o777 == 0o755


def test_a_user_without_a_home_has_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    monkeypatch.setattr(private_files.tempfile, "tempdir", str(tmp_path))
    assert user_folder() == temporary_folder() == tmp_path / f"tilewright-{os.getuid()}"


def test_without_a_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(private_files.tempfile, "gettempdir", missing)
    assert temporary_folder() == Path(f"/tmp/tilewright-{os.getuid()}")


def test_a_private_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.write(b"content")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_file(path, 7) == b"content"
    with pytest.raises(NotPrivateError, match="has 7 bytes, more than 6"):
        read_file(path, 6)


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(NotPrivateError, match="not a regular file"):
        read_file(tmp_path / "pipe", 1000)
    with pytest.raises(NotPrivateError, match="not a regular file"):
        open_file(tmp_path / "pipe", os.O_RDWR | os.O_CREAT)


@pytest.mark.parametrize("target", ["/dev/zero", "file", "missing"])
def test_links_are_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        open_file(tmp_path / "link", os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_file_that_others_can_write_is_rejected(tmp_path: Path, mode: int) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "file").chmod(mode)
    with pytest.raises(NotPrivateError, match="only user"):
        read_file(tmp_path / "file", 1000)


@pytest.mark.usefixtures("another_user")
def test_a_file_of_another_user_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(NotPrivateError, match="only user"):
        read_file(tmp_path / "file", 1000)
