"""Constants, of which the text has shape, dtype and digest, never the values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ...module import Array, Constant, MissingConstantError
from ..errors import ConstantMismatchError
from .arguments import Arguments
from .scope import Scope

_USAGE = 'constant("key", (384, 384), f32, digest="...", source="...")'


def _missing(key: str) -> Callable[[], Array]:
    def load() -> Array:
        raise MissingConstantError(
            f"the values of constant {key!r} were not supplied",
            hint=f"parse(text, constants={{{key!r}: ...}})",
        )

    return load


def declared_constant(
    scope: Scope, call: ast.Call, supplied: Mapping[str, Constant]
) -> tuple[str, Constant]:
    """Read ``constant("key", (384,), f32)``; its values are those supplied under the key."""
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
    found = supplied.get(key)
    return key, described if found is None else _matching(key, described, found)


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
