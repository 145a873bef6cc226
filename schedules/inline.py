"""Inlining of a loop-level function's body into another one, with fresh names and uids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.dtype import DType
from ..ir.identity import UidSource, fresh_name
from ..ir.loop.nodes import Alloc, Block, Buffer, For, Let, Local, PrimFunc, Stmt
from ..ir.loop.ranges import loop_var
from ..ir.loop.visit import Rebuilder
from ..ir.symbolic import Bool, Expr, SymInt, Var, substitute, var
from .substitution import body_with, narrows


class Renaming:
    """A source of names that are unique in the function being built."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        """Start with the names already in use."""
        self._taken = set(taken)

    def fresh(self, name: str) -> str:
        """Return a unique name: the given one, with a number if it is in use."""
        base = name.rstrip("0123456789").rstrip("_") if name in self._taken else name
        chosen = name if name not in self._taken else fresh_name(base or name, self._taken)
        self._taken.add(chosen)
        return chosen


class _Copy(Rebuilder):
    """A copy of a body with other buffers and symbols, and fresh names, variables and uids."""

    def __init__(
        self,
        buffers: dict[Buffer, Buffer],
        terms: dict[Var, SymInt],
        names: Renaming,
        mint: UidSource,
    ) -> None:
        self._buffers = buffers
        self._terms = terms
        self._names = names
        self._mint = mint

    def expr(self, term: Expr) -> Expr:
        return substitute(term, self._terms)

    def predicate(self, claim: Bool) -> Bool:
        return substitute(claim, self._terms)

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.get(buffer, buffer)

    def _bind(self, old: Var, extent: Expr | None = None) -> Var:
        name = self._names.fresh(old.name)
        new = (
            var(name, lower=old.lower, upper=old.upper, multiple_of=old.multiple_of)
            if extent is None
            else loop_var(name, self.expr(extent))
        )
        self._terms[old] = new
        return new

    def statement(self, statement: Stmt) -> Stmt:
        match statement:
            case For():
                renamed = self._bind(statement.var, statement.extent)
                return super().statement(replace(statement, uid=self._mint(), var=renamed))
            case Let():
                rebuilt = replace(statement, body=statement.body)
                renamed = self._bind(statement.var)
                return super().statement(replace(rebuilt, var=renamed))
            case Block():
                return self._copy_block(statement)
            case Alloc(buffer=buffer):
                name = self._names.fresh(buffer.name)
                self._buffers[buffer] = self.reshaped(replace(buffer, uid=self._mint(), name=name))
                return super().statement(statement)
            case _:
                return super().statement(statement)

    def local(self, local: Local, dtype: DType) -> Local:
        return Local(self._names.fresh(local.name), dtype)

    def _copy_block(self, block: Block) -> Stmt:
        iters = tuple(replace(v, var=self._bind(v.var, v.extent)) for v in block.iters)
        name = self._names.fresh(block.name)
        return self.block(replace(block, uid=self._mint(), name=name, iters=iters))


def _bind_symbols(
    callee: PrimFunc, buffers: Sequence[Buffer], scalars: Sequence[Expr]
) -> dict[Var, SymInt]:
    terms: dict[Var, SymInt] = dict(zip(callee.scalar_params, scalars, strict=True))
    for formal, actual in zip(callee.buffer_params, buffers, strict=True):
        for dim, size in zip(formal.shape, actual.shape, strict=True):
            if isinstance(dim, Var):
                terms.setdefault(dim, size)
    return terms


def inlined_body(
    callee: PrimFunc,
    buffers: Sequence[Buffer],
    scalars: Sequence[Expr],
    names: Renaming,
    mint: UidSource,
) -> tuple[Stmt, tuple[Buffer, ...]]:
    """Return a copy of a function's body for given arguments.

    Parameters
    ----------
    callee : PrimFunc
        The function to copy.
    buffers : sequence of Buffer
        The arguments of its buffer parameters, in order.
    scalars : sequence of Expr
        The arguments of its integer parameters, in order.
    names : Renaming
        The source of fresh names.
    mint : UidSource
        The source of fresh uids.

    Returns
    -------
    tuple of Stmt and tuple of Buffer
        The body and its temporaries, renamed.
    """
    terms = _bind_symbols(callee, buffers, scalars)
    known = dict(zip(callee.buffer_params, buffers, strict=True))
    temporaries: list[Buffer] = []
    for buffer in callee.buffers:
        shape = tuple(substitute(d, terms) for d in buffer.shape)
        strides = buffer.strides and tuple(substitute(d, terms) for d in buffer.strides)
        fresh = replace(
            buffer, uid=mint(), name=names.fresh(buffer.name), shape=shape, strides=strides
        )
        known[buffer] = fresh
        temporaries.append(fresh)
    inner, left = (body_with(callee, terms), {}) if narrows(terms) else (callee.body, terms)
    body = _Copy(known, left, names, mint).statement(inner)
    return body, tuple(temporaries)
