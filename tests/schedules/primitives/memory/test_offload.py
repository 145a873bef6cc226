"""The ``offload`` primitive, and the operator ``to_device``."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import DeviceUnavailableError
from tilewright.ir.dtype import f32
from tilewright.ir.graph.nodes import TensorInfo, Value
from tilewright.ir.graph.operators import infer_call
from tilewright.ir.graph.operators.errors import OperatorAttributeError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.verify import IllFormedProgramError, violations
from tilewright.schedules.handles import BindingRef
from tilewright.schedules.primitives.memory.offload import Offload

from tests.codegen.lower.host.test_devices import counting
from tests.schedules.helpers import rejected

PROGRAM = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32], w: Tensor[(4, 4), f32]):
    h = exp(x)
    a = matmul(h, w)
    b = matmul(a, w)
    p = split(b, (2, 2), axis=1)
    c = matmul(b, w)
    y = add(c, h)
    return y, h
"""


def schedule():
    return tw.Schedule(tw.parse(PROGRAM))


def binding(sch, name):
    found = sch.module.graph("main").bindings
    return next(BindingRef("main", b.value.uid, name) for b in found if b.value.name == name)


@pytest.mark.parametrize("lowered", [False, True])
def test_a_tensor_is_on_the_second_device_between_two_launches(lowered):
    sch = schedule()
    if lowered:
        sch.legalize()
    away, back = sch.offload(binding(sch, "h"), binding(sch, "y"), device="cpu:1")
    assert (away.name, back.name) == ("h_away", "h_back")
    assert not violations(sch.module)
    assert sch.verify().ok
    memory, table = counting()
    exe = tw.compile(sch, "cpu", table=table)
    for n in (0, 1, 65):
        x = np.linspace(-1, 1, n * 4, dtype=np.float32).reshape(n, 4)
        w = np.eye(4, dtype=np.float32)[::-1].copy()
        for found, wanted in zip(exe(x, w), run_graph(tw.parse(PROGRAM), [x, w]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert memory.allocations == 3
    assert not memory.live
    assert str(tw.parse(str(sch))) == str(sch)
    sch.undo()
    assert "to_device" not in str(sch)


def test_host_memory():
    sch = schedule()
    sch.offload("h", "y")
    x, w = np.ones((2, 4), np.float32), np.eye(4, dtype=np.float32)
    np.testing.assert_allclose(tw.compile(sch)(x, w)[0], 2 * np.exp(x), rtol=1e-6)


def test_a_device_that_does_not_exist():
    sch = schedule()
    sch.offload("h", "y", device="cpu:7")
    with pytest.raises(DeviceUnavailableError, match="no device 'cpu:7'; devices are 'cpu'"):
        tw.compile(sch, "cpu")


@pytest.mark.parametrize("device", ["tpu", "cpu:x", ""])
def test_a_name_that_is_not_a_device(device):
    rejected(
        schedule(),
        Offload(binding(schedule(), "h"), binding(schedule(), "y"), device),
        Offload.Requires.DEVICE,
        f"{device!r} is not another device",
    )
    x = Value(1, "x", TensorInfo((), f32))
    with pytest.raises(OperatorAttributeError, match=f"{device!r} is not a device"):
        infer_call("to_device", (x,), (("device", device),))


def test_requirements():
    sch = schedule()
    h, y, p, a = (binding(sch, name) for name in ("h", "y", "p", "a"))
    rejected(sch, Offload(y, h), Offload.Requires.LATER_BINDING, "h is not after y")
    rejected(sch, Offload(p, y), Offload.Requires.TENSOR_ON_DEFAULT_DEVICE, "'p' is Tuple")
    rejected(sch, Offload(a, y), Offload.Requires.USED_LATER, "'a' is not used from 'y' on")
    sch.lower_graph("main")
    sch.plan_memory("main")
    planned = binding(sch, "h")
    rejected(
        sch, Offload(planned, planned), Offload.Requires.DATAFLOW_STAGE, "is in the memory stage"
    )


def test_other_operators_do_not_accept_tensors_on_different_devices():
    text = PROGRAM.replace(
        "    a = matmul(h, w)", '    d = to_device(h, device="cpu:1")\n    a = matmul(d, w)'
    )
    with pytest.raises(IllFormedProgramError, match="different devices"):
        tw.parse(text)


def test_weights_are_not_transferred_at_load_time():
    text = """
constant("w", (4,), f32)

@graph_func
def main(x: Tensor[(4,), f32]):
    a = to_device(const("w"), device="cpu:1")
    b = to_device(a, device="default")
    y = add(x, b)
    return y
"""
    weights = np.arange(4, dtype=np.float32)
    _, table = counting()
    exe = tw.compile(tw.parse(text, constants={"w": weights}), "cpu", table=table)
    assert exe(weights).tolist() == (2 * weights).tolist()


def test_the_gradient_is_transferred_back():
    text = """
@graph_func
def main(x: Tensor[(4,), f32]):
    a = exp(x)
    b = to_device(a, device="cpu:1")
    c = to_device(b, device="default")
    d = multiply(c, a)
    y = sum(d)
    return y
"""
    sch = tw.Schedule(tw.parse(text))
    made = sch.gradient("main", ("x",))
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    found = run_graph(sch.module, [x], function=made.function)
    np.testing.assert_allclose(found[-1], 2 * np.exp(2 * x), rtol=1e-5)


def test_it_is_suggested_for_a_tensor_with_distant_uses():
    sch = schedule()
    assert [s.before.name for s in Offload.suggest(sch.state, binding(sch, "h"))] == ["y"]
    assert not list(Offload.suggest(sch.state, binding(sch, "a")))
