"""Whole models on the WebGPU driver of this machine: one compilation for every shape."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.runtime.device_tensor import DeviceTensor

from tests.codegen.wgsl.running import WEBGPU
from tests.ir.importers.models import (
    cached_llama,
    decoder,
    exported_decoder,
    exported_llama,
    greedy,
    llama_inputs,
    run_llama,
)
from tests.models.test_llama import in_single, relative_error
from tests.models.test_minilm import inputs

pytestmark = pytest.mark.model

TOKENS = 12


def test_minilm_at_five_shapes():
    """The real weights, compared with PyTorch in double precision."""
    import torch

    from tilewright.workbench import demo

    model = demo.load_minilm()
    executable = tw.compile(tw.from_exported_program(demo.export_minilm(model)), WEBGPU)
    exact = copy.deepcopy(model).double()
    for batch, length in ((1, 1), (1, 7), (2, 13), (3, 32), (1, 65), (5, 3)):
        ids, mask = inputs(batch, length, batch * 1000 + length)
        with torch.no_grad():
            wanted = exact(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        found = executable(ids, mask)
        for name, result in zip(("last_hidden_state", "pooler_output"), found, strict=True):
            expected = wanted[name].numpy()
            assert result.shape == expected.shape
            assert np.abs(result - expected).max() <= 2e-5


def test_a_llama_prefills_and_decodes():
    executable = tw.compile(tw.from_exported_program(exported_llama("sdpa")), WEBGPU)
    exact = copy.deepcopy(cached_llama("sdpa")).double()
    for sizes in ((1, 1, 0), (1, 7, 0), (2, 5, 0), (1, 1, 6), (3, 4, 5), (1, 16, 16), (5, 2, 1)):
        given = in_single(llama_inputs(*sizes))
        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in given]
        for found, reference in zip(executable(*given), run_llama(exact, wide), strict=True):
            assert found.shape == reference.shape
            assert relative_error(found, reference) <= 1e-5


def test_a_decoder_generates_with_its_cache_on_the_device():
    executable = tw.compile(tw.from_exported_program(exported_decoder(64, 2)), WEBGPU)
    wanted = greedy(decoder(2), 3, TOKENS, "static")
    first, second = executable.new_state(), executable.new_state()
    assert isinstance(first["key_cache_0"], DeviceTensor)
    cache = first["key_cache_0"].address
    tokens = [3]
    for position in range(TOKENS):
        logits = executable(np.array([[tokens[-1]]]), np.array([position]), state=first)
        tokens.append(int(logits[0, -1].argmax()))
    assert tokens[1:] == wanted
    assert first["key_cache_0"].address == cache
    assert first["key_cache_0"].numpy()[0, :, :TOKENS].all()
    assert not first["key_cache_0"].numpy()[0, :, TOKENS:].any()
    assert not second["key_cache_0"].numpy().any()
