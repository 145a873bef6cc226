"""Models from elsewhere: programs of torch.export, and ONNX."""

from .torch_program import from_exported_program

__all__ = ["from_exported_program"]
