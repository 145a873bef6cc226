"""Code is compiled for every feature set on every machine, and run for those the machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.codegen import compiler, cpu
from tilewright.codegen.compiler import BuildOptions, make
from tilewright.codegen.llvm import assembly, compile_text, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.wrap import with_entries
from tilewright.codegen.runtime.cache import DiskCache
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.target import Target
from tilewright.schedules import Schedule
from tilewright.schedules.rules import apply_defaults, finished

from tests.codegen.kernels import ALL_LEVELS, BEST, LEVELS

PROGRAM = """
m, n = symbols("m n", lower=1)

@graph_func
def main(x: Tensor[(m, 48), f32], w: Tensor[(48, 40), f32], v: Tensor[(m, n), f32]):
    y = matmul(x, w)
    z = gelu(y)
    u = softmax(v, axis=-1)
    s = sum(u, axes=(-1,), keepdims=True)
    t = add(z, s)
    return t
"""


def test_what_the_processor_reports_is_what_runs() -> None:
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    wide = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags
    assert list(LEVELS) == [*ALL_LEVELS[:1], *(ALL_LEVELS[1:] if wide else ())]


@pytest.mark.parametrize("level", ALL_LEVELS)
@pytest.mark.usefixtures("every_level")
def test_every_level_compiles_to_an_object(level: str) -> None:
    target = Target("cpu", features=(level,))
    texts = ""
    for kernel in finished(parse(PROGRAM), target).prims:
        text = emit_module([lower_kernel(kernel, target).function], target)
        assert compile_text(text, target)[:4] == b"\x7fELF"
        texts += assembly(text, target)
    assert ("%zmm" in texts) == (level == "avx512")
    assert "%ymm" in texts


def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process believe that its processor has no AVX-512."""
    have = frozenset(f for f in cpu.host_features() if not f.startswith("avx512"))
    monkeypatch.setattr(cpu, "host_features", lambda: have)


def test_the_best_level_is_what_no_level_means(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cpu.with_level(Target("cpu")).features[0] == BEST
    pretend(monkeypatch)
    assert cpu.with_level(Target("cpu")).features == ("avx2",)
    assert cpu.resolve(Target("cpu")).features.endswith(",-avx512f")
    assert cpu.resolve(Target("cpu")).vector_bits == 256


def test_defaults_are_scheduled_for_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[Module] = []

    def spy(schedule: Schedule) -> None:
        apply_defaults(schedule)
        made.append(schedule.module)

    monkeypatch.setattr(compiler, "apply_defaults", spy)
    for level in dict.fromkeys((BEST, "avx2")):
        if level != BEST:
            pretend(monkeypatch)
        make(parse(PROGRAM), Target("cpu"), BuildOptions(store=DiskCache(tmp_path / level)))
        target = cpu.with_level(Target("cpu"))
        assert target.features[0] == level
        expected = finished(with_entries(parse(PROGRAM)), target)
        assert to_text(made.pop()) == to_text(expected)
