"""Time limits of printing and hashing, which the UI and the compile cache wait for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tilewright.ir.module import Module
from tilewright.ir.script import render
from tilewright.ir.structural_hash import structural_hash

from tests.cpu_time import relative_ms, timed
from tests.ir.script.texts import GRAPHS, LOOPS, parse

if TYPE_CHECKING:
    from collections.abc import Callable

LAYERS = 40
"""The number of kernel copies; the text is about as long as that of the scheduled MiniLM."""


def milliseconds(prepare: Callable[[], object], run: Callable[[object], object]) -> float:
    """Return the best of 5 relative CPU times of ``run`` on a newly prepared subject."""
    subjects = [prepare() for _ in range(5)]
    return min(relative_ms(partial(run, subject)) for subject in subjects)


def uncached_module() -> Module:
    """Return a module of functions without cached text or hashes."""
    kernel, *graphs = parse(LOOPS).prim("kitchen"), *parse(GRAPHS)
    kernels = (replace(kernel, name=f"kitchen{k}") for k in range(LAYERS))
    return Module().with_functions(*kernels, *graphs)


@timed
def test_one_function() -> None:
    def kernel() -> object:
        return parse(LOOPS).prim("kitchen")

    assert milliseconds(kernel, render) < 5
    assert milliseconds(kernel, structural_hash) < 2


@timed
def test_a_whole_module() -> None:
    assert milliseconds(uncached_module, render) < 100
    assert milliseconds(uncached_module, structural_hash) < 60


@timed
def test_unchanged_functions_are_not_printed_again() -> None:
    module = parse(LOOPS)
    first = milliseconds(lambda: parse(LOOPS), render)
    render(module)
    assert milliseconds(lambda: module.with_functions(), render) < max(first, 0.5)
