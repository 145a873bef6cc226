"""Python text of traces, one step per line; composite steps as with statements or as one call."""

from __future__ import annotations

import ast
import keyword
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from ..locks import parse_expression, parse_module
from ..nearest import did_you_mean
from ..renamed import STEPS as RENAMED
from .methods import variadic
from .problem import TraceError
from .registry import STEPS
from .step import returned_shape
from .trace import DROPPED, EDITED, Argument, Group, ResultOf, Trace, TraceStep, Written

GROUP, RETURNS = "composite", "returns"
"""The methods of a schedule that enclose the steps of a composite step, and state its results."""

_INDENT = "    "


def to_python(trace: Trace, *, fold: bool = False) -> str:
    """Return a trace as Python, one step per line, on a schedule named ``sch``.

    Parameters
    ----------
    trace : Trace
        The steps.
    fold : bool
        True for one line per composite step, as :meth:`~.trace.Trace.folded` folds them. By
        default, the steps of a composite step are indented below a line with its arguments.

    Examples
    --------
    >>> block = TraceStep("get_block", (("name", "mm"), ("function", None)), ("mm",))
    >>> loops = TraceStep("get_loops", (("block", ResultOf(0, 0)),), ("i", "j"))
    >>> print(to_python(Trace((block, loops))))
    mm = sch.get_block(name='mm')
    i, j = sch.get_loops(block=mm)
    """
    return "\n".join(_lines(trace.folded() if fold else trace))


def step_lines(trace: Trace) -> tuple[str, ...]:
    """Return the steps of a trace as Python, without the lines of groups and indentation."""
    named = _python_names(trace)
    return tuple(_python_line(step, named[k], named) for k, step in enumerate(trace.steps))


def call_text(trace: Trace, call: TraceStep | Group) -> str:
    """Return a step or group of a trace as a call, such as ``tile(i=i, sizes=(8, 8))``."""
    return f"{call.op}({_shown(call, _python_names(trace))})"


def arguments_text(trace: Trace, call: TraceStep | Group) -> str:
    """Return the arguments of a step or group with the program's names, which may be ambiguous.

    Examples
    --------
    >>> first = TraceStep("get_block", (("name", "mm"), ("function", "f")), ("mm",))
    >>> again = TraceStep("get_block", (("name", "mm"), ("function", "g")), ("mm",))
    >>> loops = TraceStep("get_loops", (("block", ResultOf(1, 0)),), ("i", "j"))
    >>> trace = Trace((first, again, loops))
    >>> arguments_text(trace, loops), call_text(trace, loops)
    ('block=mm', 'get_loops(block=mm_2)')
    """
    return _shown(call, [step.names for step in trace.steps])


def _lines(trace: Trace) -> Iterator[str]:
    """Yield the lines of a trace; the steps of a group are indented."""
    named, waiting = _python_names(trace), list(trace.groups)
    inside: list[Group] = []
    for number, step in enumerate(trace.steps):
        while waiting and waiting[0].first == number:
            yield _INDENT * len(inside) + _group_line(waiting[0], named)
            inside.append(waiting.pop(0))
        yield _INDENT * len(inside) + _python_line(step, named[number], named)
        while inside and inside[-1].stop == number + 1:
            group = inside.pop()
            if group.results:
                results = ", ".join(_result(result, named) for result in group.results)
                yield f"{_INDENT * (len(inside) + 1)}sch.{RETURNS}({results})"


def _group_line(group: Group, named: list[tuple[str, ...]]) -> str:
    marks = [repr(group.op), *([repr(EDITED)] if group.edited else ())]
    shown = _shown(group, named)
    return f"with sch.{GROUP}({', '.join([*marks, *([shown] if shown else [])])}):"


def _result(result: ResultOf, named: list[tuple[str, ...]]) -> str:
    return "None" if result == DROPPED else _python_value(result, named)


def _python_names(trace: Trace) -> list[tuple[str, ...]]:
    taken: set[str] = {"sch"}
    return [tuple(_variable(name, taken) for name in step.names) for step in trace.steps]


def _variable(name: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))  # as the parser of Python does
    if not base.isidentifier() or keyword.iskeyword(base):
        base = f"_{base}"
    chosen, count = base, 1
    while chosen in taken:
        count += 1
        chosen = f"{base}_{count}"
    taken.add(chosen)
    return chosen


def _shown(step: TraceStep | Group, named: list[tuple[str, ...]]) -> str:
    return ", ".join(
        f"{name}={_python_value(value, named)}"
        for name, value in step.arguments
        if value is not None
    )


def _python_line(step: TraceStep, results: tuple[str, ...], named: list[tuple[str, ...]]) -> str:
    call = f"sch.{step.op}({_shown(step, named)})"
    if not results:
        return call
    many = len(results) > 1 or returns_tuple(step.op)
    targets = ", ".join(results) + ("," if many and len(results) == 1 else "")
    return f"{targets} = {call}"


def returns_tuple(op: str) -> bool:
    """Return whether the method of a step returns a tuple, even of one result."""
    return op in STEPS and returned_shape(STEPS[op]) == "many"


def _python_value(value: Argument, named: list[tuple[str, ...]]) -> str:
    match value:
        case ResultOf(step=step, index=index):
            if 0 <= step < len(named) and index < len(named[step]):
                return named[step][index]
            return f"result({step}, {index})"
        case Written(kind=kind, text=text):
            return text if kind == "map" and _is_index_map(text) else repr(text)
        case tuple():
            inner = ", ".join(_python_value(item, named) for item in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case float() if not math.isfinite(value):
            return f"float('{value}')"
        case _:
            return repr(value)


_TERMS: Final = (
    ast.Add, ast.And, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.FloorDiv, ast.List,
    ast.Load, ast.Mod, ast.Mult, ast.Name, ast.Not, ast.Or, ast.Sub, ast.Tuple, ast.UnaryOp,
    ast.USub, ast.arg, ast.arguments, ast.cmpop,
)  # fmt: skip


def _is_index_map(text: str) -> bool:
    """Return whether a text is a lambda of integer arithmetic, without any other expression.

    Traces in JSON may contain any text, but their Python text may be executed.
    """
    try:
        tree = parse_expression(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(tree, ast.Lambda) and all(
        isinstance(node, _TERMS) or _is_function_of_terms(node)
        for node in ast.walk(tree)
        if node is not tree
    )


def _is_function_of_terms(node: ast.AST) -> bool:
    """Return whether a node is a call of a function that the text of terms contains."""
    match node:
        case ast.Call(func=ast.Name(id="min" | "max" | "ceildiv" | "select"), keywords=[]):
            return True
        case _:
            return False


def from_python(text: str) -> Trace:
    """Parse Python text in the form of :func:`to_python`; nothing is executed.

    Raises
    ------
    TraceError
        If a line is not a call of a step; the message contains its number.

    Examples
    --------
    >>> trace = from_python("mm = sch.get_block('mm')" + chr(10) + "i, j = sch.get_loops(mm)")
    >>> print(to_python(trace))
    mm = sch.get_block(name='mm')
    i, j = sch.get_loops(block=mm)
    """
    if not isinstance(cast("object", text), str):
        raise TraceError(
            f"expected the text of a trace as str, got {type(text).__name__}",
            hint="read a file with from_python(Path(name).read_text())",
        )
    reader = _Reader()
    try:
        reader.read(parse_module(text).body)
    except SyntaxError as error:
        where = "the text" if error.lineno is None else f"line {error.lineno}"
        raise TraceError(f"{where} is not valid Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # deep nesting, surrogates
        reason = str(error) or type(error).__name__
        raise TraceError(f"the text is not valid Python: {reason}") from None
    trace = Trace(tuple(reader.steps), tuple(reader.groups))
    trace.check_groups()
    return trace


@dataclass(slots=True)
class _Reader:
    """The steps and groups read so far, and the results by variable."""

    steps: list[TraceStep] = field(default_factory=list[TraceStep])
    groups: list[Group] = field(default_factory=list[Group])
    known: dict[str, ResultOf] = field(default_factory=dict[str, ResultOf])

    def read(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.With):
                self._read_group(statement)
                continue
            names, call = _assignment(statement)
            self.steps.append(_read_call(call, names, self.known))
            last = len(self.steps) - 1
            self.known.update({name: ResultOf(last, k) for k, name in enumerate(names)})

    def _read_group(self, statement: ast.With) -> None:
        op, edited, arguments = _group_head(statement, self.known)
        position, first = len(self.groups), len(self.steps)
        body, returned = _without_returns(statement.body)
        self.read(body)
        results, names = self._results(returned)
        decisions = {EDITED: True} if edited else {}
        group = Group(op, arguments, first, len(self.steps), results, names, decisions)
        self.groups.insert(position, group)

    def _results(self, nodes: Iterable[ast.expr]) -> tuple[tuple[ResultOf, ...], tuple[str, ...]]:
        found = [(_read_value(node, self.known), node) for node in nodes]
        wrong = next((n for value, n in found if not isinstance(value, ResultOf | None)), None)
        if wrong is not None:
            raise _invalid(wrong, "is not the result of a step")
        results = tuple(v if isinstance(v, ResultOf) else DROPPED for v, _ in found)
        names = tuple(n.id if isinstance(n, ast.Name) else "" for _, n in found)
        return results, names


def _group_head(
    statement: ast.With, known: dict[str, ResultOf]
) -> tuple[str, bool, tuple[tuple[str, Argument], ...]]:
    """Return the name of a composite step, whether its steps were edited, and its arguments."""
    match statement.items:
        case [
            ast.withitem(
                context_expr=ast.Call(
                    func=ast.Attribute(value=ast.Name(), attr=attribute),
                    args=[ast.Constant(value=str(op)), *marks],
                    keywords=keywords,
                ),
                optional_vars=None,
            )
        ] if attribute == GROUP:
            pass
        case _:
            raise _invalid(statement, f'is not a group; write sch.{GROUP}("name", ...)')
    edited = [m.value for m in marks if isinstance(m, ast.Constant)]
    if len(edited) != len(marks) or edited not in ([], [EDITED]):
        raise _invalid(statement, f"has arguments without a name after {op!r}")
    return RENAMED.get(op, op), bool(edited), _read_arguments(statement, (), keywords, known)


def _without_returns(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.expr]]:
    """Return the statements of a group, and the results that its last statement states."""
    match body[-1]:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(), attr=name), args=args, keywords=[])
        ) if name == RETURNS:
            return body[:-1], args
        case _:
            return body, []


def _assignment(statement: ast.stmt) -> tuple[tuple[str, ...], ast.Call]:
    match statement:
        case ast.Expr(value=ast.Call() as call):
            return (), call
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            return (name,), call
        case ast.Assign(
            targets=[ast.Tuple(elts=elements) | ast.List(elts=elements)], value=ast.Call() as call
        ):
            if all(isinstance(e, ast.Name) for e in elements):
                return tuple(e.id for e in elements if isinstance(e, ast.Name)), call
        case _:
            pass
    raise _invalid(statement, "is not a step; write names = sch.step(...)")


def _read_call(call: ast.Call, names: tuple[str, ...], known: dict[str, ResultOf]) -> TraceStep:
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        raise _invalid(call, "is not a call of a schedule's method")
    op = RENAMED.get(call.func.attr, call.func.attr)
    fields = [p.name for p in STEPS[op].parameters()] if op in STEPS else []
    if call.args and op not in STEPS:
        question = did_you_mean(op, STEPS)
        raise _invalid(call, f"is not a step: no step {op!r}{question and f'; {question}'}")
    args = _handles_as_tuple(op, call.args)
    if len(args) > len(fields):
        raise _invalid(
            call, f"passes {len(args)} arguments to {op}, which has {len(fields)} parameters"
        )
    positional = tuple(zip(fields, args, strict=False))
    return TraceStep(op, _read_arguments(call, positional, call.keywords, known), names)


def _read_arguments(
    node: ast.AST,
    positional: tuple[tuple[str, ast.expr], ...],
    keywords: list[ast.keyword],
    known: dict[str, ResultOf],
) -> tuple[tuple[str, Argument], ...]:
    if any(k.arg is None for k in keywords):
        raise _invalid(node, "has arguments without a name: **")
    given = (*positional, *((k.arg or "", k.value) for k in keywords))
    names = [name for name, _ in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _invalid(node, f"has two values of {twice!r}")
    return tuple((name, _read_value(value, known)) for name, value in given)


def _handles_as_tuple(op: str, args: list[ast.expr]) -> list[ast.expr]:
    """Return the positional arguments of a step, with separate handles as one tuple."""
    separate = bool(args) and op in STEPS and bool(variadic(STEPS[op]))
    if not separate or isinstance(args[0], ast.Tuple | ast.List):
        return args
    return [ast.Tuple(elts=args, ctx=ast.Load())]


def _read_value(node: ast.expr, known: dict[str, ResultOf]) -> Argument:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Call(
            func=ast.Name(id="float"),
            args=[ast.Constant(value="inf" | "-inf" | "nan" as text)],
            keywords=[],
        ):
            return float(text)
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(_read_value(e, known) for e in elements)
        case ast.Lambda():
            return Written("map", ast.unparse(node))
        case _:
            raise _invalid(node, "is neither a literal nor the result of an earlier step")


def _invalid(node: ast.AST, reason: str) -> TraceError:
    line = getattr(node, "lineno", 0)
    text = ast.unparse(node).partition("\n")[0].removesuffix(":")
    return TraceError(f"line {line}: {text} {reason}", where=f"line {line}")
