"""The thread pool of ``tilewright.h``."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import tilewright as tw
from tilewright.codegen.export.link import run_linker

from tests.codegen.export.test_shared import PROGRAMS
from tests.codegen.runtime.cuda.pretended import compiler

TEXT = """
n, m, k = symbols("n m k", lower=1)

@graph_func
def main(a: Tensor[(n, k), f32], b: Tensor[(k, m), f32]):
    c = matmul(a, b)
    return c
"""
OTHER = TEXT.replace("return c", "d = multiply(c, c)\n    return d")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("threads")
    target = tw.Target("cpu", threads=4)
    folder = made / "product"
    tw.export(tw.parse(TEXT), folder, target=target, kind="static", name="product")
    tw.export(tw.parse(OTHER), made / "other", target=target, kind="static", name="other")
    for name in ("libother.a", "other.h", "other.safetensors"):
        (made / "other" / name).rename(folder / name)
    return folder


def build(directory, name: str, *more: str, headers=None):
    """Compile the program; zig would first build its thread sanitizer, in a minute."""
    program = directory / name
    flags = [
        "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", *more,
        f"-I{headers or directory}", str(PROGRAMS / "threads.c"), str(directory / "libproduct.a"),
        str(directory / "libother.a"), "-o", str(program),
    ]  # fmt: skip
    if "-fsanitize=thread" in more:
        subprocess.run([*compiler(), *flags], check=True)
    else:
        run_linker(["cc", *flags])
    return program


@pytest.fixture(scope="module")
def program(directory):
    return build(directory, "program")


def run(program, *numbers: int) -> str:
    done = subprocess.run(
        [program, *map(str, numbers)],
        cwd=program.parent, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("threads", "how"), [(1, "serial"), (2, "parallel"), (4, "parallel")])
def test_results_do_not_depend_on_threads(program, threads, how):
    assert run(program, threads) == f"0 wrong, {how}"


def test_callers_of_two_models_share_a_pool(program):
    assert run(program, 3, 6, 10) == "0 wrong, parallel"


def test_more_threads_than_memory_is_reserved_for(directory, program):
    wanted = "19 expected 1 to 4 threads, got 5"
    assert run(program, 5) == wanted
    assert "#define product_MOST_THREADS 4\n" in (directory / "product.h").read_text()


def test_by_default_the_number_of_threads_does_not_depend_on_the_exporting_machine(tmp_path):
    """Scratch is reserved for the threads of the runtime, here more than this machine has cores."""
    folder = tmp_path / "product"
    for text, name in ((TEXT, "product"), (OTHER, "other")):
        made = tw.export(tw.parse(text), tmp_path / name, kind="static", name=name).directory
        for path in made.iterdir():
            shutil.copy(path, tmp_path)
    program = build(tmp_path, "program")
    assert run(program, 17, 3, 4) == "0 wrong, parallel"
    assert "#define product_MOST_THREADS 65536\n" in (folder / "product.h").read_text()


CANCEL = """
#define TILEWRIGHT_STDIO
#include "product.h"

static int32_t answer, parts;

/* Run half of the loop, then return the answer; 0: run it all. */
static int32_t cancel(void *context, tw_body body, int64_t stop, void *environment) {
  (void)context;
  parts++;
  int32_t code = body(environment, 0, answer ? stop / 2 : stop, 0);
  return code ? code : answer;
}

int main(void) {
  enum { SIDE = 300 };
  static float a[SIDE * SIDE];
  int64_t bytes, shape[2] = {SIDE, SIDE};
  void *weights = tw_read_file("product.safetensors", &bytes);
  tw_runtime runtime = tw_stdlib_runtime();
  tw_tensor ta = tw_describe(a, shape, 2, 2, 32);
  product_model *model;
  tw_result *c;
  tw_error error;
  runtime.parallel = cancel;
  runtime.threads = 2;
  if (product_open(&runtime, weights, bytes, &model, &error)) return 1;
  int32_t answers[] = {1, 2, 3, 4, 5, -7, 0};
  for (int k = 0; k < 7; k++) {
    answer = answers[k];
    int32_t code = product_main(model, &ta, &ta, &c, &error);
    printf("%d %s %d %d\\n", code, error.message, (int)product_live_results(model), c != 0);
  }
  tw_release(c);
  product_close(model);
  free(weights);
  return !parts || product_live_models();
}
"""


def test_a_code_of_the_host_cancels_the_call(directory, tmp_path):
    """Also a code that the library uses for its own errors."""
    source, program = tmp_path / "cancel.c", directory / "cancel"
    source.write_text(CANCEL)
    library = str(directory / "libproduct.a")
    run_linker(
        ["cc", "-Wall", "-Wextra", "-Werror", f"-I{directory}", str(source), library,
         "-o", str(program)]
    )  # fmt: skip
    lines = run(program).splitlines()
    assert lines.pop() == "0  1 1"
    for line, answer in zip(lines, (1, 2, 3, 4, 5, -7), strict=True):
        assert line.startswith("21 function 'main', kernel '")
        assert line.endswith(f"): 'parallel' of the runtime returned code {answer} 0 0")


def test_the_thread_sanitizer_finds_nothing(directory):
    """Every access of the pool is ordered: two and four threads, one and several callers."""
    for name, extra in (("checked", "-U_GNU_SOURCE"), ("checked_cores", "-D_GNU_SOURCE")):
        program = build(directory, name, "-fsanitize=thread", "-g", extra)
        for threads, callers in ((2, 1), (4, 3)):
            assert run(program, threads, callers, 4) == "0 wrong, parallel"


def test_the_thread_sanitizer_detects_a_missing_wait(directory, tmp_path):
    """A pool that does not wait for its workers is detected, so the test above is effective."""
    text = (directory / "tilewright.h").read_text()
    waiting = "  tw_pool_await(p);\n"
    assert text.count(waiting) == 1
    (tmp_path / "tilewright.h").write_text(text.replace(waiting, ""))
    for name in ("product.h", "other.h"):
        shutil.copy(directory / name, tmp_path)
    program = build(directory, "broken", "-fsanitize=thread", headers=tmp_path)
    done = subprocess.run(
        [program, "4", "1", "40"], cwd=directory, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip  # on a busy machine, the caller may execute most regions alone
    assert done.returncode != 0 or not done.stdout.startswith("0 wrong")


def test_the_header_is_cpp_as_well(directory, tmp_path):
    source = tmp_path / "program.cpp"
    source.write_text(
        '#define TILEWRIGHT_PTHREADS\n#include "tilewright.h"\n'
        "tw_runtime runtime() { return tw_pool_runtime(tw_pool_open(2)); }\n"
    )
    made = tmp_path / "program.o"
    run_linker(["c++", "-Wall", "-Werror", f"-I{directory}", "-c", str(source), "-o", str(made)])
    assert made.stat().st_size > 0
