"""An exported shared library called from C: results, errors, memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.ir.interpreter import run_graph

PROGRAMS = Path(__file__).parent / "programs"


def build(program: str, exported: Path, made: Path, *options: str) -> Path:
    """Compile a C program against the header, and link it with the library."""
    subprocess.run(
        [
            sys.executable, "-m", "ziglang", "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1",
            f"-I{exported}", str(PROGRAMS / program), f"-L{exported}", "-lsmall",
            f"-Wl,-rpath,{exported}", *options, "-o", str(made),
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return made


def filled(shape, seed: int) -> np.ndarray:
    """Return the values that ``fill`` in small.c writes."""
    k = np.arange(int(np.prod(shape)), dtype=np.int64)
    return (((k * 37 + seed * 11) % 41 - 20) / 8).astype(np.float32).reshape(shape)


@pytest.fixture(scope="module")
def refusals(exported, tmp_path_factory) -> dict[str, str]:
    """Return code and message of every invalid call, by the name of the mistake."""
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
    "no runtime": r"14 -1 the runtime is null",
    "no output": r"14 -1 the pointer that receives the model is null",
    "version": r"15 -1 the runtime has ABI version 1, but the library requires 2",
    "size": r"15 -1 the runtime has a size of 1 bytes, but the library requires at least 64",
    "later field": r"15 -1 the runtime has unknown fields that are not zero, after the first 88 ",
    "later size": r"0 -1 $",
    "threads -3": r"19 -1 expected 1 to 65536 threads, got -3",
    "threads 0": r"19 -1 expected 1 to 65536 threads, got 0",
    "threads 65537": r"19 -1 expected 1 to 65536 threads, got 65537",
    "first address": r"5 -1 'alloc' of the runtime returned an address that is not a multiple of",
    "second address": r"5 -1 'alloc' of the runtime returned an address that is not a mul",
    "address of a call": r"5 -1 function 'main': 'alloc' of the runtime returned an address that",
    "kept for later calls": r"1$",
    "after trim": r"0$",
    "live models": r"3$",
    "live results": r"2 of 2 models$",
    "after a release": r"1$",
    "after close": r"2$",
    "all released": r"1$",
    "at the end": r"0$",
    "no alloc": r"14 -1 'alloc' or 'free' of the runtime is null",
    "no weights": r"16 -1 the weights are null",
    "truncated": r"16 -1 expected weights of \d+ bytes, got \d+ bytes",
    "empty": r"16 -1 expected weights of \d+ bytes, got 0 bytes",
    "negative": r"16 -1 expected weights of \d+ bytes, got -5 bytes",
    "unaligned": r"5 -1 the weights must be aligned to 16 bytes",
    "flags": r"15 -1 the runtime has flags 6; ABI version 2 defines only flag 1",
    "altered": r"16 -1 block 1 of 1 of the weights, bytes \d+ to \d+ of the file, is damaged",
    "altered but trusted": r"0 -1 $",
    "opened": r"0 -1 $",
    "no model": r"14 -1 the model is null",
    "no tensor": r"14 1 function 'main', parameter 'y' .*the tensor is null",
    "no result": r"14 -1 the pointer that receives result 1 is null",
    "no data": r"14 0 .*the data pointer is null",
    "no shape": r"14 0 .*the shape is null",
    "rank -1": r"14 0 .*must be between 0 and 64, got -1",
    "rank": r"2 0 function 'main', parameter 'x' .*expected rank 2, got rank 1",
    "dtype": r"1 0 .*expected dtype f32, got f64",
    "lanes": r"1 0 .*expected dtype f32, got f32x4",
    "shape": r"3 0 .*dimension 1 of shape \(3, 23\): expected 24, got 23",
    "huge": r"14 0 .*more elements than can be addressed",
    "negative dimension": r"14 0 .*dimension 0 is negative: -3",
    "strides": r"4 0 .*compact row-major elements, got strides \(48, 2\) .* of shape \(3, 24\)",
    "alignment": r"5 0 .*a multiple of 4 bytes",
    "device": r"7 0 .*expected a tensor on cpu, got one on cuda:0",
    "fact": r"9 -1 function 'main': the program assumes n <= 64, which is false for n = 65",
    "alias": r"8 1 .*'total' \(inout\) shares memory with 'x' \(in\)",
    "no memory": r"12 -1 function 'main': cannot allocate \d+ bytes for",
    "less memory": r"12 -1 function 'main': cannot allocate \d+ bytes for",
    "well": r"0 -1 $",
    "balance": r"0$",
}


@pytest.mark.parametrize("mistake", EXPECTED)
def test_code_and_message_of_an_invalid_call(refusals, mistake):
    assert re.match(EXPECTED[mistake], refusals[mistake]), refusals[mistake]


def test_the_program_prints_no_other_messages(refusals):
    assert set(refusals) == set(EXPECTED)


def test_only_the_models_own_functions_are_visible(exported):
    """Models do not conflict with each other, or with functions of the program."""
    command = ["nm", "-D", exported / "libsmall.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    own = ("main", "scores", "accumulate", "open", "close", "abi_version", "describe",
           "live_models", "live_results", "trim", "pool_parallel", "pool_close", "python_call",
           "python_number", "python_runtime")  # fmt: skip
    names = {line.split()[-1] for line in done.stdout.splitlines()}
    into = [f"{name}_{suffix}" for name in own[:3] for suffix in ("into", "needs")]
    assert names == {f"small_{name}" for name in (*own, *into)}
