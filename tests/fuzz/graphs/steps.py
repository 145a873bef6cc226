"""Random steps on graph programs: graph-level steps, and loop-level steps on one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tilewright.ir.graph.libraries import LIBRARY_FUNCTIONS
from tilewright.ir.graph.nodes import Call, CallTIR, GraphFunc
from tilewright.ir.graph.operators import get_operator
from tilewright.ir.graph.visit import all_bindings
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.schedules.apply import check
from tilewright.schedules.handles import BindingRef, BlockRef, BufferRef, FunctionRef
from tilewright.schedules.primitives.graph.dispatch_to_library import DispatchToLibrary
from tilewright.schedules.registry import STEPS

from tests.fuzz import steps as loop_level
from tests.strategies import symbols_of

if TYPE_CHECKING:
    import random

    from tilewright.ir.graph.nodes import Binding
    from tilewright.schedules import State
    from tilewright.schedules.step import Step

MAIN = "main"
WEIGHTS: Mapping[str, int] = {
    "legalize": 4, "fuse_ops": 6, "fuse_tir": 4, "collapse_dims": 3, "specialize": 3,
    "hoist_block": 3, "clone_function": 2, "fold_constants": 2, "dead_code": 2,
    "lift_transforms": 2, "assume": 2, "lower_graph": 1, "finish_graph": 1, "plan_memory": 1,
    "default_schedule": 1, "dispatch_to_library": 1, "gradient": 1,
    "decompose": 2, "common_subexpressions": 2, "offload": 1, "fuse_attention": 2,
}  # fmt: skip
"""How often a step is drawn, relative to 1."""

FINAL = ("plan_memory", "finish_graph", "default_schedule")
"""Steps after which few others are legal."""

PATH = ("fold_constants", "dead_code", "legalize", "lift_transforms", "fuse_ops", "fuse_tir")
"""Steps in the order of the default steps; each requires those before it."""


def draw(rng: random.Random, state: State, verb: str) -> Step | None:
    """Draw a step with random operands, legal or not; None if the program has none."""
    if verb not in MAKERS:
        return None
    return MAKERS[verb](rng, state, STEPS[verb])


def focused(state: State, kernel: str) -> State:
    """Return the state with a kernel as the first function, which loop-level steps change."""
    functions = dict(state.module.functions)
    own = functions.pop(kernel)
    module = state.module.without(*state.module.functions).with_functions(own, *functions.values())
    return state.with_module(module)


def graphs(state: State) -> list[str]:
    """Return the names of the graph functions, ``main`` several times."""
    others = [f.name for f in state.module.graphs if f.name != MAIN]
    return [MAIN, MAIN, MAIN, *others]


def kernels(state: State) -> list[str]:
    """Return the names of the loop-level functions."""
    return [f.name for f in state.module.prims]


def calls(state: State) -> list[tuple[GraphFunc, Binding]]:
    """Return the calls of kernels, also in branches and loops, with their functions."""
    return [
        (graph, binding)
        for graph in state.module.graphs
        for binding in all_bindings(graph.bindings)
        if isinstance(binding.right, CallTIR)
    ]


def reference(graph: GraphFunc, binding: Binding) -> BindingRef:
    """Return the handle of a binding."""
    return BindingRef(graph.name, binding.value.uid, binding.value.name)


def _on_graph(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step:
    return cls(FunctionRef(rng.choice(graphs(state))))


def _fold(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step:
    function = FunctionRef(rng.choice(graphs(state)))
    return cls(function) if rng.random() < 0.6 else cls(function, rng.choice([1, 16, 64, 1 << 20]))


def _dispatch(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    """Choose an operator call and a library function, mostly one that implements the call."""
    found = [
        reference(g, b)
        for g in state.module.graphs for b in all_bindings(g.bindings) if isinstance(b.right, Call)
    ]  # fmt: skip
    suggested = [step for ref in found for step in DispatchToLibrary.suggest(state, ref)]
    if suggested and rng.random() < 0.8:
        return rng.choice(suggested)
    return cls(rng.choice(found), rng.choice(list(LIBRARY_FUNCTIONS))) if found else None


def _decomposed(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step:
    """Choose all calls, calls of some operators, or some calls, mostly with a decomposition."""
    name = rng.choice(graphs(state))
    own = [
        (b, b.right.op)
        for b in all_bindings(state.module.graph(name).bindings) if isinstance(b.right, Call)
    ]  # fmt: skip
    if rng.random() < 0.9:
        own = [(b, op) for b, op in own if get_operator(op).is_decomposable]
    some = rng.sample(own, min(len(own), rng.randint(1, 2)))
    match rng.randrange(3):
        case 0:
            return cls(FunctionRef(name))
        case 1:
            return cls(FunctionRef(name), (), tuple({op: None for _, op in some}))
        case _:
            calls = tuple(BindingRef(name, b.value.uid, b.value.name) for b, _ in some)
            return cls(FunctionRef(name), calls)


def _group(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step:
    """Group all calls by their kinds, or some calls: neighbors, or any."""
    name = rng.choice(graphs(state))
    own = [(g, b) for g, b in calls(state) if g.name == name]
    if len(own) < 2 or rng.random() < 0.4:
        return cls(FunctionRef(name))
    count = rng.randint(2, min(4, len(own)))
    first = rng.randint(0, len(own) - count)
    some = own[first : first + count] if rng.random() < 0.7 else rng.sample(own, count)
    return cls(FunctionRef(name), tuple(reference(g, b) for g, b in some))


def _clone(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = calls(state)
    if not found:
        return None
    _, binding = rng.choice(found)
    name = binding.right.function  # type: ignore[union-attr]
    same = [(g, b) for g, b in found if b.right.function == name]  # type: ignore[union-attr]
    sites = rng.sample(same, rng.randint(1, len(same)))
    return cls(FunctionRef(name), tuple(reference(g, b) for g, b in sites))


def _on_kernel(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = kernels(state)
    return cls(FunctionRef(rng.choice(found))) if found else None


def _hoist(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    """Choose a block, more often one that copies an input."""
    found = [
        BlockRef(f.name, s.uid, s.name)
        for f in state.module.prims for s in walk(f.body) if isinstance(s, Block)
    ]  # fmt: skip
    copies = [b for b in found if _copies_input(state, b)]
    if copies and rng.random() < 0.8:
        return cls(rng.choice(copies))
    return cls(rng.choice(found)) if found else None


def _copies_input(state: State, ref: BlockRef) -> bool:
    block, function = state.block(ref), state.module.prim(ref.function)
    inputs = {p.uid for p in function.buffer_params}
    return all(r.buffer.uid in inputs for r in block.reads) and all(
        w.buffer.uid not in inputs for w in block.writes
    )


def _specialized(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = [(f.name, v.name) for f in state.module.prims for v in symbols_of(f)]
    if not found:
        return None
    kernel, symbol = rng.choice(found)
    match rng.randrange(4):
        case 0:
            size = rng.choice([0, 1, 2, 3, 7])
            return cls(FunctionRef(kernel), symbol, size, size)
        case 1:
            return cls(FunctionRef(kernel), symbol, None, None, rng.choice([2, 4, 8]))
        case 2:
            return cls(FunctionRef(kernel), symbol, rng.choice([1, 2, 3]))
        case _:
            low = rng.choice([None, 1, 2])
            return cls(FunctionRef(kernel), symbol, low, (low or 0) + rng.choice([1, 3, 9]))


def _assumed(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = [(f.name, v.name) for f in state.module.prims for v in symbols_of(f)]
    if not found:
        return None
    kernel, symbol = rng.choice(found)
    match rng.randrange(3):
        case 0:
            return cls(FunctionRef(kernel), symbol, rng.choice([2, 4]))
        case 1:
            return cls(FunctionRef(kernel), symbol, 1, rng.choice([1, 2]))
        case _:
            return cls(FunctionRef(kernel), symbol, 1, None, rng.choice([70, 100, 5000]))


def _offloaded(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    """Keep the value of a binding in host memory until another binding, mostly a later one."""
    bindings = state.module.graph(MAIN).bindings
    if len(bindings) < 2:
        return None
    first, last = rng.sample(range(len(bindings)), 2)
    if rng.random() < 0.9:
        first, last = min(first, last), max(first, last)
    value, before = (bindings[k].value for k in (first, last))
    return cls(BindingRef(MAIN, value.uid, value.name), BindingRef(MAIN, before.uid, before.name))


def _everything(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step:
    del rng, state
    return cls()


MAKERS: Mapping[str, Callable] = {
    **dict.fromkeys(loop_level.ON_GRAPHS, _on_graph),
    "assume": _assumed,
    "clone_function": _clone,
    "collapse_dims": _on_kernel,
    "decompose": _decomposed,
    "default_schedule": _everything,
    "dispatch_to_library": _dispatch,
    "fold_constants": _fold,
    "fuse_ops": _group,
    "hoist_block": _hoist,
    "offload": _offloaded,
    "specialize": _specialized,
}


def caches(rng: random.Random, state: State) -> Iterator[Step]:
    """Yield legal steps that copy an input of a kernel, which `hoist_block` can move."""
    prims = list(state.module.prims)
    rng.shuffle(prims)
    for kernel in prims:
        for block in [s for s in walk(kernel.body) if isinstance(s, Block)]:
            for buffer in kernel.buffer_params:
                step = STEPS["cache_read"](
                    BlockRef(kernel.name, block.uid, block.name),
                    BufferRef(kernel.name, buffer.uid, buffer.name), "global",
                )  # fmt: skip
                if not check(state, step):  # type: ignore[arg-type]
                    yield step


LOOPS = tuple(v for v in loop_level.VERBS if v not in ("assume", "specialize"))
"""Loop-level primitives."""
