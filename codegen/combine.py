"""Combination of programs to one module with common constants: ``tilewright.combine``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from ..calls import checked_call
from ..errors import TilewrightError
from ..ir.graph.nodes import (
    Binding,
    CallGraph,
    CallTIR,
    ConstantRef,
    GraphFunc,
    LaunchKernel,
    Operand,
    Rhs,
)
from ..ir.graph.visit import map_bindings, map_inner, map_updates
from ..ir.identity import fresh_name
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Constant, Function, MissingConstantError, Module
from ..ir.structural_hash import structural_hash
from ..schedules import Schedule, State
from .lower.host.entry_wrappers import launched
from .program import module_of

_PREPARE_FOR: Final = "prepare_for"
_MAIN: Final = "main"
_Names: TypeAlias = Mapping[str, str]


class CombinationError(TilewrightError):
    """Programs whose functions cannot be in one module."""

    title = "Invalid combination"


@checked_call
def combine(*programs: Module | Schedule | State, **named: Module | Schedule | State) -> Module:
    """Return one module with the functions of several programs.

    Constants with equal types, shapes, and elements become one, and so do kernels that compute the
    same. Functions with state parameters of one name share the state of an export.

    Parameters
    ----------
    *programs : Module, Schedule or State
        Programs whose graph-level functions keep their names.
    **named : Module, Schedule or State
        Programs whose function ``main``, or only graph-level function, gets the name of the
        argument; the name of each other function is ``ARGUMENT_FUNCTION``. If a program has no
        graph-level function, the same holds for its loop-level functions.

    Returns
    -------
    Module
        The module, to compile or export.

    Raises
    ------
    CombinationError
        If two functions have the same name, or there is no program.
    NotAProgramError
        If an argument is not a program.

    Notes
    -----
    Elements of constants with equal types and shapes are compared by their SHA-256, which loads
    them once. Steps of a schedule are kept, its trace is not.

    Examples
    --------
    >>> import tilewright as tw
    >>> text = '''
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     y = {}(x)
    ...     return y
    ... '''
    >>> tw.combine(tw.parse(text.format("relu")), tanh=tw.parse(text.format("tanh")))
    <Module: graph main, tanh>
    """
    made = _Combination()
    for program in programs:
        made.add("", module_of(program))
    for name, program in named.items():
        made.add(name, module_of(program))
    if not made.functions:
        raise CombinationError(
            "there is no program with functions", hint="pass programs: combine(prefill=a, decode=b)"
        )
    return Module(
        MappingProxyType(made.functions),
        MappingProxyType(made.constants),
        MappingProxyType(made.attributes),
    )


@dataclass
class _Combination:
    """The functions and constants so far, with the constants and kernels by content."""

    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    kernels: dict[str, str] = field(default_factory=dict[str, str])
    digests: dict[Constant, str] = field(default_factory=dict[Constant, str])

    def add(self, name: str, module: Module) -> None:
        """Add a program under a name, which is empty if its functions keep their names."""
        called = {kernel for graph in module.graphs for kernel in launched(graph)}
        names = self._entry_names(name, module, called)
        for kernel in module.prims:
            if kernel.name in called:
                names[kernel.name] = self._kernel(name, kernel)
        for old, new in names.items():
            function = module.functions[old]
            if new in self.functions and old not in called:
                raise CombinationError(
                    f"two programs have a function {new!r}",
                    hint="name the programs: combine(first=..., second=...)",
                )
            if isinstance(function, PrimFunc):
                self.functions.setdefault(new, replace(function, name=new))
        keys = self._constants(name, module)
        for graph in module.graphs:
            self.functions[names[graph.name]] = _renamed(graph, names, keys)
        own = {f"{name}.{key}" if name else key: v for key, v in module.attributes.items()}
        self.attributes.update(own)

    def _entry_names(self, name: str, module: Module, called: set[str]) -> dict[str, str]:
        """Return the new names of the functions that are not called as kernels."""
        own = [f.name for f in module if f.name not in called]
        if not name:
            return {old: old for old in own}
        entries = [g.name for g in module.graphs if _PREPARE_FOR not in dict(g.attributes)]
        entries = entries or own
        main = _MAIN if _MAIN in entries else entries[0] if len(entries) == 1 else ""
        return {old: name if old == main else f"{name}_{old}" for old in own}

    def _kernel(self, name: str, kernel: PrimFunc) -> str:
        """Return the name of a kernel, or of an equal one that was added before."""
        key = structural_hash(kernel)
        if key not in self.kernels:
            wanted = f"{name}_{kernel.name}" if name else kernel.name
            self.kernels[key] = fresh_name(wanted, self.functions)
            self.functions[self.kernels[key]] = replace(kernel, name=self.kernels[key])
        return self.kernels[key]

    def _constants(self, name: str, module: Module) -> dict[str, str]:
        """Add the constants of a program; return their new keys."""
        computed = {
            key
            for graph in module.graphs
            if _PREPARE_FOR in dict(graph.attributes)
            for key in graph.result_names
        }
        keys: dict[str, str] = {}
        for key, constant in module.constants.items():
            same = None if key in computed else self._equal(constant)
            if same is None:
                same = fresh_name(f"{name}.{key}", self.constants) if key in self.constants else key
                self.constants[same] = constant
            keys[key] = same
        return keys

    def _equal(self, constant: Constant) -> str | None:
        """Return the key of an equal constant."""
        for key, other in self.constants.items():
            if (other.dtype, other.shape) != (constant.dtype, constant.shape):
                continue
            if other is constant or self._content(other) == self._content(constant) != "":
                return key
        return None

    def _content(self, constant: Constant) -> str:
        """Return the SHA-256 of the elements, or an empty text if they were not supplied."""
        if constant not in self.digests:
            try:
                found = hashlib.sha256(constant.load().tobytes()).hexdigest()
            except MissingConstantError:
                found = ""
            self.digests[constant] = found
        return self.digests[constant]


def _renamed(graph: GraphFunc, names: _Names, keys: _Names) -> GraphFunc:
    """Return a function that refers to kernels, functions, and constants by their new names."""

    def operand(old: Operand) -> Operand:
        return replace(old, key=keys[old.key]) if isinstance(old, ConstantRef) else old

    attributes = dict(graph.attributes)
    prepares = _PREPARE_FOR in attributes
    if prepares:
        attributes[_PREPARE_FOR] = names[str(attributes[_PREPARE_FOR])]
    return replace(
        graph,
        name=names[graph.name],
        params=tuple(
            replace(p, initial=replace(p.initial, key=keys[p.initial.key])) if p.initial else p
            for p in graph.params
        ),
        bindings=_calling(map_bindings(graph.bindings, operand), names),
        results=tuple(map(operand, graph.results)),
        updates=map_updates(graph.updates, operand),
        attributes=tuple(attributes.items()),
        result_names=tuple(keys[k] for k in graph.result_names) if prepares else graph.result_names,
    )


def _calling(bindings: Iterable[Binding], names: _Names) -> tuple[Binding, ...]:
    """Return bindings that call functions by their new names, also in branches and loops."""

    def nested(inner: tuple[Binding, ...]) -> tuple[Binding, ...]:
        return _calling(inner, names)

    return tuple(replace(b, right=_call(map_inner(b.right, nested), names)) for b in bindings)


def _call(right: Rhs, names: _Names) -> Rhs:
    match right:
        case CallTIR() | LaunchKernel():
            versions = tuple(replace(v, function=names[v.function]) for v in right.versions)
            return replace(right, function=names[right.function], versions=versions)
        case CallGraph():
            return replace(right, function=names[right.function])
        case _:
            return right
