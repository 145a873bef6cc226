"""Replaceable weights: exchange while threads call, wrong files, states, sanitizers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilewright as tw
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.export.link import NATIVE, run_linker
from tilewright.codegen.export.pack import pack_weights
from tilewright.codegen.export.replaceable import check_replaceable, masked_header
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_cross import emulator
from tests.codegen.export.test_packed import TEXT
from tests.codegen.export.test_shared import PROGRAMS
from tests.codegen.runtime.cuda.pretended import compiler

SHAPES = {"weight": (300, 256), "scale": (300,), "bias": (300,)}


def arrays(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {k: rng.standard_normal(shape).astype(np.float32) for k, shape in SHAPES.items()}


def program(seed: int) -> tw.Module:
    constants = {k: Constant(a.shape, f32, lambda a=a: a) for k, a in arrays(seed).items()}
    return parse(TEXT, constants=constants)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """The exports of two versions of the weights, as static libraries."""
    made = tmp_path_factory.mktemp("replaceable")
    first, second = (
        tw.export(
            program(seed), made / str(seed), kind="static", name="packed", weights="replaceable"
        ).directory
        for seed in (0, 1)
    )
    return first, second


def weights(folder: Path) -> bytes:
    return (folder / "packed.safetensors").read_bytes()


def test_the_library_does_not_depend_on_the_weights(folders):
    first, second = folders
    assert weights(first) != weights(second)
    assert len(weights(first)) == len(weights(second))
    size = 8 + int.from_bytes(weights(first)[:8], "little")
    headers = {masked_header(weights(folder)[:size]) for folder in folders}
    assert len(headers) == 1
    plans = [(folder / "packed.packing").read_bytes() for folder in folders]
    assert plans[0] == plans[1]
    manifest = json.loads((first / "packed.json").read_text())
    assert manifest["weights_replaceable"] is True
    assert manifest["weights_layout"] == "packed"


def build(folder: Path, source: Path, made: Path, *more: str, local: bool = False) -> Path:
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", *more, f"-I{folder}"]
    parts = [str(source), str(folder / "libpacked.a"), "-o", str(made)]
    if local:
        subprocess.run([*compiler(), *flags, *parts], check=True)
    else:
        run_linker(["cc", *flags, *parts])
    return made


def exchange(program: Path, folders: tuple[Path, Path]) -> str:
    files = [folder / "packed.safetensors" for folder in folders]
    done = subprocess.run(
        [program, *files], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


SWAPPED = "0 wrong, both seen, 1 in use, 0 bytes more, 0 live"


def test_threads_call_while_weights_are_exchanged(folders, tmp_path):
    made = build(folders[0], PROGRAMS / "hot_swap.c", tmp_path / "program")
    assert exchange(made, folders) == SWAPPED


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_a_sanitizer_finds_nothing_in_an_exchange(folders, tmp_path, sanitizer):
    made = build(
        folders[0], PROGRAMS / "hot_swap.c", tmp_path / sanitizer,
        f"-fsanitize={sanitizer}", "-g", local=True,
    )  # fmt: skip
    assert exchange(made, folders) == SWAPPED


def check_order(folder: Path, include: Path) -> subprocess.CompletedProcess[str]:
    """Compile the references to versions with the thread sanitizer, and run their check."""
    made = folder / "versions"
    flags = ["-std=gnu11", "-O1", "-g", "-pthread", "-fsanitize=thread", f"-I{include}"]
    subprocess.run(
        [*compiler(), *flags, str(PROGRAMS / "versions_check.c"), "-o", str(made)], check=True
    )
    return subprocess.run([made], capture_output=True, text=True, check=False, timeout=300)


def test_references_to_versions_are_ordered(tmp_path):
    done = check_order(tmp_path, NATIVE)
    assert (done.returncode, done.stdout) == (0, "0 wrong, 0 left, full, in use\n"), done.stderr


def test_the_check_of_the_order_is_effective(tmp_path):
    text = (NATIVE / "versions.c").read_text()
    for order in ("ACQ_REL", "ACQUIRE", "RELEASE"):
        text = text.replace(f"__ATOMIC_{order}", "__ATOMIC_RELAXED")
    (tmp_path / "versions.c").write_text(text)
    done = check_order(tmp_path, tmp_path)
    assert done.returncode != 0
    assert "data race" in done.stderr


WRONG = """
#define TILEWRIGHT_STDIO
#include "packed.h"

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  packed_model *model, *other;
  tw_error error;
  int64_t bytes, size;
  void *good = tw_read_file(argv[1], &bytes), *root = tw_read_file(argv[2], &size);
  if (packed_open(&runtime, good, bytes, &model, &error)) return puts(error.message), 1;
  for (int k = 3; k < argc; k++) {
    void *data = tw_read_file(argv[k], &size);
    int32_t code = packed_update(model, data, size, 0, &error);
    printf("%d %s\\n", code, error.message);
    code = packed_open(&runtime, data, size, &other, &error);
    printf("%d %s\\n", code, error.message);
    free(data);
  }
  printf("%d\\n", packed_update(model, good, bytes, root, &error));
  ((unsigned char *)root)[31] ^= 1;
  printf("%d %s\\n", packed_update(model, good, bytes, root, &error), error.message);
  runtime.expected_root = root;
  printf("%d %s\\n", packed_open(&runtime, good, bytes, &other, &error), error.message);
  printf("%d ", packed_update(0, good, bytes, 0, &error));
  puts(error.message);
  printf("%d %d\\n", packed_weights_in_use(model, good), packed_weights_in_use(model, root));
  packed_close(model);
  free(good);
  free(root);
  return (int)packed_live_models();
}
"""


def header_of(data: bytes) -> tuple[dict, bytes]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def file_of(entries: dict, tensors: bytes) -> bytes:
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text + tensors


def wrong_files(data: bytes) -> dict[str, tuple[bytes, str]]:
    """Return wrong files with the beginning of the message for each."""
    entries, tensors = header_of(data)
    packed = next(k for k in entries if k.startswith("prepared"))
    bias = entries["bias"]

    def changed(**facts: object) -> bytes:
        return file_of({**entries, "bias": {**bias, **facts}}, tensors)

    missing = {("other" if k == "bias" else k): v for k, v in entries.items()}
    expected = '"dtype":"F32","shape":[300]'
    bias_text = f"tensor 'bias' of the weights: expected {expected}"
    end_text = f"the weights end within tensor '{packed}': expected {len(data)} bytes, got"
    size_text = f"expected weights of {len(data)} bytes, got"
    format_text = "expected a safetensors file with tensor 'bias', got"
    return {
        "missing": (
            file_of(missing, tensors),
            f"tensor 'bias' is missing in the weights; expected {expected}",
        ),
        "dtype": (
            changed(dtype="I32"),
            f'{bias_text}, got "dtype":"I32","shape":[300]',
        ),
        "shape": (
            changed(shape=[10, 30]),
            f'{bias_text}, got "dtype":"F32","shape":[10,30]',
        ),
        "offset": (
            changed(data_offsets=[n + 4 for n in bias["data_offsets"]]),
            "tensor 'bias' is not at the offset of this library: run 'tilewright weights pack'",
        ),
        "more": (
            file_of(
                {**entries, "gain": {**bias, "data_offsets": [len(tensors), len(tensors) + 1200]}},
                tensors + bytes(1200),
            ),
            "tensor 'gain' of the weights is not one of this library",
        ),
        "truncated": (
            data[:-700],
            f"{end_text} {len(data) - 700} bytes",
        ),
        "longer": (data + b"x", f"{size_text} {len(data) + 1} bytes"),
        "short": (data[:100], f"{format_text} 100 bytes without its header"),
        "text": (b"not weights", f"{format_text} 11 bytes without its header"),
        "empty object": (
            file_of({}, b""), "tensor 'bias' is missing in the weights; expected"
        ),
        "altered": (
            data[:-1] + bytes([data[-1] ^ 1]),
            "block 1 of 1 of the weights, bytes 4096 to",
        ),
    }  # fmt: skip


def test_wrong_files_are_errors_that_name_the_tensor(folders, tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text(WRONG)
    made = build(folders[0], source, tmp_path / "wrong", "-fsanitize=address", local=True)
    data = weights(folders[0])
    root = tmp_path / "root"
    root.write_bytes(bytes.fromhex(header_of(data)[0]["__metadata__"]["sha256"]))
    files = wrong_files(data)
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)
    own = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
    done = subprocess.run(
        [made, folders[0] / "packed.safetensors", root, *(tmp_path / name for name in files)],
        capture_output=True, text=True, check=False, env=own,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for k, (name, (_, message)) in enumerate(files.items()):
        for line in lines[2 * k : 2 * k + 2]:
            assert line.startswith(f"16 {message}"), name
    wrong_root = "16 the sha256 of the weights is not the expected one"
    assert lines[2 * len(files) :] == ["0", wrong_root, wrong_root, "14 the model is null", "1 0"]


def test_weights_that_cannot_be_replaced_are_an_error(tmp_path):
    with pytest.raises(ExportError, match="the weights of kind 'wasm' cannot be replaced"):
        check_replaceable("wasm")
    text = """
n = symbols("n", lower=1)
@graph_func
def main(x: Tensor[(n,), f32]):
    y = relu(x)
    return y
"""
    with pytest.raises(ExportError, match="the model has no weights to replace"):
        tw.export(parse(text), tmp_path / "none", weights="replaceable")
    reserved = parse(TEXT.replace("def main", "def update"), constants=program(0).constants)
    with pytest.raises(ExportError, match="function name 'update' is reserved"):
        tw.export(reserved, tmp_path / "update", name="packed", weights="replaceable")


def test_plain_weights_are_replaceable_as_well(tmp_path):
    """For a processor that the exporting machine is not: the library packs each version."""
    target = tw.Target("cpu", arch="aarch64")
    first, second = (
        tw.export(
            program(seed), tmp_path / str(seed), kind="static", name="packed", target=target,
            weights="replaceable",
        ).directory
        for seed in (0, 1)
    )  # fmt: skip
    manifest = json.loads((first / "packed.json").read_text())
    assert (manifest["weights_layout"], manifest["weights_replaceable"]) == ("plain", True)
    save_file(arrays(1), tmp_path / "new.safetensors")
    output = tmp_path / "packed.safetensors"
    pack_weights(tmp_path / "new.safetensors", first, output)
    assert output.read_bytes() == weights(second)
    made = tmp_path / "program"
    run_linker(
        [
            "cc", "-target", "aarch64-linux-musl", "-static", "-O1", "-std=gnu11", "-pthread",
            f"-I{first}", str(PROGRAMS / "hot_swap.c"), str(first / "libpacked.a"),
            "-o", str(made),
        ]
    )  # fmt: skip
    files = [first / "packed.safetensors", output]
    done = subprocess.run(
        [emulator("aarch64"), made, *files], capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, SWAPPED), done.stdout + done.stderr
