"""Keyword arguments, signatures and named results of native functions."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, cast

from ...nearest import did_you_mean, nearest
from ..entry_names import public_name
from ..errors import ArgumentCountError, ArgumentNameError, CallError, OutputNameError
from ..manifest import FunctionSpec, ResultSpec
from ..messages import IN_FUNCTION, Message

_new_tuple = cast("Callable[[type[Any], Iterable[Any]], Any]", getattr(tuple, "__new__"))  # noqa: B009  # its type is partially unknown
_named_tuple = cast("Callable[[str, list[tuple[str, Any]]], Any]", NamedTuple)

ResultsMaker = Callable[[Iterable[Any]], tuple[Any, ...]]
"""A function that makes a tuple of several results."""


def bound_arguments(
    spec: FunctionSpec, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments of a call by position, after binding keyword arguments by name.

    Raises
    ------
    ArgumentNameError
        If a name is not that of a parameter, or its parameter already has a value.
    ArgumentCountError
        If a parameter has no value, or there are more positional arguments than parameters.
    """
    names = [p.name for p in spec.inputs]
    if len(arguments) > len(names):
        raise count_error(spec, len(arguments) + len(named))
    given = dict(zip(names, arguments, strict=False))
    for name in named:
        if name not in names:
            raise _unknown(spec, name)
        if name in given:
            raise _duplicate(spec, name)
    given.update(named)
    absent = [name for name in names if name not in given]
    if absent:
        raise _missing(spec, absent)
    return tuple(given[name] for name in names)


def count_error(spec: FunctionSpec, actual: int) -> ArgumentCountError:
    """Return the error of a call with too many or too few positional arguments."""
    expected = len(spec.inputs)
    states = ", ".join(repr(p.name) for p in spec.states)
    fields = {"expected": expected, "actual": actual, "signature": _call_text(spec)}
    return ArgumentCountError(
        Message.ARGUMENT_COUNT.format(**fields),
        where=_where(spec),
        hint=f"{states} is passed as a state: exe(x, state=exe.new_state(...))"
        if states
        else "pass one argument per parameter",
        details={"expected": expected, "actual": actual},
    )


def _unknown(spec: FunctionSpec, name: str) -> CallError:
    near = nearest(name, [p.name for p in spec.inputs])
    return ArgumentNameError(
        Message.UNKNOWN_ARGUMENT.format(
            parameter=name,
            similar=f" (did you mean '{near[0]}'?)" if near else "",
            signature=_call_text(spec),
        ),
        where=_where(spec),
        hint=f"parameters are {', '.join(p.name for p in spec.inputs) or 'none'}",
        details={"parameter": name, "similar": list(near)},
    )


def _duplicate(spec: FunctionSpec, name: str) -> CallError:
    position = next(k for k, p in enumerate(spec.inputs, 1) if p.name == name)
    return ArgumentNameError(
        Message.DUPLICATE_ARGUMENT.format(
            parameter=name, position=position, signature=_call_text(spec)
        ),
        where=_where(spec),
        hint="pass each argument once",
        details={"parameter": name, "position": position},
    )


def _missing(spec: FunctionSpec, names: Sequence[str]) -> CallError:
    return ArgumentCountError(
        Message.MISSING_ARGUMENT.format(
            names=", ".join(f"'{name}'" for name in names), signature=_call_text(spec)
        ),
        where=_where(spec),
        hint="pass one argument per parameter",
        details={"missing": list(names)},
    )


def _where(spec: FunctionSpec) -> str:
    return IN_FUNCTION.format(function=public_name(spec.name))


def _call_text(spec: FunctionSpec) -> str:
    params = ", ".join(f"{p.name}: {p.annotation}" for p in spec.inputs)
    return f"{public_name(spec.name)}({params})"


def signature_of(spec: FunctionSpec) -> inspect.Signature | None:
    """Return the signature of a function, with types as text; None if a name is not valid.

    A name is not valid in Python if it is not an identifier, such as a name of an ONNX model, or if
    it is not unique.
    """
    made: list[inspect.Parameter] = []
    for param in spec.inputs:
        if not _is_valid(param.name):
            return None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        made.append(inspect.Parameter(param.name, kind, annotation=param.annotation))
    if len({p.name for p in made}) < len(made):
        return None
    if spec.states and "state" not in (p.name for p in made):
        keyword_only = inspect.Parameter.KEYWORD_ONLY
        made.append(
            inspect.Parameter("state", keyword_only, default=None, annotation="ExecutableState")
        )
    returned = ", ".join(_result_text(r) for r in spec.results)
    several = len(spec.results) > 1
    text = f"({returned})" if several else returned or "None"
    return inspect.Signature(made, return_annotation=text)


def documentation(spec: FunctionSpec) -> str:
    """Return the documentation of a function: its parameters and results, one per line."""
    lines = [f"Compiled function {public_name(spec.name)!r} for {spec.device}."]
    if spec.params:
        lines += ["", "Parameters", "----------"]
        for param in spec.inputs:
            lines += [f"{param.name} : {param.annotation}", f"    {_ACCESS[param.access]}"]
    if spec.states:
        parts = ", ".join(f"{p.name}: {p.annotation}" for p in spec.states)
        lines += ["state : ExecutableState, optional", f"    Read, and written in place: {parts}."]
    if spec.results:
        lines += ["", "Returns", "-------"]
        for result in spec.results:
            lines.append(_result_text(result))
            if result.param >= 0:
                written = spec.params[result.param].name
                lines.append(f"    The parameter {written!r}, written in place.")
    return "\n".join(lines)


_ACCESS: Mapping[str, str] = {
    "in": "Read.",
    "out": "Written in place.",
    "inout": "Read, and written in place.",
}


def _result_text(result: ResultSpec) -> str:
    return f"{result.name} : {result.annotation or result.dtype}"


def _is_valid(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def results_maker(results: Sequence[ResultSpec]) -> ResultsMaker:
    """Return the function that makes the tuple of several results.

    The tuple has a field per result, like a named tuple, if all names are different identifiers
    that do not begin with an underscore.
    """
    names = tuple(r.name for r in results)
    valid = all(_is_valid(name) and not name.startswith("_") for name in names)
    if len(names) < 2 or not valid or len(set(names)) < len(names):
        return tuple
    return partial(_new_tuple, results_type(names))


@cache
def results_type(names: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """Return the named tuple of several results; it can be pickled and copied.

    Examples
    --------
    >>> made = results_type(("logits", "cache"))((1, 2))
    >>> made.logits, made == (1, 2), made
    (1, True, Results(logits=1, cache=2))
    >>> made["logits"], made[-1]
    (1, 2)
    """
    plain = _named_tuple("Results", [(name, Any) for name in names])

    def reduce(results: tuple[Any, ...]) -> tuple[Any, ...]:
        return restored_results, (names, tuple(results))

    def new(cls: type[Any], values: Iterable[Any]) -> Any:
        return _new_tuple(cls, values)

    def item(results: tuple[Any, ...], key: Any) -> Any:
        if not isinstance(key, str):
            return cast("Any", tuple).__getitem__(results, key)
        if key not in names:
            question = did_you_mean(key, names)
            message = f"no output {key!r}" + (f"; {question}" if question else "")
            raise OutputNameError(message, hint=f"outputs are {', '.join(names)}")
        return results[names.index(key)]

    fields = {
        "__slots__": (),
        "__getitem__": item,
        "__reduce__": reduce,
        "__new__": new,
        "__module__": __name__,
    }
    return cast("type[tuple[Any, ...]]", type("Results", (plain,), fields))


def restored_results(names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the results of a pickle or a copy."""
    return results_type(names)(values)
