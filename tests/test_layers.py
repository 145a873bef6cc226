"""The shape of the package: which way imports point, and that no two modules import each other."""

from __future__ import annotations

import graphlib
import subprocess
import sys
from pathlib import Path

import grimp


def test_import_contracts(root: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_two_modules_import_each_other() -> None:
    graph = grimp.build_graph("tilewright", exclude_type_checking_imports=True, cache_dir=None)
    edges = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise AssertionError(f"import cycle: {cycle}") from None
