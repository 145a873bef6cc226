"""The glossary page is generated from the word list and follows its own rules."""

from __future__ import annotations

from pathlib import Path

from language import glossary, rules
from language.checker import check_text

WORDS = rules.load()


def test_the_committed_page_is_the_generated_one(root: Path) -> None:
    page = (root / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert page == glossary.page(WORDS.terms)


def test_areas_come_in_order() -> None:
    areas = list(dict.fromkeys(term.area for term in WORDS.terms))
    assert areas == ["Program", "Loops", "Symbolic", "Schedules", "Execution"]


def test_terms_are_defined_once() -> None:
    names = [term.name for term in WORDS.terms]
    assert sorted(set(names)) == sorted(names)


def test_definitions_are_sentences_in_the_project_language() -> None:
    text = "\n\n".join(f"{term.name}: {term.definition}" for term in WORDS.terms)
    assert list(check_text(text, ".md", WORDS, tests=False)) == []
    assert [term.name for term in WORDS.terms if not term.definition.endswith(".")] == []


def test_a_term_names_the_words_it_replaces() -> None:
    page = glossary.page(term for term in WORDS.terms if term.name == "extent")
    assert page.endswith(
        "\n## Loops\n\n- **extent**: The number of iterations of a loop or iteration variable."
        " *Not*: size, length.\n"
    )
