"""``tilewright weights pack``: the packed file, its JSON output, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilewright as tw

from tests.codegen.export.test_package import loaded
from tests.codegen.export.test_replaceable import arrays, program


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return tw.export(program(0), tmp_path / "made", name="packed", weights="replaceable").directory


def test_a_checkpoint_is_packed_into_the_directory(run, made: Path, tmp_path: Path) -> None:
    x = np.ones((3, 256), np.float32)
    before = loaded(made, "packed").main(x)
    save_file({**arrays(1), "unused": np.ones(2)}, tmp_path / "new.safetensors")
    output = tmp_path / "out.safetensors"
    ran = run("weights", "pack", tmp_path / "new.safetensors", "--for", made, "-o", output)
    assert ran.code == 0
    assert ran.out.splitlines()[0].startswith(f"{output}: ")
    assert ran.out.splitlines()[2] == "unused tensors: unused"
    ran = run("weights", "pack", tmp_path / "new.safetensors", "--for", made, "--json")
    assert ran.data["file"] == str(made / "packed.safetensors")
    assert ran.data["unused"] == ["unused"]
    assert (made / "packed.safetensors").read_bytes() == output.read_bytes()
    after = loaded(made, "packed").main(x)
    other = tw.export(program(1), tmp_path / "other", name="packed")
    assert np.array_equal(after, loaded(other.directory, "packed").main(x))
    assert not np.array_equal(after, before)


def test_errors_name_the_tensor(run, made: Path, tmp_path: Path) -> None:
    save_file({"weight": arrays(1)["weight"]}, tmp_path / "new.safetensors")
    ran = run("weights", "pack", tmp_path / "new.safetensors", "--for", made)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Invalid weights: tensor 'bias' (f32 [300]) is missing in ")
    save_file(arrays(1), tmp_path / "new.safetensors")
    ran = run(
        "weights", "pack", tmp_path / "new.safetensors", "--for", made,
        "-o", tmp_path / "none" / "x.safetensors",
    )  # fmt: skip
    assert ran.err.startswith("Invalid output file: ")
    ran = run("weights", "pack", tmp_path / "new.safetensors", "--for", tmp_path)
    assert "has no file NAME.packing" in ran.err
