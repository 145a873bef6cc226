"""Descriptions of exports, read from directories and from libraries without loading them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen.export.inspection import (
    InspectionError,
    altered_files,
    description_lines,
    read_description,
)
from tilewright.codegen.export.link import run_linker

from tests.codegen.export.conftest import build

PLAIN = """
n = symbols("n", lower=1, upper=4096)

@graph_func
def main(x: Tensor[(n, 64), f32]):
    y: Tensor[(n, 64), f32] = softmax(x, axis=-1)
    return y
"""
KINDS = {
    "shared": (tw.Target("cpu", features=("avx2",)), "libsmall.so"),
    "static": (tw.Target("cpu", arch="aarch64"), "libsmall.a"),
    "object": (tw.Target("cpu", arch="riscv64"), "small.o"),
    "wasm": (tw.Target("cpu", arch="wasm32"), "small.wasm"),
    "web": (tw.Target("webgpu"), "small.wasm"),
    "ptx": (tw.Target("cuda", arch="sm_80"), ""),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("inspected")
    return {
        kind: tw.export(
            tw.parse(PLAIN) if kind in ("web", "ptx") else build(),
            made / kind, name="small", kind=kind, target=target,
            metadata={"version": "1.2", "license": "MIT"},
        ).directory
        for kind, (target, _) in KINDS.items()
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_of_a_description(folders, golden, kind):
    text = "\n".join(description_lines(read_description(folders[kind])))
    text = re.sub(r"\b[0-9a-f]{64}\b", "SHA256", text)
    golden(f"inspect_{kind}.txt", re.sub(r"made by .*", "made by VERSIONS", text))


@pytest.mark.parametrize("kind", [k for k, (_, library) in KINDS.items() if library])
def test_a_library_has_the_description_of_its_manifest(folders, kind):
    manifest = read_description(folders[kind])
    library = read_description(folders[kind] / KINDS[kind][1])
    assert library.facts == {k: v for k, v in manifest.facts.items() if k != "files"}
    assert library.name == "small"


def test_a_stripped_library_has_its_description(folders, tmp_path):
    library, stripped = folders["shared"] / "libsmall.so", tmp_path / "stripped.so"
    subprocess.run(["strip", "--strip-all", "-o", stripped, library], check=True)
    assert stripped.stat().st_size < library.stat().st_size
    assert read_description(stripped).facts == read_description(library).facts


def test_a_program_that_links_a_model_has_its_description(tmp_path):
    made = tw.export(build(), tmp_path / "made", name="small", kind="static").directory
    source, program = tmp_path / "main.c", tmp_path / "program"
    source.write_text(
        '#include <stdio.h>\n#include "small.h"\nint main(void) {'
        ' printf("%s", small_describe()); return small_abi_version() - 2; }\n'
    )
    flags = ["-Wl,--gc-sections", f"-I{made}", str(source), str(made / "libsmall.a")]
    run_linker(["cc", *flags, "-o", str(program)])
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == read_description(program).facts


def test_altered_and_missing_files_are_found(tmp_path):
    made = tw.export(build(), tmp_path / "made", name="small").directory
    found = read_description(made)
    assert altered_files(found) == []
    (made / "small.h").unlink()
    with (made / "libsmall.so").open("ab") as file:
        file.write(b"x")
    first, second = altered_files(found)
    assert first.startswith("libsmall.so: expected sha256 ")
    assert second == "small.h is missing"
    with pytest.raises(InspectionError, match="does not list files to verify"):
        altered_files(read_description(made / "libsmall.so"))


def test_other_files_are_errors(folders, tmp_path):
    library = (folders["shared"] / "libsmall.so").read_bytes()
    module = (folders["wasm"] / "small.wasm").read_bytes()
    archive = (folders["static"] / "libsmall.a").read_bytes()
    contents = {
        "empty": b"", "text": b"abc", "short elf": library[:100], "short module": module[:2000],
        "short archive": archive[:90], "elf": library[:64] + bytes(5000),
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InspectionError, match="contains no description of an exported"):
            read_description(tmp_path / name)
    (tmp_path / "two").write_bytes(archive + archive[8:])
    with pytest.raises(InspectionError, match="contains the descriptions of 2 models"):
        read_description(tmp_path / "two")
    (tmp_path / "schema").write_bytes(library.replace(b'{"schema":1,', b'{"schema":7,'))
    with pytest.raises(InspectionError, match=r"expected a description of schema 1 .* schema 7"):
        read_description(tmp_path / "schema")
    with pytest.raises(InspectionError, match=r"cannot read .*: No such file"):
        read_description(tmp_path / "missing")
    with pytest.raises(InspectionError, match="contains 0 manifests"):
        read_description(tmp_path)
