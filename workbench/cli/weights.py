"""The command ``weights``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import Json
from ..selection import bytes_text
from .command import Command, Output, writing


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("pack",), help="pack: pack the weights for a library")
    parser.add_argument(
        "checkpoint",
        metavar="NEW.safetensors",
        help="weights with the names, types, and shapes of the exported program",
    )
    parser.add_argument(
        "--for",
        dest="folder",
        metavar="DIRECTORY",
        required=True,
        help="directory of an export with --weights replaceable",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write (default: the weights in the directory); an existing file is replaced "
        "by rename, so processes that have mapped it keep it",
    )


def _weights(options: argparse.Namespace) -> Output:
    from ...codegen.export.pack import pack_weights

    output = Path(options.output) if options.output else None
    with writing(options.output or options.folder):
        packed = pack_weights(Path(options.checkpoint), Path(options.folder), output)
    lines = [f"{packed.path}: {bytes_text(packed.bytes)}", f"sha256 {packed.sha256}"]
    if packed.unused:
        lines.append(f"unused tensors: {', '.join(packed.unused)}")
    unused: list[Json] = list(packed.unused)
    data: dict[str, Json] = {
        "file": str(packed.path),
        "bytes": packed.bytes,
        "sha256": packed.sha256,
        "unused": unused,
    }
    return Output("\n".join(lines), data)


WEIGHTS = Command("weights", "pack weights for an exported library", _arguments, _weights)
