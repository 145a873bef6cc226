"""Conversions of quantized weights that products compute themselves, and those that they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import dtype
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.symbolic import as_expr
from tilewright.schedules.quantized_weights import converts_weight, fused_conversions

TEXT = """
constant("w", {shape}, {dtype})
constant("s", (), f32)
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(m, 8), f32], v: Tensor[{shape}, {dtype}]):
{body}
"""


def fused(body: str, shape: tuple[int, int] = (8, 16), of: str = "i4") -> set[str]:
    """Return the names of the values that products compute themselves."""
    lines = "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
    constants = {"w": np.ones(shape).astype(dtype(of).numpy), "s": np.ones((), np.float32)}
    text = TEXT.format(shape=shape, dtype=of, body=lines)
    sch = tw.Schedule(tw.parse(text, constants=constants))
    sch.legalize("main")
    return {v.name for v in fused_conversions(sch.module, sch.module.graph("main"))}


@pytest.mark.parametrize("of", ["i4", "u2", "i8", "f8_e4m3"])
def test_a_weight_that_is_the_right_operand_is_converted_by_the_product(of: str) -> None:
    body = """d = dequantize_linear(const("w"), const("s"))
    y = matmul(x, d)
    return y"""
    assert fused(body, of=of) == {"d"}
    assert fused(body.replace('const("w")', "v"), of=of) == {"d"}


def test_all_operators_of_a_conversion_are_computed_by_the_product() -> None:
    body = """a = cast(const("w"), dtype="f32")
    b = subtract(a, 3.0)
    c = multiply(b, const("s"))
    d = permute_dims(c, axes=(1, 0))
    y = matmul(x, d)
    return y"""
    assert fused(body, (16, 8)) == {"a", "b", "c", "d"}


def test_a_conversion_with_other_users_is_not() -> None:
    twice = """d = dequantize_linear(const("w"), const("s"))
    y = matmul(x, d)
    z = matmul(x, d)
    u = add(y, z)
    return u"""
    returned = """d = dequantize_linear(const("w"), const("s"))
    y = matmul(x, d)
    return y, d"""
    assert fused(twice) == fused(returned) == set()


def test_a_left_operand_is_not() -> None:
    body = """d = dequantize_linear(const("w"), const("s"))
    t = permute_dims(x, axes=(1, 0))
    y = matmul(d, t)
    return y"""
    assert fused(body, (16, 8)) == set()


def test_activations_and_weights_of_16_bits_are_not() -> None:
    quantized = """q = quantize_linear(x, const("s"), dtype="i8")
    d = dequantize_linear(q, const("s"))
    e = permute_dims(d, axes=(1, 0))
    y = matmul(d, e)
    return y"""
    wide = """d = cast(const("w"), dtype="f32")
    y = matmul(x, d)
    return y"""
    assert fused(quantized) == set()
    assert fused(wide, of="f16") == set()


def test_a_constant_converts_to_a_wider_float_of_its_shape() -> None:
    sch = tw.Schedule(
        tw.parse(
            TEXT.format(shape=(8, 16), dtype="i4", body='    y = cast(const("w"), dtype="f32")\n'
                        "    return y"),
            constants={"w": np.ones((8, 16)).astype(dtype("i4").numpy),
                       "s": np.ones((), np.float32)},
        )
    )  # fmt: skip
    call = sch.module.graph("main").bindings[0].right
    (weight,) = call.args
    shape = (as_expr(8), as_expr(16))
    assert converts_weight(weight, TensorInfo(shape, dtype("f32")))
    assert not converts_weight(weight, TensorInfo(shape, dtype("i32")))
    assert not converts_weight(weight, TensorInfo(shape[:1], dtype("f32")))
    sch.fold_constants("main")
    assert len(sch.module.graph("main").bindings) == 1


def test_a_product_of_one_row_has_a_register_tile() -> None:
    module = tw.parse("""
constant("w", (64, 96), f32)
@graph_func
def main(x: Tensor[(1, 64), f32]):
    y = matmul(x, const("w"))
    return y
""", constants={"w": np.ones((64, 96), np.float32)})  # fmt: skip
    sch = tw.Schedule(module, tw.Target("cpu"))
    sch.default_schedule()
    assert "schedule_matmul" in {g.op for g in _groups(sch.trace.groups)}


def _groups(groups: Any) -> list[Any]:
    found: list[Any] = []
    for group in groups:
        found.append(group)
        found.extend(_groups(getattr(group, "groups", ())))
    return found
