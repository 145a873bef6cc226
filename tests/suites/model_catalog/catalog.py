"""The models of the suite: small configurations of architectures, one row each."""

from __future__ import annotations

from functools import cache

from .rows import Model


@cache
def models() -> dict[str, Model]:
    """Return the models by name.

    Raises
    ------
    ValueError
        If two models have one name.
    """
    from . import decoders, diffusion, encoders, images, recurrent, signals, vision

    found: dict[str, Model] = {}
    for module in (decoders, encoders, vision, signals, diffusion, images, recurrent):
        for model in module.MODELS:
            if model.name in found:
                raise ValueError(f"two models are named {model.name!r}")
            found[model.name] = model
    return found
