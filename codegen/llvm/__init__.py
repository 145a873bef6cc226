"""Thread-level IR to LLVM and machine code, for kernels and the host flow alike."""

from .compile import CodeGenerationError, assembly, compile_text, optimized_text
from .module import emit_module

__all__ = ["CodeGenerationError", "assembly", "compile_text", "emit_module", "optimized_text"]
