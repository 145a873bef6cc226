"""The levels that a machine can execute, as `tilewright inspect` lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.codegen.export import machine_levels
from tilewright.codegen.export.inspection import Description
from tilewright.codegen.export.levels import LEVELS
from tilewright.codegen.export.machine_levels import chosen_level, level_lines
from tilewright.target.features import expanded

NEHALEM = frozenset({"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"})


def described(arch: str) -> Description:
    levels = [
        {"name": name, "features": list(expanded(features))}
        for name, (of, features) in LEVELS.items()
        if of == arch
    ]
    return Description(Path("m"), {"arch": arch, "levels": levels})


@pytest.fixture
def machine(monkeypatch):
    def pretend(arch: str, features: frozenset[str]) -> None:
        monkeypatch.setattr(machine_levels, "host_platform", lambda: (arch, "linux"))
        monkeypatch.setattr(machine_levels, "machine_features", lambda: features)

    return pretend


def test_a_machine_runs_the_last_level_that_it_can_execute(machine):
    machine("x86_64", NEHALEM | set(expanded(("avx2",))))
    assert list(level_lines(described("x86_64"))) == [
        "level x86-64-v2: popcnt, sse3, sse4.1, sse4.2, ssse3; this machine can execute it",
        "level x86-64-v3: avx2, bmi2, f16c, fma, lzcnt, movbe; this machine runs this level",
        (
            "level x86-64-v4: avx2, avx512bw, avx512cd, avx512dq, avx512f, avx512vl, bmi2, f16c, "
            "fma, lzcnt, movbe; this machine cannot execute it, because it lacks avx512bw"
        ),
    ]


def test_the_baseline_of_aarch64(machine):
    machine("arm64", frozenset({"dotprod"}))
    assert chosen_level(described("aarch64")) == "armv8-a"
    assert list(level_lines(described("aarch64")))[:2] == [
        "level armv8-a: the baseline; this machine runs this level",
        (
            "level armv8.2-a: dotprod, fullfp16, lse; this machine cannot execute it, because it "
            "lacks fullfp16"
        ),
    ]


def test_a_machine_of_another_family(machine):
    machine("x86_64", NEHALEM)
    lines = list(level_lines(described("aarch64")))
    assert chosen_level(described("aarch64")) == ""
    assert lines[0].endswith("this machine cannot execute it, because it lacks aarch64")


def test_a_library_without_levels():
    assert list(level_lines(Description(Path("m"), {"arch": "x86_64"}))) == []
