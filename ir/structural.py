"""Equality and hash of programs by what they mean to a compiler, not by how they are written.

Names, uids, provenance, the order of creation and the identity of objects do not count; dtypes,
kinds, extents, annotations, facts with their discharge, attributes and access modes do. Functions
of a module are told apart by name, because calls mean them so.
"""

from __future__ import annotations

import hashlib
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

from .canonical import Canon, Difference, first_difference
from .graph.nodes import GraphFunc
from .graph.structural import write_graph_func
from .loop.nodes import Block, For, If, Let, PrimFunc, Seq, Store
from .loop.structural import write_prim_func, write_statement
from .module import Constant, MissingConstantError, Module

Program: TypeAlias = "Module | PrimFunc | GraphFunc | Store | For | Block | Seq | If | Let"

_hashes: WeakKeyDictionary[Module | PrimFunc | GraphFunc, str] = WeakKeyDictionary()
_digests: WeakKeyDictionary[Constant, str] = WeakKeyDictionary()
_lock = Lock()


def structural_hash(program: Program) -> str:
    r"""Give a sha256 in hexadecimal that structurally equal programs share.

    It is the same in every process. Functions and modules remember theirs.

    Cost
    ----
    Linear in the program at first, then a dictionary look-up.

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
    r"""Whether two programs are the same up to renaming.

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
    r"""Say where two programs first differ; empty if they do not.

    Examples
    --------
    >>> from .script import parse
    >>> text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in {0}(8): y[i] = 0.0"
    >>> one, other = (parse(text.format(k)).prim("f") for k in ("range", "parallel"))
    >>> print(explain_difference(one, other))
    loop 'i': "for i in serial '' 8" against "for i in parallel '' 8"
    """
    difference = find_difference(left, right)
    return "" if difference is None else str(difference)


def find_difference(left: Program, right: Program) -> Difference | None:
    """Give the first place where two programs differ, as data."""
    if not (isinstance(left, Module) and isinstance(right, Module)):
        return first_difference(lambda canon, k: _write(canon, right if k else left))
    found = first_difference(lambda canon, k: _write_head(canon, right if k else left))
    if found is not None:
        return found
    # Each function is compared by itself: functions may share symbols.
    for name, func in sorted(left.functions.items()):
        inner = find_difference(func, right.functions[name])
        if inner is not None:
            place = ", ".join(filter(None, (f"function {name!r}", inner.place)))
            return Difference(place, inner.left, inner.right)
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
    """Hash the hashes of the functions, which they remember."""
    hashes = [f"{f.name} {structural_hash(f)}" for _, f in sorted(module.functions.items())]
    return hashlib.sha256("\n".join(_module_lines(module) + hashes).encode()).hexdigest()


def _write_head(canon: Canon, module: Module) -> None:
    """Add what a module has beside its functions, and their names."""
    with canon.inside("module"):
        for line in _module_lines(module):
            canon.emit(line)
        canon.emit(f"functions {', '.join(sorted(module.functions))}")


def content_digest(constant: Constant) -> str:
    """Give what tells a constant's values apart.

    That is its digest; or the source it was read from, for then the values may be large; or the
    sha256 of its bytes. It is empty where there are no values.
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
