"""Parsing of loop-level functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, Literal, get_args

from ...identity import NO_ORIGIN, Origins
from ...loop.decompose import bound_variables
from ...loop.nesting import MOST_NAMES, MOST_NESTED
from ...loop.nodes import (
    Alloc,
    BinaryOp,
    Bind,
    Block,
    Buffer,
    Element,
    For,
    If,
    IterKind,
    IterVar,
    Let,
    LetMode,
    Local,
    LoopKind,
    PrimFunc,
    Range,
    Region,
    Stmt,
    Store,
)
from ...loop.ranges import range_of
from ...loop.regions import access_regions
from ...loop.visit import loads, seq
from ...symbolic import TRUE, Bool, Expr, InvalidSymbolError, Var, as_expr, var
from ..errors import DuplicateNameError, ScriptSyntaxError
from .arguments import Arguments, called_name
from .buffers import BufferReader, is_allocation
from .elements import SCAN, ElementReader
from .header import (
    Declarations,
    decorator_of,
    names_of_its_own,
    read_target,
    signature,
    statements_of,
    take_facts,
)
from .reducers import ReducerReader
from .scope import Scope, shape_text
from .source import Located, Source, describe, text_of
from .statements import assigned_name_hint, check_starts_at_zero, unsupported_statement
from .unknown import LOOP_NAMES, unknown_name

_LOOPS: Final[dict[str, LoopKind]] = {
    "range": "serial",
    "serial": "serial",
    "parallel": "parallel",
    "vectorized": "vectorized",
    "unrolled": "unrolled",
    "thread": "thread",
}
_AUGMENTED: Final[dict[type[ast.operator], BinaryOp]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
}
_ITERS: Final[dict[str, IterKind]] = {kind: kind for kind in get_args(IterKind)}
_LETS: Final[dict[str, LetMode]] = {mode: mode for mode in get_args(LetMode)}
_SPATIAL: Final = frozenset(_ITERS) - {"reduce"}
_ONE: Final = as_expr(1)
_CONTEXTS = "with block(...), checked(...), clamped(...), proved(...) or origin(...)"
_HEADERS = ("guard", "reads", "writes")


class BlockHeader:
    """The predicate, regions and init of a block while the block is being parsed."""

    def __init__(self) -> None:
        """Start with the defaults."""
        self.predicate: Bool = TRUE
        self.reads: tuple[Region, ...] | None = None
        self.writes: tuple[Region, ...] | None = None
        self.init: Stmt | None = None
        self.seen: set[str] = set()


class LoopReader:
    """The parser of the statements of one function; it registers names in textual order."""

    def __init__(self, scope: Scope, function: ast.AST | None = None) -> None:
        """Start with the symbols of ``scope``; messages name allocations in ``function``."""
        self.scope = scope
        self.source = scope.source
        self.buffers = BufferReader(scope)
        self.elements = ElementReader(scope, self.buffers.known, function)
        self.mint = self.buffers.mint
        self._checked: dict[str, Var] = {}
        self._blocks = 0
        self._starts: set[Var] = set()
        self._opened = 0
        self._reducers = ReducerReader(scope, self.elements)

    def body(self, statements: list[ast.stmt], origins: Origins) -> Stmt:
        """Parse a list of statements; the scope of an allocation is the rest of the list."""
        return seq(*self._statements(statements, origins, None))

    def _statements(
        self, statements: list[ast.stmt], origins: Origins, header: BlockHeader | None
    ) -> Iterator[Stmt]:
        """Yield the statements of a list; a block takes the lines of its header.

        The scope of an allocation and of a bound value is the rest of the statements.
        """
        opened: list[Buffer | tuple[Local, Element]] = []
        found: list[list[Stmt]] = [[]]
        for statement in statements:
            if header is not None and self._header_line(statement, header, origins):
                continue
            if self._blocks and isinstance(statement, ast.FunctionDef):
                self._reducers.define(statement)
                continue
            new = self.buffers.allocation(statement) or self._bound(statement)
            if new is None:
                found[-1].append(self.statement(statement, origins))
                continue
            if not isinstance(new, Buffer):
                self.elements.locals[new[0].name] = new[0]
            if len(opened) == MOST_NAMES:
                raise self.source.too_large(
                    f"a statement contains more than {MOST_NAMES} allocations and bound values",
                    statement,
                )
            if self._opened == MOST_NESTED:
                raise self.source.too_large(
                    f"more than {MOST_NESTED} allocations and bound values are nested", statement
                )
            self._opened += 1
            opened.append(new)
            found.append([])
        self._opened -= len(opened)
        for new in reversed(opened):
            rest = seq(*found.pop())
            found[-1].append(self._closed(new, rest))
        yield from found[0]

    def _closed(self, new: Buffer | tuple[Local, Element], rest: Stmt) -> Stmt:
        """Return the statement of a buffer or a value that ``rest`` uses, and end its scope."""
        if isinstance(new, Buffer):
            self.buffers.release(new)
            return Alloc(new, rest)
        local, value = new
        del self.elements.locals[local.name]
        return Bind(local, value, rest)

    def _bound(self, statement: ast.stmt) -> tuple[Local, Element] | None:
        """Parse ``t = x[i] * 2.0`` in a block; return None for another statement."""
        if not self._blocks:
            return None
        match statement:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                self._check_unused(name, target)
                element = self.elements.read(value)
                return Local(name, element.dtype), element
            case _:
                return None

    def _check_unused(self, name: str, node: ast.expr) -> None:
        """Check that no variable, buffer or value of this name is in scope."""
        self.scope.check_unbound(name, node)
        if name in self.buffers.known or name in self.elements.locals:
            noun = "buffer" if name in self.buffers.known else "value"
            store = f"; to store an element of the buffer, write {name}[i] = ..."
            raise DuplicateNameError(
                f"{noun} {name!r} is already in scope",
                location=self.source.location(node),
                hint=f"rename one of the two{store if noun == 'buffer' else ''}",
            )

    def statement(self, node: ast.stmt, origins: Origins) -> Stmt:
        """Parse one statement; it inherits ``origins`` from the enclosing statement."""
        match node:
            case ast.Assign(targets=[target], value=value) if self._is_update(target, value):
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                made = self._reducers.update(targets, value, origins)
                if made is None:
                    raise unsupported_statement(self.source, node)
                return made
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
                targets
            ) == len(values):
                return self._stores(targets, values, origins)
            case ast.Assign(targets=[target], value=value):
                access = self.elements.load(target, assigned_name_hint(target, value))
                element = self.elements.stored(value, access)
                return Store(access.buffer, access.indices, element, origins)
            case ast.AugAssign(target=target, op=op) if type(op) in _AUGMENTED:
                access = self.elements.load(target)
                element = self.elements.augmented(node, _AUGMENTED[type(op)], access)
                return Store(access.buffer, access.indices, element, origins)
            case ast.For():
                return self._for(node, origins)
            case ast.If(test=test, body=then, orelse=otherwise):
                other = self.body(otherwise, origins) if otherwise else None
                return If(self.scope.predicate(test), self.body(then, origins), other)
            case ast.With(items=[item]):
                return self._with(node, item, origins)
            case ast.Pass():
                return seq()
            case _:
                raise unsupported_statement(self.source, node)

    def _is_update(self, target: ast.expr, value: ast.expr) -> bool:
        """Return whether an assignment in a block updates results by a reducer."""
        if not self._blocks or not isinstance(value, ast.Call):
            return False
        name = called_name(value)
        return isinstance(target, ast.Tuple) or name == SCAN or self._reducers.defines(name)

    def _stores(self, targets: list[ast.expr], values: list[ast.expr], origins: Origins) -> Stmt:
        """Parse ``m[i], p[i] = 0.0, 1``, whose values read none of the buffers."""
        accesses = [self.elements.load(target) for target in targets]
        stores = [
            Store(a.buffer, a.indices, self.elements.stored(value, a), origins)
            for a, value in zip(accesses, values, strict=True)
        ]
        written = {a.buffer for a in accesses}
        for store, value in zip(stores, values, strict=True):
            if any(load.buffer in written for load in loads(store)):
                raise self.source.error(
                    value,
                    "a value reads a buffer that the assignment writes",
                    "bind the value first: t = y[i]",
                )
        return seq(*stores)

    def origins(self, arguments: Arguments, outer: Origins) -> Origins:
        """Parse the origins of a node; by default those of the enclosing node."""
        own = arguments.keyword("origins")
        return outer if own is None else frozenset(self.scope.strings(own))

    def ranged(
        self, name: str, default: tuple[int | None, int | None], arguments: Arguments
    ) -> Var:
        """Create a bound variable with an explicit range, or the range ``default``."""
        bounds, multiple = arguments.keyword("bounds"), arguments.keyword("multiple_of")
        lower, upper = default
        if isinstance(bounds, ast.Tuple) and len(bounds.elts) == 2:
            lower, upper = map(self.scope.optional_integer, bounds.elts)
        elif bounds is not None:
            raise self.source.error(
                bounds,
                f"expected a pair of bounds, got {describe(bounds)}",
                "write bounds=(0, 7) or bounds=(0, None)",
            )
        factor = 1 if multiple is None else self.scope.integer(multiple)
        try:
            return var(name, lower=lower, upper=upper, multiple_of=factor)
        except InvalidSymbolError as error:
            raise ScriptSyntaxError(
                error.message, location=self.source.location(arguments.node), hint=error.hint
            ) from None

    def _for(self, node: ast.For, outer: Origins) -> Stmt:
        kind = called_name(node.iter)
        if not isinstance(node.iter, ast.Call) or kind not in _LOOPS:
            raise unknown_name(
                self.source, node.iter, "loop kind", kind or text_of(node.iter), _LOOPS,
                plural="kinds", others=LOOP_NAMES, hint="write for i in range(n):",
            )  # fmt: skip
        if node.orelse:
            raise self.source.error(
                node.orelse[0],
                "else is not supported on loops",
                "write the statements after the loop",
            )
        arguments = Arguments(self.source, node.iter, f"for i in {kind}(extent, key=value):")
        check_starts_at_zero(self.source, node, arguments)
        extent, *tags = arguments.take(1, 2)
        name = self._loop_name(node.target)
        size = self.scope.expr(extent)
        variable = self.ranged(name, range_of(size), arguments)
        origins = self.origins(arguments, outer)
        annotations = self.scope.attributes(arguments)
        tag = self.scope.string(tags[0]) if tags else ""
        with self.scope.bound({name: (variable, size)}):
            uid, body = self.mint(), self.body(node.body, origins)
        loop = For(uid, variable, size, body, _LOOPS[kind], tag, annotations, origins)
        # An empty loop of a spatial variable keeps an init from running, also if the variable can
        # only have one value.
        return If(size >= 1, loop) if variable in self._starts else loop

    def _loop_name(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            raise self.source.error(
                target,
                f"expected one loop variable, got {describe(target)}",
                "write one loop per variable, inside each other",
            )
        self.scope.check_unbound(target.id, target)
        return self.buffers.claim(target.id, "loop", target)

    def _with(self, node: ast.With, item: ast.withitem, outer: Origins) -> Stmt:
        call = item.context_expr
        name = called_name(call)
        if not isinstance(call, ast.Call) or name is None:
            raise self.source.error(
                call, f"expected a call after with, got {describe(call)}", f"write {_CONTEXTS}"
            )
        arguments = Arguments(self.source, call, f"with {name}(...):")
        if name == "block":
            return self._block(node, arguments, outer)
        if name == "origin":
            own = frozenset(self.scope.string(n) for n in arguments.positional)
            return self.body(node.body, own)
        if name in _LETS:
            return self._let(node, item, arguments, _LETS[name], outer)
        raise unknown_name(
            self.source, call, "statement", f"with {name}", ("block", *_LETS, "origin"),
            plural="names after with", hint=f"write {_CONTEXTS}",
        )  # fmt: skip

    def _let(
        self,
        node: ast.With,
        item: ast.withitem,
        arguments: Arguments,
        mode: LetMode,
        outer: Origins,
    ) -> Let:
        access, low, high = arguments.take(3)
        load = self.elements.integer_load(access)
        lower, upper = self.scope.expr(low), self.scope.expr(high)
        if not isinstance(item.optional_vars, ast.Name):
            raise self.source.error(
                arguments.node,
                f"expected a variable for the integer that {mode}(...) reads",
                f"write with {mode}(buffer[i], lower, upper) as v:",
            )
        name = self._loop_name(item.optional_vars)
        last = None if upper.upper is None else upper.upper - 1
        variable = self.ranged(name, (lower.lower, last), arguments)
        discharge = self._discharge(arguments) if mode == "proved" else None
        arguments.finish()
        if mode == "checked":
            self._checked[name] = variable
        with self.scope.bound({name: (variable, None)}):
            return Let(variable, lower, upper, load, mode, self.body(node.body, outer), discharge)

    def _discharge(self, arguments: Arguments) -> Var | Literal["dtype"] | None:
        """Parse the discharge of a proved range: ``"dtype"`` or the name of a checked integer."""
        node = arguments.keyword("by")
        if node is None:
            return None
        text = self.scope.string(node)
        if text == "dtype":
            return "dtype"
        if text in self._checked:
            return self._checked[text]
        names = ", ".join(["'dtype'", *map(repr, self._checked)])
        raise self.source.error(
            node,
            f"no discharge {text!r}; discharges are {names}",
            "write checked(...), which checks the range at run time",
        )

    def _block(self, node: ast.With, arguments: Arguments, outer: Origins) -> Block:
        (title,) = arguments.take(1)
        name = self.buffers.claim(self.scope.string(title), "block", title)
        origins = self.origins(arguments, outer)
        annotations = self.scope.attributes(arguments)
        iters, rest = self._iters(node.body)
        header = BlockHeader()
        uid = self.mint()
        guards = [s for s in rest if _header_call(s, ("guard",))]
        for statement in guards:
            self._header_line(statement, header, origins)
        with self.scope.bound({v.var.name: (v.var, v.extent) for v in iters}):
            inner = [s for s in rest if s not in guards]
            values, self.elements.locals = self.elements.locals, {}
            above, self._reducers = self._reducers, ReducerReader(self.scope, self.elements, iters)
            self._blocks += 1
            whole = seq(*self._statements(inner, origins, header))
            self._blocks -= 1
            self.elements.locals, reducer = values, self._reducers.used
            self._reducers = above
        if header.init is not None:
            self._starts |= self._named_loops(node, iters)
        reads, writes = access_regions(whole, header.init)
        return Block(
            uid,
            name,
            iters,
            reads if header.reads is None else header.reads,
            writes if header.writes is None else header.writes,
            whole,
            header.init,
            header.predicate,
            annotations,
            origins,
            reducer,
        )

    def _iters(self, body: list[ast.stmt]) -> tuple[tuple[IterVar, ...], list[ast.stmt]]:
        """Parse leading bindings of iteration variables; return the remaining statements too."""
        iters: list[IterVar] = []
        for position, statement in enumerate(body):
            if is_allocation(statement):
                return tuple(iters), body[position:]
            match statement:
                case ast.Assign(targets=[ast.Name()], value=value) if self._is_bound(value, iters):
                    return tuple(iters), body[position:]
                case ast.Assign(targets=[ast.Name() as target], value=value):
                    iters.append(self._iter(target, value, iters))
                case ast.Assign(
                    targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)
                ) if len(targets) == len(values) and not _are_stores(targets, values):
                    for target, value in zip(targets, values, strict=True):
                        iters.append(self._iter(target, value, iters))
                case _:
                    return tuple(iters), body[position:]
        return tuple(iters), []

    def _named_loops(self, node: ast.With, iters: tuple[IterVar, ...]) -> set[Var]:
        """Return variables in the text of spatial bindings that remain in a reduction only."""
        spatial, reducing = bound_variables(iters)
        bindings = (
            call.args[-1]
            for statement in node.body
            if isinstance(statement, ast.Assign)
            for call in ast.walk(statement.value)
            if isinstance(call, ast.Call) and called_name(call) in _SPATIAL and call.args
        )
        names = {n.id for b in bindings for n in ast.walk(b) if isinstance(n, ast.Name)}
        return {v for v in reducing - spatial if v.name in names}

    def _is_bound(self, value: ast.expr, iters: list[IterVar]) -> bool:
        """Return whether a line after iteration variables binds the value of an element."""
        with self.scope.bound({v.var.name: (v.var, v.extent) for v in iters}):
            return called_name(value) not in _ITERS and self.elements.is_element(value)

    def _iter(self, target: ast.expr, value: ast.expr, before: list[IterVar]) -> IterVar:
        kind = called_name(value)
        if not isinstance(value, ast.Call) or kind not in _ITERS:
            raise self.source.error(
                value,
                f"expected spatial, reduce or ordered, got {describe(value)}",
                "write v = spatial(i), or bind one element to a name: t = x[v]",
            )
        if not isinstance(target, ast.Name):
            raise self.source.error(
                target, f"expected the name of an iteration variable, got {describe(target)}"
            )
        self.scope.check_unbound(target.id, target)
        if any(v.var.name == target.id for v in before):
            raise DuplicateNameError(
                f"duplicate iteration variable {target.id!r}",
                location=self.source.location(target),
                hint="the iteration variables of a block have different names",
            )
        arguments = Arguments(self.source, value, f"{kind}(i), or {kind}(extent, binding)")
        *sizes, bound = arguments.take(1, 2)
        binding = self.scope.expr(bound)
        extent = self.scope.expr(sizes[0]) if sizes else self._extent_of(binding, bound)
        variable = self.ranged(target.id, range_of(extent), arguments)
        arguments.finish()
        return IterVar(variable, extent, _ITERS[kind], binding)

    def _extent_of(self, binding: Expr, node: ast.expr) -> Expr:
        found = self.scope.extents.get(binding) if isinstance(binding, Var) else None
        if found is None:
            raise self.source.error(
                node,
                "cannot infer the extent: the binding is not a loop variable",
                "write spatial(extent, binding)",
            )
        return found

    def _header_line(self, node: ast.stmt, header: BlockHeader, origins: Origins) -> bool:
        """Parse ``guard``, ``reads``, ``writes`` or ``with init()``; return whether it is one."""
        if isinstance(node, ast.With) and called_name(node.items[0].context_expr) == "init":
            self._once("init", header, node)
            header.init = self.body(node.body, origins)
            return True
        call = _header_call(node, _HEADERS)
        if call is None:
            return False
        self._read_header_call(call, header)
        return True

    def _once(self, word: str, header: BlockHeader, node: Located) -> None:
        if word in header.seen:
            raise DuplicateNameError(
                f"duplicate {word}(...) in this block",
                location=self.source.location(node),
                hint=f"write one {word}(...) with everything in it",
            )
        header.seen.add(word)

    def _read_header_call(self, call: ast.Call, header: BlockHeader) -> None:
        arguments = Arguments(self.source, call, "guard(condition), reads(A[i, 0:n], ...)")
        arguments.finish()
        word = called_name(call) or ""
        self._once(word, header, call)
        match word:
            case "guard":
                header.predicate = self.scope.predicate(arguments.take(1)[0])
            case "reads":
                header.reads = tuple(self._region(n) for n in arguments.positional)
            case _:
                header.writes = tuple(self._region(n) for n in arguments.positional)

    def _region(self, node: ast.expr) -> Region:
        if not isinstance(node, ast.Subscript):
            raise self.source.error(
                node, f"expected a region, got {describe(node)}", "write A[i, 0:n]"
            )
        buffer = self.elements.buffer(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(inner) != buffer.rank:
            noun = "range" if buffer.rank == 1 else "ranges"
            raise self.source.error(
                node,
                f"expected {buffer.rank} {noun} of buffer {buffer.name!r}, got {len(inner)}",
                f"the shape of {buffer.name!r} is {shape_text(buffer.shape)}",
            )
        return Region(buffer, tuple(self._range(n) for n in inner))

    def _range(self, node: ast.expr) -> Range:
        if isinstance(node, ast.Slice):
            if node.lower is None or node.upper is None or node.step is not None:
                raise self.source.error(
                    node,
                    "expected a range with start and stop, and without step",
                    "write A[start:stop]",
                )
            start = self.scope.expr(node.lower)
            return Range(start, self.scope.expr(node.upper) - start)
        if isinstance(node, ast.Call) and called_name(node) == "span":
            start, extent = Arguments(self.source, node, "span(start, extent)").take(2)
            return Range(self.scope.expr(start), self.scope.expr(extent))
        return Range(self.scope.expr(node), _ONE)


def _are_stores(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    """Return whether an assignment of several values stores elements: ``m[i], p[i] = 0.0, 1``."""
    stored = any(isinstance(target, ast.Subscript) for target in targets)
    return stored and not any(called_name(value) in _ITERS for value in values)


def _header_call(node: ast.stmt, names: tuple[str, ...]) -> ast.Call | None:
    call = node.value if isinstance(node, ast.Expr) else None
    return call if isinstance(call, ast.Call) and called_name(call) in names else None


def read_prim_func(source: Source, node: ast.FunctionDef, declared: Declarations) -> PrimFunc:
    """Parse one loop-level function, given the symbols declared above it."""
    hidden = names_of_its_own(node)
    symbols = {name: d.mint() for name, d in declared.items() if name not in hidden}
    scope = Scope(source, symbols)
    reader = LoopReader(scope, node)
    _, decorator = decorator_of(source, node, ("prim_func",))
    params = tuple(reader.buffers.parameter(arg) for arg in signature(source, node))
    target, origins, attributes = None, NO_ORIGIN, ()
    if isinstance(decorator, ast.Call):
        arguments = Arguments(source, decorator, '@prim_func(target=Target("cpu"), key=value)')
        arguments.take(0)
        target_node = arguments.keyword("target")
        target = None if target_node is None else read_target(scope, target_node)
        origins = reader.origins(arguments, NO_ORIGIN)
        attributes = scope.attributes(arguments)
    facts, rest = take_facts(scope, statements_of(node))
    buffers, rest = reader.buffers.allocations(rest)
    body = reader.body(rest, origins)
    return PrimFunc(node.name, params, body, buffers, facts, target, attributes, origins)
