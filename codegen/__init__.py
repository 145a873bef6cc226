"""Compilation and execution of programs: lowering, LLVM, and the runtime.

Example
-------
>>> from tilewright.codegen import compile
>>> compile.__name__
'compile'
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler import compile
    from .runtime.executable import Executable

__all__ = ["Executable", "compile"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, because compile workers import this package too."""
    match name:
        case "compile":
            from .compiler import compile

            return compile
        case "Executable":
            from .runtime.executable import Executable

            return Executable
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
