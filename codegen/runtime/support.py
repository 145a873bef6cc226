"""The run-time support of this process: compiled once, loaded once, never unloaded.

The deleters of result tensors and the providers of the runtime table live here, because they
outlive any executable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from threading import Lock

from ...ir.host.translate import support_functions
from ...ir.target import Target
from ..llvm import emit_module
from ..lower.host import lower_host
from .build import build_objects
from .loader import Library

_LOCK = Lock()


@cache
def support_text(target: Target) -> str:
    """Give the LLVM text of the run-time support."""
    functions = [dataclasses.replace(lower_host(f), exported=True) for f in support_functions()]
    return emit_module(functions, target)


@cache
def _object(target: Target) -> bytes:
    return build_objects([("run-time support", support_text(target))], target).objects[0]


def support_object(target: Target) -> bytes:
    """Give the object file of the run-time support, which every executable is linked with."""
    with _LOCK:
        return _object(target)


@cache
def _library() -> Library:
    return Library([support_object(Target("cpu"))], Target("cpu"))


@cache
def support_address(function: Callable[..., object]) -> int:
    """Give the address of a support function, valid as long as the process.

    It is remembered, so that a forked child need not ask LLVM, whose lock may be held by a thread
    that it does not have.
    """
    return _library().address(f"tw_{function.__name__}")
