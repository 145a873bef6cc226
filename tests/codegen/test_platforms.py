"""Machines that no code can be made for are refused by name, before anything is generated."""

import pytest
from llvmlite import binding

from tilewright.codegen import compile, cpu
from tilewright.codegen.compiler import NotAProgramError
from tilewright.codegen.cpu import UnsupportedPlatformError, require_runnable, resolve
from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.processors import FAMILIES
from tilewright.codegen.runtime.loader import Library
from tilewright.ir.module import Module
from tilewright.ir.target import CPU_ARCHS, Target

from tests.codegen.runtime.helpers import add_kernel


def pretend(monkeypatch: pytest.MonkeyPatch, triple: str, features: frozenset[str]) -> None:
    """Let this process believe that it runs on another machine."""
    monkeypatch.setattr(cpu, "_host_platform", lambda: ("some-cpu", triple))
    monkeypatch.setattr(cpu, "host_features", lambda: features)


@pytest.mark.parametrize(
    "triple", ["aarch64-unknown-linux-gnu", "arm64-apple-darwin23", "x86_64-pc-windows-msvc"]
)
def test_another_platform(monkeypatch: pytest.MonkeyPatch, triple: str) -> None:
    pretend(monkeypatch, triple, cpu.host_features())
    with pytest.raises(UnsupportedPlatformError, match=f"(?s){triple}.*x86-64 Linux with AVX2"):
        resolve(Target("cpu"))


def test_a_processor_without_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    triple = binding.get_process_triple()
    pretend(monkeypatch, triple, cpu.host_features() - {"avx2"})
    with pytest.raises(UnsupportedPlatformError, match="'some-cpu' lacks AVX2"):
        resolve(Target("cpu"))


def test_avx512_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    have = frozenset(f for f in cpu.host_features() if not f.startswith("avx512"))
    pretend(monkeypatch, binding.get_process_triple(), have)
    asked = Target("cpu", features=("avx512",))
    assert resolve(asked).vector_bits == 512
    with pytest.raises(UnsupportedPlatformError, match="this processor has no 'avx512'"):
        require_runnable(asked)
    assert resolve(Target("cpu", features=("avx2",))).vector_bits == 256


def test_compile_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "riscv64-unknown-linux-gnu", frozenset())
    with pytest.raises(UnsupportedPlatformError, match="riscv64-unknown-linux-gnu"):
        compile(Module().with_functions(add_kernel()))


@pytest.mark.parametrize("wrong", [None, "model.onnx", 3])
def test_what_is_no_program_is_named(wrong):
    with pytest.raises(NotAProgramError, match=f"not {type(wrong).__name__}"):
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
def test_a_feature_nobody_knows(target: Target, message: str) -> None:
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
