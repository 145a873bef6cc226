"""The software bill of materials of an export, in the CycloneDX format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from ...errors import Json

_TOOLS: Final = ("llvmlite", "ziglang")
"""The packages whose compilers write the machine code."""


def write_sbom(folder: Path, facts: Mapping[str, Json]) -> None:
    """Write ``NAME.cdx.json``: the files of an export, and the parts that they contain.

    It has no time and no random number, so that equal exports have equal files. The machine code
    contains the support library of Tilewright, and no other library.
    """
    name, given = str(facts["name"]), facts["metadata"]
    metadata = given if isinstance(given, dict) else {}
    component: dict[str, Json] = {"type": "library", "bom-ref": name, "name": name}
    if "version" in metadata:
        component["version"] = metadata["version"]
    if "license" in metadata:
        component["licenses"] = [{"license": {"name": metadata["license"]}}]
    own: dict[str, Json] = {
        "type": "library",
        "bom-ref": "tilewright",
        "name": "tilewright",
        "version": version("tilewright"),
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": f"pkg:pypi/tilewright@{version('tilewright')}",
    }
    files: list[Json] = [
        {"type": "file", "bom-ref": path.name, "name": path.name}
        for path in sorted(folder.iterdir())
    ]
    text: dict[str, Json] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": component,
            "tools": {"components": [_tool(tool) for tool in _TOOLS if _version(tool)]},
        },
        "components": [own, *files],
        "dependencies": [{"ref": name, "dependsOn": ["tilewright"]}],
    }
    (folder / f"{name}.cdx.json").write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _tool(package: str) -> Json:
    return {
        "type": "application",
        "name": package,
        "version": _version(package),
        "purl": f"pkg:pypi/{package}@{_version(package)}",
    }
