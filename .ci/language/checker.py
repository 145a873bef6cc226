"""Application of the rules to the files of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import docstrings, python_source
from .docstrings import Problem
from .fragments import Domain, Fragment
from .other_sources import PARSERS
from .rules import Banned, Permitted, Words

ROOT = Path(__file__).resolve().parents[2]
ROOTS = (
    "__init__.py",
    "ir",
    "schedules",
    "codegen",
    "target",
    "workbench",
    "calls.py",
    "display.py",
    "errors.py",
    "nearest.py",
    "polling.py",
    "progress.py",
    "renamed.py",
    "tests",
    "notebooks",
    "extensions",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    "pyproject.toml",
    ".ci",
)
SKIPPED_FOLDERS = frozenset(
    {"node_modules", "dist", "static", "goldens", "results", "__pycache__", ".ipynb_checkpoints"}
)
# The word list quotes every banned phrase, and so do the glossary made from it and the tests.
SKIPPED_FILES = frozenset(
    {
        ".ci/language/words.toml",
        "docs/glossary.md",
        "extensions/package-lock.json",
        "tests/language/test_checker.py",
    }
)
EXTENSIONLESS = frozenset({"Makefile", "chromium", "node", "pycuda", "run", "tools", "venv"})
MOST_EXCEPTIONS = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """A phrase that breaks a rule."""

    path: str
    line: int
    rule: str
    text: str
    use: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r} -> {self.use}"


def files(paths: Iterable[Path], root: Path = ROOT) -> Iterator[Path]:
    """Yield the files to check below some paths."""
    for path in paths:
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS:
                yield from files(sorted(path.iterdir()), root)
        elif path.is_file() and is_checked(path, root):
            yield path


def is_checked(path: Path, root: Path) -> bool:
    """Return whether the rules apply to a file."""
    if relative(path, root) in SKIPPED_FILES:
        return False
    if not path.suffix:
        return path.name in EXTENSIONLESS or (
            path.parent.name == ".ci" and path.read_bytes().startswith(b"#!")
        )
    return path.suffix in PARSERS


def relative(path: Path, root: Path) -> str:
    """Return the path inside the repository, or as it is outside of it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def check_file(path: Path, words: Words, root: Path = ROOT) -> Iterator[Finding]:
    """Yield the findings in one file."""
    name = relative(path, root)
    try:
        text = path.read_text(encoding="utf-8")
        found = check_text(text, kind(path, text), words, tests=name.startswith("tests/"))
        for problem in without_parts(set(found)):
            yield Finding(name, *problem)
    except FileNotFoundError:
        return  # moved since the folder was listed
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        yield Finding(name, line, "syntax", str(error), "a file that parses")


def without_parts(found: set[Problem]) -> list[Problem]:
    """Return the problems in order, without those whose text is part of another of the rule."""
    longest: dict[tuple[int, str], list[Problem]] = {}
    for problem in sorted(found, key=lambda item: (-len(item[2]), item)):
        kept = longest.setdefault(problem[:2], [])
        if not any(problem[2] in other[2] and problem[2] != other[2] for other in kept):
            kept.append(problem)
    return sorted(problem for kept in longest.values() for problem in kept)


def kind(path: Path, text: str) -> str:
    """Return the suffix of a file; of a script without one, that of its language."""
    first = text.partition("\n")[0]
    if not path.suffix and first.startswith("#!") and "python" in first:
        return ".py"
    return path.suffix


def check_text(text: str, suffix: str, words: Words, *, tests: bool) -> Iterator[Problem]:
    """Yield the problems of a text of some language."""
    lines = text.splitlines()
    if suffix in {".py", ".pyi"}:
        source = python_source.parse(text)
        yield from matches(list(python_source.fragments(source)), words.banned, lines)
        yield from docstrings.check(source, words.form, tests=tests)
    else:
        yield from matches(list(PARSERS[suffix](text)), words.banned, lines)


def matches(
    pieces: list[Fragment], banned: tuple[Banned, ...], lines: list[str]
) -> Iterator[Problem]:
    """Yield line, rule, text and replacement of each banned phrase."""
    for domain in Domain:
        chosen = [piece for piece in pieces if piece.domain is domain]
        joined = "\n\0\n".join(piece.text for piece in chosen)
        for rule in banned:
            if domain in rule.domains and rule.pattern.search(joined):
                for piece in chosen:
                    yield from in_piece(piece, rule, lines)


def in_piece(piece: Fragment, rule: Banned, lines: list[str]) -> Iterator[Problem]:
    """Yield the findings of one rule in one fragment."""
    for match in rule.pattern.finditer(piece.text):
        if rule.unless and any(
            fine.start() < match.end() and match.start() < fine.end()
            for fine in rule.unless.finditer(piece.text)
        ):
            continue
        text = " ".join(match[0].split())
        if piece.domain is Domain.IDENTIFIER:
            text = piece.text.replace(" ", "_")
        yield line_of(piece, match, lines), rule.rule, text, match.expand(rule.use)


def line_of(piece: Fragment, match: re.Match[str], lines: list[str]) -> int:
    """Return the line of a match. Lines of a message are searched: its literals were joined."""
    if piece.domain is not Domain.MESSAGE:
        return piece.line + piece.text.count("\n", 0, match.start())
    wanted = match[0].split()
    for number in range(piece.line, min(piece.end, len(lines)) + 1):
        if all(word in lines[number - 1] for word in wanted):
            return number
    return piece.line


def without_exceptions(
    findings: list[Finding], exceptions: tuple[Permitted, ...], checked: set[str], root: Path = ROOT
) -> tuple[list[Finding], int]:
    """Return the findings that no exception permits, and the number of exceptions in use.

    Exceptions without a use are findings, as are too many of them. Those for files that were not
    checked are left out.
    """
    used: set[Permitted] = set()
    kept: list[Finding] = []
    for finding in findings:
        fitting = [e for e in exceptions if e.path == finding.path and permits(e, finding, root)]
        used.update(fitting)
        if not fitting:
            kept.append(finding)
    for entry in exceptions:
        missing = not (root / entry.path).exists()
        if entry not in used and (entry.path in checked or missing):
            where = ".ci/language/words.toml"
            text = f"{entry.path}: {entry.text}"
            kept.append(Finding(where, 1, "unused exception", text, "remove the exception"))
    if len(exceptions) > MOST_EXCEPTIONS:
        text = f"{len(exceptions)} exceptions"
        kept.append(
            Finding(".ci/language/words.toml", 1, "exceptions", text, f"at most {MOST_EXCEPTIONS}")
        )
    return kept, len(used)


def permits(entry: Permitted, finding: Finding, root: Path) -> bool:
    """Return whether an exception covers a finding: its text is the finding's or in its line."""
    if re.search(entry.text, finding.text):
        return True
    lines = (root / finding.path).read_text(encoding="utf-8").splitlines()
    return re.search(entry.text, lines[finding.line - 1]) is not None
