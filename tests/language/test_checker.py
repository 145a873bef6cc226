"""Rules of the word list: each rejects its dialect and permits standard English."""

from __future__ import annotations

from pathlib import Path

import pytest
from language import checker, cli, rules
from language.checker import Finding, check_text
from language.rules import Permitted

WORDS = rules.load()


def found(text: str, suffix: str = ".md", *, tests: bool = False) -> list[tuple[int, str, str]]:
    problems = check_text(text, suffix, WORDS, tests=tests)
    return sorted((line, rule, quoted) for line, rule, quoted, _ in problems)


def names_of(text: str, suffix: str = ".md", *, tests: bool = False) -> set[str]:
    return {rule for _, rule, _ in found(text, suffix, tests=tests)}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("negation", "the extent is no constant"),
        ("negation", "operands that are no\nconstants"),
        ("negation", "the loop is no more"),
        ("nobody", "nobody writes it"),
        ("who", "the pool and who uses it"),
        ("mend", "steps that mend it"),
        ("tell", "the driver tells late"),
        ("motion", "a name that code cannot bear"),
        ("motion", "threads come by there"),
        ("motion", "the block stands alone"),
        ("motion", "accesses that meet"),
        ("motion", "the value lies in memory"),
        ("motion", "a value that travels"),
        ("gone", "the loop is gone"),
        ("gone", "the storage goes first"),
        ("life", "a storage lives from first to last"),
        ("place", "the same place in memory"),
        ("place", "two places of the program"),
        ("what", "return what the block writes"),
        ("what", "what is stored"),
        ("rate", "16 bytes a lane"),
        ("rate", "once a block"),
        ("rate", "registers a thread"),
        ("spatial", "kept apart"),
        ("spatial", "written by hand"),
        ("spatial", "measured in turns"),
        ("spatial", "a compilation is under way"),
        ("figure", "it harms the result"),
        ("figure", "the story of a schedule"),
        ("figure", "memory that it touches"),
        ("figure", "a file shipped with it"),
        ("figure", "two spots"),
        ("document", "see DESIGN for this"),
        ("document", "as issue 7 states"),
        ("term", "a lost handle"),
        ("spelling", "specialised"),
        ("spelling", "initialises"),
        ("spelling", "the behaviour of neighbours"),
        ("spelling", "an artefact"),
        ("spelling", "grey"),
        ("spelling", "a cancelled job, labelled"),
    ],
)
def test_dialect_is_rejected(rule: str, text: str) -> None:
    assert names_of(text) == {rule}


@pytest.mark.parametrize(
    "text",
    [
        "there is no loop 'q'",
        "function has no loop 'q'",
        "is no longer valid",
        "is no larger than 8",
        "the update is in place, an in-place update",
        "one unit in the last place",
        "`tw` stands for tilewright",
        "a step that meets its requirements",
        "users who know TVM",
        "place the loop after the block",
        "a row of the matrix",
        "What does it do?",
        "what happens at the end",
        "the label is `history`",
        "precise noise, otherwise exercise",
        "aria-labelledby",
        "controlled and installed",
        "size of four lanes",
        "Copy a kernel, number a buffer",
        "the worker process died",
    ],
)
def test_standard_english_is_permitted(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "name", ["story", "spots", "mend_it", "wear", "places", "gone", "lives", "touches", "keepApart"]
)
def test_identifiers_are_checked(name: str) -> None:
    assert len(found(f"{name} = 1\n", ".py")) == 1
    assert len(found(f"let {name} = 1;\n", ".ts")) == 1


@pytest.mark.parametrize("name", ["in_place", "placement", "placeholder", "lifetime", "history"])
def test_names_that_only_contain_a_banned_word_are_permitted(name: str) -> None:
    assert found(f"{name} = 1\n", ".py") == []


def test_names_that_a_file_only_uses_are_not_its_own() -> None:
    assert found("import x\nx.tell()\n", ".py") == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("give", 'def f():\n    """Give it."""'),
        ("question", 'class C:\n    """How it looks."""'),
        ("question", '"""Where it is used."""'),
        ("imperative", 'def f():\n    """The result."""'),
        ("imperative", 'def f():\n    """Returns the result."""'),
        ("title", 'class E:\n    """An error."""\n\n    title = "Not found"'),
        ("title", 'class E:\n    """An error."""\n\n    title: str = "Cannot export"'),
    ],
)
def test_docstrings_and_titles_have_a_form(rule: str, text: str) -> None:
    assert names_of(text, ".py") == {rule}


@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    """Return the result."""',
        'class C:\n    """The result."""',
        'class C:\n    """A row."""\n\n    @property\n    def f(self):\n        """The result."""',
        'class E:\n    """An error."""\n\n    title = "Stale handle"',
    ],
)
def test_the_form_of_docstrings_is_accepted(text: str) -> None:
    assert found(text, ".py") == []


def test_tests_may_describe_themselves_by_a_noun_phrase() -> None:
    text = 'def f():\n    """The result."""'
    assert names_of(text, ".py", tests=True) == set()
    assert names_of('def f():\n    """What it is."""', ".py", tests=True) == {"question", "what"}


def test_lines_of_findings() -> None:
    text = '"""One.\n\nthe\nstory.\n"""\nx = (\n    "a fine text "\n    "with a story"\n)\n'
    assert found(text, ".py") == [(4, "figure", "story"), (8, "figure", "story")]


def test_a_finding_prints_location_text_and_replacement() -> None:
    assert str(Finding("a.py", 3, "mend", "mends", "fix")) == "a.py:3: 'mends' -> fix"


def test_replacement_of_a_spelling_is_the_american_one() -> None:
    (problem,) = check_text("vectorised", ".md", WORDS, tests=False)
    assert problem[3] == "vectorized"


def test_exceptions_permit_a_text_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a story\n")
    findings = [Finding("a.md", 1, "figure", "story", "history")]
    entry = Permitted("a.md", "a story", "a title")
    assert checker.without_exceptions(findings, (entry,), {"a.md"}, tmp_path) == ([], 1)


def test_an_unused_exception_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text\n")
    entry = Permitted("a.md", "story", "a title")
    (left,), used = checker.without_exceptions([], (entry,), {"a.md"}, tmp_path)
    assert (left.rule, used) == ("unused exception", 0)
    assert checker.without_exceptions([], (entry,), {"b.md"}, tmp_path) == ([], 0)


def test_an_exception_for_a_file_that_does_not_exist_is_a_finding(tmp_path: Path) -> None:
    entry = Permitted("gone.md", "story", "a title")
    assert len(checker.without_exceptions([], (entry,), set(), tmp_path)[0]) == 1


def test_exceptions_are_few(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text\n")
    many = tuple(Permitted("a.md", str(k), "a reason") for k in range(101))
    left, _ = checker.without_exceptions([], many, set(), tmp_path)
    assert [finding.rule for finding in left] == ["exceptions"]


def test_every_exception_of_the_word_list_has_a_reason() -> None:
    assert [entry for entry in WORDS.exceptions if len(entry.reason) < 10] == []


def test_files_that_tools_made_are_left_out(tmp_path: Path) -> None:
    for name in ("a.py", "b.ts", "node_modules/c.ts", "goldens/d.md", "image.png", "Makefile"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    chosen = [path.name for path in checker.files([tmp_path], tmp_path)]
    assert chosen == ["Makefile", "a.py", "b.ts"]


def test_scripts_without_a_suffix_are_parsed_as_their_language() -> None:
    assert checker.kind(Path("commits"), "#!/usr/bin/env python3\n") == ".py"
    assert checker.kind(Path("venv"), "#!/usr/bin/env bash\n") == ""


def test_a_file_that_does_not_parse_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(:\n")
    assert [f.rule for f in checker.check_file(path, WORDS, tmp_path)] == ["syntax"]


def test_the_command_prints_findings_and_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n\na story\n")
    assert cli.main([str(path)]) == 1
    assert capsys.readouterr().out == f"{path}:3: 'story' -> history\n1 findings, 0 exceptions\n"
    path.write_text("a history\n")
    assert cli.main([str(path)]) == 0
    assert capsys.readouterr().out == "0 findings, 0 exceptions\n"


def test_the_report_counts_by_rule_and_folder() -> None:
    findings = [Finding(f"ir/loop/{k}.py", 1, "mend", "mend", "fix") for k in range(3)]
    assert cli.report(findings) == ["by rule", "      3 mend", "by folder", "      3 ir/loop"]
