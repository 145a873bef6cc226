"""The table of processor families."""

from __future__ import annotations

import pytest

from tilewright.codegen.export.link import TRIPLES
from tilewright.codegen.llvm.processor import resolve
from tilewright.schedules.machine import machine_of
from tilewright.target.cpus import FAMILIES
from tilewright.target.features import FAMILY_FEATURES
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
