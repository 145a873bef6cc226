"""The glossary as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable

from .rules import Term

INTRODUCTION = """\
# Glossary

One concept has one word: in code, messages, documentation, protocol, and user interface. The words
after *Not* are not used for the concept.

This page is generated from `.ci/language/words.toml`; do not edit it:
`.venv/bin/python .ci/language --glossary > docs/glossary.md`. The same file lists the phrases that
`.venv/bin/python .ci/language` rejects.
"""


def page(terms: Iterable[Term]) -> str:
    """Return the glossary in Markdown: one list per area."""
    lines = [INTRODUCTION.rstrip("\n")]
    area = ""
    for term in terms:
        if term.area != area:
            area = term.area
            lines += ["", f"## {area}", ""]
        instead = f" *Not*: {', '.join(term.instead_of)}." if term.instead_of else ""
        lines.append(f"- **{term.name}**: {term.definition}{instead}")
    return "\n".join(lines) + "\n"
