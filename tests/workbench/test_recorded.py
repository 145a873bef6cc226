"""Compatibility of Python and TypeScript, tested with recorded sessions.

The recorded updates are type-checked as literals of the types in ``protocol.ts``. The interface
renders them and opens every form; Python decodes the requests that the interface sends.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, get_args, get_type_hints

import pytest

from tilewright.workbench.protocol import Update
from tilewright.workbench.requests import Request
from tilewright.workbench.serialization import decode

from tests.workbench import scenarios
from tests.workbench.recording import Recording, to_json, typescript

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.workbench.conftest import Client

pytestmark = [pytest.mark.model, pytest.mark.slow]

ALWAYS = {"version", "client", "reply", "revision", "server_ms"}


@pytest.fixture(scope="module")
def recordings(connect: Callable[..., Client]) -> list[Recording]:
    return [scene(connect) for scene in scenarios.ALL]


def test_every_section_and_request_is_recorded(recordings: list[Recording]) -> None:
    sections = {key for r in recordings for item in r.updates() for key in item["update"]}
    assert sections == {*Update.__dataclass_fields__}
    types = {str(request["type"]) for r in recordings for request in r.requests}
    assert types == {get_args(get_type_hints(cls)["type"])[0] for cls in get_args(Request)}
    mismatches = {
        mismatch["kind"]
        for r in recordings
        for item in r.updates()
        for mismatch in ((item["update"].get("checked") or {}).get("match") or {}).get(
            "mismatches", ()
        )
    }
    assert "extent" in mismatches


def test_recorded_updates_conform_to_the_typescript_types(
    recordings: list[Recording], root: Path, tmp_path: Path
) -> None:
    extensions = root / "extensions"
    text = typescript(recordings, str(extensions / "core" / "protocol"))
    (tmp_path / "recorded.ts").write_text(text)
    config = {"extends": str(extensions / "tsconfig.json"), "include": [], "files": ["recorded.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    done = run(extensions / "node_modules" / ".bin" / "tsc", "-p", str(tmp_path), cwd=extensions)
    assert done.returncode == 0, done.stdout[:4000]


def test_type_checker_rejects_invalid_updates(root: Path, tmp_path: Path) -> None:
    """Null for an optional section, and an unknown job state."""
    extensions = root / "extensions"
    (tmp_path / "wrong.ts").write_text(
        f'import type {{ Job, Update }} from "{extensions / "core" / "protocol"}";\n'
        'export const a: Update = {"version": 1, "client": "", "reply": 0, "revision": 1, '
        '"server_ms": 0, "open": null};\n'
        'export const b: Job = {"key": "", "title": "", "state": "missing", "progress": 0, '
        '"message": ""};\n'
    )
    config = {"extends": str(extensions / "tsconfig.json"), "include": [], "files": ["wrong.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    done = run(extensions / "node_modules" / ".bin" / "tsc", "-p", str(tmp_path), cwd=extensions)
    assert done.stdout.count("error TS") == 2, done.stdout


def test_every_form_is_rendered_and_its_requests_are_decoded(
    recordings: list[Recording], root: Path, tmp_path: Path
) -> None:
    for recording in recordings:
        (tmp_path / f"{recording.name}.json").write_text(to_json(recording.updates()))
    sent = tmp_path / "sent"
    sent.mkdir()
    extensions = root / "extensions"
    vitest = extensions / "node_modules" / ".bin" / "vitest"
    environment = {"RECORDED": str(tmp_path), "SENT": str(sent)}
    done = run(
        vitest, "run", "--config", "vitest.recorded.config.mjs", cwd=extensions, more=environment
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    messages = [m for path in sent.glob("*.json") for m in json.loads(path.read_text())]
    assert {"hello", "check", "open"} <= {decode(message).type for message in messages}


def run(
    tool: Path, *arguments: str, cwd: Path, more: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a node tool that `make` installed."""
    assert tool.exists(), f"{tool.name} is not installed: run `npm ci` in extensions/"
    node = shutil.which("node")
    assert node is not None
    return subprocess.run(
        [node, str(tool), *arguments],
        cwd=cwd,
        env=os.environ | (more or {}) | {"CI": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
