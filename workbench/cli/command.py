"""Commands of the command line, and the arguments they share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from ...errors import Json, TilewrightError
from ...ir.symbolic import Var
from ...target.target import Target


class CommandError(TilewrightError):
    """A command with invalid arguments, or whose prerequisites are missing."""

    title = "Invalid command"


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a command: text, the same values as JSON data, and the exit code."""

    text: str
    data: Json
    code: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, help text, arguments, and implementation."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Output]


def program_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that load a program."""
    parser.add_argument(
        "program",
        help="model (.onnx, .pt2) or program text (any other file; - is standard input)",
    )
    parser.add_argument("--trace", metavar="FILE", help="saved trace to apply first")


def target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that compile."""
    parser.add_argument("--target", default="cpu", help="cpu, cuda, or simt (default: cpu)")
    parser.add_argument("--arch", default="", help="architecture, such as aarch64 or sm_90a")
    parser.add_argument(
        "--features",
        default="",
        help="feature sets or processor features, separated by commas, such as avx2 or avx512",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=0,
        help="number of threads; 0 means one per core (default: 0)",
    )


def size_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that execute: the function and its sizes."""
    parser.add_argument(
        "--function", metavar="NAME", help="function to use (default: main, or the only one)"
    )
    parser.add_argument(
        "--size",
        metavar="SYMBOL=VALUE",
        action="append",
        default=[],
        help="value of a symbol; may be repeated",
    )


def chosen_target(options: argparse.Namespace) -> Target:
    """Return the target that the arguments describe."""
    features = tuple(word for word in str(options.features).split(",") if word)
    return Target(options.target, arch=options.arch, features=features, threads=options.threads)


def chosen_sizes(options: argparse.Namespace, symbols: tuple[Var, ...]) -> dict[str, int]:
    """Return the values of all ``--size n=4`` arguments.

    Raises
    ------
    CommandError
        If an argument does not have this form, or if the symbol does not exist.
    """
    names = [symbol.name for symbol in symbols]
    sizes: dict[str, int] = {}
    for text in options.size:
        name, equals, value = str(text).partition("=")
        if not equals or not value.lstrip("-").isdigit():
            raise CommandError(f"--size {text!r} does not have the form SYMBOL=VALUE, such as n=4")
        if name not in names:
            raise CommandError(
                f"no symbol {name!r}", hint=f"symbols are {', '.join(names) or 'none'}"
            )
        sizes[name] = int(value)
    return sizes
