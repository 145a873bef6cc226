"""The description of an export: its functions and types, in the manifest and in the library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from ...errors import Json
from ...ir.dtype import dtype
from ...ir.module import Module
from ...ir.structural_hash import structural_hash
from ...schedules import Schedule, State
from ..build.build_objects import versions
from ..entry_names import public_name
from ..manifest import FunctionSpec, ParamSpec, to_json
from ..program import state_of
from .c_messages import c_text
from .errors import ExportError
from .model import Model, symbol_of
from .tables import assumptions

SCHEMA: Final = 1
"""The schema version, which is incremented with every incompatible change."""
ABI: Final = 2
"""The version of the C interface."""
SECTION: Final = ".note.tilewright"
"""The section of a library with its description; in WebAssembly, its name without ``.note.``."""
NOTE: Final = "Tilewright"
"""The owner of the note."""
_LINE: Final = 4000
"""The characters of a line of the description in C."""


def description(name: str, facts: Mapping[str, Json]) -> dict[str, Json]:
    """Return the description of a model: everything but the files."""
    return {"schema": SCHEMA, "name": name, "abi": ABI, **facts, "made_by": versions()}


def function_facts(model: Model) -> list[Json]:
    """Return the facts about the public functions that loaders need."""
    return [
        {
            "name": public_name(spec.name),
            "symbol": symbol_of(model, spec),
            "params": [to_json(p) for p in spec.params],
            "results": [to_json(r) for r in spec.results],
            "symbols": [to_json(r) for r in spec.ranges],
            "assumptions": list(assumptions(spec)),
        }
        for spec in model.public
    ]


def function_descriptions(model: Model) -> list[Json]:
    """Return the facts about the public functions, with alignments and the sizes of storages."""
    found: list[Json] = []
    for spec, facts in zip(model.public, function_facts(model), strict=True):
        known = facts if isinstance(facts, dict) else {}
        params: list[Json] = [_param_facts(p) for p in spec.params]
        found.append({**known, "params": params, "storages": _storages(spec)})
    return found


def _param_facts(param: ParamSpec) -> Json:
    alignment = dtype(param.dtype).alignment if param.form == "tensor" else 0
    facts = to_json(param)
    return {**(facts if isinstance(facts, dict) else {}), "alignment": alignment}


def _storages(spec: FunctionSpec) -> list[Json]:
    """Return the storages of a workspace, whose sizes in bytes are terms over the symbols."""
    return [{"name": s.name, "bytes": s.size} for s in spec.storages]


def program_facts(program: Module | Schedule | State, module: Module) -> dict[str, Json]:
    """Return the hashes of the functions of a program, and of the trace that scheduled it."""
    hashes = [f"{f.name} {structural_hash(f)}" for _, f in sorted(module.functions.items())]
    state = state_of(program)
    steps = str(state.trace) if state is not None and len(state.trace) else ""
    return {"program": _sha256("\n".join(hashes)), "trace": _sha256(steps) if steps else ""}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, Json]:
    """Return the metadata of the user.

    Raises
    ------
    ExportError
        If a key or a value is not text.
    """
    given = cast("Mapping[object, object]", metadata or {})
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ExportError(
                f"metadata {key!r}: {value!r} is not text",
                hint="pass texts by name, such as metadata={'version': '1.2', 'license': 'MIT'}",
            )
    return {str(key): str(value) for key, value in sorted((metadata or {}).items())}


def description_text(facts: Mapping[str, Json]) -> str:
    """Return a description as it is stored in libraries: JSON without spaces, in ASCII."""
    return json.dumps(facts, separators=(",", ":"))


def description_source(name: str, text: str) -> Iterator[str]:
    """Yield the C note with the description of a model, and the function that returns it."""
    size = -(-(len(text) + 1) // 4) * 4
    lines = (c_text(text[k : k + _LINE]) for k in range(0, len(text), _LINE))
    owner = -(-(len(NOTE) + 1) // 4) * 4
    yield f"""\
/* The note that describes the library; tools read it without loading the library. */
__attribute__((section("{SECTION}"), used, aligned(4))) static const struct {{
  uint32_t name_size, size, type;
  char name[{owner}], text[{size}];
}} description = {{{len(NOTE) + 1}, {size}, 1, "{NOTE}",
"""
    yield "\n".join(lines) + "};"
    yield f"const char *{name}_describe(void) {{ return description.text; }}"


def custom_section(text: str) -> bytes:
    """Return a section of a WebAssembly module with a description."""
    name = SECTION.removeprefix(".note.").encode()
    body = _leb128(len(name)) + name + text.encode()
    return b"\0" + _leb128(len(body)) + body


def _leb128(number: int) -> bytes:
    parts: list[int] = []
    while True:
        number, low = number >> 7, number & 127
        parts.append(low | (128 if number else 0))
        if not number:
            return bytes(parts)


def write_manifest(folder: Path, facts: Mapping[str, Json]) -> None:
    """Write ``NAME.json``: the description, and all files that the folder contains."""
    files: dict[str, Json] = {path.name: _digest(path) for path in sorted(folder.iterdir())}
    text = json.dumps({**facts, "files": files}, indent=2) + "\n"
    (folder / f"{facts['name']}.json").write_text(text, encoding="utf-8")


def _digest(path: Path) -> Json:
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
