"""The page of typical mistakes: the code is run, and the printed messages are compared."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tilewright import TilewrightError
from tilewright.workbench.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
TEXT = PAGE.read_text(encoding="utf-8")
_BLOCK = r"```(python|sh)\n(.*?)```"
START = re.search(_BLOCK, TEXT, re.DOTALL).group(2)
_ENTRY = re.compile(rf"### (\d+)\. (.+?)\n\n{_BLOCK}\n\n```text\n(.*?)```", re.DOTALL)


class Mistake(NamedTuple):
    number: str
    title: str
    language: str
    code: str
    printed: str


class Shown(NamedTuple):
    """A printed message, and the parts of the error."""

    text: str
    where: str
    excerpts: int
    hint: str


MISTAKES = [Mistake(*found.groups()) for found in _ENTRY.finditer(TEXT)]


def names() -> dict[str, object]:
    found: dict[str, object] = {"__name__": "page"}
    exec(START, found)
    return found


def run(mistake: Mistake) -> Shown:
    return shown_by_command(mistake.code) if mistake.language == "sh" else shown_by(mistake.code)


def shown_by(code: str) -> Shown:
    with pytest.raises(TilewrightError) as caught:
        exec(code, names())
    error = caught.value
    # A step states its requirement, which describes legal values, and fixes if there are any.
    hint = error.hint or re.search(r"(?:fix|requires): .*", str(error), re.DOTALL)
    return Shown(
        f"{type(error).__name__}: {error}", error.where, len(error.excerpts()), str(hint or "")
    )


def shown_by_command(line: str) -> Shown:
    _, *arguments = shlex.split(line)
    printed, data = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(printed):
        assert main(arguments) == 1
    with contextlib.redirect_stdout(data):
        assert main([*arguments, "--json"]) == 1
    error = json.loads(data.getvalue())["error"]
    return Shown(
        printed.getvalue().rstrip("\n"), error["where"], len(error["excerpts"]), error["hint"]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The current folder, with the files that the page describes."""
    made = tmp_path_factory.mktemp("page")
    program = str(names()["scale"])
    (made / "scale.tw").write_text(program)
    (made / "broken.tw").write_text(program.replace("range(n)", "range(m)"))
    np.savez(made / "square.npz", x=np.ones((2, 2), np.float32))
    before = Path.cwd()
    os.chdir(made)
    yield made
    os.chdir(before)


def test_the_groups_and_the_number_of_mistakes() -> None:
    groups = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert groups == [
        "Program text", "Types and shapes", "Scheduling", "Targets", "Compiling", "Calling",
        "Files", "Command line", "State",
    ]  # fmt: skip
    assert len(MISTAKES) >= 40
    assert [int(m.number) for m in MISTAKES] == list(range(1, len(MISTAKES) + 1))
    assert TEXT.count("### ") == len(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_a_mistake_is_reported_as_on_the_page(mistake: Mistake, folder: Path, request) -> None:
    shown = run(mistake)
    assert shown.where or shown.excerpts, "the message has neither a location nor an excerpt"
    assert shown.hint, "the message has no hint"
    assert str(folder) not in shown.text
    text = shown.text + "\n"
    if request.config.getoption("--update-golden"):
        written = PAGE.read_text(encoding="utf-8")
        found = next(e for e in _ENTRY.finditer(written) if e.group(1) == mistake.number)
        PAGE.write_text(written[: found.start(5)] + text + written[found.end(5) :])
    else:
        assert text == mistake.printed
