"""The table of processor families."""

from __future__ import annotations

import pytest

from tilewright.codegen.export.link import TRIPLES
from tilewright.codegen.llvm.processor import resolve
from tilewright.ir.dtype import f32
from tilewright.schedules.machine import machine_of
from tilewright.target.cpus import FAMILIES
from tilewright.target.features import FAMILY_FEATURES, expanded
from tilewright.target.target import CPU_ARCHS, Target
from tilewright.workbench.targets import target_options


@pytest.mark.parametrize("arch", FAMILIES)
def test_a_row_defines_the_targets_of_a_family(arch: str) -> None:
    family, target = FAMILIES[arch], Target("cpu", arch=arch)
    assert resolve(target) == family.baseline
    assert machine_of(target).registers == family.baseline.registers
    assert FAMILY_FEATURES[arch] == family.features
    feature = family.features[0]
    assert feature in resolve(Target("cpu", arch=arch, features=(feature,))).features


def test_all_tables_have_the_same_families() -> None:
    assert set(CPU_ARCHS) == {"x86_64", *FAMILIES} == set(FAMILY_FEATURES) == set(TRIPLES)
    labels = {option.label for option in target_options(Target("cpu"))}
    shown = {f"cpu: {f.title}" for f in FAMILIES.values() if f.runs_libraries}
    assert shown <= labels
    assert "cpu: WebAssembly" not in labels


def test_level_2_of_x86_64() -> None:
    target = Target("cpu", features=("sse4.2",))
    cpu = resolve(target)
    assert (cpu.name, cpu.vector_bits, cpu.registers) == ("x86-64-v2", 128, 16)
    assert not (cpu.has_fma)
    assert not (cpu.has_f16_conversion)
    assert machine_of(target).lanes(f32) == 4
    assert expanded(("sse4.2",)) == ("popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
    assert resolve(Target("cpu", features=("sse4.2", "avx2"))).vector_bits == 256
