"""Methods of schedules, one per registered step.

A method is created when its step is registered. ``methods.pyi`` is generated from the same
registry for editors and type checkers (``python -m tilewright.schedules.stub``).
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, NoReturn, cast

from ..renamed import missing_method
from .problem import ParameterError
from .step import Step


class ScheduleMethods:
    """The base class of :class:`~.schedule.Schedule`, with one method per step."""

    def perform(self, step: Step) -> Any:
        """Apply a step and return its results in the form of its method."""
        raise TypeError(f"{type(self).__name__} cannot apply step {step.verb()!r}")

    def __getattr__(self, name: str) -> NoReturn:
        """Report an unknown attribute; the former name of a step is reported with its new one."""
        missing_method(self, name)


def install(cls: type[Step]) -> None:
    """Add a method for a step to schedules; the step's fields become parameters."""
    fields = dataclasses.fields(cast("Any", cls))

    def method(self: ScheduleMethods, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise ParameterError(
                f"{cls.verb()}: {error}", hint=_call_text(cls.verb(), signature)
            ) from None
        return self.perform(cls(*bound.args[1:], **bound.kwargs))

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([own, *(_parameter(f) for f in fields)])
    method.__name__ = cls.verb()
    method.__qualname__ = f"Schedule.{cls.verb()}"
    method.__doc__ = cls.__doc__
    cast("Any", method).__signature__ = signature
    setattr(ScheduleMethods, cls.verb(), method)


def _call_text(verb: str, signature: inspect.Signature) -> str:
    own = list(signature.parameters.values())[1:]
    text = str(signature.replace(parameters=own)).replace("'", "")
    return f"usage: {verb}{text}"


def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    missing = field.default is dataclasses.MISSING
    default: Any = inspect.Parameter.empty if missing else field.default
    kind = (
        inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)
