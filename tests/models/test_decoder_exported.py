"""A decoder with a static cache, exported: from C and from the Python loader with a state."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.link import run_linker
from tilewright.ir.importers import from_exported_program

from tests.codegen.export.test_shared import PROGRAMS
from tests.ir.importers.models import decoder, exported_decoder, greedy

TOKENS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = from_exported_program(exported_decoder())
    target = tw.Target("cpu", threads=1)
    made = tmp_path_factory.mktemp("decoder") / "made"
    return tw.export(module, made, target=target, name="decoder").directory


def test_a_c_program_generates_the_tokens_of_pytorch(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "decode"
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}",
            str(PROGRAMS / "decode.c"), str(folder / "libdecoder.so"), "-o", str(program),
        ]
    )  # fmt: skip
    done = subprocess.run(
        [program, folder / "decoder.safetensors"],
        capture_output=True, text=True, check=False, env={"LD_LIBRARY_PATH": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, cache, *errors = done.stdout.splitlines()
    assert [int(t) for t in first.split()] == greedy(decoder(), 3, TOKENS, "static")
    assert [int(t) for t in second.split()] == greedy(decoder(), 90, TOKENS, "static")
    assert cache == "4 64 1"
    null, busy, beyond, failed = errors
    assert null == "function 'main': the state is null"
    assert busy == "20 another call is using the state"
    assert "64" in beyond
    assert failed.endswith("had begun to write the state; reset the state")


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
