"""The command ``inspect``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ...errors import Json
from .command import Command, CommandError, Output

if TYPE_CHECKING:
    from ...codegen.export.inspection import Description


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "library", help="directory of an export, or a .so, .a, .o, or .wasm file of it"
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--verify",
        action="store_true",
        help="compare the files of the directory with the sha256 in its manifest; exit code 1 if "
        "one differs",
    )
    chosen.add_argument(
        "--needs",
        metavar="SYMBOL=VALUE,...",
        help="print the workspace of a call and the shapes of its results; this loads the library",
    )
    chosen.add_argument(
        "--against",
        metavar="NEW",
        help="compare with a newer export, and print whether it may replace this one: exit code 0 "
        "if it is compatible, 3 if it also accepts more, 4 if it breaks programs",
    )


def _inspect(options: argparse.Namespace) -> Output:
    from ...codegen.export.inspection import description_lines, read_description
    from ...codegen.export.machine_levels import chosen_level, level_lines, missing_by_level

    path = Path(options.library)
    found = read_description(path)
    if options.verify:
        return _verify(found)
    if options.needs is not None:
        return _needs(path, found, options.needs)
    if options.against is not None:
        return _compare(found, read_description(Path(options.against)))
    facts = dict(found.facts)
    if "levels" in facts:
        facts["machine"] = {"level": chosen_level(found), "lacks": missing_by_level(found)}
    text = "\n".join((*description_lines(found), *level_lines(found)))
    return Output(text, cast("Json", facts))


def _verify(found: Description) -> Output:
    from ...codegen.export.inspection import altered_files

    altered: list[Json] = list(altered_files(found))
    count = len(found.facts["files"])
    text = "\n".join(map(str, altered)) if altered else f"{count} files have the listed sha256"
    return Output(text, {"altered": altered}, 1 if altered else 0)


def _needs(path: Path, found: Description, text: str) -> Output:
    from ...codegen.export.needs import needs_of

    sizes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise CommandError(
                f"--needs {part!r} does not have the form SYMBOL=VALUE, such as n=4",
                where="argument --needs",
            )
        sizes[name] = int(value)
    needs = needs_of(path, found, sizes)
    data = cast("Json", [asdict(need) for need in needs])
    return Output("\n".join(map(str, needs)), {"needs": data})


def _compare(old: Description, new: Description) -> Output:
    from ...codegen.export.compatibility import compare

    comparison = compare(old, new)
    verdict = comparison.verdict
    differences: list[Json] = [
        {"verdict": d.verdict.name.lower(), "text": d.text} for d in comparison.differences
    ]
    text = "\n".join((verdict.name.lower(), *(f"  {d}" for d in comparison.differences)))
    return Output(text, {"verdict": verdict.name.lower(), "differences": differences}, verdict)


INSPECT = Command("inspect", "describe an exported library", _arguments, _inspect)
