"""Exported GPU kernels: files and manifests that suffice for programs with the CUDA driver API."""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError
from tilewright.codegen.export.link import run_linker
from tilewright.codegen.nvidia import ptxas
from tilewright.codegen.nvidia.ptxas import AssemblerMissingError

from tests.codegen.gpu import kernels
from tests.codegen.runtime.cuda.conftest import driver  # noqa: F401  # the emulated GPU
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
SM_80 = tw.Target("cuda", arch="sm_80")
NAMES = ("elementwise", "softmax", "matmul", "tensor_matmul")


def read(folder: Path) -> dict:
    return json.loads((folder / "model.json").read_text())


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return a function that exports a kernel once per kind."""
    made: dict[tuple[str, str], Path] = {}

    def export(name: str, kind: str) -> Path:
        if (name, kind) not in made:
            folder = tmp_path_factory.mktemp(name) / kind
            program = getattr(kernels, name)()
            made[name, kind] = tw.export(program, folder, target=SM_80, kind=kind).directory
        return made[name, kind]

    return export


@pytest.mark.parametrize("name", NAMES)
def test_ptx_agrees_with_the_manifest(exported, name):
    folder = exported(name, "ptx")
    (kernel,) = read(folder)["kernels"]
    text = (folder / kernel["file"]).read_text()
    entry = re.search(rf"\.visible \.entry {kernel['entry']}\((.*?)\)", text, re.DOTALL)
    assert entry is not None
    assert entry[1].count(".param") == len(kernel["parameters"])
    x, y, z = kernel["block"]
    assert f".maxntid {x}, {y}, {z}" in text
    assert ".target sm_80" in text


def test_the_manifest_of_a_kernel(exported):
    manifest = read(exported("softmax", "ptx"))
    assert (manifest["schema"], manifest["kind"], manifest["arch"]) == (1, "ptx", "sm_80")
    (kernel,) = manifest["kernels"]
    resources = kernel.pop("resources")
    assert resources["spill_stores"] == 0
    narrow = kernel.pop("version_32_bit")
    assert narrow["entry"] == "softmax$i32"
    assert narrow["requires"][:2] == kernel["requires"]
    assert any("rows * columns" in limit for limit in narrow["requires"][2:])
    assert all(limit.endswith("< 2**31") for limit in narrow["requires"][2:])
    assert ".entry softmax$i32(" in (exported("softmax", "ptx") / kernel["file"]).read_text()
    address = {"form": "address", "type": "f32[rows, columns]", "alignment": 16}
    assert kernel == {
        "name": "softmax", "file": "softmax.ptx", "entry": "softmax",
        "parameters": [
            {"name": "x", "access": "in", **address}, {"name": "y", "access": "out", **address},
            {"name": "rows", "form": "i64"}, {"name": "columns", "form": "i64"},
        ],
        "grid": ["rows", "1", "1"], "block": [256, 1, 1], "dynamic_shared": 0,
        "requires": ["rows >= 1", "columns >= 1"],
    }  # fmt: skip
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    example = json.loads(shown)
    assert example == {key: kernel[key] for key in example}


PADDED = """
n = symbols("n", lower=16, multiple_of=16)
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(n, m), f32]):
    fact(m <= n, "narrow", at="model.py:3", by="entry_check")
    y = softmax(x, axis=-1)
    return y
"""


def test_the_manifest_lists_the_preconditions_of_a_kernel(tmp_path):
    made = tw.export(tw.parse(PADDED), tmp_path / "made", target=SM_80, kind="ptx").directory
    (kernel,) = read(made)["kernels"]
    assert {"n >= 16", "n % 16 == 0", "m <= n"} <= set(kernel["requires"])


HEADER = """
#include <stdint.h>
typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef void *CUmodule, *CUfunction, *CUstream;
enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuCtxSynchronize(void);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);
"""


def test_the_launch_in_c_on_the_page_runs(exported, driver, tmp_path):  # noqa: F811
    """The function runs unchanged with the emulated driver, which interprets kernels (SIMT)."""
    (code,) = (c for c in re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL) if "cuLaunchKernel" in c)
    (tmp_path / "launch.c").write_text(HEADER + code)
    made = tmp_path / "launch.so"
    run_linker(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(tmp_path / "launch.c"),
                "-Wl,-z,lazy", "-o", str(made)])  # fmt: skip
    driver.emulate(kernels.softmax())
    gpu, run = Driver(driver.library), ctypes.CDLL(str(made)).softmax
    x = np.random.default_rng(0).standard_normal((7, 300)).astype(np.float32)
    image = (exported("softmax", "ptx") / "softmax.ptx").read_bytes() + b"\0"
    words = [ctypes.c_uint64(v) for v in (gpu.upload(x), gpu.upload(np.zeros_like(x)), 7, 300)]
    assert run(image, *words) == 0
    wanted = np.exp(x - x.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(gpu.download(words[1].value, x), wanted, rtol=1e-5, atol=1e-7)
    assert run(image, *words[:3], ctypes.c_uint64(0)) == 1


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_the_manifest_contains_the_sha256_of_every_file(exported, kind):
    folder = exported("softmax", kind)
    files = read(folder)["files"]
    assert set(files) == {p.name for p in folder.iterdir()} - {"model.json"}
    for name, facts in files.items():
        data = (folder / name).read_bytes()
        assert facts == {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def value(term: str, sizes: dict[str, int]) -> int:
    """Evaluate a term of a grid as described in docs/abi.md."""
    known = {"ceildiv": ceildiv, "min": min, "max": max, **sizes}
    return eval(term, {"__builtins__": {}}, known)


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (7, 300), (33, 256)])
def test_a_launch_by_the_manifest_alone(exported, driver, kind, rows, columns):  # noqa: F811
    """Load the file and launch it with driver functions; compare with NumPy."""
    folder = exported("softmax", kind)
    (kernel,) = read(folder)["kernels"]
    driver.emulate(kernels.softmax())
    gpu = Driver(driver.library)
    function = gpu.load((folder / kernel["file"]).read_bytes(), kernel["entry"])
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    sizes = {"rows": rows, "columns": columns}
    addresses = {"x": gpu.upload(x), "y": gpu.upload(np.zeros_like(x))}
    values = {**addresses, **sizes}
    arguments = [ctypes.c_uint64(values[p["name"]]) for p in kernel["parameters"]]
    grid = [value(term, sizes) for term in kernel["grid"]]
    gpu.launch(function, (*grid, *kernel["block"]), kernel["dynamic_shared"], arguments)
    wanted = np.exp(x - x.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(gpu.download(addresses["y"], x), wanted, rtol=1e-5, atol=1e-7)


class Driver:
    """The CUDA driver, called as by a C program."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        assert getattr(self.library, name)(*arguments) == 0, name

    def load(self, image: bytes, entry: str) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def upload(self, array: np.ndarray) -> int:
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(array.nbytes)
        self.call("cuMemAlloc_v2", ctypes.byref(address), size)
        self.call("cuMemcpy", address, ctypes.c_uint64(array.ctypes.data), size)
        return address.value

    def download(self, address: int, like: np.ndarray) -> np.ndarray:
        made = np.empty_like(like)
        target, size = ctypes.c_uint64(made.ctypes.data), ctypes.c_size_t(made.nbytes)
        self.call("cuMemcpy", target, ctypes.c_uint64(address), size)
        return made

    def launch(self, function, dims, shared, arguments) -> None:
        words = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        self.call("cuLaunchKernel", function, *dims, shared, None, words, None)


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_gpu_kinds_require_a_cuda_target(tmp_path, kind):
    with pytest.raises(ExportError, match=rf"(?s)kind '{kind}' requires a CUDA target.*sm_80"):
        tw.export(kernels.softmax(), tmp_path / "made", kind=kind, target="cpu")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["shared", "static", "object", "wasm"])
def test_library_kinds_require_a_cpu_target(tmp_path, kind):
    with pytest.raises(ExportError, match=r'(?s)requires a CPU target, got .*kind="ptx"'):
        tw.export(kernels.softmax(), tmp_path / "made", kind=kind, target=SM_80)


def test_machine_code_without_the_assembler(tmp_path, monkeypatch):
    monkeypatch.setattr(ptxas, "assembler", lambda: None)
    monkeypatch.setattr("tilewright.codegen.nvidia.image.Image.from_bytes", without_code)
    with pytest.raises(AssemblerMissingError, match="nvidia-cuda-nvcc"):
        tw.export(kernels.softmax(), tmp_path / "made", kind="cubin", target=SM_80)
    assert list(tmp_path.iterdir()) == []


def without_code(_data: bytes):
    from tilewright.codegen.nvidia import Image

    return Image("sm_80", "// PTX")
