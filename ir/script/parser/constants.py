"""Constants; the text contains their shape, dtype and digest, never their values."""

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
from .source import describe

Supplied: TypeAlias = "Mapping[str, Constant | Array]"

_USAGE = 'constant("key", (384, 384), f32, digest="...", source="...")'


def _missing(key: str) -> Callable[[], Array]:
    def load() -> Array:
        raise MissingConstantError(
            f"the values of constant {key!r} were not supplied",
            hint=f"pass them: parse(text, constants={{{key!r}: array}})",
        )

    return load


class Constants:
    """The constants of a module, with the supplied values by key."""

    def __init__(self, supplied: Supplied) -> None:
        """Start with no constants; ``supplied`` may contain keys that the text does not use."""
        self.known: dict[str, Constant] = {}
        self._supplied = supplied

    def declare(self, scope: Scope, call: ast.Call) -> None:
        """Register the constant that ``constant("key", (384,), f32)`` declares."""
        key, described = _declared(scope, call)
        if key in self.known:
            raise DuplicateNameError(
                f"duplicate constant {key!r}", location=scope.source.location(call)
            )
        self.known[key] = self._filled(key, described)

    def describe(self, key: str, info: TensorInfo) -> None:
        """Register the constant of ``const("key", Tensor[...])`` if its values are supplied.

        Without values it is not part of the module: a single function may refer to it, and
        another function may compute it.
        """
        if key in self.known or key not in self._supplied:
            return
        shape = tuple(n for d in info.shape or () if (n := const_value(d)) is not None)
        if info.shape is None or len(shape) != len(info.shape):
            raise ConstantMismatchError(
                f"expected a shape of integers for the supplied constant {key!r}, got {info}",
                hint="write a tuple of integers as its shape, such as Tensor[(4, 8), f32]",
            )
        self.known[key] = self._filled(key, Constant(shape, info.dtype, _missing(key)))

    def _filled(self, key: str, described: Constant) -> Constant:
        if key not in self._supplied:
            return described
        return _matching(key, described, _wrapped(key, self._supplied[key]))


def _wrapped(key: str, given: Constant | Array) -> Constant:
    """Wrap an array as a constant; it is copied only if its byte order is not native."""
    value = cast("object", given)
    if isinstance(value, Constant):
        return value
    if not isinstance(value, np.ndarray):
        raise ConstantMismatchError(
            f"expected an array for constant {key!r}, got {type(value).__name__}",
            hint="pass a NumPy array, or Constant(shape, dtype, load)",
        )
    element = from_numpy(cast("Array", given).dtype)
    array: Array = np.asarray(given, element.numpy)
    return Constant(array.shape, element, lambda: array)


def _declared(scope: Scope, call: ast.Call) -> tuple[str, Constant]:
    arguments = Arguments(scope.source, call, _USAGE)
    key_node, shape_node, dtype_node = arguments.take(3)
    key = scope.string(key_node)
    if not isinstance(shape_node, ast.Tuple):
        raise arguments.error(
            f"expected a tuple of integers as shape, got {describe(shape_node)}", shape_node
        )
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
    """Return the constant with its supplied values after comparing it with its declaration."""
    properties = {
        "shape": (described.shape, found.shape),
        "dtype": (described.dtype, found.dtype),
        "digest": (described.digest, found.digest),
    }
    for name, (expected, supplied) in properties.items():
        unknown = name == "digest" and not (expected and supplied)
        if expected != supplied and not unknown:
            raise ConstantMismatchError(
                f"expected {name} {expected} for constant {key!r}, got {supplied}",
                hint="pass the array that the text declares, or change the declaration",
            )
    return Constant(
        described.shape,
        described.dtype,
        found.load,
        described.digest or found.digest,
        described.source or found.source,
    )
