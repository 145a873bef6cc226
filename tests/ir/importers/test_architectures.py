"""Imported encoders and decoders of text, with random weights, equal PyTorch."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.importers import from_exported_program
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.symbolic import to_text

from tests.ir.importers.models import encoder_inputs, single_threaded
from tests.ir.importers.onnx_models import wrapped_bert

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
    "max_position_embeddings": 70,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "use_cache": False}
OTHER_NAMES = {"vocab_size": 99, "max_position_embeddings": 70}

MODELS: dict[str, dict[str, Any]] = {
    "RobertaModel": SMALL,
    "DistilBertModel": {**OTHER_NAMES, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "ElectraModel": {**SMALL, "embedding_size": 32},
    "MPNetModel": SMALL,
    "BertForSequenceClassification": SMALL,
    "BertForMaskedLM": SMALL,
    "MistralForCausalLM": GROUPED,
    "Qwen2ForCausalLM": GROUPED,
    "Qwen3ForCausalLM": {**GROUPED, "head_dim": 8},
    "GemmaForCausalLM": {**GROUPED, "head_dim": 8},
    "Phi3ForCausalLM": {**GROUPED, "pad_token_id": 0},
    "MixtralForCausalLM": {**GROUPED, "num_local_experts": 3, "num_experts_per_tok": 2},
    "GPT2LMHeadModel": {
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "vocab_size": 99,
        "n_positions": 70,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "use_cache": False,
    },
}


def exported(model: Any) -> Any:
    import torch
    from torch.export import Dim, export

    ids = torch.randint(3, 99, (2, 7))
    axes = {0: Dim("batch", max=128), 1: Dim("seq", max=64)}
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return export(model, (), inputs, dynamic_shapes=dict.fromkeys(inputs, axes))


@pytest.mark.parametrize("name", MODELS)
def test_architectures_equal_pytorch(name: str) -> None:
    import transformers

    torch = single_threaded()
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**MODELS[name])).eval()
    module = from_exported_program(exported(model))
    for batch, length in ((1, 1), (2, 7), (3, 2)):
        inputs = encoder_inputs(batch, length)
        ids, mask = (torch.from_numpy(x) for x in inputs)
        with torch.no_grad():
            found = model(input_ids=ids, attention_mask=mask)
        expected = [v.numpy() for v in found.values() if isinstance(v, torch.Tensor)]
        for have, want in zip(run_graph(module, inputs), expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=2e-6)


def test_a_program_saved_and_loaded_imports_alike() -> None:
    """The file does not contain the names of the dimensions, so input and axis name them."""
    import torch

    axes = {0: torch.export.Dim("batch", max=128), 1: torch.export.Dim("seq", max=64)}
    model = wrapped_bert("sdpa")
    ids = torch.randint(0, 99, (2, 7))
    program = torch.export.export(
        model,
        (ids, torch.ones_like(ids)),
        dynamic_shapes={"input_ids": axes, "attention_mask": axes},
    )
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    module = from_exported_program(torch.export.load(file))
    info = module.graph().params[1].value.info
    assert isinstance(info, TensorInfo)
    assert info.shape is not None
    assert [to_text(d) for d in info.shape] == ["input_ids_dim0", "input_ids_dim1"]
    inputs = encoder_inputs(3, 5)
    direct = run_graph(from_exported_program(program), inputs)
    for have, want in zip(run_graph(module, inputs), direct, strict=True):
        np.testing.assert_array_equal(have, want)
