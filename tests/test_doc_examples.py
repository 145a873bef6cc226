"""Interactive examples of the pages under `docs/` run in order and print the shown output."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = re.compile(r"^```pycon\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [p for p in sorted(DOCS.glob("*.md")) if EXAMPLES.search(p.read_text(encoding="utf-8"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST


def test_pages_with_examples_exist() -> None:
    assert {"architecture.md", "running.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Empty lines replace the prose, so that failures state lines of the page.
    parts, end = list[str](), 0
    for match in EXAMPLES.finditer(text):
        parts.append("\n" * text.count("\n", end, match.start(1)) + match.group(1))
        end = match.end(1)
    test = doctest.DocTestParser().get_doctest("".join(parts), {}, page.name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert test.examples
    assert results.failed == 0, "".join(report)
