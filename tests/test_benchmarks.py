"""Benchmarks run on every machine: they use its instructions, and name those that it lacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.sandbox import peak_loops
from tilewright.target import features, host
from tilewright.target.target import Target

from tests.benchmarks import exports, harness, peaks, probes, webgpu
from tests.benchmarks.kernels import convolution, matmul, rows
from tests.benchmarks.kernels.case import Case, Goal
from tests.codegen.export.pages import opened

FEATURES = {"avx2": ("avx2",), "avx512": ("avx512", *features.TENSOR_FEATURES)}


@pytest.fixture
def capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit this machine to AVX2."""
    monkeypatch.setenv(host.HOST_FEATURES, "avx2")


HELP = """
import contextlib, io, runpy, sys
sys.argv[1:] = ["--help"]
for name in {names!r}:
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            runpy.run_module(name, run_name="__main__")
    except SystemExit as ended:
        assert ended.code == 0, name
    print(name, "--json" in text.getvalue())
"""


def programs() -> list[str]:
    """Return the names of the modules that are programs."""
    folder = Path(__file__).parent / "benchmarks"
    found = [p for p in folder.rglob("*.py") if '__name__ == "__main__"' in p.read_text("utf-8")]
    parts = (p.relative_to(folder.parents[1]).with_suffix("").parts for p in found)
    return sorted(".".join(p).removesuffix(".__main__") for p in parts)


def test_every_benchmark_starts() -> None:
    names = programs()
    assert "tests.benchmarks.exports" in names
    done = subprocess.run(
        [sys.executable, "-c", HELP.format(names=names)],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [word for name in names for word in (name, "True")]


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


ROOF = rows.Limits(100.0, ((1 << 20, 50.0), (0, 10.0)))


def case(result: float = 1.0) -> Case:
    """A kernel of 1e6 operations whose exact result is 1."""
    peers = {"peer": lambda: 1.0, "other": lambda: 1.0}
    return Case("kernel", lambda: result, peers, np.array(1.0), 0.1, 10**6, 8, Goal(1.2, 0.9))


def test_a_wrong_result_is_not_measured() -> None:
    with pytest.raises(ArithmeticError, match="kernel: the error of ours is 5 times its bound"):
        rows.measured(case(1.5), ROOF, ("peer",))


@pytest.mark.parametrize(
    ("ours", "peer", "outcome"),
    [
        (1.0, 1.3, "reached"),
        (1.0, 1.1, "missed"),
        (1.05e-5, 1.05e-5, "reached"),
        (1.2e-5, 1.2e-5, "missed"),
    ],
)
def test_a_row_is_compared_with_the_best_required_peer_or_the_roof(
    ours: float, peer: float, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"ours": [ours] * 50, "peer": [peer] * 50, "other": [peer / 2] * 50}
    monkeypatch.setattr(rows, "sampled", lambda _runs, **_: times)
    row = rows.measured(case(), ROOF, ("peer",))
    assert (row.best, row.outcome) == ("peer", outcome)
    assert row.middle == pytest.approx(peer / ours)


def test_rows_with_wide_intervals_are_repeated_and_then_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[float] = []

    def sampled(_runs: object, *, seconds: float) -> dict[str, list[float]]:
        calls.append(seconds)
        return {"ours": [1.0, 2.0] * 4, "peer": [1.5] * 8, "other": [1.5] * 8}

    monkeypatch.setattr(rows, "sampled", sampled)
    assert rows.measured(case(), ROOF, ("peer",)).outcome == "undecided"
    assert calls == [1.0, 2.0, 4.0]


def test_the_roof_is_that_of_the_level_that_the_bytes_fit_into() -> None:
    small, large = (
        Case("k", int, {}, 0, 1, 0, size, Goal(1, 1)) for size in (1 << 20, (1 << 20) + 10)
    )
    assert ROOF.seconds(small) == pytest.approx((1 << 20) / 50e9)
    assert ROOF.seconds(large) == pytest.approx(((1 << 20) + 10) / 10e9)


@pytest.mark.parametrize("family", [convolution.LAYERS, matmul.STATIC, matmul.ROWS])
def test_rows_have_different_names(family: tuple[object, ...]) -> None:
    assert len(set(map(str, family))) == len(family) >= 12


@pytest.mark.browser
def test_a_model_is_compared_and_timed_in_a_page(chromium: str) -> None:
    softmax = next(c for c in webgpu.CASES if c.name.startswith("softmax"))
    small = replace(softmax, sizes={"n": 2})
    with opened(chromium) as page:
        times = webgpu.run(small, page, "")
        assert times.keys() == {"own"}
        assert times["own"] > 0
        wrong = replace(small, reference=lambda x: x)
        with pytest.raises(SystemExit, match="the results of own differ"):
            webgpu.run(wrong, page, "")
