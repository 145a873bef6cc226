"""Default rules: shape-generic traces that preserve results and lead to fast code."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import CallTIR, TensorInfo
from tilewright.ir.interpreter import run_graph, run_prim
from tilewright.ir.loop.nodes import Block, For
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Constant, Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, const_value, evaluate, var
from tilewright.schedules import STEPS, Schedule, Trace
from tilewright.schedules.machine import Tile, machine_of
from tilewright.schedules.patterns import (
    Elementwise,
    Matmul,
    Other,
    Rows,
    classify,
)
from tilewright.schedules.rules import apply_defaults, default, with_default_schedule
from tilewright.target.cpus import FAMILIES
from tilewright.target.target import Target

pytestmark = pytest.mark.slow


def info(*dims):
    return TensorInfo(tuple(as_expr(d) for d in dims), f32, rank=len(dims))


def weight(shape, seed=0):
    array = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)
    return Constant(shape, f32, lambda: array)


def linear(k, n, *, constant=True, epilogue=()):
    g, m = GraphBuilder("main"), var("m", lower=1)
    x = g.param("x", info(m, k))
    w = g.constant("w", info(k, n)) if constant else g.param("w", info(k, n))
    y = g.emit("matmul", x, w)
    for op in epilogue:
        y = g.emit(op, y)
    module = Module().with_functions(g.finish([y]))
    return module.with_constants({"w": weight((k, n))}) if constant else module


def batched():
    g = GraphBuilder("main")
    b, s, t = (var(n, lower=1) for n in "bst")
    x, y = g.param("x", info(b, s, 8)), g.param("y", info(b, 8, t))
    return Module().with_functions(g.finish([g.emit("matmul", x, y)]))


def normalized(op, **attributes):
    g, n, m = GraphBuilder("main"), var("n", lower=1), var("m", lower=1)
    x = g.param("x", info(n, m))
    y = g.emit(op, g.emit("multiply", g.emit("add", x, 1.0), 0.5), **attributes)
    return Module().with_functions(g.finish([y]))


def pointwise():
    g, n, m = GraphBuilder("main"), var("n", lower=1), var("m", lower=1)
    x, b = g.param("x", info(n, m)), g.param("b", info(m))
    return Module().with_functions(g.finish([g.emit("relu", g.emit("add", x, b))]))


CASES = {
    "linear": (linear(20, 40, epilogue=("relu",)), lambda m: [(m, 20)]),
    "narrow": (linear(5, 3), lambda m: [(m, 5)]),
    "product": (linear(6, 33, constant=False), lambda m: [(m, 6), (6, 33)]),
    "batched": (batched(), lambda m: [(2, m, 8), (2, 8, 2 * m + 1)]),
    "softmax": (normalized("softmax", axis=-1), lambda m: [(3, m)]),
    "mean": (normalized("mean", axes=(-1,), keepdims=True), lambda m: [(2, m)]),
    "pointwise": (pointwise(), lambda m: [(2, m), (m,)]),
}


@pytest.mark.parametrize("features", [("avx512",), ("avx2",)])
@pytest.mark.parametrize("name", CASES)
def test_scheduled_kernels_compute_the_same(name, features):
    module, shapes = CASES[name]
    done = with_default_schedule(module, Target("cpu", features=features))
    for m in (1, 2, 7, 15, 17):
        rng = np.random.default_rng(m)
        given = [rng.integers(-3, 4, s).astype(np.float32) for s in shapes(m)]
        expected, found = run_graph(module, given)[0], run_graph(done, given)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_the_trace_of_the_defaults_replays(name):
    module, _ = CASES[name]
    schedule = Schedule(module)
    apply_defaults(schedule)
    again = Schedule(module)
    outcome = again.replay(schedule.trace)
    assert not outcome.pending
    assert str(again) == str(schedule)


def loops(module, kernel):
    return [s for s in walk(module.prim(kernel).body) if isinstance(s, For)]


def kernels_of(module):
    from tilewright.ir.graph.nodes import LaunchKernel

    bindings = module.graph().bindings
    return [b.right for b in bindings if isinstance(b.right, CallTIR | LaunchKernel)]


def test_a_weight_is_packed_at_load_time():
    done = with_default_schedule(linear(64, 96, epilogue=("relu",)))
    assert len(kernels_of(done)) == 1
    (key,) = done.graph("prepare").result_names
    assert done.constants[key].shape == (3, 64, 32)


def test_one_row_has_a_separate_version():
    (launch,) = kernels_of(with_default_schedule(linear(64, 96)))
    (version,) = launch.versions
    assert str(version.guard) == "m == 1"


def test_the_register_tile_fills_the_registers_of_the_target():
    for features, tile in (("avx512",), (14, 32)), (("avx2",), (6, 16)):
        assert machine_of(Target("cpu", features=features)).tile(f32) == Tile(*tile)
        done = with_default_schedule(linear(64, 96), Target("cpu", features=features))
        kernel = kernels_of(done)[0].function
        unrolled = {const_value(x.extent) for x in loops(done, kernel) if x.kind == "unrolled"}
        lanes = {const_value(x.extent) for x in loops(done, kernel) if x.kind == "vectorized"}
        assert (unrolled, lanes) == ({tile[0]}, {tile[1]})


@pytest.mark.parametrize(
    ("arch", "tile"), [("aarch64", (14, 8)), ("riscv64", (14, 4)), ("wasm32", (6, 8))]
)
def test_the_register_tile_fits_other_processors(arch, tile):
    cpu = FAMILIES[arch].baseline
    found = machine_of(Target("cpu", arch=arch))
    assert (found.vector_bits, found.registers) == (cpu.vector_bits, cpu.registers)
    assert found.tile(f32) == Tile(*tile)


def test_a_right_operand_that_is_not_a_weight_is_packed_in_the_kernel():
    done = with_default_schedule(
        linear(64, 96, constant=False), Target("cpu", features=("avx512",))
    )
    (launch,) = kernels_of(done)
    assert "prepare" not in done.functions
    for kernel in (launch.function, launch.versions[0].function):
        kinds = [(x.kind, const_value(x.extent)) for x in loops(done, kernel)]
        assert kinds[0][0] == "parallel"
        assert kinds.count(("vectorized", 32)) == 4


def test_kinds_are_recognized():
    def kind(module):
        schedule = Schedule(module)
        schedule.lower_graph("main")
        return {type(classify(f)) for f in schedule.module.prims}

    assert kind(linear(8, 8)) == {Matmul}
    assert kind(batched()) == {Matmul}
    assert kind(normalized("softmax", axis=-1)) == {Rows}
    assert kind(pointwise()) == {Elementwise}


def test_scheduled_kernels_are_not_changed():
    schedule = Schedule(pointwise())
    schedule.legalize()
    block = schedule.get_block("relu")
    schedule.split(schedule.get_loops(block)[-1], factors=(None, 5))
    before = schedule.module.prim("relu")
    apply_defaults(schedule)
    assert classify(before) == Other()
    assert schedule.module.prim("relu") is before


def test_a_product_written_as_a_sum_of_products():
    g, n = GraphBuilder("main"), var("n", lower=0)
    x = g.param("x", info(n, 6, 10))
    left, right = g.emit("expand_dims", x, axes=(1,)), g.emit("expand_dims", x, axes=(2,))
    y = g.emit("sum", g.emit("multiply", left, right), axes=(3,), keepdims=False)
    module = Module().with_functions(g.finish([y]))
    ready = with_default_schedule(module, Target("cpu"))
    for rows in (1, 5):
        given = np.random.default_rng(0).standard_normal((rows, 6, 10), np.float32)
        (found,) = run_graph(ready, [given])
        np.testing.assert_allclose(found, given @ given.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


def test_a_failing_rule_warns_and_leaves_the_kernel_unscheduled(monkeypatch):
    def broken(schedule, function):
        loops = schedule.get_loops(schedule.get_blocks(function.function)[0])
        schedule.split(loops[0], factors=(None, 4))
        schedule.fuse((loops[2], loops[1]))

    monkeypatch.setattr(STEPS["schedule_matmul"], "_body", staticmethod(broken))
    mod = linear(64, 32, constant=False)
    with pytest.warns(default.DefaultRuleFailedWarning, match="'matmul' was left unscheduled"):
        made = with_default_schedule(mod)
    assert [x.kind for x in walk(made.prim("matmul").body) if isinstance(x, For)] == ["serial"] * 3


MIXED = """
n = symbols("n", lower=0)
constant("w", (40, 24), f32)
constant("v", (40, 40), f32)

@graph_func
def main(x: Tensor[(n, 24), f32]):
    wt = permute_dims(const("w"), axes=(1, 0))
    a = matmul(x, wt)
    b = relu(a)
    vt = permute_dims(const("v"), axes=(1, 0))
    c = matmul(b, vt)
    d = softmax(c, axis=1)
    return d

@graph_func
def NAME(x: Tensor[(3, 40), f32]):
    wt = permute_dims(const("v"), axes=(1, 0))
    y = matmul(x, wt)
    return y
"""


def random_array(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def mixed_module(name: str = "other") -> Module:
    constants = {"w": random_array(40, 24), "v": random_array(40, 40)}
    return tw.parse(MIXED.replace("NAME", name), constants=constants)


def check_mixed(program: Schedule | Module, name: str = "other") -> None:
    """Compile a program and compare both functions with NumPy."""
    exe = tw.compile(program, tw.Target("cpu"))
    x, z = random_array(5, 24), random_array(3, 40)
    c = np.maximum(x @ random_array(40, 24).T, 0) @ random_array(40, 40).T
    e = np.exp(c - c.max(1, keepdims=True))
    np.testing.assert_allclose(exe["main"](x), e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(exe[name](z), z @ random_array(40, 40).T, rtol=1e-4)


@cache
def defaults() -> Schedule:
    schedule = Schedule(mixed_module(), tw.Target("cpu"))
    apply_defaults(schedule)
    return schedule


def test_the_default_schedule_changes_nothing_the_second_time() -> None:
    schedule = defaults()
    before = schedule.module
    apply_defaults(schedule)
    assert schedule.module is before


def test_a_program_with_the_default_schedule_compiles() -> None:
    check_mixed(defaults())
    check_mixed(defaults().module)


@pytest.mark.parametrize("part", [0.04, 0.13, 0.6, 0.95, 0.995])
def test_a_program_with_some_of_the_default_steps_compiles(part: float) -> None:
    steps = tuple(defaults().trace)
    schedule = Schedule(mixed_module(), tw.Target("cpu"))
    schedule.replay(Trace(steps[: int(part * len(steps))])).completed()
    check_mixed(schedule)


MIXTURES: dict[str, Callable[[Schedule], object]] = {
    "legalized": lambda s: s.legalize("main"),
    "lowered": lambda s: s.lower_graph("main"),
    "lifted": lambda s: s.lift_transforms("main"),
    "lifted, legalized and planned": lambda s: (
        s.lift_transforms("main"), s.legalize("prepare"), s.plan_memory("prepare"),
    ),
    "legalized, lifted and planned": lambda s: (
        s.legalize("main"), s.lift_transforms("main"), s.plan_memory("prepare"),
    ),
    "lowered and planned": lambda s: (s.lower_graph("main"), s.plan_memory("main")),
    "legalized and planned": lambda s: (s.legalize("main"), s.plan_memory("main")),
    "grouped": lambda s: (s.legalize("main"), s.fuse_ops("main")),
    "lowered, one kernel scheduled": lambda s: (
        s.lower_graph("main"), s.schedule_kernel(next(iter(s.module.prims)).name),
    ),
    "other function finished": lambda s: (s.lower_graph("other"), s.finish_graph("other")),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXTURES)
def test_a_mixture_of_lowered_and_unlowered_parts_compiles(name: str) -> None:
    schedule = Schedule(mixed_module(), tw.Target("cpu"))
    MIXTURES[name](schedule)
    check_mixed(schedule)


@pytest.mark.parametrize("name", ["other", "prepare"])
def test_each_function_has_its_own_weights(name: str) -> None:
    check_mixed(mixed_module(name), name)


def test_a_temporary_that_cannot_be_inlined_is_kept():
    """The consumer reads every second element, and the others are not written."""
    module = parse("""
n = symbols("n", lower=0, upper=1000)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    t = alloc((2000,), f32)
    for i in range(n):
        t[i * 2] = x[i]
    for k in range(n):
        y[k] = t[k * 2]
""")
    ready = with_default_schedule(module, Target("cpu", features=("avx2",)))
    blocks = [s for s in walk(ready.prim("f").body) if isinstance(s, Block)]
    assert len(blocks) == 2
    x, y = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    run_prim(ready.prim("f"), [x, y])
    np.testing.assert_array_equal(y, x)


RESULT = """
n, m, d = symbols("n m d", lower=0)

@prim_func
def product(x: Buffer[(n, d), i32], w: Buffer[(d, m), i32], y: InOut[{shape}, i32]):
    for i in range(n):
        for j in range(m):
            for k in range(d):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[{at}] = 0
                    y[{at}] += x[vi, vk] * w[vk, vj]
"""


@pytest.mark.parametrize(
    ("shape", "at", "tiled"),
    [
        ("(n + 1, m)", "vi + 1, vj", True),
        ("(n, m)", "vi, m - 1 - vj", True),
        ("(m, n)", "vj, vi", True),
        ("(ceildiv(n, 4), 4, m)", "vi // 4, vi % 4, vj", False),
        ("(n, ceildiv(m, 4), 4)", "vi, vj // 4, vj % 4", False),
        ("(n, m * 2)", "vi, vj * 2 + 1", False),
        ("(n, n + m)", "vi, vj + vi", False),
        ("(n * m,)", "vi * m + vj", False),
    ],
)
def test_a_product_is_scheduled_whatever_the_indices_of_its_result(shape, at, tiled):
    module = parse(RESULT.format(shape=shape, at=at))
    sch = Schedule(module, Target("cpu", features=("avx2",)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sch.schedule_kernel("product")
    shown = str(sch)
    assert "parallel(" in shown
    assert ("_local" in shown) == tiled
    run = tw.compile(sch.module)["product"]
    for n, m, d in ((0, 3, 2), (1, 1, 1), (5, 7, 0), (13, 33, 4)):
        x = np.arange(n * d, dtype=np.int32).reshape(n, d) % 11
        w = np.arange(d * m, dtype=np.int32).reshape(d, m) % 7
        (dims,) = [p.buffer.shape for p in module.prims[0].params if p.buffer.name == "y"]
        values = {v: {"n": n, "m": m}[v.name] for dim in dims for v in dim.free}
        y = np.full([evaluate(dim, values) for dim in dims], 5, np.int32)
        expected = y.copy()
        run_prim(module.prims[0], [x, w, expected])
        run.into(x, w, y)
        np.testing.assert_array_equal(y, expected)
