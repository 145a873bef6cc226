"""All graph-level steps keep the results and the states of programs with state, in every call."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.apply import StepError
from tilewright.schedules.handles import BindingRef
from tilewright.schedules.primitives.graph.fuse_ops import FuseOps
from tilewright.schedules.primitives.graph.fuse_tir import FuseTir
from tilewright.schedules.verify import VerificationError, verify

from tests.ir.graph.state_programs import KERNELS, NEW, ORDERED, PROGRAMS, A, X, program
from tests.schedules.helpers import rejected

Array = NDArray[Any]

CALLS = 3
STEPS = (
    "fold_constants",
    "dead_code",
    "legalize",
    "lift_transforms",
    "fuse_ops",
    "fuse_tir",
    "plan_memory",
)
OPERATORS = program(
    f"{A}, {X}, n: State[{NEW}]",
    """
p = multiply(a, 2.0)
q = add(p, 1.0)
w = full((8,), 3.0, dtype="f32")
a2 = call_tir(update, a, q, updates=(0,))
r = relu(a)
s = add(r, a2)
dead = call_tir(update, a2, w, updates=(0,))
n2 = add(n, 1.0)
w2 = call_tir(update, w, x, updates=(0,))
v = reshape(s, (2, 4))
y = exp(w)
return v, w2, y, updates(a=a2, n=n2)
""",
)
ALL = {**PROGRAMS, "operators": OPERATORS, "a read before an update": ORDERED}


def runs(module: Module, function: str = "main") -> list[Array]:
    """Return the results and written arguments of several calls with one state."""
    func = module.graph(function)
    random_ = np.random.default_rng(7)
    made: list[Array] = []
    states: dict[str, Array] = {}
    for _ in range(CALLS):
        inputs: list[Any] = []
        for param in func.params:
            info = param.value.info
            assert isinstance(info, TensorInfo)
            if info.dtype.name == "bool":
                inputs.append(np.array(bool(random_.integers(2))))
                continue
            fresh = random_.integers(-9, 9, 8).astype(np.float32)
            own = states.setdefault(param.value.name, fresh) if param.access == "state" else fresh
            inputs.append(own)
        results = run_graph(module, inputs, function=function)
        made += [np.array(x) for x in (*results, *inputs)]
    return made


def same(before: list[Array], after: list[Array]) -> None:
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ALL)
def test_every_step_keeps_results_and_states(name: str) -> None:
    sch = Schedule(parse(ALL[name]))
    before = runs(sch.module)
    for step in STEPS:
        getattr(sch, step)()
        assert not violations(sch.module), step
        assert to_text(parse(to_text(sch.module))) == to_text(sch.module)
        same(before, runs(sch.module))


@pytest.mark.parametrize("seed", range(12))
def test_steps_in_random_order_keep_results_and_states(seed: int) -> None:
    rng = random.Random(seed)
    for name in rng.sample(sorted(ALL), 6):
        sch = Schedule(parse(ALL[name]))
        before = runs(sch.module)
        for step in rng.choices(STEPS[:-1], k=6):
            try:
                getattr(sch, step)()
            except StepError:
                continue
            same(before, runs(sch.module))
        for kernel in [f.name for f in sch.module.prims]:
            try:
                sch.collapse_dims(kernel)
            except StepError:
                continue
            same(before, runs(sch.module))


def test_an_unused_update_is_dead() -> None:
    sch = Schedule(parse(OPERATORS))
    sch.dead_code()
    names = [b.value.name for b in sch.module.graph().bindings]
    assert "dead" not in names
    assert {"a2", "w2", "n2"} <= set(names)


CALLED = """
@graph_func
def inner(a: Tensor[(4,), f32]):
    y = add(a, const("w"))
    return y

@graph_func
def outer(a: Tensor[(4,), f32]):
    y: Tensor[(4,), f32] = call(inner, a)
    return y

@graph_func
def other(a: Tensor[(4,), f32]):
    y = exp(a)
    return y

@graph_func
def main(x: Tensor[(4,), f32]):
    unused: Tensor[(4,), f32] = call(outer, x)
    y = relu(x)
    return y
"""


def test_functions_that_only_dead_calls_use_are_removed() -> None:
    module = parse('constant("w", (4,), f32)\n' + CALLED, constants={"w": np.ones(4, np.float32)})
    sch = Schedule(module)
    sch.dead_code("main")
    assert list(sch.module.functions) == ["other", "main"]
    assert not sch.module.constants
    again = Schedule(sch.module)
    again.dead_code("main")
    assert str(again.module) == str(sch.module)


def test_an_update_is_left_out_of_groups() -> None:
    sch = Schedule(parse(OPERATORS))
    sch.legalize()
    graph = sch.module.graph()
    chosen = [b for b in graph.bindings if b.value.name in ("q", "a2")]
    refs = tuple(BindingRef("main", b.value.uid, b.value.name) for b in chosen)
    step = FuseOps(bindings=refs)
    rejected(sch, step, FuseOps.Requires.NO_UPDATES, "call 'a2' updates a")
    sch.fuse_ops()
    names = [b.value.name for b in sch.module.graph().bindings]
    assert "a2" in names


def test_groups_keep_updates_in_place() -> None:
    sch = Schedule(parse(ORDERED))
    assert sch.fuse_ops() == ()
    sch.plan_memory()
    assert "copy(" not in str(sch.module.graph())
    copied = Schedule(parse(ORDERED))
    refs = [
        BindingRef("main", b.value.uid, b.value.name)
        for b in copied.module.graph().bindings
        if b.value.name in ("t", "y")
    ]
    before = runs(copied.module)
    copied.fuse_ops(bindings=refs)
    copied.fuse_tir()
    copied.plan_memory()
    assert "copy(cache, c2, \"'cache' is used later, by 'y'\")" in str(copied.module.graph())
    same(before, runs(copied.module))


def test_a_group_that_writes_a_parameter_is_rejected() -> None:
    text = (
        KERNELS
        + """
@graph_func(primitive=True)
def group(c: InOut[Tensor[(8,), f32]], x: Tensor[(8,), f32]):
    t: Tensor[(8,), f32] = call_tir(add1, x)
    c2 = call_tir(update, c, t, updates=(0,))
    return updates(c=c2)

@graph_func
def main(a: State[Tensor[(8,), f32]], x: Tensor[(8,), f32]):
    a2: Tensor[(8,), f32] = call(group, a, x, updates=(0,))
    return updates(a=a2)
"""
    )
    sch = Schedule(parse(text))
    rejected(sch, FuseTir(), FuseTir.Requires.NO_UPDATES, "writes parameters: c")
    found = sch.check(FuseTir())
    assert [p.requirement for p in found] == [FuseTir.Requires.NO_UPDATES] * 2
    assert "group 'group' writes parameters: c" in found[0].message
    assert "'c2' in group 'group' updates operands 0" in found[1].message


COLLAPSED = """
b = symbols("b", lower=1)

@prim_func
def step(c: InOut[(b, 2, 4), f32], x: Buffer[(b, 2, 4), f32], y: Out[(b, 2, 4), f32]):
    for i in range(b):
        for j in range(2):
            for k in range(4):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), spatial(k)
                    y[vi, vj, vk] = c[vi, vj, vk] * 2.0
    for l in range(b):
        for m in range(2):
            for o in range(4):
                with block("c"):
                    vl, vm, vo = spatial(l), spatial(m), spatial(o)
                    c[vl, vm, vo] = c[vl, vm, vo] + x[vl, vm, vo]

b = symbols("b", lower=1)

@graph_func
def main(s: State[Tensor[(b, 2, 4), f32]], x: Tensor[(b, 2, 4), f32]):
    t: Tuple[Tensor[(b, 2, 4), f32], Tensor[(b, 2, 4), f32]] = call_tir(step, s, x, updates=(0,))
    y = t[0]
    s2 = t[1]
    return y, updates(s=s2)
"""


def test_collapsed_dimensions_of_an_updated_argument() -> None:
    module = parse(COLLAPSED)
    sch = Schedule(module)
    sch.collapse_dims("step")
    assert not violations(sch.module)
    x = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    old, new = np.ones_like(x), np.ones_like(x)
    for _ in range(2):
        (a,), (b,) = run_graph(module, [old, x]), run_graph(sch.module, [new, x])
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(old, new)
    sch.dead_code()
    sch.plan_memory()
    assert "copy(" not in str(sch.module.graph())


HOISTED = """
@prim_func
def step(y: Out[(4,), f32], w: Buffer[(4,), f32], c: InOut[(4,), f32], x: Buffer[(4,), f32]):
    t = alloc((4,), f32)
    for i in range(4):
        with block("t"):
            vi = spatial(i)
            t[vi] = w[vi] * 0.5
    for j in range(4):
        with block("c"):
            vj = spatial(j)
            c[vj] = c[vj] + t[vj]
    for k in range(4):
        with block("y"):
            vk = spatial(k)
            y[vk] = x[vk] + c[vk]

@graph_func
def main(s: State[Tensor[(4,), f32]], w: Tensor[(4,), f32], x: Tensor[(4,), f32]):
    t: Tuple[Tensor[(4,), f32], Tensor[(4,), f32]] = call_tir(step, w, s, x, updates=(1,))
    y = t[0]
    s2 = t[1]
    return y, updates(s=s2)
"""


def test_a_block_hoisted_before_an_update() -> None:
    module = parse(HOISTED)
    sch = Schedule(module)
    sch.hoist_block(sch.get_block("t", "step"))
    assert not violations(sch.module)
    w, x = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    old, new = np.zeros(4, np.float32), np.zeros(4, np.float32)
    for _ in range(2):
        (a,), (b,) = run_graph(module, [old, w, x]), run_graph(sch.module, [new, w, x])
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(old, new)


def test_verification_compares_states() -> None:
    sch = Schedule(parse(ORDERED))
    module = sch.module
    sch.legalize()
    sch.plan_memory()
    sch.verify().required()
    wrong = parse(to_text(module).replace("updates(cache=c2)", "updates(cache=t)"))
    with pytest.raises(VerificationError):
        verify(module, wrong).required()


PARTS = """
@prim_func
def kernel(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for a in range(4):
        for b in range(8):
            with block("start"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = 1.0
    for i in range(4):
        for j in range({extent}):
            with block("part"):
                vi, vj = spatial(i), spatial(8, j)
                y[vi, vj] = x[vi, vj]

@graph_func
def main(x: Tensor[(4, 8), f32]):
    y: Tensor[(4, 8), f32] = call_tir(kernel, x)
    return y
"""
INIT = """
@prim_func
def kernel(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        for j in range(8):
            for k in range(2):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = {init}
                    y[vi, vj] += x[vi, vj]

@graph_func
def main(x: Tensor[(4, 8), f32]):
    y: Tensor[(4, 8), f32] = call_tir(kernel, x)
    return y
"""
KEPT = {
    "part of the columns": PARTS.format(extent="3"),
    "a triangle": PARTS.format(extent="i + 1"),
    "an index in an init": INIT.format(init="index(vi, f32)"),
    "a condition of an init": INIT.format(init="where(condition(vj < 3), 1.0, 5.0)"),
}


@pytest.mark.parametrize("case", KEPT)
def test_dimensions_that_blocks_use_separately_are_kept(case: str) -> None:
    module = parse(KEPT[case])
    sch = Schedule(module)
    sch.collapse_dims("kernel")
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    (wanted,), (found,) = (run_graph(m, [x]) for m in (module, sch.module))
    np.testing.assert_array_equal(found, wanted)
