"""Rules for commits, on messages and in temporary repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from language import commits
from language.commits import Commit, problems, subject_problems

Committer = Callable[..., str]
DATES = {"GIT_AUTHOR_DATE": "2026-12-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-12-01T00:00:00Z"}


@pytest.mark.parametrize(
    "subject",
    [
        "Add a checker of the vocabulary",
        "Express bounds as intervals",
        "Seed the random programs",
        "README: state the supported processors",
        "Rename `Ref` to `Handle`",
    ],
)
def test_good_subjects(subject: str) -> None:
    assert list(subject_problems(subject)) == []


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("A measurement that is checked", "an article"),
        ("The pool sleeps", "an article"),
        ("Added a test", "'Added'"),
        ("Fixes the pool", "'Fixes'"),
        ("Adding a test", "'Adding'"),
        ("wip: modules moved", "'modules'"),
        ("Add a test; fix the pool", "two commits"),
        ("Add a test.", "a period"),
        ("Add " + 69 * "x", "73 characters"),
    ],
)
def test_bad_subjects(subject: str, problem: str) -> None:
    (text,) = subject_problems(subject)
    assert problem in text


@pytest.mark.parametrize(
    ("paths", "body", "count"),
    [
        (("ir/loop/nodes.py", "tests/ir/loop/test_nodes.py"), "Because.", 0),
        (("ir/loop/nodes.py", "tests/ir/goldens/a.txt"), "Because.", 0),
        (("ir/loop/nodes.py", "docs/language.md"), "Because.", 0),
        (("ir/loop/nodes.py", "notebooks/gpu.ipynb"), "Because.", 0),
        (("ir/loop/nodes.py", "docs/gpu.md"), "Because.", 1),
        (("ir/loop/nodes.py",), "Because.", 1),
        (("ir/loop/nodes.py",), "Because.\n\nTests: text only", 0),
        (("ir/loop/nodes.py",), "Because.\n\nTests:", 1),
        (("ir/loop/nodes.py",), "Tests: text only", 1),
        (("ir/loop/nodes.py",), "", 2),
        (("extensions/core/app.tsx",), "Because.", 1),
        (("extensions/core/app.tsx", "extensions/test/app.test.tsx"), "Because.", 0),
        (("README.md", "Makefile", ".ci/venv", "pyproject.toml"), "", 0),
        (("tests/test_style.py",), "", 0),
    ],
)
def test_sources_need_a_reason_and_a_test(paths: tuple[str, ...], body: str, count: int) -> None:
    assert len(list(problems(Commit("1", "Add it", body, paths)))) == count


def test_a_changed_doctest_is_a_test() -> None:
    commit = Commit("1", "Add it", "Because.", ("ir/module.py",), doctest=True)
    assert list(problems(commit)) == []


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **DATES}
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


@pytest.fixture
def commit(repository: Path) -> Committer:
    def make(message: str, **files: str) -> str:
        for name, text in files.items():
            path = repository / name.replace("__", "/")
            path = path.with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--allow-empty", "--message", message)
        return git(repository, "rev-parse", "HEAD")

    return make


def test_commits_after_the_baseline_are_checked(
    repository: Path, commit: Committer, capsys: pytest.CaptureFixture[str]
) -> None:
    commit("The old manner; with everything.")
    baseline = commit("Another one.")
    assert commits.main(repository, baseline) == 0
    commit("Add a module\n\nIt is needed.", ir__new="x = 1\n", tests__test_new="y = 1\n")
    assert commits.main(repository, baseline) == 0
    assert capsys.readouterr().out.endswith("1 commits checked, 0 problems\n")
    sha = commit("Change the module\n\nIt was wrong.", ir__new="x = 2\n")
    assert commits.main(repository, baseline) == 1
    captured = capsys.readouterr()
    assert captured.out == "2 commits checked, 1 problems\n"
    assert captured.err.startswith(f"{sha[:10]} 'Change the module': ir/new.py changes without")


def test_a_doctest_in_a_patch_counts(repository: Path, commit: Committer) -> None:
    baseline = commit("Start")
    sha = commit("Add an example\n\nIt helps.", ir__new='"""Text.\n\n>>> 1\n1\n"""\n')
    assert commits.read(repository, sha).doctest
    assert commits.main(repository, baseline) == 0


def test_merges_are_left_out(repository: Path, commit: Committer) -> None:
    baseline = commit("Start")
    git(repository, "switch", "--quiet", "--create", "side")
    side = commit("Add a side")
    git(repository, "switch", "--quiet", "main")
    main = commit("Add a test", tests__test_a="x = 1\n")
    git(repository, "merge", "--quiet", "--no-ff", "--message", "Merging; all.", "side")
    assert set(commits.shas(repository, baseline)) == {side, main}


def test_a_shallow_clone_checks_the_commits_it_has(
    repository: Path, commit: Committer, tmp_path: Path
) -> None:
    baseline = commit("The start")
    commit("The first")
    commit("The boundary, whose difference is the entire tree")
    last = commit("Add the last")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=2", repository.as_uri(), str(clone))
    assert commits.shas(clone, baseline) == [last]
    assert commits.main(clone, baseline) == 0


def test_without_the_baseline_older_commits_are_not_checked(
    repository: Path, commit: Committer
) -> None:
    commit("Start")
    last = commit("Add a test")
    missing = 40 * "1"
    assert commits.shas(repository, missing, since="2026-11-21T00:00:00Z") == [last]
    assert commits.shas(repository, missing, since="2026-12-24T00:00:00Z") == []


def test_at_most_fifty_commits_are_checked_without_the_baseline(
    repository: Path, commit: Committer
) -> None:
    for number in range(52):
        commit(f"Add {number}")
    assert len(commits.shas(repository, 40 * "1")) == commits.MOST_COMMITS == 50


def test_a_folder_without_history_has_nothing_to_check(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = repository / "sdist"
    inside.mkdir()
    for folder in (tmp_path, repository, inside):
        assert commits.main(folder) == 0
        assert capsys.readouterr().out == "no git history here: no commits to check\n"


def test_the_script_runs(root: Path) -> None:
    result = subprocess.run([root / ".ci" / "commits"], capture_output=True, text=True, check=False)
    assert "commits" in result.stdout
    assert "Traceback" not in result.stderr
