"""Examples in docstrings execute as doctests.

The doctest collection of pytest would import the tree by path, under second names.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tilewright
from tilewright.schedules import STEPS, registry
from tilewright.schedules.methods import ScheduleMethods

pytestmark = pytest.mark.slow

MODULES = sorted(
    ["tilewright", *(m.name for m in pkgutil.walk_packages(tilewright.__path__, "tilewright."))]
)


@pytest.fixture(autouse=True)
def _steps_of_examples():
    """Remove the composite steps that an example defines."""
    yield
    for name in [name for name, step in STEPS.items() if step.family == "user"]:
        del registry._STEPS[name]
        delattr(ScheduleMethods, name)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for found in doctest.DocTestFinder().find(module):
        if found.examples:  # the runner creates a debugger for each docstring
            runner.run(found)
    assert runner.failures == 0
