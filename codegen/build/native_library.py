"""Object files loaded into this process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from ...target.host import require_runnable
from ...target.target import Target
from ..errors import CompileError
from ..llvm.compile import target_machine
from ..llvm.exclusive import binding, exclusive
from ..llvm.processor import resolve
from .address_space import one_region


class Library:
    """Machine code in memory, which is freed when the library is destroyed.

    Parameters
    ----------
    objects : sequence of bytes
        Object files, which may refer to each other.
    target : Target
        The target that they were compiled for.

    Raises
    ------
    UnsupportedPlatformError
        If this machine cannot run code for the target.
    """

    def __init__(self, objects: Sequence[bytes], target: Target) -> None:
        """Link and load the objects."""
        require_runnable(target)
        with exclusive():
            machine = target_machine(resolve(target))
            self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
            with one_region(sum(map(len, objects))):
                for data in objects:
                    self._engine.add_object_file(binding.ObjectFileRef.from_data(data))
                self._engine.finalize_object()

    def __del__(self) -> None:
        """Free the machine code; an interrupt would leave the lock of LLVM locked.

        When Python exits, the code is kept: finalizers of other objects may still call it.
        """
        # At exit, modules may be cleared; after an error there is no engine.
        with contextlib.suppress(AttributeError, TypeError):
            if sys.is_finalizing():
                return
            with exclusive():
                self._engine.close()

    def address(self, name: str) -> int:
        """Return the address of a function.

        Raises
        ------
        CompileError
            If no function of the library has this name.
        """
        with exclusive():
            address = self._engine.get_function_address(name)
        if not address:
            raise CompileError(f"no native function {name!r} in the loaded objects")
        return address
