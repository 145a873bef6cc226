"""Modules of ``transformers`` from configurations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .rows import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

TEXT: dict[str, Any] = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "max_position_embeddings": 64, "use_cache": False, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
"""The names that most configurations of text models have."""


def module(kind: str, auto: str, values: Mapping[str, Any]) -> torch.nn.Module:
    """Build a module by its configuration name and the class for its task."""
    transformers: Any = import_module("transformers")
    config = transformers.AutoConfig.for_model(kind, **values)
    made: Any = getattr(transformers, auto)
    return made.from_config(config) if auto.startswith("Auto") else made(config)


def row(
    name: str, family: str, auto: str, inputs: Mapping[str, str], values: Mapping[str, Any],
    *, kind: str = "", sizes: Mapping[str, tuple[int, ...]] | None = None,
) -> Model:  # fmt: skip
    """Return the row of a model; ``kind`` is the configuration if it has another name."""
    used = dict(values)
    return Model(
        name, family, lambda: module(kind or name, auto, used), inputs, sizes or {}, "transformers"
    )
