"""Benchmarks run on every machine: they use its instructions, and name those that it lacks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.sandbox import peak_loops
from tilewright.target import features, host
from tilewright.target.target import Target

from tests.benchmarks import exports, harness, peaks, probes

FEATURES = {"avx2": ("avx2",), "avx512": ("avx512", *features.TENSOR_FEATURES)}


@pytest.fixture
def capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit this machine to AVX2."""
    monkeypatch.setenv(host.HOST_FEATURES, "avx2")


@pytest.mark.parametrize("kind", ["f32", "bytes", "bf16"])
def test_peak_loops_execute_their_instruction_on_registers(kind: str) -> None:
    for instruction in peaks.instructions()[kind]:
        name, width = instruction.name.split(".")
        target = Target("cpu", features=FEATURES["avx512" if width == "512" else "avx2"])
        function, count = peak_loops.peak_kernel(instruction, target)
        text = assembly(emit_module([function], target), target)
        blocks = [block for block in re.split(r"\n\.L\w+:", text) if f"\t{name}" in block]
        assert blocks, text
        for block in blocks:  # LLVM may have unrolled the loop
            assert block.count(f"\t{name}") % count == 0
            assert "(%" not in block


@pytest.mark.usefixtures("capped")
def test_instructions_of_a_capped_machine() -> None:
    names = {k: i and i.name for k in ("f32", "bytes", "bf16") for i in [peaks.fastest(k)]}
    assert names == {"f32": "vfmadd.256", "bytes": "vpmaddwd.256", "bf16": None}
    for kind in ("f32", "bytes"):
        assert peaks.peak_operations(peaks.fastest(kind)) > 1e9


@pytest.mark.usefixtures("capped")
def test_rows_that_cannot_run_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness.write_json(tmp_path / "figures.json", {"threads": 1, "bf16": probes.part_bf16(1)})
    written = json.loads((tmp_path / "figures.json").read_text())
    rows = ["x".join(map(str, shape)) for shape in probes.DOTS]
    absent = ["vdpbf16ps.512 (avx512bf16)", *(f"bf16 matmul {row}" for row in rows)]
    assert written[harness.NOT_HERE] == absent
    assert written["machine"]["features capped at"] == "avx2"
    assert written["bf16"] == {}
    printed = capsys.readouterr().out
    assert "not on this machine:" in printed
    assert all(name in printed for name in absent)


def test_parts_without_their_tool_are_named() -> None:
    part = exports.Part("wasm", exports.HOST, exports.program)
    assert part.available
    missing = exports.Part("wasm", exports.HOST, exports.program, tool="no-such-tool")
    assert not missing.available
