"""docs/abi.md agrees with the header and the runtime table. A change requires a new version."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest

import tilewright as tw
from tilewright.codegen.export import KINDS
from tilewright.codegen.export.describe import SCHEMA
from tilewright.codegen.export.link import NATIVE, run_linker
from tilewright.ir.loop.nodes import AccessMode
from tilewright.ir.thread import runtime_table

ROOT = Path(tw.__file__).parent
PAGE = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
HEADER = (NATIVE / "tilewright.h").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """Return the rows of the table of a section, without its header."""
    lines = [x for x in section(title).splitlines() if x.startswith("|")]
    return [[c.strip().strip("`") for c in line.strip("|").split("|")] for line in lines[2:]]


def test_the_slots_of_the_table():
    documented = {name: int(offset) for name, offset, _ in rows("The runtime table")}
    slots = {n: v for n, v in vars(runtime_table).items() if n.isupper() and isinstance(v, int)}
    for other in ("CURRENT", "CODE_BOUNDS", "CODE_PARALLEL", "CODE_RANGE", "CODE_RANGE_UNSIGNED"):
        del slots[other]
    assert documented == slots
    assert list(documented.values()) == list(range(0, runtime_table.SIZE + 8, 8))


def test_the_signatures_of_the_table():
    source = (ROOT / "ir" / "thread" / "runtime_table.py").read_text(encoding="utf-8")
    for name, _, of in rows("The runtime table")[:-1]:
        documented = re.search(rf'^{name}: Final = \d+\n"""``([^`]+)``', source, re.MULTILINE)
        assert documented is not None, name
        assert documented[1] == of, name


def test_the_error_codes():
    documented = {name: int(code) for code, name, _ in rows("Errors")}
    assert documented == {
        n: int(v) for n, v in re.findall(r"\b(TW_OK|TW_ERROR_\w+) = (\d+)", HEADER)
    }
    assert list(documented.values()) == list(range(len(documented)))


def test_the_versions():
    assert re.search(r"#define TW_ABI_VERSION (\d+)", HEADER)[1] == "2"
    assert "version 2\n" in PAGE.splitlines(keepends=True)[0]
    assert f"(`schema` {SCHEMA})" in PAGE
    loader = (NATIVE / "loader.py").read_text(encoding="utf-8")
    assert f"\nSCHEMA = {SCHEMA}\nABI = 2\n" in loader
    assert "\nconst ABI = 2;\n" in (NATIVE / "loader.mjs").read_text(encoding="utf-8")


def test_the_kinds_and_the_access_modes():
    forms = re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(forms[: len(KINDS) - 1]))) == set(KINDS)
    assert [mode for mode, _ in rows("Parameters")] == ["in", "out", "inout", "state"]
    assert set(get_args(AccessMode)) <= {"in", "out", "inout", "state"}


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "wasm32-freestanding"])
def test_the_offsets_of_the_structures(tmp_path, triple):
    """The compiler itself compares the page with the header."""
    wide = "wasm" not in triple
    checks = [
        f'_Static_assert(__builtin_offsetof({struct}, {field}) == {offset}, "{field}");'
        for struct, field, offset in rows("Structures")
        if wide or struct not in ("tw_runtime", "tw_call", "tw_needs")
    ]
    checks.append('_Static_assert(sizeof(tw_error) == 512 && sizeof(tw_tensor) == 48, "sizes");')
    assert len(checks) > 18
    source = tmp_path / "offsets.c"
    source.write_text('#include "tilewright.h"\n' + "\n".join(checks) + "\n")
    made = ["-c", str(source), "-o", str(tmp_path / "offsets.o")]
    run_linker(["cc", "-target", triple, "-std=c11", "-ffreestanding", f"-I{NATIVE}", *made])


def test_every_field_is_on_the_page():
    fields = {(s, f) for s, f, _ in rows("Structures")}
    for name in ("tw_tensor", "tw_result", "tw_error", "tw_runtime", "tw_call", "tw_needs"):
        body = re.search(rf"typedef struct {name} \{{(.*?)\n\}} {name};", HEADER, re.DOTALL)[1]
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
        body = re.sub(r"TW_WORD\([^,]+, (\w+)\)", r"\1", body)
        body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)
        found = {n for d in body.split(";") for n in re.findall(r"(\w+)(?:\[\d+\])?(?=,|\s*$)", d)}
        assert found == {f for s, f in fields if s == name}, name


def test_the_header_is_also_cpp(tmp_path, exported):
    source = tmp_path / "use.cpp"
    source.write_text('#define TILEWRIGHT_STDIO\n#include "small.h"\nint main() { return 0; }\n')
    made = ["-c", str(source), "-o", str(tmp_path / "use.o")]
    run_linker(["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{exported}", *made])


@pytest.mark.parametrize("pool", [False, True])
def test_the_examples_of_the_page_run(tmp_path, pool):
    """The C program at the top, in a main function, without and with the lines of the pool."""
    text = """
n = symbols("n", lower=0)

@prim_func
def main(x: Buffer[(n, 24), f32], y: Out[(n, 24), f32]):
    for i in range(n):
        for j in range(24):
            y[i, j] = x[i, j] * 2
"""
    made = tw.export(tw.parse(text), tmp_path / "dist", kind="static").directory
    code, _, threads, *_ = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
    head, body = code.split("\n\n", 1)
    if pool:
        head, rest = threads.split("\n\n", 1)
        opened, closed = rest.split("...\n")
        body = body.replace("tw_runtime runtime = tw_stdlib_runtime();\n", opened)
        body = body.replace("model_close(m);\n", closed)
        assert "tw_pool_open" in body
        assert "tw_pool_close" in body
    print_it = 'printf("%g\\n", ((float *)y->tensor.data)[71]);\ntw_release(y);'
    body = body.replace("tw_release(y);", print_it)
    data = "static float data[72];\n"
    source = tmp_path / "use.c"
    source.write_text(f"{head}\n{data}int main(void) {{\ndata[71] = 21;\n{body}return 0;\n}}\n")
    program = str(tmp_path / "use")
    library = str(made / "libmodel.a")
    run_linker(["cc", "-std=c11", "-pthread", f"-I{made}", str(source), library, "-o", program])
    done = subprocess.run([program], cwd=made, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_the_service_of_the_guide_runs(tmp_path):
    """The C program of docs/production.md, with a model that doubles its input."""
    text = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 24), f32]):
    y: Tensor[(n, 24), f32] = multiply(x, 2.0)
    return y
"""
    made = tw.export(tw.parse(text), tmp_path / "dist", kind="static").directory
    guide = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    code, *_ = re.findall(r"```c\n(.*?)```", guide, re.DOTALL)
    source, program = tmp_path / "use.c", tmp_path / "use"
    source.write_text(code)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{made}"]
    run_linker(["cc", *flags, str(source), str(made / "libmodel.a"), "-o", str(program)])
    done = subprocess.run([program], cwd=made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [f"{1 << k} 42" for k in range(7)]
