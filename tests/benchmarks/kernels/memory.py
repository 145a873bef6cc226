"""Kernels limited by memory: reductions, norms, layouts, gathers, and element-wise operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .case import ULP, Call, Case, Goal, compiled, normal, onnx_runtime, size_of

GOAL: Final = Goal(peer=1.2, roof=0.9)

SHAPES: Final = ((128, 768), (1024, 1024), (4096, 4096))
"""Matrices that fit into the second level, the last level, and the memory."""


def cases(threads: int) -> Iterator[Case]:
    """Yield a case per operator and shape; the extents are symbols."""
    import numpy as np
    import torch
    from torch.nn import functional

    def onnx(op: str, x: Any, **attributes: Any) -> Mapping[str, Call]:
        return {"onnxruntime": onnx_runtime(op, {"x": x}, {}, threads, attributes)}

    kernels: dict[str, Callable[..., Any]] = {
        name: compiled("x: Tensor[(n, m), f32]", body, threads)
        for name, body in {
            "sum of rows": "y = sum(x, axes=(1,))",
            "sum of columns": "y = sum(x, axes=(0,))",
            "softmax": "y = softmax(x)",
            "transpose": "y = permute_dims(x, axes=(1, 0))",
            "relu": "y = relu(x)",
            "gelu": "y = gelu(x)",
            "cumsum": "y = cumsum(x, axis=1)",
            "argmax": "y = argmax(x, axis=1)",
        }.items()
    }
    norm = compiled(
        "x: Tensor[(n, m), f32], w: Tensor[(m,), f32], b: Tensor[(m,), f32]",
        "y = layer_norm(x, w, b)", threads,
    )  # fmt: skip
    add = compiled("x: Tensor[(n, m), f32], b: Tensor[(m,), f32]", "y = add(x, b)", threads)
    take = compiled(
        "x: Tensor[(n, m), f32], i: Tensor[(k,), i64]", "y = take(x, i, axis=0)", threads
    )
    for shape in SHAPES:
        rows, columns = shape
        x, w, b = normal(1, shape), normal(2, (columns,)), normal(3, (columns,))
        wide, tx = x.astype(np.float64), torch.from_numpy(x)
        at = np.random.default_rng(4).integers(0, rows, rows)
        mean, variance = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
        shifted = np.exp(wide - wide.max(1, keepdims=True))
        tw_, tb, ti = map(torch.from_numpy, (w, b, at))
        length = max(shape) * ULP

        def row(
            name: str, ours: Call, peers: Mapping[str, Call], exact: Any, bound: Any, *more: Any,
            x: Any = x, shape: tuple[int, int] = shape,
        ) -> Case:  # fmt: skip
            made = exact.size * (8 if name == "argmax" else 4)
            title = f"{name} {shape[0]} x {shape[1]}"
            return Case(title, ours, peers, exact, bound, 0, size_of(x, *more) + made, GOAL)

        unary = {
            "sum of rows": (
                {"numpy": lambda x=x: x.sum(1), "torch": lambda t=tx: t.sum(1)},
                wide.sum(1), length * np.abs(wide).sum(1),
            ),
            "sum of columns": (
                {"numpy": lambda x=x: x.sum(0), "torch": lambda t=tx: t.sum(0)},
                wide.sum(0), length * np.abs(wide).sum(0),
            ),
            "softmax": (
                {"torch": lambda t=tx: t.softmax(1), **onnx("Softmax", x)},
                shifted / shifted.sum(1, keepdims=True), 1e-6,
            ),
            "transpose": (
                {"torch": lambda t=tx: t.T.contiguous(), **onnx("Transpose", x, perm=(1, 0))},
                wide.T, ULP,
            ),
            "relu": (
                {"torch": lambda t=tx: t.relu(), **onnx("Relu", x)}, np.maximum(wide, 0), ULP,
            ),
            "gelu": (
                {"torch": lambda t=tx: functional.gelu(t)},
                functional.gelu(tx.double()).numpy(), 1e-5,
            ),
            "cumsum": (
                {"numpy": lambda x=x: x.cumsum(1), "torch": lambda t=tx: t.cumsum(1)},
                wide.cumsum(1), columns * ULP * np.abs(wide).cumsum(1),
            ),
            "argmax": (
                {"numpy": lambda x=x: x.argmax(1), "torch": lambda t=tx: t.argmax(1)},
                x.argmax(1).astype(np.float64), 0.5,
            ),
        }  # fmt: skip
        for name, (peers, exact, bound) in unary.items():
            yield row(name, lambda f=kernels[name], x=x: f(x), peers, exact, bound)
        yield row(
            "layer_norm", lambda x=x, w=w, b=b: norm(x, w, b),
            {"torch": lambda t=tx, w=tw_, b=tb: functional.layer_norm(t, w.shape, w, b)},
            (wide - mean) / np.sqrt(variance + 1e-5) * w + b, 1e-4, w, b,
        )  # fmt: skip
        yield row(
            "add a row", lambda x=x, b=b: add(x, b),
            {"numpy": lambda x=x, b=b: x + b, "torch": lambda t=tx, b=tb: t + b},
            wide + b, 1e-5, b,
        )  # fmt: skip
        yield row(
            "gather rows", lambda x=x, i=at: take(x, i),
            {"numpy": lambda x=x, i=at: x[i], "torch": lambda t=tx, i=ti: t[i]},
            wide[at], ULP, at,
        )  # fmt: skip
