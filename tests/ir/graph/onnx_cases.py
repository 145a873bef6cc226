"""Calls of the operators that ONNX models need beyond core operators, for operator tests."""

from __future__ import annotations

from tilewright.ir.dtype import f16, f64, i16, i32, i64, u8

from tests.ir.graph.case_table import Case, T

ONNX_CASES = [
    Case("bitcast", (T(("n", "m"), i32, 0, 1 << 30),), {"dtype": "u32"}),
    Case("bitcast", (T(("n",), i64, 1 << 60, 1 << 62),), {"dtype": "f64"}),
    Case("bitcast", (T(("n",), f64),), {"dtype": "i64"}),
    Case("bitcast", (T(("n", "m"), f16),), {"dtype": "i16"}),
    Case("bitcast", (T(("n",), i16, 0, 30000),), {"dtype": "f16"}),
    Case("bitcast", (T(("n",), u8, 0, 256),), {"dtype": "i8"}),
]
