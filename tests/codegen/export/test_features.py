"""Processors that lack required features: errors at open instead of illegal instructions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError
from tilewright.codegen.export.link import NATIVE, run_linker
from tilewright.target.features import FAMILY_FEATURES, FEATURE_SETS

from tests.codegen.export.test_cross import emulator
from tests.codegen.export.test_shared import PROGRAMS


def test_the_native_code_knows_the_same_features():
    x86, arm, riscv = re.split("#elif defined", (NATIVE / "processor.c").read_text())
    for text, arch in ((x86, "x86_64"), (arm, "aarch64"), (riscv, "riscv64")):
        assert sorted(re.findall(r"^    FEATURE\(([\w.]+),", text, re.MULTILINE)) == list(
            FAMILY_FEATURES[arch]
        )
    assert {f for named in FEATURE_SETS.values() for f in named} <= set(FAMILY_FEATURES["x86_64"])


def opened(made, arch: str, *cpus: str) -> list[str]:
    """Return the outputs of the small C program on emulated processors."""
    program = made / "program"
    system = ["gnu"] if arch == "x86_64" else ["musl", "-static"]
    run_linker(
        [
            "cc", "-target", f"{arch}-linux-{system[0]}", *system[1:], "-O1", f"-I{made}",
            str(PROGRAMS / "small.c"), str(made / "libsmall.a"), "-o", str(program),
        ]
    )  # fmt: skip
    return [_output(emulator(arch), cpu, program) for cpu in cpus]


def _output(qemu: str, cpu: str, program: Path) -> str:
    made = program.parent
    command = [qemu, "-cpu", cpu, program, made / "small.safetensors", made / "out", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.strip()


def test_aarch64_without_and_with_the_feature(module, tmp_path):
    target = tw.Target("cpu", arch="aarch64", features=("dotprod",))
    made = tw.export(module, tmp_path / "m", target=target, kind="static", name="small").directory
    assert opened(made, "aarch64", "cortex-a53", "max") == [
        "open: 17 this processor lacks dotprod, which the library requires", "",
    ]  # fmt: skip


def test_riscv_without_and_with_the_feature(module, tmp_path):
    target = tw.Target("cpu", arch="riscv64", features=("v",))
    made = tw.export(module, tmp_path / "m", target=target, kind="static", name="small").directory
    assert opened(made, "riscv64", "rv64,v=false", "rv64,v=true") == [
        "open: 17 this processor lacks v, which the library requires", "",
    ]  # fmt: skip


def test_a_feature_that_the_system_cannot_report_counts_as_missing(module, tmp_path):
    """The emulator lacks riscv_hwprobe, which is required for extensions with long names."""
    target = tw.Target("cpu", arch="riscv64", features=("zba",))
    made = tw.export(module, tmp_path / "m", target=target, kind="static", name="small").directory
    (message,) = opened(made, "riscv64", "rv64")
    assert message.startswith("open: 17 this processor lacks zba")


def test_x86_without_the_feature(module, tmp_path):
    target = tw.Target("cpu", arch="x86_64", features=("avx2",))
    made = tw.export(module, tmp_path / "m", target=target, kind="static", name="small").directory
    (message,) = opened(made, "x86_64", "Nehalem")
    assert re.fullmatch(r"open: 17 this processor lacks (avx2|bmi2|f16c|fma|movbe), .*", message)


def test_a_feature_that_libraries_cannot_detect(module, tmp_path):
    target = tw.Target("cpu", arch="x86_64", features=("avx2", "gfni"))
    with pytest.raises(ExportError, match=r"(?s)cannot detect 'gfni'.*avx512vnni"):
        tw.export(module, tmp_path / "m", target=target)
    assert list(tmp_path.iterdir()) == []
