"""The node cases of ONNX for recurrent layers, and layers of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("gru", "lstm", "rnn", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-6)


def weights(torch: Any, layer: Any, order: list[int]) -> list[np.ndarray[Any, Any]]:
    """Return W, R, and B of a layer of PyTorch, with its gates in the order of ONNX."""

    def reordered(x: Any) -> Any:
        parts = x.detach().chunk(len(order))
        return torch.cat([parts[k] for k in order])

    def of(direction: str) -> list[Any]:
        names = [f"{n}_l0{direction}" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        w, r, *biases = (reordered(getattr(layer, n)) for n in names)
        return [w, r, torch.cat(biases)]

    both = [of(""), of("_reverse")]
    return [torch.stack(pair).numpy() for pair in zip(*both, strict=True)]


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_compiled_layer_of_two_directions_equals_that_of_pytorch(kind: str) -> None:
    import torch

    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(3, 5, bidirectional=True)
    order, more = ([0, 3, 1, 2], "") if kind == "LSTM" else ([1, 0, 2], ", linear_before_reset = 1")
    gates = len(order) * 5
    inputs = (
        f"float[s, b, 3] x, float[2, {gates}, 3] w, float[2, {gates}, 5] r, float[2, {2 * gates}] k"
    )
    body = f'y = {kind}<hidden_size = 5, direction = "bidirectional"{more}>(x, w, r, k)'
    run = tw.compile(from_onnx(parsed(body, 14, inputs)))
    given = weights(torch, layer, order)
    for steps, batch in [(4, 2), (1, 1), (6, 3)]:
        x = torch.randn(steps, batch, 3)
        expected = layer(x)[0].detach().numpy().reshape(steps, batch, 2, 5).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(run(x.numpy(), *given), expected, rtol=1e-4, atol=1e-5)


def test_steps_after_the_end_of_a_sequence_have_no_effect() -> None:
    inputs = "float[s, b, 2] x, float[1, 3, 2] w, float[1, 3, 3] r, int32[b] n"
    body = 'y, h = RNN<hidden_size = 3, direction = "{}">(x, w, r, , n)'
    rng = np.random.default_rng(0)
    w, r = rng.standard_normal((1, 3, 2)), rng.standard_normal((1, 3, 3))
    w, r = w.astype(np.float32), r.astype(np.float32)
    x = rng.standard_normal((4, 2, 2)).astype(np.float32)
    for direction in ("forward", "reverse"):
        module = from_onnx(parsed(body.format(direction), 14, inputs))
        (found,) = run_graph(module, [x, w, r, np.array([2, 4], np.int32)])
        (short,) = run_graph(module, [x[:2], w, r, np.array([2, 2], np.int32)])
        np.testing.assert_allclose(found[:2, :, 0], short[:, :, 0], rtol=1e-6)
        assert not found[2:, :, 0].any()
        assert found[:, :, 1].all()


def test_a_wrong_number_of_activations_is_rejected() -> None:
    body = 'y = LSTM<hidden_size = 1, activations = ["Tanh"]>(x, w, r)'
    inputs = "float[s, b, 1] x, float[1, 4, 1] w, float[1, 4, 1] r"
    with pytest.raises(TilewrightError, match="expected 3 activations, got 1"):
        from_onnx(parsed(body, 14, inputs))
