"""The word list: terms, banned phrases and their exceptions, read from `words.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from .fragments import Domain

WORDS = Path(__file__).with_name("words.toml")


@dataclass(frozen=True, slots=True)
class Banned:
    """A phrase that is not used, its replacement, and the phrases around it that are fine."""

    rule: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    use: str
    domains: frozenset[Domain]


@dataclass(frozen=True, slots=True)
class Permitted:
    """An exception: a text in one file, with its reason."""

    path: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Term:
    """An entry of the glossary."""

    area: str
    name: str
    definition: str
    instead_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """The words that docstrings and titles of errors do not begin with."""

    gives: frozenset[str]
    questions: frozenset[str]
    not_verbs: frozenset[str]
    no_title: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Words:
    """The content of the word list."""

    terms: tuple[Term, ...]
    banned: tuple[Banned, ...]
    form: Form
    exceptions: tuple[Permitted, ...]


def compiled(pattern: str, *, case: bool) -> re.Pattern[str]:
    """Return a pattern in which a space stands for any white space, line breaks included."""
    return re.compile(pattern.replace(" ", r"\s+"), 0 if case else re.IGNORECASE)


def banned(rule: str, entry: dict[str, Any]) -> Banned:
    """Return one banned phrase."""
    case = bool(entry.get("case", False))
    unless = cast("list[str]", entry.get("unless", []))
    return Banned(
        rule=rule,
        pattern=compiled(entry["pattern"], case=case),
        unless=compiled("|".join(f"(?:{part})" for part in unless), case=case) if unless else None,
        use=entry["use"],
        domains=frozenset(Domain(name) for name in entry.get("in", ["prose", "message"])),
    )


def load(path: Path = WORDS) -> Words:
    """Return the word list."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Words(
        terms=tuple(
            Term(area, entry["term"], entry["definition"], tuple(entry.get("not", ())))
            for area, entries in data["glossary"].items()
            for entry in entries
        ),
        banned=tuple(banned(rule, e) for rule, entries in data["banned"].items() for e in entries),
        form=Form(
            gives=frozenset(data["form"]["gives"]),
            questions=frozenset(data["form"]["questions"]),
            not_verbs=frozenset(["", *data["form"]["not_verbs"]]),
            no_title=compiled(data["form"]["no_title"], case=False),
        ),
        exceptions=tuple(Permitted(**entry) for entry in data.get("exception", ())),
    )
