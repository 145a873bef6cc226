"""NVIDIA GPUs as code generation sees them: machines, the assembler, what a kernel becomes."""

from .image import Image
from .machine import STATIC_SHARED, Gpu, SharedLayout, dynamic_bytes, resolve_gpu, shared_layout
from .ptxas import (
    AssemblerError,
    AssemblerMissingError,
    Cubin,
    Resources,
    assemble,
    assembler,
    assembler_version,
    disassemble,
    resource_table,
)

__all__ = [
    "STATIC_SHARED",
    "AssemblerError",
    "AssemblerMissingError",
    "Cubin",
    "Gpu",
    "Image",
    "Resources",
    "SharedLayout",
    "assemble",
    "assembler",
    "assembler_version",
    "disassemble",
    "dynamic_bytes",
    "resolve_gpu",
    "resource_table",
    "shared_layout",
]
