"""A shared library run from C: results, refusals, memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.ir.interpreter import run_graph

PROGRAMS = Path(__file__).parent / "programs"


def build(program: str, exported: Path, made: Path) -> Path:
    """Compile a C program against the header, and link it with the library."""
    subprocess.run(
        [
            sys.executable, "-m", "ziglang", "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1",
            f"-I{exported}", str(PROGRAMS / program), f"-L{exported}", "-lsmall",
            f"-Wl,-rpath,{exported}", "-o", str(made),
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return made


def filled(shape, seed: int) -> np.ndarray:
    """What ``fill`` in small.c writes."""
    k = np.arange(int(np.prod(shape)), dtype=np.int64)
    return (((k * 37 + seed * 11) % 41 - 20) / 8).astype(np.float32).reshape(shape)


@pytest.fixture(scope="module")
def refusals(exported, tmp_path_factory) -> dict[str, str]:
    """What the library answers to every wrong call, by the name of the mistake."""
    program = build("refusals.c", exported, tmp_path_factory.mktemp("c") / "refusals")
    done = subprocess.run(
        [program, exported / "small.safetensors"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_c_agrees_with_the_interpreter(module, exported, tmp_path):
    program = build("small.c", exported, tmp_path / "small")
    out = tmp_path / "out"
    sizes = (1, 7, 64, 0)
    subprocess.run(
        [program, exported / "small.safetensors", out, *map(str, sizes)],
        check=True, capture_output=True,
    )  # fmt: skip
    got = np.fromfile(out, np.float32)
    for n in sizes:
        wanted = run_graph(module, (filled((n, 24), 1), filled((n, 40), 2)))
        for array in wanted:
            part, got = got[: array.size], got[array.size :]
            np.testing.assert_allclose(part.reshape(array.shape), array, rtol=2e-5, atol=2e-5)
    assert got.size == 0


EXPECTED = {
    "no runtime": r"14 -1 no runtime",
    "nowhere": r"14 -1 nowhere",
    "version": r"15 -1 the runtime is of version 2, this library needs 1",
    "no alloc": r"14 -1 the runtime has no alloc",
    "no weights": r"16 -1 no weights",
    "truncated": r"16 -1 the weights have \d+ bytes, those of this model have \d+",
    "empty": r"16 -1 the weights have 0 bytes",
    "negative": r"16 -1 the weights have -5 bytes",
    "unaligned": r"5 -1 weights have to begin at a multiple of 16 bytes",
    "flags": r"15 -1 the runtime has flags that version 1 does not know",
    "altered": r"16 -1 the tensors of the weights are not those of this model: their sha256",
    "altered but trusted": r"0 -1 $",
    "opened": r"0 -1 $",
    "no model": r"14 -1 no model",
    "no tensor": r"14 1 function 'main', parameter 'y' .*no tensor",
    "no result": r"14 -1 nowhere to put a result",
    "no data": r"14 0 .*no data",
    "no shape": r"14 0 .*no shape",
    "rank -1": r"14 0 .*so many dimensions",
    "rank": r"2 0 function 'main', parameter 'x' .*expected 2 dimensions, got 1",
    "dtype": r"1 0 .*expected elements of f32, got DLPack code 2 of 64 bits",
    "lanes": r"1 0 .*expected elements of f32",
    "shape": r"3 0 .*dimension 1 of shape \(3, 23\): expected 24 = 24, got 23",
    "huge": r"14 0 .*more elements than memory can hold",
    "negative dimension": r"14 0 .*a dimension is negative",
    "strides": r"4 0 .*compact row-major elements of shape \(3, 24\)",
    "alignment": r"5 0 .*a multiple of the size of f32",
    "device": r"7 0 .*got device 2",
    "fact": r"9 -1 function 'main': the program assumes n <= 64, with n = 65",
    "alias": r"8 1 .*it is written and shares memory with 'x'",
    "no memory": r"12 -1 function 'main': no memory for",
    "less memory": r"12 -1 function 'main': no memory for",
    "well": r"0 -1 $",
    "balance": r"0$",
}


@pytest.mark.parametrize("mistake", EXPECTED)
def test_mistakes_get_a_code_and_a_message(refusals, mistake):
    assert re.match(EXPECTED[mistake], refusals[mistake]), refusals[mistake]


def test_nothing_else_is_said(refusals):
    assert set(refusals) == set(EXPECTED)


def test_only_the_models_own_functions_are_visible(exported):
    """Two models, or a model and a program with a function of the same name, do not meet."""
    data = (exported / "libsmall.so").read_bytes()
    for name in (b"tw_open_call", b"tw_report", b"main__entry"):
        assert name not in data
    assert b"small_main" in data
