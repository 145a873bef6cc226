"""Limits of the axes of a launch and of the threads of a block."""

from __future__ import annotations

import pytest

from tilewright.ir.kernel_errors import LaunchLimitError
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import ThreadAxis
from tilewright.schedules.launch.launch_limits import check_axis, check_threads
from tilewright.target.target import Target

SIMT = Target("simt")


def axis(tag, extent):
    """Return a launch axis."""
    return ThreadAxis(tag, var(tag.replace(".", "_"), lower=0), as_expr(extent))


def test_threads_along_one_axis():
    check_axis("k", axis("threadIdx.z", 64), SIMT)
    message = r"threadIdx\.z has extent 128; the limit of sm_80 is 64"
    with pytest.raises(LaunchLimitError, match=message) as caught:
        check_axis("k", axis("threadIdx.z", 128), SIMT)
    assert caught.value.details == {"axis": "threadIdx.z", "extent": 128, "limit": 64}


def test_threads_per_block():
    check_threads("k", (axis("threadIdx.x", 32), axis("threadIdx.y", 32)), SIMT)
    message = r"threadIdx\.x 32 \* threadIdx\.y 64 = 2048 threads; the limit of sm_80 is 1024"
    with pytest.raises(LaunchLimitError, match=message) as caught:
        check_threads("k", (axis("threadIdx.x", 32), axis("threadIdx.y", 64)), SIMT)
    assert caught.value.details == {"threads": 2048, "limit": 1024}


def test_thread_blocks_of_symbolic_number_are_accepted():
    axes = axis("blockIdx.x", var("n", lower=1)), axis("threadIdx.x", 1024)
    check_axis("k", axes[0], SIMT)
    check_threads("k", axes, SIMT)
