"""Waits of tests poll a condition with a deadline; no test sleeps for a fixed time."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import cpu_seconds, processes, wait_until, wait_until_busy

SLEEPS = re.compile(r"\bsleep\(|\bwait_for_timeout\(|\bsetTimeout\(")
# The polling helpers, this test, and programs that measure a machine over time.
SLEEPING = (
    "tests/waiting.py", "tests/workbench/page/chromium.py", "tests/test_waiting.py",
    "tests/benchmarks/",
)  # fmt: skip
# Time that passes is a part of the test: pauses between parallel loops, an idle pool, and a process
# that waits for longer than its limit of CPU time.
PAUSING = {"tests/waiting.py", "tests/codegen/runtime/test_pool.py", "tests/fuzz/test_cases.py"}


def sources(root: Path) -> dict[str, str]:
    folders = [root / "tests", root / "extensions" / "test", root / "extensions" / "recorded"]
    paths = [path for folder in folders for path in folder.rglob("*.*")]
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in names.items()
        if path.suffix in {".py", ".ts", ".tsx"}
    }


def test_no_test_sleeps_for_a_fixed_time(root: Path) -> None:
    found = [
        f"{name}: {line.strip()}"
        for name, text in sources(root).items()
        if not name.startswith(SLEEPING)
        for line in text.splitlines()
        if SLEEPS.search(line)
    ]
    assert found == []


def test_pauses_are_part_of_few_tests(root: Path) -> None:
    users = {name for name, text in sources(root).items() if re.search(r"import .*\bpause\b", text)}
    assert users | {"tests/waiting.py"} == PAUSING


def short_timeouts(node: ast.AST) -> list[int]:
    """Return the timeouts in milliseconds that a slow machine exceeds."""
    named = (x for x in ast.walk(node) if isinstance(x, ast.keyword) and x.arg == "timeout")
    timeouts = (x.value.value for x in named if isinstance(x.value, ast.Constant))
    return [x for x in timeouts if isinstance(x, int) and 1_000 <= x < 60_000]


def test_only_browser_tests_that_run_alone_have_short_timeouts(root: Path) -> None:
    found = [
        f"{path.name}: {node.name}"
        for path in (root / "tests" / "browser").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and short_timeouts(node)
        if "alone" not in "".join(map(ast.unparse, node.decorator_list))
    ]
    assert found == []


def test_a_condition_is_polled_until_it_is_true() -> None:
    values = iter([0, 0, 7])
    assert wait_until(lambda: next(values), interval=0) == 7


def test_a_condition_that_stays_false_fails() -> None:
    with pytest.raises(AssertionError, match=r"still false after 0\.02 s"):
        wait_until(lambda: False, timeout=0.02)


def test_processor_time_of_processes() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: 'tests.busy'"]) as process:
        started = time.monotonic()
        wait_until_busy(lambda: [process.pid, None], 0.1)
        assert cpu_seconds([process.pid]) >= 0.1
        assert process.pid in processes("tests.busy")
        assert process.pid in processes("tests.busy", Path.cwd())
        assert process.pid not in processes("tests.busy", Path.cwd().parent)
        process.kill()
    assert time.monotonic() - started < 60
    assert cpu_seconds([process.pid]) == 0
    assert process.pid not in processes("tests.busy")
