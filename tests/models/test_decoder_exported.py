"""Decoders with static and growing caches, exported: from C and from the Python loader."""

from __future__ import annotations

import importlib.util
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.link import run_linker
from tilewright.ir.importers import from_exported_program

from tests.codegen.export.test_shared import PROGRAMS
from tests.ir.importers.models import (
    cache_name,
    decoder,
    exported_decoder,
    exported_dynamic_decoder,
    greedy,
)

pytestmark = pytest.mark.slow

TOKENS = 200
LONGEST = 256
LENGTHS = math.ceil(math.log(TOKENS, 1.25)) + 128 // 32
"""The number of plans for one sequence: the arena has room to grow by a quarter.

The packed keys of an attention grow in steps of 32 tokens, by more than a quarter up to 128.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = from_exported_program(exported_decoder(LONGEST))
    target = tw.Target("cpu", threads=1)
    made = tmp_path_factory.mktemp("decoder") / "made"
    return tw.export(module, made, target=target, name="decoder").directory


def compiled(source: str, folder: Path, made: Path) -> Path:
    """Compile a C program with an exported decoder."""
    program = made / "decode"
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}",
            str(PROGRAMS / source), str(folder / "libdecoder.so"), "-o", str(program),
        ]
    )  # fmt: skip
    return program


def run(program: Path, folder: Path, *arguments: str) -> str:
    """Return the output of a program with an exported decoder."""
    done = subprocess.run(
        [program, folder / "decoder.safetensors", *arguments],
        capture_output=True, text=True, check=False, env={"LD_LIBRARY_PATH": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_c_program_generates_the_tokens_of_pytorch(folder: Path, tmp_path: Path) -> None:
    printed = run(compiled("decode.c", folder, tmp_path), folder)
    first, second, cache, *errors = printed.splitlines()
    assert [int(t) for t in first.split()] == greedy(decoder(), 3, TOKENS, "static")
    assert [int(t) for t in second.split()] == greedy(decoder(), 90, TOKENS, "static")
    assert cache == f"4 {LONGEST} 1"
    null, busy, beyond, failed = errors
    assert null == "function 'main': the state is null"
    assert busy == "20 another call is using the state"
    assert str(LONGEST) in beyond
    assert failed.endswith("had begun to write the state; reset the state")


def test_a_c_program_generates_tokens_with_a_growing_cache(tmp_path: Path) -> None:
    """The cache stays in place, and memory is allocated for a few lengths, not for each token."""
    cache = cache_name()
    module = from_exported_program(exported_dynamic_decoder(4), state={cache: cache})
    target = tw.Target("cpu", threads=1)
    folder = tw.export(module, tmp_path / "made", target=target, name="decoder").directory
    program = compiled("decode_growing.c", folder, tmp_path)
    printed = run(program, folder, str(TOKENS), f"{cache}_key_cache_0")
    tokens, allocations, in_place, full, end = printed.splitlines()
    assert [int(t) for t in tokens.split()] == greedy(decoder(), [5, 17, 42], TOKENS, "dynamic")
    assert int(allocations.split()[0]) <= LENGTHS
    assert in_place == "1"
    assert "seq + past <= capacity, which is false" in full
    assert end == "end"


def test_the_python_loader_takes_a_state(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location("decoder", folder / "decoder.py")
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    model = loader.load()

    def generate(start: int, state: Any) -> list[int]:
        tokens = [start]
        for k in range(TOKENS):
            logits = model.main(np.array([[tokens[-1]]]), np.array([k]), state=state)
            tokens.append(int(logits[0, -1].argmax()))
        return tokens[1:]

    expected = greedy(decoder(), 3, TOKENS, "dynamic")
    state = model.new_state()
    assert generate(3, state) == expected
    assert state["cumulative_length_0"] == TOKENS
    assert state["key_cache_0"][0, :, :TOKENS].all()
    assert not state["key_cache_0"][0, :, TOKENS:].any()
    assert generate(90, model.new_state()) == greedy(decoder(), 90, TOKENS, "dynamic")
    state.reset()
    assert not state["key_cache_0"].any()
    assert generate(3, None) == expected
    model.close()
