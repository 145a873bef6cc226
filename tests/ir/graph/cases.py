"""The table of calls for the operator tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.dtype import (
    bf16,
    bool_,
    c64,
    c128,
    f8_e4m3,
    f8_e5m2,
    f16,
    f32,
    f64,
    i2,
    i4,
    i8,
    i16,
    i32,
    i64,
    u4,
    u8,
    u16,
    u64,
)  # fmt: skip
from tilewright.ir.graph.operators import get_operator
from tilewright.ir.graph.operators.unary import UNARY

from tests.ir.graph.aten_cases import ATEN_CASES
from tests.ir.graph.case_table import EMPTY, NM, Case, Ends, T
from tests.ir.graph.onnx_cases import ONNX_CASES


def unary_cases() -> list[Case]:
    positive = ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "lgamma", "digamma"]
    inside = ["asin", "acos", "atanh", "erfinv"]
    bits = ["bitwise_not", "popcount", "clz", "ctz"]
    others = {*positive, *inside, *bits, "acosh", "logical_not", "real", "imag", "conj", "angle"}
    whole = [*(o.name for o in UNARY if o.name not in others), "relu", "silu", "gelu"]
    return [
        *(Case(op, (NM,), at=EMPTY) for op in whole),
        *(Case(op, (T(("n", "m"), low=0.1),)) for op in positive),
        *(Case(op, (T(("n", "m"), low=-0.9, high=0.9),)) for op in inside),
        Case("acosh", (T(("n", "m"), low=1.1),)),
        *(
            Case(op, (T(("n",), f16, 0.2),), tolerance=2e-3)
            for op in ("exp", "silu", "gelu", "log")
        ),
        Case("gelu", (NM,), {"approximate": "tanh"}),
        *(Case(op, (T(("n",), i32, -9, 9),)) for op in ("negative", "abs", "sign", "relu")),
        Case("logical_not", (T(("n",), bool_),)),
        *(Case(op, (T(("n",), i64, -9, 9),)) for op in bits),
    ]


def binary_cases() -> list[Case]:
    numbers = ["add", "subtract", "multiply", "maximum", "minimum"]
    compared = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
    whole = T(("n",), i64, -9, 9)
    away = T(("m",), i64, 1, 9)
    return [
        *(Case(op, (NM, T(("m",))), at=EMPTY) for op in numbers),
        *(Case(op, (T(("n", 1)), T((1, "m")))) for op in (*numbers, "divide")),
        *(Case(op, (whole, 3)) for op in (*numbers, "floor_divide", "mod", *compared)),
        *(Case(op, (2.5, NM)) for op in numbers),
        *(Case(op, (T(("n", 1), i64, -9, 9), away)) for op in ("floor_divide", "mod", *compared)),
        *(Case(op, (NM, T(("m",), low=0.5))) for op in ("divide", "floor_divide", "mod")),
        *(Case(op, (NM, T(("m",), low=0.5))) for op in ("atan2", "hypot", "fmod", "copysign")),
        Case("fmod", (T(("n", 1), i64, -9, 9), away)),
        *(Case("nextafter", (T(("n", "m"), t), T(("m",), t))) for t in (f32, f64, f16, bf16)),
        *(Case(op, (T(("n", 1), i64, -9, 9), away)) for op in ("left_shift", "right_shift")),
        *(Case(op, (T(("n",), u8, 0, 255), 3)) for op in ("left_shift", "right_shift")),
        *(Case(op, (whole, whole)) for op in ("bitwise_and", "bitwise_or", "bitwise_xor")),
        *(
            Case(op, (T(("n", "m"), bool_), T(("m",), bool_)))
            for op in ("logical_and", "logical_or", "logical_xor", "equal")
        ),
        *(Case("power", (T(("n",), low=0.1), y)) for y in (2.0, 0.5, -0.5, 3.0, -1.0)),
        Case("power", (T(("n",), low=0.1), T(("n",)))),
        *(Case("power", (T(("n",), f16, 0.1, 2), y), tolerance=2e-3) for y in (3.0, -1.0, 1.5)),
        Case("add", (T(("n",), f16), T(("n",), f16)), tolerance=2e-3),
        Case("add", (T(("n",), bf16), T(("n",), bf16)), tolerance=2e-2),
        Case("multiply", (T(("n",), bf16), 0.5), tolerance=2e-2),
        Case("where", (T(("n", "m"), bool_), NM, T((1, "m")))),
        Case("where", (T(("n", 1), bool_), NM, -np.inf)),
        Case("where", (T(("n", 1), bool_), 0.0, -np.inf)),
        Case("where", (T(("n",), bool_), 3, -7)),
        Case("where", (T(("n",), bool_), True, False)),
        Case("where", (T(("n", "m"), bool_), 1, T((), i64, 2, 9))),
    ]


def creation_cases() -> list[Case]:
    return [
        Case("cast", (T(("n",), f32, -200, 200),), {"dtype": "i8"}),
        Case("cast", (T(("n",), f64, -1e20, 1e20),), {"dtype": "i64"}),
        Case("cast", (T(("n",), i64, -900, 900),), {"dtype": "u8"}),
        Case("cast", (T(("n",), i64, -2, 2),), {"dtype": "bool"}),
        Case("cast", (T(("n",), bool_),), {"dtype": "f32"}),
        Case("cast", (T(("n", "m")),), {"dtype": "f16"}, tolerance=2e-3),
        Case("cast", (T(("n", "m")),), {"dtype": "bf16"}, tolerance=2e-2),
        Case("cast", (T(("n", "m"), bf16),), {"dtype": "f32"}),
        Case("cast", (T(("n",), bf16, -90, 90),), {"dtype": "i32"}),
        Case("full", (("n", 2, "m"), 1.5), {"dtype": "f32"}, at=EMPTY),
        Case("full", ((), True), {"dtype": "bool"}),
        Case("full", ((3,), 7), {"dtype": "i64"}),
        Case("arange", ((0, "n", 1),), at=EMPTY),
        Case("arange", (("m", "n", 2),), {"dtype": "f32"}),
        Case("arange", (("n", "m", -1),), at=EMPTY),
        Case("arange", (("n", -3, -2),), {"dtype": "f32"}),
        Case("shape_to_tensor", (("n", 4, "m"),)),
        Case("shape_to_tensor", ((),)),
        Case("causal_mask", (("n", "m", 0),)),
        Case("causal_mask", (("n", "m", "m"),)),
        *(Case(op, (NM,), {"k": k}) for op in ("tril", "triu") for k in (0, 1, -2)),
    ]


def movement_cases() -> list[Case]:
    return [
        Case("reshape", (T(("n", 6)), ("n", 2, 3)), at=EMPTY),
        Case("reshape", (T(("n", "m", 4)), ("n", "m", 2, 2))),
        Case("reshape", (T(("n", "m")), ("n*m",)), at=EMPTY),
        Case("reshape", (T(("n", 2, 3)), ("n", 6)), at=EMPTY),
        Case("reshape", (T((2, "m", 3)), (3, 2, "m"))),
        Case("reshape", (T((1, 1)), ())),
        Case("expand_dims", (NM,), {"axes": (0, 2)}),
        Case("expand_dims", (T(()),), {"axes": (0,)}),
        Case("squeeze", (T((1, "n", 1)),), {"axes": (0, -1)}),
        Case("permute_dims", (T(("n", 2, "m")),), {"axes": (2, 0, 1)}, at=EMPTY),
        Case("flip", (T(("n", 3, "m")),), {"axes": (0, -1)}, at=EMPTY),
        Case("flip", (T(("n",), i64, -9, 9),), {"axes": (0,)}),
        Case("broadcast_to", (T(("n", 1)), (2, "n", "m")), at=EMPTY),
        Case("broadcast_to", (T(()), ("n",))),
        Case("concat", (T(("n", "m")), T((2, "m")), T(("n", "m"))), {"axis": 0}, at=EMPTY),
        Case("concat", (T(("n", "m")), T(("n", 1))), {"axis": -1}),
        Case("concat", (NM,), {"axis": 1}),
        Case("strided_slice", (T(("n", 6)), (1,), (5,)), {"axes": (1,), "steps": (2,)}),
        Case("strided_slice", (T((9, "m")), ("m", 0), (9, "m")), {"axes": (0, 1)}),
        Case("split", (T(("n", 6)), (1, 2, 3)), {"axis": 1}),
        Case("split", (T(("n+m",)), ("n", "m")), {"axis": 0}),
    ]


def indexing_cases() -> list[Case]:
    row = T(("m",), i64, 0, "n")
    wrapped = T(("m",), i64, -1, 1)
    return [
        Case("take", (T(("n", 4)), T((2, "m"), i64, 0, "n")), {"axis": 0}),
        Case("take", (T((3, "n", 2)), T((), i64, 0, "n")), {"axis": 1}),
        Case("take", (T(("n",)), wrapped), {"wrap": True}),
        Case("take", (T((4, "n"), i64), T(("m",), i32, 0, "n")), {"axis": -1}),
        Case("gather_elements", (T(("n", "m")), T((3, "m"), i64, 0, "n")), {"axis": 0}),
        Case("gather_elements", (T((1, "n")), T((1, "m"), i64, -1, 1)), {"axis": 1, "wrap": True}),
        Case("index", (T(("n", "n", 2)), row, T((3, 1), i64, 0, "n"))),
        Case("index", (T(("n", 2)), wrapped), {"wrap": True}),
        Case("index_copy", (T((2, "n")), row, T((2, "m"))), {"axis": 1}),
        Case("index_copy", (T(("n", 2)), wrapped, T(("m", 2))), {"wrap": True}),
        Case(
            "scatter_elements", (T(("n", "m")), T((2, "m"), i64, 0, "n"), T((2, "m"))), {"axis": 0}
        ),
        Case("index_add", (T((2, "n")), row, T((2, "m"))), {"axis": 1}, tolerance=1e-5),
        Case("index_add", (T(("n", 2), i64), wrapped, T(("m", 2), i64)), {"wrap": True}),
        Case(
            "scatter_add",
            (T(("n", "m")), T((2, "m"), i64, 0, "n"), T((2, "m"))),
            {"axis": 0},
            tolerance=1e-5,
        ),
        Case("update_slice", (T(("n+m", 3)), T(("n", 2)), ("m", 1))),
    ]


def reduction_cases() -> list[Case]:
    x = T(("n", 3, "m"))
    picks = ({}, {"axes": (1,)}, {"axes": (0, -1), "keepdims": True}, {"axes": (2, 0)})
    ops = ("sum", "prod", "max", "min", "mean")
    return [
        *(Case(op, (x,), dict(p), tolerance=1e-5) for op in ops for p in picks),
        *(Case(op, (x,), {"axes": (0,)}, at=EMPTY) for op in ("sum", "prod", "max")),
        *(Case(op, (T(("n",), i64, -9, 9),)) for op in ("sum", "prod", "max", "min")),
        *(Case(op, (T(("n",), f16),), tolerance=4e-3) for op in ("sum", "mean", "max")),
        *(Case(op, (T(("n", "m"), bool_),), {"axes": (1,)}, at=EMPTY) for op in ("any", "all")),
        *(Case(op, (NM,), {"axis": 0}) for op in ("argmax", "argmin")),
        *(Case(op, (T(("n", "m"), i64, 0, 3),), {"keepdims": True}) for op in ("argmax", "argmin")),
        Case("cumsum", (NM,), {"axis": 1}, tolerance=1e-5, at=EMPTY),
        Case("cumsum", (T(("n",), i64, -9, 9),), {"axis": 0}),
        Case("cumsum", (T(("n", "m"), f16),), {"axis": 0}, tolerance=4e-3),
        *(Case(op, (NM,), {"axis": 0}, at=EMPTY) for op in ("cummax", "cummin")),
        *(Case(op, (T(("n",), i64, -9, 9),)) for op in ("cumprod", "cummax", "cummin")),
        Case("cumprod", (NM,), {"axis": 1}, tolerance=1e-5),
        Case("logcumsumexp", (NM,), {"axis": 1}, tolerance=1e-5, at=EMPTY),
    ]


def compound_cases() -> list[Case]:
    return [
        Case("matmul", (T(("n", 4)), T((4, "m"))), tolerance=1e-5, at=EMPTY),
        Case("matmul", (T((2, 1, "n", 3)), T((4, 3, "m"))), tolerance=1e-5),
        Case("matmul", (T(("n", "m"), i64, -9, 9), T(("m", 2), i64, -9, 9)), at=EMPTY),
        Case("matmul", (T(("n", 4), f16), T((4, "m"), f16)), tolerance=8e-3),
        Case("matmul", (T(("n", 4), bf16), T((4, "m"), bf16)), tolerance=5e-2),
        *(
            Case(
                "grouped_matmul",
                (T(("n", 4), t), T((2, 4, "m"), t), Ends((3,), i32, 0, "n")),
                tolerance=rounding,
                at=EMPTY,
            )
            for t, rounding in ((f32, 1e-5), (i64, 0), (f16, 8e-3))
        ),
        Case("matmul_integer", (T(("n", "m"), u8, 0, 255), T(("m", 4), i8, -128, 127)), at=EMPTY),
        Case("matmul_integer", (T((2, "n", 3), i8, -128, 127), T((3, "m"), u8, 0, 255))),
        Case("layer_norm", (T(("n", 5), bf16), T((5,), bf16)), tolerance=3e-2),
        Case("softmax", (T(("n", "m"), bf16),), tolerance=1e-2),
        Case("softmax", (NM,), {"axis": -1}, at=EMPTY),
        Case("softmax", (T(("n", 3, "m")),), {"axis": 1, "masked_rows": "zero"}),
        Case("softmax", (T(("n", "m"), f16),), tolerance=2e-3),
        Case("log_softmax", (T(("n", 3, "m")),), {"axis": 0}, tolerance=1e-5),
        Case(
            "layer_norm", (T(("n", "m", 4)), T((4,)), T((4,))), {"epsilon": 1e-12}, tolerance=2e-5
        ),
        Case("layer_norm", (T(("n", 3, "m")), T((3, "m"))), {"axes": 2}, tolerance=2e-5),
        Case("layer_norm", (T(("n", 5)),), tolerance=2e-5),
        Case("layer_norm", (T(("n", 5), f16), T((5,), f16)), tolerance=4e-3),
        Case("rms_norm", (T(("n", 2, "m")), T(("m",))), {"epsilon": 1e-6}, tolerance=1e-5),
        Case("rms_norm", (NM,), tolerance=1e-5),
    ]


def quantization_cases() -> list[Case]:
    single, each = T((), low=0.1), T(("m",), low=0.1)
    blocks = T((2, "m"), low=0.1)
    x, y = T(("n", "m"), low=-90, high=90), T((8, "m"), low=-40, high=40)
    whole = T((8, "m"), i4, -8, 7)
    return [
        *(Case("quantize_linear", (x, single, T((), d, 0, 2)), {"dtype": str(d)}, at=EMPTY)
          for d in (i8, u8, i16, u16, i4, u4, i2, i32)),
        *(Case("quantize_linear", (x, each), {"dtype": str(d), "saturate": s})
          for d in (f8_e4m3, f8_e5m2) for s in (True, False)),
        Case("quantize_linear", (x, each, T(("m",), i8, -9, 9)), {"dtype": "i8", "axis": -1}),
        Case("quantize_linear", (y, blocks, T((2, "m"), u4, 0, 15)),
             {"dtype": "u4", "axis": 0, "block_size": 4}),
        Case("quantize_linear", (T(("n", "m"), i32, -90, 90), 0.25, 3), {"dtype": "i8"}),
        Case("quantize_linear", (T(("n",), f16), T((), f16, 0.1)), {"dtype": "i8"}),
        Case("quantize_linear", (T(("n",), bf16), 0.3), {"dtype": "u8", "precision": "f32"}),
        Case("dequantize_linear", (whole, blocks), {"axis": 0, "block_size": 4}, at=EMPTY),
        Case("dequantize_linear", (whole, T((3, "m"), f16, 0.1), T((3, "m"), i4, -8, 7)),
             {"axis": 0, "block_size": 3}, tolerance=2e-3),
        *(Case("dequantize_linear", (T(("n", "m"), d, 0, 2), each, T(("m",), d, 0, 2)))
          for d in (i8, u8, i16, u16, u4, i2, i32)),
        Case("dequantize_linear", (T(("n", "m"), f8_e4m3), single)),
        Case("dequantize_linear", (T(("n", 3), f8_e5m2), T((1,), f64)), {"dtype": "bf16"},
             tolerance=1e-2),
        Case("dequantize_linear", (T(("n",), u8, 0, 255), 0.5, 128)),
    ]  # fmt: skip


def complex_cases() -> list[Case]:
    x, row, pairs = T(("n", "m"), c64), T(("m",), c64), T(("n", "m", 2))
    return [
        *(
            Case(op, (x,), at=EMPTY)
            for op in ("real", "imag", "conj", "angle", "abs", "negative", "exp", "view_as_real")
        ),
        *(
            Case(op, (x,), tolerance=1e-5)
            for op in (
                "log",
                "sqrt",
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
                "sinh",
                "cosh",
                "tanh",
                "asinh",
                "acosh",
                "atanh",
            )
        ),
        Case("power", (x, row), tolerance=1e-5),
        *(Case("power", (x, exponent), tolerance=1e-5) for exponent in (2.0, 0.5, -0.5, 3.0, -1.0)),
        *(Case(op, (x, row), at=EMPTY) for op in ("add", "subtract", "multiply", "divide")),
        *(Case(op, (T(("n", 1), c128), T((1, "m"), c128))) for op in ("multiply", "divide")),
        *(Case(op, (x, 2.5)) for op in ("add", "multiply", "divide", "equal", "not_equal")),
        Case("view_as_complex", (pairs,), at=EMPTY),
        Case("complex", (NM, T(("m",))), at=EMPTY),
        Case("complex", (T(("n",), f64), 0.5)),
        *(Case(op, (x,), {"axes": (1,)}) for op in ("sum", "mean")),
        Case("prod", (x,), {"axes": (0,)}, tolerance=1e-4),
        *(Case(op, (x,), {"axis": 1}, tolerance=1e-4, at=EMPTY) for op in ("cumsum", "cumprod")),
        Case("matmul", (x, T(("m", 4), c64)), at=EMPTY, tolerance=2e-5),
        Case("cast", (NM,), {"dtype": "c64"}),
        Case("cast", (T(("n",), i32, -9, 9),), {"dtype": "c128"}),
        Case("cast", (x,), {"dtype": "c128"}),
        Case("full", (("n", 3), 1.5), {"dtype": "c64"}),
        Case("reshape", (x, ("n*m",))),
        Case("permute_dims", (x,), {"axes": (1, 0)}),
        Case("concat", (x, x), {"axis": 0}),
        Case("where", (T(("n", 1), bool_), x, row)),
        Case("index_add", (x, T((4,), i64, 0, "n"), T((4, "m"), c64))),
    ]


IMAGES = ({"n": 5, "m": 7}, {"n": 1, "m": 4}, {"n": 6, "m": 5}, {"n": 0, "m": 8})


def window_cases() -> list[Case]:
    """Return convolutions and pooling of images with a symbolic batch and a symbolic height."""
    x, odd = T(("n", 4, "m")), {"padding": (2, 1), "dilation": (1,), "strides": (2,)}
    images = T((2, 4, "m", 6))
    plane = {"strides": (2, 1), "padding": (1, 0, 2, 1), "dilation": (1, 2)}
    pools: list[tuple[str, dict[str, Any]]] = [
        ("max_pool", {"kernel": (3,), "strides": (2,), "padding": (1, 1), "ceil": True}),
        ("max_pool", {"kernel": (2,), "dilation": (2,)}),
        ("avg_pool", {"kernel": (3,), "strides": (2,), "padding": (1, 0)}),
        ("avg_pool", {"kernel": (3,), "strides": (2,), "padding": (1, 1), "ceil": True}),
        ("avg_pool", {"kernel": (2,), "padding": (1, 1), "dilation": (2,), "count_padding": False}),
    ]
    return [
        Case("conv", (x, T((6, 4, 3))), at=IMAGES, tolerance=1e-5),
        Case("conv", (x, T((6, 4, 3))), odd, at=IMAGES, tolerance=1e-5),
        Case("conv", (x, T((6, 2, 3))), {**odd, "groups": 2}, at=IMAGES, tolerance=1e-5),
        Case("conv", (x, T((4, 1, 1))), {"groups": 4}, at=IMAGES),
        Case("conv", (images, T((5, 4, 3, 2))), plane, at=IMAGES, tolerance=2e-5),
        Case("conv", (T((1, 2, 3, "m", 4)), T((3, 2, 2, 2, 2))), at=IMAGES, tolerance=1e-5),
        Case("conv", (T(("n", 2, "m"), f16), T((3, 2, 3), f16)), at=IMAGES, tolerance=2e-2),
        Case("conv", (T(("n", 2, "m"), i32), T((3, 2, 3), i32)), at=IMAGES),
        Case("conv_transpose", (x, T((4, 3, 3))), at=IMAGES, tolerance=1e-5),
        Case("conv_transpose", (x, T((4, 3, 3))), {**odd, "output_padding": (1,)}, at=IMAGES,
             tolerance=1e-5),
        Case("conv_transpose", (images, T((4, 2, 3, 2))), {**plane, "groups": 2}, at=IMAGES,
             tolerance=2e-5),
        Case("conv_transpose", (T(("n", 2, "m"), bf16), T((2, 1, 2), bf16)), at=IMAGES,
             tolerance=5e-2),
        *(Case(op, (x,), attributes, at=IMAGES) for op, attributes in pools),
        Case("max_pool", (T(("n", 2, "m"), i8, -99, 99),), {"kernel": (3,)}, at=IMAGES),
        Case("max_pool", (images,), {"kernel": (3, 2), "strides": (2, 2)}, at=IMAGES),
        Case("avg_pool", (T((1, 2, "m"), f16),), {"kernel": (3,)}, tolerance=2e-3, at=IMAGES),
        Case("adaptive_avg_pool", (x, (3,)), at=IMAGES),
        Case("adaptive_avg_pool", (images, (2, 3)), at=IMAGES),
        Case("adaptive_max_pool", (images, (2, 4)), at=IMAGES),
    ]  # fmt: skip


def padding_cases() -> list[Case]:
    x = T(("n", 4))
    return [
        Case("pad", (x, (1, 0), (2, 3)), at=EMPTY),
        Case("pad", (x, ("m", 2), (0, 1), -1.5)),
        Case("pad", (T(("n", 4), i64, -9, 9), (0, 2), (0, 0), 7)),
        *(Case("pad", (x, (0, 3), (0, 2)), {"mode": m}) for m in ("edge", "reflect", "wrap")),
        Case("pad", (T((6, "n"), bool_), (2, 0), (5, 0)), {"mode": "reflect"}),
    ]


def ordering_cases() -> list[Case]:
    ties = T(("n", "m"), f32, -2, 2)
    return [
        Case("to_device", (NM,), {"device": "default"}, at=EMPTY),
        Case("sort", (NM,), {"axis": -1}, at=EMPTY),
        Case("sort", (T(("n", "m"), i8, -3, 3),), {"axis": 0, "descending": True}),
        Case("sort", (T(("n",), u64, 0, 9),)),
        Case("sort", (T(("n", 4, "m"), bf16),), {"axis": 1}),
        Case("argsort", (T(("n", "m"), i32, -2, 2),), {"axis": 1, "descending": True}, at=EMPTY),
        Case("argsort", (T(("n", "m"), f16),), {"axis": 0}),
        Case("topk", (T(("n", 7), f64), (3,)), {"axis": 1}),
        Case("topk", (T(("n", "m"), i16, -3, 3), ("m",)), {"axis": 1, "largest": False}),
        Case("nonzero", (T(("n", "m"), i64, -1, 2),), at=EMPTY),
        Case("nonzero", (T(("n",), bool_),)),
        Case("nonzero", (T((), f32, 1, 2),)),
        Case("unique", (T(("n", "m"), i32, -3, 3),), at=EMPTY),
        Case("unique", (ties,)),
        Case("unique", (T(("n",), u16, 0, 4),)),
    ]


CASES = [
    *window_cases(),
    *padding_cases(),
    *unary_cases(),
    *binary_cases(),
    *creation_cases(),
    *movement_cases(),
    *indexing_cases(),
    *reduction_cases(),
    *compound_cases(),
    *quantization_cases(),
    *complex_cases(),
    *ordering_cases(),
    *ATEN_CASES,
    *ONNX_CASES,
]

LOOP_CASES = [case for case in CASES if get_operator(case.op).is_defined]
"""The calls of operators that are defined by loops."""
