"""Parsing of reducers: their definitions in blocks, and updates of results by them."""

from __future__ import annotations

import ast
from typing import NoReturn

from ...dtype import DType, bool_
from ...identity import Origins
from ...loop.combiners import (
    COMBINERS,
    REDUCERS,
    Combiner,
    ReducerDtypeError,
    named_reducer,
    reducer_of,
)
from ...loop.nodes import Condition, Element, Index, IterVar, Load, Local, Number, Reducer, Stmt
from ...loop.reducers import Reducing
from ...loop.scans import scan_of
from ...loop.visit import walk_element
from ..errors import DuplicateNameError, ScriptTypeError
from .arguments import Arguments, called_name
from .elements import SCAN, ElementReader
from .scope import Scope
from .source import Located, describe

_USAGE = "@reducer(identity=(0.0, 0.0)) before def name(a0: f32, a1: f32, b0: f32, b1: f32):"


class ReducerReader:
    """The parser of the reducers of one block."""

    def __init__(
        self, scope: Scope, elements: ElementReader, iters: tuple[IterVar, ...] = ()
    ) -> None:
        """Start without reducers; ``iters`` are the iteration variables of the block."""
        self._ordered = [v.var for v in iters if v.kind == "ordered"]
        self._scope, self._source, self._elements = scope, scope.source, elements
        self._known: dict[str, Reducer] = {}
        self.used: Reducer | None = None

    def defines(self, name: str | None) -> bool:
        """Return whether the block defines a reducer of this name."""
        return name in self._known

    def define(self, node: ast.FunctionDef) -> None:
        """Parse the definition of a reducer."""
        if node.name in self._known:
            raise DuplicateNameError(
                f"duplicate reducer {node.name!r} in this block",
                location=self._source.location(node),
                hint="rename one of the two",
            )
        options = self._options(node)
        self._check_parameters(node)
        operands = tuple(self._operand(arg) for arg in node.args.args)
        half = len(operands) // 2
        left, right = operands[:half], operands[half:]
        if not half or [x.dtype for x in left] != [x.dtype for x in right]:
            self._error(
                node,
                f"expected the values of two operands with the same dtypes, got {len(operands)} "
                "parameters",
                "write def pair(a0: f32, a1: i64, b0: f32, b1: i64):",
            )
        binds, results = self._body(node, operands, left)
        identities = self._identities(options, left)
        commutative = options.keyword("commutative")
        options.finish()
        value = None if commutative is None else self._scope.number(commutative)
        if commutative is not None and not isinstance(value, bool):
            self._error(commutative, "expected True or False", "write commutative=False")
        self._known[node.name] = Reducer(
            node.name, left, right, binds, results, identities, value is not False
        )

    def _options(self, node: ast.FunctionDef) -> Arguments:
        marks = node.decorator_list
        call = marks[0] if len(marks) == 1 else None
        if not isinstance(call, ast.Call) or called_name(call) != "reducer":
            self._error(node, "a function in a block is a reducer", f"write {_USAGE}")
        options = Arguments(self._source, call, _USAGE)
        options.take(0)
        return options

    def _check_parameters(self, node: ast.FunctionDef) -> None:
        """Check that the parameters are names with different names and without defaults."""
        given = node.args
        names = [arg.arg for arg in given.args]
        twice = next((arg for k, arg in enumerate(given.args) if arg.arg in names[:k]), None)
        if twice is not None:
            raise DuplicateNameError(
                f"duplicate parameter {twice.arg!r}",
                location=self._source.location(twice),
                hint="rename one of the two",
            )
        others = (given.vararg, given.kwarg, *given.posonlyargs, *given.kwonlyargs, *given.defaults)
        found = next((arg for arg in others if arg is not None), None)
        if found is not None:
            self._error(
                found,
                "the parameters of a reducer have a name and a dtype",
                "write def pair(a0: f32, a1: i64, b0: f32, b1: i64):",
            )

    def _operand(self, arg: ast.arg) -> Local:
        if arg.annotation is None:
            self._error(arg, f"parameter {arg.arg!r} has no dtype", f"write {arg.arg}: f32")
        return Local(arg.arg, self._scope.dtype(arg.annotation))

    def _body(
        self, node: ast.FunctionDef, operands: tuple[Local, ...], left: tuple[Local, ...]
    ) -> tuple[tuple[tuple[Local, Element], ...], tuple[Element, ...]]:
        outer, variables = self._elements.locals, dict(self._scope.variables)
        self._elements.locals = {local.name: local for local in operands}
        for local in operands:  # a name is that of the operand, as in Python
            self._scope.variables.pop(local.name, None)
        binds: list[tuple[Local, Element]] = []
        results: tuple[Element, ...] = ()
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if not results:
                    element = self._value(value, None)
                    binds.append((Local(name, element.dtype), element))
                    self._elements.locals[name] = binds[-1][0]
                    self._scope.variables.pop(name, None)
                case ast.Return(value=ast.expr() as value) if not results:
                    parts = value.elts if isinstance(value, ast.Tuple) else [value]
                    self._check_count(value, len(parts), len(left), "results")
                    pairs = zip(parts, left, strict=True)
                    results = tuple(self._value(part, local) for part, local in pairs)
                case _:
                    self._error(
                        statement,
                        "a reducer consists of assignments and one return",
                        "write return a0 + b0, a1 + b1",
                    )
        self._elements.locals = outer
        self._scope.variables.update(variables)
        if not results:
            self._error(node, "the reducer returns nothing", "write return a0 + b0, a1 + b1")
        return tuple(binds), results

    def _value(self, node: ast.expr, result: Local | None) -> Element:
        value = self._elements.read(node, None if result is None else result.dtype)
        if any(isinstance(e, Load | Index | Condition) for e in walk_element(value)):
            self._error(
                node,
                "a reducer uses only its operands and numbers",
                "pass the value as a part of the operands",
            )
        if result is not None and value.dtype != result.dtype:
            raise ScriptTypeError(
                f"expected a result of dtype {result.dtype}, got {value.dtype}",
                location=self._source.location(node),
                hint=f"convert it: {result.dtype}(...)",
            )
        return value

    def _identities(self, options: Arguments, left: tuple[Local, ...]) -> tuple[Number, ...]:
        node = options.keyword("identity")
        if node is None:
            self._error(options.node, "the reducer has no identity", f"write {_USAGE}")
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        self._check_count(node, len(parts), len(left), "identities")
        found: list[Number] = []
        for part, local in zip(parts, left, strict=True):
            value = self._elements.read(part, local.dtype)
            if not isinstance(value, Number):
                self._error(part, f"expected a number, got {describe(part)}", "write 0.0")
            found.append(value)
        return tuple(found)

    def update(self, targets: list[ast.expr], value: ast.expr, origins: Origins) -> Stmt | None:
        """Parse ``m[i], p[i] = argmax(x[i, k], k)`` or ``y[i] = scan(add, x[i])``.

        Return None for another assignment.
        """
        name = called_name(value)
        several = len(targets) > 1 and name in REDUCERS
        if not isinstance(value, ast.Call):
            return None
        if name == SCAN and name not in self._known:
            return self._scan(targets, value, origins)
        if not several and name not in self._known:
            return None
        arguments = Arguments(self._source, value, f"{name}(...)")
        arguments.finish()
        accesses = tuple(self._elements.load(target) for target in targets)
        reducer = self._reducer(str(name), accesses, value)
        terms = self._terms(value, accesses, arguments.positional, reducer)
        return Reducing(reducer, (), accesses, terms, origins).body()

    def _terms(
        self, node: ast.Call, accesses: tuple[Load, ...], values: list[ast.expr], reducer: Reducer
    ) -> tuple[Element, ...]:
        """Parse the values of an update, the only one in the block."""
        self._check_count(node, len(accesses), len(reducer.left), "results")
        self._check_count(node, len(values), len(reducer.right), "values")
        if self.used is not None:
            self._error(node, "the block has two updates by a reducer", "write two blocks")
        self.used = reducer
        pairs = zip(values, accesses, strict=True)
        return tuple(self._elements.stored(value, access) for value, access in pairs)

    def _scan(self, targets: list[ast.expr], value: ast.Call, origins: Origins) -> Stmt:
        """Parse ``y[i, j] = scan(add, x[i, j], start=s[i])``."""
        arguments = Arguments(self._source, value, "scan(add, x[i], start=0.0)")
        operation, *values = arguments.take(2, 100)
        start = arguments.keyword("start")
        arguments.finish()
        if len(self._ordered) != 1:
            self._error(
                value,
                "a scan is in a block with one ordered iteration variable, got "
                f"{len(self._ordered)}",
                "write vi, vj = spatial(i), ordered(j)",
            )
        accesses = tuple(self._elements.load(target) for target in targets)
        match operation:
            case ast.Name(id=name) | ast.Constant(value=str(name)):
                pass
            case _:
                name = ""
        if name not in self._known and name not in REDUCERS and name not in COMBINERS:
            known = ", ".join((*COMBINERS, *REDUCERS))
            self._error(
                operation,
                f"expected a reducer, got {describe(operation)}",
                f"write one of {known}, or define one: {_USAGE}",
            )
        reducer = self._reducer(name, accesses, value)
        terms = self._terms(value, accesses, values, reducer)
        parts = start.elts if isinstance(start, ast.Tuple) else [] if start is None else [start]
        starts = None
        if start is not None:
            self._check_count(start, len(parts), len(accesses), "values of the start")
            pairs = zip(parts, accesses, strict=True)
            starts = tuple(self._elements.stored(node, access) for node, access in pairs)
        made = scan_of(reducer, accesses, self._ordered[0], terms, starts=starts, origins=origins)
        return made.body()

    def _reducer(self, name: str, accesses: tuple[Load, ...], node: Located) -> Reducer:
        if name in self._known:
            reducer = self._known[name]
            wrong = [a for a, x in zip(accesses, reducer.left, strict=False) if a.dtype != x.dtype]
            for access in wrong:
                raise ScriptTypeError(
                    f"{access.buffer.name!r} has dtype {access.dtype}, which is not the dtype of "
                    f"the result of {name!r}",
                    location=self._source.location(node),
                    hint="use a buffer of the dtype of the result",
                )
            return reducer
        single: Combiner | None = next((known for known in COMBINERS if known == name), None)
        if single is not None:
            return self._single(single, accesses[0].dtype, node)
        try:
            return named_reducer(name, tuple(a.dtype for a in accesses))
        except ReducerDtypeError as error:
            raise ScriptTypeError(
                error.message, location=self._source.location(node), hint=error.hint
            ) from None

    def _single(self, name: Combiner, dtype: DType, node: Located) -> Reducer:
        bits = name in ("and", "or", "xor")
        if dtype.is_float if bits else dtype == bool_:
            raise ScriptTypeError(
                f"{name} is not defined for dtype {dtype}",
                location=self._source.location(node),
                hint=f"its values are {'integers or bool' if bits else 'numbers'}",
            )
        return reducer_of(name, dtype)

    def _check_count(self, node: Located, got: int, expected: int, noun: str) -> None:
        if got != expected:
            self._error(node, f"expected {expected} {noun}, got {got}", "write one per value")

    def _error(self, node: Located, message: str, hint: str) -> NoReturn:
        raise self._source.error(node, message, hint)
