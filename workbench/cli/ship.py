"""The verb that writes a program as files which run without Python."""

from __future__ import annotations

import argparse
import sys
import time

from ...ir.errors import Json
from .programs import load_schedule
from .verb import Output, Verb, chosen_target, program_arguments, target_arguments


def _arguments(parser: argparse.ArgumentParser) -> None:
    program_arguments(parser)
    parser.add_argument("-o", "--output", metavar="DIRECTORY", required=True, help="made new")
    parser.add_argument(
        "--kind",
        default="shared",
        help="shared (default), static, object, ptx, cubin or wasm",
    )
    parser.add_argument(
        "--name", default="model", help="begins the names of files and C functions (default: model)"
    )
    target_arguments(parser)


class _Meter:
    """One line on standard error, rewritten as work goes on; silent where nobody looks."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def tell(self, fraction: float, message: str) -> None:
        if self._shown:
            print(f"\r\x1b[K{fraction:4.0%}  {message}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _export(options: argparse.Namespace) -> Output:
    from ...codegen.export import export

    target = chosen_target(options)
    schedule = load_schedule(options, target)
    meter, started = _Meter(), time.perf_counter()
    try:
        made = export(
            schedule, options.output, target=target, kind=options.kind, name=options.name,
            progress=meter.tell,
        )  # fmt: skip
    finally:
        meter.clear()
    seconds = time.perf_counter() - started
    files: dict[str, Json] = dict(made.files)
    data: dict[str, Json] = {
        "directory": str(made.directory),
        "kind": options.kind,
        "target": str(target),
        "seconds": seconds,
        "files": files,
    }
    return Output(f"{made}\nmade for {target} in {seconds:.1f} s", data)


EXPORT = Verb("export", "write a program as files that run without Python", _arguments, _export)
