"""MiniLM exported with its real weights, run by programs that know nothing of Tilewright."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.benchmarks.exports import PARTS, measured

pytestmark = pytest.mark.model

FORMS = ("C, shared", "plain Python", "wasm, node", "wasm, wasmtime", "C, aarch64 in qemu")


@pytest.mark.parametrize("name", FORMS)
def test_results_are_the_interpreters_at_two_shapes(name, tmp_path):
    """Compared inside; RISC-V, the slowest to emulate, is left to the benchmark."""
    part = replace(PARTS[name], starts=1, repeats=1)
    found = measured(name, part, tmp_path)
    assert found["weights_bytes"] > 90e6
    assert found["code_bytes"] < 1e6
