"""Code generation for NVIDIA GPUs: shared memory layout, the PTX assembler, kernel images."""

from .image import Image
from .ptxas import (
    AssemblerError,
    AssemblerMissingError,
    Cubin,
    Resources,
    assemble,
    assembler,
    assembler_version,
    disassemble,
    disassembler,
    resource_table,
)
from .shared_memory import SharedLayout, dynamic_bytes, shared_layout

__all__ = [
    "AssemblerError",
    "AssemblerMissingError",
    "Cubin",
    "Image",
    "Resources",
    "SharedLayout",
    "assemble",
    "assembler",
    "assembler_version",
    "disassemble",
    "disassembler",
    "dynamic_bytes",
    "resource_table",
    "shared_layout",
]
