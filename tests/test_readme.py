"""The examples of the README work: Python, the program, commands, links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tilewright.ir.graph.operators import OPERATORS
from tilewright.workbench.cli import main
from tilewright.workbench.cli.main import COMMANDS as EVERY_COMMAND

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAM, *_ = re.findall(r"```python\n(n = symbols.*?)```", README, re.DOTALL)
PYTHON = [b for b in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if b != PROGRAM]
COMMANDS = re.findall(r"^tilewright (.*)$", README, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the Python examples of the README were executed, in order."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "relu.tw").write_text(PROGRAM)
    namespace: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in PYTHON:
            exec(block, namespace)
    return folder


def test_python_examples_write_the_trace(folder: Path) -> None:
    assert '"op": "vectorize"' in (folder / "relu.trace").read_text()


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith("lab ")])
def test_command(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert main(shlex.split(command, comments=True)) == 0


def test_every_command_is_shown() -> None:
    shown = {command.split()[0] for command in COMMANDS}
    # `weights pack` reads a checkpoint; docs/production.md shows it.
    assert shown == {command.name for command in EVERY_COMMAND} - {"weights"}


def test_links_exist(root: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)|(?:src|srcset)=\"(.*?)\"", README)
    links = [link or source for link, source in links]
    assert {"docs/primitives.md", "docs/workbench-light.png"} <= set(links)
    assert [link for link in links if not (root / link).is_file()] == []


def test_number_of_operators() -> None:
    assert f"more than {len(OPERATORS) // 10 * 10} graph operators" in README
