"""Functions from Python and from shared libraries, called by compiled programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import LibraryError
from tilewright.codegen.libraries import MissingSymbolError, library_address
from tilewright.ir.graph.libraries import (
    LibraryFunction,
    UnknownLibraryFunctionError,
    library_function,
    register_library_function,
)
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.script import parse
from tilewright.schedules.verify import VerificationError

SOURCE = r"""
#include <stdint.h>
#include <string.h>
struct operand { void *data; int64_t rank; const int64_t *shape; int64_t dtype; };
struct call { const int64_t *attributes; int64_t count; int64_t inputs; };

int32_t scale(void *user, const struct operand *operands, int64_t count) {
  const struct call *call = (const struct call *)(operands + count);
  double by, plus = 0;
  (void)user;
  if (count != 2 || call->inputs != 1 || call->count != 2 || operands[0].rank != 1) return 3;
  memcpy(&by, &call->attributes[0], 8);
  plus = (double)call->attributes[1];
  for (int64_t i = 0; i < operands[0].shape[0]; i++)
    ((float *)operands[1].data)[i] = (float)(by * ((float *)operands[0].data)[i] + plus);
  return 0;
}
"""

PROGRAM = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    y: Tensor[(n,), f32] = call_library("{name}", x{attributes})
    return y
"""

REFERENCE = """
n = symbols("n", lower=0)

@prim_func
def scale(x: Buffer[(n,), f32], y: Out[(n,), f32], plus: Int):
    for i in range(n):
        y[i] = x[i] * 2.0 + f32(index(plus, i64))
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared library that defines `scale`."""
    folder = tmp_path_factory.mktemp("shared")
    source, library = folder / "scale.c", folder / "libscale.so"
    source.write_text(SOURCE)
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1"]
    caches = {name: str(folder) for name in ("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR")}
    subprocess.run(  # our own source
        [*command, str(source), "-o", str(library)], check=True, env={**os.environ, **caches}
    )
    return library


def program(name: str, **attributes: Any) -> tw.ir.module.Module:  # type: ignore[name-defined]
    words = "".join(f", {k}={v}" for k, v in attributes.items())
    return parse(PROGRAM.format(name=name, attributes=words))


ONES = np.ones(3, np.float32)


def test_a_function_of_a_shared_library(shared: Path) -> None:
    library_function(
        "test.scale",
        lambda x, *, by, plus: (by * x + plus).astype(np.float32),
        operands=["x"],
        attributes={"by": 1.0, "plus": 0},
        path=str(shared),
    )
    exe = tw.compile(program("test.scale", by=2.5, plus=-1))
    assert exe(ONES * 2).tolist() == [4.0, 4.0, 4.0]
    assert exe(np.ones(0, np.float32)).shape == (0,)
    assert tw.compile(program("test.scale"))(ONES).tolist() == [1.0, 1.0, 1.0]


def test_a_program_as_the_reference_of_a_shared_library(shared: Path) -> None:
    reference = next(iter(parse(REFERENCE).prims))
    assert isinstance(reference, PrimFunc)
    library_function(
        "test.scale", reference, operands=["x"], attributes={"by": 2.0, "plus": 0},
        path=str(shared),
    )  # fmt: skip
    module = program("test.scale", plus=3)
    assert np.asarray(run_graph(module, [ONES])[0]).tolist() == [5.0, 5.0, 5.0]
    assert tw.compile(module)(ONES).tolist() == [5.0, 5.0, 5.0]


def test_a_function_from_python() -> None:
    library_function("test.twice", lambda x: x + x, operands=["x"])
    module = program("test.twice")
    assert tw.compile(module)(ONES).tolist() == [2.0, 2.0, 2.0]
    assert np.asarray(run_graph(module, [ONES])[0]).tolist() == [2.0, 2.0, 2.0]


def test_a_function_that_is_registered_again() -> None:
    library_function("test.twice", lambda x: x + x)
    before = tw.compile(program("test.twice"))
    library_function("test.twice", lambda x: x * 3)
    assert tw.compile(program("test.twice"))(ONES).tolist() == [3.0, 3.0, 3.0]
    assert before(ONES).tolist() == [2.0, 2.0, 2.0]


def test_new_default_values_are_used_although_the_program_is_the_same() -> None:
    for by in (2.0, 5.0):
        library_function(
            "test.by", lambda x, *, by: x * np.float32(by), operands=["x"], attributes={"by": by}
        )
        assert tw.compile(program("test.by"))(ONES).tolist() == [by] * 3


def test_a_callback_that_raises() -> None:
    def fail(_: object) -> None:
        raise ValueError("the table is empty")

    library_function("test.fail", fail)
    exe = tw.compile(program("test.fail"))
    for _ in range(2):
        with pytest.raises(LibraryError, match=r"'test\.fail' raised ValueError: the table") as e:
            exe(ONES)
        assert isinstance(e.value.__cause__, ValueError)
    library_function("test.fail", lambda x: x)
    assert tw.compile(program("test.fail"))(ONES).tolist() == [1.0, 1.0, 1.0]


def test_a_callback_with_results_of_another_shape() -> None:
    library_function("test.short", lambda x: x[:-1])
    with pytest.raises(LibraryError, match=r"result 0: expected shape \(3,\)"):
        tw.compile(program("test.short"))(ONES)


def test_a_callback_cannot_change_its_operand() -> None:
    library_function("test.in_place", lambda x: np.multiply(x, 2, out=x))
    exe, x = tw.compile(program("test.in_place")), ONES.copy()
    with pytest.raises(LibraryError, match="raised ValueError: output array is read-only"):
        exe(x)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_a_missing_symbol(shared: Path) -> None:
    library_function("test.other", lambda x: x, path=str(shared), symbol="absent")
    with pytest.raises(MissingSymbolError, match=r"libscale\.so does not define 'absent'"):
        tw.compile(program("test.other"))


def test_a_missing_library() -> None:
    library_function("test.other", lambda x: x, path="/nowhere/libabsent.so")
    with pytest.raises(MissingSymbolError, match="no library that may define 'other' can be"):
        tw.compile(program("test.other"))


def test_a_function_without_a_native_function() -> None:
    register_library_function(LibraryFunction("test.only", lambda x: x))
    with pytest.raises(UnknownLibraryFunctionError, match="has no native function for CPUs"):
        library_address("test.only")


def test_verify_finds_a_reference_that_disagrees(shared: Path) -> None:
    """The step replaces an operator by a library function with other semantics."""
    library_function(
        "test.scale", lambda x, *, by, plus: x * by + plus, operands=["x"],
        attributes={"by": 1.0, "plus": 0}, path=str(shared),
        implements=lambda call: ((call.args[0],), (("by", 3.0),)) if call.op == "exp" else None,
    )  # fmt: skip
    schedule = tw.Schedule(
        parse("@graph_func\ndef main(x: Tensor[(4,), f32]):\n    y = exp(x)\n    return y\n")
    )
    schedule.dispatch_to_library("y", "test.scale")
    with pytest.raises(VerificationError):
        schedule.verify().required()
