"""Damaged weights: C and Python name the block and its tensors; older files list no blocks."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import tilewright as tw
from tilewright.codegen.export import weights as weights_module
from tilewright.codegen.export.inspection import altered_files, read_description
from tilewright.codegen.export.native.loader_weights import damaged_block, header_problem
from tilewright.codegen.export.pack import pack_weights
from tilewright.codegen.export.packing import header_digest, read_plan, write_plan

from tests.codegen.export.test_package import loader_of
from tests.codegen.export.test_replaceable import (
    SWAPPED,
    arrays,
    build,
    exchange,
    header_of,
    program,
    weights,
)
from tests.codegen.export.test_shared import PROGRAMS

BLOCK = 1000
"""Not a multiple of 64; some blocks contain only padding, and the last one is shorter."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("blocks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights_module, "BLOCK_BYTES", BLOCK)
        return {
            layout: tw.export(
                program(0), made / layout, kind="static", name="packed", weights=layout
            ).directory
            for layout in ("packed", "replaceable")
        }


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def message(data: bytes, at: int) -> str:
    """Return the message for data in which the byte at a position is damaged."""
    entries, tensors = header_of(data)
    size = len(data) - len(tensors)
    block = (at - size) // BLOCK
    first, end = block * BLOCK, min(block * BLOCK + BLOCK, len(tensors))
    names = [
        f"'{name}'"
        for name, entry in entries.items()
        if not name.startswith("__")
        and entry["data_offsets"][0] < end
        and first < entry["data_offsets"][1]
    ]
    digests = (
        hashlib.sha256(t[first:end]).hexdigest() for t in (tensors, flipped(data, at)[size:])
    )
    wanted, found = digests
    return (
        f"block {block + 1} of {-(-len(tensors) // BLOCK)} of the weights, bytes {size + first} to "
        f"{size + end - 1} of the file, is damaged: expected sha256 {wanted}, got {found}; tensors "
        f"in it: {', '.join(names) or 'none'}"
    )


def positions(data: bytes) -> dict[str, int]:
    """Return positions in the first, a middle, and the last block, and in padding."""
    entries, tensors = header_of(data)
    size = len(data) - len(tensors)
    holes = [e["data_offsets"] for name, e in entries.items() if name.startswith("__filler__")]
    begin, end = max(holes, key=lambda hole: hole[1] - hole[0])
    assert end - begin > 2 * BLOCK
    return {
        "first": size, "middle": size + len(tensors) // 2, "last": len(data) - 1,
        "padding": size + begin + BLOCK, "boundary": size + 7 * BLOCK,
    }  # fmt: skip


def older(data: bytes) -> bytes:
    """Return the file as an earlier version has written it: with one sha256."""
    entries, tensors = header_of(data)
    entries["__metadata__"] = {"sha256": entries["__metadata__"]["sha256"]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 4096)
    return len(text).to_bytes(8, "little") + text + tensors


def listing(data: bytes, length: str) -> bytes:
    """Return a file whose header states another length of blocks, with as many digits."""
    return data.replace(f'"block_bytes":"{BLOCK}"'.encode(), f'"block_bytes":"{length}"'.encode())


def wrong_list(data: bytes) -> bytes:
    at = data.index(b'"blocks":"') + 10 + 2 * 64
    return data[:at] + (b"0" if data[at] != 48 else b"1") + data[at + 1 :]


OPEN = """
#define TILEWRIGHT_STDIO
#include "packed.h"

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  packed_model *model;
  tw_error error;
  for (int k = 1; k < argc; k++) {
    int64_t size;
    void *data = tw_read_file(argv[k], &size);
    int32_t code = packed_open(&runtime, data, size, &model, &error);
    printf("%d %s\\n", code, error.message);
    if (!code) packed_close(model);
    free(data);
  }
  return (int)packed_live_models();
}
"""
OTHER_HEADER = "16 the header of the weights is not that of the exported file"
OTHER_DIGEST = "16 the sha256 of the weights is not that of the exported file"


@pytest.mark.parametrize("layout", ["packed", "replaceable"])
def test_a_library_names_the_damaged_block(folders, tmp_path, layout):
    folder = folders[layout]
    (tmp_path / "open.c").write_text(OPEN)
    made = build(folder, tmp_path / "open.c", tmp_path / "open", "-fsanitize=address", local=True)
    data, replaceable = weights(folder), layout == "replaceable"
    size = f"16 expected weights of {len(data)} bytes, got"
    earlier = "0 " if replaceable else f"{size} {len(older(data))} bytes"
    cases = {
        name: (flipped(data, at), f"16 {message(data, at)}")
        for name, at in positions(data).items()
    } | {
        "whole": (data, "0 "),
        "truncated": (data[:-5000], "16 the weights end" if replaceable else size),
        "length 0": (listing(data, "0000"), OTHER_HEADER),
        "negative length": (listing(data, "-100"), OTHER_HEADER),
        "long": (listing(data, "9999"), OTHER_HEADER),
        "list": (wrong_list(data), "0 " if replaceable else OTHER_HEADER),
        "list and block": (
            flipped(wrong_list(data), len(data) - 1),
            "16 block 3 of " if replaceable else OTHER_HEADER,
        ),
        "earlier": (older(data), earlier),
        "earlier, damaged": (
            flipped(older(data), len(older(data)) - 1), OTHER_DIGEST if replaceable else size
        ),
    }  # fmt: skip
    for name, (content, _) in cases.items():
        (tmp_path / name).write_bytes(content)
    done = subprocess.run(
        [made, *(tmp_path / name for name in cases)], capture_output=True, text=True, check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for line, (name, (_, wanted)) in zip(done.stdout.splitlines(), cases.items(), strict=True):
        assert line == wanted if wanted == "0 " or name in positions(data) else (
            line.startswith(wanted)
        ), (name, line, wanted)  # fmt: skip


def test_python_names_the_damaged_block(folders):
    data = weights(folders["packed"])
    assert damaged_block(memoryview(data)) == ""
    assert header_problem(memoryview(data), verify="blocks") == ""
    for at in positions(data).values():
        assert damaged_block(memoryview(flipped(data, at))) == message(data, at)
        assert header_problem(memoryview(flipped(data, at))) == message(data, at)
    assert header_problem(memoryview(wrong_list(data))) == ""
    problem = header_problem(memoryview(wrong_list(data)), verify="blocks")
    assert problem.startswith("block 3 of ")
    blocks = -(-len(header_of(data)[1]) // BLOCK)
    short = data[:-5000]
    assert damaged_block(memoryview(short)) == (
        f"the header lists {blocks} sha256 of blocks of {BLOCK} bytes, but the tensors have "
        f"{blocks - 5} blocks"
    )
    assert damaged_block(memoryview(data[:300])) == ""
    assert header_problem(memoryview(data[:300])).startswith("the header has no sha256 of the")


@pytest.mark.parametrize("length", ["0000", "-100", "1e99", "9" * 400, "", "٣٣٣"])
def test_a_length_of_blocks_that_is_not_positive(folders, length):
    data = listing(weights(folders["packed"]), length)
    grown = len(length.encode()) - 4
    data = (int.from_bytes(data[:8], "little") + grown).to_bytes(8, "little") + data[8:]
    assert damaged_block(memoryview(data)) == (
        f"the header has blocks of {length[:40]!r} bytes, expected a positive number"
    )


@pytest.mark.parametrize("length", ["9999", "0001", "9" * 18])
def test_a_length_of_blocks_that_does_not_fit_the_list(folders, length):
    data = listing(weights(folders["packed"]), length)
    grown = len(length) - 4
    data = (int.from_bytes(data[:8], "little") + grown).to_bytes(8, "little") + data[8:]
    tensors = len(header_of(data)[1])
    assert f"bytes, but the tensors have {-(-tensors // int(length))} bl" in damaged_block(
        memoryview(data)
    )


def test_files_of_earlier_versions_are_accepted(folders, tmp_path):
    folder = folders["replaceable"]
    data = weights(folder)
    assert len(older(data)) < len(data)
    assert damaged_block(memoryview(older(data))) == header_problem(memoryview(older(data))) == ""
    (tmp_path / "older").write_bytes(older(data))
    made = build(
        folder, PROGRAMS / "hot_swap.c", tmp_path / "program", "-fsanitize=address", local=True
    )
    save_file(arrays(1), tmp_path / "new.safetensors")
    plan = read_plan(folder / "packed.packing")
    (tmp_path / "old").mkdir()
    header = older(data)[: 8 + int.from_bytes(older(data)[:8], "little")]
    write_plan(
        tmp_path / "old" / "packed.packing",
        replace(plan, block_bytes=0, header=header_digest(header)),
    )
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
    pack_weights(tmp_path / "new.safetensors", tmp_path / "old", tmp_path / "1/packed.safetensors")
    (tmp_path / "0/packed.safetensors").write_bytes(older(data))
    assert b"blocks" not in (tmp_path / "1/packed.safetensors").read_bytes()[:4096]
    assert exchange(made, (tmp_path / "0", tmp_path / "1")) == SWAPPED


def test_results_of_an_earlier_file_are_those_of_the_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr(weights_module, "BLOCK_BYTES", BLOCK)
    folder = tw.export(
        program(0), tmp_path / "made", name="packed", weights="replaceable"
    ).directory
    loader, path = loader_of(folder, "packed"), tmp_path / "older.safetensors"
    path.write_bytes(older(weights(folder)))
    x = np.random.default_rng(3).standard_normal((3, 256)).astype(np.float32)
    wanted = loader.load().main(x)
    assert np.array_equal(loader.load(weights=path).main(x), wanted)
    path.write_bytes(flipped(older(weights(folder)), len(older(weights(folder))) - 1))
    with pytest.raises(loader.ModelError, match="the sha256 differs from that in the header"):
        loader.load(weights=path)
    loader.load(weights=path, verify="trusted").main(x)


@pytest.mark.parametrize("layout", ["packed", "replaceable"])
def test_inspect_names_the_damaged_block(folders, layout):
    folder = folders[layout]
    found, path = read_description(folder), folder / "packed.safetensors"
    data = path.read_bytes()
    try:
        assert altered_files(found) == []
        at = positions(data)["middle"]
        path.write_bytes(flipped(data, at))
        (text,) = altered_files(found)
        assert text.startswith("packed.safetensors: ")
        assert text.endswith(message(data, at))
        path.write_bytes(wrong_list(data))
        (text,) = altered_files(found)
        assert "block 3 of " in text
        path.write_bytes(b"")
        assert len(altered_files(found)) == 1
    finally:
        path.write_bytes(data)


def test_blocks_have_one_mebibyte_and_the_file_opens_elsewhere(tmp_path):
    from tilewright.ir.dtype import f32, u8
    from tilewright.ir.module import Constant

    shapes = {"a": (3, 1 << 17), "b": (0, 5), "c": (7,)}
    constants = {
        name: Constant(shape, f32, lambda s=shape: np.ones(s, np.float32))
        for name, shape in shapes.items()
    } | {"d": Constant((1 << 20,), u8, lambda: np.ones(1 << 20, np.uint8))}
    path = tmp_path / "w.safetensors"
    made = weights_module.write_weights(path, constants, packed=True)
    tensors = header_of(path.read_bytes())[1]
    wanted = [
        hashlib.sha256(tensors[k : k + (1 << 20)]).hexdigest()
        for k in range(0, len(tensors), 1 << 20)
    ]
    assert (made.block_bytes, made.blocks) == (1 << 20, "".join(wanted))
    with safe_open(path, "np") as file:
        assert file.metadata() == {
            "sha256": hashlib.sha256(tensors).hexdigest(),
            "block_bytes": "1048576",
            "blocks": made.blocks,
        }
    empty = weights_module.write_weights(path, {"b": constants["b"]})
    assert (empty.blocks, damaged_block(memoryview(path.read_bytes()))) == ("", "")
