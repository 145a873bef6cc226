"""Packed weights: the file has the tensors that kernels read, and opening copies nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.export.link import NATIVE, run_linker
from tilewright.codegen.export.packed import equal_tensors, packs
from tilewright.codegen.export.weights import FILLER
from tilewright.ir.dtype import f32, i32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse
from tilewright.target.target import Target

from tests.codegen.export.test_package import loaded

TEXT = """
n = symbols("n", lower=1)

constant("weight", (300, 256), f32)
constant("scale", (300,), f32)
constant("bias", (300,), f32)

@graph_func
def main(x: Tensor[(n, 256), f32]):
    t = permute_dims(const("weight"), axes=(1, 0))
    s = multiply(t, const("scale"))
    y = matmul(x, s)
    z = add(y, const("bias"))
    return z
"""


def program() -> tw.Module:
    rng = np.random.default_rng(0)
    shapes = {"weight": (300, 256), "scale": (300,), "bias": (300,)}
    arrays = {k: rng.standard_normal(shape).astype(np.float32) for k, shape in shapes.items()}
    constants = {k: Constant(a.shape, f32, lambda a=a: a) for k, a in arrays.items()}
    return parse(TEXT, constants=constants)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """The exported directories by the layout of the weights."""
    made = tmp_path_factory.mktemp("packed")
    return {
        layout: tw.export(
            program(), made / layout, name="packed", kind="shared", weights=layout
        ).directory
        for layout in ("auto", "plain")
    }


def header(folder: Path) -> tuple[dict, int]:
    data = (folder / "packed.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), 8 + size


def manifest(folder: Path) -> dict:
    return json.loads((folder / "packed.json").read_text(encoding="utf-8"))


def test_the_manifest_contains_the_layout(folders):
    assert manifest(folders["auto"])["weights_layout"] == "packed"
    assert manifest(folders["plain"])["weights_layout"] == "plain"


def test_the_file_has_the_tensors_that_kernels_read(folders):
    plain, _ = header(folders["plain"])
    assert {"weight", "scale", "bias"} <= set(plain)
    packed, start = header(folders["auto"])
    assert "weight" not in packed
    assert "scale" not in packed
    for name, entry in packed.items():
        if name != "__metadata__" and not name.startswith(FILLER):
            begin, end = entry["data_offsets"]
            assert (start + begin) % (4096 if end - begin >= 4096 else 64) == 0, name
    plain_size, size = (
        (folders[k] / "packed.safetensors").stat().st_size for k in ("plain", "auto")
    )
    assert size <= 1.05 * plain_size + 3 * 4096


def test_the_file_opens_in_the_safetensors_package(folders):
    from safetensors.numpy import load_file

    found = load_file(folders["auto"] / "packed.safetensors")
    sizes = {a.size for name, a in found.items() if not name.startswith(FILLER)}
    assert any(size >= 300 * 256 for size in sizes)


def test_padding_is_zero(folders):
    """The elements that no kernel reads would be a copy of memory of the exporting process."""
    packed, start = header(folders["auto"])
    data = (folders["auto"] / "packed.safetensors").read_bytes()[start:]
    sizes = [e["data_offsets"] for name, e in packed.items() if name.startswith(FILLER)]
    assert not any(any(data[begin:end]) for begin, end in sizes)
    again = tw.export(program(), folders["auto"].parent / "again", name="packed").directory
    for name in ("libpacked.so", "packed.safetensors"):
        assert (again / name).read_bytes() == (folders["auto"] / name).read_bytes()


def test_a_weight_that_two_functions_pack_is_once_in_the_file(tmp_path):
    first, second = (program() for _ in range(2))
    made = tw.export(tw.combine(first=first, second=second), tmp_path / "packed", name="packed")
    packed, _ = header(made.directory)
    alone = tw.export(first, tmp_path / "alone", name="packed").directory
    assert [e["shape"] for e in packed.values() if "shape" in e] == [
        e["shape"] for e in header(alone)[0].values() if "shape" in e
    ]
    model, x = loaded(made.directory, "packed"), np.ones((3, 256), np.float32)
    wanted = loaded(alone, "packed").main(x)
    assert np.array_equal(model.first(x), wanted)
    assert np.array_equal(model.second(x), wanted)


def test_equal_tensors_have_one_type_and_shape():
    zeros = np.zeros((2, 3), np.float32)
    arrays = [zeros, zeros.copy(), zeros.T, zeros + 1, -zeros]
    constants = {f"c{k}": Constant(a.shape, f32, lambda a=a: a) for k, a in enumerate(arrays)}
    constants["c5"] = Constant((2, 3), i32, lambda: np.zeros((2, 3), np.int32))
    assert equal_tensors(constants, constants) == {"c1": "c0"}


def test_c_maps_the_weights_and_results_are_those_of_plain_weights(folders, tmp_path):
    results: dict[str, bytes] = {}
    for layout, folder in folders.items():
        made, out = tmp_path / layout, tmp_path / f"{layout}.bin"
        source = Path(__file__).parent / "programs" / "mapped.c"
        link = [f"-I{folder}", f"-L{folder}", "-lpacked", f"-Wl,-rpath,{folder}"]
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
        run_linker(["cc", *flags, str(source), *link, "-o", str(made)])
        done = subprocess.run(
            [made, folder / "packed.safetensors", out], capture_output=True, text=True, check=True
        )
        opened, dirty, offset, mapped = map(int, done.stdout.split())
        assert (dirty, offset) == (0, 0)
        size = (folder / "packed.safetensors").stat().st_size
        assert mapped == -(-size // 4096) * 4096  # the first call has no page faults there
        assert (opened < 300 * 256) == (layout == "auto")
        results[layout] = out.read_bytes()
    assert results["auto"] == results["plain"]


def test_a_mapped_file_that_was_written_is_an_error_in_c(tmp_path):
    source = Path(__file__).parent / "programs" / "mapping.c"
    made, file = tmp_path / "mapping", tmp_path / "weights"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
    run_linker(["cc", *flags, str(source), "-o", str(made)])
    done = subprocess.run([made, file], capture_output=True, text=True, check=True)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    head = r"16 the mapped file \(inode \d+\) was written: "
    expected = {
        "none": "16 the weights are not mapped",
        "unchanged": "0 ",
        "longer": f"{head}size 7 is now 16",
        "truncated": f"{head}size 7 is now 1",
        "written": rf"{head}modification time \d+\.\d{{9}} is now 1\.000000000",
        "no error": "16",
        "closed": "16 the weights are not mapped",
        "renamed": "0 ",
        "content": "WEIGHTS of 7",
    }
    assert lines.keys() == expected.keys()
    for name, pattern in expected.items():
        assert re.fullmatch(pattern, lines[name]), lines[name]


def test_python_maps_the_weights(folders):
    x = np.ones((3, 256), np.float32)
    packed, plain = (loaded(folders[k], "packed") for k in ("auto", "plain"))
    assert np.array_equal(packed.main(x), plain.main(x))
    code = f"""
import sys
sys.path.insert(0, {str(folders["auto"])!r})
import numpy as np
from packed import load
x = np.ones((3, 256), np.float32)
mapped = load(verify="trusted")
before = open("/proc/self/smaps").read().split("packed.safetensors")[1]
size, resident = (int(before.split(key)[1].split()[0]) for key in ("Size:", "Rss:"))
print(size == resident)
copied = load(copy_weights=True)
print(np.array_equal(mapped.main(x), copied.main(x)))
lines = open("/proc/self/smaps").read().split("packed.safetensors")
print(len(lines) > 1, "Private_Dirty:         0 kB" in lines[1])
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"] * 4


def test_targets_that_this_machine_cannot_run_have_plain_weights():
    arm = Target("cpu", arch="aarch64")
    assert not packs("auto", "shared", arm)
    assert not packs("auto", "wasm", Target("cpu", arch="wasm32"))
    with pytest.raises(ExportError, match="cannot be packed during the export") as caught:
        packs("packed", "shared", arm)
    assert "weights='plain'" in caught.value.hint
    with pytest.raises(ExportError, match="unknown value 'small' of weights"):
        packs("small", "shared", Target())
