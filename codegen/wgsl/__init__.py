"""Generation of WGSL, the shading language of WebGPU, from thread IR."""

from .emitter import UnsupportedShaderError
from .functions import NATIVE
from .shader import Shader, emit_shaders, from_bytes, to_bytes

__all__ = [
    "NATIVE",
    "Shader",
    "UnsupportedShaderError",
    "emit_shaders",
    "from_bytes",
    "to_bytes",
]
