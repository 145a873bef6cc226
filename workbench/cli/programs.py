"""Loading of programs and traces from files."""

from __future__ import annotations

import argparse
import logging
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import TilewrightError
from ...ir.module import Function, Module
from ...ir.script import parse
from ...schedules import Schedule, Trace, from_json
from ...target.target import Target
from .command import CommandError

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_PROGRAM = "models have the extension .onnx or .pt2; any other file is a program text"


class InputFileError(TilewrightError):
    """An input file that cannot be read, or whose content is not of the expected format."""

    title = "Invalid input file"


def load_program(name: str) -> Module:
    """Import or parse a program.

    Raises
    ------
    CommandError
        If the file does not exist.
    InputFileError
        If the file cannot be read.
    """
    if name == "-":
        return parse(_text(sys.stdin.read, "standard input", _PROGRAM))
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"no file {name!r}", where=str(Path.cwd()))
    match path.suffix:
        case ".onnx":
            from ...ir.importers import from_onnx

            return from_onnx(path)
        case ".pt2":
            from ...ir.importers import from_exported_program

            return from_exported_program(_load_exported(path))
        case _:
            return parse(_read_text(path, _PROGRAM))


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
    if not path.is_file():
        raise CommandError(f"no trace file {name!r}", where=str(Path.cwd()))
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


def _load_exported(path: Path) -> ExportedProgram:
    import torch

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
        return torch.export.load(path)
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
    schedule = Schedule(load_program(options.program), target)
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
        raise CommandError(
            message, hint=f"select a function with --function: {', '.join(functions)}"
        )
    return functions[wanted]
