"""Import of ONNX models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import Any

from ...calls import checked_call
from ...errors import TilewrightError
from ...progress import ProgressOption, Report, progress_of, tracked
from ..graph.builder import GraphBuilder
from ..graph.nodes import GraphFunc, TensorInfo
from ..graph.operators.errors import OperandError, OperatorAttributeError
from ..identity import fresh_name
from ..module import Module
from ..naming import to_valid_name
from ..symbolic import Expr, SymbolicError, Var, as_expr, parse_expr, var
from .cleanup import constants_of, without_dead_code
from .onnx_context import HANDLERS, Datum, OnnxContext, handler_key, scope_of, tensor_of
from .onnx_file import (
    CHECK_MODEL,
    MalformedModelError,
    OnnxFile,
    UnsupportedTypeError,
    initializer,
    is_onnx_dtype,
    onnx_dtype,
    read_model,
)
from .onnx_functions import with_definitions, with_functions_expanded
from .onnx_schema import check_dtypes, checked_attributes
from .opaque import opaque_call
from .state_pairs import with_state
from .tensors import Imported, StackedSequence, TensorSequence
from .unsupported import (
    Unsupported,
    UnsupportedFormError,
    operand_reason,
    unsupported_error,
)


@checked_call
def from_onnx(
    source: str | PathLike[str] | Any,
    *,
    state: Mapping[str, str] | None = None,
    allow_unsupported: bool = False,
    progress: ProgressOption = None,
) -> Module:
    """Import an ONNX model of opset 7 or newer.

    Named dimensions (``dim_param``) become symbols; equal names become one symbol. An unnamed
    dynamic dimension ``k`` of input ``x`` becomes the symbol ``x_dimk``. Computations on shapes
    alone are folded. Initializers become constants, which are read from their files on demand.

    Parameters
    ----------
    source : str, path or onnx.ModelProto
        The path of a model file, or a model in memory without external data.
    state : mapping of str to str, optional
        Inputs that become states, each with the output that is its next value: names, or common
        prefixes of names, as in ``state={"past_key_values": "present"}``. A tensor that grows, such
        as a key-value cache, becomes a state of ``capacity`` elements along the axis; the state
        ``length`` is the number of elements in use.
    allow_unsupported : bool
        Whether unsupported operators become calls of library functions of their names, if the model
        or the shape inference of ONNX states the types of their results. Such a program can be
        viewed and scheduled; it runs if ``tw.library_function`` registers them.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction and a message, as in
        :func:`~tilewright.codegen.compile`.

    Returns
    -------
    Module
        A module with one function, ``main``, whose parameters are the inputs of the graph.

    Raises
    ------
    MalformedModelError
        If the file is not a complete, consistent ONNX model.
    ExpansionLimitError
        If the functions that the model defines expand to too many nodes.
    ExternalDataError
        If external data is missing, truncated, or outside of the model's folder.
    UnsupportedOpsetError
        If the opset version of the model is not supported.
    UnsupportedOperatorsError
        If the model uses unsupported operators; the error lists all of them with their nodes.
    StatePairError
        If an input and an output of ``state`` do not match.

    Examples
    --------
    >>> from onnx import parser
    >>> text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3] x) => (float[n, 3] y) {'
    >>> module = from_onnx(parser.parse_model(text + " y = Add(x, x) }"))
    >>> module.graph().params[0].value.info.shape[0].name
    'n'
    """
    file = with_definitions(with_functions_expanded(read_model(source)), HANDLERS)
    context = OnnxContext(GraphBuilder("main"), file.opset)
    with progress_of("importing", progress) as report:
        translator = _Translator(file, context)
        translator.allow_unsupported = allow_unsupported
        function = translator.translate(report)
        if state:
            function = with_state(function, state, translator.inputs, translator.outputs)
        function = without_dead_code(function)
    used = constants_of(function)
    constants = {k: c for k, c in context.constants.items() if k in used}
    return Module(
        MappingProxyType({function.name: function}),
        MappingProxyType(constants),
        MappingProxyType({"source": "onnx", "producer": file.model.producer_name}),
    )


def identifier(name: str, default: str) -> str:
    """Return a valid identifier for a name of the source model.

    Examples
    --------
    >>> identifier("past_key_values.0.key", "x"), identifier("0", "x")
    ('past_key_values_0_key', 'x_0')
    """
    clean = re.sub(r"\W+", "_", name).strip("_")
    return to_valid_name(clean if clean[:1].isalpha() else f"{default}_{clean}".rstrip("_"))


class _Translator:
    def __init__(self, file: OnnxFile, context: OnnxContext) -> None:
        self.file = file
        self.graph = file.model.graph
        self.context = context
        self.symbols: dict[str, Var] = {}
        self.values: dict[str, Datum | None] = {}
        self.missing: list[Unsupported] = []
        self.inputs: list[str] = []
        self.allow_unsupported = False
        self.types: dict[str, Any] | None = None
        context.translate = self._subgraph

    @property
    def outputs(self) -> list[str]:
        """The names of the results in the model."""
        return [o.name for o in self.graph.output]

    def translate(self, report: Report) -> GraphFunc:
        """Translate constants, inputs, and all nodes in order."""
        self._initializers()
        self._inputs()
        for node in tracked(self.graph.node, report, _label):
            self._node(node)
        if self.missing:
            raise unsupported_error("ONNX model", self.missing)
        found = [tensor_of(self._value(n, "an output"), f"output {n!r}") for n in self.outputs]
        results = [self.context.plain(x) for x in found]
        names = tuple(identifier(o.name, "output") for o in self.graph.output)
        return self.context.builder.finish(results, result_names=names)

    def _subgraph(self, graph: Any, given: Sequence[Datum]) -> list[Datum]:
        """Translate a subgraph for the values of its inputs; it may use all values around it."""
        context, before, missing = self.context, dict(self.values), len(self.missing)
        at = (context.node, context.origins, context.inputs, context.attributes)
        if len(given) != len(graph.input):
            counts = f"expected {len(graph.input)} inputs of the subgraph, got {len(given)}"
            raise UnsupportedFormError(counts)
        self._initializers(graph)
        for value, own in zip(graph.input, given, strict=True):
            self._check_new(value.name, "input")
            self.values[value.name] = own
        for node in graph.node:
            self._node(node)
        lacking = len(self.missing) > missing or (
            bool(self.missing) and any(self.values.get(o.name, given) is None for o in graph.output)
        )
        results = [] if lacking else [self._value(o.name, "an output") for o in graph.output]
        self.values = before
        context.node, context.origins, context.inputs, context.attributes = at
        if lacking:
            raise UnsupportedFormError("its subgraph has unsupported operators")
        return results

    def _initializers(self, graph: Any = None) -> None:
        graph = self.graph if graph is None else graph
        if self.graph.sparse_initializer:
            raise MalformedModelError(
                "sparse initializers are not supported",
                where=f"initializer {self.graph.sparse_initializer[0].values.name!r}",
                hint="store the weights as dense initializers",
            )
        for tensor in graph.initializer:
            self._check_new(tensor.name, "initializer")
            found = initializer(tensor, tensor.name, self.file.folder)
            held = (found.shape, found.dtype, found.load)
            key = tensor.name
            if graph is not self.graph:  # names of subgraphs need not be unique
                key = fresh_name(f"{graph.name}.{tensor.name}", self.context.constants)
            self.values[tensor.name] = self.context.constant(key, *held)

    def _inputs(self) -> None:
        given = [i for i in self.graph.input if i.name not in self.values]
        for value in given:
            self._declare(value)
        for value in given:
            self._check_new(value.name, "input")
            tensor = self._tensor_type(value)
            if tensor is None or not tensor.HasField("shape"):
                raise UnsupportedTypeError(
                    "the input of the ONNX model is not a tensor of known rank",
                    where=f"input {value.name!r}",
                    hint="declare the input as a tensor with a shape; dimensions may be symbols",
                )
            name = identifier(value.name, "input")
            shape = tuple(self._dim(d, f"{name}_dim{k}") for k, d in enumerate(tensor.shape.dim))
            dtype = onnx_dtype(tensor.elem_type, f"input {value.name!r}")
            param = self.context.builder.param(name, TensorInfo(shape, dtype))
            self.values[value.name] = self.context.tensor(param)
            self.inputs.append(value.name)

    def _check_new(self, name: str, kind: str) -> None:
        """Reject a second definition of a value."""
        if name in self.values:
            raise MalformedModelError(
                f"value {name!r} is defined twice",
                where=f"{kind} {name!r}",
                hint=CHECK_MODEL,
            )

    def _tensor_type(self, value: Any) -> Any:
        """Return the type of an input that is a tensor, or an optional tensor that is present.

        The result is None for other types, and if the model tests whether the tensor is present.
        """
        declared = value.type
        if declared.HasField("optional_type"):
            declared = declared.optional_type.elem_type
            tested = (n for n in self.graph.node if n.op_type == "OptionalHasElement")
            if any(value.name in n.input for n in tested):
                return None
        return declared.tensor_type if declared.HasField("tensor_type") else None

    def _declare(self, value: Any) -> None:
        """Declare dimensions that are one name before dimensions that are expressions of names."""
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.isidentifier():
                self._symbol(dim.dim_param)

    def _symbol(self, name: str) -> Var:
        if name not in self.symbols:
            taken = {v.name for v in self.symbols.values()}
            self.symbols[name] = var(fresh_name(identifier(name, "dim"), taken), lower=0)
        return self.symbols[name]

    def _dim(self, dim: Any, default: str) -> Expr:
        if dim.HasField("dim_value"):
            if dim.dim_value < 0:
                message = f"dimension {dim.dim_value} is negative"
                raise MalformedModelError(message, where=default, hint=CHECK_MODEL)
            return as_expr(dim.dim_value)
        if not dim.dim_param:
            return self._symbol(default)
        try:
            found = parse_expr(dim.dim_param, self.symbols)
        except SymbolicError:
            return self._symbol(dim.dim_param)
        return found if isinstance(found, Expr) else self._symbol(dim.dim_param)

    def _value(self, name: str, user: str) -> Datum:
        if name not in self.values:
            raise MalformedModelError(
                f"{user} uses value {name!r}, which no earlier node, input, or initializer defines",
                where=user,
                hint="check that the file is not truncated and its nodes are sorted topologically",
            )
        found = self.values[name]
        if found is None:
            raise MalformedModelError(
                f"value {name!r}, used by {user}, depends on an optional output that is not "
                "supported",
                where=f"value {name!r}",
                hint="remove the uses of this output from the model",
            )
        return found

    def _node(self, node: Any) -> None:
        where = f"node {node.name or node.op_type!r}"
        for name in node.input:
            if name and name not in self.values:
                self._value(name, where)
        waiting = any(self.values[n] is None for n in node.input if n)
        results: Sequence[Datum] = () if waiting else self._handled(node)
        for k, name in enumerate(node.output):
            if name:
                self._check_new(name, "output of a node")
                self.values[name] = results[k] if k < len(results) else None

    def _handled(self, node: Any) -> Sequence[Datum]:
        handler = HANDLERS.get(handler_key(node))
        if handler is None:
            return self._unsupported(node, "")
        context = self.context
        context.node = node
        context.origins = frozenset({scope_of(node) or _label(node)})
        context.inputs = [self.values[n] if n else None for n in node.input]
        try:
            context.attributes = checked_attributes(node, context.opset)
            given = [None if x is None else x.dtype for x in context.inputs]
            check_dtypes(node, context.opset, given)
            found = handler(context)
        except UnsupportedFormError as error:
            return self._unsupported(node, error.reason)
        except (OperandError, OperatorAttributeError) as error:
            return self._unsupported(node, operand_reason(error))
        except TilewrightError as error:
            error.where = error.where or f"node {_label(node)!r}"
            raise
        except Exception as error:  # handlers trust the types that ONNX declares
            raise MalformedModelError(
                f"the attributes or inputs of ONNX operator {node.op_type} are invalid: {error}",
                where=f"node {_label(node)!r}",
                hint=CHECK_MODEL,
            ) from error
        return [found] if isinstance(found, Imported | TensorSequence | StackedSequence) else found

    def _unsupported(self, node: Any, reason: str) -> Sequence[Datum]:
        """Return the results of an opaque call if they are allowed and of known types."""
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        named = [output for output in node.output if output] if self.allow_unsupported else []
        infos = [self._declared(output) for output in named]
        outputs = [info for info in infos if info is not None]
        if outputs and len(outputs) == len(infos):
            self.context.origins = frozenset({scope_of(node) or _label(node)})
            given = [x for n in node.input if n and isinstance(x := self.values[n], Imported)]
            return opaque_call(self.context, name, given, outputs, _plain_attributes(node))
        if self.allow_unsupported and not reason:
            reason = "the types of its results are unknown"
        scope = scope_of(node)
        label = _label(node)
        self.missing.append(Unsupported(name, reason, f"{scope} ({label})" if scope else label))
        return []

    def _declared(self, name: str) -> TensorInfo | None:
        """Return the type of a value that the model or the shape inference of ONNX states."""
        if self.types is None:
            graph = _with_types(self.file.model).graph
            self.types = {v.name: v for v in (*graph.value_info, *graph.output)}
        value = self.types.get(name)
        tensor = None if value is None else value.type.tensor_type
        if tensor is None or not is_onnx_dtype(tensor.elem_type) or not tensor.HasField("shape"):
            return None
        base = identifier(name, "value")
        shape = tuple(self._dim(d, f"{base}_dim{k}") for k, d in enumerate(tensor.shape.dim))
        return TensorInfo(shape, onnx_dtype(tensor.elem_type, f"value {name!r}"))


def _with_types(model: Any) -> Any:
    """Return a model with the types that ONNX infers; without them if it fails."""
    from onnx import shape_inference

    try:
        return shape_inference.infer_shapes(model)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  # such as an operator of an unknown domain
        return model


def _plain_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node that are numbers or strings."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        match attribute.type:
            case 1:
                found[attribute.name] = float(attribute.f)
            case 2:
                found[attribute.name] = int(attribute.i)
            case 3:
                found[attribute.name] = attribute.s.decode("utf-8", "replace")
            case _:
                pass
    return found


def _label(node: Any) -> str:
    """Return the name of a node, or of its first output, or of its operator."""
    return node.name or next(iter(node.output), node.op_type)
