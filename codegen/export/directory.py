"""The output directory of an export, which is written in a temporary folder and then moved."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Final, cast

from .errors import ExportDirectoryError

MADE: Final = "made"
"""The subfolder of the temporary folder with the exported files."""
_OLD: Final = "old"
_IGNORED: Final = frozenset({"__pycache__"})
"""The files that importing a Python loader adds to an exported directory."""


def output_path(directory: str | os.PathLike[str]) -> Path:
    """Return the path of the output directory.

    Raises
    ------
    ExportDirectoryError
        If it is not a path.
    """
    try:
        return Path(directory)
    except TypeError:
        raise ExportDirectoryError(
            f"expected a path, got {directory!r}", hint="pass a str or a pathlib.Path"
        ) from None


def temporary_folder(made: Path, *, force: bool) -> Path:
    """Create a temporary folder next to the output directory.

    Parameters
    ----------
    made : Path
        The output directory.
    force : bool
        Whether the directory may be that of an earlier export.

    Raises
    ------
    ExportDirectoryError
        If the output directory exists and cannot be replaced, or cannot be written.
    """
    try:
        if os.path.lexists(made):
            _check_replaceable(made, force=force)
        made.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{made.name}.", dir=made.parent))
    except OSError as error:
        raise ExportDirectoryError(
            f"cannot write to {made.parent}: {error.strerror}", hint="choose another directory"
        ) from error
    except ValueError as error:  # a null byte, which file names cannot contain
        raise ExportDirectoryError(
            f"{str(made)!r}: {error}", hint="choose another directory"
        ) from None


def install(temporary: Path, made: Path, *, force: bool) -> None:
    """Move the exported files to the output directory.

    An earlier export is moved into the temporary folder first, and back if the second move fails.

    Raises
    ------
    ExportDirectoryError
        If the output directory was created meanwhile and cannot be replaced.
    """
    if not os.path.lexists(made):
        (temporary / MADE).replace(made)
        return
    _check_replaceable(made, force=force)
    made.replace(temporary / _OLD)
    try:
        (temporary / MADE).replace(made)
    except OSError:
        (temporary / _OLD).replace(made)
        raise


def sync(folder: Path) -> None:
    """Write all files to disk, before the directory gets its final name."""
    for path in (*folder.iterdir(), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _check_replaceable(made: Path, *, force: bool) -> None:
    if not force:
        raise ExportDirectoryError(
            f"{made} exists already",
            hint="remove it, choose another directory, or replace an earlier export with "
            "force=True (tilewright export --force)",
        )
    if made.is_symlink() or not made.is_dir():
        raise ExportDirectoryError(
            f"{made} exists already and is not a directory", hint="choose another directory"
        )
    names = {path.name for path in made.iterdir()} - _IGNORED
    foreign = sorted(names - _exported_names(made))
    if foreign:
        raise ExportDirectoryError(
            f"{made} contains {foreign[0]!r}, which is not a file of an export",
            hint="choose another directory; force replaces only the files of an earlier export",
        )


def _exported_names(folder: Path) -> set[str]:
    """Return the names of the manifests in a folder and of the files that they list."""
    found: set[str] = set()
    for path in folder.glob("*.json"):
        try:
            manifest = cast("object", json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            continue
        if isinstance(manifest, dict):
            content = cast("dict[str, object]", manifest)
            files = content.get("files")
            if {"schema", "name", "made_by"} <= content.keys() and isinstance(files, dict):
                found |= {path.name, *cast("dict[str, object]", files)}
    return found
