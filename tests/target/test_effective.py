"""One target that satisfies all targets stated for a program."""

from dataclasses import replace

import pytest

from tilewright.target.effective import TargetMismatchError, effective_target, merged_target
from tilewright.target.target import Target

CPU, AVX2 = Target("cpu"), Target("cpu", features=("avx2",))
ARM = Target("cpu", arch="aarch64")
WEBGPU, BROWSER = Target("webgpu"), Target("webgpu", where="browser")
CUDA, HOPPER = Target("cuda"), Target("cuda", arch="sm_90a")


@pytest.mark.parametrize(
    ("given", "own", "expected"),
    [
        (CPU, AVX2, AVX2),
        (AVX2, CPU, AVX2),
        (Target("cpu", threads=2), ARM, Target("cpu", arch="aarch64", threads=2)),
        (Target("cpu", features=("avx512",)), AVX2, None),
        (AVX2, Target("cpu", arch="x86_64"), Target("cpu", arch="x86_64", features=("avx2",))),
        (ARM, AVX2, None),
        (Target("cpu", threads=2), Target("cpu", threads=4), None),
        (CPU, CUDA, None),
        (CUDA, HOPPER, None),
        (Target("simt"), CUDA, Target("simt")),
        (Target("simt"), HOPPER, None),
        (CUDA, Target("simt"), None),
        (WEBGPU, BROWSER, BROWSER),
        (BROWSER, WEBGPU, BROWSER),
        (BROWSER, Target("webgpu", features=("f16",)), replace(BROWSER, features=("f16",))),
        (CUDA, BROWSER, None),
    ],
)
def test_options_of_two_targets(given: Target, own: Target, expected: Target | None) -> None:
    assert merged_target(given, own) == expected


def test_without_a_given_target_those_of_the_functions_apply() -> None:
    assert effective_target(None, {}) == CPU
    assert effective_target(None, {"f": CPU, "g": AVX2}) == AVX2


def test_functions_with_different_targets() -> None:
    with pytest.raises(TargetMismatchError) as caught:
        effective_target(None, {"f": AVX2, "g": CUDA})
    assert caught.value.message == (
        "function 'g' is for Target('cuda', arch='sm_80'), but function 'f' is for "
        "Target('cpu', features=('avx2',))"
    )


def test_the_hint_names_the_target_to_compile_for() -> None:
    with pytest.raises(TargetMismatchError) as caught:
        effective_target(Target("simt"), {"f": HOPPER})
    assert "compile it for Target('simt', arch='sm_90a')" in caught.value.hint
    assert caught.value.details["function"] == "f"
