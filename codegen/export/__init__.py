"""Programs as files that run without Python: libraries, objects, kernels of a GPU, WebAssembly."""

from __future__ import annotations

from .errors import ExportError
from .package import KINDS, Exported, export

__all__ = ["KINDS", "ExportError", "Exported", "export"]
