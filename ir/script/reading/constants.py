"""Constants, of which the text has shape, dtype and digest, never the values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import numpy as np

from ...dtype import from_numpy
from ...graph.nodes import TensorInfo
from ...module import Array, Constant, MissingConstantError
from ...symbolic import const_value
from ..errors import ConstantMismatchError, DuplicateNameError
from .arguments import Arguments
from .scope import Scope

Supplied: TypeAlias = "Mapping[str, Constant | Array]"

_USAGE = 'constant("key", (384, 384), f32, digest="...", source="...")'


def _missing(key: str) -> Callable[[], Array]:
    def load() -> Array:
        raise MissingConstantError(
            f"the values of constant {key!r} were not supplied",
            hint=f"parse(text, constants={{{key!r}: ...}})",
        )

    return load


class Constants:
    """The constants of a module, with the values supplied under their keys."""

    def __init__(self, supplied: Supplied) -> None:
        """Start with none; values may be supplied for constants that the text never mentions."""
        self.known: dict[str, Constant] = {}
        self._supplied = supplied

    def declare(self, scope: Scope, call: ast.Call) -> None:
        """Enter what ``constant("key", (384,), f32)`` declares."""
        key, described = _declared(scope, call)
        if key in self.known:
            raise DuplicateNameError(f"two constants {key!r}", place=scope.source.place(call))
        self.known[key] = self._filled(key, described)

    def describe(self, key: str, info: TensorInfo) -> None:
        """Enter what ``const("key", Tensor[...])`` describes where it is used, if it is supplied.

        Without values it stays outside of the module: a function alone may mention it, and
        another function may prepare it.
        """
        if key in self.known or key not in self._supplied:
            return
        shape = tuple(n for d in info.shape or () if (n := const_value(d)) is not None)
        if info.shape is None or len(shape) != len(info.shape):
            raise ConstantMismatchError(
                f"constant {key!r} is supplied, and the text describes it as {info}",
                hint="the shape of a constant is a tuple of integers",
            )
        self.known[key] = self._filled(key, Constant(shape, info.dtype, _missing(key)))

    def _filled(self, key: str, described: Constant) -> Constant:
        if key not in self._supplied:
            return described
        return _matching(key, described, _wrapped(key, self._supplied[key]))


def _wrapped(key: str, given: Constant | Array) -> Constant:
    """Take an array for a constant; it is not copied unless its bytes are in another order."""
    value = cast("object", given)
    if isinstance(value, Constant):
        return value
    if not isinstance(value, np.ndarray):
        raise ConstantMismatchError(
            f"constant {key!r} is supplied as {type(value).__name__}",
            hint="a constant is a NumPy array, or a Constant(shape, dtype, load)",
        )
    element = from_numpy(cast("Array", given).dtype)
    array: Array = np.asarray(given, element.numpy)
    return Constant(array.shape, element, lambda: array)


def _declared(scope: Scope, call: ast.Call) -> tuple[str, Constant]:
    arguments = Arguments(scope.source, call, _USAGE)
    key_node, shape_node, dtype_node = arguments.take(3)
    key = scope.string(key_node)
    if not isinstance(shape_node, ast.Tuple):
        raise arguments.error("the shape of a constant is a tuple of integers", shape_node)
    shape = tuple(scope.integer(n) for n in shape_node.elts)
    digest, origin = arguments.keyword("digest"), arguments.keyword("source")
    arguments.finish()
    described = Constant(
        shape,
        scope.dtype(dtype_node),
        _missing(key),
        "" if digest is None else scope.string(digest),
        "" if origin is None else scope.string(origin),
    )
    return key, described


def _matching(key: str, described: Constant, found: Constant) -> Constant:
    """Take a supplied constant if it is the one that the text describes."""
    facts = {
        "shape": (described.shape, found.shape),
        "dtype": (described.dtype, found.dtype),
        "digest": (described.digest, found.digest),
    }
    for what, (text, given) in facts.items():
        unknown = what == "digest" and not (text and given)
        if text != given and not unknown:
            raise ConstantMismatchError(
                f"constant {key!r}: the text says {what} {text}, supplied is {given}"
            )
    return Constant(
        described.shape,
        described.dtype,
        found.load,
        described.digest or found.digest,
        described.source or found.source,
    )
