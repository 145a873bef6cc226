"""No two modules import each other. Which way the layers point is `make lint`'s to check."""

from __future__ import annotations

import graphlib

import grimp


def test_no_two_modules_import_each_other() -> None:
    graph = grimp.build_graph("tilewright", exclude_type_checking_imports=True, cache_dir=None)
    edges = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise AssertionError(f"import cycle: {cycle}") from None
