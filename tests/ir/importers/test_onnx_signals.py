"""The node cases of ONNX for signals and for affine maps of grids."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases(
    "affinegrid",
    "blackmanwindow",
    "hammingwindow",
    "hannwindow",
    "melweightmatrix",
    "stft",
    opset=newest_opset(),
)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-5)


@pytest.mark.parametrize("name", sorted(node_cases("dft", opset=newest_opset())))
def test_a_transform_has_the_rounding_of_one_of_its_numbers(name: str) -> None:
    """ONNX transforms in f32; the error is relative to the largest number."""
    case = node_cases("dft", opset=newest_opset())[name]
    unit = float(np.abs(case.outputs[0]).max()) * 2.0**-22
    interpreted(case, atol=unit)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 13])
def test_one_compiled_transform_serves_every_length(length: int) -> None:
    rng = np.random.default_rng(0)
    run = tw.compile(from_onnx(parsed("y = DFT(x, k)", 20, "double[b, n, 2] x, int64 k")))
    back = tw.compile(
        from_onnx(
            parsed("y = DFT<inverse = 1, onesided = 1>(x, k)", 20, "double[b, n, 2] x, int64 k")
        )
    )
    x = rng.standard_normal((2, 5, 2))
    signal = x[..., 0] + 1j * x[..., 1]
    found = run(x, np.array(length))
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], np.fft.fft(signal, length))
    expected = np.fft.irfft(signal, length)
    np.testing.assert_allclose(back(x, np.array(length))[..., 0], expected, atol=1e-14)


def test_a_last_dimension_that_is_not_a_complex_number_is_rejected() -> None:
    with pytest.raises(TilewrightError, match="expected a last dimension of 1 or 2"):
        from_onnx(parsed("y = DFT(x)", 20, "float[b, n, 3] x"))


def test_frames_that_do_not_divide_a_signal() -> None:
    body = "s = Constant<value_int = 3>() y = STFT<onesided = 0>(x, s, w)"
    module = from_onnx(parsed(body, 17, "double[b, n, 1] x, double[4] w"))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 12, 1)), rng.standard_normal(4)
    (found,) = run_graph(module, [x, w])
    frames = np.stack([np.fft.fft(x[:, k : k + 4, 0] * w) for k in (0, 3, 6)], 1)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], frames, atol=1e-14)
