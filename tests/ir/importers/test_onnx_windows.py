"""The node cases of ONNX for images: windows, normalization, padding, sizes, and activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import NodeCase, node_cases

FILES = (
    "averagepool", "batch_normalization", "celu", "conv", "convinteger", "convtranspose",
    "depthtospace", "elu", "globalaveragepool", "globalmaxpool", "groupnormalization",
    "hardsigmoid", "hardswish",
    "instance_normalization", "leakyrelu", "lpnormalization", "lppool", "lrn", "maxpool", "mean",
    "meanvariancenormalization",
    "mish", "pad", "prelu", "qlinearconv", "reduce_log_sum", "reduce_log_sum_exp", "reducel1",
    "reducel2",
    "reducesumsquare", "resize", "selu", "shrink", "softplus", "softsign", "spacetodepth", "sum",
    "swish", "thresholdedrelu",
)  # fmt: skip
CASES = node_cases(*FILES, opset=newest_opset())


def with_constants(case: NodeCase) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """Return a model in which shapes, axes, scales and numbers are constants, and its inputs."""
    from onnx import numpy_helper

    model = case.model()
    graph, given = model.graph, []
    inputs = list(graph.input)
    del graph.input[:]
    for k, (info, array) in enumerate(zip(inputs, case.inputs, strict=True)):
        if k and (array.dtype.kind in "iu" or info.name in ("scales", "roi", "value")):
            graph.initializer.append(numpy_helper.from_array(array, info.name))
        else:
            graph.input.append(info)
            given.append(array)
    return model, given


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    case = CASES[name]
    model, given = with_constants(case)
    found = run_graph(from_onnx(model), given)
    for have, want in zip(found, case.outputs, strict=True):
        coarse = want.dtype == np.float16 or "last_window" in name  # written with four digits
        rtol = 2e-3 if coarse else 1e-4
        np.testing.assert_allclose(have, want, rtol=rtol, atol=1e-5, strict=True)


def test_norms_of_windows_beyond_the_image_are_rejected_by_name() -> None:
    body = "y = LpPool<kernel_shape = [2], ceil_mode = 1>(x)"
    with pytest.raises(UnsupportedOperatorsError, match="ceil_mode=1"):
        from_onnx(parsed(body, 18, "float[1, 1, 4] x"))


OLD = {
    "y = Pad<pads = [0, 1, 0, 2], value = 2.5>(x)": lambda x: np.pad(
        x, [(0, 0), (1, 2)], constant_values=2.5
    ),
    "y = Clip<min = -0.5, max = 0.25>(x)": lambda x: np.clip(x, -0.5, 0.25),
    "y = Slice<starts = [1], ends = [3], axes = [1]>(x)": lambda x: x[:, 1:3],
    "y = Upsample<scales = [1.0, 2.0]>(x)": lambda x: np.repeat(x, 2, axis=1),
}


@pytest.mark.parametrize("text", OLD)
def test_the_attributes_of_old_opsets(text: str) -> None:
    from onnx import parser

    opset = 7 if "Upsample" in text else 9
    head = f'<ir_version: 4, opset_import: ["" : {opset}]> g (float[2, 4] x) => (float y) {{ '
    module = from_onnx(parser.parse_model(head + text + " }"))
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    (found,) = run_graph(module, [x])
    np.testing.assert_array_equal(found, OLD[text](x))


def test_a_resize_of_a_symbolic_axis_interpolates_each_size() -> None:
    from onnx import parser

    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[1, 1, n] x) => (float[1, 1, m] y)'
    text += " <float[3] s = {1.0, 1.0, 2.0}> { y = Resize(x, , s) }"
    module = from_onnx(parser.parse_model(text))
    for size in (1, 2, 5):
        x = np.arange(size, dtype=np.float32).reshape(1, 1, size)
        (found,) = run_graph(module, [x])
        np.testing.assert_array_equal(found, x.repeat(2, 2), strict=True)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("count", [1, 5])
def test_the_channels_of_each_image_are_normalized(count: int, size: int) -> None:
    """The reference implementation of ONNX normalizes as many channels as there are images."""
    model = parsed(
        f"y = LRN <alpha = 0.5, beta = 0.75, bias = 2.0, size = {size}> (x)",
        inputs=f"float[{count}, 4, 2, 3] x",
    )
    x = np.random.default_rng(size).normal(size=(count, 4, 2, 3)).astype(np.float32)
    squares = np.zeros_like(x)
    for channel in range(4):
        first = max(channel - (size - 1) // 2, 0)
        squares[:, channel] = (x[:, first : channel + size // 2 + 1] ** 2).sum(1)
    (found,) = run_graph(from_onnx(model), [x])
    np.testing.assert_allclose(found, x / (2 + 0.5 / size * squares) ** 0.75, rtol=1e-5)


@pytest.mark.parametrize("columns", [0, 1])
def test_positions_of_maxima_of_symbolic_images(columns: int) -> None:
    import onnxruntime

    body = f"""z, y = MaxPool<kernel_shape = [2, 3], strides = [2, 1], pads = [1, 0, 0, 2],
        dilations = [1, 2], storage_order = {columns}>(x)"""
    model = parsed(body, 22, "float[n, c, h, w] x")
    model.graph.output[0].type.tensor_type.elem_type = 7
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    module = from_onnx(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for size in [(1, 1, 2, 5), (2, 3, 5, 6)]:
        x = np.random.default_rng(0).integers(0, 3, size).astype(np.float32)
        (found,) = run_graph(module, [x])
        np.testing.assert_array_equal(found, session.run(None, {"x": x})[0])
