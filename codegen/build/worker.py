"""A compile worker: a process that compiles LLVM text, because LLVM may abort its process.

It reads requests from its standard input and writes answers to its original standard output. Output
of LLVM itself is redirected to standard error, which the owner includes in error messages.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from ...errors import TilewrightError
from ...target.target import Target
from .protocol import PipeClosedError, read_frame, write_frame


def answer(request: dict[str, Any], text: str) -> bytes:
    """Return the output of one request: object, GPU image, assembly, or optimized LLVM text."""
    from ..llvm import assembly, compile_text, image, optimized_text

    fields = request["target"]
    target = Target(
        fields["kind"], arch=fields["arch"], features=fields["features"], threads=fields["threads"]
    )
    opt = int(request["opt"])
    match request["output"]:
        case "object":
            return compile_text(text, target, opt=opt)
        case "assembly":
            return assembly(text, target, opt=opt).encode()
        case "optimized":
            return optimized_text(text, target, opt=opt).encode()
        case "image":
            return image(text, target, opt=opt).to_bytes()
        case other:
            raise TilewrightError(f"unknown artifact kind {other!r}")


def _exit_with(owner: int) -> None:
    """Exit soon after the owner process exits, also while LLVM is running."""
    while os.getppid() == owner:
        time.sleep(1.0)
    os._exit(1)


def main() -> None:
    """Answer requests until the owner closes the pipe."""
    threading.Thread(target=_exit_with, args=(os.getppid(),), daemon=True).start()
    answers = os.dup(1)
    os.dup2(2, 1)
    while True:
        try:
            request, blob = read_frame(0)
        except PipeClosedError:
            return
        try:
            output = answer(request, blob.decode())
        except TilewrightError as error:
            write_frame(answers, {"ok": False, "error": error.to_json()})
        else:
            write_frame(answers, {"ok": True}, output)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(1)
