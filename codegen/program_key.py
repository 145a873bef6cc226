"""The parts of a program that its artifact depends on besides its structure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir.graph.libraries import LIBRARY_FUNCTIONS
from ..ir.graph.nodes import Binding, Call, CallDPSLibrary, GraphFunc, TensorInfo, operand_info
from ..ir.graph.operators.custom import definition_of
from ..ir.graph.visit import all_bindings
from ..ir.module import Module


def program_words(module: Module) -> str:
    """Return the names, annotations, origins and definitions that an artifact depends on.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> print(
    ...     program_words(
    ...         parse('''
    ... @graph_func
    ... def main(x: Tensor[(2,), f32]):
    ...     return x
    ... ''')
    ...     )
    ... )
    main
    x
    Tensor[(2,), f32]
    """
    words: list[str] = []
    for function in module:
        words.append(function.name)
        if isinstance(function, GraphFunc):
            words += [p.value.name for p in function.params]
            words += [str(p.value.info) for p in function.params]
            words += [f"{b.value.name} {sorted(b.origins)}" for b in function.bindings]
            words += [*function.result_names, *map(str, function.facts)]
            words += _definitions(function.bindings)
        else:
            words += [b.name for b in function.buffer_params]
            words += [v.name for v in function.scalar_params]
    return "\n".join(words)


def _definitions(bindings: Iterable[Binding]) -> Iterator[str]:
    """Yield the definitions of library functions and custom operators, which may be replaced."""
    for binding in all_bindings(bindings):
        right = binding.right
        if isinstance(right, Call) and (text := definition_of(right.op)):
            yield text
        if isinstance(right, CallDPSLibrary) and right.symbol in LIBRARY_FUNCTIONS:
            infos = [i for a in right.args if isinstance(i := operand_info(a), TensorInfo)]
            yield LIBRARY_FUNCTIONS[right.symbol].described(infos)
