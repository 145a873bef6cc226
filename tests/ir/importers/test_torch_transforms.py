"""Fourier transforms of PyTorch, and a model that mixes tokens by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import fft

import tilewright as tw

if TYPE_CHECKING:
    from collections.abc import Callable

# Functions of x (n, m) float and z (n, m) complex.
FUNCTIONS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "complex": lambda x, z: [fft.fft(z), fft.ifft(z, dim=0), fft.fft2(z, norm="ortho")],
    "real": lambda x, z: [fft.fft(x), fft.rfft(x), fft.rfft2(x, norm="forward"), fft.ihfft(x)],
    "real results": lambda x, z: [fft.irfft(z), fft.irfft(z, n=7), fft.hfft(z, dim=0)],
    "shifts": lambda x, z: [fft.fftshift(x), fft.ifftshift(x, dim=1)],
    "fixed sizes": lambda x, z: [fft.fft(x, n=6), fft.fft(z, n=3), fft.irfft2(z, s=(4, 5))],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_sizes_equals_pytorch(name: str) -> None:
    class One(torch.nn.Module):
        def forward(self, x: Any, z: Any) -> list[Any]:
            return FUNCTIONS[name](x, z)

    axes = {0: torch.export.Dim("n", min=5), 1: torch.export.Dim("m", min=7)}
    example = (torch.rand(6, 8), torch.rand(6, 8) + 0j)
    program = torch.export.export(One(), example, dynamic_shapes={"x": axes, "z": axes})
    run: Any = tw.compile(tw.from_exported_program(program), target="cpu")
    for n, m in ((6, 8), (5, 7), (9, 11)):
        x = torch.randn(n, m, generator=torch.Generator().manual_seed(n))
        z = torch.complex(x, x.flip(1) / 3)
        for have, want in zip(run(x.numpy(), z.numpy()), FUNCTIONS[name](x, z), strict=True):
            expected = want.resolve_conj().numpy()
            assert (have.shape, have.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(np.asarray(have), expected, rtol=1e-4, atol=1e-4)


def test_fnet_equals_pytorch_at_all_lengths() -> None:
    from transformers import FNetConfig, FNetModel

    config = FNetConfig(
        vocab_size=99, hidden_size=24, num_hidden_layers=2, intermediate_size=48,
        max_position_embeddings=64, attn_implementation="eager",
    )  # fmt: skip
    torch.manual_seed(0)
    model = FNetModel(config).eval()

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any) -> Any:
            return self.model(input_ids=ids).last_hidden_state

    axes = {0: torch.export.Dim("batch", max=8), 1: torch.export.Dim("length", min=2, max=60)}
    ids = torch.randint(3, 99, (2, 7))
    with torch.no_grad():
        program = torch.export.export(Hidden(), (ids,), dynamic_shapes={"ids": axes})
        run: Any = tw.compile(tw.from_exported_program(program), target="cpu")
        for batch, length in ((2, 7), (1, 2), (3, 16), (1, 31)):
            ids = torch.randint(3, 99, (batch, length))
            np.testing.assert_allclose(
                np.asarray(run(ids.numpy())), Hidden()(ids).numpy(), rtol=2e-4, atol=2e-4
            )
