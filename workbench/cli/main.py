"""Entry point of the command line: argument parsing, output and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from ...errors import Json, TilewrightError
from ...nearest import did_you_mean
from . import environment, export, inspect, library, run, weights
from .command import Command, Output, OutputFileError

COMMANDS: tuple[Command, ...] = (
    environment.LAB,
    run.COMPILE,
    run.RUN,
    export.EXPORT,
    library.INSPECT,
    weights.WEIGHTS,
    inspect.REPLAY,
    inspect.SHOW,
    run.BENCH,
    environment.CACHE,
    environment.DOCTOR,
)


# A part of a character, which UTF-8 cannot represent. JSON text may contain it as an escape.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CHOICE: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")


class _Parser(argparse.ArgumentParser):
    """A parser that adds a similar name to the error about an invalid choice."""

    def error(self, message: str) -> NoReturn:
        found = _CHOICE.search(message)
        near = did_you_mean(found[1], re.findall(r"[\w-]+", found[2])) if found else ""
        super().error(f"{message}; {near}" if near else message)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _Parser(
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
        The exit code: 0 for success, 1 for failure, or another one of a command. Invalid arguments
        exit with 2.
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
        print(_SURROGATE.sub("?", text), flush=True)
    except OSError as error:
        # Python flushes standard output again at exit, which would raise the same error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            message = f"cannot write to standard output: {error.strerror or error}"
            hint = "print to a terminal, or to a file on a disk with free space"
            return _fail(OutputFileError(message, where="standard output", hint=hint))
    return code


def _fail(error: TilewrightError, *, as_json: bool = False) -> int:
    if as_json:
        print(_json({"error": error.to_json()}))
    else:
        print(f"{error.title}: {error}", file=sys.stderr)
    return 1


def _json(data: Json) -> str:
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
