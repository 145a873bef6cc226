"""Products of f32 matrices with a constant right operand, of static and symbolic rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from .case import ULP, Case, Goal, compiled, normal, onnx_runtime, size_of

STATIC: Final = (
    # BERT base and large
    (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (512, 768, 768), (512, 3072, 768),
    (384, 1024, 1024), (384, 4096, 1024),
    # Llama of 1 billion parameters
    (1, 2048, 2048), (1, 8192, 2048), (1, 2048, 8192), (64, 2048, 2048), (64, 8192, 2048),
    # MLP-Mixer
    (196, 3072, 768), (768, 384, 196), (768, 196, 384),
    # ResNet-50, as convolutions of one pixel
    (3136, 64, 256), (3136, 256, 64), (784, 512, 128), (196, 1024, 256), (49, 2048, 512),
    # square, skinny, and odd
    (512, 512, 512), (1024, 1024, 1024), (2048, 8, 1024), (1000, 13, 517), (17, 1000, 31),
    (7, 4096, 4096),
)  # fmt: skip
"""M, N, K."""

ROWS: Final = (1, 2, 4, 8, 15, 16, 33, 64, 128, 500, 1024, 2048)
"""The values of the symbolic M; the right operand is 1024 x 1024."""

SHORT = 1e-3
"""Calls below this time have a lower goal."""


def cases(threads: int) -> Iterator[Case]:
    """Yield a case per shape, then one per number of rows."""
    for m, n, k in STATIC:
        w = normal(2, (k, n))
        ours = compiled(f"x: Tensor[({m}, {k}), f32]", 'y = matmul(x, const("w"))', threads, w=w)
        yield _case(f"{m} x {n} x {k}", ours, normal(1, (m, k)), w, threads)
    w = normal(2, (1024, 1024))
    ours = compiled("x: Tensor[(n, 1024), f32]", 'y = matmul(x, const("w"))', threads, w=w)
    for m in ROWS:
        yield _case(f"symbolic {m} x 1024 x 1024", ours, normal(1, (m, 1024)), w, threads)


def _case(name: str, ours: Callable[..., object], x: Any, w: Any, threads: int) -> Case:
    import numpy as np
    import torch

    tx, tw_ = torch.from_numpy(x), torch.from_numpy(w)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    bound = x.shape[1] * ULP * (np.abs(x).astype(np.float64) @ np.abs(w)) + ULP
    operations = 2 * exact.size * x.shape[1]
    peers = {
        "numpy": lambda: x @ w,
        "torch": lambda: tx @ tw_,
        "onnxruntime": onnx_runtime("MatMul", {"x": x}, {"w": w}, threads, {}),
    }
    short = operations < 100e9 * SHORT
    return Case(
        name,
        lambda: ours(x),
        peers,
        exact,
        bound,
        operations,
        size_of(x, w) + 4 * exact.size,
        Goal(peer=1.2, roof=0.85 if short else 0.92),
    )
