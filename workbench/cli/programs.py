"""Loading of programs and traces from files."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import TilewrightError
from ...ir.module import Function, Module
from ...ir.script import ParseError, parse
from ...nearest import did_you_mean
from ...schedules import Schedule, Trace, from_json
from ...schedules.problem import TraceError
from ...target.target import Target
from .command import CommandError

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_MAX_FILES: Final = 1000
"""The number of files that are compared with a name that does not exist."""

_PROGRAM: Final = "models have the extension .onnx or .pt2; any other file is a program text"


class InputFileError(TilewrightError):
    """An input file that cannot be read, or whose content is not of the expected format."""

    title = "Invalid input file"


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that no file can have does not exist."""
    return _holds(path.is_file)


def _holds(test: Callable[[], bool]) -> bool:
    try:
        return test()
    except OSError:  # a name that is too long, or a folder without permission to search it
        return False


def missing_file(kind: str, name: str) -> CommandError:
    """Return the error for a file that does not exist, with a similar name in its folder."""
    path = Path(name)
    folder = path.parent
    if _holds(path.is_dir):
        return CommandError(f"{name!r} is a folder", where=str(folder), hint=f"pass a {kind} in it")
    if not _holds(folder.is_dir) or not os.access(folder, os.R_OK | os.X_OK):
        hint = f"the folder {str(folder)!r} does not exist, or cannot be read"
        return CommandError(f"no {kind} {name!r}", where=f"argument {name!r}", hint=hint)
    others = (p.name for p in islice(folder.iterdir(), _MAX_FILES) if is_file(p))
    near = did_you_mean(path.name, sorted(others))
    hint = near or "check the name; a relative name starts at the current folder"
    return CommandError(f"no {kind} {name!r}", where=f"argument {name!r}", hint=hint)


def load_program(name: str, *, trust: bool = False) -> Module:
    """Import or parse a program.

    Parameters
    ----------
    name : str
        The name of a file, or ``-`` for standard input.
    trust : bool, optional
        Whether to load an exported program without verification, although it may execute code.

    Raises
    ------
    CommandError
        If the file does not exist.
    InputFileError
        If the file cannot be read.
    UnverifiedArchiveError
        If loading an exported program could execute code from the file.
    """
    if name == "-":
        return _parsed(_text(sys.stdin.read, "standard input", _PROGRAM), "standard input")
    path = Path(name)
    if not is_file(path):
        raise missing_file("file", name)
    match path.suffix:
        case ".onnx":
            from ...ir.importers import from_onnx

            return from_onnx(path)
        case ".pt2":
            from ...ir.importers import from_exported_program

            return from_exported_program(_load_exported(path, trust=trust))
        case _:
            return _parsed(_read_text(path, _PROGRAM), name)


def _parsed(text: str, name: str) -> Module:
    """Parse a program; the location of an error begins with the name of its file."""
    with located_in(name):
        return parse(text)


@contextmanager
def located_in(name: str) -> Generator[None]:
    """Prepend the name of a file to the location of an error about its content."""
    try:
        yield
    except (ParseError, TraceError) as error:
        error.where = f"{name}, {error.where}" if error.where else name
        raise


def load_trace(name: str) -> Trace:
    """Read a saved trace.

    Raises
    ------
    CommandError
        If the file does not exist.
    InputFileError
        If the file cannot be read.
    """
    path = Path(name)
    if not is_file(path):
        raise missing_file("trace file", name)
    with located_in(name):
        return from_json(_read_text(path, "a trace is a text file, saved in the JSON format"))


def _text(read: Callable[[], str], where: str, hint: str) -> str:
    try:
        return read()
    except OSError as error:
        raise InputFileError(
            f"cannot read the file: {error.strerror or error}", where=where, hint=hint
        ) from error
    except UnicodeDecodeError as error:
        byte = bytes(error.object)[error.start]
        raise InputFileError(
            f"expected UTF-8 text, got byte 0x{byte:02x} at offset {error.start}",
            where=where,
            hint=hint,
        ) from error


def _read_text(path: Path, hint: str) -> str:
    return _text(lambda: path.read_text(encoding="utf-8"), str(path), hint)


def _load_exported(path: Path, *, trust: bool) -> ExportedProgram:
    import torch

    from ...ir.importers.torch_archive import verify_archive

    hint = "save the program with torch.export.save(program, path)"
    if not zipfile.is_zipfile(path):
        raise InputFileError(
            "expected an exported program, got a file that is not a ZIP archive or is truncated",
            where=str(path),
            hint=hint,
        )
    # The loader logs the traceback of the first failure, and raises an error that refers to it.
    logged: list[BaseException] = []

    def collect(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        logged.extend([error] if error else [])
        return error is None

    log = logging.getLogger("torch.export")
    log.addFilter(collect)
    try:
        if not trust:
            verify_archive(path)
        return torch.export.load(path)
    except (TilewrightError, MemoryError):
        raise
    except Exception as error:  # the errors of the loader have no common class
        cause = logged[0] if logged else error
        reason = next(iter(str(cause).splitlines()), "")
        raise InputFileError(
            f"PyTorch cannot load the exported program: {type(cause).__name__}: {reason}",
            where=str(path),
            hint=hint,
        ) from error
    finally:
        log.removeFilter(collect)


def load_schedule(options: argparse.Namespace, target: Target | None = None) -> Schedule:
    """Return a schedule of the program, with the trace applied if there is one.

    Raises
    ------
    TraceMismatchError
        If a step of the trace does not apply.
    """
    schedule = Schedule(load_program(options.program, trust=options.trust), target)
    if options.trace:
        schedule.replay(load_trace(options.trace)).completed()
    return schedule


def chosen_function(module: Module, name: str | None) -> Function:
    """Return the function with a name, else ``main``, else the only one.

    Raises
    ------
    CommandError
        If the function does not exist, or if several functions match.
    """
    functions = module.functions
    wanted = name or ("main" if "main" in functions else None)
    if wanted is None and len(functions) == 1:
        wanted = next(iter(functions))
    if wanted is None or wanted not in functions:
        message = f"no function {wanted!r}" if wanted else "the program has several functions"
        near = did_you_mean(wanted, functions) if wanted else ""
        raise CommandError(
            message,
            where="argument --function",
            hint=f"{near + ' ' if near else ''}select a function with --function: "
            f"{', '.join(functions) or 'the program has none'}",
        )
    return functions[wanted]
