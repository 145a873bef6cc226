"""The examples of the page about printing."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import tilewright
from tilewright.codegen.runtime.executable import Executable

PAGE = Path(__file__).parents[1] / "docs" / "printing.md"


class _AnyIds(doctest.OutputChecker):
    """Accepts other ids of versions, which are digests."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        plain = [re.sub(r"\b[0-9a-f]{8}\b", "<id>", text) for text in (want, got)]
        return super().check_output(*plain, optionflags)


def test_the_examples_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner(_AnyIds())
    runner.run(test)
    assert runner.summarize().failed == 0
    assert runner.tries > 10


def test_the_named_objects_exist() -> None:
    named = re.findall(r"`(?:sch|exe|tw)\.(\w+)", PAGE.read_text(encoding="utf-8"))
    owners = (tilewright.Schedule, Executable, tilewright)
    assert [name for name in named if not any(hasattr(owner, name) for owner in owners)] == []
