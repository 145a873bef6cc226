"""The fake driver as a fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.codegen.runtime.cuda.pretended import FakeDriver, loaded


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    """The fake driver after a reset: one GPU of compute capability 8.0 with 1 GiB of memory."""
    fake = loaded()
    fake.reset()
    yield fake
    fake.reset()
