"""The Python loader with replaceable weights: updates while threads call, states, wrong files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilewright as tw
from tilewright.codegen.export.pack import pack_weights
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_package import loader_of
from tests.codegen.export.test_replaceable import arrays, program

X = np.random.default_rng(7).standard_normal((3, 256)).astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path]:
    """The directory of a model, and a file of other weights."""
    folder = tmp_path_factory.mktemp("update")
    directory = tw.export(
        program(0), folder / "made", name="packed", weights="replaceable"
    ).directory
    save_file(arrays(1), folder / "new.safetensors")
    pack_weights(folder / "new.safetensors", directory, folder / "other.safetensors")
    return directory, folder / "other.safetensors"


def test_threads_call_while_weights_are_updated(made):
    directory, other = made
    loader = loader_of(directory, "packed")
    model, second = loader.load(threads=1), loader.load(threads=1, weights=other)
    wanted = model.main(X), second.main(X)
    assert not np.array_equal(*wanted)
    seen, wrong, done = [0, 0], [], threading.Event()

    def call() -> None:
        while not done.is_set():
            y = model.main(X)
            k = int(np.array_equal(y, wanted[1]))
            seen[k] += 1
            if not np.array_equal(y, wanted[k]):
                wrong.append(y)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    files = directory / "packed.safetensors", other
    for k in range(1, 201):
        model.update(files[k % 2])
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(seen)
    assert np.array_equal(model.main(X), wanted[0])
    model.update(other, expected_sha256=digest(other))
    assert np.array_equal(model.main(X), wanted[1])


def digest(path: Path) -> str:
    return path.read_bytes().split(b'"sha256":"')[1][:64].decode()


def test_a_file_that_does_not_fit_keeps_the_weights(made, tmp_path):
    directory, other = made
    loader = loader_of(directory, "packed")
    model = loader.load(threads=1)
    wanted, data = model.main(X), other.read_bytes()
    save_file(arrays(1), tmp_path / "plain.safetensors")
    altered = data[:-1] + bytes([data[-1] ^ 1])
    files = {
        "plain.safetensors": (None, r"the header has no sha256 of the tensors .* weights pack"),
        "altered": (
            altered,
            "block 1 of 1 of the weights, .* is damaged: .*; tensors in it: 'bias', ",
        ),
        "short": (data[:50], "the header has no sha256"),
        "other": (data.replace(b'"bias"', b'"bios"'), "tensor 'bias' is missing in the weights"),
        "missing": (None, "cannot read the weights: No such file"),
    }
    for name, (content, message) in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(loader.ModelError, match=message):
            model.update(tmp_path / name)
        assert np.array_equal(model.main(X), wanted)
    with pytest.raises(loader.ModelError, match=f"expected sha256 abc, got {digest(other)}"):
        model.update(other, expected_sha256="abc")
    with pytest.raises(loader.ModelError, match="expected sha256 abc"):
        loader.load(expected_sha256="abc")


def test_a_file_replaced_by_rename_is_found(made, tmp_path):
    directory, other = made
    path = tmp_path / "now.safetensors"
    path.write_bytes((directory / "packed.safetensors").read_bytes())
    loader = loader_of(directory, "packed")
    model, wanted = loader.load(weights=path), loader.load(weights=other).main(X)
    assert not model.check_weights()
    (tmp_path / "next").write_bytes(other.read_bytes())
    (tmp_path / "next").replace(path)
    assert model.check_weights()
    model.update()
    assert not model.check_weights()
    assert np.array_equal(model.main(X), wanted)


STATE = """
constant("start", (4,), f32)
constant("gain", (4,), f32)

@graph_func
def main(x: Tensor[(4,), f32], total: State[Tensor[(4,), f32], const("start")]):
    t = multiply(x, const("gain"))
    new: Tensor[(4,), f32] = add(total, t)
    y = multiply(new, 1.0)
    return y, updates(total=new)
"""


def with_state(start: float, gain: float, folder: Path) -> Any:
    values = {"start": start, "gain": gain}
    constants = {
        k: Constant((4,), f32, lambda v=v: np.full(4, v, np.float32)) for k, v in values.items()
    }
    module = parse(STATE, constants=constants)
    return tw.export(module, folder, name="summed", weights="replaceable").directory


def test_a_state_keeps_the_weights_with_which_it_began(tmp_path):
    first = with_state(0, 1, tmp_path / "first")
    second = with_state(100, 10, tmp_path / "second")
    model = loader_of(first, "summed").load()
    x, state = np.ones(4, np.float32), model.new_state()
    assert model.main(x, state=state)[0] == 1
    model.update(second / "summed.safetensors")
    assert model.main(x, state=state)[0] == 2
    assert model.main(x, state=model.new_state())[0] == 110
    assert model.main(x, state=state)[0] == 3
    state.reset()
    assert model.main(x, state=state)[0] == 110


def test_versions_in_use_are_limited(tmp_path):
    folder = with_state(0, 1, tmp_path / "made")
    loader = loader_of(folder, "summed")
    model, states = loader.load(), []
    for _ in range(62):
        states.append(model.new_state())
        model.update()
    states.append(model.new_state())
    with pytest.raises(loader.ModelError, match="63 versions of the weights are in use"):
        model.update()
    states.clear()
    model.update()
