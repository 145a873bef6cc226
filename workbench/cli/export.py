"""The command ``export``."""

from __future__ import annotations

import argparse
import time

from ...errors import Json
from .command import (
    Command,
    CommandError,
    Output,
    chosen_target,
    program_arguments,
    target_arguments,
)
from .programs import load_schedule


def _arguments(parser: argparse.ArgumentParser) -> None:
    program_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIRECTORY",
        required=True,
        help="directory to create; it must not exist",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace the directory if it contains only the files of an earlier export",
    )
    parser.add_argument(
        "--kind",
        default="shared",
        help="shared, static, object, ptx, cubin, wasm, or web (default: shared)",
    )
    parser.add_argument(
        "--name",
        default="model",
        help="prefix of the names of files and C functions (default: model)",
    )
    parser.add_argument(
        "--debug",
        default="symbols",
        help="names of internal functions in a shared library: symbols or none (default: symbols)",
    )
    parser.add_argument(
        "--weights",
        default="auto",
        help="packed: pack the weights now, plain: when the library is opened, or auto: packed if "
        "this machine can run the code; replaceable: like auto, and the library accepts other "
        "weights (default: auto)",
    )
    parser.add_argument(
        "--levels",
        metavar="LEVEL,LEVEL",
        default="",
        help="kinds of processors whose code the library contains, such as "
        "x86-64-v2,x86-64-v3,x86-64-v4; a model runs the last one that its processor can execute "
        "(default: only that of the target)",
    )
    parser.add_argument(
        "--metadata",
        metavar="NAME=TEXT",
        action="append",
        default=[],
        help="text that the library and the manifest contain, such as version=1.2; may be repeated",
    )
    target_arguments(parser)


def _metadata(texts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(
                f"--metadata {text!r} does not have the form NAME=TEXT, such as version=1.2",
                where="argument --metadata",
            )
        found[name] = value
    return found


def _export(options: argparse.Namespace) -> Output:
    from ...codegen.export import export

    target = chosen_target(options)
    schedule = load_schedule(options, target)
    levels = [name.strip() for name in options.levels.split(",")] if options.levels else []
    started = time.perf_counter()
    exported = export(
        schedule, options.output, target=target, kind=options.kind, name=options.name,
        force=options.force, debug=options.debug, weights=options.weights, levels=levels,
        metadata=_metadata(options.metadata),
    )  # fmt: skip
    seconds = time.perf_counter() - started
    files: dict[str, Json] = dict(exported.files)
    data: dict[str, Json] = {
        "directory": str(exported.directory),
        "kind": options.kind,
        "target": str(target),
        "levels": list(levels),
        "seconds": seconds,
        "files": files,
    }
    made_for = ", ".join(levels) or target
    return Output(f"{exported}\nexported for {made_for} in {seconds:.1f} s", data)


EXPORT = Command("export", "export a program as files that do not need Python", _arguments, _export)
