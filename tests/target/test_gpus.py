"""GPU limits."""

from __future__ import annotations

import pytest

from tilewright.target.gpus import BLOCK_AXES, THREAD_AXES, limits_of
from tilewright.target.target import GPU_ARCHS, Target

LEAST = limits_of(None)


@pytest.mark.parametrize("arch", GPU_ARCHS)
def test_every_gpu_has_limits(arch):
    """No GPU has lower limits than the default."""
    limits = limits_of(Target("cuda", arch=arch))
    assert limits.shared_optin >= limits.shared == 48 * 1024
    assert limits.shared_optin >= LEAST.shared_optin
    assert set(limits.axes) == {*BLOCK_AXES, *THREAD_AXES}
    assert limits == limits_of(Target("simt", arch=arch))


def test_cpu_targets_have_the_minimum_limits():
    assert limits_of(Target("cpu")) == LEAST
