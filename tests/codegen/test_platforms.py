"""Unsupported machines and feature sets are rejected by name before code is generated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from tilewright.codegen import compile
from tilewright.codegen.build.native_library import Library
from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.llvm.processor import resolve
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.program import NotAProgramError
from tilewright.ir.module import Module
from tilewright.target import host
from tilewright.target.cpus import FAMILIES
from tilewright.target.features import FEATURE_SETS, TENSOR_FEATURES, UnsupportedPlatformError
from tilewright.target.host import UnknownFeatureSetError, require_runnable
from tilewright.target.target import CPU_ARCHS, Target

from tests.codegen.runtime.helpers import add_kernel

ROOT = Path(__file__).resolve().parents[2]


LINUX = ("x86_64", "linux")


def pretend(
    monkeypatch: pytest.MonkeyPatch, platform: tuple[str, str], features: frozenset[str]
) -> None:
    """Simulate another machine in this process."""
    monkeypatch.setattr(host, "host_platform", lambda: platform)
    monkeypatch.setattr(host, "host_features", lambda: features)


@pytest.mark.parametrize(
    "platform", [("aarch64", "linux"), ("arm64", "darwin"), ("AMD64", "win32")]
)
def test_another_platform(monkeypatch: pytest.MonkeyPatch, platform: tuple[str, str]) -> None:
    pretend(monkeypatch, platform, host.host_features())
    message = f"(?s)for {' '.join(platform)}.*x86-64 Linux with AVX2"
    with pytest.raises(UnsupportedPlatformError, match=message):
        resolve(Target("cpu"))


def test_a_processor_without_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, LINUX, host.host_features() - {"avx2"})
    with pytest.raises(UnsupportedPlatformError, match="this processor lacks AVX2"):
        resolve(Target("cpu"))


def test_avx512_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    have = frozenset(f for f in host.host_features() if not f.startswith("avx512"))
    pretend(monkeypatch, LINUX, have)
    asked = Target("cpu", features=("avx512",))
    assert resolve(asked).vector_bits == 512
    with pytest.raises(UnsupportedPlatformError, match="this processor has no 'avx512'"):
        require_runnable(asked)
    assert resolve(Target("cpu", features=("avx2",))).vector_bits == 256


def test_compile_rejects_another_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, ("riscv64", "linux"), frozenset())
    with pytest.raises(UnsupportedPlatformError, match="for riscv64 linux"):
        compile(Module().with_functions(add_kernel()))


@pytest.mark.parametrize("wrong", [None, "model.onnx", 3])
def test_an_object_that_is_not_a_program(wrong):
    with pytest.raises(NotAProgramError, match=f"got {type(wrong).__name__}"):
        compile(wrong)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            Target("cpu", features=("sse9",)),
            "has no feature 'sse9'.*sets are 'avx2'",
        ),
        (
            Target("cpu", arch="aarch64", features=("avx2",)),
            "has no feature 'avx2'.*dotprod",
        ),
        (Target("cpu", arch="riscv64", features=("q",)), "riscv64 has no feature 'q'.*zba"),
    ],
)
def test_an_unknown_feature(target: Target, message: str) -> None:
    with pytest.raises(UnsupportedPlatformError, match=f"(?s){message}"):
        resolve(target)


@pytest.mark.parametrize("arch", ["aarch64", "riscv64", "wasm32"])
def test_code_for_another_family_is_made_and_not_loaded(arch: str) -> None:
    target = Target("cpu", arch=arch)
    func = add_kernel()
    made = compile_text(emit_module([lower_kernel(func, target).function], target), target)
    assert made[:4] == (b"\0asm" if arch == "wasm32" else b"\x7fELF")
    with pytest.raises(UnsupportedPlatformError, match=f"code for {arch} does not run"):
        Library([made], target)


def test_every_processor_is_a_target() -> None:
    assert set(FAMILIES) | {"x86_64"} == set(CPU_ARCHS)


@pytest.fixture
def avx512_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a CPU with AVX-512, AVX-VNNI, and AMX, without a cap."""
    names = {"avx", "avxvnni", "amx-tile", "sse4.2", *FEATURE_SETS["avx512"], *TENSOR_FEATURES}
    monkeypatch.setattr(host, "_processor_features", lambda: frozenset(names))
    monkeypatch.delenv(host.HOST_FEATURES, raising=False)


@pytest.mark.usefixtures("avx512_host")
def test_the_environment_caps_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = host.host_features()
    assert host.with_level(Target("cpu")).features == ("avx512", *TENSOR_FEATURES)

    monkeypatch.setenv("TILEWRIGHT_HOST_FEATURES", "avx512")
    assert everything - host.host_features() == {"avxvnni", "amx-tile", *TENSOR_FEATURES}
    assert host.with_level(Target("cpu")).features == ("avx512",)
    assert resolve(Target("cpu")).name == "x86-64-v4"

    monkeypatch.setenv("TILEWRIGHT_HOST_FEATURES", "avx2")
    assert host.host_features() == {"avx", "sse4.2", *FEATURE_SETS["avx2"]}
    assert host.levels_of_host() == ("avx2",)
    assert host.with_level(Target("cpu")).features == ("avx2",)
    cpu = resolve(Target("cpu"))
    assert (cpu.name, cpu.vector_bits, cpu.registers) == ("x86-64-v3", 256, 16)
    assert cpu.features.endswith(",-avx512f")
    with pytest.raises(UnsupportedPlatformError, match="this processor has no 'avx512'"):
        require_runnable(Target("cpu", features=("avx512",)))

    monkeypatch.setenv("TILEWRIGHT_HOST_FEATURES", "")
    assert host.host_features() == everything


@pytest.mark.parametrize("value", ["sse2", "AVX2", "avx2,fma", "avx512vnni"])
def test_an_unknown_cap_is_rejected(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOST_FEATURES", value)
    message = f"(?s)TILEWRIGHT_HOST_FEATURES='{value}' does not name a feature set.*'avx2'"
    with pytest.raises(UnknownFeatureSetError, match=message):
        compile(Module().with_functions(add_kernel()))


def test_spawned_processes_inherit_the_cap() -> None:
    program = (
        "import tilewright as tw\n"
        "from tests.codegen.runtime.helpers import add_kernel\n"
        "from tilewright.ir.module import Module\n"
        "exe = tw.compile(Module().with_functions(add_kernel()))\n"
        "print(*(r in exe.assembly('add') for r in ('ymm', 'zmm')))\n"
    )
    environment = {**os.environ, "TILEWRIGHT_HOST_FEATURES": "avx2"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert done.stdout == "True False\n"


def test_linux_and_llvm_detect_the_same_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(host.HOST_FEATURES, raising=False)
    detected = {name for name, present in binding.get_host_cpu_features().items() if present}
    named = {f for features in FEATURE_SETS.values() for f in features} | set(TENSOR_FEATURES)
    assert host.host_features() <= detected
    assert host.host_features() & named == detected & named
