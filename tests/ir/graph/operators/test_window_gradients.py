"""Gradients of convolutions, pooling, and sorting, against PyTorch and differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

import tilewright as tw
from tilewright.ir.graph.gradient import with_gradient
from tilewright.ir.graph.operators.errors import MissingGradientError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.verify import violations

from tests.amounts import amount

PROGRAM = """
n, m = symbols("n m", lower=0)
p, q = symbols("p q", lower=9)

@graph_func
def main({params}):
{body}
    return y
"""

IMAGE = "x: Tensor[(n, 4, p, q), f64]"


def program(params, body):
    lines = "\n".join(f"    {line.strip()}" for line in body.split(";"))
    return tw.parse(PROGRAM.format(params=params, body=lines))


def conv(kernel, **options):
    written = {k: v for k, v in options.items() if k != "torch"}
    text = "".join(f", {k}={v}" for k, v in written.items())
    channels = 4 // options.get("groups", 1)
    shape = (6, channels, *kernel)
    pad = options.get("padding", (0, 0, 0, 0))

    def reference(x, w):
        top, left, bottom, right = pad
        padded = F.pad(x, (left, right, top, bottom))
        return F.conv2d(padded, w, None, options.get("strides", 1), 0,
                        options.get("dilation", 1), options.get("groups", 1))  # fmt: skip

    return program(f"{IMAGE}, w: Tensor[{shape}, f64]", f"y = conv(x, w{text})"), shape, reference


CONVOLUTIONS = {
    "plain": conv((3, 3)),
    "strides": conv((3, 2), strides=(2, 3)),
    "padding": conv((3, 3), padding=(1, 0, 2, 1), strides=(2, 2)),
    "dilation": conv((2, 3), dilation=(2, 3), strides=(1, 2), padding=(0, 1, 0, 4)),
    "groups": conv((3, 3), groups=2, padding=(1, 1, 1, 1)),
    "point": conv((1, 1), strides=(3, 3)),
}


DIFFERENCES = amount(3, 12)
"""The number of elements of an argument whose gradients are compared with differences."""


def slopes(module, args, cotangent, position):
    """Return some central differences of the result times its cotangent."""
    rng, found = np.random.default_rng(1), {}
    for at in rng.integers(0, args[position].size, DIFFERENCES):
        values = []
        for step in (-1e-5, 1e-5):
            moved = [a.copy() for a in args]
            moved[position].reshape(-1)[at] += step
            values.append(float((run_graph(module, moved)[0] * cotangent).sum()))
        found[at] = (values[1] - values[0]) / 2e-5
    return found


def agree(module, args, reference, floats):
    added = with_gradient(module.graph("main"), name="main_gradient")
    module = module.with_functions(added)
    assert not violations(module)
    tensors = [torch.tensor(a, requires_grad=k in floats) for k, a in enumerate(args)]
    result = reference(*tensors)
    cotangent = np.random.default_rng(3).uniform(-1, 1, result.shape)
    result.backward(torch.tensor(cotangent))
    given = [*args, cotangent]
    interpreted = run_graph(module, given, function="main_gradient")[1:]
    compiled = tw.compile(module, "cpu")["main_gradient"](*given)[1:]
    for position, own, native in zip(floats, interpreted, compiled, strict=True):
        wanted = tensors[position].grad.numpy()
        np.testing.assert_allclose(own, wanted, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(native, wanted, rtol=1e-9, atol=1e-10)
        for at, slope in slopes(module, args, cotangent, position).items():
            assert abs(np.asarray(own).reshape(-1)[at] - slope) < 1e-6


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    module, shape, reference = CONVOLUTIONS[name]
    rng = np.random.default_rng(0)
    for sizes in ((2, 9, 10), (1, 12, 9)):
        image = rng.standard_normal((sizes[0], 4, *sizes[1:]))
        agree(module, [image, rng.standard_normal(shape)], reference, (0, 1))


def transposed(kernel, **options):
    text = "".join(f", {k}={v}" for k, v in options.items())
    groups = options.get("groups", 1)
    shape = (4, 6 // groups, *kernel)
    top, left, bottom, right = options.get("padding", (0, 0, 0, 0))

    def reference(x, w):
        made = F.conv_transpose2d(x, w, None, options.get("strides", 1), 0,
                                  options.get("output_padding", 0), groups,
                                  options.get("dilation", 1))  # fmt: skip
        return made[:, :, top : made.shape[2] - bottom, left : made.shape[3] - right]

    return f"w: Tensor[{shape}, f64]", f"y = conv_transpose(x, w{text})", shape, reference


TRANSPOSED = {
    "plain": transposed((3, 3)),
    "strides": transposed((3, 2), strides=(2, 3), output_padding=(1, 2)),
    "padding": transposed((4, 3), padding=(1, 0, 2, 1), strides=(2, 2)),
    "dilation": transposed((2, 3), dilation=(2, 3), strides=(1, 2), output_padding=(1, 2)),
    "groups": transposed((3, 3), groups=2, strides=(2, 1)),
}


@pytest.mark.parametrize("name", TRANSPOSED)
@pytest.mark.parametrize("lower", [0, 3])
def test_transposed_convolutions(name, lower):
    weights, body, shape, reference = TRANSPOSED[name]
    text = PROGRAM.replace("lower=9", f"lower={lower}")
    module = tw.parse(text.format(params=f"{IMAGE}, {weights}", body=f"    {body}"))
    rng = np.random.default_rng(0)
    for sizes in ((2, 4, 5), (1, 3, 3)):
        image = rng.standard_normal((sizes[0], 4, *sizes[1:]))
        agree(module, [image, rng.standard_normal(shape)], reference, (0, 1))


def test_a_transposed_convolution_of_an_empty_image():
    weights, body, shape, _ = transposed((3, 3), strides=(2, 2))
    text = PROGRAM.replace("lower=9", "lower=0")
    module = tw.parse(text.format(params=f"{IMAGE}, {weights}", body=f"    {body}"))
    module = module.with_functions(with_gradient(module.graph("main"), name="main_gradient"))
    exe = tw.compile(module, "cpu")
    x, w = np.zeros((2, 4, 0, 2)), np.ones(shape)
    y = run_graph(module, [x, w])[0]
    for found in (
        run_graph(module, [x, w, np.ones(y.shape)], function="main_gradient"),
        exe["main_gradient"](x, w, np.ones(y.shape)),
    ):
        assert np.asarray(found[1]).shape == x.shape
        np.testing.assert_array_equal(found[2], np.zeros(shape))


POOLING = {
    "max": ("max_pool(x, kernel=(2, 2), strides=(2, 2))", lambda x: F.max_pool2d(x, 2)),
    "max overlap": (
        "max_pool(x, kernel=(3, 3), strides=(2, 1), padding=(1, 1, 1, 1))",
        lambda x: F.max_pool2d(x, 3, (2, 1), 1),
    ),
    "max dilation": (
        "max_pool(x, kernel=(2, 3), dilation=(3, 2))",
        lambda x: F.max_pool2d(x, (2, 3), 1, 0, (3, 2)),
    ),
    "mean": ("avg_pool(x, kernel=(2, 3), strides=(2, 2))", lambda x: F.avg_pool2d(x, (2, 3), 2)),
    "mean padding": (
        "avg_pool(x, kernel=(3, 3), padding=(1, 1, 1, 1))", lambda x: F.avg_pool2d(x, 3, 1, 1)
    ),
    "mean of the image": (
        "avg_pool(x, kernel=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1), count_padding=False)",
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLING)
def test_pooling(name):
    call, reference = POOLING[name]
    module, rng = program(IMAGE, f"y = {call}"), np.random.default_rng(0)
    for sizes in ((2, 9, 10), (1, 11, 9)):
        agree(module, [-4 + rng.standard_normal((sizes[0], 4, *sizes[1:]))], reference, (0,))


def test_equal_maxima_share_their_cotangent():
    module = program("x: Tensor[(1, 1, 4), f64]", "y = max_pool(x, kernel=(2,), strides=(2,))")
    added = with_gradient(module.graph("main"), name="main_gradient")
    args = [np.array([[[1.0, 1, 2, 3]]]), np.ones((1, 1, 2))]
    found = run_graph(module.with_functions(added), args, function="main_gradient")
    assert found[1].tolist() == [[[0.5, 0.5, 0, 1]]]


SORTING = {
    "sort": ("s = sort(x, axis=0); y = s[0]", lambda x: x.sort(0)[0]),
    "descending": (
        "s = sort(x, axis=1, descending=True); y = s[0]", lambda x: x.sort(1, descending=True)[0]
    ),
    "topk": ("s = topk(x, (2,), axis=1); y = s[0]", lambda x: x.topk(2, 1)[0]),
    "smallest": (
        "s = topk(x, (2,), axis=1, largest=False); a = s[0]; y = multiply(a, a)",
        lambda x: x.topk(2, 1, largest=False)[0] ** 2,
    ),
    "positions": (
        "b = argsort(x, axis=1); g = gather_elements(x, b, axis=1); y = multiply(g, g)",
        lambda x: x.sort(1)[0] ** 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SORTING)
def test_sorting(name):
    body, reference = SORTING[name]
    module = program("x: Tensor[(n, 5), f64]", body)
    for n in (1, 6):
        agree(module, [np.random.default_rng(n).standard_normal((n, 5))], reference, (0,))


@pytest.mark.parametrize(
    "call",
    [
        "max_pool(x, kernel=(2, 2), strides=(3, 3), ceil=True)",
        "avg_pool(x, kernel=(2, 2), strides=(3, 3), ceil=True)",
    ],
)
def test_windows_beyond_the_image_have_no_gradient(call):
    name = call.partition("(")[0]
    with pytest.raises(MissingGradientError, match=f"operations without a gradient: {name}"):
        with_gradient(program(IMAGE, f"y = {call}").graph("main"))
