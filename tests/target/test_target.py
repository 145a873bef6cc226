"""An unknown target is rejected with a list of the known ones."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.target.features import UnsupportedPlatformError
from tilewright.target.target import KINDS, Target, UnknownTargetError, as_target, provides

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


NAMES = [
    ("gpu", 'write "cuda"'),
    ("llvm -mcpu=core-avx2", 'write "cpu"; targets are'),
    ("cuda -arch=sm_80", "write 'cuda'; targets are"),
    ("cdua", "write 'cuda'"),
    ("x86_64", 'write Target("cpu", arch="x86_64")'),
    ("", "targets are 'cpu'"),
    ({}, "targets are 'cpu'"),
    (5, "targets are 'cpu'"),
]


@pytest.mark.parametrize(("kind", "hint"), NAMES, ids=[repr(k) for k, _ in NAMES])
def test_names_of_other_compilers(kind: object, hint: str) -> None:
    with pytest.raises(UnknownTargetError) as caught:
        as_target(kind)
    assert hint in caught.value.hint
    assert caught.value.where == "argument 'kind' of Target"


def test_none_is_the_host_processor() -> None:
    assert as_target(None) == Target("cpu")


@pytest.mark.parametrize("features", ["avx2", 5, (1,), None])
def test_features_are_a_tuple_of_names(features: object) -> None:
    with pytest.raises(UnknownTargetError, match="expected a tuple of names of features"):
        Target("cpu", features=features)


def test_a_gpu_has_no_features() -> None:
    with pytest.raises(UnknownTargetError, match="target 'cuda' has no features, got 'avx2'"):
        Target("cuda", features=("avx2",))


def test_a_misspelled_feature_is_reported_with_a_similar_one() -> None:
    with pytest.raises(UnsupportedPlatformError) as caught:
        tw.compile(tw.parse(PROGRAM), Target("cpu", arch="x86_64", features=("avx51",)))
    assert caught.value.hint.startswith("did you mean 'avx5")
    assert len(caught.value.hint) < 500


def test_the_architecture_of_a_gpu_for_a_cpu_target():
    with pytest.raises(UnknownTargetError) as caught:
        Target("cpu", arch="sm_80")
    assert caught.value.hint.endswith('write Target("cuda", arch=...) for a GPU')


def test_webgpu_has_features_and_no_architecture():
    target = Target("webgpu", features=("f16", "packed_dot"))
    assert (target.is_gpu, target.is_cuda, target.capability, target.name) == (
        True, False, 0, "webgpu",
    )  # fmt: skip
    assert str(target) == "Target('webgpu', features=('f16', 'packed_dot'))"
    assert provides(target, "f16")
    assert not provides(target, "sm_80")
    with pytest.raises(UnknownTargetError, match="no architecture"):
        Target("webgpu", arch="sm_80")
    with pytest.raises(UnknownTargetError, match="no feature 'f17'"):
        Target("webgpu", features=("f17",))


def test_only_webgpu_runs_in_browsers():
    target = Target("webgpu", features=("f16",), where="browser")
    assert target.in_browser
    assert target != Target("webgpu", features=("f16",))
    assert str(target) == "Target('webgpu', features=('f16',), where='browser')"
    with pytest.raises(UnknownTargetError, match="'cuda' do not run in a browser") as caught:
        Target("cuda", where="browser")
    assert caught.value.hint == 'write Target("webgpu", where="browser")'
    with pytest.raises(UnknownTargetError, match="unknown location 'moon'"):
        Target("webgpu", where="moon")
