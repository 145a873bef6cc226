"""Damaged files, hostile files, and unsupported opset versions are rejected by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import (
    ExternalDataError,
    MalformedModelError,
    UnknownOpsetWarning,
    UnsupportedOpsetError,
    newest_opset,
)
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def with_weight(**external: str) -> Any:
    """Return ``y = x @ w``; the weight is external data if ``external`` has entries."""
    import onnx

    model = parsed("y = MatMul(x, w)", inputs="float[n, 2] x")
    tensor = onnx.numpy_helper.from_array(WEIGHT, "w")
    if external:
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in external.items():
            tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    return model


def saved(folder: Path, model: Any) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_is_read_on_demand(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(b"\0" * 16 + WEIGHT.tobytes())
    path = saved(tmp_path, with_weight(location="weights/w.bin", offset="16", length="24"))
    module = from_onnx(path)
    loaded = module.constants["w"].load()
    assert module.constants["w"].load() is loaded
    x = np.ones((1, 2), np.float32)
    np.testing.assert_array_equal(run_graph(module, [x])[0], x @ WEIGHT)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "", "..\\w.bin"])
def test_external_data_outside_of_the_folder_is_rejected(tmp_path: Path, location: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(ExternalDataError, match="is outside of the model's folder"):
        from_onnx(saved(inner, with_weight(location=location)))


def test_external_data_through_a_symbolic_link_is_rejected(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    (inner / "w.bin").symlink_to(tmp_path / "w.bin")
    (inner / "folder").symlink_to(tmp_path)
    for location in ("w.bin", "folder/w.bin"):
        with pytest.raises(ExternalDataError, match="is a symbolic link"):
            from_onnx(saved(inner, with_weight(location=location)))


def test_missing_external_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExternalDataError, match=r"file 'w\.bin' does not exist"):
        from_onnx(saved(tmp_path, with_weight(location="w.bin")))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": "8"}, "24 bytes at offset 8 of a file of 24 bytes"),
        ({"length": "8"}, "8 bytes at offset 0 of a file of 24 bytes"),
        ({"offset": "-1"}, "expected a non-negative number of bytes as offset, got '-1'"),
    ],
)
def test_external_data_that_does_not_fit_is_rejected(
    tmp_path: Path, entries: dict[str, str], message: str
) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(ExternalDataError, match=message):
        from_onnx(saved(tmp_path, with_weight(location="w.bin", **entries)))


def test_external_data_of_a_model_in_memory_is_rejected() -> None:
    with pytest.raises(ExternalDataError, match="for a model in memory"):
        from_onnx(with_weight(location="w.bin"))


def test_a_file_truncated_at_any_byte_is_rejected(tmp_path: Path) -> None:
    whole = with_weight().SerializeToString()
    path = tmp_path / "model.onnx"
    for size in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:size])
        with pytest.raises((MalformedModelError, UnsupportedOpsetError)):
            from_onnx(path)


def test_a_file_that_is_not_a_model_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"this is a text, not a model\n" * 20)
    with pytest.raises(MalformedModelError, match=r"cannot be parsed as ONNX|has no graph"):
        from_onnx(path)
    with pytest.raises(MalformedModelError, match="the file does not exist"):
        from_onnx(tmp_path / "nothing.onnx")


def test_old_opsets_are_rejected_if_an_operator_changed_since() -> None:
    with pytest.raises(UnsupportedOpsetError, match="version 6; one version from 7 on is"):
        from_onnx(parsed("y = Add(x, x)", opset=6))
    assert from_onnx(parsed("y = Neg(x)", opset=6)).graph("main").results


def test_opsets_that_the_package_does_not_know_are_imported_with_a_warning() -> None:
    model = parsed("y = Neg(x)", opset=newest_opset() + 1)
    with pytest.warns(UnknownOpsetWarning, match=f"knows versions up to {newest_opset()}"):
        module = from_onnx(model)
    assert module.graph("main").results


def shorten(model: Any) -> None:
    model.graph.initializer[0].raw_data = b"1234"


def empty(model: Any) -> None:
    model.graph.initializer[0].ClearField("raw_data")


def negative(model: Any) -> None:
    model.graph.initializer[0].dims[0] = -2


def unknown_type(model: Any) -> None:
    model.graph.initializer[0].data_type = 8


def undefined_input(model: Any) -> None:
    model.graph.node[0].input[1] = "nowhere"


def missing_output(model: Any) -> None:
    model.graph.output[0].name = "nowhere"


def no_rank(model: Any) -> None:
    model.graph.input[0].type.tensor_type.ClearField("shape")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shorten, "the data has 4 bytes; .* needs 24 bytes"),
        (empty, "the initializer has no data"),
        (negative, "negative dimension"),
        (unknown_type, "element type 8 is not supported"),
        (undefined_input, "uses value 'nowhere', which no earlier node"),
        (missing_output, "an output uses value 'nowhere', which no earlier node"),
        (no_rank, "tensor of known rank"),
    ],
)
def test_damaged_models_are_rejected(damage: Callable[[Any], None], message: str) -> None:
    model = with_weight()
    damage(model)
    with pytest.raises(MalformedModelError, match=message):
        from_onnx(model)


SOURCES = [
    (None, "expected a path or an onnx.ModelProto, got NoneType", "onnx.load"),
    (b"abc", "expected a path or an onnx.ModelProto, got bytes", "load_from_string"),
    (5, "expected a path or an onnx.ModelProto, got int", "onnx.load"),
    ("no_such_folder/model.onnx", "the file does not exist", "the current folder"),
]


@pytest.mark.parametrize(("source", "message", "hint"), SOURCES, ids=[s[1] for s in SOURCES])
def test_a_source_that_is_not_a_model_file(source: object, message: str, hint: str) -> None:
    with pytest.raises(MalformedModelError, match=message) as caught:
        from_onnx(source)
    assert hint in caught.value.hint
    assert caught.value.where


def test_a_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(MalformedModelError, match="expected a model file, got a folder"):
        from_onnx(tmp_path)


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, with_weight())

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(MalformedModelError, match="cannot be read: Permission denied") as caught:
        from_onnx(path)
    assert caught.value.hint == "check the permissions of the file"


def test_the_size_of_a_shape_does_not_wrap() -> None:
    import onnx

    model = with_weight()
    del model.graph.initializer[:]
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[2**62 + 1, 4], raw_data=bytes(16))
    model.graph.initializer.append(tensor)
    with pytest.raises(MalformedModelError, match="the data has 16 bytes"):
        from_onnx(model)


def with_tensor(dims: list[int], data_type: int = 1, **fields: Any) -> Any:
    """Return ``y = x + w`` with a weight of the given fields."""
    import onnx

    model = parsed("y = Add(x, w)", inputs="float[1] x")
    tensor = onnx.TensorProto(name="w", data_type=data_type, dims=dims, **fields)
    model.graph.initializer.append(tensor)
    return model


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dims": [2**32, 2**32], "raw_data": b""}, "the data has 0 bytes; .* needs 7378697629"),
        ({"dims": [2**32, 2**32]}, "the initializer has no data"),
        ({"dims": [4], "float_data": [1, 2]}, "2 elements in float_data; .* needs 4 elements"),
        ({"dims": [1], "float_data": [1, 2]}, "2 elements in float_data; .* needs 1 elements"),
        ({"dims": [0], "float_data": [1]}, "1 elements in float_data; .* needs 0 elements"),
        ({"dims": [1], "int64_data": [1]}, "1 elements in int64_data; .* in float_data"),
        ({"dims": [1], "data_type": 7, "int32_data": [1]}, "in int32_data; .* in int64_data"),
        ({"dims": [1], "raw_data": bytes(4), "float_data": [1]}, "4 bytes and 1 elements in float"),
        ({"dims": [1], "raw_data": bytes(4), "segment": {"begin": 0}}, "4 bytes and a segment"),
    ],
    ids=str,
)
def test_data_that_does_not_fit_the_shape(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedModelError, match=message) as caught:
        from_onnx(with_tensor(**fields))
    assert caught.value.where == "initializer 'w'"


@pytest.mark.parametrize(
    ("data_type", "field", "values"),
    [
        (1, "float_data", [1.5, 2.0]), (11, "double_data", [1.5, 2.0]), (7, "int64_data", [-1, 2]),
        (6, "int32_data", [-1, 2]), (2, "int32_data", [1, 255]), (3, "int32_data", [-1, 2]),
        (12, "uint64_data", [1, 2**32 - 1]), (13, "uint64_data", [1, 2**64 - 1]),
    ],
)  # fmt: skip
def test_data_in_the_field_of_its_dtype_is_read(data_type: int, field: str, values: Any) -> None:
    model = with_tensor([2], data_type, **{field: values})
    model.graph.node[0].input[0] = "w"
    model.graph.output[0].name = "w"
    assert from_onnx(model).constants["w"].load().tolist() == values


def test_boolean_data_of_any_nonzero_byte_is_true() -> None:
    model = with_tensor([3], 9, raw_data=b"\0\1\2")
    del model.graph.node[:]
    model.graph.output[0].name = "w"
    loaded = from_onnx(model).constants["w"].load()
    assert loaded.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("external", "message"),
    [
        ({"offset": "9" * 5000}, "expected a non-negative number of bytes as offset"),
        ({"offset": "\u0663"}, "expected a non-negative number of bytes as offset"),
        ({"length": "-1"}, "expected a non-negative number of bytes as length"),
        ({"location": "a" * 100_000}, "has 100000 characters; at most 4096"),
        ({"location": "a/" * 100_000}, "has 200000 characters; at most 4096"),
        ({"location": "a" * 4000}, "does not exist"),
        ({"location": "a\0b"}, "does not exist"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_hostile_external_data(tmp_path: Path, external: dict[str, str], message: str) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    path = saved(tmp_path, with_weight(**{"location": "w.bin", **external}))
    with pytest.raises(ExternalDataError, match=message):
        from_onnx(path)


@pytest.mark.parametrize("source", ["a" * 100_000, "a\0b", "\ud800", Path("a" * 300)], ids=ascii)
def test_a_path_that_no_file_can_have(source: str | Path) -> None:
    with pytest.raises(MalformedModelError, match="the file does not exist"):
        from_onnx(source)


def test_two_versions_of_the_operator_set_are_rejected() -> None:
    model = parsed("y = Neg(x)")
    model.opset_import.add(domain="ai.onnx", version=14)
    with pytest.raises(UnsupportedOpsetError, match="opset version 14 and 18"):
        from_onnx(model)


NARROW = ("INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2")


def with_narrow_weight(kind: str, *, raw: bool) -> tuple[Any, np.ndarray]:
    """Return ``y = x @ float(w)`` with a weight of a narrow element type, and the weight."""
    import onnx

    number = getattr(onnx.TensorProto, kind)
    model = parsed("c = Cast<to=1>(w)  y = MatMul(x, c)", inputs="float[n, 5] x", opset=21)
    weight = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 0], [1, 3, 5], [7, 6, 2]], np.float32)
    array = weight.astype(onnx.helper.tensor_dtype_to_np_dtype(number))
    if raw:
        tensor = onnx.numpy_helper.from_array(array, "w")
    else:
        tensor = onnx.helper.make_tensor("w", number, weight.shape, weight.ravel().tolist())
    model.graph.initializer.append(tensor)
    return model, weight.astype(array.dtype).astype(np.float32)


@pytest.mark.parametrize("kind", NARROW)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "elements"])
def test_weights_of_4_and_8_bits_are_imported(kind: str, *, raw: bool) -> None:
    model, weight = with_narrow_weight(kind, raw=raw)
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    (got,) = run_graph(from_onnx(model), (x,))
    np.testing.assert_array_equal(got, x @ weight)


@pytest.mark.parametrize("kind", NARROW)
def test_external_weights_of_4_and_8_bits_are_imported(tmp_path: Path, kind: str) -> None:
    import onnx

    model, weight = with_narrow_weight(kind, raw=True)
    path = tmp_path / "model.onnx"
    onnx.save_model(
        model, str(path), save_as_external_data=True, size_threshold=0, location="w.bin"
    )
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    (got,) = run_graph(from_onnx(path), (x,))
    np.testing.assert_array_equal(got, x @ weight)


def test_packed_weights_of_another_size_are_rejected() -> None:
    model, _ = with_narrow_weight("INT4", raw=True)
    model.graph.initializer[0].raw_data = bytes(15)
    with pytest.raises(MalformedModelError, match=r"needs 8 bytes|has 15 bytes"):
        from_onnx(model)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("raw", [True, False])
def test_complex_tensors(dtype: Any, raw: bool) -> None:
    """Operators that move elements take complex tensors, whose parts are in one field."""
    import onnx

    name = np.dtype(dtype).name
    model = parsed("t = Transpose(x)\ny = Concat<axis = 0>(t, w)", inputs=f"{name}[n, 2] x")
    weight = np.array([[1 + 2j, -0.5j], [3, 4j]], dtype)
    tensor = onnx.numpy_helper.from_array(weight, "w")
    if not raw:
        tensor = onnx.helper.make_tensor("w", tensor.data_type, (2, 2), weight.ravel())
        assert not tensor.HasField("raw_data")
    model.graph.initializer.append(tensor)
    x = np.array([[1j, 2], [3, 4 - 1j]], dtype)
    (found,) = run_graph(from_onnx(model), [x])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.concatenate([x.T, weight]))


def test_complex_data_of_the_wrong_length_is_rejected() -> None:
    import onnx

    model = parsed("y = Identity(w)")
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.COMPLEX64, (2,), [1j, 2j])
    del tensor.float_data[-1:]
    model.graph.initializer.append(tensor)
    with pytest.raises(MalformedModelError, match="3 elements in float_data"):
        from_onnx(model)
