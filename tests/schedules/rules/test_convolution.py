"""Convolutions by default: register tiles of channels and columns, at all sizes and attributes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.ir.dtype import dtype
from tilewright.ir.script import parse
from tilewright.ir.symbolic import const_value
from tilewright.schedules.problem import RuleNotApplicableError
from tilewright.schedules.rules import with_default_schedule

from tests.amounts import covering
from tests.codegen.kernels import LEVELS

CASES = {
    # batch, channels, groups, output channels, image, kernel, strides, padding, dilation
    "plain": (1, 8, 1, 16, (9, 33), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "below a tile": (1, 3, 1, 5, (2, 15), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "whole vectors": (2, 4, 1, 8, (4, 32), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "above a tile": (1, 4, 1, 17, (3, 66), (3, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    "one column": (1, 4, 1, 8, (5, 1), (3, 1), (1, 1), (1, 0, 1, 0), (1, 1)),
    "one row": (1, 4, 1, 8, (1, 20), (1, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    "one channel": (1, 1, 1, 1, (6, 20), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "strided": (1, 5, 1, 12, (13, 37), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "strided without padding": (1, 5, 1, 12, (13, 37), (3, 3), (2, 3), (0, 0, 0, 0), (1, 1)),
    "dilated": (1, 4, 1, 8, (11, 30), (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    "strided and dilated": (1, 4, 1, 8, (11, 40), (3, 3), (2, 2), (2, 3, 1, 0), (2, 3)),
    "one by one": (2, 16, 1, 12, (7, 7), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    "one by one, strided": (1, 16, 1, 12, (9, 23), (1, 1), (2, 2), (0, 0, 0, 0), (1, 1)),
    "grouped": (1, 12, 3, 24, (6, 17), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "groups of five": (1, 6, 3, 15, (6, 17), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "depthwise": (1, 9, 9, 9, (8, 29), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "depthwise, strided": (2, 5, 5, 5, (7, 41), (5, 5), (2, 2), (2, 2, 2, 2), (1, 1)),
    "depthwise with two filters": (1, 4, 4, 8, (5, 16), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "one dimension": (2, 6, 1, 10, (35,), (5,), (1,), (2, 2), (1,)),
    "one dimension, strided": (1, 6, 1, 10, (36,), (3,), (2,), (1, 1), (1,)),
    "narrow": (1, 4, 1, 32, (5, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "narrow, partial channels": (1, 4, 1, 37, (5, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "narrow, strided": (2, 4, 1, 48, (9, 13), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "narrow, dilated": (1, 3, 1, 64, (9, 7), (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    "narrow, grouped": (1, 32, 2, 32, (4, 5), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "narrow, one by one": (2, 40, 1, 64, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    "narrow, one dimension": (2, 40, 1, 64, (11,), (3,), (1,), (0, 0), (1,)),
    "three dimensions": (1, 3, 1, 6, (4, 5, 18), (3, 3, 3), (1, 1, 1), (1,) * 6, (1, 1, 1)),
}
SYMBOLIC = {
    "strided": (4, 1, 9, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "plain": (4, 1, 9, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "no padding": (4, 1, 9, (1, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    "depthwise": (6, 6, 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "one by one": (6, 1, 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
}


def program(case, *, element="f32", weight=True):
    """A convolution with bias and activation, and its arrays."""
    lead, channels, groups, filters, image, kernel, strides, padding, dilation = case
    kind = dtype(element).numpy
    rng = np.random.default_rng(filters + channels)
    shape = (filters, channels // groups, *kernel)
    w = rng.integers(-4, 5, shape).astype(kind)
    b = rng.integers(-9, 9, (1, filters, *(1 for _ in kernel))).astype(kind)
    shown = ", ".join(map(str, (lead, channels, *image)))
    given = "" if weight else f", w: Tensor[{shape}, {element}]"
    names = [s for s in ("n", "h", "w_") if s in (lead, *image)]
    text = f"""
{", ".join(names) + f' = symbols("{" ".join(names)}", lower=0)' if names else ""}
constant("w", {shape}, {element})
constant("b", {b.shape}, {element})

@graph_func
def main(x: Tensor[({shown}), {element}]{given}):
    y = conv(x, {'const("w")' if weight else "w"}, strides={strides}, padding={padding},
             dilation={dilation}, groups={groups})
    z = add(y, const("b"))
    r = relu(z)
    return r
"""
    return parse(text, constants={"w": w, "b": b}), w, b


def expected(x, w, b, groups, attributes):
    """The result by PyTorch; the sums of these integers are exact."""
    strides, padding, dilation = attributes
    rank = len(strides)
    before, after = padding[:rank], padding[rank:]
    sides = [v for pair in zip(before[::-1], after[::-1], strict=True) for v in pair]
    padded = torch.nn.functional.pad(torch.from_numpy(x), sides)
    function = (torch.conv1d, torch.conv2d, torch.conv3d)[rank - 1]
    weight, bias = torch.from_numpy(w), torch.from_numpy(b.reshape(-1))
    found = function(padded, weight, bias, stride=strides, dilation=dilation, groups=groups)
    return np.maximum(found.numpy(), 0)


def used(module, target, rule="schedule_convolution") -> bool:
    """Return whether the default schedule contains a rule."""
    sch = tw.Schedule(module, target)
    sch.default_schedule()
    return rule in str(sch.trace)


UNUSED = {"one column", "one channel"}
"""The cases that keep a plainer rule."""

PRODUCTS = {"one by one", "narrow, one by one"}
"""The cases that are products of matrices."""


@pytest.mark.parametrize(("case", "level"), covering(CASES, ["64bit", *LEVELS]))
def test_static_sizes(case, level) -> None:
    n, channels, groups, _, image, _, *attributes = CASES[case]
    module, w, b = program(CASES[case])
    target = tw.Target("cpu", features=(level,))
    if case in PRODUCTS:
        assert used(module, target) != used(module, target, "schedule_matmul")
    else:
        assert used(module, target) == (case not in UNUSED)
    x = np.random.default_rng(1).integers(-4, 5, (n, channels, *image)).astype(np.float32)
    found = tw.compile(module, target)(x)
    np.testing.assert_array_equal(found, expected(x, w, b, groups, attributes))


@pytest.mark.parametrize(("case", "level"), covering(CASES, ["sse4.2", "avx2"]))
def test_weights_packed_for_wider_registers(case, level) -> None:
    """All processors read the weights that are packed for the widest registers."""
    n, channels, groups, _, image, _, *attributes = CASES[case]
    module, w, b = program(CASES[case])
    own, wide = (
        tw.Target("cpu", arch="x86_64", features=(name,), panel_bits=1024)
        for name in (level, "avx512")
    )
    shapes = [
        {k: c.shape for k, c in with_default_schedule(module, t).constants.items()}
        for t in (own, wide)
    ]
    assert shapes[0] == shapes[1]
    x = np.random.default_rng(1).integers(-4, 5, (n, channels, *image)).astype(np.float32)
    found = tw.compile(module, own)(x)
    np.testing.assert_array_equal(found, expected(x, w, b, groups, attributes))


@pytest.mark.parametrize(("case", "level"), covering(SYMBOLIC, LEVELS))
def test_symbolic_sizes(case, level) -> None:
    channels, groups, filters, kernel, *attributes = SYMBOLIC[case]
    sizes = ("n", channels, groups, filters, ("h", "w_"), kernel)
    module, w, b = program((*sizes, *attributes))
    target = tw.Target("cpu", features=(level,))
    assert used(module, target, "schedule_matmul" if case in PRODUCTS else "schedule_convolution")
    run = tw.compile(module, target)
    rng = np.random.default_rng(2)
    for n, h, width in [(1, 3, 3), (2, 4, 15), (1, 5, 16), (1, 3, 17), (1, 6, 31), (3, 3, 34)]:
        x = rng.integers(-4, 5, (n, channels, h, width)).astype(np.float32)
        np.testing.assert_array_equal(run(x), expected(x, w, b, groups, attributes))
    assert run(np.zeros((0, channels, 5, 20), np.float32)).shape[0] == 0


@pytest.mark.parametrize("element", ["f64", "f16", "i32"])
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "argument"])
def test_dtypes_and_weights_that_are_arguments(element, weight) -> None:
    attributes = ((1, 1), (1, 1, 1, 1), (1, 1))
    sizes = (1, 4, 1, 9, (5, 21), (3, 3))
    module, w, b = program((*sizes, *attributes), element=element, weight=weight)
    assert used(module, tw.Target("cpu"))
    x = np.random.default_rng(3).integers(-2, 3, (1, 4, 5, 21)).astype(w.dtype)
    found = tw.compile(module)(*((x,) if weight else (x, w)))
    exact = expected(x.astype(float), w.astype(float), b.astype(float), 1, attributes)
    np.testing.assert_array_equal(found, exact.astype(w.dtype))


@pytest.mark.parametrize("at", range(5))
def test_an_empty_dimension(at) -> None:
    sizes = [2, 3, 4, 6, 20]
    sizes[at] = 0
    n, channels, filters, h, width = sizes
    attributes = ((1, 1), (1, 1, 1, 1), (1, 1))
    module, w, b = program((n, channels, 1, filters, (h, width), (2, 2), *attributes))
    x = np.ones((n, channels, h, width), np.float32)
    found = tw.compile(module)(x)
    if math.prod(x.shape) and w.size:
        np.testing.assert_array_equal(found, expected(x, w, b, 1, attributes))
    else:
        bias = np.maximum(np.broadcast_to(b, found.shape), 0)
        np.testing.assert_array_equal(found, bias)


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("narrow")])
def test_vectors_hold_channels_if_rows_are_narrow(case) -> None:
    module, _, _ = program(CASES[case])
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.default_schedule()
    blocks = ((f.name, b) for f in sch.module.prims for b in sch.state.tree(f.name).blocks.values())
    found = ((f, b.name) for f, b in blocks if any(v.kind == "reduce" for v in b.iters))
    function, block = next(found)
    sums = sch.get_block(block, function)
    lanes = sch.state.loop(sch.get_loops(sums)[-1])
    item = next(v for v in sch.state.block(sums).iters if lanes.var in v.binding.free)
    assert (lanes.kind, item.var.name) == ("vectorized", "vo")


def test_weights_that_are_arguments_are_not_stored_by_channels() -> None:
    module, _, _ = program(CASES["narrow"], weight=False)
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.default_schedule()
    assert "schedule_convolution" in str(sch.trace)
    assert "hoist_block" not in str(sch.trace)


def test_the_steps_of_a_strided_convolution(golden) -> None:
    module, _, _ = program(CASES["strided"])
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.lower_graph("main")
    sch.schedule_convolution("fused_conv_add_relu")
    golden("strided.txt", str(sch))


@pytest.mark.parametrize("case", ["depthwise", "depthwise, strided"])
def test_each_channel_of_a_depthwise_convolution_pads_its_own_image(case) -> None:
    module, _, _ = program(CASES[case])
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.lower_graph("main")
    sch.schedule_convolution("conv")
    padding, conv = (sch.get_loops(sch.get_block(name, "conv")) for name in ("pad", "conv"))
    shared = [a for a, b in zip(padding, conv, strict=False) if a == b]
    found = sch.state.loop(shared[-1])
    assert const_value(found.extent) == CASES[case][3]
    assert sch.state.loop(shared[0]).kind == "parallel"


def test_a_copy_of_one_image_is_parallel() -> None:
    module, _, _ = program(CASES["strided"])
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.lower_graph("main")
    sch.schedule_convolution("fused_conv_add_relu")
    padding = sch.get_block("pad", "fused_conv_add_relu")
    kinds = [sch.state.loop(x).kind for x in sch.get_loops(padding)]
    assert kinds[:2] == ["serial", "parallel"]
    assert kinds[-1] == "vectorized"


REJECTED = {
    "matmul": ("(8, 64)", "(64, 32)", "(8, 32)", "x[vi, vk] * w[vk, vj]", 64),
    "a window of the rows only": (
        "(10, 32)", "(3, 8)", "(8, 32)", "x[vi + vk, vj] * w[vk, vi]", 3,
    ),
    "columns in reverse": (
        "(8, 40)", "(3, 8)", "(8, 32)", "x[vi, 34 + vk - vj] * w[vk, vi]", 3,
    ),
    "a quadratic window": (
        "(8, 40)", "(3, 8)", "(8, 32)", "x[vi, vj + vk] * x[vi, vj + vk]", 3,
    ),
    "weights of the column": (
        "(8, 40)", "(3, 32)", "(8, 32)", "x[vi, vj + vk] * w[vk, vj]", 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_other_sums_of_products_are_not_convolutions(case) -> None:
    x, w, y, value, extent = REJECTED[case]
    module = parse(f"""
@prim_func
def f(x: Buffer[{x}, f32], w: Buffer[{w}, f32], y: Out[{y}, f32]):
    for i in range(8):
        for j in range(32):
            for k in range({extent}):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += {value}
""")
    sch = tw.Schedule(module, tw.Target("cpu"))
    with pytest.raises(tw.TilewrightError) as found:
        sch.schedule_convolution("f")
    assert isinstance(found.value.__cause__ or found.value, RuleNotApplicableError)
    sch.schedule_kernel("f")
    assert "schedule_convolution" not in str(sch.trace)
