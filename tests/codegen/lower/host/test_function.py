"""Control flow, checks on the way, versions, calls between functions, profiles."""

from __future__ import annotations

import timeit
from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen import compile, compiler
from tilewright.codegen.compiler import FunctionNameError, NothingToCompileError
from tilewright.codegen.errors import CheckError, FactError, KernelError
from tilewright.errors import MalformedProgramError, TilewrightError
from tilewright.ir.dtype import bool_, f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import (
    Binding,
    Branch,
    CallGraph,
    CallTIR,
    Check,
    ConstantRef,
    Dims,
    GraphFunc,
    IfElse,
    KernelVersion,
    LaunchKernel,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    Value,
    VersionCase,
    VersionSwitch,
)
from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.builder import Builder
from tilewright.ir.module import MissingConstantError, Module, UnknownFunctionError
from tilewright.ir.script import parse
from tilewright.ir.symbolic import TRUE, minimum, var
from tilewright.ir.verify import IllFormedProgramError, violations
from tilewright.schedules import Schedule, schedule

from tests.codegen.runtime.helpers import (
    CountingMemory,
    add_kernel,
    chain,
    constant,
    scale_kernel,
    tensor,
)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def call(function: str, info: TensorInfo, *args: object, **options: object) -> CallTIR:
    return CallTIR(function, args, (info,), **options)  # type: ignore[arg-type]


def branching() -> Module:
    n, g = var("n"), GraphBuilder("main")
    x, flag = g.param("x", tensor(n)), g.param("flag", TensorInfo((), bool_))
    one = g.bind("one", tensor(n), call("add", tensor(n), x, x))

    def step(name: str, factor: str) -> Binding:
        return Binding(Value(100 + len(name), name, tensor(n)), call(factor, tensor(n), one))

    then, other = step("t", "triple"), step("ff", "halve")
    inner = Binding(Value(200, "again", tensor(n)), call("add", tensor(n), then.value, one))
    choice = IfElse(flag, Branch((then, inner), (inner.value,)), Branch((other,), (other.value,)))
    picked = g.bind("picked", tensor(n), choice)
    last = g.bind("last", tensor(n), call("add", tensor(n), picked, one))
    kernels = (add_kernel(), scale_kernel("triple", 3), scale_kernel("halve", 0.5))
    return Module().with_functions(*kernels, g.finish((last, picked)))


def test_a_branch_is_taken_by_a_tensor() -> None:
    memory = CountingMemory()
    exe = compile(branching(), table=memory.table())
    for flag, expected in ((True, (10.0, 8.0)), (False, (3.0, 1.0))):
        last, picked = exe(ones(5), np.array(flag))
        assert last.tolist() == [expected[0]] * 5
        assert picked.tolist() == [expected[1]] * 5
    del last, picked
    exe.trim()
    assert not memory.live


def test_a_match_cast_is_checked_in_program_order() -> None:
    n, m, g = var("n"), var("m"), GraphBuilder("main")
    x, y = g.param("x", tensor(n)), g.param("y", tensor(m))
    z = g.match_cast(y, tensor(n))
    h = g.bind("h", tensor(n), call("add", tensor(n), x, z))
    exe = compile(Module().with_functions(add_kernel(), g.finish((h,))))
    assert exe(ones(3), ones(3)).tolist() == [2.0] * 3
    with pytest.raises(CheckError, match=r"m == n|n == m") as caught:
        exe(ones(3), ones(4))
    assert caught.value.details["values"] == {"n": 3, "m": 4}


def test_a_match_cast_binds_an_unknown_shape() -> None:
    n, m, g = var("n"), var("m"), GraphBuilder("main")
    x = g.param("x", TensorInfo(None, f32))
    y = g.match_cast(x, tensor(n, m))
    flat = g.emit("reshape", y, (n * m,))
    h = g.bind("h", tensor(n * m), call("add", tensor(n * m), flat, flat))
    exe = compile(Module().with_functions(add_kernel(), g.finish((h,))))
    assert exe(ones(3, 2)).tolist() == [2.0] * 6
    with pytest.raises(CheckError):
        compile_square()(ones(3, 4))


def compile_square() -> object:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", TensorInfo(None, f32))
    y = g.match_cast(x, tensor(n, n))
    return compile(Module().with_functions(g.finish((y,))))


def test_a_fact_about_a_symbol_that_is_bound_on_the_way() -> None:
    n, m, g = var("n"), var("m"), GraphBuilder("main")
    x = g.param("x", TensorInfo(None, f32))
    y = g.match_cast(x, tensor(n, m))
    g.assume(n <= 4, "few rows")
    exe = compile(Module().with_functions(g.finish((y,))))
    assert exe(ones(4, 5)).shape == (4, 5)
    with pytest.raises(FactError, match="n <= 4, which is false for n = 5") as caught:
        exe(ones(5, 5))
    assert "few rows" in caught.value.hint


def test_a_check_of_an_operator() -> None:
    n, m, g = var("n"), var("m"), GraphBuilder("main")
    x, y = g.param("x", tensor(n)), g.param("y", tensor(m))
    least = minimum(n, m)
    info = ShapeInfo((least,), 1)
    g.bind("enough", info, MatchCast(Dims((n,)), info))
    exe = compile(Module().with_functions(g.finish((x, y))))
    exe(ones(3), ones(4))
    with pytest.raises(CheckError):
        exe(ones(4), ones(3))


def test_versions_of_a_kernel_are_chosen_by_their_guards() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    versions = (KernelVersion(n <= 1, "triple"), KernelVersion(n <= 4, "halve"))
    h = g.bind("h", tensor(n), call("double", tensor(n), x, versions=versions))
    kernels = [scale_kernel(k, f) for k, f in (("double", 2), ("triple", 3), ("halve", 0.5))]
    exe = compile(Module().with_functions(*kernels, g.finish((h,))))
    assert [exe(ones(k))[0] for k in (1, 2, 4, 5)] == [3.0, 0.5, 0.5, 2.0]
    assert [t.kernel for t in exe.profile(ones(4)).launches] == ["halve"]


def test_a_switch_over_binding_lists_and_a_check() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    h = g.bind("h", tensor(n), call("double", tensor(n), x))
    module = Module().with_functions(
        scale_kernel("double", 2), scale_kernel("triple", 3), g.finish((h,))
    )
    planned = plan_memory(module, module.graph())
    launch = next(b for b in planned.bindings if isinstance(b.right, LaunchKernel))
    assert isinstance(launch.right, LaunchKernel)
    other = Binding(Value(900, "other", ObjectInfo()), LaunchKernel("triple", launch.right.args))
    switch = VersionSwitch((VersionCase(n <= 2, (launch,)), VersionCase(TRUE, (other,))))
    check = Binding(Value(901, "few", ObjectInfo()), Check(n <= 9, "few enough"))
    chosen = Binding(Value(902, "chosen", ObjectInfo()), switch)
    bindings = tuple(
        c for b in planned.bindings for c in ((check, chosen) if b is launch else (b,))
    )
    exe = compile(module.with_functions(replace(planned, bindings=bindings)))
    assert [exe(ones(k))[0] for k in (1, 2, 3)] == [2.0, 2.0, 3.0]
    with pytest.raises(CheckError, match="check failed for n = 10: few enough"):
        exe(ones(10))


def helper(name: str = "twice_and_sum") -> GraphFunc:
    """(a: (k,), b: (k,)) -> (a + b, a + b + b), and wants k <= 8"""
    k, g = var("k"), GraphBuilder(name)
    a, b = g.param("a", tensor(k)), g.param("b", tensor(k))
    g.assume(k <= 8, "helpers are small")
    s = g.bind("s", tensor(k), call("add", tensor(k), a, b))
    t = g.bind("t", tensor(k), call("add", tensor(k), s, b))
    return g.finish((s, t))


def test_graph_functions_call_each_other() -> None:
    n, m, g = var("n"), var("m"), GraphBuilder("main")
    x, y = g.param("x", tensor(n)), g.param("y", tensor(m))
    pair = TupleInfo((tensor(n), tensor(n)))
    p = g.bind("p", pair, CallGraph("twice_and_sum", (x, y)))
    q = g.bind("q", pair, CallGraph("twice_and_sum", (g.item(p, 0), g.item(p, 1))))
    both = g.bind("both", TupleInfo((tensor(n), tensor(n))), MakeTuple((g.item(q, 1), x)))
    exe = compile(Module().with_functions(add_kernel(), helper(), g.finish((g.item(both, 0),))))
    assert exe(ones(3), ones(3)).tolist() == [8.0] * 3
    with pytest.raises(CheckError, match="call of 'twice_and_sum'"):
        exe(ones(3), ones(4))
    with pytest.raises(CheckError, match="helpers are small"):
        exe(ones(9), ones(9))


def test_recursion_is_refused() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    y = g.bind("y", tensor(n), CallGraph("main", (x,)))
    with pytest.raises(MalformedProgramError, match="is recursive: main -> main"):
        compile(Module().with_functions(g.finish((y,))))


# ---------------------------------------------------------------- constants


def with_prepare() -> Module:
    prepare = GraphBuilder("prepare")
    w = ConstantRef("w", tensor(4))
    packed = prepare.bind("packed", tensor(4), call("double", tensor(4), w))
    made = prepare.finish((packed,), result_names=("w.packed",))
    g = GraphBuilder("main")
    x = g.param("x", tensor(4))
    y = g.bind("y", tensor(4), call("add", tensor(4), x, ConstantRef("w.packed", tensor(4))))
    return Module().with_functions(
        add_kernel(),
        scale_kernel("double", 2),
        replace(made, attributes=(("prepare_for", "main"),)),
        g.finish((y,)),
    )


def test_weights_are_prepared_once() -> None:
    loads: list[int] = []
    weights = np.arange(4, dtype=np.float32)
    held = constant(weights)
    held = replace(held, load=lambda: loads.append(1) or weights, digest="arange(4)")
    exe = compile(with_prepare().with_constants({"w": held}))
    assert loads == []
    for _ in range(3):
        assert exe(ones(4)).tolist() == [1.0, 3.0, 5.0, 7.0]
    assert loads == [1]
    assert exe.names == ("main",)


def test_constants_that_are_not_provided() -> None:
    exe = compile(with_prepare())
    with pytest.raises(MissingConstantError, match="no constant 'w'"):
        exe(ones(4))


def test_a_constant_that_differs_from_its_declaration() -> None:
    g = GraphBuilder("main")
    func = g.finish((ConstantRef("c", tensor(3)),))
    wrong = replace(constant(ones(3)), load=lambda: ones(4))
    exe = compile(Module().with_functions(func).with_constants({"c": wrong}))
    with pytest.raises(MissingConstantError, match="declared"):
        exe()


def test_constants_that_are_not_compact_are_copied() -> None:
    g = GraphBuilder("main")
    func = g.finish((ConstantRef("c", tensor(2, 3)),))
    transposed = np.arange(6, dtype=np.float32).reshape(3, 2).T
    exe = compile(Module().with_functions(func).with_constants({"c": constant(transposed)}))
    assert np.array_equal(exe(), transposed)


# ---------------------------------------------------------------- questions


def test_a_profile_names_every_launch() -> None:
    exe = compile(chain(5))
    profile = exe.profile(np.ones(100_000, np.float32), repeats=3)
    assert [t.binding for t in profile] == [f"run_add{s}" for s in ("", "_1", "_2", "_3", "_4")]
    assert all(t.microseconds > 0 for t in profile)
    assert profile.total >= max(t.microseconds for t in profile)
    assert len(profile.slowest(2)) == 2
    assert "add" in str(profile)
    assert profile.to_json()["repeats"] == 3


def test_debug_mode_finds_an_access_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the checks of the program, as after a wrong step.
    monkeypatch.setattr(compiler, "checked_program", lambda module: module)
    monkeypatch.setattr(schedule, "accepted", lambda module, **_: module)
    n, b = var("n", lower=1), Builder("beyond")
    x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: b.load(x, i + 1))
    exe = compile(Module().with_functions(b.finish()), debug=True)
    with pytest.raises(KernelError, match="out of bounds") as caught:
        exe(ones(4))
    assert "kernel 'beyond'" in caught.value.where


def test_progress_is_reported_and_may_stop_the_compilation() -> None:
    reported: list[tuple[float, str]] = []
    module = Module().with_functions(scale_kernel("unseen", 123.25))
    compile(module, progress=lambda fraction, message: reported.append((fraction, message)))
    assert [f for f, _ in reported] == sorted(f for f, _ in reported)
    assert reported[-1][0] == 1.0
    assert any("unseen" in message for _, message in reported)

    class EnoughError(Exception):
        """Raised by the progress callback."""

    def stop(_fraction: float, message: str) -> None:
        if "lowering" in message:
            raise EnoughError

    with pytest.raises(EnoughError):
        compile(Module().with_functions(scale_kernel("stopped", 77.5)), progress=stop)


def test_a_module_compiled_before_comes_from_the_cache() -> None:
    module = Module().with_functions(scale_kernel("again", 321.5))
    first, second = compile(module), compile(Module().with_functions(scale_kernel("again", 321.5)))
    assert first.artifact.to_bytes() == second.artifact.to_bytes()
    assert second.cached
    other = compile(Module().with_functions(scale_kernel("renamed", 321.5)))
    assert other.names == ("renamed",)


def test_the_host_flow_costs_little() -> None:
    x = np.ones(16, np.float32)

    def best(length: int) -> float:
        exe = compile(chain(length))
        return min(timeit.repeat(lambda: exe(x), number=500, repeat=15)) / 500

    short, long = best(10), best(20)
    assert short <= 20e-6
    assert (long - short) / 10 <= 1e-6


def test_generated_code_can_be_inspected() -> None:
    exe = compile(chain(2))
    assert exe.kernels == ("add",)
    assert "define i32 @add" in exe.llvm("add")
    assert "define i32 @main__entry" in exe.llvm()
    assert "define" in exe.llvm("add", optimized=True)
    assert "main__entry:" in exe.assembly()
    with pytest.raises(UnknownFunctionError, match="no kernel 'mul'") as caught:
        exe.llvm("mul")
    assert "add" in caught.value.hint


def test_functions_are_found_by_name() -> None:
    exe = compile(Module().with_functions(add_kernel(), scale_kernel("double", 2)))
    assert set(exe.names) == {"add", "double"}
    assert exe["double"](ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(UnknownFunctionError, match="no function 'main'"):
        exe(ones(2))
    with pytest.raises(UnknownFunctionError, match="no function 'other'"):
        exe["other"]


def test_a_symbol_without_a_value() -> None:
    n, m, g = var("n"), var("m"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    h = g.bind("h", tensor(m), call("add", tensor(m), x, x))
    with pytest.raises(IllFormedProgramError, match="symbol 'm', which no parameter or match_cast"):
        compile(Module().with_functions(add_kernel(), g.finish((h,))))


def test_function_names_that_are_not_valid_symbols():
    halves = "\n".join(
        f"@prim_func\ndef {name}(ä: Buffer[(8,), f32], y: Out[(8,), f32]):\n"
        "    for ö in range(8):\n        y[ö] = ä[ö] * 0.5\n"
        for name in ("größe", "half")
    )
    with pytest.raises(FunctionNameError, match="function name 'größe' is not a valid symbol"):
        compile(parse(halves))
    only = parse(halves).without("größe")
    assert compile(only)(np.ones(8, "float32")).tolist() == [0.5] * 8


def test_a_module_without_functions() -> None:
    with pytest.raises(NothingToCompileError):
        compile(Module())


CAST = """
n, m = symbols("n m", lower=1)

@graph_func
def main(x: Tensor[({size},), f32], z: Tensor(None, f32, rank=1)):
    y = match_cast(z, Tensor[(m,), f32])
    return x, y
"""


@pytest.mark.parametrize(
    ("size", "given"), [("m + 1", 4), ("2 * m", 6), ("3 * m - 2", 7), ("m", 3), ("2 * n", 6)]
)
def test_a_dimension_of_a_parameter_determines_a_symbol(size: str, given: int) -> None:
    """The interpreter, the checks and machine code agree; the match_cast compares the symbol."""
    module = parse(CAST.format(size=size))
    assert violations(module) == ()
    exe = compile(module)
    for found, expected in zip(exe(ones(given), ones(3)), (given, 3), strict=True):
        assert found.shape == (expected,)
    found = run_graph(module, [ones(given), ones(3)])
    assert [np.shape(x) for x in found] == [(given,), (3,)]
    if "m" in size:
        for run in (lambda *x: exe(*x), lambda *x: run_graph(module, list(x))):
            with pytest.raises(TilewrightError, match="expected"):
                run(ones(given), ones(4))


@pytest.mark.parametrize("size", ["m + n", "m * m", "m // 2", "n + m * 3"])
def test_an_undetermined_dimension_of_a_parameter_is_rejected(size: str) -> None:
    """A later match_cast does not define the symbols of a parameter."""
    with pytest.raises(IllFormedProgramError, match="an annotation uses symbol 'm'"):
        parse(CAST.format(size=size))


def test_a_kernel_without_calls_that_later_functions_share() -> None:
    module = parse("""
b, s = symbols("b s", lower=1)

@graph_func
def main(x: Tensor[(b, s, 4), f32]):
    y: Tensor[(b, s, 4), f32] = relu(x)
    return y

@graph_func
def one(x: Tensor[(b, s, 4), f32]):
    y: Tensor[(b, s, 4), f32] = relu(x)
    return y

@graph_func
def two(x: Tensor[(b, s, 4), f32]):
    y: Tensor[(b, s, 4), f32] = relu(x)
    return y
""")
    sch = Schedule(module)
    sch.legalize()
    sch.clone_function("relu", ("y",))  # nothing calls `relu` until the others are lowered
    executable = compile(sch)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    for name in ("main", "one", "two", "relu"):
        np.testing.assert_array_equal(executable[name](x), np.maximum(x, 0))


CALL_IN_BRANCH = """
n, m = symbols("n m", lower=0)

@graph_func
def inner(x: Tensor[(n,), f32], y: Tensor[(m,), f32]):
    fact(n == m, "equal", by="match_cast")
    same = match_cast(y, Tensor[(n,), f32])
    z: Tensor[(n,), f32] = add(x, same)
    return z

@graph_func
def main(x: Tensor[(n,), f32], y: Tensor[(m,), f32], p: Tensor[(), bool]):
    u: Tensor[(m,), f32] = negative(y)
    if p:
        a: Tensor[(n,), f32] = call(inner, x, y)
        b: Tensor[(n,), f32] = a
    else:
        c: Tensor[(n,), f32] = negative(x)
        b: Tensor[(n,), f32] = c
    w: Tensor[(n,), f32] = negative(b)
    return w, u
"""


def test_a_fact_of_a_callee_in_a_branch_holds_only_there() -> None:
    exe = compile(parse(CALL_IN_BRANCH))
    w, u = exe(ones(3), ones(3), np.array(True))
    assert (w.tolist(), u.tolist()) == ([-2.0] * 3, [-1.0] * 3)
    for n, m in ((3, 3000), (3000, 3)):
        w, u = exe(ones(n), ones(m), np.array(False))
        assert (w.tolist(), u.tolist()) == ([1.0] * n, [-1.0] * m)
        with pytest.raises(CheckError, match=r"m == n|n == m"):
            exe(ones(n), ones(m), np.array(True))
