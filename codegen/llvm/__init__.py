"""Code generation from thread IR to LLVM IR and machine code, for kernels and the host flow."""

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
