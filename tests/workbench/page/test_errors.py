"""The errors of failures that pages report."""

from __future__ import annotations

from typing import get_args

import pytest

from tilewright.errors import TilewrightError
from tilewright.workbench.page.errors import error_of
from tilewright.workbench.protocol_gpu import GpuErrorKind, GpuFailure


@pytest.mark.parametrize("kind", get_args(GpuErrorKind))
def test_every_failure_has_a_named_error(kind: str) -> None:
    error = error_of(GpuFailure(kind, "the reason", "matmul"))
    assert isinstance(error, TilewrightError)
    assert "the reason" in error.message
    assert error.title
    assert error.hint or kind in ("not_requested", "invalid")


def test_a_rejected_shader_names_its_kernel() -> None:
    assert error_of(GpuFailure("shader", "line 3: x", "matmul")).where == "kernel 'matmul'"
