"""Linked libraries: unwind tables, symbols for debuggers, marks, and sections of functions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError
from tilewright.codegen.export.link import run_linker

from tests.codegen.export.test_shared import PROGRAMS
from tests.codegen.export.test_threads import TEXT


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product of two matrices as a static library."""
    made = tmp_path_factory.mktemp("link") / "made"
    target = tw.Target("cpu", arch="x86_64")
    return tw.export(tw.parse(TEXT), made, kind="static", target=target, name="product").directory


def listed(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_shared_library_has_unwind_tables_a_build_id_marks_and_symbols(tmp_path: Path) -> None:
    target, parsed = tw.Target("cpu", arch="x86_64"), tw.parse(TEXT)
    for debug in ("symbols", "none"):
        made = tw.export(parsed, tmp_path / debug, target=target, name="m", debug=debug)
        library = made.directory / "libm.so"
        frames = listed("readelf", "--debug-dump=frames", library).count(" FDE ")
        notes = listed("readelf", "-n", library)
        assert "Build ID: " in notes
        assert "IBT, SHSTK" in notes
        rows = [line.split() for line in listed("nm", library).splitlines()]
        functions = {row[-1] for row in rows if row[-2] in ("t", "T")}
        if debug == "symbols":
            assert {"m.matmul", "m_main"} <= functions
            assert frames >= len(functions)
        else:
            assert not functions
        assert frames > 50
    with pytest.raises(ExportError, match="unknown value 'lines' of debug"):
        tw.export(parsed, tmp_path / "lines", debug="lines")


def test_a_debugger_shows_the_callers_of_a_kernel(static: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    source = tmp_path / "program.c"
    source.write_text(CALLER)
    library = str(static / "libproduct.a")
    run_linker(["cc", f"-I{static}", str(source), library, "-o", str(program)])
    done = subprocess.run(
        ["gdb", "-batch", "-ex", "break product.matmul", "-ex", "run", "-ex", "bt", program],
        cwd=static, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    frames = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert "matmul" in frames[0], done.stdout + done.stderr
    assert "product_main" in frames[-2]
    assert " main " in frames[-1]


CALLER = """
#define TILEWRIGHT_STDIO
#include "product.h"

int main(void) {
  static float a[64 * 64];
  int64_t bytes, shape[2] = {64, 64};
  void *weights = tw_read_file("product.safetensors", &bytes);
  tw_runtime runtime = tw_stdlib_runtime();
  tw_tensor t = tw_describe(a, shape, 2, 2, 32);
  product_model *model;
  tw_result *c;
  if (product_open(&runtime, weights, bytes, &model, 0)) return 1;
  if (product_main(model, &t, &t, &c, 0)) return 2;
  tw_release(c);
  product_close(model);
  free(weights);
  return 0;
}
"""


def test_an_exception_of_the_host_passes_through_a_call(static: Path, tmp_path: Path) -> None:
    """The model can be called afterward, and closing it frees all but the results of such calls."""
    program, library = tmp_path / "throws", static / "libproduct.a"
    source = PROGRAMS / "throws.cpp"
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{static}", source, library,
         "-o", program],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program], cwd=static, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20 calls, 10 caught, 10 returned, 0 models, 10 blocks\n"


def test_a_linker_removes_functions_that_a_program_does_not_use(
    static: Path, tmp_path: Path
) -> None:
    source = tmp_path / "program.c"
    source.write_text(CALLER)
    names: list[set[str]] = []
    for flag in ("-Wl,--no-gc-sections", "-Wl,--gc-sections"):
        program = tmp_path / "program"
        library = str(static / "libproduct.a")
        run_linker(["cc", flag, f"-I{static}", str(source), library, "-o", str(program)])
        assert subprocess.run([program], cwd=static, check=False).returncode == 0
        names.append({line.split()[-1] for line in listed("nm", program).splitlines()})
    unused = {"product.tw_dgemm", "product.tw_copy_with_cuda", "product.tw_pool_worker"}
    assert unused <= names[0]
    assert not unused & names[1]
    assert {"product.matmul", "product.tw_report"} <= names[1]
