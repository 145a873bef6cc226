"""Files with weights that change while a model or its executable is in use."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import tilewright as tw
from tilewright.ir.dtype import f32, i8
from tilewright.ir.importers.weight_file import WeightFile, WeightsChangedError

SIZE = 1 << 20
TEXT = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[1] x) => (float[{SIZE}] y) {{ y = Add(x, w) }}"""
ONE = np.ones(1, np.float32)


@pytest.fixture
def module(tmp_path: Path) -> tw.Module:
    """A model with external weights, all 1, in the file ``big.bin``."""
    model = parser.parse_model(TEXT)
    np.ones(SIZE, np.float32).tofile(tmp_path / "big.bin")
    tensor = model.graph.initializer.add(name="w", data_type=onnx.TensorProto.FLOAT, dims=[SIZE])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="big.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    return tw.from_onnx(tmp_path / "model.onnx")


CHANGES = {
    "shorter": lambda path: os.truncate(path, 0),
    "other values": lambda path: np.zeros(SIZE, np.float32).tofile(path),
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: (
        np.zeros(SIZE, np.float32).tofile(path.with_name("new")),
        path.with_name("new").replace(path),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_executable_keeps_its_weights(change: str, module: tw.Module, tmp_path: Path) -> None:
    exe = tw.compile(module)
    assert (exe(ONE) == 2).all()
    CHANGES[change](tmp_path / "big.bin")
    assert (exe(ONE) == 2).all()


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_changed_before_the_first_call_are_an_error(
    change: str, module: tw.Module, tmp_path: Path
) -> None:
    exe = tw.compile(module)
    CHANGES[change](tmp_path / "big.bin")
    with pytest.raises(WeightsChangedError) as caught:
        exe(ONE)
    assert caught.value.where == str(tmp_path / "big.bin")
    assert caught.value.hint == "import the model again"
    with pytest.raises(WeightsChangedError):
        exe(ONE)


def test_executables_of_one_model_share_its_weights(module: tw.Module) -> None:
    first, second = (tw.compile(module, debug=debug) for debug in (False, True))
    assert first.constants()["w"] is second.constants()["w"]
    assert not first.constants()["w"].flags.writeable


def test_weights_are_freed_with_their_last_user(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(bytes(range(10)))
    file = WeightFile(tmp_path / "w")
    assert file.size == 10
    first = file.read(2, (2, 4), i8)
    assert first.tolist() == [[2, 3, 4, 5], [6, 7, 8, 9]]
    assert file.read(2, (2, 4), i8) is first
    del first
    gc.collect()
    (tmp_path / "w").write_bytes(bytes(10))
    with pytest.raises(WeightsChangedError, match=r"had 10 bytes .* was changed or replaced"):
        file.read(2, (2, 4), i8)


def test_tensors_without_elements_and_scalars(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(np.float32(5).tobytes())
    file = WeightFile(tmp_path / "w")
    assert file.read(4, (0, 3), f32).shape == (0, 3)
    assert file.read(0, (), f32) == 5


def test_a_pipe_or_a_link_in_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(bytes(4))
    file = WeightFile(path)
    path.rename(tmp_path / "target")
    path.symlink_to(tmp_path / "target")
    with pytest.raises(WeightsChangedError, match="cannot be read: Too many levels of symbolic"):
        file.read(0, (1,), f32)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(WeightsChangedError):
        file.read(0, (1,), f32)
