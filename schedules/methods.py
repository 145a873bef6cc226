"""The methods of a schedule, one a registered step.

They are made when a step registers; ``methods.pyi`` is generated from the same registry, so that
editors and type checkers know them (``python -m tilewright.schedules.stub``).
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, cast

from .problem import ParameterError

if TYPE_CHECKING:
    from .primitive import Step


class ScheduleMethods:
    """Base of :class:`~.schedule.Schedule` that carries a method for every step."""

    def perform(self, step: Step) -> Any:
        """Apply a step, and give what its method gives."""
        raise TypeError(f"{type(self).__name__} performs no steps ({step.verb()})")


def install(cls: type[Step]) -> None:
    """Give schedules a method for a step: its fields become parameters."""
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
    return f"write {verb}{text}"


def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    missing = field.default is dataclasses.MISSING
    default: Any = inspect.Parameter.empty if missing else field.default
    kind = (
        inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)
