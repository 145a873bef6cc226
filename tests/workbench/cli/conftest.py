"""Fixtures of the command line, which runs in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tilewright.workbench.cli import main

from tests.workbench.conftest import MATMUL, NETWORK

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run a command."""

    def run_(*arguments: object) -> Ran:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_


@pytest.fixture
def matmul(tmp_path: Path) -> Path:
    path = tmp_path / "matmul.tw"
    path.write_text(MATMUL)
    return path


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "network.tw"
    path.write_text(NETWORK)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    lines = [
        {"trace": "tilewright", "schema": 1},
        {"op": "get_block", "args": {"name": "C", "function": "matmul"}, "names": ["C"]},
        {"op": "get_loops", "args": {"block": {"ref": [0, 0]}}, "names": ["i", "j", "k"]},
        {"op": "split", "args": {"loop": {"ref": [1, 1]}, "factors": [None, 8]}},
        {"op": "vectorize", "args": {"loop": {"ref": [2, 1]}}},
    ]
    path = tmp_path / "steps.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path
