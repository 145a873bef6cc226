"""A compile worker: a process that turns LLVM text into objects, because LLVM may abort.

It reads requests from its standard input and writes answers to what was its standard output;
anything that LLVM prints goes to standard error, which the owner keeps for its message.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from ...ir.errors import TilewrightError
from ...ir.target import Target
from .protocol import PipeClosedError, read_frame, write_frame


def answer(request: dict[str, Any], text: str) -> bytes:
    """Do one request: ``object``, ``image`` for a GPU, ``assembly`` or ``optimized`` LLVM text."""
    from ..llvm import assembly, compile_text, image, optimized_text

    given = request["target"]
    target = Target(
        given["kind"], arch=given["arch"], features=given["features"], threads=given["threads"]
    )
    opt = int(request["opt"])
    match request["want"]:
        case "object":
            return compile_text(text, target, opt=opt)
        case "assembly":
            return assembly(text, target, opt=opt).encode()
        case "optimized":
            return optimized_text(text, target, opt=opt).encode()
        case "image":
            return image(text, target, opt=opt).to_bytes()
        case other:
            raise TilewrightError(f"a worker cannot make {other!r}")


def _end_with(owner: int) -> None:
    """End this process soon after its owner's, also while LLVM is at work."""
    while os.getppid() == owner:
        time.sleep(1.0)
    os._exit(1)


def main() -> None:
    """Answer until the owner closes the pipe."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    answers = os.dup(1)
    os.dup2(2, 1)
    while True:
        try:
            request, blob = read_frame(0)
        except PipeClosedError:
            return
        try:
            made = answer(request, blob.decode())
        except TilewrightError as error:
            write_frame(answers, {"ok": False, "error": error.to_json()})
        else:
            write_frame(answers, {"ok": True}, made)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(1)
