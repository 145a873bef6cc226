"""Every feature set compiles on every machine; those of the host are the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.codegen import compiler
from tilewright.codegen.build.object_cache import DiskCache
from tilewright.codegen.compiler import BuildOptions, compile_artifact
from tilewright.codegen.llvm import assembly, compile_text, emit_module
from tilewright.codegen.llvm.processor import resolve
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.host.entry_wrappers import with_entries
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.schedules import Schedule
from tilewright.schedules.rules import apply_defaults, with_default_schedule
from tilewright.target import host
from tilewright.target.target import Target

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


def test_levels_are_those_of_the_cpu() -> None:
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    wide = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags
    wide = wide and host.host_cap() != "avx2"
    assert list(LEVELS) == [*ALL_LEVELS[:1], *(ALL_LEVELS[1:] if wide else ())]


@pytest.mark.parametrize("level", ALL_LEVELS)
@pytest.mark.usefixtures("every_level")
def test_every_level_compiles_to_an_object(level: str) -> None:
    target = Target("cpu", features=(level,))
    texts = ""
    for kernel in with_default_schedule(parse(PROGRAM), target).prims:
        text = emit_module([lower_kernel(kernel, target).function], target)
        assert compile_text(text, target)[:4] == b"\x7fELF"
        texts += assembly(text, target)
    assert ("%zmm" in texts) == (level == "avx512")
    assert "%ymm" in texts


def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a CPU without AVX-512."""
    have = frozenset(f for f in host.host_features() if not f.startswith("avx512"))
    monkeypatch.setattr(host, "host_features", lambda: have)


def test_the_default_level_is_the_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host.with_level(Target("cpu")).features[0] == BEST
    pretend(monkeypatch)
    assert host.with_level(Target("cpu")).features == ("avx2",)
    assert resolve(Target("cpu")).features.endswith(",-avx512f")
    assert resolve(Target("cpu")).vector_bits == 256


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
        compile_artifact(
            parse(PROGRAM), Target("cpu"), BuildOptions(store=DiskCache(tmp_path / level))
        )
        target = host.with_level(Target("cpu"))
        assert target.features[0] == level
        expected = with_default_schedule(with_entries(parse(PROGRAM)), target)
        assert to_text(made.pop()) == to_text(expected)
