"""Minimal programs of defects found by random walks on graphs; each failed before its fix."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.graph.nodes import Kill
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.graph.fuse_ops import FuseOps
from tilewright.schedules.primitives.graph.fuse_tir import FuseTir
from tilewright.schedules.primitives.memory.plan_memory import PlanMemory
from tilewright.schedules.primitives.specialize.assume import Assume

from tests.fuzz.graphs.plans import problems

CHAIN = """
n = symbols("n", lower=1)
m = symbols("m", lower=0)

@graph_func
def main(x: Tensor[(n, n), f32], y: Tensor[(4, m), f32]):
    a = relu(x)
    b = multiply(x, a)
    c = negative(y)
    return b, c
"""


MEAN = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(2, n), f32]):
    a = mean(x, axes=(0, 1), keepdims=False)
    return a
"""


def test_a_group_does_not_name_the_symbols_of_known_elements():
    sch = Schedule(parse(MEAN))
    sch.decompose(operators=("mean",))
    sch.legalize()
    assert [f.function for f in sch.fuse_ops()] == ["fused_cast_divide"]
    assert violations(sch.module) == ()
    assert sch.verify()


def test_a_group_has_only_facts_about_its_own_symbols():
    sch = Schedule(parse(CHAIN))
    sch.legalize()
    sch.assume("negative", "m", lower=1)
    sch.fuse_ops()
    assert violations(sch.module) == ()
    group = next(g for g in sch.module.graphs if g.name != "main")
    assert len(group.facts) == 0


def test_a_group_keeps_the_facts_about_its_own_symbols():
    sch = Schedule(parse(CHAIN))
    sch.legalize()
    sch.assume("relu", "n", multiple_of=4)
    sch.fuse_ops()
    assert [str(f.predicate) for f in sch.module.graphs[1].facts] == ["n % 4 == 0"]


def nested_groups() -> Schedule:
    """Return a program with a group of ``fuse_ops`` that another group calls."""
    sch = Schedule(parse(CHAIN))
    sch.legalize()
    (group,) = sch.fuse_ops()
    text = to_text(sch.module).replace(f"call({group.function}, ", "call(outer, ")
    outer = f"""
n = symbols("n", lower=1)

@graph_func(primitive=True)
def outer(x: Tensor[(n, n), f32]):
    y: Tensor[(n, n), f32] = call({group.function}, x)
    return y
"""
    return Schedule(parse(text + outer))


def test_the_fixes_for_a_group_that_nothing_or_a_group_calls_are_legal():
    sch = nested_groups()
    inner = next(g.name for g in sch.module.graphs if g.name not in ("main", "outer"))
    for name in ("outer", inner):
        for problem in sch.check(FuseTir(FunctionRef(name))):
            assert all(not sch.check(fix) for fix in problem.fixes)


def test_default_steps_fuse_a_group_inside_of_a_group():
    sch = nested_groups()
    sch.default_schedule()
    assert violations(sch.module) == ()


PRODUCTS = """
n = symbols("n", lower=0)
m = symbols("m", lower=0)

@graph_func
def main(x: Tensor[(n, n, m), f32]):
    a = reshape(x, (n * n * m,))
    b = negative(a)
    c = relu(b)
    return c
"""


def test_a_group_whose_sizes_are_products_runs_in_the_interpreter():
    sch = Schedule(parse(PRODUCTS))
    sch.legalize()
    sch.fuse_ops()
    x = np.arange(-9, 9, dtype=np.float32).reshape(3, 3, 2)
    (y,) = run_graph(sch.module, [x])
    assert np.array_equal(y, np.maximum(-x, 0).reshape(-1))


def test_planning_removes_the_groups_that_it_inlines():
    sch = Schedule(parse(PRODUCTS))
    sch.legalize()
    sch.fuse_ops()
    sch.plan_memory()
    assert [g.name for g in sch.module.graphs] == ["main"]
    x = np.arange(-9, 9, dtype=np.float32).reshape(3, 3, 2)
    assert np.array_equal(tw.compile(sch)(x), np.maximum(-x, 0).reshape(-1))


def test_lowering_a_gradient_keeps_the_groups_of_the_original():
    text = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    a = relu(x)
    b = negative(a)
    return x, b
"""
    sch = Schedule(parse(text))
    sch.legalize()
    (group,) = sch.fuse_ops()
    gradient = sch.gradient(variables=())
    sch.lower_graph(gradient)
    assert not violations(sch.module)
    assert group.function in sch.module.functions
    x, ones = np.array([-1, 2], np.float32), np.ones(2, np.float32)
    expected = [[-1, 2], [0, -2]]
    assert [y.tolist() for y in tw.compile(sch)(x)] == expected
    found = run_graph(sch.module, [x, ones], function=gradient.function)
    assert [y.tolist() for y in found] == [*expected, [1, 1]]


def test_storages_of_an_inlined_planned_function_end_once():
    sch = Schedule(parse(CHAIN))
    sch.legalize()
    (group,) = sch.fuse_ops()
    sch.plan_memory(group)
    sch.plan_memory()
    assert problems(sch.module) == []
    ends = [b.right.value.name for b in sch.module.graph().bindings if isinstance(b.right, Kill)]
    assert len(ends) == len(set(ends))


def test_a_version_that_facts_exclude_is_well_formed():
    text = """
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(8, m), f32], y: Tensor[(m, 8), f32], z: Tensor[(m,), f32]):
    a = matmul(x, y)
    b = relu(z)
    return a, b
"""
    sch = Schedule(parse(text))
    sch.legalize()
    sch.specialize("matmul", "m", lower=1, upper=1)
    sch.assume("relu", "m", multiple_of=2)
    assert violations(sch.module) == ()
    x, y, z = (np.ones(s, np.float32) for s in ((8, 4), (4, 8), (4,)))
    assert np.array_equal(tw.compile(sch)(x, y, z)[0], x @ y)


@pytest.mark.parametrize("begin", [0, 1, 2])
def test_kernels_with_new_symbols_have_the_facts_that_their_text_has(begin):
    text = f"""
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(m * 2 + 5,), f32], size: Tensor[(m,), f32]):
    a = strided_slice(x, ({begin},), (m * 2 + 5,), axes=(0,), steps=(3,))
    b = negative(a)
    return b
"""
    sch = Schedule(parse(text))
    sch.legalize()
    assert to_text(parse(to_text(sch.module))) == to_text(sch.module)


def test_operators_on_results_without_dimensions_run_in_the_interpreter():
    text = """
@graph_func
def main(x: Tensor[(3,), i64]):
    a = sum(x, axes=(0,))
    b = negative(a)
    c = add(a, b)
    return c
"""
    (c,) = run_graph(parse(text), [np.array([1, 2, 3])])
    assert c == 0


def test_a_kernel_beside_a_graph_keeps_its_parameters():
    text = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32]):
    y = relu(x)
    return y

@prim_func
def double(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            y[i, j] = x[i, j] * 2.0
"""
    exe = tw.compile(parse(text))
    x = np.ones((3, 4), np.float32)
    y = np.zeros_like(x)
    exe["double"].into(x, y)
    assert np.array_equal(y, x * 2)
    assert np.array_equal(exe["double"](x), x * 2)
    assert np.array_equal(exe(x), x)


def test_a_group_that_nothing_calls_is_dead():
    sch = Schedule(parse(CHAIN.replace("return b, c", "return c")))
    sch.legalize()
    (group,) = sch.fuse_ops(bindings=(sch.get_binding("a"), sch.get_binding("b")))
    sch.dead_code()
    assert group.function not in sch.module.functions


def test_a_kernel_that_a_planned_function_launches_as_a_version_gets_no_fact():
    sch = Schedule(parse(CHAIN))
    sch.legalize()
    version = sch.specialize("negative", "m", lower=3)
    sch.plan_memory()
    problems = sch.check(Assume(version, "m", multiple_of=2))
    assert [p.requirement.key for p in problems] == ["checkable"]


CELL = """
n = symbols("n", lower=0)

@prim_func
def bump(c: InOut[(n,), f32], x: Buffer[(n,), f32]):
    for i in range(n):
        with block("c"):
            vi = spatial(i)
            c[vi] = c[vi] + x[vi]

@graph_func
def cell(s: InOut[Tensor[(n,), f32]], a: Tensor[(n,), f32]):
    t: Tensor[(n,), f32] = call_tir(bump, s, a, updates=(0,))
    return t, updates(s=t)

@graph_func
def main(x: Tensor[(n,), f32]):
    t: Tuple[Tensor[(n,), f32], Tensor[(n,), f32]] = call(cell, x, x, updates=(0,))
    a = t[1]
    u: Tuple[Tensor[(n,), f32], Tensor[(n,), f32]] = call(cell, a, x, updates=(0,))
    b = u[0]
    y = add(a, b)
    return y
"""


@pytest.mark.parametrize("planned", [True, False])
def test_a_planned_function_does_not_write_the_arguments_of_its_calls(planned):
    sch = Schedule(parse(CELL))
    if planned:
        sch.plan_memory("cell")
    x = np.arange(4, dtype=np.float32)
    kept = x.copy()
    for program in (sch, default(sch)):
        assert np.array_equal(tw.compile(program)(x), 5 * kept)
        assert np.array_equal(x, kept)


def default(sch: Schedule) -> Schedule:
    """Return a schedule after the default steps."""
    made = sch.branch()
    made.default_schedule()
    assert problems(made.module) == []
    return made


INNER = """
n = symbols("n", lower=1)

@graph_func
def layer(a: Tensor[(n, 4), f32]):
    y = concat(a, a, axis=0)
    return y

@graph_func
def main(x: Tensor[(n, 4), f32], flag: Tensor[(), bool]):
    y: Tensor[(n * 2, 4), f32] = call(layer, x)
    if flag:
        u = relu(x)
        z: Tensor[(n, 4), f32] = u
    else:
        z: Tensor[(n, 4), f32] = x
    return y, z
"""


def test_a_plan_requires_that_called_functions_and_branches_are_lowered():
    sch = Schedule(parse(INNER))
    messages = [p.message for p in sch.check(PlanMemory(FunctionRef("main")))]
    assert messages == [
        "'u' calls operator relu, which is not lowered",
        "'y' in 'layer' calls operator concat, which is not lowered",
    ]


def test_operators_in_branches_alone_are_lowered():
    text = INNER.replace("y: Tensor[(n * 2, 4), f32] = call(layer, x)", "y = reshape(x, (n * 4,))")
    sch = Schedule(parse(text))
    sch.lower_graph("main")
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    assert np.array_equal(tw.compile(sch)(x, np.array(True))[1], np.maximum(x, 0))


def test_a_product_whose_weight_was_copied_gets_the_rule_of_products():
    w = np.ones((4, 8), np.int32)
    module = parse(
        """
m = symbols("m", lower=1)
constant("w", (4, 8), i32)

@graph_func
def main(x: Tensor[(m, 4), i32]):
    y = matmul(x, const("w"))
    return y
""",
        constants={"w": w},
    )
    sch = Schedule(module, tw.Target("cpu"))
    sch.legalize()
    sch.cache_read("matmul", "y", "shared")
    sch.schedule_matmul("matmul")
    x = np.ones((3, 4), np.int32)
    assert np.array_equal(tw.compile(sch)(x), x @ w)


def test_a_view_of_a_prepared_constant_is_a_result():
    w = np.arange(8, dtype=np.int32).reshape(4, 2)
    module = parse(
        """
constant("w", (4, 2), i32)

@graph_func
def main(x: Tensor[(5, 2), i32]):
    a = permute_dims(const("w"), axes=(1, 0))
    b = matmul(x, a)
    c = reshape(a, (8,))
    return b, c
""",
        constants={"w": w},
    )
    sch = Schedule(module)
    sch.lift_transforms()
    x = np.ones((5, 2), np.int32)
    b, c = tw.compile(sch)(x)
    assert np.array_equal(b, x @ w.T)
    assert np.array_equal(c, w.T.reshape(-1))


def test_the_rest_of_a_kernel_keeps_only_facts_about_its_symbols():
    sch = Schedule(
        parse("""
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(4, n), f32], w: Tensor[(n, 8), f32]):
    t: Tensor[(4, 8), f32] = call_tir(product, x, w)
    return t

@prim_func
def product(x: Buffer[(4, n), f32], w: Buffer[(n, 8), f32], y: Out[(4, 8), f32]):
    t = alloc((4, 8), f32)
    for i in range(4):
        for j in range(8):
            for k in range(n):
                with block("t"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): t[vi, vj] = 0.0
                    t[vi, vj] += x[vi, vk] * w[vk, vj]
    for i1 in range(4):
        for j1 in range(8):
            with block("y"):
                vi1, vj1 = spatial(i1), spatial(j1)
                y[vi1, vj1] = t[vi1, vj1] + 1.0
""")
    )
    sch.assume("product", "n", multiple_of=2)
    sch.hoist_block("t")
    assert violations(sch.module) == ()


def test_a_group_has_one_tensor_as_its_result():
    sch = Schedule(
        parse("""
@graph_func
def main(x: Tensor[(5, 16), f32]):
    a = add(x, -1.0)
    t = split(a, (2, 3), axis=0)
    y = t[0]
    return y
""")
    )
    sch.legalize()
    problems = sch.check(FuseOps(bindings=(sch.get_binding("a"), sch.get_binding("t"))))
    assert [p.message for p in problems] == [
        "the last call 't' has several results; expected one tensor"
    ]


def test_a_group_of_several_results_is_not_fused():
    module = parse("""
@graph_func
def main(x: Tensor[(5,), f32]):
    t: Tuple[Tensor[(5,), f32], Tensor[(5,), f32]] = call(group, x)
    y = t[0]
    return y

@graph_func(primitive=True)
def group(x: Tensor[(5,), f32]):
    a: Tensor[(5,), f32] = call_tir(double, x)
    b: Tensor[(5,), f32] = call_tir(double, a)
    return a, b

@prim_func
def double(x: Buffer[(5,), f32], y: Out[(5,), f32]):
    for i in range(5):
        y[i] = x[i] * 2.0
""")
    sch = Schedule(module)
    assert [p.message for p in sch.check(FuseTir(FunctionRef("main")))] == [
        "group 'group' returns 2 results, or a tuple"
    ]
    x = np.ones(5, np.float32)
    assert np.array_equal(tw.compile(sch)(x), 2 * x)


def test_the_rest_of_a_kernel_gets_the_sizes_that_the_hoisted_block_determined():
    sch = Schedule(
        parse("""
m = symbols("m", lower=0)

@graph_func
def main(x: Tensor[(m, 4), f32]):
    y = sum(x, axes=(0,))
    return y
""")
    )
    sch.legalize()
    sch.cache_read("sum", "x", "global", "lambda i, j: (i // 3, i % 3, j)")
    sch.hoist_block("copy_x")
    assert violations(sch.module) == ()
    x = np.arange(28, dtype=np.float32).reshape(7, 4)
    assert np.array_equal(tw.compile(sch)(x), x.sum(0))


VIEWED_CONSTANT = """
constant("w", (2, 2), f32)

@graph_func
def transposed():
    v = permute_dims(const("w"), axes=(1, 0))
    return v

@graph_func
def main(x: Tensor[(3,), f32]):
    a: Tensor[(2, 2), f32] = call(transposed)
    b: Tensor[(2, 2), f32] = call(transposed)
    c = add(b, b)
    return c
"""


def test_a_constant_under_another_shape_in_the_memory_stage():
    """The sum is collapsed to one dimension; the constant that it reads becomes a view."""
    w = np.arange(4, dtype=np.float32).reshape(2, 2)
    sch = Schedule(parse(VIEWED_CONSTANT, constants={"w": w}))
    sch.default_schedule()
    assert violations(sch.module) == ()
    x = np.zeros(3, np.float32)
    (found,) = run_graph(sch.module, [x])
    np.testing.assert_array_equal(found, 2 * w.T)
    np.testing.assert_array_equal(tw.compile(sch)(x), 2 * w.T)


SYMBOL_OF_ANOTHER_KERNEL = """
n = symbols("n", lower=1)
h = symbols("h", lower=4)
constant("w", (1, 1, 3, 1), i32)

@graph_func
def main(x: Tensor[(n, 16), f32], y: Tensor[(2, 1, 5, h), i32]):
    a = negative(x)
    b = conv(y, const("w"))
    return b
"""


def test_a_fused_kernel_has_symbols_and_loops_of_different_names():
    """Walk 143000787: ``conv`` has a loop ``n``, and another kernel a dimension ``n``."""
    w = np.ones((1, 1, 3, 1), np.int32)
    sch = Schedule(parse(SYMBOL_OF_ANOTHER_KERNEL, constants={"w": w}))
    sch.legalize()
    sch.fuse_ops(bindings=("a", "b"))
    sch.fuse_tir()
    assert parse(to_text(sch.module), constants={"w": w}).functions.keys() == {
        "main", "fused_negative_conv",
    }  # fmt: skip
    assert sch.verify()


PADDED_AXIS_BESIDE_AN_EMPTY_ONE = """
@graph_func
def main(x: Tensor[(0, 3, 2), i32]):
    y = pad(x, (0, 0, 1), (0, 1, 0), mode="{mode}")
    return y
"""


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_a_pad_of_another_axis_permits_an_empty_axis(mode: str):
    """Walk 158000740: the index of the empty axis was a remainder of a division by zero."""
    sch = Schedule(parse(PADDED_AXIS_BESIDE_AN_EMPTY_ONE.format(mode=mode)))
    sch.legalize()
    assert parse(to_text(sch.module)).functions.keys() == {"main", "pad"}
    assert sch.verify()
    assert tw.compile(sch)(np.zeros((0, 3, 2), np.int32)).shape == (0, 4, 3)
