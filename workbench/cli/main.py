"""From arguments to a verb, and from errors to exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from ...ir.errors import Json, TilewrightError
from . import execute, look, service, ship
from .verb import Output, Verb

VERBS: tuple[Verb, ...] = (
    service.LAB,
    execute.COMPILE,
    execute.RUN,
    ship.EXPORT,
    look.REPLAY,
    look.SHOW,
    execute.BENCH,
    service.CACHE,
    service.DOCTOR,
)


def parser() -> argparse.ArgumentParser:
    """Every verb with its arguments."""
    top = argparse.ArgumentParser(
        prog="tilewright",
        description="See, edit, compile and time tensor programs.",
        allow_abbrev=False,
    )
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        sub = verbs.add_parser(verb.name, help=verb.help, description=verb.help)
        verb.arguments(sub)
        sub.add_argument("--json", action="store_true", help="print the same facts as JSON")
        sub.set_defaults(run=verb.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns
    -------
    int
        0 where it worked, 1 where it did not; argparse itself ends with 2 for a wrong command.
    """
    options = parser().parse_args(arguments)
    try:
        output: Output = options.run(options)
    except TilewrightError as error:
        return _fail(error, as_json=options.json)
    return _told(_json(output.data) if options.json else output.text, output.code)


def _told(text: str, code: int) -> int:
    """Print; a reader that has seen enough, such as ``head``, is no fault."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends: to nowhere.
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
