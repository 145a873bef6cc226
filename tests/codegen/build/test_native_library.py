"""Loaded machine code: its addresses, and the time at which it is freed."""

from __future__ import annotations

import gc
import sys

import pytest

from tilewright.codegen.build.native_library import Library
from tilewright.codegen.errors import CompileError
from tilewright.target.target import Target


class Engine:
    """An execution engine that counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def finalized() -> Engine:
    """Return the engine of a library after the finalizer of the library."""
    library, engine = Library([], Target("cpu")), Engine()
    library._engine = engine
    del library
    gc.collect()
    return engine


def test_the_code_of_a_library_is_freed() -> None:
    assert finalized().closed == 1


def test_the_code_is_kept_while_python_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finalizers of executables that outlive the modules call it after that."""
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    assert finalized().closed == 0


def test_a_function_that_the_library_lacks() -> None:
    with pytest.raises(CompileError, match="no native function 'missing'"):
        Library([], Target("cpu")).address("missing")
