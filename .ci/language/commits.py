"""Rules for commits after a baseline: subject, body, and a test for every changed source.

The range is from the baseline to HEAD. Where the baseline is not an ancestor of HEAD, as in a
shallow clone, the range is the newest commits with a later date, at most `MOST_COMMITS`. Merges are
left out, and so are commits without a parent: their difference is the entire tree.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASELINE = "1a0ca53a0a1e0e93e235a9a3fb221dcdea959f61"
BASELINE_DATE = "2026-11-21T10:50:51+00:00"
MOST_COMMITS = 50
LONGEST_SUBJECT = 72

SOURCE = re.compile(
    r"(?:(?:ir|schedules|codegen|target|workbench|extensions)/.*|__init__|errors|renamed)"
    r"\.(?:py|pyi|ts|tsx|css|js|mjs|c|h)"
)
# Goldens and programs that tests execute count as tests; other documentation does not.
TEST = re.compile(
    r"tests/.*|notebooks/.*|extensions/(?:test|recorded)/.*"
    r"|docs/(?:abi|architecture|errors|glossary|language|lowering|primitives|running|traces)\.md"
    r"|docs/tensorize-mismatches\.md|CONTRIBUTING\.md"
)
TRAILER = re.compile(r"^(?:[A-Z][a-z]+(?:-[A-Za-z]+)*): \S.*$")
TESTS_TRAILER = re.compile(r"^Tests: \S.*$", re.MULTILINE)
DOCTEST = re.compile(r"^[+-]\s*>>> ", re.MULTILINE)
ARTICLES = frozenset({"a", "an", "the"})
IMPERATIVES = frozenset(
    {
        "alias",
        "bias",
        "bring",
        "embed",
        "exceed",
        "feed",
        "focus",
        "need",
        "proceed",
        "seed",
        "shed",
    }
    | {"speed", "string", "ring", "swing", "wing", "spring", "canvas"}
)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its message, the paths that it changes, and whether it changes a doctest."""

    sha: str
    subject: str
    body: str = ""
    paths: tuple[str, ...] = ()
    doctest: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """The changed files of the package and of the browser side."""
        return tuple(p for p in self.paths if SOURCE.fullmatch(p) and not TEST.fullmatch(p))

    @property
    def tested(self) -> bool:
        """True if a test, golden, executed example or notebook changes."""
        return self.doctest or any(TEST.fullmatch(path) for path in self.paths)


def problems(commit: Commit) -> Iterator[str]:
    """Yield the rules that a commit violates."""
    yield from subject_problems(commit.subject)
    if commit.sources:
        reason = [line for line in commit.body.splitlines() if line and not TRAILER.match(line)]
        if not reason:
            yield "the body is empty; it states the reason of a change to a source"
        if not commit.tested and not TESTS_TRAILER.search(commit.body):
            yield (
                f"{commit.sources[0]} changes without a test, golden, executed example or "
                "notebook; change one, or state the reason in a line 'Tests: ...' of the body"
            )


def subject_problems(subject: str) -> Iterator[str]:
    """Yield the rules that a subject violates."""
    if len(subject) > LONGEST_SUBJECT:
        yield f"the subject has {len(subject)} characters; the limit is {LONGEST_SUBJECT}"
    if ";" in subject:
        yield "the subject has a ';': make two commits"
    if subject.endswith("."):
        yield "the subject ends with a period"
    words = re.sub(r"^[\w./-]+: ", "", subject).split()
    first = words[0].lower() if words else ""
    if first in ARTICLES:
        yield f"the subject begins with an article, {words[0]!r}; begin with a verb: 'Add ...'"
    elif not_imperative(first):
        yield f"the subject begins with {words[0]!r}; use the imperative mood: 'Add ...'"


def not_imperative(word: str) -> bool:
    """Return whether a word looks like a third person, a participle, or a past tense."""
    return word not in IMPERATIVES and re.search(r"(?:[^s]s|ed|ing)$", word) is not None


def git(root: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if it fails."""
    command = ["git", "-C", str(root), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def is_checkout(root: Path) -> bool:
    """Return whether a folder is the top of a git work tree with at least one commit."""
    if shutil.which("git") is None:
        return False
    top = git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top.strip()).resolve() != root.resolve():
        return False
    return git(root, "rev-parse", "--verify", "--quiet", "HEAD") is not None


def shas(root: Path, baseline: str = BASELINE, since: str = BASELINE_DATE) -> list[str]:
    """Return the commits to check, newest first."""
    if git(root, "merge-base", "--is-ancestor", baseline, "HEAD") is not None:
        chosen = ["rev-list", "--no-merges", "--parents", f"{baseline}..HEAD"]
    else:
        limits = [f"--max-count={MOST_COMMITS}", f"--since={since}"]
        chosen = ["rev-list", "--no-merges", "--parents", *limits, "HEAD"]
    lines = (git(root, *chosen) or "").splitlines()
    return [line.split()[0] for line in lines if len(line.split()) > 1]


def read(root: Path, sha: str) -> Commit:
    """Return a commit of a repository."""
    message = git(root, "show", "--no-patch", "--format=%B", sha) or ""
    subject, _, body = message.strip().partition("\n")
    paths = git(root, "show", "--format=", "--name-only", "--no-renames", sha) or ""
    patch = git(root, "show", "--format=", "--unified=0", sha, "--", "*.py", "*.md") or ""
    return Commit(
        sha, subject, body.strip(), tuple(paths.splitlines()), DOCTEST.search(patch) is not None
    )


def main(root: Path = ROOT, baseline: str = BASELINE) -> int:
    """Check the commits of a repository; return the exit status, 1 where a rule is violated."""
    if not is_checkout(root):
        print("no git history here: no commits to check")
        return 0
    found = [(sha, list(problems(read(root, sha)))) for sha in shas(root, baseline)]
    for sha, texts in found:
        for text in texts:
            subject = (git(root, "show", "--no-patch", "--format=%s", sha) or "").strip()
            print(f"{sha[:10]} {subject!r}: {text}", file=sys.stderr)
    count = sum(len(texts) for _, texts in found)
    print(f"{len(found)} commits checked, {count} problems")
    return 1 if count else 0
