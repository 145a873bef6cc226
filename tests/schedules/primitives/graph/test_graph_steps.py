"""Tests of graph-level steps: results do not change, and illegal steps are rejected."""

import numpy as np
import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import Call, CallGraph, CallTIR, TensorInfo
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Constant, Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.verify import verify
from tilewright.schedules import Schedule
from tilewright.schedules.handles import BindingRef, FunctionRef
from tilewright.schedules.problem import StepError

MAIN = FunctionRef("main")
SHAPES = [(2, 3), (1, 1), (4, 1), (1, 5)]


def info(*dims):
    return TensorInfo(tuple(as_expr(d) for d in dims), f32, rank=len(dims))


class Model:
    """Two equal layers of linear, bias and gelu with a residual, then a softmax."""

    def __init__(self):
        self.rng = np.random.default_rng(7)
        self.constants = {}
        b, s = var("b", lower=1), var("s", lower=1)
        self.g = GraphBuilder("main")
        x = self.g.param("x", info(b, s, 8))
        y = self.layer(x, 0)
        z = self.g.emit("add", self.layer(y, 1), y)
        self.g.emit("exp", z)
        out = self.g.emit("softmax", z, axis=-1)
        self.module = Module().with_functions(self.g.finish([out])).with_constants(self.constants)

    def constant(self, key, *shape):
        array = self.rng.standard_normal(shape).astype(np.float32)
        self.constants[key] = Constant(shape, f32, lambda: array)
        return self.g.constant(key, info(*shape))

    def layer(self, x, k):
        w = self.g.emit("permute_dims", self.constant(f"{k}.weight", 8, 8), axes=(1, 0))
        y = self.g.emit("add", self.g.emit("matmul", x, w), self.constant(f"{k}.bias", 8))
        return self.g.emit("gelu", y)


@pytest.fixture
def schedule():
    return Schedule(Model().module)


def outputs(module, shape):
    x = np.random.default_rng(1).standard_normal((*shape, 8)).astype(np.float32)
    return run_graph(module, [x])[0]


def same_results(schedule):
    start = schedule.history[0].state.module
    return all(
        np.allclose(outputs(start, s), outputs(schedule.module, s), rtol=1e-6, atol=1e-7)
        for s in SHAPES
    )


def rights(schedule, kind):
    return [b for b in schedule.module.graph().bindings if isinstance(b.right, kind)]


def test_legalize_lowers_every_operator_and_adds_equal_kernels_once(schedule):
    made = schedule.legalize(MAIN)
    assert not rights(schedule, Call)
    assert {r.function for r in made} == {
        "permute_dims",
        "matmul",
        "add",
        "gelu",
        "add_1",
        "exp",
        "softmax",
    }
    assert same_results(schedule)


def test_legalize_sets_origins(schedule):
    schedule.legalize(MAIN)
    (block,) = [s for s in walk(schedule.module.prim("gelu").body) if isinstance(s, Block)]
    assert block.origins == {"gelu", "gelu_1"}


def test_fold_constants_keeps_small_results_only(schedule):
    schedule.fold_constants(MAIN, limit=256)
    assert sum(b.right.op == "permute_dims" for b in rights(schedule, Call)) == 0
    assert same_results(schedule)
    other = Schedule(Model().module)
    other.fold_constants(MAIN, limit=255)
    assert sum(b.right.op == "permute_dims" for b in rights(other, Call)) == 2


def test_dead_code_removes_unused_bindings(schedule):
    schedule.dead_code(MAIN)
    assert "exp" not in {b.right.op for b in rights(schedule, Call)}
    schedule.legalize(MAIN)
    schedule.fold_constants(MAIN)
    before = set(schedule.module.functions)
    schedule.dead_code(MAIN)
    assert set(schedule.module.functions) <= before
    assert same_results(schedule)


def test_lift_transforms_moves_weights_to_prepare(schedule):
    schedule.legalize(MAIN)
    prepare = schedule.lift_transforms(MAIN)
    graph = schedule.module.graph(prepare.function)
    assert graph.attributes == (("prepare_for", "main"),)
    assert graph.result_names == ("prepared.permute_dims", "prepared.permute_dims_1")
    assert all(b.right.function != "permute_dims" for b in rights(schedule, CallTIR))
    assert same_results(schedule)


def test_lift_transforms_keeps_bindings_that_depend_on_symbols():
    n = var("n", lower=1)
    g = GraphBuilder("main")
    g.param("x", info(n))
    schedule = Schedule(Module().with_functions(g.finish([g.emit("shape_to_tensor", (n, 4))])))
    schedule.legalize(MAIN)
    schedule.lift_transforms(MAIN)
    assert "prepare" not in schedule.module.functions
    found = run_graph(schedule.module, [np.ones(3, np.float32)])
    assert found[0].tolist() == [3, 4]


IN_BRANCHES = """
constant("w", (2, 3), f32)
constant("b", (), f32)

@graph_func
def main(x: Tensor[(2, 2), f32], p: Tensor[(), bool]):
    wt = permute_dims(const("w"), axes=(1, 0))
    if p:
        u = matmul(wt, x)
        y: Tensor[(), f32] = const("b")
    else:
        v = matmul(wt, x)
        z = sum(v, axes=(0, 1))
        y: Tensor[(), f32] = z
    return y
"""


@pytest.mark.parametrize("step", ["lift_transforms", "dead_code"])
def test_constants_that_only_branches_use_are_kept(step):
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    schedule = Schedule(parse(IN_BRANCHES, constants={"w": w, "b": np.array(7, np.float32)}))
    getattr(schedule, step)(MAIN)
    verify(schedule.module)
    for taken, expected in ((True, 7), (False, 2 * w.sum())):
        args = [np.ones((2, 2), np.float32), np.array(taken)]
        assert run_graph(schedule.module, args)[0] == expected


def fused(schedule):
    schedule.dead_code(MAIN)
    schedule.legalize(MAIN)
    schedule.lift_transforms(MAIN)
    return schedule.fuse_ops(MAIN)


def test_fuse_ops_groups_by_kind(schedule):
    groups = fused(schedule)
    assert [g.function for g in groups] == [
        "fused_matmul_add_gelu",
        "fused_add_gelu_add_softmax",
    ]
    assert len(rights(schedule, CallGraph)) == 2
    assert same_results(schedule)


def test_fuse_tir_joins_bodies_and_removes_unused_functions(schedule):
    fused(schedule)
    made = schedule.fuse_tir(MAIN)
    assert not rights(schedule, CallGraph)
    kernel = schedule.module.prim(made[0].function)
    assert [b.name for b in kernel.buffers] == ["matmul", "add"]
    assert "gelu" not in schedule.module.functions
    assert same_results(schedule)


def test_collapse_dims_turns_batches_into_matrices(schedule):
    fused(schedule)
    schedule.fuse_tir(MAIN)
    for kernel in schedule.module.prims:
        schedule.collapse_dims(FunctionRef(kernel.name))
    for kernel in schedule.module.prims:
        assert max(b.rank for b in kernel.buffer_params) == 2
    assert same_results(schedule)


def test_specialize_adds_a_guarded_version(schedule):
    fused(schedule)
    (kernel, _) = schedule.fuse_tir(MAIN)
    schedule.collapse_dims(kernel)
    version = schedule.specialize(kernel, symbol="b_s", lower=1, upper=1)
    (call,) = [b.right for b in rights(schedule, CallTIR) if b.right.function == kernel.function]
    assert [v.function for v in call.versions] == [version.function]
    assert str(call.versions[0].guard) == "b * s == 1"
    assert str(schedule.module.prim(version.function).buffer_params[0].shape[0]) == "1"
    assert same_results(schedule)


def test_specialize_rejects_unknown_symbols_and_empty_ranges(schedule):
    schedule.legalize(MAIN)
    kernel = FunctionRef("gelu")
    with pytest.raises(StepError, match="no symbol 'q'; symbols of 'gelu' are b, s"):
        schedule.specialize(kernel, symbol="q", lower=1, upper=1)
    with pytest.raises(StepError, match="no value of 'b'"):
        schedule.specialize(kernel, symbol="b", lower=0, upper=0)
    with pytest.raises(StepError, match="includes every value"):
        schedule.specialize(kernel, symbol="b", lower=1)
    with pytest.raises(StepError, match="'main' is not a loop-level function"):
        schedule.specialize(MAIN, symbol="b", lower=1, upper=1)


def test_clone_function_separates_call_sites(schedule):
    schedule.legalize(MAIN)
    one, two = [b for b in rights(schedule, CallTIR) if b.right.function == "gelu"]
    clone = schedule.clone_function(
        FunctionRef("gelu"), call_sites=(BindingRef("main", two.value.uid),)
    )
    after = {b.value.uid: b.right.function for b in rights(schedule, CallTIR)}
    assert (after[one.value.uid], after[two.value.uid]) == ("gelu", clone.function)
    assert same_results(schedule)
    with pytest.raises(StepError, match="call_sites is empty"):
        schedule.clone_function(FunctionRef("gelu"), call_sites=())
    with pytest.raises(StepError, match="does not call"):
        schedule.clone_function(
            FunctionRef("gelu"), call_sites=(BindingRef("main", two.value.uid),)
        )


def test_fuse_ops_rejects_illegal_groups(schedule):
    schedule.dead_code(MAIN)
    schedule.legalize(MAIN)
    by_name = {b.value.name: BindingRef("main", b.value.uid) for b in rights(schedule, CallTIR)}
    with pytest.raises(StepError, match="'gelu' is also used outside of the group, by add_2"):
        schedule.fuse_ops(MAIN, bindings=(by_name["gelu"], by_name["matmul_1"]))
    with pytest.raises(StepError, match="1 of the 1 chosen bindings call kernels"):
        schedule.fuse_ops(MAIN, bindings=(by_name["gelu"],))
    schedule.fuse_ops(MAIN, bindings=(by_name["matmul"], by_name["add"]))
    assert len(rights(schedule, CallGraph)) == 1
    assert same_results(schedule)


def test_graph_steps_reject_loop_level_functions(schedule):
    schedule.legalize(MAIN)
    for step in (
        schedule.legalize,
        schedule.fuse_ops,
        schedule.fuse_tir,
        schedule.fold_constants,
        schedule.dead_code,
        schedule.lift_transforms,
    ):
        with pytest.raises(StepError, match=r"'gelu' is a loop-level function.*main"):
            step(FunctionRef("gelu"))
    with pytest.raises(StepError, match="'main' is not a loop-level function"):
        schedule.collapse_dims(MAIN)


def test_collapse_dims_rejects_scheduled_kernels(schedule):
    schedule.legalize(MAIN)
    loops = schedule.get_loops(schedule.get_block("gelu", "gelu"))
    schedule.split(loops[-1], factors=(None, 4))
    with pytest.raises(StepError, match="is already scheduled"):
        schedule.collapse_dims(FunctionRef("gelu"))


def test_collapse_dims_passes_symbols_that_no_shape_determines():
    """In grouped-query attention ``batch`` is needed beside the dimension ``batch * 4``."""
    b, s = var("batch", lower=1), var("s", lower=1)
    g = GraphBuilder("main")
    x = g.param("x", info(b, 4, s))
    y = g.param("y", info(b, 2, s))
    wide = g.emit(
        "reshape",
        g.emit("broadcast_to", g.emit("expand_dims", y, axes=(2,)), (b, 2, 2, s)),
        (b, 4, s),
    )
    schedule = Schedule(Module().with_functions(g.finish([g.emit("add", x, wide)])))
    schedule.legalize(MAIN)
    schedule.fuse_ops(MAIN)
    schedule.fuse_tir(MAIN)
    x_, y_ = np.ones((3, 4, 5), np.float32), np.arange(30, dtype=np.float32).reshape(3, 2, 5)
    expected = x_ + np.repeat(y_, 2, 1)
    for kernel in schedule.module.prims:
        schedule.collapse_dims(FunctionRef(kernel.name))
        assert np.array_equal(run_graph(schedule.module, [x_, y_])[0], expected)
