"""Scale of the attacks: minutes in `make fuzz`, seconds otherwise."""

from __future__ import annotations

import pytest

from tests.amounts import IS_LONG


@pytest.fixture(scope="session")
def scale() -> int:
    """The factor of time and iterations relative to CI."""
    return 30 if IS_LONG else 1
