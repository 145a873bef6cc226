"""Programs from files: models, or text."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...ir.module import Function, Module
from ...ir.script import parse
from ...ir.target import Target
from ...schedules import Schedule, Trace, from_json
from .verb import CommandError


def load_program(name: str) -> Module:
    """Import or parse a program.

    Raises
    ------
    CommandError
        If there is no such file.
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
        If there is no such file.
    """
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"no trace {name!r}", where=str(Path.cwd()))
    return from_json(path.read_text(encoding="utf-8"))


def load_schedule(options: argparse.Namespace, target: Target | None = None) -> Schedule:
    """A schedule of the program, with the trace applied if one is given.

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
    """The function that was asked for: by name, else ``main``, else the only one.

    Raises
    ------
    CommandError
        If there is none, or several to choose from.
    """
    functions = module.functions
    wanted = name or ("main" if "main" in functions else None)
    if wanted is None and len(functions) == 1:
        wanted = next(iter(functions))
    if wanted is None or wanted not in functions:
        said = f"no function {wanted!r}" if wanted else "several functions to choose from"
        raise CommandError(said, hint=f"--function: one of {', '.join(functions)}")
    return functions[wanted]
