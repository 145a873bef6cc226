"""Text of programs and of their nodes, for ``print`` and for the interactive prompt.

These functions accept every program: names that the text format does not allow are escaped, and
variables of equal name get a suffix.
"""

from __future__ import annotations

from typing import Any, Final

from ...errors import visible
from ..graph import nodes as graph
from ..loop import nodes as loop
from ..loop.visit import walk
from ..module import Module
from ..symbolic import Var
from .errors import UnprintableProgramError
from .printer.elements import Elements
from .printer.graph import GraphPrinter
from .printer.infos import info_text
from .printer.lines import Lines
from .printer.loop import LoopPrinter
from .printer.module import NO_CONSTANTS
from .printer.terms import TermPrinter
from .text import to_text

MAX_LABEL: Final = 120
"""The number of characters of a label; longer labels are cut."""

_ELEMENTS = (
    loop.Number, loop.Index, loop.Condition, loop.Load, loop.Unary, loop.Binary, loop.Ternary,
    loop.Compare, loop.Cast, loop.Reinterpret, loop.Where, loop.Local,
)  # fmt: skip
_STATEMENTS = (loop.Store, loop.For, loop.Block, loop.Seq, loop.If, loop.Let, loop.Bind)
_INFOS = (
    graph.ObjectInfo, graph.PrimInfo, graph.ShapeInfo, graph.TensorInfo, graph.TupleInfo,
    graph.CallableInfo,
)  # fmt: skip
_OPERANDS = (graph.ConstantRef, graph.ScalarLiteral, graph.Dims)


class _AnyNames(TermPrinter):
    """Prints terms with any names, which may be ambiguous."""

    def __init__(self) -> None:
        super().__init__("", rename=True)

    def check(self, name: str, kind: str) -> str:  # noqa: ARG002 - the kind is for errors
        return name

    def ambiguous(self, name: str) -> None:
        """Accept a name of several variables."""


def program_text(program: Module | loop.PrimFunc | graph.GraphFunc) -> str:
    """Return the text of a program.

    If the text format does not allow it, the first line is a comment with the reason, and control
    characters are escaped.
    """
    try:
        return to_text(program)
    except UnprintableProgramError as error:
        text = to_text(program, lowered=True)
        return visible(f"# not valid as input: {error.message}\n{text}")


def node_text(node: Any) -> str:
    """Return a node as program text.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> print(node_text(loop.Buffer(1, "A", (as_expr(8),), f32, "local")))
    A: f32[8] in local
    """
    return visible(_text(node))


def _text(node: Any) -> str:
    terms, out = _AnyNames(), Lines()
    printer = LoopPrinter(terms, out, provenance=False, lowered=True)
    match node:
        case loop.PrimFunc() | graph.GraphFunc():
            return program_text(node)
        case _ if isinstance(node, _STATEMENTS):
            printer.statement(node, frozenset())
            return "\n".join(out.lines)
        case loop.Reducer():
            printer.reducer(node)
            return "\n".join(out.lines)
        case _ if isinstance(node, _ELEMENTS):
            return Elements(terms).text(node)
        case loop.IndexMap():
            return _index_map(node, terms)
        case loop.Buffer():
            return _buffer(node, terms)
        case loop.Range():
            return printer.range_text(node)
        case loop.Region():
            return printer.region_text(node)
        case loop.IterVar():
            return f"{node.var.name} = {printer.iteration_text(node)}"
        case loop.BufferParam() | loop.ScalarParam():
            return printer.parameter(node)
        case _:
            return _graph_text(node, terms)


def _graph_text(node: Any, terms: TermPrinter) -> str:
    out = Lines()
    printer = GraphPrinter(terms, out, NO_CONSTANTS, provenance=False)
    match node:
        case _ if isinstance(node, _INFOS):
            return info_text(node, terms)
        case _ if isinstance(node, _OPERANDS):
            return printer.operand(node)
        case graph.Value():
            return f"{node.name}: {info_text(node.info, terms)}"
        case graph.GraphParam():
            return printer.parameter(node)
        case graph.Update():
            return f"{node.param.name} = {printer.operand(node.value)}"
        case graph.Binding():
            printer.bindings((node,))
            return "\n".join(out.lines)
        case graph.Branch():
            return f"{len(node.bindings)} bindings, results {printer.results(node.results)}"
        case graph.IfElse():
            return f"if {printer.operand(node.condition)}"
        case graph.Loop():
            names = ", ".join(p.value.name for p in node.params)
            return f"{printer.loop_head(node)} over {names}"
        case graph.LoopParam():
            return printer.loop_param(node, element=False)
        case graph.VersionCase():
            return f"if {terms.text(node.guard)}: {len(node.bindings)} bindings"
        case graph.VersionSwitch():
            return " else ".join(_graph_text(case, terms) for case in node.cases)
        case graph.KernelVersion():
            return printer.version_text(node)
        case _:
            return printer.right_text(node)


def _index_map(node: loop.IndexMap, terms: TermPrinter) -> str:
    names = ", ".join(terms.bind(v, "layout variable") for v in node.inputs)
    return f"lambda {names}: {terms.tuple(node.outputs)}"


def _buffer(node: loop.Buffer, terms: TermPrinter) -> str:
    text = f"{node.name}: {node.dtype}[{', '.join(terms.texts(node.shape))}]"
    text += "" if node.scope == "global" else f" in {node.scope}"
    text += "" if node.strides is None else f", strides {terms.tuple(node.strides)}"
    return text if node.layout is None else f"{text}, layout {_index_map(node.layout, terms)}"


def node_label(node: Any) -> str:
    """Return a node as one short line in angle brackets.

    Examples
    --------
    >>> from .text import parse
    >>> f = parse('''
    ... n = symbols("n", lower=0)
    ...
    ... @prim_func
    ... def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         y[i] = x[i] * 0.5
    ... ''').prim("halve")
    >>> f
    <PrimFunc halve: 2 parameters, 1 block, symbol n>
    >>> f.body, f.body.body
    (<For i in range(n): 1 block>, <Block y: vi = spatial(n, i)>)
    """
    try:
        text = " ".join(visible(_label(node)).split())
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return f"<{type(node).__name__} that cannot be printed>"  # malformed: seen when debugging
    if len(text) > MAX_LABEL:
        text = f"{text[: MAX_LABEL - 4]} ..."
    return f"<{type(node).__name__}{' ' if text else ''}{text}>"


def _label(node: Any) -> str:
    match node:
        case loop.PrimFunc():
            blocks = sum(isinstance(s, loop.Block) for s in walk(node.body))
            counts = f"{_count(len(node.params), 'parameter')}, {_count(blocks, 'block')}"
            return f"{node.name}: {counts}{_symbols(node)}"
        case graph.GraphFunc():
            params = _count(len(node.params), "parameter")
            counts = f"{params}, {_count(len(node.bindings), 'binding')}"
            stage = "" if node.stage == "dataflow" else f", {node.stage} stage"
            return f"{node.name}: {counts}{_graph_symbols(node)}{stage}"
        case loop.Seq():
            return f"of {_count(len(node.body), 'statement')}"
        case loop.For():
            blocks = sum(isinstance(s, loop.Block) for s in walk(node.body))
            head = _text(node).split("\n", 1)[0].removeprefix("for ").removesuffix(":")
            return f"{head}: {_count(blocks, 'block')}" if blocks else head
        case loop.Block():
            printer = LoopPrinter(_AnyNames(), Lines(), provenance=False, lowered=True)
            iters = [f"{v.var.name} = {printer.iteration_text(v)}" for v in node.iters]
            return f"{node.name}: {', '.join(iters)}" if iters else node.name
        case loop.If() | loop.Let() | loop.Bind():
            head = _text(node).split("\n", 1)[0]
            return head.removeprefix("if ").removeprefix("with ").removesuffix(":")
        case loop.Reducer():
            values = ", ".join(f"{x.name}: {x.dtype}" for x in (*node.left, *node.right))
            return f"{node.name}: {values}"
        case _ if isinstance(node, _ELEMENTS):
            return f"{_text(node)}: {node.dtype}"
        case _:
            return _text(node)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _symbols(func: loop.PrimFunc) -> str:
    shapes = [e for b in func.buffer_params for e in b.shape]
    return _listed({v for e in shapes for v in e.free} | set(func.scalar_params))


def _graph_symbols(func: graph.GraphFunc) -> str:
    infos = [p.value.info for p in func.params]
    shapes = [e for i in infos if isinstance(i, graph.TensorInfo) for e in i.shape or ()]
    return _listed({v for e in shapes for v in e.free})


def _listed(symbols: set[Var]) -> str:
    names = [v.name for v in sorted(symbols, key=lambda v: v.serial)]
    return f", symbol{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""
