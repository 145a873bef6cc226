"""Structural equality and structural hash of programs.

Names, uids, provenance, creation order and object identity are ignored. Dtypes, kinds, extents,
annotations, facts with their discharge, attributes and access modes are compared. The functions of
a module are identified by name, because calls refer to them by name.
"""

from __future__ import annotations

import hashlib
import sys
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

from ..locks import renew_in_children
from .canonical import Canon, Difference, first_difference
from .graph.nodes import GraphFunc
from .graph.structural_hash import write_graph_func
from .loop.nodes import Block, For, If, Let, PrimFunc, Seq, Store
from .loop.structural_hash import write_prim_func, write_statement
from .module import Constant, MissingConstantError, Module

Program: TypeAlias = "Module | PrimFunc | GraphFunc | Store | For | Block | Seq | If | Let"

_hashes: WeakKeyDictionary[Module | PrimFunc | GraphFunc, str] = WeakKeyDictionary()
_digests: WeakKeyDictionary[Constant, str] = WeakKeyDictionary()
_lock = Lock()
renew_in_children(sys.modules[__name__])


def structural_hash(program: Program) -> str:
    r"""Return the structural hash of a program: a SHA-256 in hexadecimal.

    Structurally equal programs have equal hashes. The hash is the same in every process.

    Notes
    -----
    The first call is linear in the size of the program. The hashes of functions and modules are
    cached, so later calls are a dictionary look-up.

    Examples
    --------
    >>> from .script import parse
    >>> text = "@prim_func\ndef f({0}: Out[(8,), f32]):\n    for {1} in range(8): {0}[{1}] = 0.0"
    >>> one, other = (parse(text.format(*n)).prim("f") for n in ("yi", "xj"))
    >>> structural_hash(one) == structural_hash(other)
    True
    """
    if not isinstance(program, Module | PrimFunc | GraphFunc):
        return _digest(program)
    with _lock:
        found = _hashes.get(program)
    if found is None:
        found = _digest(program)
        with _lock:
            _hashes[program] = found
    return found


def structural_equal(left: Program, right: Program) -> bool:
    r"""Return whether two programs are equal up to renaming.

    Examples
    --------
    >>> from .script import parse
    >>> text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in {0}(8): y[i] = 0.0"
    >>> one, other = (parse(text.format(k)).prim("f") for k in ("range", "parallel"))
    >>> structural_equal(one, one), structural_equal(one, other)
    (True, False)
    """
    return left is right or structural_hash(left) == structural_hash(right)


def explain_difference(left: Program, right: Program) -> str:
    r"""Describe the first difference between two programs; empty if they are equal.

    Examples
    --------
    >>> from .script import parse
    >>> text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in {0}(8): y[i] = 0.0"
    >>> one, other = (parse(text.format(k)).prim("f") for k in ("range", "parallel"))
    >>> print(explain_difference(one, other))
    loop 'i': "for i in serial '' 8" != "for i in parallel '' 8"
    """
    difference = find_difference(left, right)
    return "" if difference is None else str(difference)


def find_difference(left: Program, right: Program) -> Difference | None:
    """Return the first difference between two programs, or None if they are equal."""
    if not (isinstance(left, Module) and isinstance(right, Module)):
        return first_difference(lambda canon, k: _write(canon, right if k else left))
    found = first_difference(lambda canon, k: _write_head(canon, right if k else left))
    if found is not None:
        return found
    # Functions are compared separately, because they may share symbols.
    for name, func in sorted(left.functions.items()):
        inner = find_difference(func, right.functions[name])
        if inner is not None:
            location = ", ".join(filter(None, (f"function {name!r}", inner.location)))
            return Difference(location, inner.left, inner.right)
    return None


def _digest(program: Program) -> str:
    if isinstance(program, Module):
        return _module_digest(program)
    canon = Canon()
    _write(canon, program)
    return canon.digest()


def _write(canon: Canon, program: Program) -> None:
    match program:
        case Module():
            _write_head(canon, program)
        case PrimFunc():
            write_prim_func(canon, program)
        case GraphFunc():
            write_graph_func(canon, program)
        case _:
            canon.emit("statement")
            write_statement(canon, program)


def _module_lines(module: Module) -> list[str]:
    attributes = [f"attribute {k}={v!r}" for k, v in sorted(module.attributes.items())]
    return attributes + [
        f"constant {key!r} {c.shape} {c.dtype} {content_digest(c)}"
        for key, c in sorted(module.constants.items())
    ]


def _module_digest(module: Module) -> str:
    """Combine the hashes of the functions, which are cached."""
    hashes = [f"{f.name} {structural_hash(f)}" for _, f in sorted(module.functions.items())]
    text = "\n".join(_module_lines(module) + hashes)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _write_head(canon: Canon, module: Module) -> None:
    """Append the attributes and constants of a module, and the names of its functions."""
    with canon.inside("module"):
        for line in _module_lines(module):
            canon.emit(line)
        canon.emit(f"functions {', '.join(sorted(module.functions))}")


def content_digest(constant: Constant) -> str:
    """Return a string that identifies the values of a constant.

    This is the digest of the constant if it has one, else the source it was read from (its values
    may be large), else the SHA-256 of its bytes. It is empty if the values were not supplied.
    """
    if constant.digest or constant.source:
        return constant.digest or constant.source
    with _lock:
        found = _digests.get(constant)
    if found is None:
        try:
            found = hashlib.sha256(constant.load().tobytes()).hexdigest()
        except MissingConstantError:
            found = ""
        with _lock:
            _digests[constant] = found
    return found
