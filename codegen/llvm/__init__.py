"""Thread-level IR to LLVM and machine code, for kernels and the host flow alike."""

from .compile import CodeGenerationError, assembly, compile_text, image, optimized_text
from .locations import Instruction, instructions
from .module import emit_located, emit_module

__all__ = [
    "CodeGenerationError",
    "Instruction",
    "assembly",
    "compile_text",
    "emit_located",
    "emit_module",
    "image",
    "instructions",
    "optimized_text",
]
