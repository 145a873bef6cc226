"""The ``lift_transforms`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from numpy.typing import NDArray

from ....ir.graph.effects import has_external_effects
from ....ir.graph.nodes import (
    Binding,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    ConstantRef,
    Dims,
    GraphFunc,
    Info,
    Operand,
    ScalarLiteral,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
)
from ....ir.graph.operators import get_operator
from ....ir.graph.regions import replace_bindings
from ....ir.graph.visit import (
    all_bindings,
    map_bindings,
    operands_of,
    replace_values,
    used_operands,
    used_values,
)
from ....ir.identity import Uid, fresh_name
from ....ir.interpreter import run_graph
from ....ir.module import Constant, Module
from ....ir.symbolic import const_value
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle, Removed
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem

PREPARE = "prepare"
"""The name of the first function that computes prepared constants at load time."""
PREPARE_FOR = "prepare_for"
"""The attribute of such a function; its value is the name of the function that uses them."""


@primitive(family="graph", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class LiftTransforms(Primitive):
    """Move bindings that depend on constants only into a function that runs at load time.

    Before::

        wt = permute_dims(w)
        y = matmul(x, wt)  # w: a weight

    After::

        prepare: prepared.wt = permute_dims(w)  # runs once, at load
        main: y = matmul(x, prepared.wt)

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.
    keep : tuple of BindingRef
        Bindings that are not moved, such as conversions of quantized weights to a wider dtype.

    Notes
    -----
    Calls of library functions without effects are moved too. All versions of a kernel share the
    prepared constants. The result is the handle of the function
    that computes them, or of ``function`` if no binding is moved. This function has the attribute
    ``prepare_for``. It is named ``prepare``, unless the module has another function of this name;
    a later step extends it until its memory is planned. Cost: the moved computation at load time,
    and memory for its results.

    Names elsewhere: TVM ``relax.transform.LiftTransformParams``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4 (LiftTransformParams).

    Examples
    --------
    >>> import numpy as np
    >>> import tilewright as tw
    >>> text = '''
    ... constant("w", (8, 4), f32)
    ...
    ... @graph_func
    ... def main(x: Tensor[(2, 4), f32]):
    ...     wt = permute_dims(const("w"), axes=(1, 0))
    ...     y = matmul(x, wt)
    ...     return y
    ... '''
    >>> sch = tw.Schedule(tw.parse(text, constants={"w": np.ones((8, 4), np.float32)}))
    >>> sch.lift_transforms("main")
    <function prepare>
    >>> print(sch)
    constant("w", (8, 4), f32)
    constant("prepared.wt", (4, 8), f32, source="prepare")
    <BLANKLINE>
    <BLANKLINE>
    @graph_func
    def main(x: Tensor[(2, 4), f32]):
        y: Tensor[(2, 8), f32] = matmul(x, const("prepared.wt"))
        return y
    <BLANKLINE>
    <BLANKLINE>
    @graph_func(prepare_for="main")
    def prepare():
        wt: Tensor[(4, 8), f32] = permute_dims(const("w"), axes=(1, 0))
        return {"prepared.wt": wt}
    """

    class Requires(Requirement):
        """The requirements of ``lift_transforms``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        NOT_AT_LOAD = "no function that computes constants at load time calls the function"

    function: FunctionRef = MAIN
    keep: tuple[BindingRef, ...] = ()

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level and the stage of the function."""
        yield from graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE)
        caller = _called_at_load(state.module, self.function.function)
        if caller is not None:
            yield Problem(
                self.Requires.NOT_AT_LOAD,
                f"{caller!r} calls {self.function.function!r} at load time, when no prepared "
                "constants are available",
                (self.function,),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Split the bindings, and pass values used in both parts as constants."""
        graph = state.module.graph(self.function.function)
        lifted = liftable(graph, frozenset(ref.uid for ref in self.keep))
        if not lifted:
            return Rewrite(state.module, (self.function,))
        kept = replace_bindings(graph.bindings, lambda b: () if b.value in lifted else (b,))
        results = [r for r in graph.returned if isinstance(r, Value)]
        crossing = [v for v in dict.fromkeys((*used_values(kept), *results)) if v in lifted]
        refs = {v: _reference(v, state.module) for v in crossing}
        main = replace_values(replace(graph, bindings=kept), refs)
        module = state.module.with_functions(main)
        before = _extensible(state.module, graph.name)
        name = _unused_name(state.module, graph.name) if before is None else before.name
        prepare = _prepare(before, name, graph.name, tuple(lifted.values()), refs)
        module = _with_constants(
            module.with_functions(_trimmed(prepare, main)),
            name,
            before.result_names if before else (),
        )
        moved: dict[Handle, tuple[Handle, ...] | Removed] = {
            BindingRef(graph.name, v.uid): (BindingRef(name, v.uid),) for v in lifted
        }
        return Rewrite(module, (FunctionRef(name),), moved)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph with bindings to move."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and not prepares(found) and _has_liftable(found):
            yield cls(FunctionRef(selection.function))


@lru_cache(maxsize=8)
def _has_liftable(graph: GraphFunc) -> bool:
    return bool(liftable(graph))


def prepares(function: GraphFunc) -> bool:
    """Return whether a function computes prepared constants at load time."""
    return PREPARE_FOR in dict(function.attributes)


def _called_at_load(module: Module, function: str) -> str | None:
    """Return a function of prepared constants that calls a function, directly or indirectly."""
    for graph in filter(prepares, module.graphs):
        waiting, reached = [graph], set[str]()
        while waiting:
            for binding in all_bindings(waiting.pop().bindings):
                right = binding.right
                if isinstance(right, CallGraph) and right.function not in reached:
                    reached.add(right.function)
                    waiting.append(module.graph(right.function))
        if function in reached:
            return graph.name
    return None


def _extensible(module: Module, prepared_for: str) -> GraphFunc | None:
    """Return the function that prepares constants for another one, if its memory is not planned."""
    attribute = (PREPARE_FOR, prepared_for)
    found = (g for g in module.graphs if attribute in g.attributes and g.stage == "dataflow")
    return next(found, None)


def _unused_name(module: Module, prepared_for: str) -> str:
    if PREPARE not in module.functions:
        return PREPARE
    return fresh_name(f"{PREPARE}_{prepared_for}", module.functions)


def liftable(graph: GraphFunc, kept: AbstractSet[Uid] = frozenset()) -> dict[Value, Binding]:
    """Return the bindings that depend on constants only, by value, in program order.

    Those of ``kept`` are left out, and so are all that depend on them.
    """
    found: dict[Value, Binding] = {}
    outermost = {b.value for b in graph.bindings}
    for binding in all_bindings(graph.bindings):
        if binding.value.uid in kept or not _is_computation(binding):
            continue
        if isinstance(binding.right, CallDPSLibrary) and binding.value not in outermost:
            continue  # it may fail, and its branch or loop may not run
        right = binding.right
        # A call without tensor operands may still depend on symbols.
        passed = right.scalars if isinstance(right, CallTIR) else ()
        sized = _is_sized(binding.value.info) and all(const_value(d) is not None for d in passed)
        if sized and all(_known(o, found) for o in operands_of(right)):
            found[binding.value] = binding
    return _with_whole_tuples(graph, found)


def _is_computation(binding: Binding) -> bool:
    """Return whether a binding computes a value from its operands, without other effects."""
    match binding.right:
        case Call(op=op) if get_operator(op).is_transfer:
            return False  # prepared constants are on the default device
        case Call() | CallTIR():
            return isinstance(binding.value.info, TensorInfo)
        case CallDPSLibrary(symbol=symbol):
            return not has_external_effects(symbol)
        case TupleItem():
            return isinstance(binding.value.info, TensorInfo)
        case _:
            return False


def _is_sized(info: Info) -> bool:
    """Return whether all sizes of an annotation are constants."""
    match info:
        case TensorInfo(shape=shape):
            return shape is not None and all(const_value(d) is not None for d in shape)
        case TupleInfo(fields=fields):
            return all(map(_is_sized, fields))
        case _:
            return False


def _with_whole_tuples(graph: GraphFunc, found: dict[Value, Binding]) -> dict[Value, Binding]:
    """Leave out the calls of which a tuple of results, and not only its fields, is used outside.

    Prepared constants are tensors.
    """
    while True:
        rest = [b for b in all_bindings(graph.bindings) if b.value not in found]
        used = {*used_values(rest), *(o for o in graph.returned if isinstance(o, Value))}
        whole = {v for v in found if v in used and isinstance(v.info, TupleInfo)}
        if not whole:
            return found
        for value, binding in list(found.items()):
            if value in whole or any(o in whole for o in operands_of(binding.right)):
                whole.add(value)
                del found[value]


def _known(operand: Operand, lifted: dict[Value, Binding]) -> bool:
    match operand:
        case ConstantRef() | ScalarLiteral():
            return True
        case Dims(dims=dims):
            return all(const_value(d) is not None for d in dims)
        case Value():
            return operand in lifted


def _reference(value: Value, module: Module) -> ConstantRef:
    if not isinstance(value.info, TensorInfo):
        raise TypeError(f"{value.name!r} is not a tensor")
    key = f"prepared.{value.name}"
    while key in module.constants:
        key += "_"
    return ConstantRef(key, value.info)


def _prepare(
    old: GraphFunc | None,
    name: str,
    prepared_for: str,
    lifted: Sequence[Binding],
    refs: dict[Value, ConstantRef],
) -> GraphFunc:
    """Return the prepare function, extended by more bindings."""
    bindings: tuple[Binding, ...] = old.bindings if old else ()
    results: tuple[Operand, ...] = old.results if old else ()
    names: tuple[str, ...] = old.result_names if old else ()
    known: dict[str, Operand] = dict(zip(names, results, strict=True))

    def from_prepared(operand: Operand) -> Operand:
        return known.get(operand.key, operand) if isinstance(operand, ConstantRef) else operand

    return GraphFunc(
        name,
        (),
        (*bindings, *map_bindings(lifted, from_prepared)),
        (*results, *refs),
        attributes=((PREPARE_FOR, prepared_for),),
        result_names=(*names, *(r.key for r in refs.values())),
    )


def _trimmed(prepare: GraphFunc, main: GraphFunc) -> GraphFunc:
    """Remove results that the main function no longer uses."""
    operands = (*used_operands(main.bindings), *main.returned)
    used = {o.key for o in operands if isinstance(o, ConstantRef)}
    pairs = zip(prepare.results, prepare.result_names, strict=True)
    kept = [(r, n) for r, n in pairs if n in used]
    results = tuple(r for r, _ in kept)
    live = {r for r in results if isinstance(r, Value)}
    bindings: list[Binding] = []
    for binding in reversed(prepare.bindings):
        if binding.value in live:
            bindings.append(binding)
            live.update(used_values((binding,)))
    return replace(
        prepare,
        bindings=tuple(reversed(bindings)),
        results=results,
        result_names=tuple(n for _, n in kept),
    )


def _with_constants(module: Module, name: str, replaced: Sequence[str]) -> Module:
    """Declare prepared constants; the interpreter computes them on demand.

    Parameters
    ----------
    module : Module
        The module.
    name : str
        The name of the function that computes the constants.
    replaced : sequence of str
        The keys of the constants that the function computed before.
    """
    prepare = module.graph(name)

    @cache
    def results() -> tuple[Any, ...]:
        return run_graph(module, (), function=name)

    def load(position: int) -> NDArray[Any]:
        return results()[position]

    constants = {k: c for k, c in module.constants.items() if k not in replaced}
    for position, (result, key) in enumerate(
        zip(prepare.results, prepare.result_names, strict=True)
    ):
        info = result.info if isinstance(result, Value | ConstantRef) else None
        if not isinstance(info, TensorInfo):
            raise TypeError(f"{key!r} is not a tensor")
        sizes = tuple(const_value(d) or 0 for d in info.shape or ())
        constants[key] = Constant(
            sizes, info.dtype, lambda position=position: load(position), source=PREPARE
        )
    return replace(module, constants=constants)
