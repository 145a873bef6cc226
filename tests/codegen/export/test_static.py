"""Static libraries and objects: unique internal symbols, and no undefined ones."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.errors import LinkError
from tilewright.codegen.export.link import run_linker
from tilewright.codegen.export.symbols import rename
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_package import loaded
from tests.codegen.export.test_shared import PROGRAMS

TEXT = """
n = symbols("n", lower=0)

constant("factor", ({size},), f32)

@graph_func
def main(x: Tensor[(n,), f32]):
    y = multiply(x, const("factor"))
    return y
"""


def scaling(factor: float, size: int = 1) -> tw.ir.module.Module:
    array = np.full(size, factor, np.float32)
    constants = {"factor": Constant((size,), f32, lambda: array)}
    return parse(TEXT.replace("{size}", str(size)), constants=constants)


def listed(path) -> set[str]:
    """Return the global symbols that a library or object defines."""
    done = subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[2] for row in rows if len(row) == 3}


@pytest.mark.parametrize("kind", ["static", "object"])
def test_two_models_in_one_program(tmp_path, kind):
    made = [
        tw.export(scaling(factor), tmp_path / name, kind=kind, name=name).directory
        for name, factor in (("first", 2), ("second", -3))
    ]
    libraries = [
        next(str(p) for p in folder.iterdir() if p.suffix in (".a", ".o")) for folder in made
    ]
    program = tmp_path / "two"
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *(f"-I{m}" for m in made),
            str(PROGRAMS / "two.c"), *libraries, "-o", str(program),
        ]
    )  # fmt: skip
    weights = [next(m.glob("*.safetensors")) for m in made]
    done = subprocess.run([program, *weights], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2 -3\n4 -6\n6 -9\n")


CLASHING = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] + 1.0

@prim_func
def k_f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * 3.0
"""
"""As model ``k``, function ``f`` has the symbol ``k_f``, which is the name of the other kernel."""


def test_a_function_whose_symbol_is_the_name_of_another_function(tmp_path):
    shared = tw.export(parse(CLASHING), tmp_path / "shared", name="k").directory
    model = loaded(shared, "k")
    x = np.arange(4, dtype=np.float32)
    assert (model.f(x).tolist(), model.k_f(x).tolist()) == ([1, 2, 3, 4], [0, 3, 6, 9])
    made = tw.export(parse(CLASHING), tmp_path / "static", kind="static", name="k").directory
    source = tmp_path / "use.c"
    source.write_text(CLASHING_USE)
    program = tmp_path / "use"
    run_linker(
        ["cc", f"-I{made}", str(source), str(made / "libk.a"), "-o", str(program)]
    )  # fmt: skip
    done = subprocess.run([program], cwd=made, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "3 6\n")


CLASHING_USE = """
#define TILEWRIGHT_STDIO
#include "k.h"
int main(void) {
  int64_t bytes, shape[1] = {1};
  float value = 2;
  void *weights = tw_read_file("k.safetensors", &bytes);
  tw_runtime runtime = tw_stdlib_runtime();
  tw_tensor x = tw_describe(&value, shape, 1, 2, 32);
  tw_result *y, *z;
  k_model *m;
  tw_error error;
  if (k_open(&runtime, weights, bytes, &m, &error)) return 1;
  if (k_f(m, &x, &y, &error) || k_k_f(m, &x, &z, &error)) return 2;
  printf("%g %g\\n", *(float *)y->tensor.data, *(float *)z->tensor.data);
  tw_release(y);
  tw_release(z);
  k_close(m);
  free(weights);
  return 0;
}
"""


@pytest.mark.parametrize("kind", ["static", "object"])
def test_a_shared_library_of_the_user_does_not_export_the_model(tmp_path, kind):
    made = tw.export(scaling(2), tmp_path / "m", kind=kind, name="m").directory
    source = tmp_path / "own.c"
    source.write_text('#include "m.h"\nint own(void) { return m_abi_version(); }\n')
    library = tmp_path / "libown.so"
    (part,) = (str(p) for p in made.iterdir() if p.suffix in (".a", ".o"))
    run_linker(["cc", "-shared", f"-I{made}", str(source), part, "-o", str(library)])
    done = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in done.stdout.splitlines()}
    assert "own" in names
    assert not {n for n in names if n.startswith("m_")}


HEADERS = """
#define TW_EXPORT __attribute__((annotate("own")))
#include "m.h"
#define TILEWRIGHT_STDIO
#include "m.h"
#include "tilewright.h"
tw_runtime runtime(void) { return tw_stdlib_runtime(); }
#define TILEWRIGHT_PTHREADS
#include "tilewright.h"
tw_pool *pool(void) { return tw_pool_open(2); }
#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
_Static_assert(sizeof(TEXT(TW_EXPORT)) == sizeof "__attribute__((annotate(\\"own\\")))", "own");
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_later_includes_add_parts_of_the_header_and_the_user_defines_the_export(tmp_path, language):
    made = tw.export(scaling(2), tmp_path / "m", kind="static", name="m").directory
    source = tmp_path / ("use.c" if language == "c" else "use.cpp")
    text = HEADERS if language == "c" else HEADERS.replace("_Static_assert", "static_assert")
    source.write_text(text)
    driver = {"c": "cc", "c++": "c++"}[language]
    run_linker(
        [driver, "-Wall", "-Wextra", "-Werror", f"-I{made}", "-c", str(source),
         "-o", str(tmp_path / "use.o")]
    )  # fmt: skip


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_every_symbol_begins_with_the_name_of_the_model(tmp_path, arch):
    target = tw.Target("cpu", arch=arch)
    made = tw.export(scaling(2, 64), tmp_path / "m", kind="object", name="m", target=target)
    names = listed(made.directory / "m.o")
    inner = {n for n in names if n.startswith("m.")}
    own = ("open", "close", "main", "abi_version", "live_models", "live_results", "trim",
           "main_into", "main_needs", "describe")  # fmt: skip
    assert names - inner == {f"m_{n}" for n in own}
    assert {"m.main__entry", "m.tw_report"} <= inner


def objects(tmp_path, **sources: str) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for name, source in sources.items():
        (tmp_path / f"{name}.c").write_text(source)
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-O1",
            "-c",
            f"{name}.c",
            "-o",
            f"{name}.o",
        ]
        subprocess.run(command, cwd=tmp_path, check=True)
        made[name] = (tmp_path / f"{name}.o").read_bytes()
    return made


def test_undefined_symbols_are_listed(tmp_path):
    parts = objects(tmp_path, a="double sin(double); double m_f(double x) { return sin(x); }")
    with pytest.raises(LinkError, match="undefined symbols: sin"):
        rename(parts, "m", {"a": ["m_f"]})


def test_renamed_objects_still_find_each_other(tmp_path):
    parts = objects(
        tmp_path,
        a="int inner(int); int m_twice(int x) { return inner(x); }",
        b="static int own(int x) { return x; } int inner(int x) { return 2 * own(x); }",
        use="int m_twice(int); int main(void) { return m_twice(21) != 42; }",
    )
    use = parts.pop("use")
    for name, data in {**rename(parts, "m", {"a": ["m_twice"]}), "use": use}.items():
        (tmp_path / f"{name}.o").write_bytes(data)
    run_linker(["cc", *(str(tmp_path / f"{n}.o") for n in "ab"), str(tmp_path / "use.o"),
                "-o", str(tmp_path / "program")])  # fmt: skip
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0
    assert listed(tmp_path / "b.o") == {"m.inner"}


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" * 50])
def test_files_that_are_not_objects(data):
    with pytest.raises(LinkError, match="is not a 64-bit ELF object file"):
        rename({"x": data}, "m", {})


GROWING = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 16), f32], w: Tensor[(16, 16), f32]):
    a: Tensor[(n, 16), f32] = matmul(x, w)
    b: Tensor[(n, 16), f32] = matmul(a, w)
    c: Tensor[(n, 16), f32] = matmul(b, w)
    return c
"""


def test_a_growing_cache_rarely_allocates(tmp_path):
    made = tw.export(parse(GROWING), tmp_path / "growing", kind="static", name="growing").directory
    program = made / "program"
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{made}",
            str(PROGRAMS / "growing.c"), str(made / "libgrowing.a"), "-lm", "-o", str(program),
        ]
    )  # fmt: skip
    done = subprocess.run([program], cwd=made, capture_output=True, text=True, check=True)
    wrong, allocations = map(int, done.stdout.split())
    assert wrong == 0
    assert allocations <= 16


CONVERTED = """
@graph_func
def main(x: Tensor[(8,), f32]):
    a = cast(x, dtype="bf16")
    b = cast(x, dtype="f8_e4m3")
    c = cast(x, dtype="f8_e5m2")
    d = cast(x, dtype="i4")
    e = cast(x, dtype="u16")
    return a, b, c, d, e
"""


def test_results_have_the_dtype_codes_of_dlpack(tmp_path):
    """Also those of dtypes that NumPy lacks, which Python reads as unsigned integers."""
    made = tw.export(parse(CONVERTED), tmp_path / "made", kind="static", name="dtypes").directory
    (library,), program = made.glob("*.a"), tmp_path / "dtypes"
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{made}",
            str(PROGRAMS / "dtypes.c"), str(library), "-o", str(program),
        ]
    )  # fmt: skip
    weights = next(made.glob("*.safetensors"))
    done = subprocess.run([program, weights], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "4 16 1 1.1: 80 3f 00 c0",
            "10 8 1 1.1: 38 c0 44 30",
            "12 8 1 1.1: 3c c0 42 38",
            "0 4 1 1.1: e1 03 10 32",
            "1 16 1 1.1: 01 00 00 00",
        ],
    )
