"""Parsing of right-hand sides of graph-level bindings."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final, TypeAlias

from ...graph.nodes import (
    DEFAULT_DEVICE,
    AllocStorage,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    Check,
    CopyTensor,
    GrowTensor,
    Info,
    KernelVersion,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    Rhs,
    TensorInfo,
    TupleInfo,
    TupleItem,
    ViewTensor,
    result_info,
)
from ...symbolic import Expr
from .arguments import Arguments, called_name
from .infos import read_info
from .source import describe, text_of
from .values import ValueReader

Implied: TypeAlias = "Info | None"
"""The annotation that a right-hand side implies for its value; None if it is not known."""


_OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.MatMult: "matmul",
    ast.Pow: "power",
}


class RightReader:
    """Parses right-hand sides over the values of one function."""

    def __init__(self, values: ValueReader) -> None:
        """Look up values in ``values``."""
        self._values = values
        self.scope = values.scope
        self.source = values.source
        self._forms: dict[str, Callable[[ast.Call, Implied], tuple[Rhs, Implied]]] = {
            "call_tir": self._call_tir,
            "call_library": self._call_library,
            "call": self._call_graph,
            "match_cast": self._match_cast,
            "op": self._named_op,
            "alloc_storage": self._alloc_storage,
            "view": self._view,
            "launch": self._launch,
            "launch_library": self._launch_library,
            "copy": self._copy,
            "grow": self._grow,
            "kill": self._kill,
            "updates": self._misplaced,
            "check": self._check,
        }

    def read(self, node: ast.expr, written: Implied) -> tuple[Rhs, Implied]:
        """Parse a right-hand side; ``written`` is the explicit annotation of its value."""
        match node:
            case ast.Tuple(elts=parts):
                return MakeTuple(self._values.operands(parts)), None
            case ast.Subscript(value=whole, slice=index):
                tuple_ = self._values.value(whole)
                return TupleItem(tuple_, self.scope.integer(index)), _field(tuple_.info, index)
            case ast.Call():
                name = called_name(node)
                if name is None:
                    raise self.source.error(node, "expected an operator name", "write y = relu(x)")
                if name in self._forms:
                    return self._forms[name](node, written)
                return self._operator(node, name, 0), None
            case _:
                raise self.source.error(
                    node,
                    f"expected a call, a tuple, or a tuple field, got {describe(node)}",
                    _operator_hint(node) or "write y = relu(x), y = (a, b), or y = t[0]",
                )

    def _arguments(self, node: ast.Call, usage: str) -> Arguments:
        return Arguments(self.source, node, usage)

    def _operator(self, node: ast.Call, name: str, skip: int) -> Call:
        arguments = self._arguments(node, f"{name}(operands, attribute=value)")
        operands = self._values.operands(arguments.positional[skip:])
        return Call(name, operands, self.scope.attributes(arguments))

    def _named_op(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        if not node.args:
            raise self.source.error(node, "expected an operator name", 'write op("name", x)')
        return self._operator(node, self.scope.string(node.args[0]), 1), None

    def _function_name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        raise self.source.error(
            node, f"expected a function name, got {describe(node)}", "write a name without quotes"
        )

    def _outputs(
        self, arguments: Arguments, written: Implied, updated: int = 0
    ) -> tuple[TensorInfo, ...]:
        """Parse the outputs, or infer them from the annotation without the updated arguments."""
        node = arguments.keyword("outputs")
        if node is None and written is None and updated:
            fields = ()
        elif node is None:
            fields = written.fields if isinstance(written, TupleInfo) else (written,)
            fields = fields[: max(len(fields) - updated, 0)]
        elif isinstance(node, ast.Tuple):
            fields = tuple(read_info(self.scope, n) for n in node.elts)
        else:
            raise arguments.error(
                f"expected a tuple of annotations as outputs, got {describe(node)}", node
            )
        tensors = tuple(f for f in fields if isinstance(f, TensorInfo))
        if len(tensors) != len(fields):
            raise arguments.error(
                "cannot infer the outputs of this call: annotate the value as a Tensor or a "
                "Tuple of Tensors, or pass outputs=(Tensor[...],)"
            )
        return tensors

    def _updates(self, arguments: Arguments, operands: int) -> tuple[int, ...]:
        """Parse the positions of the operands that a call updates."""
        node = arguments.keyword("updates")
        if node is None:
            return ()
        if not isinstance(node, ast.Tuple):
            raise arguments.error(
                "expected a tuple of positions of operands as updates, such as (0,), got "
                f"{describe(node)}",
                node,
            )
        positions = tuple(self.scope.integer(n) for n in node.elts)
        for position, part in zip(positions, node.elts, strict=True):
            if not 0 <= position < operands:
                count = f"{operands} operand{'' if operands == 1 else 's'}"
                raise arguments.error(
                    f"updates has position {position}, but the call has {count}", part
                )
        if sorted(set(positions)) != list(positions):
            raise arguments.error(
                f"expected increasing positions as updates, got {text_of(node)}", node
            )
        return positions

    def _scalars(self, arguments: Arguments) -> tuple[Expr, ...]:
        node = arguments.keyword("scalars")
        return () if node is None else self.scope.dims(node)

    def _versions(self, arguments: Arguments) -> tuple[KernelVersion, ...]:
        node = arguments.keyword("versions")
        if node is None:
            return ()
        if not isinstance(node, ast.Tuple):
            raise arguments.error(
                f"expected a tuple of versions such as (when(n == 1, gemv),), got {describe(node)}",
                node,
            )
        return tuple(self._version(n) for n in node.elts)

    def _version(self, node: ast.expr) -> KernelVersion:
        if not isinstance(node, ast.Call) or called_name(node) != "when":
            raise self.source.error(
                node, f"expected when(guard, function) as version, got {describe(node)}"
            )
        arguments = self._arguments(node, "when(guard, function, scalars=(n,))")
        guard, function = arguments.take(2)
        scalars = self._scalars(arguments)
        arguments.finish()
        return KernelVersion(self.scope.predicate(guard), self._function_name(function), scalars)

    def _call_tir(self, node: ast.Call, written: Implied) -> tuple[Rhs, Implied]:
        usage = "call_tir(function, operands, scalars=(n,), updates=(0,))"
        arguments = self._arguments(node, usage)
        function, *operands = self._with_callee(arguments)
        updates = self._updates(arguments, len(operands))
        outputs = self._outputs(arguments, written, len(updates))
        scalars, versions = self._scalars(arguments), self._versions(arguments)
        arguments.finish()
        name, args = self._function_name(function), self._values.operands(operands)
        call = CallTIR(name, args, outputs, scalars, versions, updates)
        return call, result_info(call)

    @staticmethod
    def _with_callee(arguments: Arguments) -> list[ast.expr]:
        if not arguments.positional:
            raise arguments.error("expected the name of the callee as first argument")
        return arguments.positional

    def _call_library(self, node: ast.Call, written: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, 'call_library("symbol", operands, attribute=value)')
        symbol, *operands = self._with_callee(arguments)
        outputs = self._outputs(arguments, written)
        attributes = self.scope.attributes(arguments)
        name, args = self.scope.string(symbol), self._values.operands(operands)
        implied = outputs[0] if len(outputs) == 1 else TupleInfo(outputs)
        return CallDPSLibrary(name, args, outputs, attributes), implied

    def _call_graph(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, "call(function, operands, updates=(0,))")
        function, *operands = self._with_callee(arguments)
        updates = self._updates(arguments, len(operands))
        arguments.finish()
        args = self._values.operands(operands)
        return CallGraph(self._function_name(function), args, updates), None

    def _match_cast(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, "match_cast(x, Tensor[(n, 4), f32])")
        operand, annotation = arguments.take(2)
        arguments.finish()
        info = read_info(self.scope, annotation)
        return MatchCast(self._values.operand(operand), info), info

    def _alloc_storage(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, 'alloc_storage(bytes, device="cpu", alignment=64)')
        (size,) = arguments.take(1)
        device, alignment = arguments.keyword("device"), arguments.keyword("alignment")
        stream = self._stream(arguments)
        arguments.finish()
        storage = AllocStorage(
            self.scope.expr(size),
            DEFAULT_DEVICE if device is None else self.scope.string(device),
            64 if alignment is None else self.scope.integer(alignment),
            stream,
        )
        return storage, ObjectInfo()

    def _view(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, "view(storage, offset, Tensor[(n, 4), f32])")
        storage, offset, annotation = arguments.take(3)
        arguments.finish()
        info = self._tensor(annotation)
        return ViewTensor(self._values.value(storage), self.scope.expr(offset), info), info

    def _tensor(self, annotation: ast.expr) -> TensorInfo:
        info = read_info(self.scope, annotation)
        if not isinstance(info, TensorInfo):
            raise self.source.error(
                annotation, f"expected a Tensor annotation of a view, got {describe(annotation)}"
            )
        return info

    def _grow(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, "grow(value, Tensor[(n + 1, 4), f32])")
        value, annotation = arguments.take(2)
        arguments.finish()
        info = self._tensor(annotation)
        return GrowTensor(self._values.value(value), info), info

    def _launch(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, "launch(function, operands, scalars=(n,))")
        function, *operands = self._with_callee(arguments)
        scalars, versions = self._scalars(arguments), self._versions(arguments)
        stream = self._stream(arguments)
        arguments.finish()
        name, args = self._function_name(function), self._values.operands(operands)
        return LaunchKernel(name, args, scalars, versions, stream), ObjectInfo()

    def _stream(self, arguments: Arguments) -> int:
        """Return the value of the keyword ``stream``, by default 0."""
        stream = arguments.keyword("stream")
        return 0 if stream is None else self.scope.integer(stream)

    def _launch_library(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        usage = 'launch_library("symbol", operands, outputs=(y,), attribute=value)'
        arguments = self._arguments(node, usage)
        symbol, *operands = self._with_callee(arguments)
        outputs = arguments.keyword("outputs")
        attributes = self.scope.attributes(arguments)
        if not isinstance(outputs, ast.Tuple):
            got = "none" if outputs is None else describe(outputs)
            raise arguments.error(f"expected a tuple of values as outputs, got {got}")
        name, args = self.scope.string(symbol), self._values.operands(operands)
        made = self._values.operands(outputs.elts)
        return LaunchLibrary(name, args, made, attributes), ObjectInfo()

    def _copy(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, 'copy(source, target, "reason")')
        source, target, *reason = arguments.take(2, 3)
        stream = self._stream(arguments)
        arguments.finish()
        why = self.scope.string(reason[0]) if reason else ""
        copied = self._values.operand(source)
        return CopyTensor(copied, self._values.value(target), why, stream), ObjectInfo()

    def _misplaced(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        raise self.source.error(
            node,
            "updates(...) is not at the end of a return statement",
            "write return y, updates(cache=c2)",
        )

    def _kill(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, "kill(value)")
        arguments.finish()
        return Kill(self._values.value(arguments.take(1)[0])), ObjectInfo()

    def _check(self, node: ast.Call, _: Implied) -> tuple[Rhs, Implied]:
        arguments = self._arguments(node, 'check(n % 8 == 0, "message")')
        predicate, message = arguments.take(2)
        arguments.finish()
        return Check(self.scope.predicate(predicate), self.scope.string(message)), ObjectInfo()


def _operator_hint(node: ast.expr) -> str:
    """Return the call of the operator that a Python operator denotes; empty if there is none."""
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
        return ""
    return f"write {_OPERATORS[type(node.op)]}({text_of(node.left)}, {text_of(node.right)})"


def _field(info: Info, index: ast.expr) -> Implied:
    position = index.value if isinstance(index, ast.Constant) else None
    fields = info.fields if isinstance(info, TupleInfo) else ()
    return fields[position] if isinstance(position, int) and 0 <= position < len(fields) else None
