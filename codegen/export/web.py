"""Models for WebGPU: the loader of pages, the shaders, and checks of the host flow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, cast

from ...errors import Json
from ...target.target import Target
from ...target.webgpu import FEATURES, LANGUAGE_FEATURES
from ..entry_names import public_name
from ..lower.host.context import FETCH
from ..manifest import FunctionSpec
from .c_messages import ON_PAGES, loader_table
from .errors import ExportError
from .link import NATIVE
from .model import Model
from .web_tables import WebShader
from .weights import Weights

HOST: Final = Target("cpu", arch="wasm32", threads=1)
"""The target of the host flow of a model for WebGPU."""

MOST_MEMORY: Final = 1 << 30
"""The bytes of the memory of the module; addresses above are those of buffers."""

RESERVED: Final = frozenset({
    "run", "device", "upload", "newState", "state", "constructor",
    "alloc", "free", "release", "limits", "take", "drop", "buffer", "offset", "weight", "verify",
    "open_on_device", "explain", "state_fail",
})  # fmt: skip
"""The names that the loader and the module define for every model."""

PARTS: Final = ("device", "session", "tensors", "model")
"""The parts of the loader, in order."""

_MARK: Final = "// ---- shader "
"""The beginning of the line before a shader."""


def check_web(functions: Sequence[FunctionSpec]) -> None:
    """Check that the host flow of a page can run functions.

    Raises
    ------
    ExportError
        If a function reads a tensor during a call: a page cannot wait for the device in a call.
    """
    for function in functions:
        if any(site.kind == "device" and site.text == FETCH for site in function.sites):
            raise ExportError(
                f"function {public_name(function.name)!r} reads an element of a tensor on the host "
                "during a call, as the condition of a branch or a loop, or as a size; a page "
                "cannot wait for the device there",
                hint="pass the value as an integer parameter, or compute both sides and select",
            )


def shader_text(shaders: Sequence[WebShader]) -> str:
    """Return the file of all shaders, each after a line with its name."""
    return "\n".join(f"{_MARK}{s.name}\n{s.shader.text}" for s in shaders)


def loader_text(model: Model, target: Target, facts: Sequence[Json], values: str) -> str:
    """Return the ES module that loads a model.

    Parameters
    ----------
    model : Model
        The model.
    target : Target
        The target, whose features the device must have.
    facts : sequence of Json
        The descriptions of the public functions.
    values : str
        The part of the loader that converts and checks arguments.
    """
    text = (NATIVE / "web.mjs").read_text(encoding="utf-8").replace("// @VALUES@", values)
    for part in PARTS:
        text = text.replace(f"// @{part.upper()}@", part_of(f"web_{part}.mjs"))
    placed = [
        {**cast("dict[str, Json]", row), "position": model.functions.index(spec)}
        for row, spec in zip(facts, model.public, strict=True)
    ]
    prepares = [k for k, f in enumerate(model.functions) if f.prepares]
    words: dict[str, str] = {
        "FUNCTIONS": json.dumps(placed, indent=1),
        "STATES": json.dumps(model.states.facts()),
        "MESSAGES": loader_table(ON_PAGES),
        "SHADERS": json.dumps([_shader_facts(s) for s in model.shaders or ()], indent=1),
        "WEIGHTS": json.dumps(_weight_facts(model.weights), indent=1),
        "FEATURES": json.dumps(required_features(model, target)),
        "BYTES": str(model.weights.size),
        "PREPARES": str(prepares[0] if prepares else -1),
        "NAME": model.name,
    }
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def part_of(name: str) -> str:
    """Return the text of a part of a JavaScript loader."""
    return (NATIVE / name).read_text(encoding="utf-8").split("// @BEGIN@\n")[1].strip()


def required_features(model: Model, target: Target) -> dict[str, list[str]]:
    """Return the features of the adapter and of the shading language that a model requires."""
    used = {f for s in model.shaders or () for f in s.shader.features} | {*target.features}
    return {
        "adapter": [FEATURES[f] for f in sorted(used & FEATURES.keys())],
        "language": [LANGUAGE_FEATURES[f] for f in sorted(used & LANGUAGE_FEATURES.keys())],
    }


def _shader_facts(shader: WebShader) -> Json:
    made = shader.shader
    return {
        "name": made.name,
        "kernel": shader.kernel,
        "bindings": len(made.bindings),
        "checks": len(made.messages),
    }


def _weight_facts(weights: Weights) -> list[Json]:
    ends = [*weights.offsets.values(), weights.size][1:]
    return [
        {"name": name, "offset": start, "bytes": end - start}
        for (name, start), end in zip(weights.offsets.items(), ends, strict=True)
    ]
