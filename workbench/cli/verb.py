"""What a verb of the command line is, and the arguments that several of them take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from ...ir.errors import Json, TilewrightError
from ...ir.symbolic import Var
from ...ir.target import Target


class CommandError(TilewrightError):
    """A command that cannot be carried out as it was given."""

    title = "Command error"


@dataclass(frozen=True, slots=True)
class Output:
    """What a verb tells: text for people, the same facts as data, and the exit code."""

    text: str
    data: Json
    code: int = 0


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its name, a line of help, its arguments, and what it does."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Output]


def program_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verbs that take a program."""
    parser.add_argument(
        "program",
        help="a model (.onnx, .pt2), or a program as text (any other file; - is standard input)",
    )
    parser.add_argument("--trace", metavar="FILE", help="steps to apply first (a saved trace)")


def target_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verbs that compile."""
    parser.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    parser.add_argument("--arch", default="", help="processor or GPU, such as aarch64 or sm_90a")
    parser.add_argument("--features", default="", help="instruction sets, such as avx2 or avx512")
    parser.add_argument("--threads", type=int, default=0, help="threads; 0 is one per core")


def size_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verbs that run: the function and its sizes."""
    parser.add_argument("--function", metavar="NAME", help="default: main, or the only one")
    parser.add_argument(
        "--size",
        metavar="SYMBOL=VALUE",
        action="append",
        default=[],
        help="the value of a symbol; may be given several times",
    )


def chosen_target(options: argparse.Namespace) -> Target:
    """The target that the arguments describe."""
    features = tuple(word for word in str(options.features).split(",") if word)
    return Target(options.target, arch=options.arch, features=features, threads=options.threads)


def chosen_sizes(options: argparse.Namespace, symbols: tuple[Var, ...]) -> dict[str, int]:
    """Read ``--size n=4``.

    Raises
    ------
    CommandError
        If one is not of that form, or names no symbol of the function.
    """
    names = [symbol.name for symbol in symbols]
    sizes: dict[str, int] = {}
    for text in options.size:
        name, equals, value = str(text).partition("=")
        if not equals or not value.lstrip("-").isdigit():
            raise CommandError(f"--size {text!r} is not of the form n=4")
        if name not in names:
            raise CommandError(
                f"no symbol {name!r}", hint=f"symbols are {', '.join(names) or 'none'}"
            )
        sizes[name] = int(value)
    return sizes
