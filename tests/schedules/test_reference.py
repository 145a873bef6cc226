"""The committed reference of primitives equals the one generated from the registry."""

import re
import subprocess
import sys

import pytest

from tilewright.schedules.reference import reference
from tilewright.schedules.registry import primitives

PAGE = reference()


def entry(verb: str) -> str:
    """Return the section of the page about one primitive."""
    return re.split(r"^##", PAGE.split(f"\n### {verb}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_committed_page_is_current(root):
    page = (root / "docs" / "primitives.md").read_text(encoding="utf-8")
    assert page == PAGE, "run python -m tilewright.schedules.reference > docs/primitives.md"


def test_the_command_prints_the_page():
    command = [sys.executable, "-m", "tilewright.schedules.reference"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == PAGE


@pytest.mark.parametrize("step", primitives(), ids=lambda s: s.verb())
def test_an_entry_has_everything(step):
    text = entry(step.verb())
    assert step.summary().replace("``", "`") in text
    assert all(f"- `{p.name}` (`" in text for p in step.parameters())
    assert all(f"- `{key}`: " in text for key in step.requirements())
    assert text.count("```python\n") * 2 == text.count("```") >= 4
    assert "::\n" not in text
    assert f"(#{step.verb()})" in PAGE
