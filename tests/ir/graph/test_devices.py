"""Devices and streams of tensors and operations."""

from __future__ import annotations

import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.graph.devices import Device, device_named, devices_in, stream_of
from tilewright.ir.graph.nodes import CopyTensor, TensorInfo, TupleInfo
from tilewright.ir.graph.sharing import shared_storages
from tilewright.ir.script import parse, to_text
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.symbolic import as_expr
from tilewright.ir.verify import violations

from tests.ir.script.texts import unverified

TEXT = """\
n = symbols("n", lower=1)

@prim_func
def copy_of(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]


n = symbols("n", lower=1)

@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    s = alloc_storage(n * 4, device="cpu:1", stream=1)
    t = view(s, 0, Tensor((n,), f32, device="cpu:1"))
    copy(x, t, "offload", stream=1)
    kill(s)
    u = alloc_storage(n * 4)
    y = view(u, 0, Tensor[(n,), f32])
    launch(copy_of, x, y, stream=2)
    return y
"""


def test_names() -> None:
    assert device_named("cpu:0") == device_named("cpu") == Device("cpu", 0)
    assert [str(Device("cuda", k)) for k in range(2)] == ["cuda", "cuda:1"]
    assert [device_named(x) for x in ("default", "gpu", "cpu:", "cpu:01", "cuda:-1")] == [None] * 5
    assert TensorInfo((as_expr(4),), f32, "cpu:0") == TensorInfo((as_expr(4),), f32, "cpu")


def test_devices_of_an_annotation() -> None:
    one, other = (TensorInfo((), f32, device) for device in ("cpu", "cuda"))
    assert list(devices_in(TupleInfo((one, TupleInfo((other,)))))) == ["cpu", "cuda"]


def test_the_text_round_trip() -> None:
    text = to_text(parse(TEXT))
    assert text == to_text(parse(text))
    assert all(line in text for line in TEXT.splitlines())
    copies = [b.right for b in parse(TEXT).graph().bindings if isinstance(b.right, CopyTensor)]
    assert [stream_of(c) for c in copies] == [1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('n * 4, device="cpu:1", stream=1', 'n * 4, device="cpu:1"'),
        ('offload", stream=1', 'offload", stream=3'),
        ("x, y, stream=2", "x, y"),
        ("cpu:1", "cpu:2"),
    ],
)
def test_the_hash_depends_on_devices_and_streams(old: str, new: str) -> None:
    assert old in TEXT
    assert structural_hash(parse(TEXT)) != structural_hash(parse(TEXT.replace(old, new)))


def test_storages_of_different_devices_are_not_shared() -> None:
    assert not shared_storages(parse(TEXT).graph())
    same = TEXT.replace(', device="cpu:1"', "")
    assert len(shared_storages(parse(same).graph())) == 0  # y is a result
    inner = same.replace("return y", "return x")
    assert len(shared_storages(parse(inner).graph())) == 1
    assert not shared_storages(parse(TEXT.replace("return y", "return x")).graph())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cpu:1", "gpu", "'gpu' is not a device"),
        ("stream=2", "stream=32", "stream 32 is not in [0, 32)"),
        ("stream=2", "stream=-1", "stream -1 is not in [0, 32)"),
        ("launch(copy_of, x, y", "launch(copy_of, t, y", "t on 'cpu:1', y on 'default'"),
        (
            'view(s, 0, Tensor((n,), f32, device="cpu:1"))',
            "view(s, 0, Tensor[(n,), f32])",
            "a view on 'default' of 's', which is on 'cpu:1'",
        ),
    ],
)
def test_rules(old: str, new: str, message: str) -> None:
    assert old in TEXT
    found = [v for v in violations(unverified(TEXT.replace(old, new))) if v.rule.number == "G24"]
    assert found
    assert message in found[0].message


def test_operators_on_different_devices() -> None:
    text = """
@graph_func
def main(x: Tensor[(4,), f32], y: Tensor((4,), f32, device="cpu:1")):
    z: Tensor[(4,), f32] = add(x, y)
    return z
"""
    (found,) = [v for v in violations(unverified(text)) if v.rule.number == "G24"]
    assert "x on 'default', y on 'cpu:1', the result on 'default'" in found.message
