"""What stands for a word of the text format in Python."""

from __future__ import annotations

from typing import Any

from .errors import OutsideFunctionError


class Word:
    """A word that only the parser understands."""

    def __init__(self, name: str) -> None:
        """Know the name."""
        self.name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse: the functions that use words are read, not run."""
        raise OutsideFunctionError(
            f"{self.name!r} is a word of the text format",
            hint="it means something inside a function under @prim_func or @graph_func",
        )

    def __repr__(self) -> str:
        return self.name


class Annotation(Word):
    """A word that annotates parameters; Python evaluates annotations when it defines a function."""

    def __getitem__(self, _: Any) -> Any:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Accept any arguments, as ``[...]`` does."""
        return self
