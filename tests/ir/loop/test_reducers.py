"""Reductions of several values by declared reducers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.errors import TilewrightError
from tilewright.ir.analysis import reduction_of, reorders
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.loop.nodes import Block, PrimFunc
from tilewright.ir.loop.reducers import combined, first_of_update, reducer_problem, reducing
from tilewright.ir.loop.straight_line import joined, statements_of
from tilewright.ir.loop.verify import loop_violations
from tilewright.ir.loop.visit import seq, stores, walk
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.structural_hash import structural_hash
from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef, Handle, refs_of
from tilewright.target.target import Target

SIZES = ((0, 5), (2, 0), (1, 1), (3, 5), (2, 16), (1, 33), (4, 100))

ARGMAX = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], best: Out[(n,), f32], at: Out[(n,), i64]):
    for i in range(n):
        for k in range(m):
            with block("best"):
                vi, vk = spatial(i), reduce(k)
                with init(): best[vi], at[vi] = -inf, 9223372036854775807
                best[vi], at[vi] = argmax(x[vi, vk], vk)
"""
WELFORD = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], c: Out[(n,), f32], mean: Out[(n,), f32], sq: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("best"):
                vi, vk = spatial(i), reduce(k)
                with init(): c[vi], mean[vi], sq[vi] = 0.0, 0.0, 0.0
                c[vi], mean[vi], sq[vi] = welford(1.0, x[vi, vk], 0.0)
"""
SOFTMAX = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], top: Out[(n,), f32], s: Out[(n,), f32], o: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("best"):
                vi, vk = spatial(i), reduce(k)
                with init(): top[vi], s[vi], o[vi] = -inf, 0.0, 0.0
                t = x[vi, vk] * 3.0
                top[vi], s[vi], o[vi] = online_softmax(t, 1.0, t * t + x[vi, vk])
"""
PAIR = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], s: Out[(n,), f32], c: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("best"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(0.0, 1.0))
                def pair(a0: f32, a1: f32, b0: f32, b1: f32):
                    d = a1 * b1
                    return a0 + b0, d
                with init(): s[vi], c[vi] = 0.0, 1.0
                t = x[vi, vk] * 0.5 + 1.0
                s[vi], c[vi] = pair(t * t, t)
"""
PROGRAMS = {"argmax": ARGMAX, "welford": WELFORD, "softmax": SOFTMAX, "pair": PAIR}


def data(n: int, m: int) -> np.ndarray:
    x = np.random.default_rng(n * m).standard_normal((n, m)).astype(np.float32)
    if m:
        x[:, m // 2] = x[:, 0]  # a tie
    return x


EMPTY = {
    "argmax": (-np.inf, 2**63 - 1),
    "welford": (0, 0, 0),
    "softmax": (-np.inf, 0, 0),
    "pair": (0, 1),
}
"""The results without terms: the identities."""


def expected(name: str, x: np.ndarray) -> tuple[np.ndarray, ...]:
    wide = x.astype(np.float64)
    if x.shape[1] == 0:
        return tuple(np.full(len(x), value) for value in EMPTY[name])
    match name:
        case "argmax":
            return x.max(1), np.argmax(x, 1)
        case "welford":
            count = np.full(len(x), x.shape[1])
            return count, wide.mean(1), wide.var(1) * x.shape[1]
        case "softmax":
            t = wide * 3
            weights = np.exp(t - t.max(1, keepdims=True))
            return t.max(1), weights.sum(1), (weights * (t * t + wide)).sum(1)
        case _:
            t = wide * 0.5 + 1
            return (t * t).sum(1), t.prod(1)


def check(name: str, results: object, x: np.ndarray) -> None:
    for got, want in zip(tuple(results), expected(name, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-4)


def block_of(function: PrimFunc) -> Block:
    return next(s for s in walk(function.body) if isinstance(s, Block))


@pytest.mark.parametrize("name", PROGRAMS)
def test_reductions_round_trip_and_run(name):
    module = parse(PROGRAMS[name])
    assert str(parse(str(module))) == str(module)
    assert structural_hash(parse(str(module)).prim("f")) == structural_hash(module.prim("f"))
    exe = compile(module, "cpu")
    for n, m in SIZES:
        x = data(n, m)
        check(name, call_prim(module.prim("f"), [x]), x)
        check(name, exe(x), x)


KINDS = ("rfactor", "outer", "decomposed", "reordered", "lanes", "threads", "epilogue")


def scheduled(text: str, kind: str) -> Schedule:
    target = Target("simt") if kind == "threads" else None
    sch = Schedule(parse(text), target)
    if kind == "epilogue":
        sch.decompose_reduction("best", "k")
        _, inner = sch.split("k", factors=(None, 8), tail="epilogue")
        sch.vectorize(inner)
        return sch
    outer, inner = sch.split("k", factors=(None, 8))
    match kind:
        case "rfactor":
            sch.rfactor("best", inner)
            sch.reorder(inner, outer)
            sch.parallel("i")
        case "outer":
            sch.rfactor("best", outer)
        case "decomposed":
            sch.decompose_reduction("best", outer)
        case "reordered":
            sch.reorder(inner, outer, "i")
        case "lanes":
            sch.decompose_reduction("best", outer)
            sch.vectorize(inner)
            sch.parallel("i")
        case _:
            sch.bind("i", "blockIdx.x")
            sch.bind(inner, "threadIdx.x")
    return sch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_keep_the_results(name, kind):
    sch = scheduled(PROGRAMS[name], kind)
    assert str(parse(str(sch.module))) == str(sch.module)
    exe = compile(sch, "simt" if kind == "threads" else "cpu")
    for n, m in SIZES:
        x = data(n, m)
        check(name, call_prim(sch.module.prim("f"), [x]), x)
        check(name, exe(x), x)


def test_ties_and_nan_are_ordered_as_by_numpy():
    x = np.zeros((6, 20), np.float32)
    x[1, 7] = x[1, 9] = np.nan
    x[2] = -np.inf
    x[3, 3] = x[3, 15] = np.inf
    x[4, 0], x[4, 1] = -0.0, 0.0
    x[5] = np.nan
    least = ARGMAX.replace("argmax", "argmin").replace("-inf", "inf")
    for text, want in ((ARGMAX, np.argmax(x, 1)), (least, np.argmin(x, 1))):
        for kind in ("rfactor", "lanes", "threads"):
            made = compile(scheduled(text, kind), "simt" if kind == "threads" else "cpu")(x)
            np.testing.assert_array_equal(made[1], want)


def test_ten_million_samples_have_the_mean_and_the_variance_of_float64():
    sch = Schedule(parse(WELFORD))
    rows, block, lanes = sch.split("k", factors=(256, None, 16))
    combine = sch.rfactor("best", rows)
    sch.rfactor("best", lanes)
    sch.reorder(lanes, block)
    assert combine.name == "best_combine"
    exe = compile(sch, "cpu")
    x = (np.random.default_rng(0).standard_normal((1, 10_000_000)) + 100).astype(np.float32)
    count, mean, square = exe(x)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(count, np.float32(1e7))
    np.testing.assert_allclose(mean, wide.mean(1), rtol=1e-6)
    np.testing.assert_allclose(square / count, wide.var(1), rtol=1e-5)


def test_the_parts_of_a_reduction():
    module = parse(SOFTMAX)
    block = block_of(module.prim("f"))
    found = reduction_of(block)
    assert found is reducing(block)
    assert found is not None
    assert [b.local.name for b in found.prefix] == ["t"]
    assert first_of_update(block) is statements_of(block.body)[1]
    assert first_of_update(replace(block, body=joined(statements_of(block.body)[:2]))) is None
    assert [t.buffer.name for t in found.targets] == ["top", "s", "o"]
    assert found.declared is found.reducer
    assert reorders(block)
    assert len(combined(found.reducer, found.targets, found.terms)) == 3
    assert [s.value for s in stores(found.starts())] == list(found.reducer.identities)
    assert reducer_problem(block) == ""


def test_a_known_operator_is_recognized_on_both_sides():
    text = """
@prim_func
def f(x: Buffer[(8, 4), f32], y: Out[(4,), f32]):
    for i in range(4):
        for k in range(8):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] = {update}
"""
    for update in ("x[vk, vi] + y[vi]", "y[vi] + x[vk, vi]"):
        module = parse(text.format(update=update))
        found = reduction_of(block_of(module.prim("f")))
        assert found is not None
        assert found.reducer.name == "add"
        assert found.declared is None
        sch = Schedule(module)
        sch.reorder("k", "i")
        x = np.arange(32, dtype=np.float32).reshape(8, 4)
        np.testing.assert_array_equal(compile(sch, "cpu")(x), x.sum(0))


def changed(module: Module, block: Block) -> list[str]:
    old = module.prim("f")
    inner = replace(old.body.body, body=block)
    return [v.message for v in loop_violations(replace(old, body=replace(old.body, body=inner)))]


def test_bodies_that_do_not_reduce_by_their_reducer_are_violations():
    module = parse(ARGMAX)
    block = block_of(module.prim("f"))
    first, second = stores(block.body)
    parts = reducing(block)
    assert parts is not None
    plain = replace(first, value=parts.terms[0])
    found = changed(module, replace(block, body=seq(plain, replace(second, value=parts.terms[1]))))
    assert any("is not a reduction by 'argmax'" in message for message in found)
    assert reducer_problem(replace(block, body=plain)) == (
        "it has 1 stores, and the reducer has 2 results"
    )


BAD = {
    "names of other iterations": (
        ARGMAX.replace("at[vi] = argmax", "at[0] = argmax").replace(
            "at[vi] = -inf", "at[0] = -inf"
        ),
        "stored at different iterations",
    ),
    "a float index": (
        ARGMAX.replace("i64", "f32").replace("9223372036854775807", "0.0"),
        "argmax is not defined",
    ),
    "too few values": (
        ARGMAX.replace("argmax(x[vi, vk], vk)", "argmax(x[vi, vk])"),
        "expected 2 values, got 1",
    ),
    "no identity": (PAIR.replace("identity=(0.0, 1.0)", "commutative=True"), "has no identity"),
    "too few identities": (
        PAIR.replace("identity=(0.0, 1.0)", "identity=(0.0,)"),
        "expected 2 identities",
    ),
    "a loop inside": (
        PAIR.replace("d = a1 * b1", "for q in range(2):\n                        d = a1"),
        "assignments and one return",
    ),
    "a load": (PAIR.replace("d = a1 * b1", "d = a1 * x[vi, vk]"), "uses only its operands"),
    "results of other dtypes": (
        PAIR.replace("return a0 + b0, d", "return a0 + b0, i32(d)"),
        "expected a result of dtype f32",
    ),
    "nothing returned": (PAIR.replace("return a0 + b0, d", "e = d"), "returns nothing"),
    "no dtype": (PAIR.replace("a1: f32", "a1"), "has no dtype"),
    "a decorator": (
        PAIR.replace("@reducer(identity=(0.0, 1.0))", "@combine"),
        "a function in a block is a reducer",
    ),
    "an init of another element": (
        ARGMAX.replace("best[vi], at[vi] = -inf", "best[vi], at[n - 1 - vi] = -inf"),
        "another element",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_reducers_are_rejected(case):
    text, message = BAD[case]
    with pytest.raises(TilewrightError, match=message):
        parse(text)


def test_a_reducer_that_is_not_commutative_keeps_its_order():
    text = PAIR.replace("identity=(0.0, 1.0)", "identity=(0.0, 1.0), commutative=False").replace(
        "return a0 + b0, d", "return a0 * b1 + b0, d"
    )
    sch = Schedule(parse(text))
    assert not reorders(block_of(sch.module.prim("f")))
    assert "commutative=False" in str(sch)
    with pytest.raises(TilewrightError, match="commutative"):
        sch.rfactor("best", "k")
    x = data(3, 7)
    t = x.astype(np.float64) * 0.5 + 1
    want = np.zeros(3)
    for k in range(7):
        want = want * t[:, k] + t[:, k] ** 2
    np.testing.assert_allclose(compile(sch, "cpu")(x)[0], want, rtol=1e-5)
    sch.reorder("k", "i")  # the terms of an element keep their order
    np.testing.assert_allclose(call_prim(sch.module.prim("f"), [x])[0], want, rtol=1e-5)
    np.testing.assert_allclose(compile(sch, "cpu")(x)[0], want, rtol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_init_runs_before_the_tiles_and_their_epilogue(name):
    sch = Schedule(parse(PROGRAMS[name]))
    sch.split("k", factors=(None, 8), tail="epilogue")
    exe = compile(sch, "cpu")
    for n, m in SIZES:
        x = data(n, m)
        check(name, call_prim(sch.module.prim("f"), [x]), x)
        check(name, exe(x), x)


STARTS = {"s[vi], c[vi] = 0.0, 1.0": "s[vi], c[vi] = 2.0, 3.0"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_init_that_is_not_the_identity_counts_once(kind):
    ((old, new),) = STARTS.items()
    sch = scheduled(PAIR.replace(f"init(): {old}", f"init(): {new}"), kind)
    exe = compile(sch, "simt" if kind == "threads" else "cpu")
    for n, m in SIZES:
        x = data(n, m)
        total, product = expected("pair", x)
        for results in (call_prim(sch.module.prim("f"), [x]), exe(x)):
            np.testing.assert_allclose(results[0], total + 2, rtol=2e-4)
            np.testing.assert_allclose(results[1], product * 3, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["rfactor", "lanes", "epilogue", "threads"])
@pytest.mark.parametrize("name", ["welford", "softmax"])
def test_nan_reaches_the_results(name, kind):
    x = data(4, 100)
    x[0, 3] = x[1, 99] = x[2, 64] = np.nan
    results = compile(scheduled(PROGRAMS[name], kind), "simt" if kind == "threads" else "cpu")(x)
    for made in results[name == "welford" :]:
        np.testing.assert_array_equal(np.isnan(made), [True, True, True, False])


def handles(sch: Schedule) -> list[Handle]:
    blocks = sch.get_blocks("f")
    loops = [x for block in blocks for x in sch.get_loops(block)]
    function = sch.module.prim("f")
    found = refs_of("f", *function.buffers, *function.buffer_params)
    return list(dict.fromkeys((FunctionRef("f"), *blocks, *loops, *found)))


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_suggested_step_keeps_the_results_or_is_refused(name, decomposed):
    """Steps with facts that the sizes violate are left out, and those on other functions."""
    start = Schedule(parse(PROGRAMS[name].replace("lower=0", "lower=1")))
    if decomposed:
        start.decompose_reduction("best", "k")
        start.split("k", factors=(None, 8))
    tried: set[str] = set()
    for handle in handles(start):
        for suggestion in start.suggest(handle):
            step = suggestion.step
            verb = step.verb()
            if verb in ("assume", "specialize") or start.check(step):
                continue
            sch = Schedule.draft(start.state)
            sch.apply(step)
            tried.add(verb)
            for n, m in ((1, 1), (3, 13)):
                x = data(n, m)
                check(name, call_prim(sch.module.prim("f"), [x]), x)
    steps = {"split", "reorder", "parallel", "cache_read", "blockize", "fuse", "tile"}
    steps |= {"vectorize"} if decomposed else {"rfactor", "decompose_reduction", "cache_write"}
    assert steps <= tried


@pytest.mark.parametrize("guard", ["k <= i", "k + i < 40", "k % 3 == 1", "k >= i"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_guards_on_rows_and_terms(name, guard):
    """Lanes without terms, and rows without terms, do not change the results."""
    head = "vi, vk = spatial(i), reduce(k)"
    module = parse(PROGRAMS[name].replace(head, f"{head}\n                guard({guard})"))
    exe = compile(module, "cpu")
    for n, m in (*SIZES, (70, 130)):
        x = data(n, m)
        for made, want in zip(exe(x), call_prim(module.prim("f"), [x]), strict=True):
            np.testing.assert_allclose(made, want, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("first", ["bind", "vectorize"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_and_lanes_of_one_reduction(name, first):
    sch = Schedule(parse(PROGRAMS[name]), Target("simt"))
    outer, middle, inner = sch.split("k", factors=(None, 8, 4))
    sch.bind("i", "blockIdx.x")
    sch.decompose_reduction("best", outer)
    if first == "vectorize":
        sch.vectorize(inner)
    sch.bind(middle, "threadIdx.x")
    if first == "bind":
        sch.vectorize(inner)
    exe = compile(sch, "simt")
    for n, m in SIZES:
        x = data(n, m)
        check(name, exe(x), x)
