"""Every graph-level step preserves the results of random graphs, bit for bit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.libraries import LIBRARY_FUNCTIONS
from tilewright.ir.graph.nodes import CallTIR, TensorInfo, Value
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Constant, Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import as_expr, var
from tilewright.schedules import State
from tilewright.schedules.apply import Primitive, apply, check
from tilewright.schedules.handles import BindingRef, BlockRef, FunctionRef
from tilewright.schedules.primitives.graph.dispatch_to_library import DispatchToLibrary
from tilewright.schedules.registry import STEPS, primitives

from tests.amounts import amount

MAIN = FunctionRef("main")
WANTED = amount(20, 200)
FAMILIES = ("autodiff", "graph", "memory", "specialize")
ROUNDING = ("fuse_attention",)
"""Steps on operators that round, which the random graphs of whole numbers do not contain."""

STEPS_ON_GRAPHS = [
    c.verb() for c in primitives() if c.family in FAMILIES and c.verb() not in ROUNDING
]
SHAPES = ((1, 1), (2, 3), (3, 1))


def info(*dims) -> TensorInfo:
    return TensorInfo(tuple(as_expr(d) for d in dims), f32, rank=len(dims))


class RandomGraph:
    """A chain of ring operations on small integers, exact in f32, with weights and residuals.

    The mean of four elements is exact as well.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.constants: dict[str, Constant] = {}
        self.b, self.s = b, s = var("b", lower=1), var("s", lower=1)
        self.g = GraphBuilder("main")
        self.values: list[Value] = [self.g.param("x", info(b, s, 4))]
        for _ in range(rng.randint(2, 6)):
            self.values.append(self.operation(self.rng.choice(self.values[-2:])))
        results = [self.values[-1], *rng.sample(self.values[1:], rng.randint(0, 1))]
        self.module = Module().with_functions(self.g.finish(results)).with_constants(self.constants)

    def weight(self, *shape: int):
        rng = np.random.default_rng(self.rng.randrange(2**32))
        array = rng.integers(-2, 3, shape).astype(np.float32)
        key = f"w{len(self.constants)}.weight"
        self.constants[key] = Constant(shape, f32, lambda: array)
        return self.g.constant(key, info(*shape))

    def operation(self, x: Value) -> Value:
        emit, rng = self.g.emit, self.rng
        match rng.randrange(9):
            case 0:
                return emit("add", x, rng.choice(self.values))
            case 1:
                return emit("multiply", x, float(rng.randint(-2, 2)))
            case 2:
                return emit("relu", x)
            case 3:
                return emit("matmul", x, self.weight(4, 4))
            case 4:
                return emit("matmul", x, emit("permute_dims", self.weight(4, 4), axes=(1, 0)))
            case 5:
                return emit("subtract", x, emit("max", x, axes=(-1,), keepdims=True))
            case 6:
                return emit("add", x, self.weight(4))
            case 7:
                return emit("subtract", x, emit("mean", x, axes=(-1,), keepdims=True))
            case _:
                rows = emit("reshape", x, (self.b * self.s, 4))
                product = emit("matmul", rows, self.weight(4, 4))
                return emit("reshape", product, (self.b, self.s, 4))


def random_step(rng: random.Random, state: State, verb: str) -> Primitive | None:
    """Return a step with random parameters, which may be illegal."""
    cls = STEPS[verb]
    kernels = [f.name for f in state.module.prims]
    graph = state.module.functions.get("main")
    calls = [b for b in graph.bindings if isinstance(b.right, CallTIR)]
    if verb == "fuse_ops" and calls and rng.random() < 0.5:
        some = rng.sample(calls, min(len(calls), rng.randint(2, 3)))
        return cls(MAIN, tuple(BindingRef("main", b.value.uid) for b in some))
    if verb == "clone_function":
        if not calls:
            return None
        call = rng.choice(calls)
        return cls(FunctionRef(call.right.function), (BindingRef("main", call.value.uid),))
    if verb == "offload":
        values = [b.value for b in state.module.graph("main").bindings]
        pair = sorted(rng.sample(range(len(values)), 2)) if len(values) > 1 else ()
        refs = [BindingRef("main", values[k].uid, values[k].name) for k in pair]
        return cls(*refs) if refs else None
    if verb == "dispatch_to_library":
        return on_operator_call(rng, state)
    if verb in ("assume", "collapse_dims", "specialize", "hoist_block"):
        return on_kernel(rng, state, verb, kernels)
    return cls(MAIN)


def on_operator_call(rng: random.Random, state: State) -> Primitive | None:
    """Choose a binding and a library function, mostly one that implements its operator call."""
    graph = state.module.functions["main"]
    refs = [BindingRef("main", b.value.uid, b.value.name) for b in graph.bindings]
    suggested = [step for ref in refs for step in DispatchToLibrary.suggest(state, ref)]
    if suggested and rng.random() < 0.8:
        return rng.choice(suggested)
    return DispatchToLibrary(rng.choice(refs), rng.choice(list(LIBRARY_FUNCTIONS)))


def on_kernel(rng: random.Random, state: State, verb: str, kernels: list[str]) -> Primitive | None:
    if not kernels:
        return None
    kernel = rng.choice(kernels)
    if verb == "collapse_dims":
        return STEPS[verb](FunctionRef(kernel))
    if verb == "assume":
        bound = rng.choice([64, 65])
        return STEPS[verb](FunctionRef(kernel), rng.choice(["b", "s", "b_s"]), 1, None, bound)
    if verb == "specialize":
        low = rng.choice([None, 1, 2])
        return STEPS[verb](FunctionRef(kernel), rng.choice(["b", "s", "b_s"]), low, 2)
    blocks = [s for s in walk(state.module.prim(kernel).body) if isinstance(s, Block)]
    return STEPS[verb](BlockRef(kernel, rng.choice(blocks).uid)) if blocks else None


PATH = ("fold_constants", "dead_code", "legalize", "lift_transforms", "fuse_ops", "fuse_tir")


def prepared(rng: random.Random, state: State, verb: str) -> State:
    """Apply a random prefix of the default steps, up to the stage that the step requires."""
    before = PATH[: PATH.index(verb)] if verb in PATH else PATH
    if verb in ("decompose", "dispatch_to_library", "gradient"):
        before = PATH[: PATH.index("legalize")]
    for step in before:
        if step == "legalize" or rng.random() < 0.6:
            state = apply(state, STEPS[step](MAIN)).state
    if verb == "hoist_block":
        return with_cached_inputs(state)
    if verb == "fuse_tir" and rng.random() < 0.9:
        state = apply(state, STEPS["fuse_ops"](MAIN)).state
    if verb == "plan_memory" and any(f.name.startswith("fused") for f in state.module.graphs):
        state = apply(state, STEPS["fuse_tir"](MAIN)).state
    return state


def with_cached_inputs(state: State) -> State:
    """Return the state with a copy of the first input of each kernel, which can be hoisted."""
    from tilewright.schedules.handles import BufferRef

    for kernel in state.module.prims:
        buffer = kernel.buffer_params[0]
        for block in [s for s in walk(kernel.body) if isinstance(s, Block)]:
            step = STEPS["cache_read"](
                BlockRef(kernel.name, block.uid), BufferRef(kernel.name, buffer.uid), "global"
            )
            if not check(state, step):
                state = apply(state, step).state
                break
    return state


def outputs(module: Module) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for k, shape in enumerate(SHAPES):
        x = np.random.default_rng(k).integers(-3, 4, (*shape, 4)).astype(np.float32)
        found += [np.asarray(r).copy() for r in run_graph(module, [x])]
    return found


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("verb", STEPS_ON_GRAPHS)
def test_results_stay_the_same(verb: str, fuzz_factor: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in range(600 * fuzz_factor):
        if accepted[verb] >= WANTED:
            break
        rng = random.Random(seed)
        start = State.start(RandomGraph(rng).module)
        state = prepared(rng, start, verb)
        step = random_step(rng, state, verb)
        if step is None or check(state, step):
            continue
        after = apply(state, step).state.module
        accepted[verb] += 1
        assert equal(outputs(start.module), outputs(after)), f"{step.title()}\n{to_text(after)}"
    assert accepted[verb] >= WANTED


def test_text_of_every_stage_round_trips() -> None:
    rng = random.Random(5)
    state = State.start(RandomGraph(rng).module)
    stages: list[Callable[[State], State]] = [
        lambda s, verb=verb: apply(s, STEPS[verb](MAIN)).state for verb in (*PATH, "plan_memory")
    ]
    for stage in stages:
        state = stage(state)
        text = to_text(state.module)
        assert to_text(parse(text, constants=state.module.constants)) == text
