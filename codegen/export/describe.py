"""The manifest: what an exported directory holds, and the sha256 of every file of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...ir.errors import Json
from ..runtime.build import versions

SCHEMA: Final = 1
"""Raised with every change that a reader of schema 1 would misread."""


def write_manifest(folder: Path, name: str, facts: Mapping[str, Json]) -> None:
    """Write ``NAME.json`` about everything that lies in a folder by now."""
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
