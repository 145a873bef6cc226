"""Command line of the checker."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from . import checker, glossary, metrics, rules
from .checker import ROOT, ROOTS, Finding


def main(arguments: list[str]) -> int:
    """Run the checker; return its exit status: 1 where something was found."""
    parser = argparse.ArgumentParser(prog=".ci/language", description="Check the vocabulary.")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; default: all")
    parser.add_argument("--report", action="store_true", help="print counts by rule and folder")
    parser.add_argument("--glossary", action="store_true", help="print docs/glossary.md")
    parser.add_argument("--metrics", action="store_true", help="print figures of the code style")
    options = parser.parse_args(arguments)
    words = rules.load()
    if options.glossary or options.metrics:
        print(glossary.page(words.terms) if options.glossary else metrics.table(), end="")
        return 0
    paths = [path.resolve() for path in options.paths] or [ROOT / name for name in ROOTS]
    chosen = list(checker.files(paths))
    found = [finding for path in chosen for finding in checker.check_file(path, words)]
    checked = {checker.relative(path, ROOT) for path in chosen}
    found, used = checker.without_exceptions(found, words.exceptions, checked)
    for line in report(found) if options.report else found:
        print(line)
    print(f"{len(found)} findings, {used} exceptions")
    return 1 if found else 0


def report(findings: list[Finding]) -> list[str]:
    """Return counts by rule and by folder."""
    by_rule = Counter(finding.rule for finding in findings)
    by_folder = Counter("/".join(f.path.split("/")[:-1][:2]) or "." for f in findings)
    return [
        "by rule",
        *(f"{count:7} {name}" for name, count in by_rule.most_common()),
        "by folder",
        *(f"{count:7} {name}" for name, count in sorted(by_folder.items())),
    ]
