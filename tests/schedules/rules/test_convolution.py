"""Convolutions by default: register tiles of channels and columns, at all sizes and attributes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import dtype
from tilewright.ir.script import parse
from tilewright.ir.symbolic import const_value
from tilewright.schedules.problem import RuleNotApplicableError
from tilewright.schedules.rules import with_default_schedule

from tests.amounts import covering
from tests.codegen.kernels import ALL_LEVELS, LEVELS

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


DEPTHWISE = [
    ((7, 7), (5, 5), (1, 1)),
    ((14, 14), (3, 3), (1, 1)),
    ((13, 16), (3, 3), (1, 1)),
    ((8, 17), (7, 7), (1, 1)),
    ((28, 33), (7, 7), (1, 1)),
    ((12, 66), (3, 5), (1, 1)),
    ((15, 15), (3, 3), (2, 2)),
    ((30, 31), (5, 5), (2, 2)),
    ((9, 40), (3, 3), (3, 1)),
    ((20,), (4,), (1,)),
    ((4, 6, 18), (3, 3, 3), (1, 1, 1)),
]
"""Images, windows, and strides: one tile of rows, several, and a number of rows that is prime."""


@pytest.mark.parametrize(("case", "level"), covering(DEPTHWISE, LEVELS), ids=str)
def test_rows_of_depthwise_windows(case, level) -> None:
    image, kernel, strides = case
    attributes = (strides, tuple(k // 2 for k in kernel) * 2, (1,) * len(kernel))
    module, w, b = program((2, 3, 3, 3, image, kernel, *attributes))
    target = tw.Target("cpu", features=(level,), threads=2)
    assert used(module, target)
    x = np.random.default_rng(4).integers(-4, 5, (2, 3, *image)).astype(np.float32)
    np.testing.assert_array_equal(tw.compile(module, target)(x), expected(x, w, b, 3, attributes))


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_depthwise_windows_of_symbolic_images(level) -> None:
    attributes = ((1, 1), (2, 2, 2, 2), (1, 1))
    module, w, b = program(("n", 3, 3, 3, ("h", "w_"), (5, 5), *attributes))
    run = tw.compile(module, tw.Target("cpu", features=(level,)))
    rng = np.random.default_rng(5)
    for n, h, width in [(1, 1, 1), (1, 2, 7), (2, 7, 14), (1, 8, 16), (1, 13, 33), (0, 3, 3)]:
        x = rng.integers(-4, 5, (n, 3, h, width)).astype(np.float32)
        np.testing.assert_array_equal(run(x), expected(x, w, b, 3, attributes))


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("level", ALL_LEVELS)
@pytest.mark.parametrize("side", [7, 14, 56])
def test_strips_of_depthwise_images_are_loaded_once_for_the_rows_of_a_tile(side, level) -> None:
    """Seven rows and windows of 5 rows need 11 strips, which are used in 35 multiply-adds."""
    attributes = ((1, 1), (2, 2, 2, 2), (1, 1))
    module, _, _ = program((1, 4, 4, 4, (side, side), (5, 5), *attributes))
    target = tw.Target("cpu", features=(level,))
    sch = tw.Schedule(module, target)
    sch.default_schedule()
    loops = [sch.state.loop(x) for x in sch.get_loops(sch.get_block("conv", "conv"))]
    kinds = [x.kind for x in loops if const_value(x.extent) != 1][-4:]
    assert "unrolled" in kinds
    assert kinds[-1] == "vectorized"
    names = [x.var.name.split("_")[0] for x in loops]
    assert names.index("kx") < names.index("ky")
    (kernel,) = [f for f in sch.module.prims if f.name == "conv"]
    text = assembly(emit_module([lower_kernel(kernel, target).function], target), target)
    body = max(text.split("\n.LBB"), key=lambda block: block.count("vfmadd"))
    register = "%zmm" if level == "avx512" and side > 8 else "%ymm"
    added = [x for x in body.splitlines() if "vfmadd" in x]
    loaded = [x for x in body.splitlines() if "(%r" in x and register in x and "broadcast" not in x]
    assert len(added) >= 20
    assert 10 * len(loaded) <= 7 * len(added)  # as many as multiply-adds without reuse


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
    kinds = [sch.state.loop(x).kind for x in padding if x not in shared]
    assert kinds[0] == "serial"  # rows
    assert set(kinds[1:-1]) == {"unrolled"}
    assert kinds[-1] == "vectorized"


@pytest.mark.parametrize("image", [(6, 300), ("h", "w_")], ids=["long", "symbolic"])
def test_vectors_of_long_rows_are_not_unrolled(image) -> None:
    attributes = ((1, 1), (1, 1, 1, 1), (1, 1))
    module, _, _ = program((1, 5, 5, 5, image, (3, 3), *attributes))
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.lower_graph("main")
    sch.schedule_convolution("conv")
    kinds = [sch.state.loop(x).kind for x in sch.get_loops(sch.get_block("pad", "conv"))]
    assert "unrolled" not in kinds
    assert kinds[-1] == "vectorized"


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
