"""The manifest of an exported directory: its functions, and the sha256 of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...errors import Json
from ..build.build_objects import versions

SCHEMA: Final = 1
"""The schema version, which is incremented with every incompatible change."""


def write_manifest(folder: Path, name: str, facts: Mapping[str, Json]) -> None:
    """Write ``NAME.json``, which lists all files that the folder contains."""
    manifest: dict[str, Json] = {
        "schema": SCHEMA,
        "name": name,
        **facts,
        "made_by": versions(),
        "files": {path.name: _digest(path) for path in sorted(folder.iterdir())},
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _digest(path: Path) -> Json:
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
