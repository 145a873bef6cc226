"""The PTX assembler of the PyPI package: output, errors, and missing packages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen import nvidia
from tilewright.codegen.build import build_objects
from tilewright.codegen.build.build_objects import target_key
from tilewright.codegen.build.worker_pool import CompileJob, WorkerPool
from tilewright.codegen.errors import WorkerDiedError
from tilewright.codegen.nvidia import Image, Resources, assemble, disassemble, ptxas, resource_table
from tilewright.ir.module import UnknownFunctionError

from tests.codegen.gpu import kernels

EMPTY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { ret; }
"""

KERNELS = ["elementwise", "softmax", "matmul", "tensor_matmul"]


def test_the_assembler_is_that_of_the_package() -> None:
    found = nvidia.assembler()
    assert found is not None
    assert "site-packages" in found.parts or "dist-packages" in found.parts
    assert nvidia.assembler_version().startswith("ptxas ")


def test_assembly_for_an_architecture() -> None:
    made = assemble(EMPTY, "sm_80")
    assert made.content.startswith(b"\x7fELF")
    assert made.resources.spill_stores == 0
    assert "EXIT" in disassemble(made.content)


def test_errors_of_the_assembler_are_quoted() -> None:
    with pytest.raises(nvidia.AssemblerError, match="line 5"):
        assemble(EMPTY.replace("ret;", "nonsense;"), "sm_80")


def test_an_endless_assembler_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "ptxas"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(ptxas, "assembler", lambda: slow)
    monkeypatch.setattr(ptxas, "TIMEOUT", 0.2)
    with pytest.raises(nvidia.AssemblerError, match=r"ptxas exceeded the time limit of 0\.2 s"):
        assemble(EMPTY, "sm_80")


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch):
    def absent(name: str):
        raise PackageNotFoundError(name)

    caches = (ptxas.assembler, ptxas.disassembler, ptxas.assembler_version)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setattr(ptxas, "distribution", absent)
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("no_packages")
def test_missing_packages_are_named_with_the_command_to_install_them() -> None:
    assert nvidia.assembler_version() == ""
    with pytest.raises(nvidia.AssemblerMissingError, match="pip install nvidia-cuda-nvcc"):
        assemble(EMPTY, "sm_80")
    with pytest.raises(nvidia.AssemblerMissingError, match="pip install nvidia-cuda-nvdisasm"):
        disassemble(b"")


def test_an_image_without_machine_code() -> None:
    image = Image("sm_80", EMPTY)
    assert Image.from_bytes(image.to_bytes()) == image
    assert image.loadable.endswith(b"}\n\0")
    with pytest.raises(nvidia.AssemblerMissingError, match="image for sm_80 contains only PTX"):
        image.machine_code()


def test_resources_of_several_kernels() -> None:
    output = (
        "ptxas info    : 0 bytes gmem\n"
        "    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
        "ptxas info    : Used 64 registers, used 2 barriers, 8192 bytes smem, 400 bytes cmem[0]\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 12 registers, 400 bytes cmem[0]\n"
    )
    assert ptxas.read_resources(output) == Resources(64, 24, 32, 8192, 16, 2)
    table = resource_table({"a": Resources(64, 24, 32), "b": None})
    assert table.splitlines()[1].split() == ["a", "64", "56", "0", "0", "0"]
    assert "ptxas is not installed" in table.splitlines()[2]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_do_not_spill_registers(name: str, arch: str) -> None:
    exe = tw.compile(getattr(kernels, name)(), tw.Target("cuda", arch=arch))
    used = {kernel: exe.image(kernel).resources for kernel in exe.kernels}
    for kernel, resources in used.items():
        assert resources is not None
        assert (resources.spill_stores, resources.spill_loads) == (0, 0), resource_table(used)
        assert f".target {arch}" in exe.assembly(kernel)
        assert exe.artifact.kernel_specs[0].block[0] > 1


def test_an_executable_shows_images_of_its_kernels() -> None:
    exe = tw.compile(kernels.elementwise(), tw.Target("cuda"))
    (name,) = exe.kernels
    assert exe.image().ptx == exe.assembly(name)
    assert "LDG" in exe.sass(name)
    assert "target triple" in exe.llvm(name, optimized=True)
    with pytest.raises(UnknownFunctionError, match="no image of kernel 'q'"):
        exe.image("q")
    cpu = tw.compile(tw.parse("@prim_func\ndef one(y: Out[(4,), f32]):\n    y[0] = 1.0"), "cpu")
    with pytest.raises(UnknownFunctionError, match="only target 'cuda' has images"):
        cpu.image()


def test_an_artifact_for_a_gpu_is_stored_and_read_back() -> None:
    artifact = tw.compile(kernels.softmax(), tw.Target("cuda", arch="sm_90a")).artifact
    again = type(artifact).from_bytes(artifact.to_bytes())
    assert again.images == artifact.images
    assert again.kernel_specs == artifact.kernel_specs
    assert again.target == artifact.target


def test_an_instruction_that_the_gpu_lacks_only_ends_a_worker() -> None:
    """LLVM prints `Cannot select` and aborts; the error quotes it, and the next kernel compiles."""
    name = "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
    half, single = "<2 x half>", "float"
    given = f"{{ {', '.join([single] * 4)} }}"
    kinds = ", ".join([half] * 6 + [single] * 4)
    zeros = ", ".join([f"{half} zeroinitializer"] * 6 + [f"{single} 0.0"] * 4)
    text = f"""
declare {given} @{name}({kinds})
define ptx_kernel void @k(ptr addrspace(1) %y) {{
  %d = call {given} @{name}({zeros})
  %e = extractvalue {given} %d, 0
  store float %e, ptr addrspace(1) %y
  ret void
}}
"""
    pool = WorkerPool(1)
    try:
        with pytest.raises(WorkerDiedError, match="while compiling tensor") as error:
            pool.run(CompileJob("tensor", text, tw.Target("cuda", arch="sm_75"), "image"))
        assert "Cannot select" in str(error.value)
        data = pool.run(CompileJob("tensor", text, tw.Target("cuda", arch="sm_80"), "image"))
        assert b"mma.sync" in data
    finally:
        pool.close()


def test_cache_keys_depend_on_the_assembler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Images cached without the assembler are not reused with it."""
    with_it = target_key(tw.Target("cuda"))
    monkeypatch.setattr(build_objects, "assembler_version", lambda: "")
    assert target_key(tw.Target("cuda")) != with_it
    assert target_key(tw.Target("cpu")) not in (with_it, target_key(tw.Target("cuda")))
