"""Attention in f32: prefill of all queries, and one query against a cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .case import Case, Goal, compiled, normal, size_of

HEADS: Final = ((12, 64), (8, 128))
"""The number of heads and the size of each."""

LENGTHS: Final = (1, 16, 128, 512, 1024, 2048)
CACHES: Final = (128, 512, 2048, 8192)

GOAL: Final = Goal(peer=1.2, roof=0.92)

_BODY = """
t = permute_dims(k_, axes=(0, 2, 1))
s = matmul(q, t)
r = multiply(s, {scale})
p = softmax(r)
y = matmul(p, v)
"""


def cases(threads: int) -> Iterator[Case]:
    """Yield a case per size of heads and length; the lengths are symbols."""
    for heads, size in HEADS:
        kernel = compiled(
            f"q: Tensor[({heads}, n, {size}), f32], k_: Tensor[({heads}, m, {size}), f32], "
            f"v: Tensor[({heads}, m, {size}), f32]",
            _BODY.format(scale=size**-0.5),
            threads,
        )
        lengths = [*((n, n) for n in LENGTHS), *((1, m) for m in CACHES)]
        for n, m in lengths:
            shapes = ((heads, n, size), (heads, m, size), (heads, m, size))
            yield _case(kernel, [normal(s, shape) for s, shape in enumerate(shapes)])


def _case(kernel: Any, arrays: list[Any]) -> Case:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (torch.from_numpy(a)[None] for a in arrays)
    heads, n, size = arrays[0].shape
    m = arrays[1].shape[1]
    exact = scaled_dot_product_attention(q.double(), k.double(), v.double())[0].numpy()
    return Case(
        f"{heads} x {size}, {n} queries, {m} keys",
        lambda: kernel(*arrays),
        {"torch": lambda: scaled_dot_product_attention(q, k, v)},
        exact,
        2e-5,
        4 * heads * n * m * size,
        size_of(*arrays) + 4 * exact.size,
        GOAL,
    )
