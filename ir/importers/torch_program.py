"""Import of torch.export programs."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, cast

from ...calls import checked_call
from ...errors import TilewrightError
from ...progress import ProgressOption, Report, progress_of, tracked
from ..graph.builder import GraphBuilder
from ..graph.nodes import GraphFunc, Operand, TensorInfo, Value
from ..graph.operators.errors import OperandError, OperatorAttributeError
from ..module import Module
from ..symbolic import Expr
from .associative_scans import emit_associative_scan
from .cleanup import called_functions, constants_of, without_dead_code
from .control_flow import Iteration, LoopForm, emit_choice, emit_loop
from .elementwise import convert
from .opaque import opaque_call
from .shaping import expand
from .state_pairs import with_state
from .tensors import Imported
from .torch_constants import torch_dtype
from .torch_context import HANDLERS, TorchContext, handler_name, module_path
from .torch_decompositions import (
    CONTROL,
    WRAPPERS,
    calls_of,
    changes_operand,
    decomposed,
    is_known,
)
from .torch_inputs import InputSymbols, input_names, leaf_paths, path_text, read_symbols
from .torch_sizes import SIZE_FUNCTIONS
from .torch_state import (
    Changes,
    UnsupportedInputError,
    add_state,
    explain_failure,
    held_tensor,
    read_changes,
    without_unused_names,
)
from .unsupported import (
    Unsupported,
    UnsupportedFormError,
    operand_reason,
    unsupported_error,
)


@checked_call
def from_exported_program(
    program: Any,
    *,
    state: Mapping[str, str] | None = None,
    allow_unsupported: bool = False,
    progress: ProgressOption = None,
) -> Module:
    """Import a program exported by torch.export.

    Dynamic dimensions become symbols with the names of the user's ``Dim`` objects. Their ranges
    become facts with entry checks, except assumptions that PyTorch makes only because it traces
    at sizes of 2 or more. Parameters and buffers become constants, loaded on demand; tensors
    that share memory become one constant. Those that the program changes, such as a key-value
    cache or running statistics, become state parameters with their values at the import as the
    initial values. An input that the program changes is written.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        The program. It is not modified.
    state : mapping of str to str, optional
        Inputs that become states, each with the output that is its next value: names, or common
        prefixes of names. A tensor that grows, such as the dynamic cache of ``transformers``,
        becomes a state of ``capacity`` elements along the axis; the state ``length`` is the number
        of elements in use.
    allow_unsupported : bool
        Whether unsupported operators become calls of library functions of their names. Such a
        program can be viewed and scheduled; it runs if ``tw.library_function`` registers them.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction and a message, as in
        :func:`~tilewright.codegen.compile`.

    Returns
    -------
    Module
        A module with the function ``main``, whose parameters are the inputs of the program, and
        one loop-level function for each ``associative_scan`` by an element-wise operation.

    Raises
    ------
    UnsupportedOperatorsError
        If the program uses unsupported operators; the error lists all of them with their modules
        and source lines.
    UnsupportedInputError
        If the argument is not an exported program, or the program has inputs or outputs other than
        tensors, or changes a tensor other than a buffer, parameter or input.
    StatePairError
        If an input and an output of ``state`` do not match.

    Examples
    --------
    >>> import torch
    >>> class Double(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x + x
    >>> batch = torch.export.Dim("batch")
    >>> program = torch.export.export(
    ...     Double(), (torch.ones(2, 3),), dynamic_shapes={"x": {0: batch}}
    ... )
    >>> [p.value.info.shape[0].name for p in from_exported_program(program).graph().params]
    ['batch']
    """
    if not hasattr(program, "graph_module"):
        raise UnsupportedInputError(
            f"expected a torch.export.ExportedProgram, got {type(program).__name__}",
            where="argument 'program' of from_exported_program",
            hint="import a module with from_torch(model.eval(), example_inputs)",
        )
    with _consistent():
        functional = program if _is_mapped(program) else _functional(program)
        changes = read_changes(functional)
        inputs = read_symbols(functional)
    context = TorchContext(GraphBuilder("main", facts=inputs.facts), inputs.symbols)
    with progress_of("importing", progress) as report:
        translator = ProgramTranslator(functional, context, inputs, changes)
        translator.allow_unsupported = allow_unsupported
        function = translator.translate(report)
        if state:
            function = with_state(function, state, *_names(function))
        function = without_dead_code(function)
    used = constants_of(function)
    constants = {k: c for k, c in context.constants.items() if k in used}
    called = called_functions(function)
    functions = {k: f for k, f in context.functions.items() if k in called}
    return Module(
        MappingProxyType({function.name: function, **functions}),
        MappingProxyType(constants),
        MappingProxyType({"source": "torch.export"}),
    )


def _names(function: GraphFunc) -> tuple[list[str], list[str]]:
    """Return the names of the parameters and results."""
    count = len(function.results)
    outputs = function.result_names or tuple(f"output_{k}" for k in range(count))
    return [p.value.name for p in function.params], list(outputs)


@contextmanager
def _consistent(where: str = "") -> Generator[None]:
    """Report an error that only a damaged program can cause as an error of the program."""
    try:
        yield
    except (TilewrightError, MemoryError):
        raise
    except Exception as error:  # PyTorch has no common class of errors
        reason = next(iter(str(error).splitlines()), "")
        raise UnsupportedInputError(
            f"the exported program is inconsistent: {type(error).__name__}: {reason}",
            where=where,
            hint="check that program.module() runs on the example inputs",
        ) from error


def _functional(program: Any) -> Any:
    """Return a program whose operators change no operand; PyTorch adds the new values as outputs.

    Raises
    ------
    UnsupportedInputError
        If PyTorch fails for a known reason.
    """
    program = without_unused_names(program)
    try:
        return decomposed(program)
    except Exception:  # PyTorch has no common class of errors
        explain_failure(program)
        raise


def _is_mapped(program: Any) -> bool:
    """Return whether every operator of the traced program is supported and mutates no operand.

    Otherwise PyTorch has to functionalize the program first, which takes seconds.
    """
    return all(is_known(n) and not changes_operand(n) for n in calls_of(program))


class ProgramTranslator:
    """The translation of one program to a graph-level function."""

    def __init__(
        self, program: Any, context: TorchContext, inputs: InputSymbols, changes: Changes
    ) -> None:
        """Prepare the translation; `translate` does it."""
        self.program = program
        self.context = context
        self.inputs = inputs
        self.changes = changes
        self.changed: dict[str, Value] = {}
        self.input_names = input_names(program)
        self.values: dict[Any, Any] = {}
        self.missing: list[Unsupported] = []
        self.allow_unsupported = False

    def translate(self, report: Report) -> GraphFunc:
        """Translate all nodes in order and collect the unsupported operators."""
        with _consistent("inputs of the exported program"):
            self._inputs()
        module = self.program.graph_module
        self._nodes(module, tracked(module.graph.nodes, report, lambda node: str(node.name)))
        if self.missing:
            raise unsupported_error("exported program", self.missing)
        with _consistent("outputs of the exported program"):
            return self._finish()

    def _nodes(self, module: Any, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.op == "get_attr":
                with _consistent(f"node {node.name!r}"):
                    self.values[node] = self._attribute(getattr(module, node.target), node)
            if node.op == "call_function":
                self.context.node = node
                self.context.origins = frozenset({module_path(node) or node.name})
                with _consistent(f"node {node.name!r}"):
                    self.values[node] = self._call(node)

    def _attribute(self, value: Any, node: Any) -> Any:
        """Return a subgraph itself, and a tensor of a graph as a constant."""
        is_tensor = hasattr(value, "shape") and hasattr(value, "dtype")
        return self.context.tensors.constant(str(node.target), value) if is_tensor else value

    def _inputs(self) -> None:
        """Declare inputs, then states, which have the names of the changed tensors."""
        nodes = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        held: list[tuple[str, Any]] = []
        for spec in self.program.graph_signature.input_specs:
            node = nodes[spec.arg.name]
            if spec.kind.name == "USER_INPUT":
                self.values[node] = self._user_input(spec, node)
            else:
                held.append((spec.target, node))
        for name, node in held:
            tensor = held_tensor(self.program, name)
            if node.name in self.changes:
                self.changed[node.name] = add_state(self.context, name, tensor)
                self.values[node] = self.context.tensor(self.changed[node.name])
            else:
                self.values[node] = self.context.tensors.constant(name, tensor)

    def _user_input(self, spec: Any, node: Any) -> Imported | Expr | None:
        value = node.meta.get("val")
        if type(spec.arg).__name__ == "ConstantArgument":
            return None
        if value is None or not hasattr(value, "shape"):
            raise UnsupportedInputError(
                f"input {node.name!r} of the exported program is a {type(value).__name__}; "
                "only tensors are supported",
                hint="pass the value as a tensor, or make it a constant of the model",
            )
        shape = self.inputs.shape(value.shape)
        info = TensorInfo(shape, torch_dtype(value.dtype))
        name = self.input_names[node.name]
        if node.name not in self.changes:
            return self.context.tensor(self.context.builder.param(name, info))
        self.changed[node.name] = self.context.builder.param(name, info, "inout")
        return self.context.tensor(self.changed[node.name])

    def _finish(self) -> GraphFunc:
        output = next(n for n in self.program.graph.nodes if n.op == "output")
        results: list[Operand] = []
        kept: list[int] = []  # the positions of tensors among the results
        for k, (node, changed) in enumerate(zip(output.args[0], self.changes.outputs, strict=True)):
            if not hasattr(node, "op"):  # a constant
                continue
            found = self.values.get(node)
            if not isinstance(found, Imported):
                raise UnsupportedInputError(
                    f"output {node} of the exported program is not a tensor",
                    hint="return tensors and constants only",
                )
            if changed:
                self._update(self.changed[changed], found)
            else:
                results.append(self.context.plain(found))
                kept.append(k)
        before = sum(map(bool, self.changes.outputs))  # the last values precede the results
        names = result_names(self.program, [k - before for k in kept])
        return self.context.builder.finish(results, result_names=names, hints=self.inputs.hints)

    def _update(self, param: Value, new: Imported) -> None:
        """Set the last value of a state or input, in its dtype and shape."""
        old = self.context.tensor(param)
        cast = expand(self.context, convert(self.context, new, old.dtype), old.shape)
        self.context.builder.update(param, self.context.plain(cast))

    def _call(self, node: Any) -> Any:
        name = handler_name(node.target)
        if name is not None:
            return self._handled(node, HANDLERS.get(name), (self.context,))
        function = getattr(node.target, "__name__", str(node.target))
        if function in CONTROL:
            return self._handled(node, getattr(self, CONTROL[function]), ())
        if function in WRAPPERS:
            return self._handled(node, self._wrapped, ())
        return self._handled(node, SIZE_FUNCTIONS.get(function), ())

    def _wrapped(self, *args: Any) -> Any:
        """Translate a subgraph that PyTorch runs in a mode that does not affect its results."""
        at = next(k for k, a in enumerate(args) if hasattr(a, "graph"))
        module, given = args[at], iter(args[at + 1 :])
        if any(a is True for a in args[2:at]):
            raise UnsupportedFormError(
                "automatic mixed precision is not supported", hint="export without autocast"
            )
        return self._subgraph(module, given)

    def _subgraph(self, module: Any, given: Iterable[Any]) -> Any:
        """Translate a subgraph for the values of its placeholders; return its outputs."""
        at, values = (self.context.node, self.context.origins), iter(given)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(values)
        self._nodes(module, module.graph.nodes)
        output = next(n for n in module.graph.nodes if n.op == "output")
        self.context.node, self.context.origins = at
        return self._argument(output.args[0])

    def _tensors(self, module: Any, given: Iterable[Any]) -> list[Imported]:
        """Translate a subgraph whose outputs are tensors."""
        found = self._subgraph(module, given)
        made: list[Any] = [*found] if type(found) is tuple else [found]
        if any(x is _MISSING for x in made):
            raise UnsupportedFormError("its subgraph has unsupported operators")
        return [self._tensor(x) for x in made]

    def _tensor(self, value: Any) -> Imported:
        if not isinstance(value, Imported):
            kind = type(value).__name__
            raise UnsupportedFormError(
                f"expected tensors as operands and results, got {kind}",
                hint="pass numbers and sizes as tensors",
            )
        return value

    def _cond(self, condition: Any, then: Any, otherwise: Any, given: Any) -> Any:
        """Translate ``torch.cond``."""
        sides = [lambda m=m: self._tensors(m, given) for m in (then, otherwise)]
        return tuple(emit_choice(self.context, self._tensor(condition), sides[0], sides[1]))

    def _while_loop(self, condition: Any, body: Any, carried: Any, given: Any = ()) -> Any:
        """Translate ``while_loop``."""
        form = LoopForm(
            [self._tensor(x) for x in carried],
            lambda now: (self._tensors(body, (*now.carried, *given)), ()),
            lambda now: self._tensors(condition, (*now.carried, *given))[0],
        )
        return tuple(emit_loop(self.context, form))

    def _scan(self, body: Any, carried: Any, elements: Any, given: Any = ()) -> Any:
        """Translate ``scan`` along axis 0, to which PyTorch moves the axis before."""
        slices = [self._tensor(x) for x in elements]
        if not slices:
            raise UnsupportedFormError("a scan without stacked inputs has no number of iterations")

        def step(now: Iteration) -> tuple[list[Imported], list[Imported]]:
            made = self._tensors(body, (*now.carried, *now.elements, *given))
            return made[: len(carried)], made[len(carried) :]

        form = LoopForm(
            [self._tensor(x) for x in carried], step, count=slices[0].shape[0], elements=slices
        )
        return tuple(emit_loop(self.context, form))

    def _associative_scan(self, combine: Any, terms: Any, given: Any = ()) -> Any:
        """Translate ``associative_scan`` along axis 0, to which PyTorch moves the axis before."""

        def combined(left: Sequence[Imported], right: Sequence[Imported]) -> list[Imported]:
            return self._tensors(combine, (*left, *right, *given))

        tensors = [self._tensor(x) for x in terms]
        return tuple(emit_associative_scan(self.context, combined, tensors))

    def _handled(self, node: Any, handler: Any, first: tuple[Any, ...]) -> Any:
        name = str(node.target)
        args, missing = self._arguments(node)
        if missing and (handler is not None or self.allow_unsupported):
            return _MISSING
        if handler is None:
            return self._unsupported(node, args, _unsupported(node))
        try:
            return handler(*first, *args, **self._keywords(node))
        except UnsupportedFormError as error:
            reason = error.reason
        except (OperandError, OperatorAttributeError) as error:
            reason = operand_reason(error)
        except TypeError as error:
            reason = _without_handler(str(error))
        return self._unsupported(node, args, Unsupported(name, reason, location_of(node)))

    def _unsupported(self, node: Any, args: Sequence[Any], use: Unsupported) -> Any:
        """Return the results of an opaque call if they are allowed and tensors."""
        value = node.meta.get("val")
        several = isinstance(value, list | tuple)
        values: tuple[Any, ...] = tuple(value) if several else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not self.allow_unsupported or not all(hasattr(v, "shape") for v in values):
            self.missing.append(use)
            return _MISSING
        size = self.context.symbols.size
        outputs = [TensorInfo(tuple(map(size, v.shape)), torch_dtype(v.dtype)) for v in values]
        schema = getattr(node.target, "_schema", None)
        names = [a.name for a in schema.arguments] if schema is not None else []
        plain = {k: v for k, v in zip(names, args, strict=False) if not isinstance(v, Imported)}
        tensors = list(_tensors(args))
        name = _plain_name(node.target)
        found = opaque_call(self.context, name, tensors, outputs, {**plain, **self._keywords(node)})
        return found if several else found[0]

    def _arguments(self, node: Any) -> tuple[list[Any], bool]:
        missing = any(self.values.get(n) is _MISSING for n in node.all_input_nodes)
        return [self._argument(a) for a in node.args], missing

    def _keywords(self, node: Any) -> dict[str, Any]:
        dropped = ("device", "layout", "pin_memory", "memory_format")
        return {k: self._argument(v) for k, v in node.kwargs.items() if k not in dropped}

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            items: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            return tuple(self._argument(v) for v in items)
        if type(value).__name__ == "Node":
            return self.values[value]
        return value


class _Missing:
    """A placeholder for the result of an unsupported operator."""


_MISSING = _Missing()


def _without_handler(text: str) -> str:
    """Return the text of a TypeError of a call without the name of the called handler.

    Examples
    --------
    >>> _without_handler("_unary.<locals>.f() got an unexpected keyword argument 'decimals'")
    "argument 'decimals' is not supported"
    >>> _without_handler("clamp() takes from 2 to 4 positional arguments but 5 were given")
    'takes from 2 to 4 positional arguments but 5 were given'
    """
    unknown = re.search(r"unexpected keyword argument '(\w+)'", text)
    if unknown:
        return f"argument {unknown[1]!r} is not supported"
    return re.sub(r"^[\w.<>]+\(\) ", "", text)


def _tensors(args: Iterable[Any]) -> Iterator[Imported]:
    """Yield the tensors among arguments, including those in lists."""
    for argument in args:
        if isinstance(argument, Imported):
            yield argument
        elif isinstance(argument, tuple):
            yield from _tensors(cast("tuple[Any, ...]", argument))


def _unsupported(node: Any) -> Unsupported:
    """Return the use of an operator without a handler, under its name in the source program."""
    name = _plain_name(node.target)
    source = _plain_name(node.meta.get("original_aten") or node.target)
    reason = "" if source == name else f"its definition uses {name}"
    return Unsupported(source, reason, location_of(node))


def _plain_name(target: Any) -> str:
    text = str(target)
    return getattr(target, "__name__", text) if text.startswith("<") else text


def location_of(node: Any) -> str:
    """Return the location of a node in the source model: module, file, and line."""
    path = module_path(node)
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    where = f"{lines[-1][0]}:{lines[-1][1]}" if lines else f"node {node.name}"
    return f"{path} ({where})" if path else where


def result_names(program: Any, kept: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the outputs at positions: fields of the model's result, or positions."""
    try:
        paths = leaf_paths(program.call_spec.out_spec)
    except (ValueError, TypeError, NotImplementedError):
        return ()
    names = [_path_name(paths[k]) for k in kept if k < len(paths)]
    return tuple(names) if len(names) == len(kept) and all(names) else ()


def _path_name(path: Any) -> str:
    text = re.sub(r"\W+", "_", path_text(path)).strip("_")
    return text if not text or text[0].isalpha() else f"output_{text}"
