"""The run-time library of this process: compiled once, loaded once, never unloaded.

It contains the deleters of result tensors and the providers of the runtime table, which outlive
all executables.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from threading import Lock

from ...locks import renew_in_children
from ...target.target import Target
from .build_objects import own_object
from .native_library import Library

_lock = Lock()
renew_in_children(sys.modules[__name__])


@cache
def rtlib_llvm_text(target: Target) -> str:
    """Return the LLVM text of the run-time library."""
    from ..llvm import emit_module
    from ..lower.host.to_thread import lower_host
    from ..rtlib.translate import rtlib_functions

    functions = [dataclasses.replace(lower_host(f), exported=True) for f in rtlib_functions()]
    return emit_module(functions, target, sections=True)


@cache
def _object(target: Target) -> bytes:
    return own_object("run-time library", lambda: rtlib_llvm_text(target), target)


def rtlib_object_code(target: Target) -> bytes:
    """Return the object file of the run-time library, which is linked into every executable."""
    with _lock:
        return _object(dataclasses.replace(target, threads=0))  # the code does not depend on it


@cache
def _library() -> Library:
    return Library([rtlib_object_code(Target("cpu"))], Target("cpu"))


@cache
def rtlib_address(function: Callable[..., object]) -> int:
    """Return the address of a function of the run-time library.

    Addresses are cached, because a forked child process must not call LLVM: a thread that the child
    does not have may hold LLVM's lock.
    """
    return _library().address(f"tw_{function.__name__}")
