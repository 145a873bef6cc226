"""Windows over images: illegal attributes and shapes are named errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright.errors import ShapeMismatchError, TilewrightError
from tilewright.ir.dtype import f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.graph.operators import OperandError, OperatorAttributeError
from tilewright.ir.module import Module
from tilewright.ir.symbolic import as_expr, var

X, W = (2, 4, 7, 8), (6, 4, 3, 3)

WRONG: list[tuple[str, list[Any], dict[str, Any], type[TilewrightError], str]] = [
    ("conv", [X, W], {"strides": (1,)}, OperatorAttributeError, "strides must be 2 integers"),
    ("conv", [X, W], {"strides": (0, 1)}, OperatorAttributeError, "of at least 1, got"),
    ("conv", [X, W], {"padding": (1, 1)}, OperatorAttributeError, "padding must be 4 integers"),
    ("conv", [X, W], {"padding": (0, 0, 0, -1)}, OperatorAttributeError, "of at least 0, got"),
    ("conv", [X, W], {"dilation": (1, 2, 3)}, OperatorAttributeError, "dilation must be 2"),
    ("conv", [X, W], {"groups": 0}, OperatorAttributeError, "groups must be at least 1"),
    ("conv", [X, W], {"groups": 2}, ShapeMismatchError, "in 2 groups; input channels: 4 != 8"),
    ("conv", [X, (5, 2, 3, 3)], {"groups": 2}, ShapeMismatchError, "5 output channels are not a"),
    ("conv", [X, (6, 3, 3, 3)], {}, ShapeMismatchError, "input channels: 4 != 3"),
    ("conv", [X, (6, 4, 3)], {}, OperandError, "rank"),
    ("conv", [(4, 7), (6, 4)], {}, OperandError, "expected rank at least 3"),
    ("conv", [X, (6, 4, 9, 3)], {}, ShapeMismatchError, "a window of 9 elements in spatial dim"),
    ("conv_transpose", [X, (3, 6, 3, 3)], {}, ShapeMismatchError, "input channels: 4 != 3"),
    ("conv_transpose", [(1, 3, 5), (3, 1, 2)], {"groups": 2}, ShapeMismatchError, "3 input chan"),
    ("conv_transpose", [X, (4, 6, 3, 3)], {"output_padding": (1, 0)}, OperatorAttributeError,
     "below the stride or the dilation"),
    ("conv_transpose", [(1, 4, 1), (4, 6, 2)], {"padding": (3, 0)}, ShapeMismatchError,
     "the result has -1 elements"),
    ("max_pool", [X], {"kernel": (2,)}, OperatorAttributeError, "kernel must be 2 integers"),
    ("max_pool", [X], {"kernel": (2, 0)}, OperatorAttributeError, "of at least 1"),
    ("avg_pool", [X], {"kernel": (2, 2), "padding": (2, 0, 0, 0)}, OperatorAttributeError,
     "a window would contain padding only"),
    ("max_pool", [X], {"kernel": (8, 8)}, ShapeMismatchError, "exceeds the image of 7 elements"),
    ("adaptive_avg_pool", [X, (2,)], {}, OperandError, "expected 2 sizes, got 1"),
    ("adaptive_max_pool", [X, (2, 0)], {}, ShapeMismatchError, "0 of the result is not positive"),
    ("pad", [X, (1, 1), (0, 0)], {}, OperandError, r"expected one number per dimension \(4\)"),
    ("pad", [(3,), (-1,), (0,)], {}, TilewrightError, "-1"),
    ("pad", [(3,), (3,), (0,)], {"mode": "reflect"}, ShapeMismatchError, "needs 4 elements"),
    ("pad", [(0,), (3,), (0,)], {"mode": "edge"}, ShapeMismatchError, "needs 1 elements"),
    ("pad", [(3,), (0,), (4,)], {"mode": "wrap"}, ShapeMismatchError, "dimension 0 has 3"),
    ("pad", [(3,), (0,), (4,)], {"mode": "mirror"}, OperatorAttributeError, "mode"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shapes", "attributes", "error", "message"), WRONG)
def test_illegal_windows_are_named_errors(
    op: str,
    shapes: list[Any],
    attributes: dict[str, Any],
    error: type[TilewrightError],
    message: str,
) -> None:
    b = GraphBuilder("main")
    count = 2 if op.startswith("conv") else 1
    infos = [TensorInfo(tuple(map(as_expr, shape)), f32) for shape in shapes[:count]]
    params = [b.param(f"x{k}", info) for k, info in enumerate(infos)]
    with pytest.raises(error, match=message):
        b.emit(op, *params, *shapes[count:], **attributes)


def test_a_window_that_exceeds_an_image_at_a_call_is_an_error_with_the_sizes() -> None:
    b, m = GraphBuilder("main"), var("m", lower=0)
    x = b.param("x", TensorInfo((as_expr(1), as_expr(2), m), f32))
    w = b.param("w", TensorInfo(tuple(map(as_expr, (3, 2, 5))), f32))
    module = Module().with_functions(b.finish([b.emit("conv", x, w, padding=(1, 0))]))
    run: Any = tilewright.compile(module, target="cpu")
    weights = np.ones((3, 2, 5), np.float32)
    assert np.asarray(run(np.ones((1, 2, 4), np.float32), weights)).shape == (1, 3, 1)
    with pytest.raises(TilewrightError, match="conv requires 5 <= m"):
        run(np.ones((1, 2, 3), np.float32), weights)
