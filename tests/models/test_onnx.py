"""Models imported from ONNX files, compiled once each, compared with PyTorch in float64."""

import copy

import numpy as np
import pytest

import tilewright as tw

from tests.ir.importers.models import (
    PAIRS,
    bert,
    cached_llama,
    encoder_inputs,
    llama_inputs,
    run_encoder,
    run_llama,
)
from tests.ir.importers.onnx_models import save_bert, save_llama, save_traced_bert

pytestmark = [pytest.mark.model, pytest.mark.slow]

EXPORTERS = {"exported": save_bert, "traced": save_traced_bert}
LLAMA_SIZES = [(1, 1, 5), (2, 3, 5), (1, 7, 1), (3, 2, 9), (1, 16, 4)]


def relative_error(found, expected):
    return np.abs(np.asarray(found) - expected).max() / np.abs(expected).max()


@pytest.fixture(scope="module")
def exact_bert():
    return copy.deepcopy(bert("eager")).double()


@pytest.fixture(scope="module", params=EXPORTERS)
def encoder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bert") / "model.onnx"
    EXPORTERS[request.param](path, "eager")
    return tw.compile(tw.from_onnx(path))


@pytest.mark.parametrize(("batch", "length"), PAIRS)
def test_one_compiled_bert_serves_every_shape(encoder, exact_bert, batch, length):
    given = encoder_inputs(batch, length)
    for found, expected in zip(encoder(*given), run_encoder(exact_bert, given), strict=True):
        assert found.shape == expected.shape
        assert relative_error(found, expected) <= 1e-5


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("llama") / "model.onnx"
    save_llama(path, "eager")
    return tw.compile(tw.from_onnx(path))


@pytest.mark.parametrize(("batch", "length", "past"), LLAMA_SIZES)
def test_one_compiled_llama_prefills_and_decodes(decoder, batch, length, past):
    given = llama_inputs(batch, length, past)
    expected = run_llama(copy.deepcopy(cached_llama("eager")).double(), given)
    single = [a.astype(np.float32) if a.dtype == np.float64 else a for a in given]
    for found, reference in zip(decoder(*single), expected, strict=True):
        assert found.shape == reference.shape
        assert relative_error(found, reference) <= 1e-5
