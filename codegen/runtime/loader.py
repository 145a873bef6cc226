"""Put object files into this process: the addresses of their functions."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import binding

from ...ir.target import Target
from ..cpu import require_runnable, resolve
from ..llvm.compile import target_machine
from .errors import CompileError


class Library:
    """Machine code in memory, as long as the object lives.

    Parameters
    ----------
    objects : sequence of bytes
        Object files that may refer to each other; none is loaded twice into one library.
    target : Target
        What they were compiled for.

    Raises
    ------
    UnsupportedPlatformError
        If this machine cannot run that.
    """

    def __init__(self, objects: Sequence[bytes], target: Target) -> None:
        """Link and load."""
        require_runnable(target)
        machine = target_machine(resolve(target))
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        for data in objects:
            self._engine.add_object_file(binding.ObjectFileRef.from_data(data))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Give the address of a function.

        Raises
        ------
        CompileError
            If the library has none of that name.
        """
        found = self._engine.get_function_address(name)
        if not found:
            raise CompileError(f"no native function {name!r} was loaded")
        return found
