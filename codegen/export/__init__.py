"""Export of programs to libraries, object files, GPU kernels and WebAssembly modules."""

from __future__ import annotations

from .errors import ExportError
from .package import KINDS, Exported, export

__all__ = ["KINDS", "ExportError", "Exported", "export"]
