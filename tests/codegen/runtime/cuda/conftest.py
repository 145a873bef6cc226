"""The pretended driver as a fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.codegen.runtime.cuda.pretended import FakeDriver, loaded


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    """The driver as new: one GPU of capability 8.0 with a gigabyte."""
    found = loaded()
    found.reset()
    yield found
    found.reset()
