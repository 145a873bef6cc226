"""Entry point of the command line: argument parsing, output and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from ...errors import Json, TilewrightError
from . import environment, export, inspect, run
from .command import Command, Output

COMMANDS: tuple[Command, ...] = (
    environment.LAB,
    run.COMPILE,
    run.RUN,
    export.EXPORT,
    inspect.REPLAY,
    inspect.SHOW,
    run.BENCH,
    environment.CACHE,
    environment.DOCTOR,
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="tilewright",
        description="Inspect, transform, compile, and measure tensor programs.",
        allow_abbrev=False,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        description = command.help[0].upper() + command.help[1:] + "."
        sub = commands.add_parser(command.name, help=command.help, description=description)
        command.arguments(sub)
        sub.add_argument("--json", action="store_true", help="print the output as JSON")
        sub.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns
    -------
    int
        The exit code: 0 for success, 1 for failure. Invalid arguments exit with 2.
    """
    options = parser().parse_args(arguments)
    try:
        output: Output = options.run(options)
    except TilewrightError as error:
        return _fail(error, as_json=options.json)
    return _print(_json(output.data) if options.json else output.text, output.code)


def _print(text: str, code: int) -> int:
    """Print the output; a closed pipe, as of ``head``, is not an error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes standard output again at exit, which would raise the same error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _fail(error: TilewrightError, *, as_json: bool) -> int:
    if as_json:
        print(_json({"error": error.to_json()}))
    else:
        print(f"{error.title}: {error}", file=sys.stderr)
    return 1


def _json(data: Json) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
