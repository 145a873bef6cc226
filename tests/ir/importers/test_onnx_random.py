"""Random operators of ONNX: distributions, seeds, and dropout."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.importers import from_onnx
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed


def drawn(body: str, inputs: str = "float[n] x", *given: np.ndarray) -> np.ndarray:
    x = np.zeros(20_000, np.float32)
    return run_graph(from_onnx(parsed(body, 22, inputs)), list(given) or [x])[0]


def test_numbers_of_an_interval_are_uniform() -> None:
    found = drawn("y = RandomUniformLike<seed = 1.0, low = -1.0, high = 3.0>(x)")
    assert found.min() >= -1
    assert found.max() < 3
    counts = np.histogram(found, 20, (-1, 3))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 44  # the 99.9th percentile of 19 degrees
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.03


def test_normal_numbers_have_mean_and_deviation() -> None:
    found = drawn("y = RandomNormalLike<seed = 2.0, mean = 5.0, scale = 2.0>(x)")
    assert abs(found.mean() - 5) < 0.06
    assert abs(found.std() - 2) < 0.05
    assert abs(((found - 5) ** 3).mean()) < 0.5


def test_seeds_and_nodes_have_different_numbers() -> None:
    a, b, c = (drawn(f"y = RandomUniformLike<seed = {k}.0>(x)") for k in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert abs(np.corrcoef(a, c)[0, 1]) < 0.03
    other = drawn("z = RandomUniformLike(x) w = RandomUniformLike(x) y = Sub(z, w)")
    assert np.abs(other).mean() > 0.3


def test_compiled_numbers_are_those_of_the_interpreter() -> None:
    module = from_onnx(parsed("y = RandomNormalLike<seed = 3.0>(x)", 22, "float[n, m] x"))
    x = np.zeros((3, 50), np.float32)
    found, expected = tw.compile(module)(x), run_graph(module, [x])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_shapes_and_dtypes_of_attributes() -> None:
    body = "y = RandomUniform<shape = [2, 3], dtype = 11>() z = Identity(x)"
    found = run_graph(from_onnx(parsed(body, 22)), [np.zeros((1, 1), np.float32)])[0]
    assert (found.shape, found.dtype) == ((2, 3), np.float64)


def test_ones_have_their_probability() -> None:
    p = np.repeat(np.array([0, 0.25, 1], np.float32), 10_000)
    found = drawn("y = Bernoulli<seed = 1.0>(x)", "float[n] x", p).reshape(3, -1)
    assert found[0].sum() == 0
    assert found[2].sum() == 10_000
    assert abs(found[1].mean() - 0.25) < 0.02


def test_indices_are_drawn_by_logits() -> None:
    x = np.log(np.array([[1, 2, 7]], np.float32))
    found = drawn("y = Multinomial<sample_size = 20000, seed = 1.0>(x)", "float[1, 3] x", x)
    np.testing.assert_allclose(np.bincount(found[0]) / 20000, [0.1, 0.2, 0.7], atol=0.02)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_depends_on_the_mode_of_the_call(training: bool) -> None:
    body = "y, mask = Dropout<seed = 1>(x, r, t)"
    module = from_onnx(parsed(body, 13, "float[n] x, float r, bool t"))
    x = np.ones(20_000, np.float32)
    (found,) = run_graph(module, [x, np.array(0.25, np.float32), np.array(training)])
    if training:
        assert set(np.unique(found)) == {0, np.float32(4 / 3)}
        assert abs((found == 0).mean() - 0.25) < 0.02
    else:
        np.testing.assert_array_equal(found, x)


def test_dropout_of_ratio_0_changes_nothing() -> None:
    module = from_onnx(parsed("y = Dropout(x, r, t)", 13, "float[n] x, float r, bool t"))
    x = np.arange(9, dtype=np.float32)
    found = run_graph(module, [x, np.zeros((), np.float32), np.array(True)])[0]
    np.testing.assert_array_equal(found, x)
