"""Loading of programs and traces from files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...ir.module import Function, Module
from ...ir.script import parse
from ...schedules import Schedule, Trace, from_json
from ...target.target import Target
from .command import CommandError


def load_program(name: str) -> Module:
    """Import or parse a program.

    Raises
    ------
    CommandError
        If the file does not exist.
    """
    if name == "-":
        return parse(sys.stdin.read())
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"no file {name!r}", where=str(Path.cwd()))
    match path.suffix:
        case ".onnx":
            from ...ir.importers import from_onnx

            return from_onnx(path)
        case ".pt2":
            import torch

            from ...ir.importers import from_exported_program

            return from_exported_program(torch.export.load(path))
        case _:
            return parse(path.read_text(encoding="utf-8"))


def load_trace(name: str) -> Trace:
    """Read a saved trace.

    Raises
    ------
    CommandError
        If the file does not exist.
    """
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"no trace file {name!r}", where=str(Path.cwd()))
    return from_json(path.read_text(encoding="utf-8"))


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
