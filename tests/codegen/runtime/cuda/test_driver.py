"""Errors on machines without a driver, a GPU, or PyCUDA."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.codegen.runtime.cuda.pretended import build

ROOT = Path(__file__).parents[4]

PROGRAM = '''
import tilewright as tw
sch = tw.Schedule(tw.parse("""
@prim_func
def one(y: Out[(4,), f32]):
    for i in range(4):
        with block("b"):
            vi = spatial(i)
            y[vi] = 1.0
"""))
(i,) = sch.get_loops(sch.get_block("b"))
sch.bind(i, "threadIdx.x")
try:
    tw.compile(sch, "cuda")()
except tw.TilewrightError as error:
    print(type(error).__name__, "|", error)
'''


def error_text(setup: str = "", **environment: str) -> str:
    """Return the error of a program for CUDA, run in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(setup) + PROGRAM],
        capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout


def without(module: str) -> str:
    """Return source code that makes imports of a package fail as if it were not installed."""
    return f"""
    import sys

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == {module!r}:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

    sys.meta_path.insert(0, Missing())
    """


def test_no_driver() -> None:
    text = error_text()
    assert text.startswith("DeviceUnavailableError | no CUDA driver: libcuda.so.1")
    assert "install the NVIDIA driver" in text
    assert "docs/gpu.md" in text


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("driver")))


def test_no_pycuda(library: str) -> None:
    text = error_text(without("pycuda"), LD_PRELOAD=library)
    assert text.startswith("DeviceUnavailableError | PyCUDA is not installed")
    assert "pip install pycuda" in text


def test_no_gpu(library: str) -> None:
    no_devices = "import ctypes; ctypes.CDLL('libcuda.so.1').fake_devices(0)\n"
    text = error_text(no_devices, LD_PRELOAD=library)
    assert text.startswith("DeviceUnavailableError | the CUDA driver cannot be initialized")
    assert "no CUDA-capable device" in text
    assert "nvidia-smi" in text


def test_a_driver_without_required_functions(tmp_path: Path) -> None:
    from tests.codegen.runtime.cuda.pretended import compiler

    source = tmp_path / "empty.c"
    source.write_text("int cuInit(unsigned flags) { return 0; }")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(
        [*compiler(), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source],
        check=True,
    )
    text = error_text(LD_PRELOAD=str(library))
    message = "the CUDA driver does not have the functions cuCtxPopCurrent_v2"
    assert text.startswith(f"DeviceUnavailableError | {message}")
    assert "newer" in text
