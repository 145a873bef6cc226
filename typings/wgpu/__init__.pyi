from typing import Any

class GPUError(Exception): ...

class GPU:
    wgsl_language_features: frozenset[str]
    def request_adapter_sync(self, *, power_preference: str = ...) -> Any: ...

class BufferUsage:
    STORAGE: int
    UNIFORM: int
    COPY_SRC: int
    COPY_DST: int

class ShaderStage:
    COMPUTE: int

gpu: GPU
