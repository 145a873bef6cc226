"""Compilation of values for the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.codegen import compile
from tilewright.codegen.simt.values import Values
from tilewright.ir.script import parse

if TYPE_CHECKING:
    import pytest


def test_shared_operands_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    original = Values._compile

    def counted(self: Values, value: object) -> object:
        nonlocal count
        count += 1
        return original(self, value)

    monkeypatch.setattr(Values, "_compile", counted)
    counts: list[int] = []
    for depth in (2, 4, 8):
        expression = "tanh(" * depth + "x[vi] * 0.1" + ")" * depth
        module = parse(
            "@prim_func\ndef f(x: Buffer[(8,), f32], y: Out[(8,), f32]):\n"
            "    for i in range(8):\n"
            '        with block("y"):\n'
            "            vi = spatial(i)\n"
            f"            y[vi] = {expression}\n"
        )
        count = 0
        x = np.linspace(-1, 1, 8, dtype=np.float32)
        expected = x * np.float32(0.1)
        for _ in range(depth):
            expected = np.tanh(expected)
        np.testing.assert_allclose(compile(module, "simt")(x), expected, rtol=1e-5)
        counts.append(count)
    assert counts[0] > 0
    assert counts[2] - counts[1] <= 2 * (counts[1] - counts[0]) + 10
