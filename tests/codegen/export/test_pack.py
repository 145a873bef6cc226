"""Packing of a checkpoint for an export with replaceable weights."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tilewright as tw
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.export.pack import WeightsFileError, pack_weights
from tilewright.codegen.export.packing import read_plan
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_package import loaded
from tests.codegen.export.test_replaceable import arrays, program

X = np.random.default_rng(7).standard_normal((3, 256)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("pack") / "made"
    return tw.export(program(0), made, name="packed", weights="replaceable").directory


def checkpoint(folder: Path, **changed: np.ndarray) -> Path:
    path = folder / "new.safetensors"
    save_file({k: v for k, v in {**arrays(1), **changed}.items() if v.size}, path)
    return path


def test_a_packed_file_equals_that_of_an_export(folder, tmp_path):
    output = tmp_path / "packed.safetensors"
    packed = pack_weights(checkpoint(tmp_path, more=np.ones(3, np.float32)), folder, output)
    other = tw.export(program(1), tmp_path / "other", name="packed", weights="replaceable")
    data = output.read_bytes()
    assert data == (other.directory / "packed.safetensors").read_bytes()
    assert (packed.path, packed.bytes, packed.unused) == (output, len(data), ("more",))
    assert packed.sha256.encode() in data
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.safetensors", "other", output.name]


ROWS = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bias": ROWS[:0]}, r"tensor 'bias' \(f32 \[300\]\) is missing in .*new.safetensors"),
        ({"bias": ROWS}, r"'bias' of .*: expected F32 \[300\] .*, got F32 \[3, 4\] \(48 bytes\)"),
        (
            {"scale": np.ones(300)},
            r"'scale' of .*: expected F32 \[300\] \(f32 \[300\], 1200 bytes\), got F64 \[300\]",
        ),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_an_error(folder, tmp_path, changed, message):
    with pytest.raises(WeightsFileError, match=message):
        pack_weights(checkpoint(tmp_path, **changed), folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_weights_are_errors(folder, tmp_path):
    path = checkpoint(tmp_path)
    data = path.read_bytes()
    cases = {
        data[:-100]: "ends within tensor 'weight': expected",
        data[:40]: "40 bytes without a header",
        b"": "is not a safetensors file",
        (2).to_bytes(8, "little") + b"[]": "is missing in",
        (13).to_bytes(8, "little") + b'{"bias": [1]}': r"tensor 'bias' of .* has entry \[1\]",
    }
    for content, message in cases.items():
        path.write_bytes(content)
        with pytest.raises(WeightsFileError, match=message):
            pack_weights(path, folder, tmp_path / "out")


def test_a_directory_without_replaceable_weights_is_an_error(folder, tmp_path):
    path = checkpoint(tmp_path)
    with pytest.raises(ExportError, match=r"has no file NAME.packing") as caught:
        pack_weights(path, tmp_path)
    assert "weights='replaceable'" in caught.value.hint
    plan = (folder / "packed.packing").read_bytes()
    (tmp_path / "a.packing").write_bytes(plan[:50])
    with pytest.raises(ExportError, match="is not a plan for packing weights"):
        pack_weights(path, tmp_path)
    other = re.sub(rb'"schema":\d+', b'"schema":9', plan)
    (tmp_path / "a.packing").write_bytes(other)
    with pytest.raises(ExportError, match="has version"):
        pack_weights(path, tmp_path)
    (tmp_path / "b.packing").write_bytes(plan)
    with pytest.raises(ExportError, match=r"has 2 files NAME.packing"):
        pack_weights(path, tmp_path)


FOLDED = """
n = symbols("n", lower=1)
constant("weight", (40, 24), f32)
constant("gain", (2,), f32)
constant("bias", (8, 3), f32)

@graph_func
def main(x: Tensor[(n, 40), f32], z: Tensor[(n, 8, 3), f32]):
    y = matmul(x, const("weight"))
    g = sum(const("gain"), axes=(0,), keepdims=False)
    a = multiply(y, g)
    b = add(z, const("bias"))
    return a, b
"""


def folded(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"weight": (40, 24), "gain": (2,), "bias": (8, 3)}
    return {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}


def test_values_that_the_code_depends_on_are_not_replaced(tmp_path):
    """Constant folding has computed with them; views of others follow their source."""
    first, second = folded(0), folded(1)
    module = parse(
        FOLDED, constants={k: Constant(a.shape, f32, lambda a=a: a) for k, a in first.items()}
    )
    for attempt in ("compiled", "cached"):
        made = tw.export(module, tmp_path / attempt, name="f", weights="replaceable").directory
        assert list(read_plan(made / "f.packing").fixed) == ["gain"], attempt
    path = tmp_path / "new.safetensors"
    save_file(second, path)
    with pytest.raises(WeightsFileError, match=r"'gain' of .* compiled into the code"):
        pack_weights(path, made)
    del second["gain"]
    save_file(second, path)
    pack_weights(path, made)
    model = loaded(made, "f")
    x, z = np.ones((3, 40), np.float32), np.ones((3, 8, 3), np.float32)
    new = {**second, "gain": first["gain"]}
    wanted = run_graph(
        parse(FOLDED, constants={k: Constant(a.shape, f32, lambda a=a: a) for k, a in new.items()}),
        (x, z),
    )
    for got, array in zip(model.main(x, z), wanted, strict=True):
        np.testing.assert_allclose(got, array, rtol=2e-5, atol=2e-5)


def test_weights_that_a_schedule_has_computed_with_are_refused(tmp_path):
    constants = {k: Constant(a.shape, f32, lambda a=a: a) for k, a in folded(0).items()}
    schedule = tw.Schedule(parse(FOLDED, constants=constants))
    schedule.fold_constants("main")
    with pytest.raises(ExportError, match=r"constant 'folded\.\w+' was computed from weights by a"):
        tw.export(schedule, tmp_path / "made", name="f", weights="replaceable")


def test_a_scheduled_program_has_the_tensors_of_the_program(tmp_path):
    """Its constants include views of others, which follow their source."""
    lines = [line for line in FOLDED.splitlines() if '"gain"' not in line]
    text = "\n".join(lines).replace("multiply(y, g)", "multiply(y, 2.0)")

    def exported(seed: int) -> Path:
        arrays = folded(seed)
        del arrays["gain"]
        constants = {k: Constant(a.shape, f32, lambda a=a: a) for k, a in arrays.items()}
        schedule = tw.Schedule(parse(text, constants=constants))
        schedule.default_schedule()
        assert any("@" in name for name in schedule.module.constants)
        made = tmp_path / str(seed)
        return tw.export(schedule, made, name="f", weights="replaceable").directory

    first, second = exported(0), exported(1)
    assert set(read_plan(first / "f.packing").sources) == {"weight", "bias"}
    save_file(folded(1), tmp_path / "new.safetensors")
    packed = pack_weights(tmp_path / "new.safetensors", first, tmp_path / "out")
    assert packed.unused == ("gain",)
    assert packed.path.read_bytes() == (second / "f.safetensors").read_bytes()


TRANSFORMED = """
n = symbols("n", lower=1)
constant("w", (64, 48, 32), f32)
constant("scale", (32,), f32)

@graph_func
def main(x: Tensor[(n, 48, 64, 32), f32]):
    t = permute_dims(const("w"), axes=(1, 0, 2))
    s = multiply(t, const("scale"))
    y = add(x, s)
    return y
"""


def test_a_view_of_a_transformed_weight_follows_it(tmp_path):
    def module(seed: int) -> tw.Module:
        rng = np.random.default_rng(seed)
        shapes = {"w": (64, 48, 32), "scale": (32,)}
        made = {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
        save_file(made, tmp_path / f"{seed}.safetensors")
        return parse(
            TRANSFORMED,
            constants={k: Constant(a.shape, f32, lambda a=a: a) for k, a in made.items()},
        )

    first, second = (
        tw.export(module(seed), tmp_path / str(seed), name="t", weights="replaceable").directory
        for seed in (0, 1)
    )
    plan = read_plan(first / "t.packing")
    assert set(plan.sources) == {"w", "scale"}
    assert not plan.fixed
    assert any("@" in name for name in plan.file)
    pack_weights(tmp_path / "1.safetensors", first, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == (second / "t.safetensors").read_bytes()
    x = np.zeros((1, 48, 64, 32), np.float32)
    wanted = run_graph(module(1), (x,))
    (first / "t.safetensors").write_bytes((tmp_path / "out").read_bytes())
    assert np.array_equal(loaded(first, "t").main(x), np.asarray(wanted).reshape(x.shape))
    arm = tw.Target("cpu", arch="aarch64")
    with pytest.raises(ExportError, match="is a view of a transformed weight"):
        tw.export(module(0), tmp_path / "arm", kind="object", target=arm, weights="replaceable")
