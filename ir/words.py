"""Python objects that represent keywords of the text format."""

from __future__ import annotations

from typing import Any

from ..errors import TilewrightError


class OutsideFunctionError(TilewrightError):
    """A call of a keyword of the text format outside of a decorated function."""

    title = "Keyword outside of a function"


class Word:
    """A keyword that only the parser interprets."""

    def __init__(self, name: str) -> None:
        """Store the name."""
        self.name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise an error: functions that use keywords are parsed, never executed."""
        raise OutsideFunctionError(
            f"{self.name!r} was called outside of a decorated function; it is a keyword of the "
            "text format",
            hint="use it inside a function decorated with @prim_func or @graph_func",
        )

    def __repr__(self) -> str:
        return self.name


class Annotation(Word):
    """A keyword for annotations, which Python evaluates when it defines a function."""

    def __getitem__(self, _: Any) -> Any:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Accept any arguments, like ``[...]``."""
        return self
