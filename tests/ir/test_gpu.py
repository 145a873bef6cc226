"""The limits of GPUs."""

from __future__ import annotations

import pytest

from tilewright.ir.gpu import BLOCK_AXES, THREAD_AXES, limits_of
from tilewright.ir.target import GPU_ARCHS, Target

LEAST = limits_of(None)


@pytest.mark.parametrize("arch", GPU_ARCHS)
def test_every_gpu_has_limits(arch):
    """No GPU has less than what is assumed where none is named."""
    limits = limits_of(Target("cuda", arch=arch))
    assert limits.shared_optin >= limits.shared == 48 * 1024
    assert limits.shared_optin >= LEAST.shared_optin
    assert set(limits.axes) == {*BLOCK_AXES, *THREAD_AXES}
    assert limits == limits_of(Target("simt", arch=arch))


def test_a_processor_is_asked_for_what_every_gpu_has():
    assert limits_of(Target("cpu")) == LEAST
