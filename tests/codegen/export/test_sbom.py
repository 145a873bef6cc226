"""The software bill of materials of an export."""

from __future__ import annotations

import json
from importlib.metadata import version

import tilewright as tw

from tests.codegen.export.conftest import build


def test_it_lists_the_files_and_the_parts(tmp_path):
    metadata = {"version": "1.2", "license": "MIT"}
    made = tw.export(build(), tmp_path / "made", name="small", kind="static", metadata=metadata)
    found = json.loads((made.directory / "small.cdx.json").read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    component = found["metadata"]["component"]
    assert (component["name"], component["version"]) == ("small", "1.2")
    assert component["licenses"] == [{"license": {"name": "MIT"}}]
    tools = {t["name"]: t["version"] for t in found["metadata"]["tools"]["components"]}
    assert tools == {name: version(name) for name in ("llvmlite", "ziglang")}
    own, *files = found["components"]
    assert own["purl"] == f"pkg:pypi/tilewright@{version('tilewright')}"
    listed = {f["name"] for f in files}
    assert listed == {p.name for p in made.directory.iterdir()} - {"small.json", "small.cdx.json"}
    references = [c["bom-ref"] for c in (component, *found["components"])]
    assert len(references) == len(set(references))
    assert found["dependencies"] == [{"ref": "small", "dependsOn": ["tilewright"]}]
