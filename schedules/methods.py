"""Methods of schedules, one per registered step.

A method is created when its step is registered. ``methods.pyi`` is generated from the same
registry for editors and type checkers (``python -m tilewright.schedules.stub``).
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ..nearest import did_you_mean
from ..renamed import missing_method
from .foreign_names import method_hint, parameter_hint
from .problem import ParameterError
from .step import Step


class ScheduleMethods:
    """The base class of :class:`~.schedule.Schedule`, with one method per step."""

    def perform(self, step: Step) -> Any:
        """Apply a step and return its results in the form of its method."""
        raise TypeError(f"{type(self).__name__} cannot apply step {step.verb()!r}")

    def __getattr__(self, name: str) -> NoReturn:
        """Report an unknown attribute, with its current name, its equivalent or a similar name."""
        missing_method(self, name, hint=method_hint(name))


def install(cls: type[Step]) -> None:
    """Add a method for a step to schedules; the step's fields become parameters."""
    verb, items = cls.verb(), variadic(cls)

    def method(self: ScheduleMethods, *args: Any, **kwargs: Any) -> Any:
        if items and args and not isinstance(args[0], tuple | list):
            args = (args,)  # sch.fuse(i, j) is sch.fuse((i, j))
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise _parameter_error(verb, items, signature, kwargs, str(error)) from None
        return self.perform(cls(*bound.args[1:], **bound.kwargs))

    fields = dataclasses.fields(cast("Any", cls))
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([own, *(_parameter(f) for f in fields)])
    method.__name__ = verb
    method.__qualname__ = f"Schedule.{verb}"
    method.__doc__ = _documentation(cls, items)
    cast("Any", method).__signature__ = signature
    setattr(ScheduleMethods, verb, method)


_HANDLES = re.compile(r"tuple\[(?:[\w.]*Ref)(?: \| [\w.]*Ref)*, \.\.\.\]")


def variadic(cls: type[Step]) -> str:
    """Return the parameter whose items a method also accepts as separate arguments, or ``""``.

    It is the first parameter, if it is a tuple of handles and the only required one.

    Examples
    --------
    >>> from .registry import step_type
    >>> variadic(step_type("reorder")), variadic(step_type("split"))
    ('loops', '')
    """
    fields = dataclasses.fields(cast("Any", cls))
    required = [f for f in fields if f.default is dataclasses.MISSING]
    if len(required) != 1 or required[0] is not fields[0]:
        return ""
    first = fields[0]
    text = first.type if isinstance(first.type, str) else repr(first.type)
    return first.name if _HANDLES.fullmatch(text) else ""


def _documentation(cls: type[Step], items: str) -> str | None:
    """Return the documentation of a step, after both signatures if there are two."""
    text = cls.__doc__
    if not items or text is None:
        return text
    verb = cls.verb()
    return f"{verb}({items})\n    {verb}(*{items})\n\n    {text}"


def _parameter_error(
    verb: str, items: str, signature: inspect.Signature, named: Mapping[str, object], reason: str
) -> ParameterError:
    """Return the error of arguments that do not match the signature of a step."""
    known = tuple(signature.parameters)[1:]
    hints = [_call_text(verb, signature) + (f" or {verb}(*{items})" if items else "")]
    extra = next((name for name in named if name not in known), None)
    message = f"{verb}: {reason}"
    if extra is not None:
        foreign = parameter_hint(extra, known)
        question = "" if foreign else did_you_mean(extra, known)
        message = f"{verb} has no parameter {extra!r}" + (f"; {question}" if question else "")
        hints[:0] = [foreign] if foreign else []
    return ParameterError(message, where=f"arguments of {verb}", hint="\n  ".join(hints))


def _call_text(verb: str, signature: inspect.Signature) -> str:
    own = list(signature.parameters.values())[1:]
    named = [k for k, p in enumerate(own) if p.kind is inspect.Parameter.KEYWORD_ONLY]
    shown = [_parameter_text(parameter) for parameter in own]
    if named:
        shown.insert(named[0], "*")
    return f"usage: {verb}({', '.join(shown)})"


def _parameter_text(parameter: inspect.Parameter) -> str:
    """Return a parameter with its annotation without the quotes of a text, and its default."""
    text = f"{parameter.name}: {parameter.annotation}"
    given = parameter.default is not inspect.Parameter.empty
    return f"{text} = {parameter.default!r}" if given else text


def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    missing = field.default is dataclasses.MISSING
    default: Any = inspect.Parameter.empty if missing else field.default
    kind = (
        inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)
