"""Limits and defects of the environment: everything works, or an error names the reason."""

from __future__ import annotations

import pytest

from tests.amounts import IS_LONG
from tests.attacks.children import run_child

CASES = {
    "few descriptors": ("limit('NOFILE', 10)", "WorkerStartError"),
    "descriptors for workers": ("limit('NOFILE', 16)", "works RunStartError"),
    "no files": ("limit('FSIZE', 0)", "works RunStartError"),
    "tiny files": ("limit('FSIZE', 1000)", "works RunStartError"),
    "no address space for LLVM": ("limit('AS', 250 << 20)", "LLVMNotLoadedError"),
    "no processes": ("limit('NPROC', 0)", "works works"),  # the superuser has no such limit
    "no home and no user": ("without_user()", "works works"),
    "small stack": ("limit('STACK', 128 << 10)", "works works"),
}
"""A statement that restricts a process, and the output of its three steps."""

IN_CI = ("few descriptors", "no files", "no address space for LLVM", "no home and no user")


@pytest.mark.parametrize("name", CASES if IS_LONG else IN_CI)
def test_restricted_processes(name: str) -> None:
    statement, expected = CASES[name]
    assert run_child("-m", "tests.attacks.environment", statement) == expected


VARIABLES = {
    "limit with a unit": ({"TILEWRIGHT_CACHE_LIMIT": "1GB"}, "CacheLimitError"),
    "empty limit": ({"TILEWRIGHT_CACHE_LIMIT": ""}, "works works"),
    "cache below a file": ({"TILEWRIGHT_CACHE": "/etc/passwd/cache"}, "works works"),
    "cache in a special file system": ({"TILEWRIGHT_CACHE": "/proc/1/cache"}, "works works"),
    "no folder for temporary files": ({"TMPDIR": "/missing"}, "works works"),
    "no search path": ({"PATH": ""}, "works works"),
    "ASCII": ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "works works"),
}


@pytest.mark.parametrize("name", VARIABLES if IS_LONG else ("limit with a unit",))
def test_environment_variables(name: str) -> None:
    variables, expected = VARIABLES[name]
    assert run_child("-m", "tests.attacks.environment", "pass", **variables) == expected
