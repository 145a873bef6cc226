"""WebGPU: the limits that every implementation has, and optional features of adapters."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FEATURES: Final[Mapping[str, str]] = MappingProxyType(
    {"f16": "shader-f16", "subgroups": "subgroups", "timestamps": "timestamp-query"}
)
"""The optional features of a target, and their names in the WebGPU standard."""

LANGUAGE_FEATURES: Final[Mapping[str, str]] = MappingProxyType(
    {"packed_dot": "packed_4x8_integer_dot_product"}
)
"""Optional features of the shading language, and their names in the standard."""

FEATURE_NAMES: Final = (*FEATURES, *LANGUAGE_FEATURES)
"""The names of all optional features of a target."""

INVOCATIONS: Final = 256
"""The number of invocations in a workgroup."""

WORKGROUP_STORAGE: Final = 16 * 1024
"""The bytes of workgroup memory."""

STORAGE_BINDINGS: Final = 8
"""The number of storage buffers of a shader."""

BINDING_BYTES: Final = 128 * 1024 * 1024
"""The bytes of a storage buffer that a shader can access."""

DISPATCH: Final = 65_535
"""The number of workgroups along one dimension of a dispatch."""

OFFSET_ALIGNMENT: Final = 256
"""The alignment in bytes of the start of a binding in its buffer."""

AXES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "blockIdx.x": min(DISPATCH * DISPATCH, 2**31 - 1),
        "blockIdx.y": DISPATCH,
        "blockIdx.z": DISPATCH,
        "threadIdx.x": 256,
        "threadIdx.y": 256,
        "threadIdx.z": 64,
    }
)
"""The extents of the axes of a launch; a long ``blockIdx.x`` is folded into other dimensions."""
