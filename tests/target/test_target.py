"""An unknown target is rejected with a list of the known ones."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.target.target import KINDS, Target, UnknownTargetError, as_target

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def twice(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("twice"):
            vi = spatial(i)
            y[vi] = x[vi] + x[vi]
"""


@pytest.mark.parametrize("make", [Target, as_target])
def test_the_error_lists_the_known_targets(make) -> None:
    with pytest.raises(UnknownTargetError) as caught:
        make("abacus")
    text = str(caught.value)
    assert "'abacus'" in text
    assert all(repr(kind) in text for kind in KINDS)


def test_all_entry_points_raise_the_same_error() -> None:
    module = tw.parse(PROGRAM)
    for use in (tw.compile, tw.Schedule, tw.Workbench):
        with pytest.raises(UnknownTargetError, match="targets are 'cpu'"):
            use(module, target="abacus")


def test_a_negative_number_of_threads_is_rejected() -> None:
    with pytest.raises(UnknownTargetError, match="non-negative number of threads, got threads=-1"):
        Target("cpu", threads=-1)


def test_targets_compare_by_value_and_print_their_constructor() -> None:
    target = Target("cpu", features=["avx2"], threads=2)
    assert eval(str(target), {"Target": Target}) == target
    assert hash(target) == hash(Target("cpu", features=("avx2",), threads=2))
    exe = tw.compile(tw.parse(PROGRAM), target)
    np.testing.assert_array_equal(exe["twice"](np.ones(3, np.float32)), np.full(3, 2, np.float32))


@pytest.mark.parametrize("threads", [1.5, "2", None, True])
def test_a_number_of_threads_must_be_an_integer(threads) -> None:
    with pytest.raises(UnknownTargetError, match="expected an integer number of threads"):
        Target("cpu", threads=threads)
