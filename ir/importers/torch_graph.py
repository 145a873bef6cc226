"""Import of the graphs of ``torch.compile``: flat FX graphs without parameters of a module.

The graphs that AOTAutograd passes to a backend are functional. Their inputs are tensors and sizes,
their outputs tensors, sizes, and None. A graph is presented to the importer of exported programs
as a program whose inputs are all inputs of the user.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypeAlias

from ...progress import progress_of
from ..graph.builder import GraphBuilder
from ..graph.nodes import GraphFunc, Operand
from ..module import Module
from ..symbolic import Expr, Var, evaluate, free_vars, var
from .cleanup import called_functions, constants_of, without_dead_code
from .tensors import Imported
from .torch_context import HANDLERS, TorchContext, handler_name
from .torch_inputs import read_symbols
from .torch_program import ProgramTranslator
from .torch_state import Changes, UnsupportedInputError
from .torch_symbols import SymbolicDimensionError, TorchSymbols, parse_guards

Rules: TypeAlias = "Mapping[Any, Callable[..., Any]]"


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a graph: a result of the program, an input, a size, or None.

    Parameters
    ----------
    result : int
        The position of a result of the program, or -1.
    input : int
        The position of an input of the graph that is returned, or -1.
    size : Expr, optional
        A size.
    """

    result: int = -1
    input: int = -1
    size: Expr | None = None


@dataclass(frozen=True, slots=True)
class ImportedGraph:
    """A graph as a module, and how its inputs and outputs correspond to those of ``main``.

    Parameters
    ----------
    module : Module
        The module with the function ``main``; without results if the graph computes no tensor.
    tensors : tuple of int
        The positions of the inputs that are tensors, the parameters of ``main`` in order.
    outputs : tuple of Output
        The outputs of the graph.
    dims : tuple
        Per symbol of the sizes: the symbol, an input, and the axis that has this size.
    """

    module: Module
    tensors: tuple[int, ...]
    outputs: tuple[Output, ...]
    dims: tuple[tuple[Var, int, int], ...]

    def sizes(self, inputs: Sequence[Any]) -> dict[Output, int]:
        """Return the sizes among the outputs for the inputs of one call."""
        wanted = [o for o in self.outputs if o.size is not None]
        if not wanted:
            return {}
        values = {symbol: int(inputs[k].shape[axis]) for symbol, k, axis in self.dims}
        return {o: evaluate(o.size, values) for o in wanted if o.size is not None}


def from_graph(graph_module: Any) -> ImportedGraph:
    """Import a graph of ``torch.compile``.

    Raises
    ------
    UnsupportedOperatorsError
        If the graph uses unsupported operators.
    UnsupportedInputError
        If an input is neither a tensor nor a size, or a size is not a dimension of a tensor, or an
        operator is random: a program returns the same numbers on each call.
    """
    _check_deterministic(graph_module)
    program = _program(graph_module)
    inputs = read_symbols(program)
    context = TorchContext(GraphBuilder("main", facts=inputs.facts), inputs.symbols)
    translator = _GraphTranslator(program, context, inputs, Changes(()))
    with progress_of("importing", False) as report:
        function = without_dead_code(translator.translate(report))
    used, called = constants_of(function), called_functions(function)
    module = Module(
        MappingProxyType({
            function.name: function,
            **{k: f for k, f in context.functions.items() if k in called},
        }),
        MappingProxyType({k: c for k, c in context.constants.items() if k in used}),
        MappingProxyType({"source": "torch.compile"}),
    )  # fmt: skip
    dims = tuple(_dims(program, inputs.symbols))
    known = {symbol for symbol, _, _ in dims}
    outputs = tuple(_outputs(program, translator, known))
    return ImportedGraph(module, program.tensors, outputs, dims)


def _check_deterministic(graph_module: Any) -> None:
    """Reject random operators, whose numbers PyTorch's generator determines."""
    import torch

    random = {
        str(node.target)
        for node in graph_module.graph.nodes
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    }
    if random:
        raise UnsupportedInputError(
            f"random operators use the generator of PyTorch: {', '.join(sorted(random))}",
            hint="draw the numbers outside of the compiled function, and pass them",
        )


class _GraphTranslator(ProgramTranslator):
    """The translation of a graph whose inputs may be sizes."""

    def _user_input(self, spec: Any, node: Any) -> Imported | Expr | None:
        value = node.meta.get("val")
        if value is None or hasattr(value, "shape"):
            return super()._user_input(spec, node)
        if isinstance(value, int) or hasattr(value, "node"):
            return self.context.symbols.size(value)
        raise UnsupportedInputError(
            f"input {node.name!r} of the graph is a {type(value).__name__}, not a tensor or a size"
        )

    def _finish(self) -> GraphFunc:
        """Return the computed tensors; sizes and inputs among the outputs are not results."""
        results = [self._result(node) for node in self.program.kept]
        return self.context.builder.finish(results, hints=self.inputs.hints)

    def _result(self, node: Any) -> Operand:
        found = self.values.get(node)
        if not isinstance(found, Imported):
            raise UnsupportedInputError(f"output {node} of the graph is not a tensor")
        return self.context.plain(found)


def _program(graph_module: Any) -> Any:
    """Return a graph in the form of an exported program."""
    from torch.utils import _pytree

    nodes = [n for n in graph_module.graph.nodes if n.op == "placeholder"]
    output = next(n for n in graph_module.graph.nodes if n.op == "output")
    returned: list[Any] = list(output.args[0])
    kept = list(dict.fromkeys(n for n in returned if _is_tensor(n) and n.op != "placeholder"))
    names = [str(n.name) for n in nodes]
    signature = SimpleNamespace(forward_arg_names=names)
    return SimpleNamespace(
        graph_module=graph_module,
        graph=graph_module.graph,
        graph_signature=SimpleNamespace(
            input_specs=[
                SimpleNamespace(
                    arg=SimpleNamespace(name=name),
                    kind=SimpleNamespace(name="USER_INPUT"),
                    target=None,
                )
                for name in names
            ],
            output_specs=[],
        ),
        range_constraints=_ranges(nodes),
        call_spec=SimpleNamespace(
            in_spec=_pytree.tree_structure(((0,) * len(nodes), {})),
            out_spec=_pytree.tree_structure([0] * len(kept)),
        ),
        module_call_graph=[SimpleNamespace(signature=signature)],
        _guards_code=tuple(_guards(nodes)),
        nodes=nodes,
        tensors=tuple(k for k, n in enumerate(nodes) if _is_tensor(n)),
        returned=returned,
        kept=kept,
    )


def _is_tensor(node: Any) -> bool:
    return hasattr(node, "meta") and hasattr(node.meta.get("val"), "shape")


def _environment(nodes: Sequence[Any]) -> Any:
    """Return PyTorch's environment of the symbols, if any size is symbolic."""
    for node in nodes:
        value = node.meta.get("val")
        for size in (*getattr(value, "shape", ()), value):
            if hasattr(size, "node") and hasattr(size.node, "shape_env"):
                return size.node.shape_env
    return None


def _ranges(nodes: Sequence[Any]) -> Mapping[Any, Any]:
    environment = _environment(nodes)
    return {} if environment is None else dict(environment.var_to_range)


def _guards(nodes: Sequence[Any]) -> Iterator[str]:
    """Yield PyTorch's guards of the sizes as texts over the inputs.

    They hold on each call, since PyTorch checks them before. Those that the importer cannot
    translate are not used.
    """
    environment = _environment(nodes)
    if environment is None:
        return
    from torch.utils._sympy.printers import PythonPrinter

    printer: Any = PythonPrinter()

    sources: dict[str, str] = {}
    for node in nodes:
        for axis, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
            if hasattr(size, "node") and size.node.expr.is_Symbol:
                sources.setdefault(str(size.node.expr), f"L['{node.name}'].size()[{axis}]")
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, sources)) + r")\b") if sources else None
    sizes = {source: var(f"size{k}", lower=0) for k, source in enumerate(sources.values())}
    for guard in environment.guards:
        text = printer.doprint(guard.expr)
        if pattern is None or not pattern.search(text):
            continue
        named = pattern.sub(lambda m: sources[m[0]], text)
        if _is_readable(named, sizes):
            yield named


def _is_readable(text: str, sizes: Mapping[str, Expr]) -> bool:
    """Return whether the importer can translate a guard."""
    try:
        return bool(parse_guards([text], sizes))
    except SymbolicDimensionError:
        return False


def _dims(program: Any, symbols: TorchSymbols) -> Iterator[tuple[Var, int, int]]:
    """Yield each symbol once, with an input and the axis of it that has this size."""
    found: set[Var] = set()
    for k in program.tensors:
        for axis, size in enumerate(program.nodes[k].meta["val"].shape):
            term = symbols.size(size)
            if isinstance(term, Var) and term not in found:
                found.add(term)
                yield term, k, axis


def _outputs(program: Any, translator: ProgramTranslator, known: set[Var]) -> Iterator[Output]:
    """Yield the correspondence of the outputs of the graph."""
    positions = {node: k for k, node in enumerate(program.nodes)}
    results = {node: k for k, node in enumerate(program.kept)}
    for node in program.returned:
        if node in positions:
            yield Output(input=positions[node])
        elif node in results:
            yield Output(result=results[node])
        elif node is None:
            yield Output()
        else:
            value: Operand | Any = translator.values.get(node) if hasattr(node, "op") else node
            size = translator.context.dims((value,))[0] if value is not None else None
            if size is None or not free_vars(size) <= known:
                raise UnsupportedInputError(
                    f"output {node} of the graph is neither a tensor nor a size"
                )
            yield Output(size=size)


@functools.cache
def graph_decompositions() -> Rules:
    """Return PyTorch's definitions in other operators of the operators without a handler."""
    from torch import _decomp

    known: Any = _decomp
    table: dict[Any, Callable[..., Any]] = {
        **known.decomposition_table,
        **known.core_aten_decompositions(),
    }
    return {
        operator: rule
        for operator, rule in table.items()
        if handler_name(operator) is None or handler_name(operator) not in HANDLERS
    }
