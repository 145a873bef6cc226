"""MiniLM exported with its real weights, run by programs that do not use Tilewright."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw

from tests.amounts import IS_LONG
from tests.benchmarks import export_memory
from tests.benchmarks.exports import (
    BOUND,
    HOST,
    PARTS,
    SHAPES,
    expected,
    measured,
    module,
    program,
    run,
)
from tests.codegen.export.test_cross import emulator

pytestmark = [pytest.mark.model, pytest.mark.slow]

FORMS = ("C, shared", "plain Python", "wasm, node", "wasm, wasmtime", "C, aarch64 in qemu")
SHORT = ((2, 5), (1, 9))
"""Batches and lengths for an emulated processor, which is a hundred times slower."""


@pytest.mark.parametrize("name", FORMS)
def test_results_equal_the_interpreters_at_two_shapes(name, tmp_path):
    """`measured` compares the results; the benchmark covers RISC-V, the slowest to emulate."""
    emulated = name.endswith("in qemu")
    part = replace(PARTS[name], starts=1, repeats=1)
    found = measured(name, part, tmp_path, SHORT if emulated and not IS_LONG else SHAPES)
    assert found["weights_bytes"] > 90e6
    assert found["code_bytes"] < 1e6


def test_processes_share_the_weights_in_memory(tmp_path):
    found = export_memory.measure_memory(module(), tmp_path, starts=1)
    assert found["equal_to_plain"]
    most = found["c_arena_bytes"] + export_memory.PRIVATE
    assert found["c_private_bytes"] <= most
    assert found["python_private_bytes"] <= most
    shared = export_memory.PROCESSES * export_memory.SHARE
    assert found["pss_bytes"] <= 1.1 * found["weights_bytes"] + shared
    assert found["weights_bytes"] <= export_memory.FILE


def test_one_library_for_three_levels(tmp_path, monkeypatch):
    """The weights are stored once; each processor takes its level, with the same results."""
    levels = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    made = tw.export(module(), tmp_path / "m", target=HOST, name="minilm", levels=levels)
    assert made.files["minilm.safetensors"] < 1.05 * 90e6
    assert made.files["libminilm.so"] < 1e6
    command = program(made.directory, "x86_64-linux-gnu")
    out = tmp_path / "out"
    for cpu, level in (("Nehalem", levels[0]), ("Haswell", levels[1])):
        run([emulator("x86_64"), "-cpu", cpu, *command], out, 0, SHORT)
        chosen = out.read_bytes()
        monkeypatch.setenv("TILEWRIGHT_LEVEL", level)
        run(command, out, 0, SHORT)
        monkeypatch.delenv("TILEWRIGHT_LEVEL")
        assert out.read_bytes() == chosen
        assert np.abs(np.frombuffer(chosen, np.float32) - expected(SHORT)).max() <= BOUND
    run(command, out, 0, SHORT)
    assert np.abs(np.fromfile(out, np.float32) - expected(SHORT)).max() <= BOUND
