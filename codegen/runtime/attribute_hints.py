"""Hints for attributes that executables of other libraries have."""

from __future__ import annotations

from collections.abc import Sequence


def attribute_hint(name: str, functions: Sequence[str]) -> str:
    """Return the hint for an attribute that is a function, or a name of another library."""
    if name in functions:
        return f"exe[{name!r}] is the function of this name"
    return {
        "run": "call the executable: exe(x)",
        "source": "`exe.llvm(kernel)` and `exe.assembly(kernel)` are the texts of a kernel",
        "asm": "`exe.assembly(kernel)` is the text of a kernel",
        "get_source": "`exe.llvm(kernel)` and `exe.assembly(kernel)` are the texts of a kernel",
        "inspect_source": "`exe.llvm(kernel)` and `exe.assembly(kernel)` are the texts of a kernel",
        "imported_modules": "`exe.llvm(kernel)` and `exe.assembly(kernel)` are texts of kernels",
        "time": "`tilewright.measure(exe, x)` measures calls, `exe.profile(x)` kernels",
        "time_evaluator": "`tilewright.measure(exe, x)` measures calls, `exe.profile(x)` kernels",
    }.get(name, "")
