"""MiniLM with its real weights: one compilation for every shape, compared with float64."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen import lowering_page
from tilewright.ir.structural_hash import structural_hash
from tilewright.workbench import demo

pytestmark = pytest.mark.model

SHAPES = [
    (1, 1), (1, 2), (1, 3), (1, 7), (1, 8), (1, 16), (1, 31), (1, 32), (1, 33), (1, 64),
    (1, 128), (2, 1), (2, 5), (2, 13), (3, 17), (4, 9), (5, 15), (7, 14), (8, 1), (8, 32),
    (14, 2), (16, 4), (3, 100),
]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return demo.load_minilm()


@pytest.fixture(scope="module")
def executable(model):
    return tw.compile(tw.from_exported_program(demo.export_minilm(model)))


@pytest.fixture(scope="module")
def exact(model):
    import copy

    return copy.deepcopy(model).double()


def inputs(batch, length, seed):
    rng = np.random.default_rng(seed)
    ids = rng.integers(1000, 30000, (batch, length))
    mask = np.ones((batch, length), np.int64)
    for row in range(batch):
        mask[row, rng.integers(1, length + 1) :] = 0
    return ids, mask


@pytest.mark.parametrize(("batch", "length"), SHAPES)
def test_one_compilation_serves_every_shape(executable, exact, batch, length):
    import torch

    ids, mask = inputs(batch, length, batch * 1000 + length)
    with torch.no_grad():
        reference = exact(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
    ours = executable(ids, mask)
    for name, result in zip(("last_hidden_state", "pooler_output"), ours, strict=True):
        expected = reference[name].numpy()
        assert result.shape == expected.shape
        assert np.abs(np.asarray(result) - expected).max() <= 2e-5


def test_altered_weights_are_rejected(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"something else")
    monkeypatch.setattr(demo.resources, "files", lambda _: tmp_path)
    with pytest.raises(demo.DemoModelError, match="sha256 of the weights"):
        demo.minilm_folder()


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(demo, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(demo.DemoModelError, match=r"tilewright\[demo\]"):
        demo.minilm_folder()


def test_the_page_on_lowering_shows_a_kernel_of_the_model(model):
    module = tw.from_exported_program(demo.export_minilm(model))
    kernels = [
        tw.lower(program, lowering_page.CPU, stop_after="scheduled")[lowering_page.KERNEL].function
        for program in (module, tw.parse(lowering_page.PROGRAM))
    ]
    assert len({structural_hash(kernel) for kernel in kernels}) == 1
