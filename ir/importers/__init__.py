"""Importers of torch.export programs and ONNX models."""

from .handlers import load_handlers
from .onnx_model import from_onnx
from .torch_module import from_torch
from .torch_program import from_exported_program

__all__ = ["from_exported_program", "from_onnx", "from_torch"]

load_handlers()
