"""Decomposition of PyTorch operators without a handler into others, by the rules of PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from .torch_context import HANDLERS, handler_name
from .torch_cross_entropy import cross_entropy_rules
from .torch_norms import instance_norm_rules
from .torch_recurrent import recurrent_rules
from .torch_sizes import SIZE_FUNCTIONS

CONTROL: Final = {
    "cond": "_cond",
    "while_loop": "_while_loop",
    "scan": "_scan",
    "associative_scan": "_associative_scan",
}
"""The functions of branches, loops, and scans, with the methods that translate them."""

WRAPPERS: Final = ("wrap_with_set_grad_enabled", "wrap_with_autocast")
"""Operators that run a subgraph in another mode of PyTorch."""

_NORMS: Final = ("aten.batch_norm.default", "aten.instance_norm.default")
"""Operators whose schemas do not state that they change running statistics."""

_ROUNDS: Final = 6
"""The depth of decompositions into operators that are decomposed again."""


def calls_of(program: Any) -> Iterator[Any]:
    """Yield the nodes of a program and its subgraphs that call functions."""
    for module in program.graph_module.modules():
        if hasattr(module, "graph"):
            yield from (n for n in module.graph.nodes if n.op == "call_function")


def is_known(node: Any) -> bool:
    """Return whether a handler imports the function that a node calls."""
    name = handler_name(node.target)
    if name is not None:
        return name in HANDLERS
    return getattr(node.target, "__name__", str(node.target)) in {
        *SIZE_FUNCTIONS, *WRAPPERS, *CONTROL,
    }  # fmt: skip


def changes_operand(node: Any) -> bool:
    """Return whether the function that a node calls writes an operand."""
    if str(node.target) in _NORMS:
        return bool(node.args[5]) and node.args[3] is not None
    schema = getattr(node.target, "_schema", None)
    changes = schema is not None and schema.is_mutable
    return changes and str(node.target) != "aten.detach_.default"


def decomposed(program: Any) -> Any:
    """Return a program whose operators change no operand and have handlers, as far as possible.

    An operator without a handler is replaced by its definition in other operators, if PyTorch has
    one. Operators without one remain, and are reported by the import.
    """
    missing = _missing(program)
    found = _traced(program, _rules(missing))  # also replaces operators that change operands
    tried = set(missing)
    if found is None:
        tried.clear()
        found = program.run_decompositions({})
    for _ in range(_ROUNDS):
        missing = _missing(found) - tried
        rules = _rules(missing)
        if not rules:
            return found
        tried |= missing
        found = _applied(found, rules)
    return found


def _missing(program: Any) -> set[Any]:
    """Return the functions that a program calls and no handler imports."""
    own = instance_norm_rules()
    return {
        n.target
        for n in calls_of(program)
        if not is_known(n) or (n.target in own and changes_operand(n))
    }


def _rules(targets: set[Any]) -> dict[Any, Callable[..., Any]]:
    """Return the definitions in other operators that PyTorch has, by operator."""
    return {target: rule for target in targets if (rule := _rule(target)) is not None}


def _applied(program: Any, rules: dict[Any, Callable[..., Any]]) -> Any:
    """Return a program after the decompositions that PyTorch can trace and that only compute."""
    found = _traced(program, rules)
    if found is None:  # the import reports the operators whose definitions fail
        alone = {t: rule for t, rule in rules.items() if _traced(program, {t: rule}) is not None}
        found = _traced(program, alone) if len(alone) < len(rules) else None
    return program if found is None else found


def _traced(program: Any, rules: dict[Any, Callable[..., Any]]) -> Any:
    """Return a program after decompositions, or None if it fails or gains an effect."""
    with contextlib.suppress(Exception):  # PyTorch has no common class of errors
        found = program.run_decompositions(rules)
        if all(spec.kind.name != "TOKEN" for spec in found.graph_signature.output_specs):
            return found
    return None


def _rule(target: Any) -> Callable[..., Any] | None:
    """Return the definition of an operator in other operators; None if PyTorch has none."""
    import torch.export  # optional: a user who imports a program has it
    from torch._decomp import decomposition_table  # pyright: ignore[reportUnknownVariableType]

    own = {**recurrent_rules(), **instance_norm_rules(), **cross_entropy_rules()}
    if target in own:
        return own[target]
    default: Any = torch.export.default_decompositions()
    if target in default:
        return default[target]
    known: dict[Any, Callable[..., Any]] = decomposition_table  # pyright: ignore[reportUnknownVariableType]
    return known.get(target)
