"""Commands of the command line, and the arguments they share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ...errors import Json, TilewrightError
from ...ir.symbolic import Var
from ...nearest import did_you_mean
from ...target.target import Target
from ..symbols import SampleError

_MAX_DIGITS: Final = 40
"""The number of characters of an integer on the command line."""

_MAX_SHOWN: Final = 60
"""The number of characters of an argument that a message quotes."""


class CommandError(TilewrightError):
    """A command with invalid arguments, or whose prerequisites are missing."""

    title = "Invalid command"


class OutputFileError(TilewrightError):
    """An output file that cannot be written."""

    title = "Invalid output file"


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


def program_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the arguments of commands that load a program."""
    parser.add_argument(
        "program",
        nargs=None if required else "?",
        help="model (.onnx, .pt2) or program text (any other file; - is standard input)",
    )
    parser.add_argument("--trace", metavar="FILE", help="saved trace to apply first")
    trust_argument(parser)


def trust_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that permits files that may execute code."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load a .pt2 file without verification; loading such a file can execute code from "
        "it. Without this option, expressions, operators, and pickles in the file are verified, "
        "and the file is rejected if it contains anything else that PyTorch would execute",
    )


def target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that compile."""
    parser.add_argument("--target", default="cpu", help="cpu, cuda, simt, or webgpu (default: cpu)")
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
    parser.add_argument(
        "--where",
        default="",
        help="where kernels of target webgpu run: browser, or nothing for this machine (default)",
    )


def natural(text: str) -> int:
    """Convert an argument to a non-negative integer."""
    if not text.isdecimal() or len(text) >= _MAX_DIGITS:
        message = f"expected an integer that is not negative, got {_clipped(text)!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


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


@contextmanager
def writing(path: str) -> Generator[None]:
    """Report a failed write to an output file as a user error.

    Raises
    ------
    OutputFileError
        If the body raises an `OSError`, or a `ValueError` for a name with a null character.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        raise OutputFileError(
            f"cannot write the output file: {getattr(error, 'strerror', None) or error}",
            where=path,
            hint="choose a file in an existing, writable directory",
        ) from error


def chosen_target(options: argparse.Namespace) -> Target:
    """Return the target that the arguments describe."""
    features = tuple(word for word in str(options.features).split(",") if word)
    return Target(
        options.target,
        arch=options.arch,
        features=features,
        threads=options.threads,
        where=options.where,
    )


def chosen_sizes(options: argparse.Namespace, symbols: tuple[Var, ...]) -> dict[str, int]:
    """Return the values of all ``--size n=4`` arguments.

    Raises
    ------
    CommandError
        If an argument does not have this form, or if the symbol does not exist.
    SampleError
        If a value is less than the lower bound of its symbol.
    """
    named = {symbol.name: symbol for symbol in symbols}
    sizes: dict[str, int] = {}
    for text in options.size:
        name, equals, value = str(text).partition("=")
        if not equals or not value.removeprefix("-").isdecimal() or len(value) > _MAX_DIGITS:
            raise CommandError(
                f"--size {_clipped(text)!r} does not have the form SYMBOL=VALUE, such as n=4",
                where=f"argument --size {_clipped(text)}",
                hint=f"the value is an integer of at most {_MAX_DIGITS} characters",
            )
        if name not in named:
            near = did_you_mean(name, named)
            raise CommandError(
                f"no symbol {name!r}",
                where=f"argument --size {_clipped(text)}",
                hint=f"{near + ' ' if near else ''}symbols are {', '.join(named) or 'none'}",
            )
        sizes[name] = _at_least(named[name].lower, text, int(value))
    return sizes


def _clipped(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _at_least(lower: int | None, text: str, value: int) -> int:
    if lower is not None and value < lower:
        raise SampleError(
            f"the value {value} is less than the lower bound {lower} of the symbol",
            where=f"--size {text}",
            hint=f"choose a value of at least {lower}",
        )
    return value
