from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.manifest import FunctionSpec, LaunchSpec
from tilewright.codegen.runtime.profile import ProfileOptionsError, make_profile

from tests.static_html import check_static

MATMUL = """
@graph_func
def main(x: Tensor[(64, 64), f32]):
    a: Tensor[(64, 64), f32] = matmul(x, x)
    b: Tensor[(64, 64), f32] = matmul(a, x)
    return b
"""


def spec(*launches: LaunchSpec) -> FunctionSpec:
    return FunctionSpec("main", (), (), (), launches, (), (), (), (), 0, 0)


def test_print():
    launches = (
        LaunchSpec("matmul", "run_a", ("a",)),
        LaunchSpec("copy", "run_b"),
        LaunchSpec("matmul", "run_c", ("c", "d", "e")),
        LaunchSpec("matmul_n1", "run_c"),
    )
    runs = [[3000, 1000, 2000, 0], [5000, 1000, 2000, 0], [4000, 2000, 2000, 0]]
    profile = make_profile(spec(*launches), runs)
    assert str(profile).splitlines() == [
        "profile of 'main': 8.0 µs in 3 launches",
        "kernel      launches    time (µs)  share    computes",
        "--------  ----------  -----------  -------  ------------",
        "matmul             2            6  85.7%    a, c, 2 more",
        "copy               1            1  14.3%    run_b",
        "median of 3 calls; the time between launches is not included",
    ]
    assert repr(profile) == "<Profile of main: 8.0 µs, 3 launches>"
    check_static(profile._repr_html_())


def test_a_measured_profile():
    exe = tw.compile(tw.parse(MATMUL))
    profile = exe.profile(np.ones((64, 64), np.float32), repeats=2)
    assert len(profile.launches) == 2
    assert str(profile).startswith("profile of 'main': ")


@pytest.mark.parametrize("repeats", [0, -1, 1.5, "2", True, None])
def test_repeats_must_be_a_positive_integer(repeats):
    exe = tw.compile(tw.parse(MATMUL))
    with pytest.raises(ProfileOptionsError, match="repeats must be an integer of at least 1, got"):
        exe.profile(np.ones((64, 64), np.float32), repeats=repeats)


def test_kernels_are_shown_with_the_values_that_they_compute():
    exe = tw.compile(tw.parse(MATMUL))
    profile = exe.profile(np.ones((64, 64), np.float32), repeats=1)
    assert [t.origins for t in profile] == [("a",), ("b",)]
    assert [t.binding for t in profile] == ["run_matmul", "run_matmul_1"]
    assert str(profile).endswith("time of one call; the time between launches is not included")
