"""Errors for calls whose arguments do not match the parameters of a public function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from .errors import TilewrightError
from .nearest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SignatureError(TilewrightError, TypeError):
    """A call with a parameter that the function lacks, or without a required argument."""

    title = "Invalid arguments"


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Report arguments that do not match the parameters of a function as a `SignatureError`.

    Examples
    --------
    >>> @checked_call
    ... def scale(program, target=None, *, debug=False): ...
    >>> scale(3, debgu=True)
    Traceback (most recent call last):
        ...
    tilewright.calls.SignatureError: scale has no parameter 'debgu'; did you mean 'debug'?
      usage: scale(program, target=None, *, debug=False)
    """

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:  # from the call itself, or from the body of the function
            _report(function, args, kwargs)
            raise

    return checked


def checked_calls(cls: type[T]) -> type[T]:
    """Apply `checked_call` to the constructor and the public methods of a class."""
    for name, member in tuple(vars(cls).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked_call(member))
    return cls


def _report(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Raise a `SignatureError` if the arguments do not match the parameters."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        _raise(function, signature, named, str(error))


def _raise(
    function: Callable[..., Any], signature: inspect.Signature, named: Mapping[str, Any], why: str
) -> NoReturn:
    outer, _, name = cast("Any", function).__qualname__.rpartition(".")
    name = outer.rpartition(".")[2] if name == "__init__" else name
    known = [p for p in signature.parameters.values() if p.name != "self"]
    extra = next((n for n in named if n not in signature.parameters), None)
    message = f"{name}: {why}"
    if extra is not None:
        question = did_you_mean(extra, [p.name for p in known])
        message = f"{name} has no parameter {extra!r}" + (f"; {question}" if question else "")
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in known]
    usage = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    raise SignatureError(message, hint=f"usage: {name}{usage}") from None
