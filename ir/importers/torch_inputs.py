"""Symbols and facts of the inputs of exported programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..identity import fresh_name
from ..symbolic import (
    Bool,
    Expr,
    Facts,
    Var,
    as_expr,
    const_value,
    eq,
    free_vars,
    linear_form,
    simplify,
    substitute,
)
from .torch_symbols import TorchSymbols, add_fact, is_artifact, parse_guards

_VARIADIC = re.compile(r"^L\['(\w+)_(\d+)'\]")  # PyTorch names element k of ``*args`` args_k


@dataclass(frozen=True, slots=True)
class InputSymbols:
    """The symbols of a program's inputs, and the facts and hints about them."""

    symbols: TorchSymbols
    facts: Facts
    hints: tuple[tuple[str, tuple[int, ...]], ...]

    def shape(self, sizes: Sequence[Any]) -> tuple[Expr, ...]:
        """Return the shape of a tensor as terms over the symbols."""
        return tuple(simplify(self.symbols.size(s), self.facts) for s in sizes)


def read_symbols(program: Any) -> InputSymbols:
    """Declare the symbols of all inputs, unify those that guards equate, and collect facts."""
    nodes = list(user_inputs(program))
    symbols = TorchSymbols(_dim_names(nodes))
    _declare(symbols, nodes)
    sizes = _sizes_by_source(program, symbols, nodes)
    guards = parse_guards(getattr(program, "_guards_code", ()), sizes)
    symbols.solve(guards)
    facts = _solve_derived(symbols, nodes, Facts())
    held = [substitute(guard, symbols.solved) for guard in guards]
    facts = _ranges(program, symbols, facts, held)
    for guard, claim in zip(guards, held, strict=True):
        if not is_artifact(guard):  # of the symbols that PyTorch traced, some of which are solved
            facts = add_fact(facts, claim, "guard of torch.export")
    return InputSymbols(symbols, facts, _hints(symbols, nodes))


def user_inputs(program: Any) -> Iterator[Any]:
    """Yield the placeholder nodes of the user inputs, without parameters and buffers."""
    names = {s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"}
    return (n for n in program.graph.nodes if n.op == "placeholder" and n.name in names)


def input_names(program: Any) -> dict[str, str]:
    """Return the names of the user inputs by the names of their placeholders.

    An argument keeps its own name. PyTorch names element k of the list ``a`` ``a_k``, and an
    argument ``a_k`` after it ``a_k_1``; here the element is renamed.
    """
    names = [str(node.name) for node in user_inputs(program)]
    paths = leaf_paths(program.call_spec.in_spec)
    given: list[str] = program.module_call_graph[0].signature.forward_arg_names or []
    own: dict[str, str] = {}
    for name, (outer, inner, *rest) in zip(names, paths, strict=False):
        argument = str(inner.key if outer.idx == 1 else _positional(given, inner.idx))
        if not rest and re.fullmatch(rf"{re.escape(argument)}_\d+", name):
            own[name] = argument
    taken = {*own.values(), *(name for name in names if name not in own)}
    for name in names:
        if name not in own and name in own.values():
            taken.add(renamed := fresh_name(name, taken))
            own[name] = renamed
    return {name: own.get(name, name) for name in names}


def sizes_of(node: Any) -> tuple[Any, ...]:
    """Return the sizes of a tensor input, integers and SymInts; empty for other inputs."""
    return tuple(getattr(node.meta.get("val"), "shape", ()))


def _shape_env(nodes: Sequence[Any]) -> Any:
    for node in nodes:
        for size in sizes_of(node):
            if not isinstance(size, int):
                return size.node.shape_env
    return None


def _dim_names(nodes: Sequence[Any]) -> dict[str, str]:
    """Return the user's names of the symbols, by symbol."""
    env = _shape_env(nodes)
    debug: dict[str, str] = dict(getattr(env, "source_name_to_debug_name", None) or {})
    found: dict[str, str] = {}
    declared: dict[Any, Any] = dict(getattr(env, "var_to_sources", None) or {})
    for symbol, sources in declared.items():
        for source in sources:
            held: Any = source.name
            name = str(held() if callable(held) else held)
            given = debug.get(name, name)
            if given.isidentifier():
                found.setdefault(str(symbol), given)
    return found


def _declare(symbols: TorchSymbols, nodes: Sequence[Any]) -> None:
    """Declare symbols in the order of the inputs; unnamed ones get the name ``input_dimk``."""
    for node in nodes:
        for axis, size in enumerate(sizes_of(node)):
            if not isinstance(size, int):
                for symbol in sorted(map(str, size.node.expr.free_symbols)):
                    symbols.declare(symbol, symbols.names.get(symbol, f"{node.name}_dim{axis}"))


def _sizes_by_source(program: Any, symbols: TorchSymbols, nodes: Sequence[Any]) -> dict[str, Expr]:
    """Return the sizes of all inputs by their source expressions in guards."""
    paired = list(zip(_sources(program), nodes, strict=False))
    of_variadic = [(_VARIADIC.sub(r"L['\1'][\2]", source), node) for source, node in paired]
    flat = [(f"L['flat_args'][{k}]", node) for k, node in enumerate(nodes)]  # strict mode
    found: dict[str, Expr] = {}
    # A parameter takes precedence over ``*args`` and over the numbers of strict mode.
    for source, node in paired + of_variadic + flat:
        for k, size in enumerate(sizes_of(node)):
            found.setdefault(f"{source}.size()[{k}]", symbols.size(size))
    return found


def _sources(program: Any) -> Iterator[str]:
    """Yield the source expression of each input in guards, such as ``L['cache'][0][1]``."""
    names: list[str] = program.module_call_graph[0].signature.forward_arg_names or []
    for path in leaf_paths(program.call_spec.in_spec):
        outer, inner, *rest = path
        named = outer.idx == 1
        name = inner.key if named else _positional(names, inner.idx)
        yield f"L['{name}']{path_text(tuple(rest))}"


def leaf_paths(spec: Any) -> list[tuple[Any, ...]]:
    """Return the path of each tensor in nested inputs or outputs.

    Classes such as the key-value cache of ``transformers`` compute with tensors of four dimensions
    when they are created, so the leaves are such tensors.
    """
    import torch
    from torch.utils import _pytree

    leaves = [torch.empty(1, 1, 1, 1) for _ in range(spec.num_leaves)]
    tree = _pytree.tree_unflatten(leaves, spec)
    return [path for path, _ in _pytree.tree_flatten_with_path(tree)[0]]


def path_text(path: tuple[Any, ...]) -> str:
    """Return a path as the text of a Python expression."""
    from torch.utils import _pytree

    return _pytree.keystr(path)


def _positional(names: Sequence[str], position: int) -> str:
    return names[position] if position < len(names) else str(position)


def _solve_derived(symbols: TorchSymbols, nodes: Sequence[Any], facts: Facts) -> Facts:
    """Solve each symbol that is not itself a dimension for a dimension that depends on it."""
    dims = [
        (f"{node.name}_dim{k}", symbols.size(size))
        for node in nodes
        for k, size in enumerate(sizes_of(node))
    ]
    whole = {d for _, d in dims if isinstance(d, Var)}
    for name, dim in dims:
        for symbol in sorted(free_vars(dim) - whole, key=lambda v: v.serial):
            term = substitute(dim, symbols.solved)
            form = linear_form(term, (symbol,))
            factor = None if form is None else const_value(form.coefficients[symbol])
            if form is None or factor is None or factor < 1 or symbol in symbols.solved:
                continue
            size = symbols.declare(name, name)
            symbols.solved[symbol] = (size - form.rest) // factor
            whole.add(symbol)
            even = eq((size - form.rest) % factor, 0)
            facts = facts.assume(even, origin=f"dimension {name} is {term}")
            facts = facts.assume(size >= form.rest, origin=f"dimension {name} is {term}")
    return facts


def _ranges(program: Any, symbols: TorchSymbols, facts: Facts, guards: Sequence[Bool]) -> Facts:
    for symbol, bounds in program.range_constraints.items():
        if str(symbol) not in symbols.vars:
            continue
        own = symbols.vars[str(symbol)]
        size = substitute(own, symbols.solved)
        text = f"range of {symbols.names.get(str(symbol), str(symbol))}"
        for bound, below in ((bounds.lower, True), (bounds.upper, False)):
            if getattr(bound, "is_Integer", isinstance(bound, int)):
                limit = as_expr(int(bound))
                if below and is_artifact(limit <= own):  # also of the factor of a dimension
                    continue
                facts = add_fact(facts, limit <= size if below else size <= limit, text, guards)
    return facts


def _hints(symbols: TorchSymbols, nodes: Sequence[Any]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the sizes of the traced example inputs as hints."""
    env = _shape_env(nodes)
    values: dict[Any, Any] = dict(getattr(env, "backed_var_to_val", None) or {})
    sizes = {str(k): int(v) for k, v in values.items()}
    used = {s: v for s, v in symbols.vars.items() if v not in symbols.solved}
    return tuple((v.name, (sizes[s],)) for s, v in used.items() if s in sizes)
