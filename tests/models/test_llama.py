"""A Llama with random weights: prefill and decoding with a growing cache in one executable."""

import copy

import numpy as np
import pytest

import tilewright as tw

from tests.ir.importers.models import cached_llama, exported_llama, llama_inputs, run_llama

pytestmark = pytest.mark.model

SIZES = [(1, 1, 0), (1, 7, 0), (2, 5, 0), (1, 1, 6), (2, 1, 9), (3, 4, 5), (1, 16, 16), (5, 2, 1)]


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def attention(request):
    return request.param


@pytest.fixture(scope="module")
def executable(attention):
    return tw.compile(tw.from_exported_program(exported_llama(attention)))


@pytest.fixture(scope="module")
def exact(attention):
    return copy.deepcopy(cached_llama(attention)).double()


def in_single(arrays):
    return [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]


def relative_error(found, expected):
    return np.abs(np.asarray(found) - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(("batch", "length", "past"), SIZES)
def test_one_executable_prefills_and_decodes(executable, exact, batch, length, past):
    given = in_single(llama_inputs(batch, length, past))
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in given]
    expected = run_llama(exact, wide)
    for found, reference in zip(executable(*given), expected, strict=True):
        assert found.shape == reference.shape
        assert relative_error(found, reference) <= 1e-5


def test_decoding_token_by_token_equals_prefilling(executable):
    ids = np.random.default_rng(3).integers(0, 99, (1, 9))
    empty = [np.zeros((1, 2, 0, 8), np.float32) for _ in range(4)]
    whole, *_ = executable(ids, np.ones((1, 9), np.int64), *empty)
    cache, steps = empty, []
    for position in range(9):
        mask = np.ones((1, position + 1), np.int64)
        logits, *cache = executable(ids[:, position : position + 1], mask, *cache)
        steps.append(np.asarray(logits))
    assert relative_error(np.concatenate(steps, 1), np.asarray(whole)) <= 1e-5


def test_a_cache_beyond_the_declared_range_is_rejected(executable):
    inputs = in_single(llama_inputs(1, 1, 33))
    with pytest.raises(tw.TilewrightError, match=r"past <= 32, which is false for past = 33"):
        executable(*inputs)


def test_decoding_makes_few_plans(executable):
    symbols = executable.spec("main").symbols
    before = executable.memory(dict.fromkeys(symbols, 1)).call.planned
    cache = [np.zeros((1, 2, 0, 8), np.float32) for _ in range(4)]
    for position in range(32):
        mask = np.ones((1, position + 1), np.int64)
        _, *cache = executable(np.full((1, 1), position), mask, *cache)
    call = executable.memory(dict.fromkeys(symbols, 1)).call
    assert call.planned - before <= 8
