"""Random steps of every primitive and composite, and their form as JSON data.

Names of loops, blocks and buffers are unique in a function, so a recorded step refers to them by
name. It therefore applies to a program of which parts were removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.loop.nodes import Block, IndexMap, PrimFunc
from tilewright.ir.loop.scans import scanning
from tilewright.ir.loop.visit import walk
from tilewright.ir.symbolic import Bool, Expr, const_value, parse_expr, to_text
from tilewright.schedules.apply import Composite, Primitive, Query
from tilewright.schedules.block_scope import scope_of, selected
from tilewright.schedules.coerce import index_map
from tilewright.schedules.handles import (
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    LoopRef,
    kind_of,
    label,
)
from tilewright.schedules.lookup import find
from tilewright.schedules.registry import STEPS, composites, primitives
from tilewright.schedules.values import index_map_text

from tests.schedules.random_steps import blocks, loops, random_step, selections, temporaries
from tests.strategies import symbols_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from tilewright.ir.symbolic import Var
    from tilewright.schedules import Handle, State
    from tilewright.schedules.step import Step

FUNCTION = FunctionRef("random")
FAMILIES = (
    "annotate", "caching", "layout", "loops", "placement", "reduction", "sample", "specialize",
    "tensorize",
)  # fmt: skip
VERBS = tuple(
    c.verb() for c in primitives() if c.family in FAMILIES and c.verb() != "clone_function"
)
"""Primitives that change a single loop-level function; a clone needs calls in a graph."""

ISOLATED = tuple(c.verb() for c in primitives() if c.isolated and c.family != "sample")
"""Primitives that regard the inside of a block as a whole function."""

INSIDE = ("caching", "layout", "loops", "placement", "reduction", "sample", "tensorize")
"""Families whose operands are often drawn from the inside of a block."""

ON_GRAPHS = (
    *(c.verb() for c in primitives() if c.family in ("autodiff", "graph", "memory")),
    "clone_function", "specialize", "assume", "lower_graph", "finish_graph", "default_schedule",
)  # fmt: skip
"""Primitives and composites that change graph functions, or the calls of a function."""

SAMPLES = tuple(c.verb() for c in primitives() if c.family == "sample")
TILES = ("sample_perfect_tile", "sample_partitioned_tile")
"""Sampling steps whose values are the factors of a split."""

UNCOUNTED = ("annotate", "unannotate", "add_unit_loop", *SAMPLES)
"""Steps that do not change the generated code, or only by loops of one iteration."""

KINDS = ("bind", "parallel", "unroll", "vectorize")
"""Steps after which a loop cannot be changed."""

OF_GRAPHS = ("default_schedule", "lower_graph", "finish_graph", "schedule_gpu_scans")
"""Composite steps that need a graph; the last one is applied by the first."""

LIBRARY = tuple(
    c.verb() for c in composites() if c.family == "library" and c.verb() not in OF_GRAPHS
)
"""Composite steps of one function."""

RULES = (
    "inline_elementwise",
    *(v for v in LIBRARY if v.startswith("schedule_") and v != "schedule_copy"),
)
"""Composite steps whose operand is the whole function."""

AXES = ("blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y", "vthread", "blockIdx.z")
SCOPES = ("local", "local", "global", "shared")
"""Memory scopes, more often the one that every target has."""


def kernel(state: State) -> FunctionRef:
    """Return the first loop-level function, which random steps change."""
    return FunctionRef(state.module.prims[0].name)


def part_of(rng: random.Random, state: State, verb: str) -> State:
    """Return the state from which operands are drawn: often that of the inside of a block."""
    cls = STEPS[verb]
    if cls.family not in INSIDE or rng.random() < 0.3:
        return state
    found = (scope_of(state, ref) for ref in (*loops(state), *blocks(state)))
    insides = list(dict.fromkeys(inside for inside in found if inside is not None))
    return rng.choice(insides) if insides else state


def draw(rng: random.Random, state: State, verb: str) -> Step | None:
    """Draw a step, suggested or with random parameters; None if the program has no operands."""
    cls, state = STEPS[verb], part_of(rng, state, verb)
    maker = MAKERS.get(verb)
    if maker is not None and rng.random() < 0.6:
        return maker(rng, state, cls)
    if rng.random() < 0.5 or issubclass(cls, Composite):
        handles = [*selections(state), kernel(state)]
        rng.shuffle(handles)
        for handle in handles[:8]:
            if found := list(cls.suggest(selected(state, cls, handle), handle)):
                return rng.choice(found)
    return random_step(rng, state, cls) if issubclass(cls, Primitive) else None


def _buffers(state: State, ref: BlockRef, *, written: bool) -> list[BufferRef]:
    block = state.block(ref)
    regions = block.writes if written else block.reads
    return [BufferRef(ref.function, r.buffer.uid, r.buffer.name) for r in regions]


def _cached(*, written: bool) -> Callable:
    def make(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
        found = [(b, x) for b in blocks(state) for x in _buffers(state, b, written=written)]
        if not found:
            return None
        block, own = rng.choice(found)
        scope = _scope(rng, state)
        if written or rng.random() < 0.8:
            return cls(block, own, scope)
        return cls(block, own, scope, _map(rng, len(state.buffer(own).shape)))

    return make


def _scope(rng: random.Random, state: State) -> str:
    """Draw a memory scope: on a GPU mostly one that all threads of a block share."""
    on_gpu = state.target is not None and state.target.is_gpu
    return rng.choice(("shared", "shared", "global", "local") if on_gpu else SCOPES)


def _map(rng: random.Random, rank: int) -> str | None:
    """Draw an index map: a permutation with one dimension tiled."""
    names = [f"d{k}" for k in range(rank)]
    if not names:
        return None
    outputs = rng.sample(names, rank)
    if rng.random() < 0.5:
        tiled, size = rng.choice(names), rng.randint(2, 4)
        outputs[outputs.index(tiled)] = f"{tiled} // {size}"
        outputs.insert(rng.randint(0, rank), f"{tiled} % {size}")
    return f"lambda {', '.join(names)}: ({', '.join(outputs)},)"


def _set_scope(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = temporaries(state)
    return cls(rng.choice(found), _scope(rng, state)) if found else None


def _bind(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = [x for x in loops(state) if state.loop(x).kind == "serial"]
    if not found:
        return None
    loop = rng.choice(found)
    constant = const_value(state.loop(loop).extent) is not None
    return cls(loop, rng.choice(AXES if constant else AXES[::2]))


def _rfactor(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    reducing = [b for b in blocks(state) if any(v.kind == "reduce" for v in state.block(b).iters)]
    if not reducing:
        return None
    block = rng.choice(reducing)
    above = state.tree(block.function).loops_above(state.block(block))
    if not above:
        return None
    loop = rng.choice(above)
    return cls(block, LoopRef(block.function, loop.uid, loop.var.name))


def _scan_blocks(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = [b for b in blocks(state) if scanning(state.block(b)) is not None]
    return cls(rng.choice(found), rng.choice([1, 2, 4, 7])) if found else None


def _assume(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    symbols = symbols_of(state.module.prims[0])
    if not symbols:
        return None
    symbol = rng.choice(symbols).name
    match rng.randint(0, 2):
        case 0:
            return cls(kernel(state), symbol, rng.choice([2, 4]))
        case 1:
            return cls(kernel(state), symbol, 1, rng.choice([1, 2]))
        case _:
            return cls(kernel(state), symbol, 1, None, rng.choice([70, 100]))


def _unannotate(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = [(x, k) for x in loops(state) for k, _ in state.loop(x).annotations]
    found += [(x, k) for x in blocks(state) for k, _ in state.block(x).annotations]
    return cls(*rng.choice(found)) if found else None


def _blockize(rng: random.Random, state: State, cls: Callable[..., Step]) -> Step | None:
    found = [x for x in loops(state) if any(isinstance(s, Block) for s in walk(state.loop(x)))]
    return cls(rng.choice(found)) if found else None


MAKERS: Mapping[str, Callable] = {
    "assume": _assume,
    "bind": _bind,
    "blockize": _blockize,
    "cache_read": _cached(written=False),
    "cache_write": _cached(written=True),
    "rfactor": _rfactor,
    "scan_blocks": _scan_blocks,
    "set_scope": _set_scope,
    "unannotate": _unannotate,
}


def to_data(step: Step) -> dict[str, object]:
    """Return a step as JSON data, with names in place of handles."""
    return {"verb": step.verb(), **{name: _plain(value) for name, value in step.values()}}


def _plain(value: object) -> object:
    match value:
        case LoopRef() | BlockRef() | BufferRef() | FunctionRef() | BindingRef():
            found = {"kind": kind_of(value), "name": label(value)}
            return found if value.function == FUNCTION.function else found | _function(value)
        case IndexMap():
            return {"kind": "map", "text": index_map_text(value)}
        case Expr() | Bool():
            return {"kind": "term", "text": to_text(value)}
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _function(handle: Handle) -> dict[str, str]:
    return {"function": handle.function}


_HANDLES = {
    "loop": LoopRef, "block": BlockRef, "buffer": BufferRef, "function": FunctionRef,
    "binding": BindingRef,
}  # fmt: skip


def from_data(state: State, data: Mapping[str, object]) -> Step:
    """Return the step of JSON data for a state.

    Raises
    ------
    TilewrightError
        If the program has no such loop, block, buffer or symbol.
    """
    cls = STEPS[str(data["verb"])]
    symbols = _symbols(state, data.values())
    return cls(**{k: _value(state, v, symbols) for k, v in data.items() if k != "verb"})


def _symbols(state: State, values: Iterable[object]) -> dict[str, Var]:
    """Return the symbols of the first function that a step refers to, or of the only one."""
    names = (v["function"] for v in values if isinstance(v, dict) and "function" in v)
    own = state.module.functions.get(next(names, FUNCTION.function))
    return {v.name: v for v in symbols_of(own)} if isinstance(own, PrimFunc) else {}


def _value(state: State, value: object, symbols: Mapping) -> object:
    match value:
        case {"kind": "map", "text": str(text)}:
            return index_map(text, symbols)
        case {"kind": "term", "text": str(text)}:
            return parse_expr(text, symbols)
        case {"kind": str(kind), "name": str(name)}:
            function = value.get("function", FUNCTION.function)
            return find(state, _HANDLES[kind], name, function)
        case list():
            return tuple(_value(state, item, symbols) for item in value)
        case _:
            return value


def as_code(data: Mapping[str, object]) -> str:
    """Return recorded data as a call of a schedule method, with names as text."""
    values = ", ".join(f"{k}={_code(v)}" for k, v in data.items() if k != "verb" and v is not None)
    return f"sch.{data['verb']}({values})"


def _code(value: object) -> str:
    match value:
        case {"text": str(text)}:
            return repr(text)
        case {"name": str(name)}:
            return repr(name)
        case list():
            return f"({''.join(f'{_code(item)}, ' for item in value)})"
        case _:
            return repr(value)


def applied(before: State, after: State) -> list[str]:
    """Return the primitives that were applied between two states, those of composites included."""
    count = len(before.trace)
    new = [*after.trace.steps[count:], *(g for g in after.trace.groups if g.first >= count)]
    return [t.op for t in new if t.op in STEPS and not issubclass(STEPS[t.op], Query)]


def family_of(verb: str) -> str:
    """Return the family of a step."""
    return STEPS[verb].family


def families_of(verbs: Iterable[str]) -> set[str]:
    """Return the families of counted steps."""
    return {family_of(v) for v in verbs if v not in UNCOUNTED}
