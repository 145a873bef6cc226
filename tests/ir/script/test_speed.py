"""Repainting and compile caching wait for these, so they have limits: the best of 5 runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.ir.module import Module
from tilewright.ir.script import parse, render
from tilewright.ir.structural import structural_hash

from tests.ir.script.texts import GRAPHS, LOOPS

if TYPE_CHECKING:
    from collections.abc import Callable

LAYERS = 40
"""Copies of a kernel: together about as much text as the scheduled MiniLM."""


def milliseconds(prepare: Callable[[], object], run: Callable[[object], object]) -> float:
    """Time the first use of something made afresh each time."""
    best = float("inf")
    for _ in range(5):
        subject = prepare()
        start = time.process_time()
        run(subject)
        best = min(best, time.process_time() - start)
    return best * 1e3


def whole() -> Module:
    """Make a module of functions that nothing was remembered of."""
    kernel, *graphs = parse(LOOPS).prim("kitchen"), *parse(GRAPHS)
    kernels = (replace(kernel, name=f"kitchen{k}") for k in range(LAYERS))
    return Module().with_functions(*kernels, *graphs)


def test_one_function() -> None:
    def kernel() -> object:
        return parse(LOOPS).prim("kitchen")

    assert milliseconds(kernel, render) < 5
    assert milliseconds(kernel, structural_hash) < 2


def test_a_whole_module() -> None:
    assert milliseconds(whole, render) < 100
    assert milliseconds(whole, structural_hash) < 60


def test_what_did_not_change_is_not_written_again() -> None:
    module = parse(LOOPS)
    first = milliseconds(lambda: parse(LOOPS), render)
    render(module)
    assert milliseconds(lambda: module.with_functions(), render) < max(first, 0.5)
