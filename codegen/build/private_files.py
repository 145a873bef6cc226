"""Files that no other user can write, in folders that no other user can write.

The object cache loads machine code, so it must not trust files of other users. Names in shared
folders such as ``/tmp`` can be guessed: another user may create a file, a link or a pipe there.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_SUPERUSER: Final = 0


class NotPrivateError(OSError):
    """A file or folder that another user owns or can write, or that is not a regular file."""


def user_folder() -> Path:
    """Return the folder for the caches of this user.

    Without a home folder, as in a container whose user has no entry in the password database, it is
    a folder for temporary files.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "tilewright"
    try:
        return Path.home() / ".cache" / "tilewright"
    except RuntimeError:
        return temporary_folder()


def temporary_folder() -> Path:
    """Return the folder of this user in the folder for temporary files."""
    try:
        shared = tempfile.gettempdir()
    except OSError:  # no folder for temporary files can be written
        shared = "/tmp"  # noqa: S108  # the folder in it is checked
    return Path(shared) / f"tilewright-{_user()}"


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else _SUPERUSER


def check_folder(folder: Path) -> None:
    """Check that only this user and the superuser can write a folder.

    Write permissions of others are removed from :func:`user_folder`, but not from other folders,
    which the user selected.

    Raises
    ------
    NotPrivateError
        If another user owns the folder, or can write it.
    OSError
        If it does not exist, or is not a folder.
    """
    state = folder.stat()
    if not stat.S_ISDIR(state.st_mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    if state.st_uid not in (_user(), _SUPERUSER):
        raise NotPrivateError(f"{folder} belongs to user {state.st_uid}, not to user {_user()}")
    if not state.st_mode & _WRITABLE_BY_OTHERS:
        return
    if state.st_uid != _user() or folder != user_folder():
        raise NotPrivateError(f"other users can write {folder}, which `chmod go-w` prevents")
    folder.chmod(stat.S_IMODE(state.st_mode) & ~_WRITABLE_BY_OTHERS)


def make_folder(folder: Path) -> None:
    """Create a folder that only this user can access, unless it exists; check it.

    Raises
    ------
    OSError
        If it cannot be created, or other users can write it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_folder(folder)


def open_file(path: Path, flags: int) -> int:
    """Open a regular file of this user that only this user can write.

    Links are not followed, and pipes do not block.

    Raises
    ------
    NotPrivateError
        If it is another kind of file, or another user owns it or can write it.
    OSError
        If it cannot be opened.
    """
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    state = os.fstat(descriptor)
    trusted = state.st_uid in (_user(), _SUPERUSER) and not state.st_mode & _WRITABLE_BY_OTHERS
    if stat.S_ISREG(state.st_mode) and trusted:
        return descriptor
    os.close(descriptor)
    raise NotPrivateError(f"{path} is not a regular file that only user {_user()} can write")


def read_file(path: Path, most: int) -> bytes:
    """Return the content of a file of this user that only this user can write.

    Raises
    ------
    NotPrivateError
        If it is another kind of file, is larger than ``most`` bytes, or another user owns it or can
        write it.
    OSError
        If it cannot be read.
    """
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise NotPrivateError(f"{path} has {size} bytes, more than {most}")
        return file.read(size + 1)
