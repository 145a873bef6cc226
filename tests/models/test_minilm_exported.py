"""MiniLM exported with its real weights, run by programs that do not use Tilewright."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.benchmarks.exports import PARTS, measured

pytestmark = [pytest.mark.model, pytest.mark.slow]

FORMS = ("C, shared", "plain Python", "wasm, node", "wasm, wasmtime", "C, aarch64 in qemu")


@pytest.mark.parametrize("name", FORMS)
def test_results_equal_the_interpreters_at_two_shapes(name, tmp_path):
    """`measured` compares the results; the benchmark covers RISC-V, the slowest to emulate."""
    part = replace(PARTS[name], starts=1, repeats=1)
    found = measured(name, part, tmp_path)
    assert found["weights_bytes"] > 90e6
    assert found["code_bytes"] < 1e6
