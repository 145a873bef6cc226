"""Models of images, speech and sequences, with random weights, compiled equal PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw

from tests.ir.importers.models import single_threaded

STAGES = {"embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]}
TRANSFORMER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
WAVES = {
    **TRANSFORMER,
    "conv_dim": (16, 16),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": 32,
}
IMAGE = (2, 3, 64, 64)

# The name of the model, its configuration, and the shape of its input.
MODELS: dict[str, tuple[dict[str, Any], str, tuple[int, ...]]] = {
    "ResNetModel": (STAGES, "pixel_values", IMAGE),
    "ConvNextModel": (
        {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}, "pixel_values", IMAGE,
    ),
    "ViTModel": ({**TRANSFORMER, "image_size": 64, "patch_size": 8}, "pixel_values", IMAGE),
    "PoolFormerModel": (
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}, "pixel_values", IMAGE,
    ),
    "Wav2Vec2Model": (WAVES, "input_values", (2, 800)),
    "MambaModel": (
        {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "vocab_size": 64,
         "use_cache": False},
        "input_ids", (2, 10),
    ),
}  # fmt: skip


def given(name: str, shape: tuple[int, ...], batch: int) -> Any:
    import torch

    whole = (batch, *shape[1:])
    return torch.randint(0, 64, whole) if name == "input_ids" else torch.randn(whole)


@pytest.mark.parametrize("name", MODELS)
def test_models_equal_pytorch(name: str) -> None:
    import transformers

    torch = single_threaded()
    torch.manual_seed(0)
    settings, argument, shape = MODELS[name]
    config = getattr(transformers, name.replace("Model", "Config"))(**settings)
    model = getattr(transformers, name)(config).eval()
    x = given(argument, shape, 2)
    with torch.no_grad():
        program = torch.export.export(model, (), {argument: x})
        expected = model(**{argument: x})[0].numpy()
    run: Any = tw.compile(tw.from_exported_program(program), target="cpu")
    found = run(x.numpy())
    first = np.asarray(found[0] if isinstance(found, tuple) else found)
    scale = np.abs(expected).max()
    assert np.abs(first - expected).max() <= 2e-6 * scale


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_cells_equal_pytorch(kind: str) -> None:
    torch = single_threaded()
    torch.manual_seed(0)
    model = getattr(torch.nn, kind)(8, 16, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    run: Any = tw.compile(tw.from_exported_program(torch.export.export(model, (x,))), target="cpu")
    found, *_ = run(x.numpy())
    expected = model(x)[0].detach().numpy()
    np.testing.assert_allclose(np.asarray(found), expected, atol=2e-6)
